"""Which pieces text can yield: against all short texts, against a search, and with every witness encoded."""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

import cpbpe
from cpbpe.engine.choice import make_engine
from cpbpe.engine.reference_engine import PythonEngine
from cpbpe.lint.findings import Reach
from cpbpe.lint.reach import witnesses_of
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.text.charsmap_build import charsmap_from_rules
from tests.bytes import models as byte_models
from tests.support import corpus, zoo
from tests.support.budget import MUCH, SEED, examples

LETTERS = "ab ▁"
HOSTILE = ("charsmap-broken", "broken-pieces", "nested-user-defined", "charsmap-long")
"""Models with rules or pieces that take characters apart or begin alike: there, some pieces are undecided."""


NAMES = [
    *(zoo.REAL[0], "llama", "user-defined", "suffix", "unused-ambiguous", "orphans", "deep-unused"),
    *("charsmap-spaces", "charsmap-broken", "control-characters"),
]
MODELS = pytest.mark.parametrize("name", zoo.NAMES if "CPBPE_EXAMPLES" in os.environ else NAMES)
"""Models with features that matter here; all of them, if many examples are asked for."""


def reach(spec: ModelSpec) -> Reach:
    return witnesses_of(spec, make_engine(spec), make_engine).reach()


def unreachable(found: Reach) -> set[int]:
    return {id for id, reason in found.reasons.items() if reason.decided}


# --- All texts of tiny models ---------------------------------------------------------------------


