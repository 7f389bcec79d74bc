"""From what training found to a model file: which piece gets which id and score, and what the file records.

The counterpart of `cpbpe.model.formats.sentencepiece`, which reads such files. Byte for byte what sentencepiece 0.2.3 writes. A
model of any smaller vocabulary can be built of the same findings, because merges are found best first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cpbpe import lazy as late
from cpbpe.engine.training import Learned
from cpbpe.errors import TrainingError


@dataclass(frozen=True)
class Built:
    """A model file, and what it is made of."""

    data: bytes
    """The file."""
    pieces: tuple[bytes, ...]
    """All pieces; the index is the id."""
    scores: tuple[float, ...]
    """The score of each."""
    merges: int
    """How many of the pieces are merges."""
    characters: tuple[str, ...]
    """Those that are characters, in order."""

    @property
    def size(self) -> int:
        """How many pieces there are: fewer than were asked for, when the corpus has too little."""
        return len(self.pieces)


def build(
    learned: Learned,
    *,
    vocab_size: int,
    special_pieces: Mapping[int, tuple[str, int]],
    trainer: Mapping[str, Any],
    normalizer: Mapping[str, Any],
    denormalizer: Mapping[str, Any] | None = None,
    auto_character_coverage: bool = False,
) -> Built:
    """A model of `vocab_size` pieces, or as many as there are.

    Special pieces, by id, have a text and a type, and score 0. The free ids are filled with the merges,
    best first, then the characters, with scores -0, -1, -2 and so on. The other arguments are the fields
    that the file records of the options, exactly those that shall be present; only the size of the
    vocabulary is corrected when it comes out smaller.
    """
    merges, characters = choose(learned, vocab_size - len(special_pieces), auto_character_coverage)
    found = iter([*merges, *(character.encode() for character in characters)])
    last_special = max(special_pieces, default=-1)
    proto = late.model_pb2().ModelProto()
    pieces: list[bytes] = []
    scores: list[float] = []
    score = -0.0
    for id in range(vocab_size):
        if id in special_pieces:
            text, type = special_pieces[id]
            if len(pieces) != id:
                raise TrainingError(
                    f"{text!r} has the id {id}, but the corpus gives only {len(pieces)} pieces for the "
                    f"ids before it; choose a smaller vocab_size, or a smaller id"
                )
            proto.pieces.add(piece=text.encode(), score=0.0, type=type)
            pieces.append(text.encode())
            scores.append(0.0)
        elif (piece := next(found, None)) is not None:
            proto.pieces.add(piece=piece, score=score)
            pieces.append(piece)
            scores.append(score)
            score -= 1.0
        elif id > last_special:
            break
    _set(proto.trainer_spec, trainer)
    if proto.trainer_spec.HasField("vocab_size") or not proto.trainer_spec.hard_vocab_limit:
        proto.trainer_spec.vocab_size = len(pieces)
    _set(proto.normalizer_spec, normalizer)
    if denormalizer is not None:
        _set(proto.denormalizer_spec, denormalizer)
    return Built(
        data=proto.SerializeToString(),
        pieces=tuple(pieces),
        scores=tuple(scores),
        merges=len(merges),
        characters=tuple(characters),
    )


def _set(message: Any, fields: Mapping[str, Any]) -> None:
    """Make fields present, also those that have their default. An empty message is present as well."""
    message.SetInParent()
    for name, value in fields.items():
        if name == "model_type" and isinstance(value, str):
            value = type(message).ModelType.Value(value.upper())
        elif isinstance(value, str):
            value = value.encode()
        if isinstance(value, (list, tuple)):
            getattr(message, name).extend(item.encode() if isinstance(item, str) else item for item in value)
        else:
            setattr(message, name, value)


def choose(
    learned: Learned, room: int, auto_character_coverage: bool
) -> tuple[Sequence[bytes], Sequence[str]]:
    """The merges and characters of a model that has room for so many pieces.

    Characters are decided by their coverage, and merges take the room that is left. With
    auto_character_coverage the two compete. A merge saves as many tokens as its pair stood in the text; a
    character saves those that its bytes would be, but one. So a character of one byte is worth nothing,
    unless a chosen merge is made of it: then it is taken along. Of all numbers of merges, that one is chosen
    which, filled up with the most valuable characters, saves most; of equal ones the largest.
    """
    if not auto_character_coverage:
        if len(learned.characters) > room:
            return (), ()
        return learned.merges[: room - len(learned.characters)], learned.characters

    def gain(character: str) -> int:
        return counts[character] * (len(character.encode()) - 1)

    counts = dict(zip(learned.characters, learned.character_counts, strict=True))
    worthy = sorted((c for c in counts if gain(c) > 0), key=lambda c: (-gain(c), -counts[c], c))
    rank = {character: place for place, character in enumerate(worthy)}

    # For every number of merges: `needed` are their characters; of the others, those in worthy[:end] fill
    # what room is left. Every merge leaves less room, so `end` only ever moves down.
    needed: set[str] = set()
    end = fillers = len(worthy)
    filled = sum(map(gain, worthy))
    merged = 0
    best = (-1, 0, 0)  # tokens saved, merges, fillers
    for number, (piece, frequency) in enumerate(
        zip((b"", *learned.merges), (0, *learned.frequencies), strict=True)
    ):
        merged += frequency
        for character in set(piece.decode()) - needed:
            needed.add(character)
            merged += gain(character)
            if rank.get(character, end) < end:
                fillers -= 1
                filled -= gain(character)
        left = room - number - len(needed)
        if left < 0:
            break
        while fillers > left:
            end -= 1
            if worthy[end] not in needed:
                fillers -= 1
                filled -= gain(worthy[end])
        best = max(best, (merged + filled, number, fillers))
    _, number, fillers = best
    taken = set("".join(piece.decode() for piece in learned.merges[:number]))
    others = [character for character in worthy if character not in taken]
    return learned.merges[:number], sorted(taken) + others[:fillers]


def vocab_file(built: Built, scores: bool = True) -> bytes:
    """The `.vocab` file: a piece and its score a line, for people and for grep."""
    if not scores:
        return b"".join(piece + b"\n" for piece in built.pieces)
    lines = zip(built.pieces, built.scores, strict=True)
    return b"".join(b"%s\t%s\n" % (piece, f"{score:g}".encode()) for piece, score in lines)
