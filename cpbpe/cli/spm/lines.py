"""sentencepiece's programs that read and write lines, and the one that writes a model's pieces.

A line ends with a newline, and only with one; whatever else is in it, broken UTF-8 included, belongs to it.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from math import copysign, isfinite, isnan
from typing import Any, BinaryIO, NamedTuple

from cpbpe.checks import cores
from cpbpe.cli.output import files_read, say
from cpbpe.cli.spm.flags import NO_SEED, RETIRED, CommandLine, Flag, Program
from cpbpe.corpus.files import in_order, whole_lines
from cpbpe.engine.lines import make_line_writer, read_ids
from cpbpe.lazy import importing, kept
from cpbpe.model.spec import PieceType
from cpbpe.model.writing import write_all
from cpbpe.spelling import counted
from cpbpe.text.charsmap import RULE_NAMES
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.tokenizer import Tokenizer, load

_FORMATS = ("piece", "id", "sample_piece", "sample_id", "nbest_piece", "nbest_id")
_MAX_NBEST_SIZE = 512
_FOR_THREADS = 1 << 20
"""Where blocks are encoded one after another, those of more bytes than this use several threads."""
BATCH_BYTES = 1 << 22
"""About this much text is worked on at once."""


def files_of(flags_input: str, files: Sequence[str]) -> list[str]:
    """The files to read, in order; "" is the standard input. `flags_input` is the flag ``--input``."""
    if flags_input and files:
        raise ValueError(
            f"the file is given with --input and as an argument ({files[0]!r}), which sentencepiece would "
            f"ignore; give all files as arguments, without --input"
        )
    return [flags_input] if flags_input else list(files) or [""]


def check_output(output: str, sources: Sequence[str]) -> None:
    """Raise an error if the output would replace one of the files that are read."""
    for source in files_read(sources) if os.path.exists(output) else ():
        if os.path.samefile(source, output):
            raise ValueError(f"--output would replace {source!r}, which is read; choose another name")


class Block(NamedTuple):
    """Whole lines of one file, each with its newline. If the last line of a file has none, it gets one."""

    data: bytes
    """The lines."""
    first: int = 1
    """The number of the first line in all that is read, from 1."""
    threads: int = 1
    """How many threads may work on it: one, if several blocks are worked on at the same time."""

    @property
    def lines(self) -> list[bytes]:
        """The lines without their newlines."""
        lines = self.data.split(b"\n")
        lines.pop()
        return lines


def transformed(files: Sequence[str], work: Callable[[Block], bytes]) -> Iterator[bytes]:
    """Yield what `work` makes of the lines of all files, in order, on as many threads as are of use.

    Lines from a pipe do not wait: what has arrived is worked on at once, before more is read.
    """
    threads = cores()
    side_by_side = threads if all(map(os.path.isfile, files)) else 1
    return in_order(blocks(files, threads // side_by_side), work, side_by_side)


def blocks(files: Sequence[str], threads: int = 1) -> Iterator[Block]:
    """Yield the lines of all files in order."""
    first = 1
    for path in files:
        with _opened(path) as file:
            for data in whole_lines(_blocks(file, not os.path.isfile(path))):
                data = data if data.endswith(b"\n") else data + b"\n"
                yield Block(data, first, threads)
                first += data.count(b"\n")


def _opened(path: str) -> AbstractContextManager[Any]:
    if path and (path != "-" or os.path.exists(path)):
        return open(path, "rb", buffering=0)
    if sys.stdin is None:
        raise ValueError("there is no standard input; name a file")
    return nullcontext(sys.stdin.buffer)


def _blocks(file: BinaryIO, waits: bool) -> Iterator[bytes]:
    """Yield the contents in blocks. Where reading `waits`, a block is what has arrived, up to a batch."""
    read = file.read1 if hasattr(file, "read1") else file.read
    while block := read(BATCH_BYTES):
        parts, size = [block], len(block)
        while waits and size < BATCH_BYTES and _is_ready(file):
            more = read(BATCH_BYTES - size)
            if not more:
                break
            parts.append(more)
            size += len(more)
        yield b"".join(parts)


def _is_ready(file: BinaryIO) -> bool:
    """Whether something can be read without waiting."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):  # not a file of the system; or Windows, where this works for sockets only
        return False


