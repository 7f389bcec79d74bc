"""Each kind of fault, put into a model, is found; and the report says where."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe.lint.findings import CODES
from cpbpe.model.spec import Piece, Pieces, PieceType
from tests.bytes import models as byte_models
from tests.support import zoo

N, C, U, D = PieceType.NORMAL, PieceType.CONTROL, PieceType.UNUSED, PieceType.USER_DEFINED


def base(**settings: Any) -> cpbpe.ModelSpec:
    """A model of ASCII letters in which little is wrong: 512 pieces, no pad."""
    pieces = [Piece(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"<s>", 0, C), Piece(b"</s>", 0, C)]
    pieces += [Piece(b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256)]
    letters = ["▁", *map(chr, range(33, 127))]
    merges = ["th", "the", "▁the", "in", "er", "▁a", "on"]
    merges += [a + b for a in "bcdfghjklm" for b in "aeiouy" if a + b not in merges]
    pieces += [Piece(text.encode(), -1.0 - rank) for rank, text in enumerate(merges)]
    pieces += [Piece(text.encode(), -1000.0 - rank) for rank, text in enumerate(letters)]
    rules = cpbpe.NormalizerSpec("identity", b"", True, False, True)
    return cpbpe.ModelSpec(Pieces.of(pieces), rules, byte_fallback=True, **settings)


def also(
    *pieces: tuple[str | bytes, float, PieceType], spec: cpbpe.ModelSpec | None = None
) -> cpbpe.ModelSpec:
    spec = spec or base()
    more = [
        Piece(text.encode() if isinstance(text, str) else text, score, type) for text, score, type in pieces
    ]
    return replace(spec, pieces=Pieces.of([*spec.pieces, *more]))


def without(*texts: str) -> cpbpe.ModelSpec:
    spec = base()
    return replace(spec, pieces=Pieces.of([p for p in spec.pieces if p.text.decode() not in texts]))


def changed(old: str, **fields: Any) -> cpbpe.ModelSpec:
    spec = base()
    pieces = [p._replace(**fields) if p.text.decode() == old else p for p in spec.pieces]
    return replace(spec, pieces=Pieces.of(pieces))


def rules(**fields: Any) -> cpbpe.ModelSpec:
    spec = base()
    return replace(spec, normalizer=replace(spec.normalizer, **fields))


def recorded(**fields: Any) -> cpbpe.ModelSpec:
    return replace(base(), settings=cpbpe.Settings(trainer=fields))


def charsmap(*rules: tuple[str, str]) -> bytes:
    from cpbpe.text.charsmap_build import charsmap_from_rules

    return charsmap_from_rules(rules)


def unknown_of(spec: cpbpe.ModelSpec) -> cpbpe.ModelSpec:
    """The same without byte fallback."""
    pieces = [p for p in spec.pieces if p.type != PieceType.BYTE]
    return replace(spec, pieces=Pieces.of(pieces), byte_fallback=False)


def byte_level(*more: bytes, whole: bool = True, pattern: str = r"\w+|\W") -> cpbpe.ModelSpec:
    texts = [bytes([byte]) for byte in range(256)] + list(more)
    ranks = {text: rank for rank, text in enumerate(texts)}
    return byte_models.spec_of(ranks, pattern, whole)


FAULTS: dict[str, tuple[Callable[[], cpbpe.ModelSpec], str | bytes | None]] = {
    "blocked": (lambda: also(("thin", -0.5, N), spec=changed("hi", score=5.0)), "thin"),
    "orphan": (lambda: also(("xyz", -5.0, N)), "xyz"),
    "shadowed": (lambda: also(("<sep>", 0, D), ("a<sep>", -5.0, N)), "a<sep>"),
    "crowded": (lambda: also(*(("=" * length, 0, D) for length in range(2, 68))), "=" * 67),
    "normalized-away": (lambda: also(("a b", 0, D)), "a b"),
    "not-utf8": (lambda: also((b"\xff", -5.0, N)), b"\xff"),
    "hidden-nul": (lambda: also((b"\0", -5.0, U)), b"\0"),
    "completed": (
        lambda: byte_level(
            b"\xf4\x8f", b"\xf4\x8f\xbf", *(b"\xf4\x8f\xbf%c" % byte for byte in range(0x80, 0xC0))
        ),
        b"\xf4\x8f\xbf",
    ),
    "unused": (lambda: changed("er", type=U), "er"),
    "unused-unknown": (base, "<unk>"),
    "unused-bytes": (base, "<0x41>"),
    "cut-apart": (lambda: byte_level(b"a.", b"a.b", whole=False), b"a."),
    # (Lookaheads are not looked at. This one never holds.)
    "no-witness": (lambda: byte_level(b"a.", pattern=r"\w+\.(?=a)(?!a)|\w+|\W"), b"a."),
    "literal-space": (lambda: also(("▁▁", -5.0, N), spec=rules(remove_extra_whitespaces=True)), "▁▁"),
    "whole-only": (lambda: byte_level(b"abc"), b"abc"),
    "equal-scores": (lambda: changed("in", score=-1.0), "in"),
    "odd-scores": (lambda: changed("in", score=float("inf")), "in"),
    "alike-after-normalizing": (
        lambda: also(("ſ", -9.0, N), spec=rules(charsmap=charsmap(("ſ", "s")))),
        "ſ",
    ),
    "alike-in-unicode": (lambda: also(("Å", -5.0, N), ("\u212b", -6.0, N)), "Å"),
    "looks-special": (lambda: also(("<a", -5.0, N), ("<a>", -6.0, N)), "<a>"),
    "user-defined-looks-special": (lambda: also(("<|im_start|>", 0, D)), "<|im_start|>"),
    "reserved": (lambda: also(("<|reserved_0|>", -5.0, N)), "<|reserved_0|>"),
    "looks-like-byte": (lambda: also(("<0x0a>", -5.0, N)), "<0x0a>"),
    "control-looks-like-text": (lambda: also(("ok", 0, C)), "ok"),
    "invisible": (lambda: also(("a\u200b", -5.0, N)), "a\u200b"),
    "replacement": (lambda: also(("\ufffd", -5.0, N)), "\ufffd"),
    "character-missing": (lambda: also(("aé", -5.0, N)), "aé"),
    "ascii-missing": (lambda: without("~"), None),
    "uneven-digits": (lambda: also(("12", -5.0, N)), "12"),
    "long-runs": (lambda: also(("-" * 32, 0, D)), "-" * 32),
    "special-ids": (lambda: recorded(bos_id=5), "<s>"),
    "special-type": (lambda: changed("<s>", type=D), "<s>"),
    "special-prefix": (lambda: also(("<a", 0, C), ("<a>", 0, C)), None),
    "no-eos": (lambda: without("<s>", "</s>"), None),
    "no-pad": (base, None),
    "gap": (lambda: replace(base(), added=((b"<far>", 1000),)), None),
    "loses-text": (lambda: rules(remove_extra_whitespaces=True), None),
    "no-byte-fallback": (lambda: unknown_of(base()), None),
    "odd-size": (base, None),
    "recorded-size": (lambda: recorded(vocab_size=32000), None),
    "no-dummy-prefix": (
        lambda: also(
            *((f"▁{a}{b}", -5.0, N) for a in "bcdfghjklm" for b in "aeiouyaeiouy"[:6]),
            *((f"▁{a}{b}{c}", -9.0, N) for a in "bcdf" for b in "aeiou" for c in "stnrl"),
            spec=rules(add_dummy_prefix=False),
        ),
        None,
    ),
    "squeezed-without-prefix": (
        lambda: rules(add_dummy_prefix=False, remove_extra_whitespaces=True),
        None,
    ),
}
"""A model with each fault, and a piece that the finding names."""


@cache
def lint_of_base() -> cpbpe.Lint:
    return cpbpe.Tokenizer.from_spec(base()).lint()


@pytest.mark.parametrize("code", FAULTS)
def test_faults_are_found(code: str) -> None:
    make, piece = FAULTS[code]
    tok = cpbpe.Tokenizer.from_spec(make())
    report = tok.lint()
    finding = report[code]
    assert finding.severity == CODES[code][0]
    if piece is not None:
        assert tok.vocab[piece] in finding.ids
    assert finding.message
    assert finding.remedy
    if code not in ("unused-unknown", "unused-bytes", "no-pad", "odd-size"):
        assert code not in lint_of_base()


def test_what_two_findings_about_special_pieces_name() -> None:
    """Each names the pieces that it is about."""
    spec = replace(changed("</s>", type=N), settings=cpbpe.Settings(trainer={"bos_id": 7}))
    tok = cpbpe.Tokenizer.from_spec(spec)
    report = tok.lint()
    assert [report[code].ids for code in ("special-ids", "special-type")] == [
        (tok.vocab["<s>"],),
        (tok.vocab["</s>"],),
    ]


def test_rules_may_change_any_letter() -> None:
    """Also those of ASCII in lower case."""
    more = [(text, -5.0 - id, N) for id, text in enumerate(["qa", "qb"])]
    report = cpbpe.Tokenizer.from_spec(also(*more, spec=rules(charsmap=charsmap(("a", "b"))))).lint()
    assert "'qa' becomes 'qb'" in report["alike-after-normalizing"].evidence


def test_a_long_number_after_a_space_is_not_uneven() -> None:
    """No number of four digits is one piece, so all are cut alike."""
    assert "uneven-digits" not in cpbpe.Tokenizer.from_spec(also(("▁2024", -5.0, N))).lint()


def test_all_codes_are_tried() -> None:
    elsewhere = {"not-loaded", "loss-unknown", "never-used", "hardly-used", "byte-share", "unknown-share"}
    elsewhere |= {"empty-corpus", "undertrained", "too-few-rows", "no-reference"}
    assert FAULTS.keys() | elsewhere == CODES.keys()
    assert len(FAULTS) > 20


def test_special_tokens_that_begin_like_others_are_counted() -> None:
    tok = cpbpe.Tokenizer.from_spec(base())
    for tokens, message in (
        (["<a", "<ab", "<ac", "<b"], "2 special tokens begin with"),
        (["<a", "<ab"], "1 special token begins with"),
    ):
        assert tok.with_special_tokens(tokens).lint()["special-prefix"].message.startswith(message)


def test_the_page_lists_all_codes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "inspecting.md").read_text(encoding="utf-8")
    rows = [row.split(" | ")[:2] for row in page.partition("### All codes")[2].split("\n") if "| `" in row]
    listed = [(code.strip("| `"), severity) for code, severity in rows]
    assert listed == [(code, kind.severity) for code, kind in CODES.items()]


def test_the_report_is_a_value() -> None:
    report = cpbpe.Tokenizer.from_spec(FAULTS["odd-scores"][0]()).lint()
    assert report.worst == "error"
    assert report.fails("error")
    assert report.fails("note")
    with pytest.raises(ValueError, match="severity is one of 'note', 'warning', 'error', not 'never'"):
        report.fails("never")
    assert [finding.severity for finding in report.findings] == sorted(
        (finding.severity for finding in report.findings), key=("error", "warning", "note").index
    )
    assert json.loads(report.to_json()) == report.to_dict()
    assert "errors" in repr(report) or "1 error," in repr(report)
    with pytest.raises(KeyError, match="nothing of the kind"):
        report["no-such-code"]


def test_a_denormalizer_that_cannot_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    from cpbpe.tokenizer import inspection

    def undecided(facts: object) -> None:
        raise cpbpe.ModelError("it cannot be told")

    monkeypatch.setattr(inspection, "losslessness_of", undecided)
    assert "loss-unknown" in cpbpe.Tokenizer.from_spec(base()).lint()


# --- With a corpus and with an embedding ------------------------------------------------------------


def test_a_corpus() -> None:
    tok = cpbpe.Tokenizer.from_spec(base())
    report = tok.lint(["the in the in", "on" * 9, "é" * 5])
    assert tok.vocab["er"] in report["never-used"].ids
    assert tok.vocab["in"] in report["hardly-used"].ids
    assert tok.vocab["▁the"] in report["hardly-used"].ids
    assert tok.vocab["on"] not in {*report["hardly-used"].ids, *report["never-used"].ids}
    assert report["byte-share"].severity == "warning"
    assert set(report["byte-share"].ids) == {tok.vocab["<0xC3>"], tok.vocab["<0xA9>"]}
    assert report["byte-share"].remedy == "train with a higher character_coverage"
    newlines = tok.lint(["a\nb\n\n"])["byte-share"].remedy
    assert newlines == "train with keep_newlines=True, so that newlines get pieces"
    assert (
        tok.lint(["\n" * 9 + "é"])["byte-share"].remedy == f"{newlines}, and with a higher character_coverage"
    )
    assert tok.lint(["\n" + "é" * 9])["byte-share"].remedy.startswith(
        "train with a higher character_coverage, "
    )
    assert "empty-corpus" in tok.lint([])
    assert "unknown-share" in cpbpe.Tokenizer.from_spec(unknown_of(base())).lint(["é"])


def test_a_path_is_not_a_corpus() -> None:
    tok = cpbpe.train(["low lower lowest"], vocab_size=270).tokenizer
    for path in ("c.txt", b"c.txt", Path("c.txt")):
        with pytest.raises(TypeError, match=r"^lint\(\) takes a list of texts, or an open file"):
            tok.lint(path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^lint\(\) takes str or bytes, not int"):
        tok.lint([1])  # type: ignore[list-item]


def test_rows_that_learned_nothing() -> None:
    """Rows of tokens that were never seen stay near each other; so does one that text can yield."""
    tok = cpbpe.Tokenizer.from_spec(base())
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(len(tok) + 60, 32)).astype(np.float32) + 2
    unused = [*tok.lint()["unused-bytes"].ids, *range(len(tok), len(rows))]
    glitch = tok.vocab["▁the"]
    constant = rng.normal(size=32)
    for id in [*unused, glitch, 0]:
        rows[id] = constant + rng.normal(scale=0.01, size=32)
    assert tok.lint(embeddings=rows)["undertrained"].ids == (glitch,)
    assert "too-few-rows" in tok.lint(embeddings=rows[:100])
    with pytest.raises(ValueError, match="a row for each id"):
        tok.lint(embeddings=rows[0])
    every = cpbpe.Tokenizer.from_spec(unknown_of(base()))
    assert "no-reference" in every.lint(embeddings=rows[: len(every)])


def test_real_models_are_fine() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(zoo.REAL[0]))
    report = tok.lint()
    assert report.worst == "note"
    assert report.pieces == 32000
    assert report.reachable == 32000 - 2 - 1 - 140
