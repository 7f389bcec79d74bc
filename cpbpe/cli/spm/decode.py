"""``cpbpe spm decode``: what spm_decode does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cpbpe.cli.output import say
from cpbpe.cli.spm.encode import load_model
from cpbpe.cli.spm.extra_options import Extra, extra_of
from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import Block, check_output, files_of, transformed, write
from cpbpe.engine.lines import read_ids
from cpbpe.lazy import imported, kept
from cpbpe.spelling import counted
from cpbpe.tokenizer.tokenizer import Tokenizer

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
    lines = _Lines(tok, extra_of(flags["extra_options"], tok), flags["input_format"] == "id")
    write(flags["output"], transformed(files, lines.of))
    dropped = sum(reader.dropped for reader in lines.left_out)
    if dropped and not flags["quiet"]:
        say(
            f"{counted(dropped, 'item')} of the input {'was' if dropped == 1 else 'were'} no 32-bit integer, "
            f"such as {lines.left_out[0].example!r}, and left out, as spm_decode does"
        )


class _Lines:
    """Decodes blocks of lines."""

    def __init__(self, tok: Tokenizer, extra: Extra, reads_ids: bool):
        self.left_out: list[_Ids] = []
        """Those that have read what is no id. (A list, because several threads can add to it at once.)"""
        self._tok = tok
        self._extra = extra
        self._reads_ids = reads_ids
        self._table: Any = range(tok.vocab.piece_count) if reads_ids else tok.facts.spec.pieces.texts

    def of(self, block: Block) -> bytes:
        """The texts of a block."""
        text = self._plain(block.data) if self._extra == Extra() else None
        if text is None:
            text = self._any(block)
        return text

    def _plain(self, data: bytes) -> bytes | None:
        """The texts of lines that are as spm_encode writes them; None if some are not."""
        engine = self._tok.facts.engine
        if self._reads_ids:
            ids, offsets, wrong = read_ids(data)
        elif data.startswith(b" ") or b"  " in data or b"\n " in data or b" \n" in data:
            return None  # between two spaces there is a piece without text, which is not nothing
        else:
            ids, offsets, wrong = engine.read_pieces(data)
        return engine.decode_lines(ids, offsets) if wrong is None else None

    def _any(self, block: Block) -> bytes:
        """The texts of any lines, one by one."""
        ids = _Ids()
        read: Callable[[bytes], list[Any]] = ids.read if self._reads_ids else _split
        rows = [self._extra.around(row, self._table) if row else row for row in map(read, block.lines)]
        if ids.dropped:
            self.left_out.append(ids)
        made = []
        for number, row in enumerate(rows, block.first):
            try:
                made.append(self._calls.Decode(row, return_type=bytes) if row else b"")
            except IndexError as error:
                raise ValueError(f"line {number} of the input: {error}") from None
        return b"".join([line + b"\n" for line in made])

    @kept
    def _calls(self) -> Any:
        """The same model with the calls of sentencepiece."""
        module = imported("cpbpe.compat.sentencepiece")
        return module.SentencePieceProcessor(model_proto=self._tok.to_bytes())


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
