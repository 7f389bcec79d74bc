"""From one file of a model to another: `cpbpe.convert`, and `Tokenizer.save`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cpbpe.lazy import imported
from cpbpe.model.files import Source, read_model_file
from cpbpe.model.formats import table
from cpbpe.model.spec import Carried, ModelSpec


class Saved(Protocol):
    """What can be saved: a Tokenizer."""

    @property
    def bound_options(self) -> Mapping[str, Any]:
        """Its options."""

    @property
    def spec(self) -> ModelSpec:
        """Its model as a value."""

    def to_bytes(self) -> bytes:
        """Its model file."""


@dataclass(frozen=True)
class Conversion:
    """What `convert` did: which file it wrote, and what is not the same with it."""

    path: str
    """The file that was written."""
    differences: tuple[tuple[str, str | None], ...] = ()
    """Why some texts get other ids, each with a text that shows it, if one was found."""
    notes: tuple[str, ...] = ()
    """What the format cannot say, or the other library always does in its own way."""
    tried: str | None = None
    """With what the result was tried before it was written; None if that library is not installed."""

    @property
    def is_exact(self) -> bool:
        """Whether every text gets the same ids."""
        return not self.differences


def convert(
    source: Source,
    target: str | os.PathLike[str],
    *,
    add_bos: bool | None = None,
    add_eos: bool | None = None,
    allow_differences: bool = False,
) -> Conversion:
    """Write a model in the format that the end of the target's name asks for, see docs/formats.md.

    `source` is whatever `load` takes. If some text would get other ids, nothing is written, and a
    ConversionError says why; `allow_differences` converts all the same, and lists what differs. `add_bos` and
    `add_eos` say whether the file asks for these tokens around texts; None means as in the source. If the
    library tokenizers is installed, it encodes some texts first, and must give the same ids.

    >>> convert("tokenizer.model", "converted.json", add_bos=True).is_exact
    True
    >>> convert("converted.json", "again.model").differences
    ()
    """
    data = read_model_file(source)
    path = _path(target, "convert")
    wanted = table.format_for(path)
    # 1. The model, and around which texts it puts bos and eos.
    given = table.format_of(data)
    read = table.read(data, given, allow_differences=allow_differences)
    spec = _with_ends(read.spec, {"add_bos": add_bos, "add_eos": add_eos})
    # 2. The file.
    written = table.write(spec, wanted, allow_differences=allow_differences)
    differences = (*read.differences, *written.differences)
    # 3. Before it is written, it is tried.
    tried = None
    if not differences:
        files = {given.name: data, wanted.name: written.data}
        tried = imported("cpbpe.tokenizer.verifying").tried(spec, files)
    imported("cpbpe.model.writing").write_all({path: written.data})
    notes = [*read.notes, *read.assumptions, *table.remarks(read.spec, given), *written.notes]
    if wanted is table.MODEL and spec.carried != Carried():
        notes.append("what the file says beside the model is in a field that only cpbpe reads")
    return Conversion(path, differences, tuple(dict.fromkeys(notes)), tried)


def save(tokenizer: Saved, path: str | os.PathLike[str]) -> None:
    """Write the file of a tokenizer; the options that are bound to it decide what goes around texts."""
    name = _path(path, "save")
    wanted = table.format_for(name)
    content = tokenizer.to_bytes()
    if wanted is not table.MODEL:
        bound = tokenizer.bound_options
        spec = _with_ends(tokenizer.spec, {end: bound.get(end) for end in ("add_bos", "add_eos")})
        content = table.write(spec, wanted).data
    imported("cpbpe.model.writing").write_all({name: content})


def _with_ends(spec: ModelSpec, ends: Mapping[str, bool | None]) -> ModelSpec:
    """The model with these options; None means as it is."""
    changed = {name: value for name, value in ends.items() if value is not None}
    carried = replace(spec.carried, options={**spec.carried.options, **changed})
    return replace(spec, carried=carried) if changed else spec


def _path(path: str | os.PathLike[str], call: str) -> str:
    instead = "to write to an open file, use file.write(tok.to_bytes())"
    name: str = imported("cpbpe.model.writing").saving_path(path, call, instead)
    return name
