"""How training differs between the two families of models. All other code is shared.

A `Family` is made from complete options. It says how a corpus is read, what is counted and learned, and how a
model is built from what was learned. Merges are learned best first, so models with smaller vocabularies can
be built from the same result.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from cpbpe.errors import TrainingError
from cpbpe.lazy import importing, kept
from cpbpe.model.byte_level import AS_IT_IS
from cpbpe.model.formats import sentencepiece
from cpbpe.model.spec import ModelSpec, Pieces, PieceType, Settings
from cpbpe.reference.training_values import (
    ByteCountSpec,
    ByteLearnSpec,
    CountSpec,
    Learned,
    LearnSpec,
    PieceLimits,
    Words,
)
from cpbpe.spelling import counted, given, listed, named
from cpbpe.text.utf8 import BYTE_ORDER, to_letters
from cpbpe.training.byte_options import BYTES, AnyOptions, ByteTrainOptions
from cpbpe.training.corpus import Corpus
from cpbpe.training.counting import CountSetup
from cpbpe.training.options import LONGEST_PIECE, TrainOptions, special_counts
from cpbpe.training.settings import settings_of, with_input, with_prefix

Special = Mapping[int, tuple[str, int]]
"""Pieces that are not learned, by id: the text and the type."""

_SPACE = "\u2581"


@dataclass(frozen=True)
class Built:
    """A model, and which of its pieces are merges and characters."""

    spec: ModelSpec
    """The model."""
    merges: int
    """How many of the pieces are merges."""
    characters: Sequence[str] = ()
    """The pieces that are characters, in order; byte-level models have none."""

    @property
    def size(self) -> int:
        """How many pieces there are: fewer than were asked for if the corpus has too little text."""
        return len(self.spec.pieces)

    @kept
    def data(self) -> bytes:
        """The model file."""
        return sentencepiece.write(self.spec)


def place_pieces(texts: Sequence[bytes], special: Special, vocab_size: int, first_score: float) -> Pieces:
    """The pieces of a model: special ones at their ids, with the score 0, and the others between them.

    The others have the scores `first_score`, one less, and so on.
    """
    pieces: list[bytes] = []
    scores: list[float] = []
    types = bytearray()
    falling = [first_score - number for number in range(len(texts))]
    # All pieces up to the next special one are added at once: one by one, it took five times as long.
    taken = 0
    for id, (piece, type) in [*sorted(special.items()), (vocab_size, ("", PieceType.UNUSED))]:
        end = min(taken + min(id, vocab_size) - len(pieces), len(texts))
        pieces += texts[taken:end]
        scores += falling[taken:end]
        types += bytes([PieceType.NORMAL]) * (end - taken)
        taken = end
        if id >= vocab_size:
            break
        if len(pieces) != id:
            raise TrainingError(
                f"{piece!r} has the id {id}, but the corpus gives only {len(pieces)} pieces for the "
                f"ids before it; choose a smaller {named('vocab_size')}, or a smaller id"
            )
        pieces.append(piece.encode())
        scores.append(0.0)
        types.append(type)
    return Pieces.of_lists(pieces, scores, types)


# --- The SentencePiece family ---------------------------------------------------------------------


class SentencePieceFamily:
    """Models whose pieces are made of characters. `settings` is what model files record of the training."""

    def __init__(self, options: TrainOptions, settings: Settings):
        self.options = options
        self.settings = settings
        self.special = options.special_pieces()
        self.byte_pieces = sum(type == PieceType.BYTE for _, type in self.special.values())
        """How many pieces are bytes: 256 or 0."""
        self.special_texts = tuple(text for text, type in self.special.values() if type != PieceType.BYTE)
        """The texts of the other pieces that are not learned, in the order of their ids."""
        limits = PieceLimits(**{name: getattr(options, name) for name in PieceLimits.__dataclass_fields__})
        size = options.input_sentence_size
        # The first sentences of a corpus do not depend on a seed.
        sample = (size, options.shuffle_input_sentence, options.seed * options.shuffle_input_sentence)
        self.setup = CountSetup(
            CountSpec(
                limits=limits,
                charsmap=settings.normalizer.get("precompiled_charsmap", b""),
                add_dummy_prefix=options.add_dummy_prefix,
                remove_extra_whitespaces=options.remove_extra_whitespaces,
                symbols=tuple(sorted(piece.encode() for piece, _ in self.special.values())),
                delimiter=options.pretokenization_delimiter.encode(),
                max_sentence_length=options.max_sentence_length,
                keep_newlines=options.keep_newlines,
                skip_reserved=not options.keep_reserved,
            ),
            _name(options.pretokenizer),
            sample if size else None,
        )
        """What is counted."""
        self.learn_spec = LearnSpec(
            vocab_size=options.vocab_size,
            meta_pieces=len(self.special),
            limits=limits,
            character_coverage=options.character_coverage,
            required_chars=options.required_chars,
            auto_character_coverage=options.auto_character_coverage,
        )
        """What is learned."""

    def recording(self, corpus: Corpus) -> SentencePieceFamily:
        """The family, with the paths of the corpus in its models."""
        recording = copy(self)
        recording.settings = with_input(self.settings, corpus)
        return recording

    def least(self, learned: Learned) -> int:
        """The size of the smallest model.

        It has no merges or, with auto_character_coverage, one piece besides the special ones.
        """
        return len(self.special) + (1 if self.options.auto_character_coverage else len(learned.characters))

    def build(self, learned: Learned, vocab_size: int | None = None) -> Built:
        """A model of `vocab_size` pieces, or of all pieces if there are fewer.

        It is an error if the characters that cover the corpus do not fit into the vocabulary.
        """
        options = self.options if vocab_size is None else self.options.replace(vocab_size=vocab_size)
        size, coverage = options.vocab_size, options.character_coverage
        least = self.least(learned)
        if least > size and not options.auto_character_coverage:
            parts = [*special_counts(self.special), counted(len(learned.characters), "character")]
            smaller = "" if coverage <= 0.98 else f", or a smaller {named('character_coverage')}"
            raise TrainingError(
                f"{named('vocab_size')} is {size}, and this corpus with these options needs at least "
                f"{least}, for {listed(parts)}; choose a larger size{smaller}"
            )
        return build(
            learned,
            vocab_size=size,
            special_pieces=options.special_pieces(),
            base=sentencepiece.spec_of_settings(self.settings),
            auto_character_coverage=options.auto_character_coverage,
        )

    def files(self, built: Built, name: str) -> tuple[bytes, bytes]:
        """The model file and the .vocab file, when they are saved under this name."""
        data = built.data
        if self.options.record_paths:
            data = sentencepiece.write(with_prefix(built.spec, name))
        return data, vocab_file(built.spec, self.options.vocabulary_output_piece_score)

    def text_size(self, learned: Learned, words: Words) -> tuple[int, int]:
        """The bytes and the characters of the normalized text. A space counts as one byte; U+0000 counts as a
        byte, but not as a character, because coverage ignores it.
        """
        seen = learned.seen()
        size = sum(count * (1 if text == _SPACE else len(text.encode())) for text, count in seen)
        return size + learned.nuls, sum(count for _, count in seen)

    def warnings(self) -> list[str]:
        """Warnings about special pieces that may not be intended."""
        warnings = []
        if self.options.unk_id < 0:
            warnings.append(
                f"without an unknown piece ({given('unk_id', self.options.unk_id)}) the model needs "
                f"sentencepiece 0.2.3 or newer, or cpbpe"
            )
        broken = [text for text in self.special_texts if not {" ", "\t", "\r", "\n"}.isdisjoint(text)]
        if broken:
            warnings.append(
                f"the special piece {broken[0]!r} contains white space, so its line in the .vocab file is "
                f"broken"
            )
        return warnings


def build(
    learned: Learned,
    *,
    vocab_size: int,
    special_pieces: Special,
    base: ModelSpec,
    auto_character_coverage: bool = False,
) -> Built:
    """A model of `vocab_size` pieces, or of all pieces if there are fewer.

    The ids that special pieces leave free go to the merges, best first, and then to the characters, with
    the scores -0, -1, -2 and so on. `base` is the model without its pieces. Of its settings, only the
    vocabulary size is corrected.
    """
    merges, characters = choose(learned, vocab_size - len(special_pieces), auto_character_coverage)
    texts = [*merges, *(character.encode() for character in characters)]
    pieces = place_pieces(texts, special_pieces, vocab_size, -0.0)
    trainer = base.settings.trainer
    if "vocab_size" in trainer or not trainer.get("hard_vocab_limit", True):
        trainer = {**trainer, "vocab_size": len(pieces)}
    settings = replace(base.settings, trainer=trainer)
    return Built(replace(base, pieces=pieces, settings=settings), len(merges), tuple(characters))


def choose(
    learned: Learned, room: int, auto_character_coverage: bool
) -> tuple[Sequence[bytes], Sequence[str]]:
    """The merges and characters of a model that has room for this many pieces.

    The coverage decides which characters get a piece, and merges take the room that is left. With
    auto_character_coverage the two compete. A merge saves one token each time its pair occurs in the text. A
    character saves the tokens that its bytes would take, minus one. So a character of one byte saves nothing,
    but it must have a piece if a chosen merge contains it. For every number of merges, the room that is left
    is filled with the characters that save the most. The number of merges that saves the most tokens is
    chosen; if several save the same, the largest of them. (As in sentencepiece, overlapping pairs count, too:
    `aaa` as two savings, though it saves one.)
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

    # For every number of merges, `needed` holds the characters of these merges, and the other characters in
    # worthy[:end] fill the room that is left. Every merge leaves less room, so `end` never grows.
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


