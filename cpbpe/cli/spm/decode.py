"""``cpbpe spm decode``: what spm_decode does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from cpbpe.cli.output import say
from cpbpe.cli.spm.encode import load_model
from cpbpe.cli.spm.extra_options import extra_of
from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import batches, check_output, files_of, write
from cpbpe.lazy import imported
from cpbpe.spelling import counted

PROGRAM = Program(
    "decode",
    "Decodes lines of pieces or ids, which have one space between them. Without files it reads the standard "
    "input.",
    "decode --model=FILE [--input_format=id] [FILE ...]",
    (
        Flag("model", "string", "", "the model"),
        Flag("input", "string", "", "the file to decode; several are given as arguments, without a flag"),
        Flag("output", "string", "", "the file to write, instead of the standard output"),
        Flag("input_format", "string", "piece", "piece or id"),
        Flag("output_format", "string", "string", "string, which is the only one"),
        Flag("extra_options", "string", "", "bos, eos and reverse, with ':' between them, in this order"),
    ),
)

_NUMBER = re.compile(rb"[ \t\v\f\r]*([+-]?[0-9]+)[ \t\v\f\r]*")
_PLAIN = re.compile(rb"[0-9]{1,9}(?: [0-9]{1,9})*")
"""A line as spm_encode writes it."""


def run(given: Given) -> None:
    """Decode as the flags say."""
    flags = given.flags
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], files)
    tok = load_model(flags["model"], "decode")
    for name, values in (("input_format", ("piece", "id")), ("output_format", ("string",))):
        if flags[name] not in values:
            raise ValueError(f"--{name}: there is no {flags[name]!r}; give {' or '.join(values)}")
    extra = extra_of(flags["extra_options"], tok)
    processor = imported("cpbpe.compat.sentencepiece").SentencePieceProcessor(model_proto=tok.to_bytes())
    reads_ids = flags["input_format"] == "id"
    table: Any = range(tok.vocab.piece_count) if reads_ids else tok.facts.spec.pieces.texts
    reader = _Ids() if reads_ids else None

    def rows(batch: list[bytes]) -> list[list[Any]]:
        read: Callable[[bytes], list[Any]] = _split if reader is None else reader.read
        return [extra.around(row, table) if row else row for row in map(read, batch)]

    write(flags["output"], _decoded(processor, batches(files), rows))
    if reader is not None and reader.dropped:
        say(
            f"{counted(reader.dropped, 'item')} of the input {'was' if reader.dropped == 1 else 'were'} no "
            f"32-bit integer, such as {reader.example!r}, and left out, as spm_decode does"
        )


def _decoded(
    processor: Any, every: Iterator[list[bytes]], rows: Callable[[list[bytes]], list[list[Any]]]
) -> Iterator[bytes]:
    done = 0
    for batch in every:
        items = rows(batch)
        try:
            lines = processor.Decode(items, return_type=bytes) if any(items) else [b""] * len(items)
        except IndexError as error:
            for place, row in enumerate(items, done + 1):
                try:
                    processor.Decode(row, return_type=bytes)
                except IndexError as first:
                    raise ValueError(f"line {place} of the input: {first}") from None
            raise ValueError(str(error)) from None
        done += len(items)
        lines.append(b"")
        yield b"\n".join(lines)


def _split(line: bytes) -> list[bytes]:
    return line.split(b" ")


class _Ids:
    """Reads lines of ids. Like spm_decode it leaves out what is no integer, but counts it."""

    def __init__(self) -> None:
        self.dropped = 0
        """How many items were left out."""
        self.example = ""
        """The first of them."""

    def read(self, line: bytes) -> list[int]:
        """The ids of a line."""
        if _PLAIN.fullmatch(line):
            return list(map(int, line.split(b" ")))
        ids = []
        for item in line.split(b" "):
            match = _NUMBER.fullmatch(item)
            number = int(match[1]) if match and len(match[1]) < 1000 else 1 << 31
            if -(1 << 31) <= number < 1 << 31:
                ids.append(number)
            elif item:  # (an empty item is a second space, which is nothing lost)
                self.dropped += 1
                self.example = self.example or item[:40].decode(errors="backslashreplace")
        return ids
