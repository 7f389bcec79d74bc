"""Calls with pieces, and ids between bos and eos, against what follows from `align` and `decode_ids`."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbpe import Tokenizer
from cpbpe.text.utf8 import text_of
from tests.support import tiers
from tests.support.budget import quick
from tests.support.texts import broken, texts
from tests.support.tokenizers import pieces_of, tokenizer

MODELS = [
    "llama",
    "defaults",  # no byte fallback: unknown parts
    "unused-ambiguous",
    "user-defined-llama",
    "broken-pieces",  # pieces that are not UTF-8
    "nul",
    "unescaped",
    "inner-spaces",
    "charsmap-broken",
    "broken-pieces-no-fallback",
    "nested-user-defined",
    "denormalizer",
]
HARD: list[str | bytes] = [
    "",
    " ",
    "▁",
    "▁▁ ▁",
    "\0",
    "a\0b \0",
    "aaaa" * 300,
    "☃" * 70,
    "the ☃☃ old ☃",
    b"\xff",
    b"the \xe2\x96 \xf0\x9f old\xc3",
    "🦙 " * 1500,
    "the keeper of the old sea " * 400,
]
"""Empty, blank, NUL, runs of one character, unknown, not UTF-8, long."""


def check(tok: Tokenizer, text: str | bytes) -> None:
    """All calls with pieces, with and without options."""
    plain = tok.align(text)
    spelled = [text_of(piece) for piece in tok.facts.engine.align(text)[1]]
    assert tok.encode_pieces(text) == spelled == plain.pieces
    vocab = tok.vocab
    bos = [tok.id_to_piece(tok.bos_id)] if tok.bos_id is not None else []
    for add, reverse in [(False, True), (True, False), (True, True)]:
        options: dict[str, Any] = {"add_bos": add and bool(bos), "reverse": reverse}
        ids = plain.ids[::-1] if reverse else plain.ids
        pieces = spelled[::-1] if reverse else spelled
        front = [tok.bos_id] if options["add_bos"] else []
        assert tok.encode(text, **options) == [*front, *ids]
        assert tok.encode_array(text, **options).tolist() == [*front, *ids]
        assert tok.encode_arrays([text, "", text], **options).tolist() == [
            [*front, *ids],
            front,
            [*front, *ids],
        ]
        assert tok.encode_batch([text, "", text], **options)[1:] == [front, [*front, *ids]]
        assert tok.encode_pieces(text, **options) == [*(bos if front else []), *pieces]
        assert tok.count(text, **options) == len(ids) + len(front)
    normalized = tok.facts.engine.normalize(text)
    assert tok.normalize(text) == (text_of(normalized) if isinstance(text, str) else normalized)
    # Pieces that are UTF-8 decode as their ids do.
    known = [id for id in plain.ids if id != vocab.get("<unk>")]
    raw = [tok.facts.engine.piece(id) for id in known]
    if b"\0" not in raw and tok.unk_id not in known:
        assert tok.decode_pieces(raw) == tok.decode(known)
        assert tok.decode_batch([known, [], known]) == [tok.decode(known), "", tok.decode(known)]


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:3]))
def test_hard_texts(name: str, engine: str) -> None:
    for text in HARD:
        check(tokenizer(name, engine), text[:600] if engine == "reference" else text)


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:3]))
def test_generated_texts(name: str, engine: str) -> None:
    tok = tokenizer(name, engine)
    pieces = pieces_of(name)

    @quick(20, 10)
    @given(st.one_of(texts(pieces), broken(pieces)))
    def run(text: str | bytes) -> None:
        check(tok, text)

    run()


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:2]))
def test_pieces_may_be_str_or_bytes(name: str, engine: str) -> None:
    """Any mixture, in a list or not, is decoded as bytes are; others are refused as they were."""
    tok = tokenizer(name, engine)
    chance = random.Random(name)
    own = [text for text in pieces_of(name) if text]
    for _ in range(60):
        chosen = [chance.choice([*own, "no such piece", "▁", "▁▁", "", "\0", "☃", "▁☃"]) for _ in range(9)]
        expected = tok.decode_pieces(iter([piece.encode() for piece in chosen]))
        assert tok.decode_pieces(chosen) == expected
        mixed: list[str | bytes] = [piece.encode() if chance.random() < 0.5 else piece for piece in chosen]
        assert tok.decode_pieces(mixed) == tok.decode_pieces(tuple(mixed)) == expected
        odd: list[Any] = [bytearray(b"a"), *chosen]
        assert tok.decode_pieces(odd) == tok.decode_pieces(["a", *chosen])
    with pytest.raises(TypeError, match="takes str or bytes, not int"):
        tok.decode_pieces(["a", 5])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError):
        tok.decode_pieces(["a", "\ud800"])
    with pytest.raises(UnicodeEncodeError):
        tok.encode_pieces("\ud800")
    with pytest.raises(UnicodeEncodeError):
        tok.normalize("\ud800")


def test_options_that_are_equal_mean_the_same(engine: str) -> None:
    """A plan is kept for options; others that are equal to these get it, and nothing else does."""
    tok = tokenizer("llama", engine)
    expected = tok.encode("the old", add_bos=True)
    assert tok.encode("the old", add_bos=1) == expected  # type: ignore[arg-type]
    assert tok.encode("the old", add_bos=1.0) == expected  # type: ignore[arg-type]
    for wrong in ("yes", 2, None, [True]):
        with pytest.raises(TypeError, match="add_bos"):
            tok.encode("the old", add_bos=wrong)  # type: ignore[arg-type]
    allowed = {"<s>"}
    assert tok.encode("<s>the", allowed_special=allowed) == tok.encode("<s>the", allowed_special=("<s>",))
    plain = tok.encode("</s>")
    assert tok.encode("</s>", allowed_special=allowed) == plain
    allowed.add("</s>")
    assert tok.encode("</s>", allowed_special=allowed) == [tok.eos_id]
    with pytest.raises(TypeError, match="truncate"):
        tok.truncate("the old", 3, reverse=True)
    assert tok.encode("the old", reverse=True) == tok.encode("the old")[::-1]
    with pytest.raises(TypeError, match="truncate"):
        tok.truncate("the old", 3, reverse=True)
    assert tok.encode("the old", alpha=0.0, seed=3) == tok.encode("the old")
    assert tok.encode("the old", alpha=1.0) == tok.encode("the old", alpha=1.0) != tok.encode("the old")