def write(output: str, parts: Iterable[bytes]) -> None:
    """Write to a file, which appears when it is complete, or to the standard output, as the parts come."""
    if output:
        write_all({output: lambda file: file.writelines(parts)})
        return
    if sys.stdout is None:
        raise ValueError("there is no standard output; name a file with --output")
    sys.stdout.flush()
    file = sys.stdout.buffer
    for part in parts:
        file.write(part)
        file.flush()  # another program may wait for the answer to what it has sent


def load_model(path: str, program: str) -> Tokenizer:
    """The model of ``--model``."""
    if not path:
        raise ValueError(f"there is no model; give one: cpbpe spm {program} --model=my.model")
    return load(path)


def _processor(tok: Tokenizer) -> Any:
    """The same model with the calls of sentencepiece."""
    with importing:
        from cpbpe.compat.sentencepiece import SentencePieceProcessor
    return SentencePieceProcessor(model_proto=tok.to_bytes())


# --- What goes around a line -----------------------------------------------------------------------


class Extra(NamedTuple):
    """The combined effect of --extra_options, which are steps that are done in the order given."""

    front: tuple[int, ...] = ()
    """Ids in front."""
    back: tuple[int, ...] = ()
    """Ids at the end."""
    reverse: bool = False
    """Whether what is in between is written backwards."""
    unk_piece: bool = False
    """Whether an unknown part is written as the UNKNOWN piece."""

    def around(self, items: list[Any], table: Any) -> list[Any]:
        """Items of a line with what goes around them; `table` has the item for each id."""
        if self == _NOTHING:
            return items
        middle = items[::-1] if self.reverse else items
        return [*(table[id] for id in self.front), *middle, *(table[id] for id in self.back)]

    def joined(self, lines: Iterable[list[bytes]], table: Sequence[bytes]) -> bytes:
        """The items of lines with what goes around them, written as lines."""
        return b"".join([b" ".join(self.around(items, table)) + b"\n" for items in lines])


_NOTHING = Extra()


def extra_of(text: str, tok: Tokenizer) -> Extra:
    """The effect of a text such as ``bos:reverse``: each option applies to the result of those before it.

    An option can be repeated: ``bos:bos`` writes two of them.
    """
    extra = _NOTHING
    for name in text.split(":") if text else []:
        front, back, reverse, unk_piece = extra
        if name == "reverse":
            extra = Extra(back[::-1], front[::-1], not reverse, unk_piece)
        elif name == "bos":
            extra = Extra((_special(tok.bos_id, name), *front), back, reverse, unk_piece)
        elif name == "eos":
            extra = Extra(front, (*back, _special(tok.eos_id, name)), reverse, unk_piece)
        elif name in ("unk", "unk_piece"):
            extra = Extra(front, back, reverse, True)
        else:
            raise ValueError(
                f"--extra_options: there is no {name!r}; there are bos, eos, reverse and unk, and a ':' "
                f"goes between them"
            )
    return extra


def _special(id: int | None, name: str) -> int:
    if id is None:
        raise ValueError(f"--extra_options={name}: the model has no {name} piece; leave {name} out")
    return id


# --- spm_encode ------------------------------------------------------------------------------------


def encode(given: CommandLine) -> None:
    """Encode as the flags say."""
    flags = given.flags
    kind = flags["output_format"]
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], [flags["model"], *files])
    tok = load_model(flags["model"], "encode")
    extra = extra_of(flags["extra_options"], tok)
    if flags["generate_vocabulary"]:
        write(flags["output"], _vocabulary(tok, files))
        return
    if kind not in _FORMATS:
        raise ValueError(f"--output_format: there is no {kind!r}; there are {', '.join(_FORMATS[:4])}")
    if kind.startswith("nbest"):
        raise ValueError(
            f"--output_format={kind}: a BPE model has one segmentation of a text and no n-best; "
            f"{kind.replace('nbest', 'sample')} gives other segmentations, at random"
        )
    if kind.startswith("sample"):  # one after another, so that a seed gives the same in every run
        lines = _samples(tok, flags, extra, kind == "sample_id")
        write(flags["output"], map(lines, blocks(files)))
    else:
        write(flags["output"], transformed(files, _Encoder(tok, extra, kind == "id").of))


def _table(tok: Tokenizer, ids: bool) -> list[bytes]:
    """What is written for each id."""
    pieces = tok.facts.spec.pieces.texts
    return [b"%d" % id for id in range(len(pieces))] if ids else list(pieces)


