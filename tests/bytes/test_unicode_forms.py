"""Unicode normal forms: those of tokenizers, with both engines, in every call that takes text."""

import pickle
import random
import runpy
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import normalizers

import cpbpe
from cpbpe.engine.choice import make_engine
from cpbpe.engine.protocol import Engine
from cpbpe.engine.reference_engine import PythonEngine
from cpbpe.text import unicode_forms
from cpbpe.text.unicode_forms import FORMS, NOT_IN_FORM, combining_class, compositions, normal_form
from tests.bytes.models import OWN, given_texts, model
from tests.support.budget import SEED, examples

forms = pytest.mark.parametrize("form", FORMS)
THEIRS = {form: getattr(normalizers, form)() for form in FORMS}
JAMO = [*range(0x1100, 0x1200), 0xAC00, 0xAC01, 0xD788, 0xD7A3]
UNKNOWN = [0x32FF, 0x8D3, 0x1133B, 0x1DF6, 0x105C9, 0x11383, 0x11938, 0x1E130, 0x16D68, 0x10781, 0xA7F2]
"""Characters that are newer than Unicode 9, each of which has a class or is composed of others."""


def spec_of(form: str, pattern: str | None = "cl100k") -> cpbpe.ModelSpec:
    spec = model(pattern)
    return replace(spec, normalizer=replace(spec.normalizer, unicode_form=form))


@cache
def engines(form: str) -> tuple[Engine, PythonEngine]:
    return make_engine(spec_of(form)), PythonEngine(spec_of(form))


@cache
def interesting() -> tuple[list[int], list[int]]:
    """Characters that are composed of others, or of which others are; and marks, and others that follow."""
    pairs = compositions()
    every = [code for code in range(0x30000) if not 0xAC00 <= code < 0xE000]
    made = [code for code in every if unicodedata.decomposition(chr(code))]
    marks = [code for code in every if combining_class(chr(code))]
    marks += [ord(second) for _, second in pairs]
    return [*made, *(ord(first) for first, _ in pairs), *JAMO], [*marks, *range(0x1160, 0x1200)]


def random_texts(count: int, seed: int = SEED) -> Iterator[str]:
    rng = random.Random(seed)
    letters, marks = interesting()
    some = (letters, marks, marks, UNKNOWN, range(0x20, 0x7F), JAMO, range(0x10000, 0x110000), [0, 0xE9])
    for _ in range(count):
        yield "".join(chr(rng.choice(rng.choice(some))) for _ in range(rng.randint(1, 20)))


def by_reference(form: str, text: str) -> str:
    return "".join(placed.character for placed in normal_form(form, text))


# --- The forms ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_tables_of_the_core_are_those_of_the_reference() -> None:
    writer = runpy.run_path(f"{Path(__file__).parents[2]}/core/cpbpe/src/text/forms/tables.py")
    assert writer["FILE"].read_text(encoding="ascii") == writer["tables"]()


@pytest.mark.slow
@forms
def test_every_character(form: Any) -> None:
    """All at once, because a line end stays as it is and nothing passes it."""
    text = "\n".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    expected = THEIRS[form].normalize_str(text)
    assert engines(form)[0].normalize(text) == expected
    few = [line for line in text.split("\n") if not unicodedata.is_normalized(form, line)]
    assert [by_reference(form, line) for line in few] == [THEIRS[form].normalize_str(line) for line in few]


@pytest.mark.slow
@forms
def test_every_pair_that_may_be_composed(form: str) -> None:
    letters, marks = interesting()
    pairs = [chr(letter) + chr(mark) for letter in (0x61, 0xC5, 0x3B1, 0x1100, 0xAC00) for mark in marks]
    pairs += [first + second for first, second in compositions()]
    pairs += [f"{first}\u0334\u0301{second}" for first, second in compositions()]
    pairs += [chr(letter) + "\u0301\u0323\u0345" for letter in letters]
    pairs += [chr(one) + chr(other) for one, other in pairwise(sorted(marks))]
    text = "\n".join(pairs)
    expected = THEIRS[form].normalize_str(text)
    assert engines(form)[0].normalize(text) == expected
    assert by_reference(form, text) == expected


