"""minbpe's `.model` files as a format of cpbpe, and the lecture's tokenizers on the core."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.compat.minbpe import BasicTokenizer, RegexTokenizer
from cpbpe.compat.minbpe.tokenizers import apply_merges
from cpbpe.model.formats import minbpe
from cpbpe.model.spec import SplitSpec
from cpbpe.reference.byte_level.patterns import cut
from tests.bytes.making import CLASSES, texts
from tests.bytes.models import OWN, given_texts, made, ranks, spec_of
from tests.support import corpus
from tests.support.budget import examples

LINES = "\n".join(corpus.lines(200))


def lecture(pattern: str | None = None, size: int = 330) -> RegexTokenizer:
    tokenizer = RegexTokenizer(pattern)
    tokenizer.train(LINES, size)
    return tokenizer


def book(tokenizer: RegexTokenizer, text: str) -> list[int]:
    """The ids of a text without the core."""
    chunks = cut(tokenizer.pattern, text)
    return [id for chunk in chunks for id in apply_merges(chunk.encode(), tokenizer.merges)]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tokenizer = lecture()
    tokenizer.register_special_tokens({"<|endoftext|>": 330, "<|far|>": 400})
    tokenizer.save(tmp_path / "lecture")
    return tmp_path / "lecture.model"


# --- The format -----------------------------------------------------------------------------------


def test_loading_and_writing_again(saved: Path, tmp_path: Path) -> None:
    tok = cpbpe.load(saved)
    assert repr(tok) == "<cpbpe.Tokenizer: 331 pieces, 1 added tokens, byte-level, pattern of its own>"
    assert (tok.eos_id, dict(tok.vocab.added_tokens)) == (330, {"<|far|>": 400})
    done = cpbpe.convert(saved, tmp_path / "again.model", to="minbpe", verify=["the cat"])
    assert (done.is_exact, [Path(name).name for name in done.files]) == (True, ["again.model", "again.vocab"])
    assert (tmp_path / "again.model").read_bytes() == saved.read_bytes()
    tokenizer = RegexTokenizer()
    tokenizer.load(tmp_path / "again.model")
    tokenizer.save(tmp_path / "theirs")
    assert (tmp_path / "theirs.vocab").read_bytes() == (tmp_path / "again.vocab").read_bytes()
    for text in [*given_texts(60), *texts(examples(200), CLASSES)]:
        assert tok.encode(text) == book(tokenizer, text)
    text = "the cat<|endoftext|>sat<|far|>"
    assert tok.encode(text, allowed_special="all") == tokenizer.encode(text, allowed_special="all")


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
def test_a_model_of_another_format(pattern: str, tmp_path: Path) -> None:
    spec = made(pattern)
    tok = cpbpe.Tokenizer.from_spec(spec)
    tok.save(tmp_path / "my.model")
    cpbpe.convert(tmp_path / "my.model", tmp_path / "lecture.model", to="minbpe")
    tokenizer = RegexTokenizer()
    tokenizer.load(tmp_path / "lecture.model")
    for text in given_texts(40):
        assert book(tokenizer, text) == tok.encode(text)
    again = cpbpe.load(tmp_path / "lecture.model")
    assert again.encode_batch(given_texts(40)) == tok.encode_batch(given_texts(40))
    assert again.spec.splitter == spec.splitter


def test_without_a_pattern(tmp_path: Path) -> None:
    tokenizer = BasicTokenizer()
    tokenizer.train(LINES[:3000], 300)
    tokenizer.save(tmp_path / "basic")
    tok = cpbpe.load(tmp_path / "basic.model")
    assert repr(tok).endswith("byte-level, no pattern>")
    for text in given_texts(40):
        assert tok.encode(text) == apply_merges(text.encode(), tokenizer.merges)


def test_what_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(
        cpbpe.ModelError, match=r"the ids 257 and 259 are both 'aaa', made of different pairs"
    ):
        cpbpe.Tokenizer.from_bytes(b"minbpe v1\n\n0\n97 97\n256 97\n97 98\n97 256\n")
    with pytest.raises(
        cpbpe.ModelError, match="does not begin with the line 'minbpe v1', but with 'minbpe v2'"
    ):
        cpbpe.Tokenizer.from_bytes(b"minbpe v2\n\n0\n")
    with pytest.raises(
        cpbpe.ModelError, match="line 4 of minbpe's file should be a new pair of ids below 256"
    ):
        cpbpe.Tokenizer.from_bytes(b"minbpe v1\n\n0\n97 300\n")
    with pytest.raises(cpbpe.ModelError, match="byte 10 of minbpe's file is not UTF-8"):
        cpbpe.Tokenizer.from_bytes(b"minbpe v1\n\xff\n0\n")
    doubled = "".join(f"{id} {id}\n" for id in [97, *range(256, 300)])
    with pytest.raises(cpbpe.ModelError, match="the piece 268 is 8192 bytes long"):
        cpbpe.Tokenizer.from_bytes(f"minbpe v1\n\n0\n{doubled}".encode())
    with pytest.raises(cpbpe.ConversionError, match="no pair makes of what its text becomes"):
        cpbpe.Tokenizer.from_bytes(b"minbpe v1\n\n0\n98 99\n97 98\n257 99\n")
    with pytest.raises(ValueError, match="pattern is for files that say neither"):
        cpbpe.load(saved, pattern="gpt2")
    with pytest.raises(ValueError, match=r"minbpe loads files whose names end in \.model"):
        cpbpe.convert(saved, tmp_path / "my.vocab", to="minbpe")


def with_control(text: str) -> cpbpe.ModelSpec:
    row = cpbpe.Piece(text.encode(), 0.0, cpbpe.PieceType.CONTROL)
    return replace(made(), pieces=cpbpe.Pieces.of([*made().pieces, row]))


def moved() -> cpbpe.ModelSpec:
    pieces = list(made().pieces)
    pieces[256], pieces[257] = pieces[257], pieces[256]
    return replace(made(), pieces=cpbpe.Pieces.of(pieces))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (lambda: spec_of(ranks(), OWN), "the bytes have the ids 0 to 255 in their order, and here the id"),
        (moved, "the merge number 1 makes '.*' with the id 257"),
        (lambda: with_control("<two words>"), "the special token '<two words>' cannot be saved"),
        (lambda: replace(made(), splitter=SplitSpec(" ")), "the pattern ' ' cannot be"),
        (
            lambda: spec_of({**{bytes([byte]): byte for byte in range(256)}, b"xyz": 256}, None),
            "a chunk that is a piece is taken whole, which minbpe does not do .for example in the text 'xyz'",
        ),
    ],
    ids=["ids of bytes", "ids of merges", "special", "pattern", "whole"],
)  # fmt: skip
def test_what_cannot_be_written(spec: Any, message: str) -> None:
    with pytest.raises(cpbpe.ConversionError, match=message):
        minbpe.write(spec())


# --- The lecture's tokenizers on the core ---------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", [None, r"\w+| ?\W", r"(a|b)+|[^ab]", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+|\\P{L}"]
)
def test_long_texts(pattern: str | None) -> None:
    """Also with characters that are letters only in a newer version of Unicode, for the package regex."""
    tokenizer = lecture(pattern, 300)
    newer = "".join(map(chr, [*range(0x10D40, 0x10D60), *range(0x1C89, 0x1C8B), *range(0xA7CB, 0xA7DD)]))
    for text in (LINES[:5000], LINES[:500] + newer, newer, LINES[:900] + "é𐀀ſ'ſ", "a" * 500, " \n" * 100):
        assert tokenizer.encode(text) == book(tokenizer, text)
        assert tokenizer.decode(tokenizer.encode(text)) == "".join(cut(tokenizer.pattern, text))


def test_what_was_edited_by_hand_is_followed() -> None:
    tokenizer, text = lecture(size=400), LINES[:3000]
    before = tokenizer.encode(text)
    pair = next(iter(tokenizer.merges))
    tokenizer.merges[pair] = 999  # in place: its length is the same
    tokenizer.vocab[999] = tokenizer.vocab[256]
    assert tokenizer.encode(text) == book(tokenizer, text) != before
    tokenizer.merges[pair] = 256
    assert tokenizer.encode(text) == before
    tokenizer.merges = dict(list(tokenizer.merges.items())[:50])
    assert tokenizer.encode(text) == book(tokenizer, text) != before
    tokenizer.pattern = r"\S+|\s+"
    assert tokenizer.encode(text) == book(tokenizer, text)
    tokenizer.merges[1, 2000] = 306  # its halves have no bytes
    assert tokenizer.encode(text) == book(tokenizer, text)


def test_two_ids_of_equal_bytes_are_left_to_the_book() -> None:
    tokenizer = BasicTokenizer()
    tokenizer.merges = {(97, 97): 256, (256, 97): 257, (97, 98): 258, (97, 256): 259}
    text = "aab aaab aaa" * 100
    assert tokenizer.encode(text) == apply_merges(text.encode(), tokenizer.merges)
    with pytest.raises(UnicodeEncodeError):
        tokenizer.encode("a\ud800" * 100)