def tiny(rng: random.Random) -> ModelSpec:
    """A model of a few letters, with pieces, types, rules and settings at random."""
    texts = {"".join(rng.choices("aab▁", k=rng.randint(1, 4))) for _ in range(rng.randint(3, 14))}
    types = [PieceType.NORMAL] * 8 + [PieceType.UNUSED, PieceType.USER_DEFINED, PieceType.CONTROL]
    pieces = [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    for text in sorted(texts):
        pieces.append(Piece(text.encode(), -float(rng.randint(0, 8)), rng.choice(types)))
    byte_fallback = rng.random() < 0.4
    if byte_fallback:
        pieces += [Piece(b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256)]
    rules = {}
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        key = "".join(rng.choices(LETTERS, k=rng.randint(1, 2)))
        value = "".join(rng.choices(LETTERS, k=rng.randint(0, 3)))
        if value != key:
            rules[key] = value
    flags = [rng.random() < 0.6 for _ in range(4)]
    normalizer = NormalizerSpec(
        "tiny",
        charsmap_from_rules(sorted(rules.items())) if rules else b"",
        add_dummy_prefix=flags[0],
        remove_extra_whitespaces=flags[1],
        escape_whitespaces=flags[2] or flags[3],
        suffix=rng.random() < 0.2,
    )
    return ModelSpec(Pieces.of(pieces), normalizer, byte_fallback=byte_fallback)


def short_texts(length: int) -> list[str | bytes]:
    letters = LETTERS + "c"
    return ["".join(text) for size in range(1, length + 1) for text in product(letters, repeat=size)]


@pytest.mark.parametrize("part", range(2))
def test_all_short_texts(part: int) -> None:
    """What is ruled out does not come about, and all else does; next to nothing stays undecided."""
    rng = random.Random(SEED * 1000 + part)
    every = short_texts(5)
    undecided = total = 0
    for _ in range(max(examples(40) // 2, 1)):
        spec = tiny(rng)
        engine = make_engine(spec)
        found = reach(spec)
        made = set(engine.encode_arrays(every, 1)[0].tolist())
        assert not made & unreachable(found), spec
        for id, text in found.texts.items():
            assert id in engine.encode(text), (spec, id, text)
        missed = {id for id, reason in found.reasons.items() if not reason.decided}
        total += len(spec.pieces)
        undecided += len(missed)
        assert made <= found.texts.keys() | missed, spec
    assert undecided * 100 <= total


# --- Real and edited models -----------------------------------------------------------------------


def searched(tok: cpbpe.Tokenizer, number: int) -> Iterator[str]:
    """Texts in which rare pieces might come about: pieces and parts of pieces next to each other, prose."""
    rng = random.Random(SEED)
    pieces = [text.decode(errors="replace") for text in tok.facts.spec.pieces.texts]
    prose = corpus.lines(100)
    for _ in range(number):
        text = ""
        for _ in range(rng.randint(1, 4)):
            piece = rng.choice(pieces)
            how = rng.random()
            if how < 0.3:
                piece = piece[: rng.randint(1, len(piece))]
            elif how < 0.4:
                piece = piece[rng.randrange(len(piece)) :]
            elif how < 0.45:
                piece = rng.choice(prose)[:30]
            text += piece.replace("▁", " ") if rng.random() < 0.8 else piece
        yield text


@MODELS
def test_no_text_yields_what_is_unreachable(name: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    found = reach(tok.facts.spec)
    bad = unreachable(found)
    pieces = [text.decode(errors="replace") for text in tok.facts.spec.pieces.texts]
    hard = [pieces[id] for id in bad if tok.facts.spec.pieces.types[id] != PieceType.BYTE][:200]
    around = [
        left + text + right for text in hard for left in ("", "a", " ", "-") for right in ("", "a", " ")
    ]
    texts = [*pieces, *around, *(text.replace("▁", " ") for text in around), *searched(tok, examples(2000))]
    made = set(tok.encode_arrays(texts, threads=1).ids.tolist())
    assert not made & bad, sorted(made & bad)
    missed = {id for id in made - found.texts.keys() if tok.vocab.piece_type(id) != PieceType.CONTROL}
    undecided = {id for id, reason in found.reasons.items() if not reason.decided}
    assert missed <= (undecided if name.startswith(HOSTILE) else set()), sorted(missed)


@MODELS
def test_every_witness_works_in_both_engines(name: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    found = reach(tok.facts.spec)
    ids = sorted(found.texts)
    assert {*ids, *found.reasons} >= {
        id for id, type in enumerate(tok.facts.spec.pieces.types) if type != PieceType.CONTROL
    }
    rows = tok.encode_batch([found.texts[id] for id in ids], threads=1)
    assert all(id in row for id, row in zip(ids, rows, strict=True))
    reference = PythonEngine(tok.facts.spec)
    for id in random.Random(SEED).sample(ids, min(len(ids), examples(50))):
        assert id in reference.encode(found.texts[id]), found.texts[id]
    if name not in HOSTILE and not name.startswith(HOSTILE):
        assert all(reason.decided for reason in found.reasons.values())


def test_the_work_for_a_witness_is_kept() -> None:
    one, *others = (cpbpe.Tokenizer.from_bytes(zoo.model(zoo.REAL[0])) for _ in range(9))
    assert one.witness(700)
    least = []
    for models in ([one] * 8, others):
        seconds = []
        for id, tok in enumerate(models, 701):
            begun = time.process_time()
            assert tok.witness(id)
            seconds.append(time.process_time() - begun)
        least.append(min(seconds))
    assert 2 * least[0] < least[1], least


@pytest.mark.parametrize("pattern", ["cl100k", "gpt2", None])
@pytest.mark.parametrize("whole", [True, False])
def test_byte_level(pattern: str | None, whole: bool) -> None:
    spec = byte_models.model(pattern, whole)
    tok = cpbpe.Tokenizer.from_spec(spec)
    found = reach(spec)
    for id, text in found.texts.items():
        assert id in tok.encode(text), (id, text)
    texts = [text.decode(errors="replace") for text in spec.pieces.texts]
    pairs = [one + other for one in texts[: 300 if MUCH else 60 : 3] for other in texts[::7]]
    made = set(tok.encode_arrays([*texts, *pairs, *searched(tok, examples(2000))], threads=1).ids.tolist())
    assert not made & unreachable(found)
    assert made <= found.texts.keys()
    assert {found.reasons[id].code for id in found.reasons} <= {
        *("not-utf8", "blocked", "orphan", "completed", "cut-apart")
    }


def test_a_piece_with_few_completions_and_only_inside_a_word() -> None:
    """After the dummy prefix, "b" merges with it; and most characters that begin with the byte are pieces."""
    letters = [bytes([byte]) for byte in range(256)]
    longer = [b"\xc3" + bytes([byte]) for byte in range(0x88, 0xC0)]
    pieces = [*letters, *longer, b" b", b"b\xc3"]
    spec = byte_models.spec_of({piece: rank for rank, piece in enumerate(pieces)}, None, whole=False)
    found = reach(replace(spec, normalizer=replace(spec.normalizer, add_dummy_prefix=True)))
    assert found.texts[len(pieces) - 1] == "abÀ"


# --- One piece ------------------------------------------------------------------------------------


def test_the_witness_is_short() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    every = short_texts(3)
    letters = {id: text for text in reversed(every) for id in tok.encode(text)}
    for id, text in letters.items():
        short = tok.witness(id)
        assert short is not None
        assert id in tok.encode(short)
        if tok.vocab.piece_type(id) == PieceType.NORMAL:
            assert len(short) <= len(text)
    assert tok.witness("<s>") is None
    assert tok.witness("<0xFF>") is None
    added = tok.with_special_tokens(["<|x|>"])
    assert added.witness("<|x|>") is None
    with pytest.raises(KeyError, match="not in the vocabulary"):
        tok.witness("no such piece")
    with pytest.raises(IndexError):
        tok.witness(10**6)


def test_sources_of_rewritten_text() -> None:
    """A piece that only another spelling becomes, and one that nothing becomes."""
    rules = [("x", "yy"), ("y", ""), ("ab", "c"), ("q", "a")]
    pieces = [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    pieces += [
        Piece(text.encode(), -rank) for rank, text in enumerate(["yy", "y", "ab", "xz", "a", "b", "c"])
    ]
    spec = ModelSpec(
        Pieces.of(pieces), NormalizerSpec("", charsmap_from_rules(rules), add_dummy_prefix=False)
    )
    found = reach(spec)
    tok = cpbpe.Tokenizer.from_spec(spec)
    assert found.texts[1] in ("x", "xyy")
    assert found.texts[3] in ("qb", "ayb")
    assert {id: reason.code for id, reason in found.reasons.items()} == {2: "blocked", 4: "orphan"} or (
        2 not in found.texts and 4 not in found.texts
    )
    assert 1 in tok.encode(tok.witness("yy") or "")
