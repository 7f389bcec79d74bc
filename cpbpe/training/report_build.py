"""Makes the report of a training (`cpbpe.training.report`) from what was counted and learned."""

from __future__ import annotations

from itertools import chain

from cpbpe.engine.choice import engine_name
from cpbpe.reference.training_values import Learned
from cpbpe.training.model_build import Built
from cpbpe.training.options import TrainOptions
from cpbpe.training.report import Curve, Report
from cpbpe.training.word_counts import WordCounts

_SPACE = "\u2581"


def make_report(options: TrainOptions, counts: WordCounts, learned: Learned, built: Built) -> Report:
    """The report, without phases: the last of them has not ended yet."""
    special = len(options.special_pieces())
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
        tokens = tuple(symbols + extra for symbols in learned.symbols[: merges + 1])
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
        empty_merges=sum(1 for frequency in learned.frequencies[:merges] if not frequency),
        tokens=learned.symbols[merges] + extra,
        curve=curve,
        phases=(),
        warnings=tuple(_warnings(options, counts, dict(seen))),
    )


def _bytes_of(character: str) -> int:
    return 1 if character == _SPACE else len(character.encode())


def _warnings(options: TrainOptions, counts: WordCounts, characters: dict[str, int]) -> list[str]:
    warnings: list[str] = []
    reading = counts.reading
    long = reading.left_out.get("too_long")
    if long is not None and long.bytes * 100 > reading.bytes:
        warnings.append(
            f"{long.bytes / reading.bytes:.0%} of the corpus is in sentences longer than max_sentence_length="
            f"{options.max_sentence_length} and was left out; give a larger one, or 0 for no limit"
        )
    returns = characters.get("\r", 0)
    if returns and returns * 2 > reading.sentences - reading.sentences_left_out:
        warnings.append(
            f"the text holds {returns:,} carriage returns (U+000D): lines that end in \\r\\n keep their \\r, "
            f"as in sentencepiece; remove them first if they are not meant"
        )
    warnings += reading.warnings
    if characters.get("\ufffd") and not reading.not_utf8:
        warnings.append(
            f"the text holds U+FFFD {characters[chr(0xFFFD)]:,} times: these stand for characters that were "
            f"lost when the text was decoded, before it came here"
        )
    if options.unk_id < 0:
        warnings.append(
            "without an unknown piece (unk_id=-1) the model needs sentencepiece 0.2.3 or newer, or cpbpe"
        )
    for piece, _ in options.special_pieces().values():
        if any(character in piece for character in " \t\r\n"):
            warnings.append(
                f"the special piece {piece!r} holds white space, so its line of the .vocab file is broken"
            )
            break
    return warnings
