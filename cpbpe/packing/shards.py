"""From documents to shards: which split each belongs to, where shards end, and when they are whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import Format
from cpbpe.packing.keys import is_validation
from cpbpe.packing.manifest import Manifest
from cpbpe.packing.place import Place
from cpbpe.packing.rows import Rows
from cpbpe.packing.spool import Output, Shard, Spool, SpoolState

TRAIN, VALIDATION = "train", "val"
"""What the splits are called, in names of files, too. Without a validation part there is only the first."""


@dataclass(frozen=True)
class Plan:
    """What decides about shards."""

    place: Place
    format: Format
    dtype: str
    most_tokens: int | None
    """The most tokens of a shard; None if there is only one."""
    validation: float
    """The share of documents in the validation part."""
    validation_seed: int
    names: list[str]
    """The names of the files that documents come from."""
    replaces: bool
    """Whether files that are in the way may be those of an interrupted run."""
    check: Callable[[], None]
    """Raises an error to stop the work; called often."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are."""
        return (TRAIN, VALIDATION) if self.validation else (TRAIN,)

    def spool_path(self, split: str) -> str:
        """Where a shard of a split is while it is not whole."""
        return self.place.scratch(split)

    def is_there(self, split: str, state: SpoolState) -> bool:
        """Whether a shard can be continued from a state."""
        places = self.format.needs_places
        return Spool.is_there(
            self.spool_path(split), self.dtype, header=self.format.header, places=places, state=state
        )


class _Split:
    """The shards of one split."""

    def __init__(self, plan: Plan, name: str, state: dict[str, Any]):
        self.plan = plan
        self.name = name
        self.number: int = state["shard"]
        """The number of the shard that is being written."""
        self.next: int = state["next"]
        """Documents before this one, in the order of `Rows.sequence`, are written."""
        self.begin: int = state["begin"]
        """The first document of the shard."""
        self.spool = self._spool(None if state["spool"] is None else SpoolState.of(state["spool"]))

    def _spool(self, state: SpoolState | None) -> Spool:
        plan = self.plan
        return Spool(
            plan.spool_path(self.name),
            plan.dtype,
            header=plan.format.header,
            places=plan.format.needs_places,
            state=state,
        )

    def state(self) -> dict[str, Any]:
        """How far it is; what is written by then is safe if the process is killed."""
        return {
            "shard": self.number,
            "next": self.next,
            "begin": self.begin,
            "spool": self.spool.flush() if self.spool.state.documents else None,
        }

    def add(self, rows: Rows, is_whole: Callable[[_Split], None]) -> None:
        """Write documents; `is_whole` is called when no more go into the shard."""
        np, most = numpy(), self.plan.most_tokens
        if len(rows) and rows.sequence[0] < self.next:
            rows = rows.where(rows.sequence >= self.next)
        ends = np.cumsum(rows.lengths)
        at = 0
        while at < len(rows):
            stop = len(rows)
            if most is not None:
                before = int(ends[at - 1]) if at else 0
                room = most - self.spool.state.tokens
                stop = int(np.searchsorted(ends, before + room, "right"))
                if stop <= at and not self.spool.state.documents:
                    stop = at + 1  # a document that is longer than a shard has one of its own
            if stop > at:
                self._append(rows, ends, at, stop)
                at = stop
            if at < len(rows):
                is_whole(self)

    def _append(self, rows: Rows, ends: Any, begin: int, end: int) -> None:
        first = int(ends[begin - 1]) if begin else 0
        part = slice(begin, end)
        self.spool.append(
            Rows(
                rows.ids[first : int(ends[end - 1])],
                rows.lengths[part],
                rows.numbers[part],
                rows.sequence[part],
                rows.files[part],
                rows.records[part],
            )
        )
        self.next = int(rows.sequence[end - 1]) + 1

    def finish(self) -> dict[str, Any]:
        """Make the files of the shard and put them in their places. Its entry in the manifest."""
        plan, spool = self.plan, self.spool
        number = None if plan.most_tokens is None else self.number
        spool.flush()
        shard = Shard(spool, self.name, number, plan.names, plan.check)
        out = Output(plan.place.scratch("whole"))
        try:
            plan.format.write(shard, out)
            files = out.close()
        except BaseException:
            out.abandon()
            raise
        for name in files:
            _publish(plan, name)
        entry = {
            "split": self.name,
            "number": self.number,
            "documents": shard.documents,
            "tokens": shard.tokens,
            "sequence": [self.begin, self.next],
            "first": spool.state.first,
            "last": spool.state.last,
            "files": [
                {"name": name, "size": size, "crc32": f"{crc:08x}"} for name, (size, crc) in files.items()
            ],
        }
        spool.remove()
        self.number += 1
        self.begin = self.next
        self.spool = self._spool(None)
        return entry


