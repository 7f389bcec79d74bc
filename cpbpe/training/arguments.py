"""The arguments of `cpbpe.train` and `WordCounts.build` that are not options of training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TypeVar

from cpbpe.checks import amount, checked_threads
from cpbpe.errors import TrainingError
from cpbpe.spelling import listed, named
from cpbpe.training.byte_options import BYTE_NAMES
from cpbpe.training.corpus import Corpus, Source
from cpbpe.training.counting import CountSetup
from cpbpe.training.options import NAMES, TrainOptions
from cpbpe.training.options_base import ARGUMENTS, MEANINGLESS, RENAMED

F = TypeVar("F", bound=Callable[..., Any])

_ONLY_THEIRS = {"model_type", *MEANINGLESS}
LEAST_MEMORY = 1 << 20
"""The smallest memory limit, in bytes."""


def checked_memory_limit(limit: Any) -> int | None:
    """A memory limit as a number of bytes; it may be given as a size such as "4GB".

    >>> checked_memory_limit("500MB"), checked_memory_limit("1.5 GiB"), checked_memory_limit(4e9)
    (500000000, 1610612736, 4000000000)
    """
    if limit is None:
        return None
    parsed = amount(limit)
    size = parsed[0] if parsed else None
    if size is None or size < LEAST_MEMORY:
        kind = TrainingError if isinstance(limit, (str, int, float)) else TypeError
        raise kind(
            f"{named('memory_limit')} must be a size such as 500MB or 4GB, or a number of bytes, and at "
            f"least 1 MiB; it cannot be {limit!r}"
        )
    return size


class ReadingOptions(NamedTuple):
    """How a corpus is read; `cpbpe.train` explains these arguments."""

    threads: int | None = None
    """How many threads count."""
    format: str | None = None
    """The format of files."""
    field: str = "text"
    """Where the text is in JSON Lines."""
    column: str | int | None = None
    """Where the text is in a table."""
    memory_limit: int | None = None
    """About how many bytes the counts may take in memory."""
    raw: bool = False
    """If True, paths are not patterns, a list of str holds paths, and files are not decompressed."""

    @classmethod
    def checked(
        cls, threads: Any, format: Any, field: Any, column: Any, memory_limit: Any, progress: Any
    ) -> ReadingOptions:
        """These options, and an error for values that would otherwise fail later, or be silently ignored."""
        if threads is not None:
            checked_threads(threads)
        if not isinstance(field, str):
            raise TypeError(f"{named('field')} must be a name (str), not {field!r}")
        if isinstance(column, bool) or not isinstance(column, (str, int, NoneType)):
            raise TypeError(f"{named('column')} must be a name (str) or a number, not {column!r}")
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise TypeError(f"{named('progress')} must be True, False, None or a function, not {progress!r}")
        return cls(threads, format, field, column, checked_memory_limit(memory_limit))

    def corpus(self, source: Source, setup: CountSetup) -> Corpus:
        """The source, ready to be read in this way."""
        return Corpus(
            source,
            setup.spec,
            split_lines=setup.split_lines,
            format=self.format,
            field=self.field,
            column=self.column,
            raw=self.raw,
        )


def from_sentencepiece(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the names of this package, and without those that mean nothing for BPE.

    >>> from_sentencepiece({"input": "a.txt,b.txt", "model_type": "bpe", "num_threads": 4})
    {'source': [PosixPath('a.txt'), PosixPath('b.txt')], 'threads': 4}
    """
    ignored = [name for name in options if name in MEANINGLESS]
    if ignored:
        warnings.warn(
            f"{listed(ignored)}: no effect on a BPE model, as in sentencepiece; ignored",
            stacklevel=3,
        )
    for theirs, ours in RENAMED.items():
        if theirs in options and ours in options:
            raise TypeError(f"{theirs} and {ours} are two names of one argument; give one of them")
    made = {RENAMED.get(name, name): value for name, value in options.items() if name not in ignored}
    paths = options.get("input")
    if isinstance(paths, (str, list, tuple)):
        made["source"] = [Path(path) for path in (paths.split(",") if isinstance(paths, str) else paths)]
    if made.get("format") == "":
        del made["format"]
    if str(made.get("model_type", "")).lower() == "bpe":
        del made["model_type"]
    return made


def takes_a_corpus(function: F) -> F:
    """A decorator for a function with an argument `source` and options.

    It takes sentencepiece's names for arguments, too. Other libraries name this argument `files` or `data`.
    For those names the error says that it is `source` here, instead of Python's "missing argument".
    """
    before = function.__code__.co_varnames.index("source")  # how many arguments come before it

    @wraps(function)
    def guided(*given: Any, **options: Any) -> Any:
        if not RENAMED.keys().isdisjoint(options) or not _ONLY_THEIRS.isdisjoint(options):
            options = from_sentencepiece(options)
        if len(given) == before and "source" not in options:
            TrainOptions.refuse_unknown(
                name for name in options if name not in ("preset", *NAMES, *BYTE_NAMES, *ARGUMENTS)
            )
        return function(*given, **options)

    return guided  # type: ignore[return-value]
