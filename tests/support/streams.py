"""Pushing texts and ids through streams in parts, and the models that streams are tried on."""

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import cpbpe
from cpbpe import PieceType
from cpbpe.text.utf8 import repair
from tests.support import zoo
from tests.support.tokenizers import with_gaps
from tests.support.zoo import DENORMALIZERS


def _user_defined_and_rules(proto: zoo.Proto) -> None:
    """User-defined pieces that rules, or the removal of spaces, would change if nobody saw them."""
    zoo.add(proto, ["\ufb01x", "a  b", "x \ufb01", "= =", "   ", "e\u0301e"], zoo.Piece.USER_DEFINED)


def _named_like_text(surface: str) -> Callable[[zoo.Proto], None]:
    """Pieces that stand for no text, and whose names begin with a space."""

    def edit(proto: zoo.Proto) -> None:
        proto.pieces[0].piece = "▁unk".encode()
        proto.trainer_spec.unk_piece = "▁unk".encode()
        proto.trainer_spec.unk_surface = surface.encode()
        zoo.add(proto, ["▁control"], zoo.Piece.CONTROL)

    return edit


EDITED: dict[str, tuple[str, Callable[[zoo.Proto], None]]] = {
    "user-defined-and-rules": ("defaults", _user_defined_and_rules),
    "user-defined-and-rules-keep-spaces": ("tsv-keep-spaces", _user_defined_and_rules),
    "named-like-text": ("llama", _named_like_text("surface")),
    "named-like-text-empty": ("llama", _named_like_text("")),
    "named-like-text-squeeze": ("nfkc", _named_like_text("")),
}


NAMES = [*zoo.NAMES, *EDITED]
DECODABLE = [name for name in NAMES if name not in DENORMALIZERS]


@cache
def load(name: str, engine: str) -> cpbpe.Tokenizer:
    """A model with three added tokens, and ids between them that are not in use."""
    if name in EDITED:
        base, edit = EDITED[name]
        proto = zoo.parse(zoo.model(base))
        edit(proto)
        data = proto.SerializeToString()
    else:
        data = zoo.model(name)
    return with_gaps(data, engine)


@cache
def pieces_of(tok: cpbpe.Tokenizer) -> list[str]:
    return [tok.id_to_piece(id) for id in range(len(tok) - 5)]


@cache
def kinds_of_ids(tok: cpbpe.Tokenizer) -> list[list[int]]:
    """All ids; those of the first pieces; unusual ones; unusual ones whose neighbours matter."""
    size = len(tok) - 5
    added = [size, size + 3, size + 4]
    low = list(range(min(size, 300)))
    types = (PieceType.BYTE, PieceType.CONTROL, PieceType.UNKNOWN)
    odd = [id for id in range(size) if tok.vocab.piece_type(id) in types]
    # Bytes that make characters, often; and what may stand between them.
    table = tok.vocab.token_bytes()
    few = [id for id in odd if tok.vocab.piece_type(id) != PieceType.BYTE or table[id] in FEW]
    broken = [id for id, data in enumerate(table) if repair(data) != data and len(data) > 1]
    spaced = [id for id, data in enumerate(table) if data.startswith(b" ")][:4]
    return [[*range(size), *added * 20], low + added * 5, odd + added, few + broken + spaced + added]


FEW = [bytes([byte]) for byte in (0xC3, 0xE2, 0x96, 0x81, 0x81, 0xA9)]


NEXT = [[], *([a, *rest] for a in (0x80, 0x90, 0x9F, 0xA0, 0xBE) for rest in ([], [0x80], [0x80, 0x80]))]


def cut(rng: random.Random, whole: Any) -> Iterator[Any]:
    """The whole in parts of random size, some of them empty."""
    at = 0
    while at < len(whole):
        size = rng.choice([0, 1, 1, 1, 2, 3, 8, 40])
        yield whole[at : at + size]
        at += size


def decoded(tok: cpbpe.Tokenizer, rng: random.Random, ids: list[int], **options: Any) -> str:
    """What a stream gives for ids, pushed one at a time or some at a time."""
    stream = tok.stream_decoder(**options)
    parts = [stream.push(part[0] if len(part) == 1 else part) for part in cut(rng, ids)]
    return "".join(parts) + stream.flush()


def encoded(
    tok: cpbpe.Tokenizer, rng: random.Random, text: str | bytes, prefix_space: bool | None = None
) -> list[int]:
    stream = tok.stream_encoder(prefix_space=prefix_space)
    return [id for part in cut(rng, text) for id in stream.push(part)] + stream.flush()
