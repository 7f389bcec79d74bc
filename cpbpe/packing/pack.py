"""`cpbpe.pack`: documents to the token files of a trainer."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from cpbpe.checks import amount, threads_or_all
from cpbpe.corpus.find import FORMATS as SOURCE_FORMATS
from cpbpe.corpus.find import Hidden
from cpbpe.errors import CorpusError, room_for
from cpbpe.lazy import importing
from cpbpe.model.writing import HAS_LOCKS
from cpbpe.packing.formats import FORMATS
from cpbpe.packing.manifest import Manifest, Place
from cpbpe.packing.read import Read, Source, source_of
from cpbpe.packing.shards import TRAIN, VALIDATION, Format, Job, check_free
from cpbpe.packing.work import Encoder, Writer, work
from cpbpe.spelling import counted, given, named, sized
from cpbpe.tokenizer.options import ENCODE, EncodeOptions, Option, check_names, described
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.progress import Display, ProgressOption

if TYPE_CHECKING:
    from typing_extensions import Unpack

Paths = str | os.PathLike[str]


class PackOptions(EncodeOptions, total=False):
    """The options of every function that packs. `PACK` says what each means."""

    to: str
    dtype: str
    shard_size: int | str | None
    shuffle_seed: int | None
    validation: float
    validation_seed: int
    threads: int | None
    progress: ProgressOption


PACK = {
    "to": Option(
        "npy", (), "str", '"npy", "megatron", "nanogpt", "datatrove", "dolma", "mds", "parquet" or "arrow"'
    ),
    "dtype": Option(
        "auto",
        (),
        "str",
        'the type of ids, "uint16", "uint32" or "int32"; "auto" is the one that tools of the format choose',
    ),
    "shard_size": Option(
        None,
        (),
        "int | str | None",
        'the most that a shard holds, in tokens (100_000_000, "100M") or bytes of ids ("500MB"). None: as '
        "usual for the format, which is a single shard for most",
    ),
    "shuffle_seed": Option(
        None, (), "int | None", "put the documents into an order that this number decides"
    ),
    "validation": Option(
        0.0,
        (),
        "float",
        "the share of documents that go into a part of their own, chosen by `validation_seed`",
    ),
    "validation_seed": Option(0, (), "int", "what decides which documents these are"),
    "threads": Option(None, (), "int | None", "how many threads encode; None: one for each processor"),
    "progress": Option(
        None,
        (),
        "bool | Callable | None",
        "True for a bar, False for nothing, or a function; None: a bar on a terminal",
    ),
}
"""The options of packing that are not those of encoding."""


@described({**PACK, **ENCODE})
def pack(
    tokenizer: Tokenizer,
    source: Paths | Sequence[os.PathLike[str]] | Iterable[str | bytes | None],
    out: Paths,
    *,
    format: str | None = None,
    field: str = "text",
    column: str | int | None = None,
    whole: bool = False,
    **options: Unpack[PackOptions],
) -> PackReport:
    """Encode documents, and write their ids to files as a trainer reads them.

    `source` is a path, a list of Path objects, or an iterable of texts. `out` is a folder, or a prefix of
    names if it ends with "-" or "_". A run that was interrupted, in whatever way, is continued by the same
    call; the files are those of an undisturbed run.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> report = cpbpe.pack(tok, ["Hi", "Hello world", ""], "packed", add_eos=True)
    >>> report.documents, report.tokens, report.skipped["empty"]
    (2, 5, 1)
    >>> cpbpe.PackedTokens("packed")[1]
    array([22557,  1526,     2], dtype=uint16)

    `format`, `field`, `column` and `whole` say how files are read.
    """
    if format is not None and format not in SOURCE_FORMATS:
        raise CorpusError(f"{named('format')} must be one of {', '.join(SOURCE_FORMATS)}, not {format!r}")
    reading: dict[str, Any] = {"format": format, "field": field, "column": column, "whole": whole}
    return pack_source(
        tokenizer, lambda hidden: source_of(source, hidden=hidden, **reading), out, reading, options
    )


def pack_source(
    tokenizer: Tokenizer,
    open_source: Callable[[Hidden], Source],
    out: Paths,
    reading: dict[str, Any],
    options: PackOptions,
) -> PackReport:
    """Encode the documents of a source, and write their ids to files.

    `open_source` is called once the other arguments have been checked, with a function that says whether this
    run has written a file. `reading`: the arguments that decide how the source is read, for the manifest.
    """
    begun = time.perf_counter()
    # 1. The arguments.
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"pack() takes a Tokenizer first, not {type(tokenizer).__name__}; cpbpe.load(path) gives one"
        )
    asked: Any = options
    how: dict[str, Any] = {name: asked.get(name, option.default) for name, option in PACK.items()}
    if not isinstance(how["to"], str) or how["to"] not in FORMATS:
        raise ValueError(f"{named('to')} must be one of {', '.join(FORMATS)}, not {how['to']!r}")
    place, kind = Place(out), FORMATS[how["to"]]
    encoding = _checked_options(tokenizer, {name: asked[name] for name in asked if name not in PACK})
    size = checked_shard_size(kind.usual_size if how["shard_size"] is None else how["shard_size"])
    dtype = _dtype(kind, how["dtype"], tokenizer.vocab_size)
    item_bytes = np.dtype(dtype).itemsize
    threads = threads_or_all(how["threads"])
    kind.check(None if size is None else size.tokens(item_bytes) * item_bytes)
    share = _share(how["validation"])
    split_seed = _seed("validation_seed", how["validation_seed"])
    if split_seed and not share:
        raise ValueError(
            f"{named('validation_seed')} means nothing without {named('validation')}; give both, or neither"
        )
    seed = None if how["shuffle_seed"] is None else _seed("shuffle_seed", how["shuffle_seed"])
    # 2. An earlier run, if there is one. What it wrote into a folder of the corpus is not read as a
    #    part of the corpus.
    before = Manifest.load(place) if place.exists() else None
    shards, sources = (before.shards, before.sources) if before else ([], [])
    own = {
        name
        for split in ((TRAIN, VALIDATION) if share else (TRAIN,))
        for number in (range(len(shards) + 1) if before is not None else ())
        for name in kind.names(split, None if size is None else number)
    }
    known = {facts["path"] for facts in sources}
    source = open_source(lambda path: path not in known and place.owns(path, own))
    manifest = Manifest(
        options={
            "to": kind.name,
            "dtype": dtype,
            "shard_size": None if size is None else str(size),
            "shuffle_seed": seed,
            "validation": share,
            "validation_seed": split_seed,
            **reading,
            **{name: _plain(value) for name, value in sorted(encoding.items())},
        },
        tokenizer={"fingerprint": tokenizer.fingerprint, "pieces": tokenizer.vocab_size},
        sources=source.facts,
    )
    if before is not None:
        before.check_same(manifest, place)
        before.check_files(place)
        manifest = before
        if manifest.summary is not None:
            source.check_same(Read(**{member.name: manifest.summary[member.name] for member in fields(Read)}))
            _remove(place)  # the scratch folder is still there if the run was killed at its very end
            return _report(place, manifest, time.perf_counter() - begun, 0, resumed=False, was_complete=True)
    # 3. The work.
    with ExitStack() as stack:
        display = Display(how["progress"])
        job = Job(
            place=place,
            manifest=manifest,
            source=source,
            format=kind,
            most_tokens=None if size is None else size.tokens(item_bytes),
            show=display.update,
        )
        # (If names are taken, the first shard of a split shows it, before any work is done.)
        for split in job.splits if before is None else ():
            for name in kind.names(split, None if size is None else 0):
                check_free(place.path(name))
        try:
            os.makedirs(place.scratch(), exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"{error.strerror}; choose another folder for the result", place.out
            ) from None
        stack.enter_context(_locked(place))
        if (Manifest.load(place) if place.exists() else None) != before:
            raise BlockingIOError(f"another process has packed into {place.out!r} meanwhile; call it again")
        stack.callback(_remove_unless_begun, place)
        stack.enter_context(display)
        with room_for(place.out):
            writer = work(job, Encoder(tokenizer, threads, encoding))
            _finish(job, writer)
        tokens = writer.counts.tokens - writer.earlier_tokens
    seconds = time.perf_counter() - begun
    return _report(place, manifest, seconds, tokens, resumed=before is not None, was_complete=False)


def _finish(job: Job, writer: Writer) -> None:
    """Record in the manifest that the run is complete, and remove the scratch folder."""
    read, counts, manifest, place = writer.read, writer.counts, job.manifest, job.place
    if not counts.documents:
        skipped = read.empty + read.absent + counts.without_tokens
        why = f": all {skipped:,} are empty" if skipped else ""
        _remove(place)
        with suppress(OSError):
            os.unlink(place.manifest)
        raise CorpusError(f"there is no document to pack{why}")
    manifest.summary = {**asdict(read), **asdict(counts), "warnings": job.source.warnings()}
    manifest.state = None
    manifest.save(place)
    _remove(place)


def _remove(place: Place) -> None:
    shutil.rmtree(place.scratch(), ignore_errors=True)


def _remove_unless_begun(place: Place) -> None:
    """Remove the scratch folder of a run that failed before there was anything to continue from."""
    if not place.exists():
        _remove(place)


@contextmanager
def _locked(place: Place) -> Iterator[None]:
    """Lock the place against other processes."""
    with importing:
        locks: Any = import_module("fcntl" if HAS_LOCKS else "msvcrt")
    try:
        with open(place.scratch("lock"), "ab") as file:
            try:
                if HAS_LOCKS:
                    locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
                else:
                    locks.locking(file.fileno(), locks.LK_NBLCK, 1)
            except (BlockingIOError, PermissionError):
                raise BlockingIOError(
                    f"another process is packing into {place.out!r} at this moment; wait for it, or choose "
                    f"another folder"
                ) from None
            except OSError:  # some network file systems have no locks
                pass
            yield
    finally:
        if not HAS_LOCKS:  # (Windows deletes no open file, so a lock that another process holds stays.)
            with suppress(OSError):
                os.unlink(place.scratch("lock"))
                os.rmdir(place.scratch())


# --- Arguments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShardSize:
    """The most that a shard holds, unless a single document has more."""

    number: int
    """How many tokens or bytes."""
    in_bytes: bool
    """Whether these are bytes of ids, not tokens."""

    def tokens(self, item_bytes: int) -> int:
        """The most tokens that a shard holds, if the id of each takes this many bytes."""
        return max(1, self.number // item_bytes) if self.in_bytes else self.number

    def __str__(self) -> str:
        return f"{self.number} {'bytes' if self.in_bytes else 'tokens'}"


def checked_shard_size(size: Any) -> ShardSize | None:
    """The size that a user means: in bytes if it ends with a B, otherwise in tokens.

    >>> print(checked_shard_size("500MB"), checked_shard_size("100M"), checked_shard_size(1 << 20), sep=", ")
    500000000 bytes, 100000000 tokens, 1048576 tokens
    """
    if size is None:
        return None
    parsed = amount(size.lower().strip().removesuffix("tokens") if isinstance(size, str) else size)
    if parsed is None or parsed[0] < 1:
        kind = ValueError if isinstance(size, (str, int, float)) else TypeError
        raise kind(
            f"{named('shard_size')} must be a number of tokens, such as 100M, or a size such as 500MB; it "
            f"cannot be {size!r}"
        )
    return ShardSize(*parsed)


def _dtype(kind: Format, dtype: Any, vocab_size: int) -> str:
    if dtype == "auto":
        return kind.dtype(vocab_size)
    if dtype not in kind.dtypes:
        raise ValueError(
            f"{named('dtype')} must be auto or one of {', '.join(kind.dtypes)} for "
            f"{given('to', kind.name)}, not {dtype!r}"
        )
    if dtype == "uint16" and vocab_size > 1 << 16:
        raise ValueError(
            f"{given('dtype', 'uint16')} has room for 65,536 ids, and the model has {vocab_size:,}; give "
            f"{given('dtype', kind.dtypes[-1])}, or leave it out"
        )
    return str(dtype)


def _share(validation: Any) -> float:
    if isinstance(validation, (str, bytes)) or not hasattr(validation, "__float__"):
        raise TypeError(f"{named('validation')} must be a number from 0 to less than 1, not {validation!r}")
    if not 0 <= float(validation) < 1:
        raise ValueError(
            f"{named('validation')} is the share of documents, from 0 to less than 1, such as 0.01; it "
            f"cannot be {validation!r}"
        )
    return float(validation)


def _seed(name: str, seed: Any) -> int:
    try:
        value = index(seed)
    except TypeError:
        raise TypeError(f"{named(name)} must be an integer, not {seed!r}") from None
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{named(name)} must be 0 to 2**64 - 1, not {value}")
    return value


def _checked_options(tokenizer: Tokenizer, options: Any) -> dict[str, Any]:
    """The options of encoding that differ from what the tokenizer does without any, checked."""
    check_names(options, "pack", ENCODE)
    tokenizer.encode_arrays([b""], **options)  # raises errors about their values
    defaults = {name: option.default for name, option in ENCODE.items()}
    usual = {**defaults, **tokenizer.bound_options}
    changed = {name: value for name, value in options.items() if value != usual[name]}
    used = {**tokenizer.bound_options, **options}
    if used.get("alpha") and used.get("seed") is None:
        raise ValueError(
            f"{named('alpha')} needs a {named('seed')} here: a run that is continued must give the same ids"
        )
    if used.get("alpha"):
        changed["seed"] = index(used["seed"])
    return changed


def _plain(value: Any) -> Any:
    """The value of an option as it is after a round trip through JSON."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool) or hasattr(value, "__index__"):
        return value if isinstance(value, bool) else index(value)
    return float(value) if hasattr(value, "__float__") else sorted(value)


