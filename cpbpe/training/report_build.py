"""Builds the report of a training (`cpbpe.training.report`) from what was counted and learned."""

from __future__ import annotations

from itertools import chain

from cpbpe.engine.choice import engine_name
from cpbpe.model.spec import PieceType
from cpbpe.reference.training_values import Learned
from cpbpe.spelling import counted, given, named
from cpbpe.training.model_build import Built
from cpbpe.training.options import TrainOptions
from cpbpe.training.report import Curve, Reading, Report
from cpbpe.training.word_counts import WordCounts

_SPACE = "\u2581"


def make_report(options: TrainOptions, counts: WordCounts, learned: Learned, built: Built) -> Report:
    """The report without its phases, because the last one has not ended yet."""
    placed = options.special_pieces()
    special = len(placed)
    special_texts = tuple(text for text, type in placed.values() if type != PieceType.BYTE)
    singles = set(built.characters)
    merges = built.merges

    seen = list(
        chain(
            zip(learned.characters, learned.character_counts, strict=True),
            zip(learned.dropped_characters, learned.dropped_counts, strict=True),
        )
    )
    rare = tuple((text, count) for text, count in seen if count and text not in singles)
    text_bytes = sum(count * _bytes_of(text) for text, count in seen) + learned.nuls
    # Merging leaves a rare character as one symbol; with byte fallback each of its bytes becomes a token.
    extra = sum((len(text.encode()) - 1) * count for text, count in rare) if options.byte_fallback else 0
    curve = None
    if not options.auto_character_coverage:
        tokens = tuple(map(extra.__add__, learned.symbols[: merges + 1]))
        curve = Curve(special + len(singles), tokens, text_bytes)
    return Report(
        engine=engine_name(),
        vocab_size=built.size,
        special_pieces=special,
        merges=merges,
        characters=len(singles),
        reading=counts.reading,
        distinct_words=len(counts),
        text_bytes=text_bytes,
        text_characters=sum(count for _, count in seen),
        rare_characters=rare,
        byte_fallback=options.byte_fallback,
        nuls=learned.nuls,
        boundaries=learned.boundaries,
        empty_merges=learned.frequencies[:merges].count(0),
        tokens=learned.symbols[merges] + extra,
        curve=curve,
        phases=(),
        warnings=tuple(_warnings(options, counts, dict(seen))),
        special_texts=special_texts,
        byte_pieces=special - len(special_texts),
    )


def _bytes_of(character: str) -> int:
    return 1 if character == _SPACE else len(character.encode())


def too_long(reading: Reading, limit: int) -> list[str]:
    """A warning if more than a hundredth of the corpus was left out for its length."""
    long = reading.left_out.get("too_long")
    if long is None or long.bytes * 100 <= reading.bytes:
        return []
    return [
        f"{long.bytes / reading.bytes:.0%} of the corpus is in {reading.unit}s of more than {limit} bytes "
        f"and was left out; give a larger {named('max_sentence_length')}, or 0 for no limit"
    ]


def _warnings(options: TrainOptions, counts: WordCounts, characters: dict[str, int]) -> list[str]:
    reading = counts.reading
    warnings = too_long(reading, options.max_sentence_length)
    returns = characters.get("\r", 0)
    if returns and returns * 2 > reading.sentences - reading.sentences_left_out:
        warnings.append(
            f"the text contains {counted(returns, 'carriage return')} (U+000D): lines that end in \\r\\n "
            f"keep their \\r, as in sentencepiece; remove them from the corpus if you do not want pieces of "
            f"them"
        )
    warnings += reading.warnings
    if characters.get("\ufffd") and not reading.not_utf8:
        warnings.append(
            f"the text contains U+FFFD {counted(characters[chr(0xFFFD)], 'time')}: it replaces characters "
            f"that were lost when the text was decoded, before it came here"
        )
    if options.unk_id < 0:
        warnings.append(
            f"without an unknown piece ({given('unk_id', options.unk_id)}) the model needs sentencepiece "
            f"0.2.3 or newer, or cpbpe"
        )
    for piece, _ in options.special_pieces().values():
        if any(character in piece for character in " \t\r\n"):
            warnings.append(
                f"the special piece {piece!r} contains white space, so its line in the .vocab file is broken"
            )
            break
    return warnings
