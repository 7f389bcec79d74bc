"""From one file of a model to another: `cpbpe.convert`, and `Tokenizer.save`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cpbpe.lazy import imported
from cpbpe.model.files import Source, read_model_file
from cpbpe.model.formats.sniff import is_tokenizer_json
from cpbpe.model.spec import ModelSpec


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
    """Write a model in another format: a `.model` file, or a tokenizer.json if the target ends in `.json`.

    `source` is whatever `load` takes. If some text would get other ids, nothing is written, and a
    ConversionError says why; `allow_differences` converts all the same, and lists what differs. `add_bos` and
    `add_eos` say whether a tokenizer.json puts these tokens around texts; None means as in the source. If the
    library tokenizers is installed, it encodes some texts first, and must give the same ids.

    >>> convert("tokenizer.model", "converted.json", add_bos=True).is_exact
    True
    >>> convert("converted.json", "again.model").differences
    ()
    """
    data = read_model_file(source)
    path = _path(target, "convert")
    ends = {"add_bos": add_bos or False, "add_eos": add_eos or False}
    differences: list[tuple[str, str | None]] = []
    notes: list[str] = []
    if is_tokenizer_json(data):
        read = _json().read(data, allow_differences=allow_differences)
        spec = read.spec
        ends = {
            "add_bos": read.add_bos if add_bos is None else add_bos,
            "add_eos": read.add_eos if add_eos is None else add_eos,
        }
        differences += read.differences
        notes += read.notes
    else:
        spec = _model_file().read(data)
    if _is_json(path):
        written = _json().write(spec, **ends, allow_differences=allow_differences)
        content = written.data
        differences += written.differences
        notes += written.notes
    else:
        if add_bos or add_eos:
            raise ValueError("add_bos and add_eos are for a tokenizer.json; a .model file cannot say that")
        content = _model_file().write(spec)
        if True in ends.values():
            around = " and ".join(name[4:] for name in ends if ends[name])
            notes.append(
                f"a .model file does not say that texts get {around}: load it, and bind that with using()"
            )
    tried = None
    if not differences and (_is_json(path) or is_tokenizer_json(data)):
        verifying = imported("cpbpe.tokenizer.verifying")
        tried = verifying.tried(spec, content if _is_json(path) else data)
    imported("cpbpe.model.writing").write_all({path: content})
    return Conversion(path, tuple(differences), tuple(dict.fromkeys(notes)), tried)


def save(tokenizer: Saved, path: str | os.PathLike[str]) -> None:
    """Write the file of a tokenizer; the options that are bound to it decide what goes around texts."""
    name = _path(path, "save")
    content = tokenizer.to_bytes()
    if _is_json(name):
        bound = tokenizer.bound_options
        ends = {option: bool(bound.get(option)) for option in ("add_bos", "add_eos")}
        content = _json().write(tokenizer.spec, **ends).data
    imported("cpbpe.model.writing").write_all({name: content})


def _path(path: str | os.PathLike[str], call: str) -> str:
    instead = "to write to an open file, use file.write(tok.to_bytes())"
    name: str = imported("cpbpe.model.writing").saving_path(path, call, instead)
    return name


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _json() -> Any:
    return imported("cpbpe.model.formats.tokenizer_json")


def _model_file() -> Any:
    return imported("cpbpe.model.formats.sentencepiece")
