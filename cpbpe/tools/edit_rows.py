"""The tables of a network that follow an edited vocabulary: arrays, tensors, and .safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from typing import Any, BinaryIO, Literal, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cpbpe.lazy import kept
from cpbpe.lint.usage import TABLES, BFloat16, Tensor, safetensors_head, tensor_rows
from cpbpe.model.writing import write_all
from cpbpe.spelling import listed
from cpbpe.text.utf8 import is_valid_utf8
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.rows import Ways

Rule: TypeAlias = "Literal['mean', 'zeros'] | Callable[[Any], Any]"

_OUTPUTS = ("lm_head.weight", "output.weight", "embed_out.weight")
"""How the names of output layers end in .safetensors files."""
_BIASES = ("lm_head.bias", "output.bias", "embed_out.bias", "final_logits_bias")
"""The same for a number for each id."""


class Resizing:
    """Makes the rows of the new ids out of those of the old ones."""

    def __init__(
        self, old: Tokenizer, new: Tokenizer, origins: NDArray[np.int64], rule: Rule, multiple: SupportsIndex
    ):
        if not callable(rule) and rule not in ("mean", "zeros"):
            raise ValueError(f'rule must be "mean", "zeros" or a function, not {rule!r}')
        if isinstance(multiple, bool) or not isinstance(multiple, SupportsIndex) or int(multiple) < 1:
            raise ValueError(f"multiple must be 1 or more, not {multiple!r}")
        self._old, self._new, self._origins, self._rule = old, new, origins, rule
        self.rows = -(-len(origins) // int(multiple)) * int(multiple)
        """How many rows a table has afterwards."""

    def table(self, matrix: Any, halves: bool = False) -> Any:
        """A table with the new rows. `halves`: its numbers are uint16, and mean bfloat16."""
        # 1. Rows that were there.
        shape = tuple(getattr(matrix, "shape", ()))
        if len(shape) != 2 or shape[0] < len(self._old):
            raise ValueError(
                f"an embedding is a matrix with a row for each of the {len(self._old)} old ids, not {shape}"
            )
        size = (self.rows, shape[1])
        is_torch = type(matrix).__module__.partition(".")[0] == "torch"
        made = matrix.new_zeros(size) if is_torch else np.zeros(size, matrix.dtype)
        places = np.flatnonzero(self._origins >= 0)
        made[places.tolist()] = matrix[self._origins[places].tolist()]
        # 2. Rows of new pieces: from those of the old tokens of their texts.
        for id in np.flatnonzero(self._origins < 0).tolist() if self._rule != "zeros" else ():
            if self._new.vocab.get(id) is not None:
                ids = self._old_ids(self._new.facts.engine.piece(id))
                rows = BFloat16(matrix)[ids] if halves else matrix[ids]
                row = self._rule(rows) if callable(self._rule) else rows.mean(0)
                made[id] = _halves(row) if halves else row
        return made

    def _old_ids(self, piece: bytes) -> list[int]:
        """The old tokens of a new piece."""
        if is_valid_utf8(piece):
            return self._old.facts.engine.variant(raw=True).encode(piece)
        # (Engines would read bytes that are not UTF-8 as U+FFFD.)
        spec = self._old.spec
        return [spec.ids[self._ways.bytes_of(symbol)] for symbol in self._ways.symbols(piece)]

    @kept
    def _ways(self) -> Ways:
        return Ways(self._old.spec)

    def file(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str], tensors: Collection[str]
    ) -> tuple[str, ...]:
        """Copy a .safetensors file with other tables. Return the names of the tables."""
        data, head = safetensors_head(source)
        names = _tables(os.fspath(source), head, len(self._old), tensors)
        with open(source, "rb") as file:
            file.seek(8)
            told: dict[str, Any] = json.loads(file.read(data - 8))
        # 1. The new head: tables have other sizes, so everything after them has other places.
        order = sorted(head, key=lambda name: head[name].first)
        place = 0
        for name in order:
            size = head[name].last - head[name].first
            if name in names:
                rows = head[name].shape[0]
                told[name]["shape"][0], size = self.rows, size // rows * self.rows
            told[name]["data_offsets"] = [place, place + size]
            place += size
        text = json.dumps(told, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)

        # 2. The data, tensor by tensor.
        def write(out: BinaryIO) -> None:
            out.write(len(text).to_bytes(8, "little") + text)
            with open(source, "rb") as file:
                for name in order:
                    tensor = head[name]
                    if name in names:
                        whole = tensor_rows(source, data, tensor)[:]
                        is_list = len(tensor.shape) == 1
                        made = self.table(whole[:, None] if is_list else whole, tensor.kind == "BF16")
                        out.write(made)
                    else:
                        file.seek(data + tensor.first)
                        _copy(file, out, tensor.last - tensor.first)

        write_all({os.fspath(target): write})
        return tuple(names)


def _tables(path: str, head: dict[str, Tensor], rows: int, given: Collection[str]) -> list[str]:
    """The names of the tables: those that are given, or all with usual names and enough rows."""
    if isinstance(given, str):
        raise TypeError(f"tensors is a list of names; for one write [{given!r}]")
    if unknown := sorted(set(given) - head.keys()):
        raise ValueError(f"{path}: there is no tensor {unknown[0]!r}; there are {listed(sorted(head)[:8])}")
    usual = {name: 2 for name in head if name.endswith((*TABLES, *_OUTPUTS))}
    usual |= {name: 1 for name in head if name.endswith(_BIASES)}
    found = list(given) or [
        name for name, size in usual.items() if len(head[name].shape) == size and head[name].shape[0] >= rows
    ]
    if not found:
        raise ValueError(
            f"{path}: no tensor with a usual name has {rows} rows or more; if it holds a table, give its name"
        )
    return found


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size:
        part = source.read(min(size, 1 << 24))
        if not part:
            raise ValueError("the .safetensors file is cut off")
        target.write(part)
        size -= len(part)


def _halves(row: Any) -> NDArray[np.uint16]:
    """Numbers as bfloat16, rounded to the nearest, to the even one of two."""
    bits = np.asarray(row, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