@forms
def test_random_texts(form: Any) -> None:
    core, reference = engines(form)
    known = unicodedata.unidata_version
    for text in random_texts(examples(100)):
        expected = THEIRS[form].normalize_str(text)
        assert core.normalize(text) == expected, ascii(text)
        assert by_reference(form, text) == expected, ascii(text)
        older = "".join(c for c in text if ord(c) not in UNKNOWN and ord(c) < 0x10000 and _is_old(c))
        assert core.normalize(older) == unicodedata.normalize(form, older), (known, ascii(older))
        data = text.encode()
        for given in (text, data, data[1:] + b"\xff" + data[:2]):
            assert core.origins(given) == reference.origins(given), ascii(given)
            assert core.align(given, False, True) == reference.align(given, False, True)
            assert core.encode(given) == reference.encode(given)
            assert core.count(given) == len(reference.encode(given))
            chance = (0.4, 3)
            assert core.align(given, False, True, chance) == reference.align(given, False, True, chance)
            assert core.encode(given, None, chance) == reference.encode(given, None, chance)
            for characters in (True, False):
                ours, others = (
                    engine.align_arrays([given, given], 1, characters) for engine in (core, reference)
                )
                assert [column.tolist() for column in ours[:3]] == [column.tolist() for column in others[:3]]


def _is_old(character: str) -> bool:
    """Whether Unicode 9 and this Python agree on a character."""
    return THEIRS["NFKD"].normalize_str(character) == unicodedata.normalize("NFKD", character) and (
        combining_class(character) == unicodedata.combining(character)
    )


@forms
def test_ordinary_texts(form: str) -> None:
    core, reference = engines(form)
    for text in given_texts(20):
        assert core.align(text, False, True) == reference.align(text, False, True)
        assert core.encode(text) == core.variant(raw=True).encode(THEIRS[form].normalize_str(text))


@pytest.mark.parametrize(
    ("form", "text", "normalized", "origins"),
    [
        ("NFC", "xe\u0301y", "xéy", [0, 1, 1, 4, 5]),
        ("NFC", "xéy", "xéy", [0, 1, 2, 3, 4]),
        ("NFD", "xéy", "xe\u0301y", [0, 1, 1, 1, 3, 4]),
        ("NFC", "q\u0323\u0307", "q\u0323\u0307", [0, 1, 2, 3, 4, 5]),
        ("NFC", "q\u0307\u0323", "q\u0323\u0307", [0, 1, 1, 1, 1, 5]),
        ("NFC", "a\u0327\u0301b", "á\u0327b", [0, 0, 0, 0, 5, 6]),
        ("NFC", "\u1100\u1161\u11a8", "각", [0, 0, 0, 9]),
        ("NFKC", "ﬁx", "fix", [0, 0, 3, 4]),
        ("NFC", "\u0301", "\u0301", [0, 1, 2]),
        ("NFC", "\0e\u0301\0", "\0é\0", [0, 1, 1, 4, 5]),
    ],
)
def test_where_each_byte_came_from(form: str, text: str, normalized: str, origins: list[int]) -> None:
    for engine in engines(form):
        assert engine.origins(text) == (normalized.encode(), origins)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["\u0301", "\u0301\u0327\u0334", "\u1161", "\u0b3e", "\ufdfa", "\u0344"])
@forms
def test_long_runs_take_no_more_than_linear_time(form: str, unit: str) -> None:
    core, reference = engines(form)
    text = "a" + unit * 1000
    assert reference.normalize(text) == core.normalize(text)
    long = "a" + unit * (20_000 if unit == "\ufdfa" else 200_000)
    begin = time.perf_counter()
    assert core.normalize(long) == THEIRS[form].normalize_str(long)
    core.align(long, False, True)
    assert time.perf_counter() - begin < 20


def test_a_long_run_that_arrives_in_parts() -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of("NFC"))
    stream, begin = tok.stream_encoder(), time.perf_counter()
    ids = stream.push("a")
    for _ in range(20_000):
        ids += stream.push("\u0301") + stream.push("\u0327")
    assert ids + stream.flush() == tok.encode("a" + "\u0301\u0327" * 20_000)
    assert time.perf_counter() - begin < 20


