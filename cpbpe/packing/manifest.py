"""The paths of the files of a run, and its manifest: what was packed, how, and into which shards.

Thanks to the manifest, runs can be compared and resumed. It is replaced, in one step, whenever a shard is
complete. Between two shards, a smaller file in the scratch folder records the progress.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cpbpe.corpus.find import MANIFEST
from cpbpe.errors import CorpusError
from cpbpe.model.writing import write_all
from cpbpe.spelling import counted, named, shown
from cpbpe.version import __version__

LAYOUT = 1
"""The version of the manifest."""
STATE = 2
"""The version of states. States of another version are not used: incomplete shards are made again."""
_SCRATCH = ".cpbpe-pack"
"""The scratch folder, for files that are not complete yet. It is removed when the run has ended."""
_STATE_FILE = "state.json"


@dataclass(frozen=True)
class _OrNull:
    """A shape for `_check`, or null."""

    shape: Any


_READ = dict.fromkeys(("file", "record", "number", "text_bytes", "empty", "absent", "last_crc"), int)
_COUNTS = dict.fromkeys(("documents", "tokens", "byte_tokens", "unknown_tokens", "without_tokens"), int)
_FILE = {"name": str, "size": int, "crc32": str}
_PLACE = _OrNull((int, int))
_SPOOL = (int, int, int, int, _PLACE, _PLACE)
_STATE = {
    "version": int,
    "read": _READ,
    "counts": _COUNTS,
    "ordering": _PLACE,
    "buckets": _OrNull([_SPOOL]),
    "splits": {str: (int, int, int, _SPOOL)},
}
"""The shape of a state; `work.py` says what each member means."""
_MANIFEST = {
    "options": {"to": str, "dtype": {"uint16", "uint32", "int32"}, str: object},
    "tokenizer": {"fingerprint": str, "pieces": int},
    "sources": [{"path": _OrNull(str), str: object}],
    "shards": [
        {
            "split": {"train", "val"},
            **dict.fromkeys(("number", "documents", "tokens"), int),
            "sequence": (int, int),
            **dict.fromkeys(("first", "last"), _PLACE),
            "files": [_FILE],
        }
    ],
    "state": _OrNull({"version": int, str: object}),
    "indexes": [_FILE],
    "summary": _OrNull({**_READ, **_COUNTS, "warnings": [str]}),
    "cpbpe": str,
    "layout": int,
}
"""The shape of a manifest."""


class Place:
    """The paths of a run. Users give a folder, or a prefix of names, which ends with "-" or "_".

    >>> Place("tokens").path("train.bin"), Place("data/wiki_").path("train.bin")
    ('tokens/train.bin', 'data/wiki_train.bin')
    """

    def __init__(self, out: str | os.PathLike[str]):
        self.out = os.fspath(out)
        """The folder or prefix, as the user gave it."""
        if not isinstance(self.out, str) or not self.out or "\0" in self.out:
            raise TypeError(f"{named('out')} must be the path of a folder, not {out!r}")
        if self.out == "-":
            raise ValueError(f"{named('out')} is a folder; several files cannot be written to '-'")
        self._base = self.out if self.out.endswith(("-", "_")) else os.path.join(self.out, "")

    @property
    def manifest(self) -> str:
        """The path of the manifest."""
        return self.path(MANIFEST)

    def path(self, name: str) -> str:
        """The path of a file; `name` may have a folder in it."""
        return self._base + name

    def scratch(self, name: str = "") -> str:
        """The path of a file that is not complete yet."""
        return os.path.join(self._base + _SCRATCH, name)

    def absolute(self) -> Place:
        """The same place, wherever the process goes."""
        folder, prefix = os.path.split(self._base)
        return Place(os.path.join(os.path.abspath(folder), prefix))

    def owns(self, path: str, names: Collection[str]) -> bool:
        """Whether a file is one of these, or the manifest, or in the scratch folder."""
        folder, prefix = os.path.split(self._base)
        base, real = os.path.join(os.path.realpath(folder), prefix), os.path.realpath(path)
        name = real[len(base) :].replace(os.sep, "/")
        # (A process that was killed may leave a temporary file, whose name goes on with a dot.)
        kept = f"{name}/".startswith((f"{MANIFEST}/", f"{MANIFEST}.", f"{_SCRATCH}/"))
        return real.startswith(base) and (name in names or kept)

    def exists(self) -> bool:
        """Whether a run has begun here."""
        return os.path.isfile(self.manifest)


@dataclass
class Manifest:
    """The manifest of a run, which is stored as JSON."""

    options: dict[str, Any]
    """Everything besides the tokenizer and the sources that decides which bytes are written."""
    tokenizer: dict[str, Any]
    """Its fingerprint, and its size for people."""
    sources: list[dict[str, Any]]
    """What is known about each file; `path` is None for texts from an iterable."""
    shards: list[dict[str, Any]] = field(default_factory=list)
    """The shards that are complete, with their files."""
    state: dict[str, Any] | None = None
    """The state of the run when the last of these shards was complete."""
    indexes: list[dict[str, Any]] = field(default_factory=list)
    """Files that list the shards, for formats that have one."""
    summary: dict[str, Any] | None = None
    """The totals of the run; None until it has ended."""
    cpbpe: str = __version__
    """The version that began the run."""
    layout: int = LAYOUT

    @classmethod
    def load(cls, place: Place) -> Manifest:
        """Read the manifest at a place."""
        try:
            with open(place.manifest, "rb") as file:
                values = json.load(file)
            if not isinstance(values, dict) or "layout" not in values:
                raise ValueError("it is something else")
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"{place.manifest}: is not a manifest of cpbpe pack ({error}); choose another folder, or "
                f"remove it"
            ) from None
        if values["layout"] != LAYOUT:
            raise CorpusError(
                f"{place.manifest}: was written by cpbpe {values.get('cpbpe')}, in another layout; choose "
                f"another folder"
            )
        try:
            _check(values, _MANIFEST, "")
            if values["summary"] is not None and not values["shards"]:
                raise ValueError("shards is empty")
            if not all(shard["files"] for shard in values["shards"]):
                raise ValueError("a shard has no files")
            new = cls(**values)
            if new.state is not None and new.state["version"] == STATE:
                new._check_state(new.state)
        except ValueError as error:
            raise damaged(place, str(error)) from None
        return new

    def save(self, place: Place) -> None:
        """Write the manifest, replacing an older one in one step."""
        indent = None if self.summary is None else 1  # (people look at it when it is complete)
        write_all({place.manifest: (json.dumps(vars(self), indent=indent) + "\n").encode()})

    def begin(self, place: Place) -> None:
        """Write the manifest if there is none. This must come before the first files that it describes.

        A run that fails before this leaves nothing behind that would make another run fail.
        """
        if not place.exists():
            self.save(place)

    def save_state(self, place: Place, state: dict[str, Any]) -> None:
        """Save the progress of the shards that are not complete yet."""
        self.begin(place)
        values = {"shards": len(self.shards), "state": state}
        write_all({place.scratch(_STATE_FILE): json.dumps(values).encode()})

    def states(self, place: Place) -> list[dict[str, Any]]:
        """The states to continue from, the latest first. Whether their files are there is not checked."""
        states = [state for state in [self.state] if state is not None and state["version"] == STATE]
        if not place.exists():  # it is the state of a run whose manifest somebody has removed
            with suppress(FileNotFoundError):
                os.unlink(place.scratch(_STATE_FILE))
        # (A crash of the system may lose this file, or a part of it.)
        with suppress(FileNotFoundError, ValueError, RecursionError):
            with open(place.scratch(_STATE_FILE), "rb") as file:
                latest = json.load(file)
            _check(latest, {"shards": int, "state": {"version": int, str: object}}, "")
            if latest["shards"] == len(self.shards) and latest["state"]["version"] == STATE:
                self._check_state(latest["state"])
                states.insert(0, latest["state"])
        return states

    def _check_state(self, state: dict[str, Any]) -> None:
        """Raise a ValueError unless this can be a state of this run."""
        _check(state, _STATE, "state")
        splits = ["train", "val"] if self.options.get("validation") else ["train"]
        if sorted(state["splits"]) != splits:
            raise ValueError(f"state.splits must have {' and '.join(splits)}, and nothing else")
        if state["read"]["file"] >= len(self.sources):
            raise ValueError(f"state.read.file must be below {len(self.sources)}")
        buckets, is_shuffled = len(state["buckets"] or ()), self.options.get("shuffle_seed") is not None
        if buckets.bit_count() != is_shuffled:  # one for each value of some bits
            raise ValueError(f"state.buckets has {buckets} buckets, which no state of this run has")

    def files(self) -> list[dict[str, Any]]:
        """All complete files, with their sizes and CRCs."""
        return [file for shard in self.shards for file in shard["files"]] + self.indexes

    def check_files(self, place: Place) -> None:
        """Raise an error if a file is missing, or does not have the size that it had."""
        for file in self.files():
            path = place.path(file["name"])
            if not os.path.isfile(path):
                raise FileNotFoundError(
                    f"{path!r} was written by this run, and is gone; put it back, or remove {place.out!r} "
                    f"and begin again"
                )
            if (size := os.path.getsize(path)) != file["size"]:
                raise CorpusError(
                    f"{path!r} had {file['size']:,} bytes when it was written, and has {size:,}; put it "
                    f"back, or remove {place.out!r} and begin again"
                )

    def check_same(self, other: Manifest, place: Place) -> None:
        """Raise an error if another run, which is to continue this one, would write something else."""
        way_out = f"choose another folder, or remove {place.out!r} to begin again"
        if self.tokenizer != other.tokenizer:
            was, now = (_tokenizer(manifest.tokenizer) for manifest in (self, other))
            raise ValueError(
                f"{place.out!r} holds a run with another tokenizer ({was}; this is {now}); give that one, or "
                f"{way_out}"
            )
        changed = [
            f"{named(name)} was {_given(self.options.get(name))} and is now {_given(other.options.get(name))}"
            for name in {**self.options, **other.options}
            if self.options.get(name) != other.options.get(name)
        ]
        if changed:
            what = "; ".join(changed)
            raise ValueError(
                f"{place.out!r} holds a run with other options ({what}); give the same ones to go on with "
                f"it, or {way_out}"
            )
        if problem := _difference(self.sources, other.sources):
            raise CorpusError(f"{place.out!r} holds a run on other texts: {problem}; {way_out}")


def damaged(place: Place, problem: str) -> CorpusError:
    """The error for a manifest that is not as it was written."""
    return CorpusError(
        f"{place.manifest}: is damaged: {problem}; pack the texts again, and into another folder"
    )


_KINDS = {dict: "an object", list: "a list", str: "a text", int: "an integer from 0 to 2**53"}


def _check(value: Any, shape: Any, where: str) -> None:
    """Raise a ValueError, which says where, unless a value from JSON has a shape.

    A shape is a type; a set of texts, of which it is one; a list with the shape of every item; a tuple with
    the shape of each item; or a dict with the shapes of members, in which `str` stands for all others.
    """
    if isinstance(shape, _OrNull):
        if value is None:
            return
        shape = shape.shape
    kinds: dict[type, type] = {set: str, tuple: list}
    kind: Any = shape if isinstance(shape, type) else kinds.get(type(shape), type(shape))
    if kind is not object and (type(value) is not kind or (kind is int and not 0 <= value <= 1 << 53)):
        raise ValueError(f"{where or 'it'} must be {_KINDS[kind]}, and is {_shortened(value)}")
    if isinstance(shape, set) and value not in shape:
        raise ValueError(f"{where} must be {' or '.join(sorted(shape))}, and is {_shortened(value)}")
    if isinstance(shape, tuple) and len(value) != len(shape):
        raise ValueError(f"{where} must have {len(shape)} items, and has {len(value)}")
    if isinstance(shape, (list, tuple)):
        for number, item in enumerate(value):
            _check(item, shape[number % len(shape)], f"{where}[{number}]")
    if isinstance(shape, dict):
        for name in {**shape, **value}:
            member = f"{where}.{name}" if where else name
            if name not in value and name is not str:
                raise ValueError(f"{member} is missing")
            if name not in shape and str not in shape:
                raise ValueError(f"{member} is nothing that a manifest has")
            if name is not str:
                _check(value[name], shape.get(name, shape.get(str)), member)


def _shortened(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _given(value: object) -> str:
    return "not given" if value is None else shown(value)


def _tokenizer(facts: dict[str, Any]) -> str:
    return f"{counted(facts['pieces'], 'piece')}, fingerprint {facts['fingerprint'][:12]}"


def _difference(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str | None:
    """How the sources of two runs differ."""
    paths, paths_now = ([facts["path"] for facts in sources] for sources in (before, now))
    if paths != paths_now:
        if None in (*paths, *paths_now):
            return "one has files, and the other an iterable"
        new = [path for path in paths_now if path not in paths]
        gone = [path for path in paths if path not in paths_now]
        for some, what in ((new, "is new"), (gone, "is missing now")):
            if some:
                return f"{some[0]!r} {what}" + (f", and {len(some) - 1:,} others" if len(some) > 1 else "")
        return "the files are the same in another order"
    for facts, facts_now in zip(before, now, strict=True):
        if facts != facts_now:
            size, size_now = facts.get("size"), facts_now.get("size")  # (a pipe has none)
            if size != size_now and isinstance(size, int) and isinstance(size_now, int):
                return f"{facts['path']!r} had {size:,} bytes, and has {size_now:,}"
            return f"{facts['path']!r} was changed in the meantime"
    return None