class Shards:
    """All shards of a run."""

    def __init__(
        self, plan: Plan, manifest: Manifest, states: dict[str, Any], state: Callable[[], dict[str, Any]]
    ):
        """`states`: those of the splits. `state`: gives that of the whole run, for the manifest."""
        self._plan = plan
        self._manifest = manifest
        self._state = state
        self._splits = {name: _Split(plan, name, states[name]) for name in plan.splits}

    @staticmethod
    def first_states(plan: Plan, manifest: Manifest) -> dict[str, Any]:
        """The states of splits of which only whole shards are left."""
        states = {name: {"shard": 0, "next": 0, "begin": 0, "spool": None} for name in plan.splits}
        for shard in manifest.shards:
            end = shard["sequence"][1]
            states[shard["split"]] = {"shard": shard["number"] + 1, "next": end, "begin": end, "spool": None}
        return states

    def states(self) -> dict[str, Any]:
        """The states of all splits."""
        return {name: split.state() for name, split in self._splits.items()}

    def add(self, rows: Rows) -> None:
        """Write documents, each to its split."""
        plan = self._plan
        if not plan.validation:
            self._splits[TRAIN].add(rows, self._finish)
            return
        validation = is_validation(rows.numbers, plan.validation_seed, plan.validation)
        self._splits[TRAIN].add(rows.where(~validation), self._finish)
        self._splits[VALIDATION].add(rows.where(validation), self._finish)

    def finish(self) -> None:
        """Make the last shard of each split, and the files that list all of them."""
        plan, manifest = self._plan, self._manifest
        for name, split in self._splits.items():
            if split.spool.state.documents:
                self._finish(split)
            else:
                split.spool.remove()
            if shards := [shard for shard in manifest.shards if shard["split"] == name]:
                for path, content in plan.format.index(shards, plan.dtype).items():
                    manifest.indexes.append(_write_index(plan, path, content))

    def _finish(self, split: _Split) -> None:
        self._manifest.begin(self._plan.place)
        self._manifest.shards.append(split.finish())
        self._manifest.state = self._state()
        self._manifest.save(self._plan.place)

    def close(self) -> None:
        """Close all files."""
        for split in self._splits.values():
            split.spool.close()


def check_free(plan: Plan) -> None:
    """Raise an error if files of another origin are where a new run writes."""
    for split in plan.splits:
        for name in plan.format.first_files(split, None if plan.most_tokens is None else 0):
            _check_free(plan, name)


def _check_free(plan: Plan, name: str) -> None:
    path = plan.place.path(name)
    if not plan.replaces and os.path.lexists(path):
        raise FileExistsError(
            f"{path!r} exists already, and no run of cpbpe pack has written it; choose another folder, or "
            f"remove it"
        )


def _publish(plan: Plan, name: str) -> None:
    _check_free(plan, name)
    path = plan.place.path(name)
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    os.replace(os.path.join(plan.place.scratch("whole"), name), path)


def _write_index(plan: Plan, name: str, content: bytes) -> dict[str, Any]:
    out = Output(plan.place.scratch("whole"))
    out.create(name).write(content)
    ((size, crc),) = out.close().values()
    _publish(plan, name)
    return {"name": name, "size": size, "crc32": f"{crc:08x}"}
