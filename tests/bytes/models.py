"""Byte-level models to test with: small ones, and what makes one of ranks."""

import random
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import cpbpe
from cpbpe.model.spec import SplitSpec
from cpbpe.reference.byte_level.patterns import cut
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import NEVER_IN_UTF8

AS_IT_IS = cpbpe.NormalizerSpec("identity", b"", False, False, False)
OWN = r"\w+"
"""A pattern of nobody, which leaves something out."""
WORDS = "the cat sat on the mat, 日本語 écrit la llama 🦙 \0 don't IF x:\n\n    y = 42\r\n".encode()


def spec_of(
    ranks: Mapping[bytes, int], pattern: str | None, whole: bool = True, name: str = ""
) -> cpbpe.ModelSpec:
    """The model that has these ranks, which have no gaps."""
    pieces = [cpbpe.Piece(text, float(-rank)) for text, rank in sorted(ranks.items(), key=lambda row: row[1])]
    return cpbpe.ModelSpec(
        cpbpe.Pieces.of([*pieces, cpbpe.Piece(b"<|end|>", 0, cpbpe.PieceType.CONTROL)]),
        AS_IT_IS,
        special_pieces=(b"<unk>", b"<s>", b"<|end|>", b"<pad>"),
        alphabet="bytes",
        splitter=None if pattern is None else SplitSpec(pattern, name),
        whole=whole,
    )


@cache
def ranks(seed: int = 1) -> dict[bytes, int]:
    """Ranks of all bytes, in some order, and of parts of a few words, some of which no merges make."""
    rng = random.Random(seed)
    pieces = [bytes([byte]) for byte in range(256)]
    rng.shuffle(pieces)
    known = set(pieces)
    while len(pieces) < 700:
        if rng.random() < 0.6:
            begin = rng.randrange(len(WORDS))
            piece = WORDS[begin : begin + rng.randint(2, 7)]
        else:
            piece = rng.choice(pieces) + rng.choice(pieces)
        if len(piece) < 30 and piece not in known:
            known.add(piece)
            pieces.append(piece)
    return {piece: rank for rank, piece in enumerate(pieces)}


@cache
def model(pattern: str | None = "cl100k", whole: bool = True) -> cpbpe.ModelSpec:
    """A small model; the pattern by its name, if it has one."""
    if pattern is not None and pattern in PATTERNS:
        return spec_of(ranks(), PATTERNS[pattern], whole, pattern)
    return spec_of(ranks(), pattern, whole)


@cache
def lacking() -> cpbpe.ModelSpec:
    """A small model without the bytes that no text in UTF-8 has, as some published ones are."""
    known = [piece for piece in ranks() if not NEVER_IN_UTF8.intersection(piece)]
    return spec_of({piece: rank for rank, piece in enumerate(known)}, PATTERNS["llama3"], True, "llama3")


@cache
def made(pattern: str = "gpt2", count: int = 200) -> cpbpe.ModelSpec:
    """A small model whose pieces are all made by merges, as training gives it; bytes in their order."""
    pieces: list[bytes] = [bytes([byte]) for byte in range(256)]
    rng = random.Random(3)
    chunks = [[bytes([byte]) for byte in chunk.encode()] for chunk in cut(PATTERNS[pattern], WORDS.decode())]
    while len(pieces) < 256 + count:
        pairs = sorted({pair for chunk in chunks for pair in pairwise(chunk)})
        new = [pair for pair in pairs if b"".join(pair) not in pieces]
        if not new:
            break
        pair = rng.choice(new)
        pieces.append(b"".join(pair))
        for chunk in chunks:
            at = 0
            while at + 1 < len(chunk):
                if tuple(chunk[at : at + 2]) == pair:
                    chunk[at : at + 2] = [pieces[-1]]
                at += 1
    ranks = {piece: rank for rank, piece in enumerate(pieces)}
    return spec_of(ranks, PATTERNS[pattern], whole=False, name=pattern)


def given_texts(count: int, seed: int = 7) -> list[str]:
    """Texts of parts of pieces, of whole ones, and of what they are cut at."""
    rng = random.Random(seed)
    parts = [
        *WORDS.decode().split(" "),
        " ",
        "  ",
        "\n",
        "\t",
        "é",
        "日",
        "🦙",
        "'s",
        "1234",
        "A",
        "x",
        "<|end|>",
        "▁",
    ]
    texts = ["".join(rng.choices(parts, k=rng.randint(0, 30))) for _ in range(count)]
    return [*texts, "", "\0", "a" * 300, "日本語" * 80, " " * 100, "the cat " * 700]
