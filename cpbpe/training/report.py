"""What training did, in numbers. Everything that is left out of the model is named here."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from cpbpe.reference.training_values import EXAMPLES
from cpbpe.spelling import counted, sized, spelled
from cpbpe.text.drawn import Lines, quoted, shown
from cpbpe.text.pages import Canvas, Drawn
from cpbpe.training.curve import Curve, draw_curve

REASONS = {
    "empty": "that are empty",
    "too_long": "longer than `max_sentence_length`",
    "reserved": "with the reserved character U+2585",
    "blank": "with nothing left after normalization",
}
"""Why a sentence is left out, in words: one for each of `SKIP_REASONS`."""

_MOST_SHOWN = 8
"""Only this many special pieces are shown by name."""


@dataclass(frozen=True)
class Example:
    """One sentence that was left out."""

    where: str
    """Where it is: a file and a line, or the number of the text."""
    text: str
    """How it begins."""


@dataclass(frozen=True)
class LeftOut:
    """The sentences that were left out for one reason."""

    sentences: int = 0
    """How many."""
    bytes: int = 0
    """How long they are together."""
    examples: tuple[Example, ...] = ()
    """The first few."""


_ADDED_UP = (
    "sentences",
    "bytes",
    "files",
    "files_left_out",
    "links_left_out",
    "nulls",
    "not_utf8",
    "spilled_runs",
    "spilled_bytes",
)
"""The fields of two readings that `+` adds up, or joins if they are tuples."""


@dataclass(frozen=True, repr=False)
class Reading:
    """What was read, and what was left out of it.

    What sentencepiece calls a sentence is a line of a file, or one text of an iterable. The report calls it
    a line or a text (see `unit`).
    """

    sentences: int = 0
    """How many sentences were read, those left out included."""
    bytes: int = 0
    """Their length, without the newlines between them."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """Sentences left out, by reason: see `REASONS`."""
    files: int = 0
    """How many files were read; 0 if the corpus was an iterable of texts."""
    files_left_out: tuple[str, ...] = ()
    """Files in a directory that are not text."""
    links_left_out: tuple[str, ...] = ()
    """Links in a directory or a glob whose targets are read under another name."""
    nulls: int = 0
    """Records of JSON Lines and Parquet whose text is null."""
    not_utf8: int = 0
    """Sentences that are not valid UTF-8; every invalid byte in them counts as U+FFFD."""
    warnings: tuple[str, ...] = ()
    """What may be wrong with the corpus, with the file and what to do."""
    sampled_from: int | None = None
    """With `input_sentence_size`: how many sentences there were to choose from."""
    sampled: int | None = None
    """With `input_sentence_size`: how many were chosen."""
    spilled_runs: int = 0
    """How many times counts were moved to the disk because of the memory limit."""
    spilled_bytes: int = 0
    """How many bytes were moved there."""
    by_line: bool = True
    """Whether each line of a text file is a text of its own."""

    @property
    def unit(self) -> str:
        """What people call a sentence of this corpus: "line" or "text"."""
        return "line" if self.files and self.by_line else "text"

    @property
    def sentences_left_out(self) -> int:
        """How many sentences were left out, for whatever reason."""
        return sum(skipped.sentences for skipped in self.left_out.values())

    def __add__(self, other: Reading) -> Reading:
        left_out = {}
        for reason in {**self.left_out, **other.left_out}:
            mine, theirs = self.left_out.get(reason, LeftOut()), other.left_out.get(reason, LeftOut())
            left_out[reason] = LeftOut(
                mine.sentences + theirs.sentences,
                mine.bytes + theirs.bytes,
                (mine.examples + theirs.examples)[:EXAMPLES],
            )
        return Reading(
            **{name: getattr(self, name) + getattr(other, name) for name in _ADDED_UP},
            left_out=left_out,
            warnings=self.warnings + tuple(text for text in other.warnings if text not in self.warnings),
            sampled_from=_sum(self.sampled_from, other.sampled_from),
            sampled=_sum(self.sampled, other.sampled),
            by_line=self.by_line and other.by_line,
        )

    def lines(self) -> Iterator[str]:
        """The part of the report about reading, for people."""
        return map(_line, self.rows())

    def rows(self) -> Iterator[tuple[str, str]]:
        """The same as labels and texts."""
        files = f" from {counted(self.files, 'file')}" if self.files else ""
        yield "read", f"{counted(self.sentences, self.unit)}, {sized(self.bytes)}{files}"
        if self.sampled is not None and self.sampled_from is not None:
            yield "sampled", f"{self.sampled:,} of {counted(self.sampled_from, self.unit)}"
        for reason, skipped in self.left_out.items():
            if not skipped.sentences:
                continue
            if reason == "empty":
                yield "left out", f"{counted(skipped.sentences, f'empty {self.unit}')}"
                continue
            what = f"{counted(skipped.sentences, self.unit)} {spelled(REASONS[reason])}"
            yield "left out", f"{what}, {sized(skipped.bytes)}"
            for example in skipped.examples[:3]:
                yield "", f"{shown(example.where)}: {quoted(_begin(example.text))}"
        if self.nulls:
            yield "left out", f"{counted(self.nulls, 'record')} with null instead of a text"
        verb = "is" if len(self.files_left_out) == 1 else "are"
        for left_out, noun, why in (
            (self.files_left_out, "file", f"that {verb} not text"),
            (self.links_left_out, "link", "to what is read anyway"),
        ):
            if left_out:
                names = ", ".join(left_out[:3]) + (", ..." if len(left_out) > 3 else "")
                yield "left out", f"{counted(len(left_out), noun)} {why}: {names}"
        if self.spilled_runs:
            parts = counted(self.spilled_runs, "part")
            yield "on the disk", f"{parts} of the counts, {sized(self.spilled_bytes)}"

    def __repr__(self) -> str:
        left_out = f", {self.sentences_left_out:,} left out" if self.sentences_left_out else ""
        return f"<Reading: {counted(self.sentences, self.unit)}, {sized(self.bytes)}{left_out}>"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reading:
        """The reading that `dataclasses.asdict` turned into these values."""
        for name in ("sentences", "bytes", "files", "nulls"):
            if type(values[name]) is not int:
                raise ValueError(f"its number of {name} is {values[name]!r:.40}")
        for reason in values["left_out"]:
            if reason not in REASONS:
                raise ValueError(f"it names an unknown reason: {reason!r:.40}")
        left_out = {
            reason: LeftOut(
                skipped["sentences"],
                skipped["bytes"],
                tuple(Example(**example) for example in skipped["examples"]),
            )
            for reason, skipped in values["left_out"].items()
        }
        tuples = ("files_left_out", "links_left_out", "warnings")
        lists = {name: tuple(values[name]) for name in tuples if name in values}
        return cls(**{**values, **lists, "left_out": left_out})


@dataclass(frozen=True)
class Phase:
    """One phase of the work."""

    name: str
    """What was done."""
    seconds: float
    """How long it took."""
    peak_memory: int | None
    """The most memory the process has held from its start to the end of this phase, in bytes, where known."""


@dataclass(frozen=True, repr=False)
class Report(Drawn):
    """What training read, left out, learned and needed.

    `print` shows it for people, `html()` and notebooks as a page with the curve; `to_json` is for programs.
    By itself, as the value of an expression, it is shown in one line.
    """

    engine: str
    """Which engine did the work: "core" or "reference"."""
    vocab_size: int
    """How many pieces the model has."""
    special_pieces: int
    """How many of them are not learned: unknown, control, user-defined and byte pieces."""
    merges: int
    """How many are merges."""
    characters: int
    """How many are single characters."""
    reading: Reading
    """What was read, and what was left out of it."""
    distinct_words: int
    """How many different words the corpus was counted as."""
    text_bytes: int
    """The bytes of the corpus, normalized, a space counted as one byte, repeated sentences repeated."""
    text_characters: int
    """The same in characters."""
    rare_characters: tuple[tuple[str, int], ...]
    """Characters that have no piece, with their counts: those below the coverage."""
    byte_fallback: bool
    """Whether these become bytes (true) or the unknown piece."""
    nuls: int
    """How many times U+0000 occurs; no piece can hold it."""
    boundaries: int
    """Places where a symbol was in the text, or the pretokenizer cut."""
    empty_merges: int
    """Merges whose pair did not occur (any more) when it was chosen: the corpus is small for vocab_size."""
    tokens: int
    """How many tokens the corpus has."""
    curve: Curve | None
    """The tokens for every smaller vocabulary; None with auto_character_coverage."""
    phases: tuple[Phase, ...]
    """How long each phase took, and how much memory."""
    warnings: tuple[str, ...] = ()
    """Results that may not be intended."""
    special_texts: tuple[str, ...] = ()
    """The texts of `special_pieces`, in the order of their ids; bytes are only counted, in `byte_pieces`."""
    byte_pieces: int = 0
    """How many of `special_pieces` are bytes: 256 or none."""

    @property
    def rare_count(self) -> int:
        """How many characters of the corpus have no piece."""
        return sum(count for _, count in self.rare_characters)

    @property
    def coverage(self) -> float:
        """The share of the corpus's characters that have a piece."""
        return 1 - self.rare_count / self.text_characters if self.text_characters else 1.0

    @property
    def bytes_per_token(self) -> float:
        """How many bytes of the corpus there are for each token."""
        return self.text_bytes / self.tokens if self.tokens else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        values = asdict(self)
        values.update(
            rare_count=self.rare_count,
            coverage=self.coverage,
            bytes_per_token=self.bytes_per_token,
        )
        return values

    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def draw(self, on: Canvas) -> None:
        """Draw the report; as a page, with the curve."""
        if isinstance(on, Lines):
            on.labelled(map(_line, _rows(self)))
            return
        on.title("What training did")
        for label, text in _rows(self):
            on.row(label, text)
        if self.curve is not None and len(self.curve) > 1:
            draw_curve(self.curve, on)

    def __str__(self) -> str:
        return "\n".join(map(_line, _rows(self)))

    def __repr__(self) -> str:
        return (
            f"<cpbpe.Report: {counted(self.vocab_size, 'piece')}, {counted(self.tokens, 'token')}, "
            f"{self.bytes_per_token:.3f} bytes per token; print() shows all of it>"
        )


