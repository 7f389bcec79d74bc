"""Vocabularies in files, GPT-2's alphabet, and pairs recovered from ranks."""

import json
from pathlib import Path

import pytest
from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
from tokenizers import pre_tokenizers

from cpbpe.errors import ModelError
from cpbpe.reference.byte_level import (
    BYTE_ORDER,
    PATTERNS,
    read_gpt2,
    read_ranks,
    recover_merges,
    write_ranks,
)
from cpbpe.reference.byte_level.encoding import BYTES, ByteLevel
from cpbpe.reference.merging import merge
from cpbpe.text.utf8 import LETTERS, from_letters, to_letters
from tests.bytes.making import decoded, texts
from tests.support import wheels
from tests.support.budget import examples

PLAIN = {byte: rank for rank, byte in enumerate(BYTES)}


def test_letters_are_those_of_tokenizers() -> None:
    assert sorted(LETTERS.values()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    step = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in ["".join(map(chr, range(256))), "né\n\t 你\u0100\u3000😀"]:
        assert to_letters(text.encode()) == step.pre_tokenize_str(text)[0][0]
        assert from_letters(to_letters(text.encode())) == text.encode()
    assert all(from_letters(LETTERS[byte]) == bytes([byte]) for byte in range(256))
    with pytest.raises(ModelError, match="'a b' has the character ' ', which stands for no byte"):
        from_letters("a b")


def test_ranks_are_read_and_written() -> None:
    ranks = {bytes([byte]): rank for rank, byte in enumerate(BYTE_ORDER)} | {b" the": 256, b"\xe4\xbd": 260}
    file = write_ranks(ranks)
    assert read_ranks(file) == ranks
    assert read_ranks(b"\n" + file.replace(b"\n", b"\r\n\r\n", 1) + b"\n\n") == ranks
    assert file.startswith(b"IQ== 0\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"IQ==", r"line 2 is not a piece in Base64 and its rank: b'IQ=='"),
        (b"IQ== 1 2", "line 2 is not"),
        (b"I_== 1", "line 2 is not"),
        (b"IQ== one", "line 2 is not"),
        (b"YQ== 3", r"line 2 gives b'a' a second rank, 3 after 0"),
    ],
)
def test_bad_ranks(line: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_ranks(b"YQ== 0\n" + line + b"\n")


def gpt2_files() -> tuple[dict[str, int], list[str]]:
    ids = {LETTERS[byte]: id for id, byte in enumerate(BYTE_ORDER)} | {"th": 256, "the": 257, "<|e|>": 258}
    return ids, ["#version: 0.2", "t h", "th e", ""]


def read(ids: dict[str, int], lines: list[str]) -> tuple[dict[bytes, int], dict[str, int]]:
    return read_gpt2(json.dumps(ids).encode(), "\n".join(lines).encode())


def test_gpt2_files() -> None:
    ids, lines = gpt2_files()
    ranks, special = read(ids, lines)
    assert (ranks[b"!"], ranks[b"the"], special, len(ranks)) == (0, 257, {"<|e|>": 258}, 258)
    with pytest.raises(ModelError, match=r"no id for 'Ġ', the letter of the byte 32"):
        read({letter: id for letter, id in ids.items() if letter != "Ġ"}, lines)
    with pytest.raises(ModelError, match=r"line 4 of vocab.bpe makes 'xy', which has no id of its own"):
        read(ids, [*lines[:3], "x y"])
    with pytest.raises(
        ModelError, match=r"line 3 of vocab.bpe makes 'th', which has the id 256, but comes after"
    ):
        read(ids, [lines[0], "th e", "t h"])


@pytest.mark.slow
def test_gpt2_files_are_read_as_tiktoken_reads_them(tmp_path: Path) -> None:
    encoder, merges = (str(wheels.file(name, tmp_path)) for name in ("encoder.json", "vocab.bpe"))
    ranks, special = read_gpt2(wheels.content("encoder.json"), wheels.content("vocab.bpe"))
    assert ranks == data_gym_to_mergeable_bpe_ranks(merges, encoder)
    assert special == {"<|endoftext|>": 50256}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k", "o200k", "p50k", "llama3", "qwen2"])
def test_rank_files_are_read_as_tiktoken_reads_them(name: str, tmp_path: Path) -> None:
    ranks = read_ranks(wheels.content(name))
    assert ranks == load_tiktoken_bpe(str(wheels.file(name, tmp_path)))
    assert read_ranks(write_ranks(ranks)) == ranks
    order = [piece[0] for piece in sorted(ranks, key=ranks.__getitem__)[:256]]
    assert tuple(order) == BYTE_ORDER  # OpenAI's order of bytes, to this day


# --- Pairs ----------------------------------------------------------------------------------------


def test_merges_are_recovered() -> None:
    ranks = PLAIN | {b"aa": 256, b"aaa": 257, b"aaaa": 258, b"ba": 259, b"baa": 260}
    merges, unreachable = recover_merges(ranks)
    # When its turn comes, `aaaa` is `aa` + `aa`; that `aaa` is a piece, too, does not matter.
    assert list(merges) == [(b"a", b"a"), (b"aa", b"a"), (b"aa", b"aa"), (b"b", b"a"), (b"b", b"aa")]
    assert unreachable == []
    assert recover_merges(PLAIN | {b"abcd": 256, b"ab": 257})[1] == [b"abcd"]
    assert recover_merges(PLAIN) == ({}, [])


COUNTS = [("tekken", 129_816), ("cl100k", 100_000), ("gpt2", 50_000)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "merges"), COUNTS)
def test_published_vocabularies_merge_alike_by_pairs(name: str, merges: int) -> None:
    """Merging by the recovered pairs gives the ids that merging by the joined text gives."""
    if name == "gpt2":
        ranks = read_gpt2(wheels.content("encoder.json"), wheels.content("vocab.bpe"))[0]
    else:
        ranks = wheels.tekken()[0] if name == "tekken" else read_ranks(wheels.content(name))
    pairs, added = recover_merges(ranks)
    assert (len(pairs), added) == (merges, [])
    if name == "gpt2":  # whose pairs are known
        lines = wheels.content("vocab.bpe").decode().split("\n")[1:-1]
        assert list(pairs) == [tuple(map(from_letters, line.split(" "))) for line in lines]
    tok = ByteLevel(ranks, PATTERNS["cl100k"], whole=False)

    def joined(left: bytes, right: bytes) -> tuple[int, bytes] | None:
        rank = pairs.get((left, right))
        return None if rank is None else (rank, left + right)

    for text in texts(examples(1000), decoded(list(ranks))):
        symbols = [
            symbol
            for chunk in tok.chunks(text)
            for symbol in merge((BYTES[b] for b in chunk.encode()), joined)
        ]
        assert [ranks[symbol] for symbol in symbols] == tok.encode(text)


@pytest.mark.slow
def test_pieces_that_merging_does_not_make_are_taken_whole() -> None:
    ranks = read_ranks(wheels.content("llama3"))
    merges, added = recover_merges(ranks)
    assert (len(merges), len(added)) == (127_066, 678)
    with_it, without = (ByteLevel(ranks, None, whole=whole) for whole in (True, False))
    assert all(with_it.encode_chunk(piece) == (ranks[piece],) for piece in added)
    assert sum(len(without.encode_chunk(piece)) > 1 for piece in added) == 588
