"""From one file of a model to another: `cpbpe.convert`, and `Tokenizer.save`."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from errno import EISDIR
from typing import Any, NamedTuple

from cpbpe.engine.choice import calls_of_ours
from cpbpe.errors import ConversionError, naming
from cpbpe.lazy import importing
from cpbpe.model.files import Source, folder_of, in_folder, read_model_file
from cpbpe.model.formats import registry
from cpbpe.model.formats.folder_reading import FILES
from cpbpe.model.formats.registry import JSON, MODEL, Hints
from cpbpe.model.formats.values import Difference, ReadModel, refuse
from cpbpe.model.spec import Carried, ModelSpec
from cpbpe.model.writing import saving_path, write_all
from cpbpe.spelling import given, listed, named
from cpbpe.tokenizer import verifying
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.options import ENCODE_DEFAULTS, FileOptions

FOLDER = "folder"
"""The name of the one format that is a folder: that of transformers."""

_WITH_TEMPLATES = (FOLDER, MODEL.name, "gguf")
"""The formats that hold chat templates."""
_ENDS = [row.suffixes[0] for row in registry.FORMATS.values() if row.suffixes and row is not MODEL]
_OF_OTHER_FILES = (
    r"\.(ya?ml|toml|txt|md|csv|jsonl|xml|html|py|pkl|pickle|pth?|np[yz]|safetensors|onnx|h5|zip|gz|xz|zst)$"
)
"""The ends of names that mean something else to everyone. (A .model may have any other: my.spm, my.v2.)"""
FORMATS = (*registry.FORMATS, FOLDER)
"""What can be written, by name."""

OPTIONS = tuple(FileOptions.__annotations__)
"""The options of encoding that a file can ask for."""


@dataclass(frozen=True)
class Conversion:
    """What `convert` did: which files it wrote, and what is not the same with them."""

    path: str
    """The file, or the folder, that was written."""
    differences: tuple[tuple[str, str | None], ...] = ()
    """Why some texts get other ids, each with a text that shows it, if one was found."""
    notes: tuple[str, ...] = ()
    """What the format cannot say, or the other library always does in its own way."""
    tried: str | None = None
    """With what the result was tried before it was written; None if it was not, because something differs, no
    tokenizer.json is involved, or tokenizers is missing or too old."""
    verified: str | None = None
    """How many of your own texts were tried, and with what; None if there were none."""
    files: tuple[str, ...] = ()
    """The paths of all files that were written."""

    @property
    def is_exact(self) -> bool:
        """Whether every text gets the same ids."""
        return not self.differences


class Asked(NamedTuple):
    """What a conversion is asked for: the options of `convert`."""

    to: str | None = None
    pattern: str | None = None
    special_tokens: Mapping[str, int] | None = None
    add_bos: bool | None = None
    add_eos: bool | None = None
    prefix_after_special: bool | None = None
    chat_template: str | Mapping[str, str] | None = None
    verify: str | os.PathLike[str] | Iterable[str] | None = None
    allow_differences: bool = False


class Prepared(NamedTuple):
    """A conversion that has been made and tried, but not written yet."""

    conversion: Conversion
    """What it did."""
    format: str
    """The format of the result."""
    files: dict[str, bytes]
    """The files, by their paths."""

    def write(self) -> Conversion:
        """Write all files."""
        _write(self.conversion.path, self.format, self.files)
        return self.conversion


class Output(NamedTuple):
    """What is about to be written."""

    files: dict[str, bytes]
    """The files, by their paths."""
    by_format: dict[str, bytes]
    """Those that other libraries read, by their formats."""
    differences: tuple[Any, ...]
    notes: tuple[str, ...]


def convert(
    source: Source,
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    add_bos: bool | None = None,
    add_eos: bool | None = None,
    prefix_after_special: bool | None = None,
    chat_template: str | Mapping[str, str] | None = None,
    verify: str | os.PathLike[str] | Iterable[str] | None = None,
    allow_differences: bool = False,
) -> Conversion:
    """Write a model in another format: that of `to`, or the one that the end of the target's name means.

    A name that ends in `.json` means a tokenizer.json, in `.gguf` a GGUF file, in `.bin` a tokenizer.bin, in
    `.vocab` or `.tsv` a list of pieces, in `.tiktoken` ranks, in a slash a folder of transformers, and most
    others a `.model` (`.txt`, for example, is an error). vocab.json and merges.txt are written together.
    `source`, `pattern` and `special_tokens` are whatever `load` takes. If some text would get other ids,
    nothing is written, and a ConversionError says why; `allow_differences` converts all the same, and lists
    what differs.

    `add_bos`, `add_eos` and `prefix_after_special` are the options of encoding that the file asks for; None
    means as in the source. `chat_template` is a template of conversations, or several by name.

    With a tokenizer.json, tokenizers encodes some texts first, if it is installed, and must give the same
    ids. `verify` adds texts of your own: an iterable, or the path of a file, line by line.

    >>> convert("tokenizer.model", "converted.json", add_bos=True).is_exact
    True
    >>> convert("converted.json", "again.model").differences
    ()
    """
    asked = Asked(
        to,
        pattern,
        special_tokens,
        add_bos,
        add_eos,
        prefix_after_special,
        chat_template,
        verify,
        allow_differences,
    )
    return prepare(source, target, asked).write()


def prepare(source: Source, target: str | os.PathLike[str], asked: Asked) -> Prepared:
    """Everything that `convert` does, except writing."""
    path = _path(target, "convert")
    wanted = _format(path, asked.to)
    allow_differences = asked.allow_differences
    # 1. The model, and what its file says beside it.
    hints = Hints.checked(asked.pattern, asked.special_tokens)
    with naming(source):
        read, files = _read(source, hints, allow_differences)
    options = {option: getattr(asked, option) for option in OPTIONS}
    spec = _with_templates(_with_options(read.spec, options), asked.chat_template)
    no_place = f"{wanted} has no place for chat templates; folders, .model and .gguf files have one"
    loses_templates = bool(spec.carried.chat_templates) and wanted not in _WITH_TEMPLATES
    if loses_templates and asked.chat_template is not None:
        raise ConversionError(no_place)
    # 2. The files.
    made = _output(spec, path, wanted, allow_differences)
    _refuse_to_replace(source, made.files)
    differences = (*read.differences, *made.differences)
    # 3. Before they are written, they are tried.
    files.update(made.by_format)
    tried = None if differences else verifying.tried(spec, files)
    verified = None
    if asked.verify is not None:
        verified, found = verifying.verified(spec, files, asked.verify, allow_differences=allow_differences)
        differences += found
    notes = [*read.notes, *made.notes, *([no_place] if loses_templates else [])]
    if wanted == MODEL.name and spec.carried != Carried():
        notes.append("what the file says beside the model is in a field that only cpbpe reads")
    done = Conversion(path, differences, tuple(dict.fromkeys(notes)), tried, verified, tuple(made.files))
    return Prepared(done, wanted, made.files)


def save(
    facts: ModelFacts, bound_options: Mapping[str, Any], path: str | os.PathLike[str]
) -> tuple[str, ...]:
    """Write the file of a tokenizer; the options that are bound to it decide what the file asks for.

    Return what there is to know about the file, such as what it cannot say.
    """
    name = _path(path, "save")
    wanted = _format(name, None)
    bound = {option: bound_options.get(option) for option in OPTIONS}
    if lost := [option for option in bound_options if option not in OPTIONS]:
        warnings.warn(
            f"using() has bound {listed(lost)}, and no file asks for that: bind "
            f"{'it' if len(lost) == 1 else 'them'} again after loading",
            UserWarning,
            stacklevel=calls_of_ours(),
        )
    if wanted == MODEL.name and all(value is None for value in bound.values()):
        _refuse_own_fields(verifying.model_file_differences(facts.spec), False)  # (without protobuf)
        _write(name, wanted, {name: facts.file})
        return ()
    made = _output(_with_options(facts.full_spec, bound), name, wanted, False)
    _write(name, wanted, made.files)
    return made.notes


# --- The steps ------------------------------------------------------------------------------------


def _read(source: Source, hints: Hints, allow_differences: bool) -> tuple[ReadModel, dict[str, bytes]]:
    """The model in a file or a folder, and its file by its format."""
    folder = folder_of(source)
    if folder is not None:
        with importing:
            from cpbpe.tokenizer.folders import read_folder
        found = read_folder(folder, allow_differences=allow_differences, closely=True, hints=hints)
        return ReadModel(found.facts.full_spec, found.differences, found.notes), found.files
    data = read_model_file(source)
    format = registry.format_of(data)
    read = format.read(data, allow_differences=allow_differences, hints=hints)
    return replace(read, notes=tuple(format.notes_of(read))), {format.name: data}


def _output(spec: ModelSpec, path: str, format: str, allow_differences: bool) -> Output:
    if format == FOLDER:
        with importing:
            from cpbpe.model.formats.folder_writing import write as write_folder
        made = write_folder(spec, allow_differences=allow_differences)
        contents, notes = dict(made.files), made.notes
        both = {"tokenizer.json", "tokenizer.model"} <= contents.keys()
        if both and verifying.model_file_differences(spec):
            del contents["tokenizer.model"]
            notes += ("there is no tokenizer.model, because sentencepiece would give other ids with it",)
        files = {os.path.join(path, name): data for name, data in contents.items()}
        known = {
            format: contents[name]
            for format, name in ((MODEL.name, "tokenizer.model"), (JSON.name, "tokenizer.json"))
            if name in contents
        }
        return Output(files, known, made.differences, notes)
    row = registry.FORMATS[format]
    written = row.write(spec, allow_differences=allow_differences)
    differences = written.differences
    if row is MODEL:
        differences += (own := tuple(verifying.model_file_differences(spec)))
        _refuse_own_fields(own, allow_differences)
    return Output(row.files(path, written.data), {format: written.data}, differences, written.notes)


def _refuse_to_replace(source: Source, files: Iterable[str]) -> None:
    """Raise an error if a file of the source would be replaced: what the result leaves out would be gone."""
    if not isinstance(source, (str, os.PathLike)):
        return
    read: list[str | os.PathLike[str]] = [source]
    if (folder := folder_of(source)) is not None:
        main = in_folder(folder)
        halves = [main.removesuffix(first) + second for first, second in registry.PAIRS]
        read = [main, *halves, *(os.path.join(folder, name) for name in FILES)]
    read = [*filter(os.path.exists, read)]
    for name in filter(os.path.exists, files):
        if any(os.path.samefile(name, path) for path in read):
            raise ValueError(
                f"{name!r} is read here, and would be replaced; choose another name for the result"
            )


def _refuse_own_fields(differences: Sequence[Difference], allow_differences: bool) -> None:
    refuse(
        differences,
        allow_differences,
        "there is no .model file with which sentencepiece does the same",
        "To write it all the same, for use with cpbpe, use cpbpe.convert with allow_differences=True, "
        "which lists them",
    )


def _write(path: str, format: str, files: Mapping[str, bytes]) -> None:
    """Write all files. An error if the folder would still hold a file of another model."""
    if format == FOLDER or path not in files:  # it is a folder for several
        with importing:
            from cpbpe.model.formats.folder_writing import left_behind
        for name in left_behind(path, files):
            reader = "transformers" if format == FOLDER else "cpbpe.load"
            raise FileExistsError(
                f"{name!r} is a file of another model, and {reader} would read it with this one; "
                f"remove it, or choose another folder"
            )
        for folder in sorted({os.path.dirname(name) for name in files}):
            os.makedirs(folder, exist_ok=True)
    elif os.path.isdir(path):
        example, whole = os.path.join(path, "tokenizer.model"), os.path.join(path, "")
        raise IsADirectoryError(
            EISDIR,
            f"it is a folder; give a name in it, such as {example!r}; for a folder of transformers, end the "
            f"name with a slash: {whole!r}",
            path,
        )
    write_all(files)


def _format(path: str, to: str | None) -> str:
    if to is None:
        ends = (os.sep, "/") if os.altsep is None else (os.sep, os.altsep)
        found = FOLDER if path.endswith(ends) else registry.format_for(path).name
        base, end = os.path.splitext(path)
        if found == MODEL.name and re.match(_OF_OTHER_FILES, end.lower()):
            raise ValueError(
                f"no format of models ends in {end}; a .model file would be {base + MODEL.suffixes[0]!r}, "
                f"and {listed(_ENDS)} mean other formats, a slash at the end a folder"
            )
        return found
    if to not in FORMATS:
        raise ValueError(f"{named('to')} must be one of {listed(list(FORMATS))}, not {to!r}")
    return to


def _with_options(spec: ModelSpec, options: Mapping[str, bool | None]) -> ModelSpec:
    """The model with these options; None means as it is."""
    changed = {name: value for name, value in options.items() if value is not None}
    for name in ("add_bos", "add_eos"):
        if changed.get(name) and getattr(spec, f"{name[4:]}_id") is None:
            raise ValueError(
                f"{given(name, True)}, but this model defines no {name[4:]} piece of type CONTROL"
            )
    all_options = {**spec.carried.options, **changed}
    kept = {name: value for name, value in all_options.items() if value != ENCODE_DEFAULTS.get(name, False)}
    carried = replace(spec.carried, options=kept)
    return replace(spec, carried=carried) if carried != spec.carried else spec


def _with_templates(spec: ModelSpec, template: str | Mapping[str, str] | None) -> ModelSpec:
    if template is None:
        return spec
    templates = {"default": template} if isinstance(template, str) else dict(template)
    for name, text in templates.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError("chat_template must be a text, or texts by name")
    return replace(spec, carried=replace(spec.carried, chat_templates=templates))


def _path(path: str | os.PathLike[str], call: str) -> str:
    return saving_path(path, call, "to write to an open file, use file.write(tok.to_bytes())")