class _Encoder:
    """Writes the ids or pieces of blocks."""

    def __init__(self, tok: Tokenizer, extra: Extra, ids: bool):
        self._tok = tok
        self._extra = extra
        self._table = _table(tok, ids)
        self._unknown = None if ids else _unknown(tok)
        if self._unknown is not None and extra.unk_piece:
            # An unknown part is written as unk_piece of the settings, which the UNKNOWN piece need not be.
            self._table[self._unknown] = tok.facts.spec.special_pieces[0]
            self._unknown = None
        self._writer = make_line_writer(self._table, b" ", b"", b"\n")

    def of(self, block: Block) -> bytes:
        """The lines of a block."""
        rows = encoded(self._tok, block)
        ids, offsets = rows.ids, rows.offsets
        others = self._others(block, ids, offsets)
        if not (self._extra.front or self._extra.back or self._extra.reverse):
            return self._writer(ids, offsets, others)
        items: list[bytes] = list(map(self._table.__getitem__, ids.tolist()))
        for place, text in others:
            items[place] = text
        lines = (items[begin:end] for begin, end in pairwise(offsets.tolist()))
        return self._extra.joined(lines, self._table)

    def _others(self, block: Block, ids: Any, offsets: Any) -> list[tuple[int, bytes]]:
        """The places of unknown parts, and their texts, which are written as they are."""
        if self._unknown is None:
            return []
        with importing:
            import numpy as np
        places = np.flatnonzero(ids == self._unknown)
        if not len(places):
            return []
        lines = block.lines
        others = []
        for row in np.unique(np.searchsorted(offsets, places, "right") - 1).tolist():
            begin = int(offsets[row])
            pieces = self._calls.Encode(lines[row], return_type=bytes)
            others += [
                (begin + place, piece)
                for place, piece in enumerate(pieces)
                if ids[begin + place] == self._unknown
            ]
        return others

    @kept
    def _calls(self) -> Any:
        return _processor(self._tok)


def encoded(tok: Tokenizer, block: Block) -> Ragged:
    """The ids of the lines of a block."""
    with importing:
        from cpbpe.packing.lines import ids_of_lines
    return ids_of_lines(tok, block.data, block.threads if len(block.data) > _FOR_THREADS else 1)


def _unknown(tok: Tokenizer) -> int | None:
    """The id of unknown parts, if there can be any."""
    id = tok.facts.spec.pieces.types.find(PieceType.UNKNOWN)
    return None if id < 0 or tok.facts.spec.byte_fallback else id


def _samples(tok: Tokenizer, flags: Any, extra: Extra, ids: bool) -> Callable[[Block], bytes]:
    alpha = flags["alpha"]
    if not isfinite(alpha) or alpha < 0:
        raise ValueError(f"--alpha must be a number, 0 or more, not {alpha}")
    if flags["nbest_size"] > _MAX_NBEST_SIZE:
        raise ValueError(f"--nbest_size must be at most {_MAX_NBEST_SIZE}, not {flags['nbest_size']}")
    if flags["random_seed"] != NO_SEED:
        with importing:
            from cpbpe.compat.sentencepiece import SetRandomGeneratorSeed
        SetRandomGeneratorSeed(flags["random_seed"])
    processor = _processor(tok)
    table = _table(tok, ids)
    how = {"return_type": int if ids else bytes, "enable_sampling": True, "nbest_size": -1, "alpha": alpha}
    how["emit_unk_piece"] = extra.unk_piece

    def lines(block: Block) -> bytes:
        rows = (processor.Encode(line, **how) for line in block.lines)
        return extra.joined(([table[id] for id in row] for row in rows) if ids else rows, table)

    return lines


def _vocabulary(tok: Tokenizer, files: list[str]) -> Iterator[bytes]:
    """The pieces that occurred, the most frequent first, with their counts."""
    with importing:
        import numpy as np
    counts = np.zeros(tok.vocab.piece_count, np.int64)

    def counts_of(block: Block) -> bytes:
        of_block: bytes = (
            np.bincount(encoded(tok, block).ids, minlength=len(counts)).astype(np.int64).tobytes()
        )
        return of_block

    for part in transformed(files, counts_of):
        counts += np.frombuffer(part, np.int64)
    pieces = tok.facts.spec.pieces
    totals: Counter[bytes] = Counter()
    for id in np.flatnonzero(counts).tolist():
        if pieces.types[id] not in (PieceType.UNKNOWN, PieceType.CONTROL):
            totals[pieces.texts[id]] += int(counts[id])
    rows = sorted(totals.items(), key=lambda row: (-row[1], row[0]))
    yield b"".join(b"%s\t%d\n" % row for row in rows)