# --- Calls ----------------------------------------------------------------------------------------


@pytest.fixture(params=["core", "reference"])
def engine_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CPBPE_ENGINE", request.param)
    return request.param


def cuts(text: Any, size: int) -> list[Any]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.usefixtures("engine_name")
@forms
def test_streams(form: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of(form)).with_special_tokens(["<|x|>"])
    texts = [
        *random_texts(examples(12)),
        "e\u0301 the cate\u0301<|x|>\u0301 sat",
        "the cat\u0301",
        "",
        "각\u11a8",
    ]
    for text in texts:
        data = text.encode() + b"\xcc\xff\xcc"
        for given in (text, data):
            ids = tok.encode(given)
            some = tok.encode(given, allowed_special="all", prefix_space=True)
            for size in (1, 2, 3, 7):
                stream, special = (
                    tok.stream_encoder(),
                    tok.stream_encoder(allowed_special="all", prefix_space=True),
                )
                assert [id for part in cuts(given, size) for id in stream.push(part)] + stream.flush() == ids
                assert [
                    id for part in cuts(given, size) for id in special.push(part)
                ] + special.flush() == some


@pytest.mark.usefixtures("engine_name")
def test_a_stream_gives_what_is_certain() -> None:
    stream = cpbpe.Tokenizer.from_spec(spec_of("NFC")).stream_encoder()
    tok = cpbpe.Tokenizer.from_spec(model())
    assert stream.push("the cat sat ") == tok.encode("the cat sat")
    copy = stream.copy()
    assert stream.push("on the ") + stream.flush() == tok.encode(" on the ")
    assert copy.push("e") + copy.push("\u0301") + copy.flush() == tok.encode(" é")


@pytest.mark.usefixtures("engine_name")
@forms
def test_truncating_and_splitting(form: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of(form))
    many = " ".join(random_texts(10)) + "the cate\u0301 " * 20
    for text in [*random_texts(3), many, "a" + "\u0301\u0327" * 60]:
        ids = tok.encode(text)
        for limit in (7, 60):
            assert tok.count(tok.truncate(text, limit)) <= limit
            try:
                parts = tok.split(text, limit)
            except ValueError:  # one character becomes more ids than that
                assert limit == 7
                continue
            assert "".join(parts) == text
            assert all(tok.count(part) <= limit for part in parts)
        assert tok.truncate(text, len(ids)) == text


@forms
def test_threads(form: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of(form))
    text = "the cat sate\u0301 on the mat, 日本語 écrit " * 8000
    expected = tok.encode(text)
    assert tok.encode_array(text, threads=3).tolist() == expected
    rows = tok.encode_arrays([text, "x", text], threads=3)
    assert [row.tolist() for row in rows] == [expected, tok.encode("x"), expected]
    assert tok.encode_batch([text, "e\u0301"], threads=2) == [expected, tok.encode("e\u0301")]
    assert tok.count_batch([text, "e\u0301"], threads=2) == [len(expected), tok.count("e\u0301")]


@pytest.mark.usefixtures("engine_name")
def test_special_tokens_come_first() -> None:
    """Each part of a text between them is normalized by itself, as tokenizers does it."""
    plain = cpbpe.Tokenizer.from_spec(model())
    tok = cpbpe.Tokenizer.from_spec(spec_of("NFC")).with_special_tokens({"<|e|>": 800, "e\u0301": 801})
    assert tok.encode("a<|e|>\u0301x", allowed_special={"<|e|>"}) == [
        *plain.encode("a"), 800, *plain.encode("\u0301x"),
    ]  # fmt: skip
    assert tok.encode("e\u0301\u0301", allowed_special="all") == [801, *plain.encode("\u0301")]
    assert tok.encode("é", allowed_special="all") == plain.encode("é")
    assert tok.align("e\u0301e\u0301", allowed_special={"<|e|>"}).offsets[-1] == (2, 4)


