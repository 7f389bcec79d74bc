"""``cpbpe spm encode``: what spm_encode does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

from cpbpe.cli.spm.extra_options import Extra, extra_of
from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import batches, check_output, files_of, write
from cpbpe.lazy import imported, kept, numpy
from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.tokenizer import Tokenizer, load

if TYPE_CHECKING:
    from cpbpe.tokenizer.ragged import Ragged

_FORMATS = ("piece", "id", "sample_piece", "sample_id", "nbest_piece", "nbest_id")
_NO_SEED = (1 << 32) - 1
_MAX_NBEST_SIZE = 512
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
    if kind.startswith("sample"):
        lines = _samples(tok, flags, extra, kind == "sample_id")
    elif kind == "id":
        lines = _ids(tok, extra)
    else:
        lines = _pieces(tok, extra)
    write(flags["output"], (lines(batch) for batch in batches(files)))


def load_model(path: str, program: str) -> Tokenizer:
    """The model of ``--model``."""
    if not path:
        raise ValueError(f"there is no model; give one: cpbpe spm {program} --model=my.model")
    return load(path)


def piece_table(tok: Tokenizer) -> list[bytes]:
    """The pieces as bytes, by id."""
    return list(tok.facts.spec.pieces.texts)


def _joined(rows: Ragged, table: Sequence[bytes], extra: Extra) -> list[bytes]:
    """Lines of ids, written with the items of a table."""
    items: list[bytes] = list(map(table.__getitem__, rows.ids.tolist()))
    if extra == Extra():
        return [b" ".join(items[begin:end]) for begin, end in pairwise(rows.offsets.tolist())]
    spans = pairwise(rows.offsets.tolist())
    return [b" ".join(extra.around(items[begin:end], table)) for begin, end in spans]


def _ended(lines: list[bytes]) -> bytes:
    lines.append(b"")
    return b"\n".join(lines)


def _ids(tok: Tokenizer, extra: Extra) -> Callable[[list[bytes]], bytes]:
    table = [b"%d" % id for id in range(tok.vocab.piece_count)]
    return lambda batch: _ended(_joined(tok.encode_arrays(batch), table, extra))


def _pieces(tok: Tokenizer, extra: Extra) -> Callable[[list[bytes]], bytes]:
    table = piece_table(tok)
    unknown = _unknown(tok)
    processor = _Processor(tok)
    if unknown is not None and extra.unk_piece:  # the name of unk, which the UNKNOWN piece need not have
        table[unknown] = tok.facts.spec.special_pieces[0]

    def lines(batch: list[bytes]) -> bytes:
        rows = tok.encode_arrays(batch)
        made = _joined(rows, table, extra)
        if unknown is not None and not extra.unk_piece:  # an unknown part is copied from the text
            np = numpy()
            places = np.searchsorted(rows.offsets, np.flatnonzero(rows.ids == unknown), "right") - 1
            for place in np.unique(places).tolist():
                pieces = processor.calls.Encode(batch[place], return_type=bytes)
                made[place] = b" ".join(extra.around(pieces, table))
        return _ended(made)

    return lines


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


def _samples(tok: Tokenizer, flags: Any, extra: Extra, ids: bool) -> Callable[[list[bytes]], bytes]:
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

    def lines(batch: list[bytes]) -> bytes:
        made = []
        for line in batch:
            items = processor.Encode(line, return_type=kind, enable_sampling=True, nbest_size=-1, alpha=alpha)
            items = extra.around(items, table)
            made.append(b" ".join(b"%d" % id for id in items) if ids else b" ".join(items))
        return _ended(made)

    return lines


def _vocabulary(tok: Tokenizer, files: list[str]) -> Iterator[bytes]:
    """The pieces that occurred, the most frequent first, with their counts."""
    np = numpy()
    counts = np.zeros(tok.vocab.piece_count, np.int64)
    for batch in batches(files):
        counts += np.bincount(tok.encode_arrays(batch).ids, minlength=len(counts))
    table = piece_table(tok)
    types = tok.facts.spec.pieces.types
    found: Counter[bytes] = Counter()
    for id in np.flatnonzero(counts).tolist():
        if types[id] not in (PieceType.UNKNOWN, PieceType.CONTROL):
            found[table[id]] += int(counts[id])
    rows = sorted(found.items(), key=lambda row: (-row[1], row[0]))
    yield b"".join(b"%s\t%d\n" % row for row in rows)
