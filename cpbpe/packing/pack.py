"""`cpbpe.pack`: documents to the token files of a trainer."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from cpbpe.checks import checked_threads
from cpbpe.corpus.find import FORMATS as SOURCE_FORMATS
from cpbpe.errors import CorpusError
from cpbpe.lazy import numpy
from cpbpe.model.writing import HAS_LOCKS
from cpbpe.packing.counting import Counter, Counts
from cpbpe.packing.encode import Encoder
from cpbpe.packing.formats.protocol import Format
from cpbpe.packing.formats.table import FORMATS
from cpbpe.packing.manifest import Manifest
from cpbpe.packing.place import Place
from cpbpe.packing.read import Read, Source, source_of
from cpbpe.packing.report import PackReport
from cpbpe.packing.shards import Plan, check_free
from cpbpe.packing.sizes import ShardSize
from cpbpe.packing.sizes import shard_size as size_of_shards
from cpbpe.packing.work import Job, StoppedError, work
from cpbpe.spelling import given, named
from cpbpe.tokenizer.options import ENCODE, EncodeOptions, check_names, described
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.progress import Display, ProgressOption

if TYPE_CHECKING:
    from typing_extensions import Unpack

Paths = str | os.PathLike[str]


@described(ENCODE)
def pack(
    tokenizer: Tokenizer,
    source: Paths | Sequence[os.PathLike[str]] | Iterable[str | bytes | None],
    out: Paths,
    *,
    to: str = "npy",
    dtype: str = "auto",
    shard_size: int | str | None = None,
    shuffle_seed: int | None = None,
    validation: float = 0.0,
    validation_seed: int = 0,
    threads: int | None = None,
    format: str | None = None,
    field: str = "text",
    column: str | int | None = None,
    whole: bool = False,
    progress: ProgressOption = None,
    **options: Unpack[EncodeOptions],
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

    - `to`: "npy", "megatron", "nanogpt", "datatrove", "dolma", "mds", "parquet" or "arrow".
    - `dtype`: the type of ids, "uint16", "uint32" or "int32"; "auto" is the one that the format's own tools
      choose.
    - `shard_size`: the most that a shard holds, in tokens (100_000_000, "100M") or bytes of ids ("500MB").
    None:
      as usual for the format, which is a single shard for most.
    - `shuffle_seed`: put the documents into an order that this number decides.
    - `validation`: the share of documents that go into a part of their own, chosen by `validation_seed`.
    - `format`, `field`, `column`, `whole`: how files are read.
    - `progress`: True for a bar, False for nothing, or a function; None: a bar on a terminal.
    """
    if format is not None and format not in SOURCE_FORMATS:
        raise CorpusError(f"{named('format')} must be one of {', '.join(SOURCE_FORMATS)}, not {format!r}")
    reading: dict[str, Any] = {"format": format, "field": field, "column": column, "whole": whole}
    return pack_source(
        tokenizer,
        lambda: source_of(source, **reading),
        out,
        reading=reading,
        to=to,
        dtype=dtype,
        shard_size=shard_size,
        shuffle_seed=shuffle_seed,
        validation=validation,
        validation_seed=validation_seed,
        threads=threads,
        progress=progress,
        options=options,
    )


def pack_source(
    tokenizer: Tokenizer,
    open_source: Callable[[], Source],
    out: Paths,
    *,
    reading: dict[str, Any],
    to: str,
    dtype: str,
    shard_size: int | str | None,
    shuffle_seed: int | None,
    validation: float,
    validation_seed: int,
    threads: int | None,
    progress: ProgressOption,
    options: EncodeOptions,
) -> PackReport:
    """Encode the documents of a source, and write their ids to files.

    `open_source` is called when the other arguments are known to be right. `reading`: what decides how the
    source is read, for the manifest. Everything else is as in `pack`.
    """
    begun = time.perf_counter()
    # 1. The arguments.
    check_tokenizer(tokenizer)
    kind = _format(to)
    place = Place(out)
    encoding = _checked_options(tokenizer, options)
    size = _shard_size(kind, shard_size)
    stored = _dtype(kind, dtype, tokenizer.vocab_size)
    if threads is not None:
        checked_threads(threads)
    item = numpy().dtype(stored).itemsize
    kind.check(stored, None if size is None else size.tokens(item) * item)
    share, split_seed = _share(validation), _seed("validation_seed", validation_seed)
    seed = None if shuffle_seed is None else _seed("shuffle_seed", shuffle_seed)
    texts = open_source()
    # 2. What there is already.
    manifest = Manifest(
        options={
            "to": to,
            "dtype": stored,
            "shard_size": None if size is None else str(size),
            "shuffle_seed": seed,
            "validation": share,
            "validation_seed": split_seed,
            **reading,
            **{name: _plain(value) for name, value in sorted(encoding.items())},
        },
        tokenizer={"fingerprint": tokenizer.fingerprint, "pieces": tokenizer.vocab_size},
        sources=texts.facts,
    )
    resumed = place.exists()
    if resumed:
        before = Manifest.load(place)
        before.check_same(manifest, place)
        before.check_files(place)
        manifest = before
        if manifest.summary is not None:
            _remove(place)  # it is still there if the run was killed at its very end
            return _report(place, manifest, time.perf_counter() - begun, 0, resumed=False, was_complete=True)
    # 3. The work.
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise StoppedError

    plan = Plan(
        place=place,
        format=kind,
        dtype=stored,
        most_tokens=None if size is None else size.tokens(item),
        validation=share,
        validation_seed=split_seed,
        names=texts.names,
        replaces=resumed,
        check=check,
    )
    with ExitStack() as stack:
        check_free(plan)
        try:
            os.makedirs(place.scratch(), exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"{error.strerror}; choose another folder for the result", place.out
            ) from None
        stack.callback(_lock(place))
        stack.callback(_remove_unless_begun, place)
        display = stack.enter_context(Display(progress))
        encoder = Encoder(tokenizer, threads, encoding)
        job = Job(plan, manifest, texts, encoder, Counter(tokenizer), seed, stop, display.update)
        writer = work(job)
        _finish(manifest, place, writer.read, writer.counts, texts)
        tokens = writer.counts.tokens - writer.earlier_tokens
    return _report(place, manifest, time.perf_counter() - begun, tokens, resumed=resumed, was_complete=False)