# --- spm_decode ------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[ \t\v\f\r]*([+-]?[0-9]+)[ \t\v\f\r]*")
_PLAIN = re.compile(rb"[0-9]{1,9}(?: [0-9]{1,9})*")
"""A line as spm_encode writes it."""


def decode(given: CommandLine) -> None:
    """Decode as the flags say."""
    flags = given.flags
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], [flags["model"], *files])
    tok = load_model(flags["model"], "decode")
    for name, values in (("input_format", ("piece", "id")), ("output_format", ("string",))):
        if flags[name] not in values:
            raise ValueError(f"--{name}: there is no {flags[name]!r}; give {' or '.join(values)}")
    lines = _Decoder(tok, extra_of(flags["extra_options"], tok), flags["input_format"] == "id")
    write(flags["output"], transformed(files, lines.of))
    dropped = sum(reader.dropped for reader in lines.left_out)
    if dropped and not flags["quiet"]:
        say(
            f"{counted(dropped, 'item')} of the input {'was' if dropped == 1 else 'were'} no 32-bit integer, "
            f"such as {lines.left_out[0].example!r}, and left out, as spm_decode does"
        )


class _Decoder:
    """Decodes blocks of lines."""

    def __init__(self, tok: Tokenizer, extra: Extra, reads_ids: bool):
        self.left_out: list[_Ids] = []
        """The readers that left something out. (A list, because several threads can add to it at once.)"""
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
            return None  # a piece without text is between two spaces, and only `_any` reads it
        else:
            ids, offsets, wrong = engine.read_pieces(data)
        return engine.decode_lines(ids, offsets) if wrong is None else None

    def _any(self, block: Block) -> bytes:
        """The texts of any lines, one by one."""
        ids = _Ids()
        lines = block.lines
        items: Iterable[list[Any]] = (
            map(ids.read, lines) if self._reads_ids else (line.split(b" ") for line in lines)
        )
        rows = [self._extra.around(row, self._table) if row else row for row in items]
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
        return _processor(self._tok)


class _Ids:
    """Reads lines of ids. Like spm_decode, it leaves out what is not an integer, but counts it."""

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
            elif item:  # (an empty item comes from a second space, so nothing is lost)
                self.dropped += 1
                self.example = self.example or item[:40].decode(errors="backslashreplace")
        return ids


# --- spm_normalize ---------------------------------------------------------------------------------

_BREAKS = re.compile("[\b\v\f\n\r]")
"""Characters that spm_normalize writes as a space in the comment of a rule."""


def normalize(given: CommandLine) -> None:
    """Normalize as the flags say."""
    flags = given.flags
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], [flags["model"], flags["normalization_rule_tsv"], *files])
    try:
        normalizer = _normalizer(flags)
        if flags["decompile"]:
            write(flags["output"], [b"".join(map(_rule, normalizer.decompile()))])
            return
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    lines = transformed(files, lambda block: b"\n".join([*normalizer.normalize(block.lines), b""]))
    write(flags["output"], lines)


def _normalizer(flags: Any) -> Any:
    source: dict[str, Any]
    if flags["model"]:
        source = {"model_proto": load(flags["model"]).to_bytes()}
    elif flags["normalization_rule_tsv"]:
        source = {"rule_tsv": flags["normalization_rule_tsv"]}
    elif flags["normalization_rule_name"]:
        source = {"rule_name": flags["normalization_rule_name"]}
    else:
        raise ValueError(
            "there are no rules; give --model, --normalization_rule_tsv or --normalization_rule_name"
        )
    if not flags["use_internal_normalization"]:
        source["add_dummy_prefix"] = source["escape_whitespaces"] = False
        source["remove_extra_whitespaces"] = flags["remove_extra_whitespaces"]
    with importing:
        from cpbpe.compat.sentencepiece import SentencePieceNormalizer
    return SentencePieceNormalizer(**source)


def _rule(rule: tuple[str, str]) -> bytes:
    """A rule as a line: code points, and the characters in a comment."""
    points = (" ".join(f"{ord(character):X}" for character in text) for text in rule)
    line = "\t".join([*points, f"# {rule[0]} => {rule[1]}"])
    return f"{_BREAKS.sub(' ', line)}\n".encode()


# --- spm_export_vocab ------------------------------------------------------------------------------


