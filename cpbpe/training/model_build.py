"""Builds a model from what training learned: which piece gets which id and score.

Merges are learned best first, so a model with any smaller vocabulary can be built from the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cpbpe.errors import TrainingError
from cpbpe.lazy import kept
from cpbpe.model.formats import sentencepiece
from cpbpe.model.spec import ModelSpec, Pieces, PieceType, Settings
from cpbpe.reference.training_values import Learned
from cpbpe.spelling import named


@dataclass(frozen=True)
class Built:
    """A model, and which of its pieces are merges and characters."""

    spec: ModelSpec
    """The model."""
    merges: int
    """How many of the pieces are merges."""
    characters: tuple[str, ...]
    """The pieces that are characters, in order."""

    @property
    def size(self) -> int:
        """How many pieces there are: fewer than were asked for if the corpus has too little text."""
        return len(self.spec.pieces)

    @kept
    def data(self) -> bytes:
        """The model file."""
        return sentencepiece.write(self.spec)


def build(
    learned: Learned,
    *,
    vocab_size: int,
    special_pieces: Mapping[int, tuple[str, int]],
    base: ModelSpec,
    auto_character_coverage: bool = False,
) -> Built:
    """A model of `vocab_size` pieces, or as many as there are.

    Special pieces, by id, have a text and a type, and score 0. The free ids are filled with the merges,
    best first, then the characters, with scores -0, -1, -2 and so on. `base` is the model without its pieces.
    Only the vocabulary size in its settings is corrected, if the vocabulary turns out smaller.
    """
    merges, characters = choose(learned, vocab_size - len(special_pieces), auto_character_coverage)
    texts = [*merges, *(character.encode() for character in characters)]
    pieces: list[bytes] = []
    scores: list[float] = []
    types = bytearray()
    falling = [-0.0, *map(float, range(-1, -len(texts), -1))]
    # The lists grow by all pieces up to the next special one: piece by piece, they took five times as long.
    taken = 0
    for id, (special, type) in [*sorted(special_pieces.items()), (vocab_size, ("", PieceType.UNUSED))]:
        end = min(taken + min(id, vocab_size) - len(pieces), len(texts))
        pieces += texts[taken:end]
        scores += falling[taken:end]
        types += bytes([PieceType.NORMAL]) * (end - taken)
        taken = end
        if id >= vocab_size:
            break
        if len(pieces) != id:
            raise TrainingError(
                f"{special!r} has the id {id}, but the corpus gives only {len(pieces)} pieces for the "
                f"ids before it; choose a smaller {named('vocab_size')}, or a smaller id"
            )
        pieces.append(special.encode())
        scores.append(0.0)
        types.append(type)
    columns = Pieces.of_lists(pieces, scores, types)
    spec = replace(base, pieces=columns, settings=_sized(base.settings, len(pieces)))
    return Built(spec, merges=len(merges), characters=tuple(characters))


def _sized(settings: Settings, size: int) -> Settings:
    """The settings with the vocabulary size, if they must state it."""
    trainer = settings.trainer
    if "vocab_size" in trainer or not trainer.get("hard_vocab_limit", True):
        trainer = {**trainer, "vocab_size": size}
    return replace(settings, trainer=trainer)


def choose(
    learned: Learned, room: int, auto_character_coverage: bool
) -> tuple[Sequence[bytes], Sequence[str]]:
    """The merges and characters of a model that has room for this many pieces.

    Characters are decided by their coverage, and merges take the room that is left. With
    auto_character_coverage the two compete. A merge saves one token each time its pair occurs in the
    text; a character saves the tokens that its bytes would be, minus one. So a character of one byte is worth
    nothing, unless a chosen merge contains it: then it must be there. For every number of merges, the room
    that is left is filled with the most valuable characters. The number that saves the most tokens is
    chosen; if several save the same, the largest of them.
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
    # the room that is left. Every merge leaves less room, so `end` only ever moves down.
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


def vocab_file(spec: ModelSpec, scores: bool = True) -> bytes:
    """The `.vocab` file: one piece and its score per line, for people and for grep."""
    if not scores:
        return b"".join(piece + b"\n" for piece in spec.pieces.texts)
    lines = zip(spec.pieces.texts, spec.pieces.numbers(), strict=True)
    return b"".join(map(b"%b\t%g\n".__mod__, lines))
