"""``cpbpe spm encode``: what spm_encode does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

from cpbpe.cli.spm.extra_options import Extra, extra_of
from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import Block, blocks, check_output, files_of, transformed, write
from cpbpe.engine.lines import make_line_writer
from cpbpe.lazy import imported, kept, numpy
from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.loading import load
from cpbpe.tokenizer.tokenizer import Tokenizer

_FORMATS = ("piece", "id", "sample_piece", "sample_id", "nbest_piece", "nbest_id")
_NO_SEED = (1 << 32) - 1
_MAX_NBEST_SIZE = 512
_FOR_THREADS = 1 << 20
"""A block of more bytes than this is encoded by several threads, where one block comes after the other."""
_RETIRED = "sentencepiece 0.2.3 ignores it, too"

PROGRAM = Program(
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
        Flag("random_seed", "uint32", _NO_SEED, "when sampling: makes the result the same in every run"),
        Flag("generate_vocabulary", "bool", False, "write each piece and how often it occurred, instead"),
        Flag("vocabulary", "string", "", "", ignored=_RETIRED),
        Flag("vocabulary_threshold", "int32", 0, "", ignored=_RETIRED),
    ),
    "nbest_piece and nbest_id are refused, as a BPE model has one segmentation only.\n",
)


def run(given: Given) -> None:
    """Encode as the flags say."""
    flags = given.flags
    kind = flags["output_format"]
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], files)
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
    if kind.startswith("sample"):  # one after the other, so that a seed gives the same in every run
        lines = _samples(tok, flags, extra, kind == "sample_id")
        write(flags["output"], map(lines, blocks(files)))
    else:
        write(flags["output"], transformed(files, _Lines(tok, extra, kind == "id").of))


def load_model(path: str, program: str) -> Tokenizer:
    """The model of ``--model``."""
    if not path:
        raise ValueError(f"there is no model; give one: cpbpe spm {program} --model=my.model")
    return load(path)


def piece_table(tok: Tokenizer) -> list[bytes]:
    """The pieces as bytes, by id."""
    return list(tok.facts.spec.pieces.texts)


class _Lines:
    """Writes the ids or pieces of blocks."""

    def __init__(self, tok: Tokenizer, extra: Extra, ids: bool):
        self._tok = tok
        self._extra = extra
        self._table = [b"%d" % id for id in range(tok.vocab.piece_count)] if ids else piece_table(tok)
        self._unknown = None if ids else _unknown(tok)
        if self._unknown is not None and extra.unk_piece:
            # An unknown part is written as the name of unk, which the UNKNOWN piece need not have.
            self._table[self._unknown] = tok.facts.spec.special_pieces[0]
            self._unknown = None
        self._writer = make_line_writer(self._table, b" ", b"", b"\n")
        self._processor = _Processor(tok)

    def of(self, block: Block) -> bytes:
        """The lines of a block."""
        ids, offsets = encoded(self._tok, block)
        others = self._others(block, ids, offsets)
        if not (self._extra.front or self._extra.back or self._extra.reverse):
            return self._writer.write(ids, offsets, others)
        items: list[bytes] = list(map(self._table.__getitem__, ids.tolist()))
        for place, text in others:
            items[place] = text
        lines = [
            self._extra.around(items[begin:end], self._table) for begin, end in pairwise(offsets.tolist())
        ]
        return b"".join([b" ".join(line) + b"\n" for line in lines])

    def _others(self, block: Block, ids: Any, offsets: Any) -> list[tuple[int, bytes]]:
        """The parts that are unknown, which are copied from the text, and where they are."""
        if self._unknown is None:
            return []
        np = numpy()
        places = np.flatnonzero(ids == self._unknown)
        if not len(places):
            return []
        lines = block.lines
        others = []
        for row in np.unique(np.searchsorted(offsets, places, "right") - 1).tolist():
            begin = int(offsets[row])
            pieces = self._processor.calls.Encode(lines[row], return_type=bytes)
            others += [
                (begin + place, piece)
                for place, piece in enumerate(pieces)
                if ids[begin + place] == self._unknown
            ]
        return others


def encoded(tok: Tokenizer, block: Block) -> tuple[Any, Any]:
    """The ids of the lines of a block, and where each line begins, and the end."""
    np = numpy()
    threads = block.threads if len(block.data) > _FOR_THREADS else 1
    ids, offsets, empty = tok.facts.engine.encode_lines(block.data, threads)
    if len(empty):  # those have no ids, and are left out
        lengths = np.zeros(len(offsets) + len(empty), np.int64)
        present = np.ones(len(lengths), bool)
        present[empty + 1] = present[0] = False
        lengths[present] = np.diff(offsets)
        offsets = np.cumsum(lengths)
    return ids, offsets


def _unknown(tok: Tokenizer) -> int | None:
    """The id of unknown parts, if there can be any."""
    id = tok.facts.spec.pieces.types.find(PieceType.UNKNOWN)
    return None if id < 0 or tok.facts.spec.byte_fallback else id


class _Processor:
    """The same model with the calls of sentencepiece, loaded when it is needed."""

    def __init__(self, tok: Tokenizer):
        self._tok = tok

    @kept
    def calls(self) -> Any:
        """A SentencePieceProcessor."""
        module = imported("cpbpe.compat.sentencepiece")
        return module.SentencePieceProcessor(model_proto=self._tok.to_bytes())


def _samples(tok: Tokenizer, flags: Any, extra: Extra, ids: bool) -> Callable[[Block], bytes]:
    alpha = flags["alpha"]
    if not isfinite(alpha) or alpha < 0:
        raise ValueError(f"--alpha must be a number from 0 to 1, not {alpha}")
    if flags["nbest_size"] > _MAX_NBEST_SIZE:
        raise ValueError(f"--nbest_size must be at most {_MAX_NBEST_SIZE}, not {flags['nbest_size']}")
    if flags["random_seed"] != _NO_SEED:
        imported("cpbpe.compat.sentencepiece").SetRandomGeneratorSeed(flags["random_seed"])
    processor = _Processor(tok).calls
    table: Sequence[Any] = range(tok.vocab.piece_count) if ids else piece_table(tok)
    kind = int if ids else bytes

    def lines(block: Block) -> bytes:
        made = []
        for line in block.lines:
            items = processor.Encode(line, return_type=kind, enable_sampling=True, nbest_size=-1, alpha=alpha)
            items = extra.around(items, table)
            made.append(b" ".join(b"%d" % id for id in items) if ids else b" ".join(items))
        return b"".join([line + b"\n" for line in made])

    return lines


def _vocabulary(tok: Tokenizer, files: list[str]) -> Iterator[bytes]:
    """The pieces that occurred, the most frequent first, with their counts."""
    np = numpy()
    counts = np.zeros(tok.vocab.piece_count, np.int64)

    def counted(block: Block) -> bytes:
        found: bytes = np.bincount(encoded(tok, block)[0], minlength=len(counts)).astype(np.int64).tobytes()
        return found

    for part in transformed(files, counted):
        counts += np.frombuffer(part, np.int64)
    table = piece_table(tok)
    types = tok.facts.spec.pieces.types
    found: Counter[bytes] = Counter()
    for id in np.flatnonzero(counts).tolist():
        if types[id] not in (PieceType.UNKNOWN, PieceType.CONTROL):
            found[table[id]] += int(counts[id])
    rows = sorted(found.items(), key=lambda row: (-row[1], row[0]))
    yield b"".join(b"%s\t%d\n" % row for row in rows)
