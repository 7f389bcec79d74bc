"""Builds a byte-level model, and its report, from what training learned."""

from __future__ import annotations

from dataclasses import dataclass

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import kept, numpy
from cpbpe.model.byte_level import AS_IT_IS
from cpbpe.model.formats import sentencepiece
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.reference.training_values import ByteLearnSpec, Learned, Words
from cpbpe.text.byte_letters import BYTE_ORDER
from cpbpe.training.options import BYTES, ByteTrainOptions
from cpbpe.training.report import Curve, Report
from cpbpe.training.word_counts import WordCounts

_MOST_BYTES = 7999
"""No model can hold a longer piece, and none is learned, whatever `max_piece_length` says."""


@dataclass(frozen=True)
class ByteBuilt:
    """A byte-level model, and how many of its pieces are merges."""

    spec: ModelSpec
    """The model."""
    merges: int
    """How many of the pieces are merges."""

    @property
    def size(self) -> int:
        """How many pieces there are: fewer than were asked for if the corpus has too little text."""
        return len(self.spec.pieces)

    @kept
    def data(self) -> bytes:
        """The model file."""
        return sentencepiece.write(self.spec)


def byte_order(options: ByteTrainOptions) -> bytes:
    """The bytes in the order of their ids."""
    return bytes(BYTE_ORDER) if options.byte_order == "gpt2" else bytes(range(BYTES))


def learn_spec(options: ByteTrainOptions) -> ByteLearnSpec:
    """The options as engines take them."""
    return ByteLearnSpec(
        merges=options.merges,
        byte_order=byte_order(options),
        ties=options.ties,
        min_frequency=options.min_frequency,
        max_length=min(options.max_piece_length or _MOST_BYTES, _MOST_BYTES),
        forbidden=tuple(token.encode() for token in options.special_tokens),
    )


def build(options: ByteTrainOptions, learned: Learned) -> ByteBuilt:
    """A model of `vocab_size` pieces, or as many as there are.

    Bytes and merges stand in the order in which they merge, so a score is the id with a minus; special tokens
    stand before them or after them.
    """
    merges = learned.merges[: options.merges]
    special = [(token.encode(), 0.0, PieceType.CONTROL) for token in options.special_tokens]
    first = len(special) if options.special_tokens_first else 0
    texts = [*(bytes([byte]) for byte in byte_order(options)), *merges]
    rows = [(text, float(-id), PieceType.NORMAL) for id, text in enumerate(texts, first)]
    pieces = Pieces.of([*special, *rows] if options.special_tokens_first else [*rows, *special])
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
        # Merging makes every piece of its own bytes, so this changes no ids. It is how the models of the
        # families are read; minbpe looks nothing up.
        whole=options.byte_order == "gpt2",
    )
    return ByteBuilt(spec, len(merges))


def make_report(options: ByteTrainOptions, counts: WordCounts, learned: Learned, built: ByteBuilt) -> Report:
    """The report without its phases, because the last one has not ended yet."""
    special, text_bytes = len(options.special_tokens), learned.symbols[0]
    reading = counts.reading
    return Report(
        engine=engine_name(),
        vocab_size=built.size,
        special_pieces=special + BYTES,
        merges=built.merges,
        characters=0,
        reading=reading,
        distinct_words=len(counts),
        text_bytes=text_bytes,
        text_characters=_characters(counts.words),
        rare_characters=(),
        byte_fallback=False,
        nuls=0,
        boundaries=0,
        empty_merges=0,
        tokens=learned.symbols[built.merges],
        curve=Curve(special + BYTES, tuple(learned.symbols[: built.merges + 1]), text_bytes),
        phases=(),
        warnings=tuple(reading.warnings),
        special_texts=tuple(options.special_tokens),
        byte_pieces=BYTES,
    )


def _characters(words: Words) -> int:
    """How many characters the text has, with all repetitions."""
    if not len(words):
        return 0
    np = numpy()
    begins = np.frombuffer(words.blob, "u1") & 0xC0 != 0x80
    ends = np.frombuffer(words.ends, "<u8").astype("i8")
    each = np.add.reduceat(begins, np.concatenate(([0], ends[:-1])), dtype="i8")
    return int(sum(map(int.__mul__, each.tolist(), np.frombuffer(words.counts, "<u8").tolist())))