@pytest.mark.usefixtures("engine_name")
def test_other_calls() -> None:
    tok, plain = cpbpe.Tokenizer.from_spec(spec_of("NFC")), cpbpe.Tokenizer.from_spec(model())
    text = "the cate\u0301 sat"
    assert tok.normalize(text) == "the caté sat"
    assert tok.normalize(text.encode() + b"\xff") == "the caté sat\ufffd".encode()
    assert tok.encode(text) == plain.encode("the caté sat")
    assert tok.decode(tok.encode(text)) == "the caté sat"
    assert tok.encode_pieces(text) == plain.encode_pieces("the caté sat")
    assert tok.encode_parts(["e", "\u0301"]) == [*plain.encode("e"), *plain.encode("\u0301")]
    assert tok.encode(text, prefix_space=True) == plain.encode(" the caté sat")
    assert tok.encode(text, reverse=True) == tok.encode(text)[::-1]
    encoding = tok.align("e\u0301 x")
    assert "".join(encoding.surfaces) == "e\u0301 x"  # type: ignore[arg-type]
    assert encoding.char_to_token(1) == encoding.char_to_token(0)
    assert tok != plain
    assert tok.fingerprint != plain.fingerprint
    assert pickle.loads(pickle.dumps(tok)) == tok
    assert repr(tok) == "<cpbpe.Tokenizer: 701 pieces, byte-level, NFC, pattern cl100k>"


@forms
def test_what_is_lost(form: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of(form))
    (loss,) = tok.is_lossless().reasons
    assert form in loss.reason
    assert tok.decode(tok.encode(loss.example)) == loss.becomes != loss.example
    assert loss.example == NOT_IN_FORM[form]
    seen = tok.inspect()
    assert (seen.normalizer.unicode_form, seen.lossless) == (form, False)
    assert seen.to_dict()["unicode_form"] == form


# --- Files and values -----------------------------------------------------------------------------


@pytest.mark.usefixtures("engine_name")
@forms
def test_files(form: str, tmp_path: Path) -> None:
    for pattern in ("qwen2", OWN, None):
        tok = cpbpe.Tokenizer.from_spec(spec_of(form, pattern))
        tok.save(tmp_path / "my.model")
        again = cpbpe.load(tmp_path / "my.model")
        assert again == tok
        assert again.spec == tok.spec
        assert again.spec.normalizer.unicode_form == form
        assert again.encode("e\u0301") == tok.encode("e\u0301")
    with pytest.raises(cpbpe.ConversionError, match=f"the Unicode normal form {form}") as error:
        tok.save(tmp_path / "my.tiktoken")
    (difference,) = (one for one in error.value.differences if form in one[0])
    assert difference[1] == NOT_IN_FORM[form]


@pytest.mark.usefixtures("engine_name")
def test_invalid_models() -> None:
    with pytest.raises(
        cpbpe.ModelError, match="unicode_form='nfc' is none of the Unicode normal forms, NFC, NFD"
    ):
        cpbpe.Tokenizer.from_spec(spec_of("nfc"))
    pieces = cpbpe.Pieces.of([cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN), cpbpe.Piece(b"a")])
    rules = cpbpe.NormalizerSpec(unicode_form="NFC")
    with pytest.raises(cpbpe.ModelError, match="unicode_form='NFC' is for byte-level models"):
        cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(pieces, rules))
    with pytest.raises(cpbpe.ModelError, match="is for the normalizer, not for the denormalizer"):
        cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(pieces, denormalizer=rules))


@pytest.mark.usefixtures("engine_name")
def test_a_file_with_a_form_that_there_is_not() -> None:
    data = cpbpe.Tokenizer.from_spec(spec_of("NFC")).to_bytes()
    with pytest.raises(cpbpe.ModelError, match="unicode_form='NFX' is none of"):
        cpbpe.Tokenizer.from_bytes(data.replace(b"\x03NFC", b"\x03NFX"))
    pieces = cpbpe.Pieces.of([cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN), cpbpe.Piece(b"a")])
    other = cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(pieces)).to_bytes()
    with pytest.raises(cpbpe.ModelError, match="is for byte-level models"):
        cpbpe.Tokenizer.from_bytes(other + b"\xc2\xae\x14\x03NFC")


def test_every_known_character_is_in_order() -> None:
    firsts, lasts = unicode_forms.known_ranges()
    assert all(first <= last for first, last in zip(firsts, lasts, strict=True))
    assert all(last < first for last, first in zip(lasts, firsts[1:], strict=False))