# --- The report ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackReport:
    """What `cpbpe.pack` returns."""

    out: str
    """The folder, or the prefix."""
    to: str
    """The format."""
    dtype: str
    """The type of ids."""
    documents: int
    """All documents that were written."""
    tokens: int
    """All their tokens."""
    splits: dict[str, dict[str, int]]
    """Of "train", and of "val" if there is one: documents, tokens and shards."""
    text_bytes: int
    """The text of all documents, in UTF-8."""
    byte_tokens: int
    """Tokens of byte fallback: single bytes of characters that no piece contains."""
    unknown_tokens: int
    """Tokens for characters that have neither a piece nor byte fallback."""
    skipped: dict[str, int]
    """Documents that were left out: "empty", "absent" (null, or an empty line between records) or
    "without_tokens"."""
    files: list[str]
    """The files that were written."""
    seconds: float
    """How long this call took."""
    new_tokens: int
    """How many tokens this call has encoded: all of them, unless it continued an earlier run."""
    resumed: bool = False
    """Whether this call continued an earlier run."""
    was_complete: bool = False
    """Whether there was nothing left to do."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about the files that were read."""

    @property
    def bytes_per_token(self) -> float:
        """How much text a token stands for."""
        return self.text_bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float:
        """How fast this call was."""
        return self.new_tokens / self.seconds if self.seconds else 0.0

    @property
    def byte_share(self) -> float:
        """The share of byte fallback among the tokens."""
        return self.byte_tokens / self.tokens if self.tokens else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All values."""
        shares = {
            name: getattr(self, name) for name in ("bytes_per_token", "tokens_per_second", "byte_share")
        }
        return {**asdict(self), **shares}

    def to_json(self, indent: int | None = None) -> str:
        """All values as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def __str__(self) -> str:
        lines = [f"documents     {self.documents:,}, {sized(self.text_bytes)} of text"]
        for why, number in self.skipped.items():
            if number:
                lines.append(f"skipped       {number:,}: {_REASONS[why]}")
        lines.append(f"tokens        {self.tokens:,}, {self.bytes_per_token:.3f} bytes per token")
        if self.byte_tokens:
            lines.append(f"byte fallback {self.byte_tokens:,} tokens, {self.byte_share:.3%} of all")
        if self.unknown_tokens:
            lines.append(f"unknown       {self.unknown_tokens:,} tokens")
        for split, facts in self.splits.items():
            numbers = (counted(facts[f"{noun}s"], noun) for noun in ("document", "token", "shard"))
            lines.append(f"{split:<13} {', '.join(numbers)}")
        speed = f"{self.seconds:.2f} s, {self.tokens_per_second:,.0f} tokens per second"
        lines.append(f"time          {speed}{', after going on with an earlier run' if self.resumed else ''}")
        lines += [f"note          {warning}" for warning in self.warnings]
        count = len(self.files)
        first = ", ".join(self.files[:2]) + (f", ... ({count:,} files)" if count > 2 else "")
        return "\n".join([*lines, f"written       {first}"])


_COPIED = ("documents", "tokens", "text_bytes", "byte_tokens", "unknown_tokens", "warnings")
"""What the report copies from the summary in the manifest."""
_REASONS = {
    "empty": "empty",
    "absent": "null, or an empty line between records",
    "without_tokens": "text without tokens",
}


def _report(
    place: Place, manifest: Manifest, seconds: float, new_tokens: int, *, resumed: bool, was_complete: bool
) -> PackReport:
    summary = manifest.summary or {}
    splits: dict[str, dict[str, int]] = {}
    for shard in manifest.shards:
        facts = splits.setdefault(shard["split"], {"documents": 0, "tokens": 0, "shards": 0})
        facts["documents"] += shard["documents"]
        facts["tokens"] += shard["tokens"]
        facts["shards"] += 1
    return PackReport(
        out=place.out,
        to=manifest.options["to"],
        dtype=manifest.options["dtype"],
        splits=dict(sorted(splits.items())),
        skipped={name: summary[name] for name in _REASONS},
        files=[place.path(file["name"]) for file in manifest.files()],
        seconds=seconds,
        new_tokens=new_tokens,
        resumed=resumed,
        was_complete=was_complete,
        **{name: summary[name] for name in _COPIED},
    )