def _name(function: object) -> str:
    if function is None:
        return ""
    module = getattr(function, "__module__", type(function).__module__)
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"


# --- Byte-level models ----------------------------------------------------------------------------


class ByteFamily:
    """Models whose pieces are made of bytes. It has what training needs of a family."""

    def __init__(self, options: ByteTrainOptions):
        self.options = options
        self.byte_pieces, self.special_texts = BYTES, tuple(options.special_tokens)
        splitter = options.splitter
        pattern = splitter.pattern if splitter is not None else ""
        spec = ByteCountSpec(pattern, ordered=options.ties == "minbpe")
        self.setup = CountSetup(spec, split_lines=options.split_lines)
        self.learn_spec = ByteLearnSpec(
            merges=options.merges,
            byte_order=bytes(BYTE_ORDER) if options.byte_order == "gpt2" else bytes(range(BYTES)),
            ties=options.ties,
            min_frequency=options.min_frequency,
            # No model can hold a longer piece, so none is learned, whatever the option says.
            max_length=min(options.max_piece_length or LONGEST_PIECE, LONGEST_PIECE),
            forbidden=tuple(token.encode() for token in options.special_tokens),
        )

    def least(self, learned: Learned) -> int:
        """The size of the smallest model, which has no merges."""
        return len(self.special_texts) + BYTES

    def build(self, learned: Learned, vocab_size: int | None = None) -> Built:
        """A model of `vocab_size` pieces, or of all pieces if there are fewer.

        Bytes and merges are in the order in which they merge, so each score is the negative of the id.
        Special tokens come before all of them or after all of them.
        """
        options, tokens = self.options, self.special_texts
        size = options.vocab_size if vocab_size is None else vocab_size
        merges = learned.merges[: max(size - len(tokens) - BYTES, 0)]
        texts = [*(bytes([byte]) for byte in self.learn_spec.byte_order), *merges]
        first = 0 if options.special_tokens_first else len(texts)
        special = {first + at: (token, PieceType.CONTROL) for at, token in enumerate(tokens)}
        first_score = float(-len(tokens) if options.special_tokens_first else 0)
        pieces = place_pieces(texts, special, len(texts) + len(tokens), first_score)
        spec = ModelSpec(
            pieces=pieces,
            normalizer=AS_IT_IS,
            special_pieces=(
                b"<unk>",
                (options.bos_piece or "<s>").encode(),
                (options.eos_piece or "</s>").encode(),
                b"<pad>",
            ),
            alphabet="bytes",
            splitter=options.splitter,
            # This changes no ids, because merging the bytes of a piece always gives that piece. Files of
            # tiktoken are read in this way, too; GPT-2's own code and minbpe do not look up whole chunks.
            whole=options.byte_order == "gpt2",
        )
        return Built(spec, len(merges))

    def files(self, built: Built, name: str) -> tuple[bytes, bytes]:
        """The model file, and the .vocab file: a piece and its id on each line, for people and for grep.

        Bytes are written as GPT-2's letters, none of which is a space or a line break. Special tokens are
        written as they are.
        """
        rows = zip(built.spec.pieces.texts, built.spec.pieces.types, strict=True)
        lines = (
            f"{text.decode() if type == PieceType.CONTROL else to_letters(text)}\t{id}\n"
            for id, (text, type) in enumerate(rows)
        )
        return built.data, "".join(lines).encode()

    def text_size(self, learned: Learned, words: Words) -> tuple[int, int]:
        """The bytes and the characters of the text."""
        if not len(words):
            return 0, 0
        with importing:
            import numpy as np
        begins = np.frombuffer(words.blob, "u1") & 0xC0 != 0x80
        ends = np.frombuffer(words.ends, "<u8").astype("i8")
        each = np.add.reduceat(begins, np.concatenate(([0], ends[:-1])), dtype="i8")
        counts = np.frombuffer(words.counts, "<u8").tolist()
        return learned.symbols[0], sum(map(int.__mul__, each.tolist(), counts))

    def warnings(self) -> list[str]:
        """Warnings about special pieces that may not be intended: none here."""
        return []


# --- Both -----------------------------------------------------------------------------------------

Family = SentencePieceFamily | ByteFamily
"""How models of one family are trained with certain options."""


def untrained(options: AnyOptions) -> bytes:
    """The file of a model that has learned nothing: the pieces and settings that depend on no text.

    >>> import cpbpe
    >>> from cpbpe.training.byte_options import complete_options
    >>> cpbpe.Tokenizer.from_bytes(untrained(complete_options("gpt4", {"pattern": ""}))).vocab_size
    261
    """
    family = family_of(options)
    learned = Learned((), array("Q"), array("Q", [0]))
    return family.build(learned, family.least(learned)).data


def family_of(options: AnyOptions) -> Family:
    """The family of models that these options are for. Files of rules are read only here."""
    if isinstance(options, ByteTrainOptions):
        return ByteFamily(options)
    return SentencePieceFamily(options, settings_of(options))