def export_vocab(given: CommandLine) -> None:
    """Write the pieces as the flags say."""
    flags = given.flags
    if given.files:
        raise ValueError(f"{given.files[0]!r} is one argument too many; the model is given with --model")
    check_output(flags["output"], [flags["model"]])
    pieces = load_model(flags["model"], "export_vocab").facts.spec.pieces
    if flags["output_format"] == "vocab":
        values = list(map(_score, pieces.numbers()))
    elif flags["output_format"] == "syms":
        values = list(map(str, range(len(pieces))))
    else:
        raise ValueError(f"--output_format: there is no {flags['output_format']!r}; give vocab or syms")
    rows = zip(pieces.texts, values, strict=True)
    lines = [b"%s\t%s\n" % (text, value.encode()) for text, value in rows]
    write(flags["output"], [b"".join(lines)])
    broken = sum(b"\n" in text or b"\t" in text for text in pieces.texts)
    if broken and not flags["quiet"]:
        say(
            f"{counted(broken, 'piece')} with tabs or newlines broke the lines, as in sentencepiece; cpbpe "
            f"inspect --export tsv writes a file that can be read again"
        )


def _score(score: float) -> str:
    """A score as a stream of C++ writes it: with six digits, and the sign even of NaN."""
    return "-nan" if isnan(score) and copysign(1, score) < 0 else f"{score:g}"


# --- The programs, and their flags -----------------------------------------------------------------

_ENCODE = Program(
    "encode",
    "Encodes lines, one line of pieces or ids for each line of text. Without files it reads the standard "
    "input.",
    "encode --model=FILE [--output_format=id] [FILE ...]",
    (
        Flag("model", "string", "", "the model"),
        Flag("output_format", "string", "piece", "piece, id, sample_piece or sample_id"),
        Flag("input", "string", "", "the file to encode; several are given as arguments, without a flag"),
        Flag("output", "string", "", "the file to write, instead of the standard output"),
        Flag(
            "extra_options",
            "string",
            "",
            "bos, eos, reverse and unk, with ':' between them, done in this order; unk writes <unk> for "
            "characters that have no piece",
        ),
        Flag("nbest_size", "int32", 10, "has no effect on BPE models, but must be at most 512"),
        Flag("alpha", "double", 0.5, "when sampling: the probability with which a merge is skipped"),
        Flag("random_seed", "uint32", NO_SEED, "when sampling: makes the result the same in every run"),
        Flag("generate_vocabulary", "bool", False, "write each piece and how often it occurred, instead"),
        Flag("vocabulary", "string", "", "", ignored=RETIRED),
        Flag("vocabulary_threshold", "int32", 0, "", ignored=RETIRED),
    ),
    encode,
    "nbest_piece and nbest_id are refused, as a BPE model has one segmentation only.\n",
)

_DECODE = Program(
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
    decode,
)

_NORMALIZE = Program(
    "normalize",
    "Normalizes lines, with the rules of a model, with named rules or with rules of a file. Without files "
    "it reads the standard input.",
    "normalize (--model=FILE | --normalization_rule_name=NAME) [FILE ...]",
    (
        Flag("model", "string", "", "the model"),
        Flag(
            "use_internal_normalization",
            "bool",
            False,
            "do all that happens to a text before it is cut into pieces: also write spaces as U+2581, and "
            "put one in front",
        ),
        Flag(
            "normalization_rule_name",
            "string",
            "",
            f"the name of rules: {', '.join(RULE_NAMES)}",
        ),
        Flag("normalization_rule_tsv", "string", "", "a file of rules"),
        Flag(
            "remove_extra_whitespaces",
            "bool",
            True,
            "drop spaces at the ends, and all but one of several",
        ),
        Flag("decompile", "bool", False, "write the rules as such a file, instead"),
        Flag("input", "string", "", "the file to normalize; several are given as arguments, without a flag"),
        Flag("output", "string", "", "the file to write, instead of the standard output"),
    ),
    normalize,
    "Of a model, of a file of rules and of a name, the first that is given counts.\n",
)

_EXPORT_VOCAB = Program(
    "export_vocab",
    "Writes the pieces of a model, one on each line.",
    "export_vocab --model=FILE [--output=FILE]",
    (
        Flag("output", "string", "", "the file to write, instead of the standard output"),
        Flag("model", "string", "", "the model"),
        Flag("output_format", "string", "vocab", "vocab (pieces and scores) or syms (pieces and ids)"),
    ),
    export_vocab,
    "Pieces that contain tabs or newlines break their lines. What 'cpbpe inspect MODEL\n"
    "--export tsv' writes can be read again.\n",
)

PROGRAMS = {program.name: program for program in (_ENCODE, _DECODE, _NORMALIZE, _EXPORT_VOCAB)}
"""The programs by their names."""