def _finish(manifest: Manifest, place: Place, read: Read, counts: Counts, source: Source) -> None:
    """Say that all is done, and remove what is not needed any more."""
    if not counts.documents:
        skipped = read.empty + read.absent + counts.without_tokens
        why = f": all {skipped:,} are empty" if skipped else ""
        _remove(place)
        with suppress(OSError):
            os.unlink(place.manifest)
        raise CorpusError(f"there is no document to pack{why}")
    manifest.summary = {**asdict(read), **asdict(counts), "warnings": source.warnings()}
    manifest.state = None
    manifest.save(place)
    _remove(place)


def _remove(place: Place) -> None:
    shutil.rmtree(place.scratch(), ignore_errors=True)


def _remove_unless_begun(place: Place) -> None:
    """Leave nothing of a run that failed before it had anything to go on from."""
    if not place.exists():
        _remove(place)


def _lock(place: Place) -> Any:
    """Lock the place against other processes until the function that is returned is called."""
    if not HAS_LOCKS:
        return lambda: None
    import fcntl

    folder = os.open(place.scratch(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        raise BlockingIOError(
            f"another process is packing into {place.out!r} at this moment; wait for it, or choose another "
            "folder"
        ) from None
    except OSError:  # some network file systems have no locks
        pass
    return lambda: os.close(folder)


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
        documents=summary["documents"],
        tokens=summary["tokens"],
        splits=dict(sorted(splits.items())),
        text_bytes=summary["text_bytes"],
        byte_tokens=summary["byte_tokens"],
        unknown_tokens=summary["unknown_tokens"],
        skipped={name: summary[name] for name in ("empty", "absent", "without_tokens")},
        files=[place.path(file["name"]) for file in manifest.files()],
        seconds=seconds,
        new_tokens=new_tokens,
        resumed=resumed,
        was_complete=was_complete,
        warnings=summary["warnings"],
    )


# --- Arguments ------------------------------------------------------------------------------------


def check_tokenizer(tokenizer: Any) -> None:
    """Raise an error if this is none."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"pack() takes a Tokenizer first, not {type(tokenizer).__name__}; cpbpe.load(path) gives one"
        )


def _format(to: Any) -> Format:
    if not isinstance(to, str) or to not in FORMATS:
        raise ValueError(f"{named('to')} must be one of {', '.join(FORMATS)}, not {to!r}")
    return FORMATS[to]


def _shard_size(kind: Format, value: int | str | None) -> ShardSize | None:
    value = kind.usual_size if value is None else value
    return None if value is None else size_of_shards(value)


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
        raise TypeError(f"{named('validation')} must be a number from 0 to 1, not {validation!r}")
    if not 0 <= float(validation) < 1:
        raise ValueError(
            f"{named('validation')} is the share of documents, from 0 to less than 1, such as 0.01; it "
            f"cannot be {validation!r}"
        )
    return float(validation)


def _seed(name: str, seed: SupportsIndex) -> int:
    try:
        value = index(seed)
    except TypeError:
        raise TypeError(f"{named(name)} must be an integer, not {seed!r}") from None
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{named(name)} must be 0 to 2**64 - 1, not {value}")
    return value


def _checked_options(tokenizer: Tokenizer, options: Any) -> dict[str, Any]:
    """The options of encoding that do something, checked."""
    check_names(options, "pack", ENCODE)
    tokenizer.encode_arrays([b""], **options)  # whatever is wrong with their values
    found = {name: value for name, value in options.items() if value != ENCODE[name].default}
    bound = {**tokenizer.bound_options, **options}
    if bound.get("alpha") and bound.get("seed") is None:
        raise ValueError(
            f"{named('alpha')} needs a {named('seed')} here: a run that is continued must give the same ids"
        )
    if bound.get("alpha"):
        found["seed"] = index(bound["seed"])
    return found


def _plain(value: Any) -> Any:
    """The value of an option as JSON gives it back."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool) or hasattr(value, "__index__"):
        return value if isinstance(value, bool) else index(value)
    return float(value) if hasattr(value, "__float__") else sorted(value)