def _line(row: tuple[str, str]) -> str:
    label, text = row
    return f"{label:<14}{text}"


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    yield from report.reading.rows()
    yield "words", f"{report.distinct_words:,} distinct"
    yield "pieces", f"{report.vocab_size:,}: {pieces_in_words(report)}"
    if report.rare_characters:
        verb = "becomes" if len(report.rare_characters) == 1 else "become"
        fate = f"{verb} bytes" if report.byte_fallback else f"{verb} the unknown piece"
        yield (
            "rare",
            f"{counted(len(report.rare_characters), 'character')} {fate}: "
            f"{report.rare_count:,} of {report.text_characters:,} in the text ({1 - report.coverage:.4%})",
        )
        most = "  ".join(f"{_character(text)} {count:,}" for text, count in report.rare_characters[:6])
        yield "", f"{most}{'  ...' if len(report.rare_characters) > 6 else ''}"
    if report.nuls:
        yield "rare", f"U+0000, {counted(report.nuls, 'time')}; no piece can contain it"
    if report.boundaries:
        yield "boundaries", f"{report.boundaries:,}, where the text contains a special piece or was cut"
    if report.empty_merges:
        yield "empty merges", f"{report.empty_merges:,}, which this corpus never uses (it is small)"
    yield (
        "compression",
        f"{report.bytes_per_token:.3f} bytes per token: {sized(report.text_bytes)}, "
        f"{counted(report.tokens, 'token')}",
    )
    if report.curve is not None and len(report.curve) > 1:
        sizes = [share * report.vocab_size // 8 for share in (1, 2, 4, 6)]
        known = [size for size in sizes if size >= report.curve.first]
        if known:
            points = [f"{size:,}: {1 / report.curve.tokens_per_byte(size):.3f}" for size in known]
            yield "", f"with fewer pieces {', '.join(points)}"
    for phase in report.phases:
        memory = f", peak memory {sized(phase.peak_memory)}" if phase.peak_memory else ""
        yield phase.name, f"{phase.seconds:.2f} s{memory}"
    for warning in report.warnings:
        yield "warning", f"{warning}"


def pieces_in_words(report: Report) -> str:
    """How many pieces of each kind the model has."""
    named = [shown(text) for text in report.special_texts[:_MOST_SHOWN]]
    dots = ["..."] if len(report.special_texts) > _MOST_SHOWN else []
    parts: list[str] = []
    if report.special_texts:
        parts.append(f"{len(report.special_texts):,} special ({', '.join(named + dots)})")
    if report.byte_pieces:
        parts.append(counted(report.byte_pieces, "byte"))
    parts.append(counted(report.merges, "merge"))
    if report.characters or not report.byte_pieces:  # byte-level models have none
        parts.append(counted(report.characters, "character"))
    return ", ".join(parts)


def _begin(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


def _character(text: str) -> str:
    return f"{text} (U+{ord(text):04X})" if text.isprintable() and text != " " else f"U+{ord(text):04X}"


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)


# --- How long it took -----------------------------------------------------------------------------


class Clock:
    """Measures the phases of the work."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the work that is done in this context."""
        begun = time.perf_counter()
        yield
        self.phases.append(Phase(name, time.perf_counter() - begun, _peak_memory()))


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
