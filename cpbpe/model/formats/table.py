"""The formats that models are read from and written to, and how to tell which one a file is."""

# (The annotations of a NamedTuple are compiled if they are not evaluated, and the first compilation takes a
# tenth of the time of loading a model.)

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.lazy import imported
from cpbpe.model.formats import sniff
from cpbpe.model.formats.given import NOTHING, Given

if TYPE_CHECKING:
    from cpbpe.model.formats.values import ReadModel, Written
    from cpbpe.model.spec import ModelSpec


class Format(NamedTuple):
    """A format. Its module has `read` and `write`, see `values`."""

    name: str
    """Its name in messages, and for the options `--from` and `--to`."""
    module: str
    """The module that reads and writes it, imported when it is needed."""
    suffixes: tuple[str, ...]
    """How the names of its files end."""
    begins: Callable[[bytes], bool]
    """Whether data is meant to be a file of this format. (It may still be broken.)"""
    takes_given: bool = False
    """Whether its files may not say how texts are cut: its `read` takes what a user says about it."""
    has_files: bool = False
    """Whether a model is more than one file: its module has `files`, which gives them their paths."""


MODEL = Format("model", "cpbpe.model.formats.sentencepiece", (".model",), lambda data: True)
"""SentencePiece's own. Whatever is nothing else is taken for one, whose reader says what it is instead."""

OTHERS = (
    Format("minbpe", "cpbpe.model.formats.minbpe", (), sniff.is_minbpe, has_files=True),
    Format("gguf", "cpbpe.model.formats.gguf", (".gguf",), sniff.is_gguf, takes_given=True),
    Format(
        "gpt2",
        "cpbpe.model.formats.gpt2",
        ("vocab.json", "merges.txt", "encoder.json", "vocab.bpe"),
        sniff.is_gpt2,
        takes_given=True,
        has_files=True,
    ),
    Format("tekken.json", "cpbpe.model.formats.tekken", ("tekken.json",), sniff.is_tekken),
    Format("tokenizer.json", "cpbpe.model.formats.tokenizer_json", (".json",), sniff.is_tokenizer_json),
    Format("tiktoken", "cpbpe.model.formats.tiktoken", (".tiktoken",), sniff.is_ranks, takes_given=True),
    Format("tokenizer.bin", "cpbpe.model.formats.llama2c", (".bin",), sniff.is_llama2c),
    Format("vocab", "cpbpe.model.formats.vocab_text", (".vocab", ".tsv"), sniff.is_vocab),
)
"""The other formats, in the order in which they are tried."""

FORMATS = {format.name: format for format in (MODEL, *OTHERS)}
"""All of them by name."""


def format_of(data: bytes) -> Format:
    """The format of a file.

    >>> format_of(b'{"version": "1.0", "added_tokens": []}').name
    'tokenizer.json'
    """
    return next((format for format in OTHERS if format.begins(data)), MODEL)


def format_for(path: str) -> Format:
    """The format to write, by the end of a file's name. A name of no format means a `.model`.

    >>> format_for("my/Tokenizer.JSON").name, format_for("my.spm").name, format_for("my-merges.txt").name
    ('tokenizer.json', 'model', 'gpt2')
    """
    name = os.path.basename(path.lower())
    return next((format for format in OTHERS if any(_ends(name, end) for end in format.suffixes)), MODEL)


def _ends(name: str, end: str) -> bool:
    """Whether a name ends so; before an end that is a whole name, there may be another part of the name."""
    before = name.removesuffix(end)
    return before != name and (end.startswith(".") or not before or before[-1] in "-_.")


def read(
    data: bytes, format: Format, *, allow_differences: bool = False, given: Given = NOTHING
) -> "ReadModel":
    """The model in a file of a format; `given` is what a user says of it, if the file does not say it."""
    module: Any = imported(format.module)
    if given.name:
        if not format.takes_given:
            spelling = imported("cpbpe.spelling")
            advice = spelling.advised("; with_special_tokens() adds tokens", "")
            adds = advice if given.pattern is None else ""
            raise ValueError(
                f"{spelling.named(given.name)} is for files that say neither how texts are cut nor which "
                f"special tokens there are (.tiktoken, vocab.json with merges.txt), and this one is not: a "
                f"{format.name} file says by itself what it needs{adds}"
            )
        found: ReadModel = module.read(data, allow_differences=allow_differences, given=given)
        return found
    if format is MODEL:
        model: ReadModel = _values().ReadModel(module.read(data))
        return model
    result: ReadModel = module.read(data, allow_differences=allow_differences)
    return result


def write(spec: "ModelSpec", format: Format, *, allow_differences: bool = False) -> "Written":
    """The file of a model in a format, which has been read again, and is what was meant."""
    module: Any = imported(format.module)
    if format is MODEL:
        result: Written = _values().Written(module.write(spec))
    else:
        result = module.write(spec, allow_differences=allow_differences)
    if lost := _lost_flags(spec, format.name):
        result = imported("dataclasses").replace(result, notes=(*result.notes, _flags_are_lost(lost)))
    check: Any = imported("cpbpe.model.formats.reading_back").check
    check(result, spec, format.name, lambda data: read(data, format, allow_differences=True).spec)
    return result


_WITH_FLAGS = ("model", "tokenizer.json")
"""The formats that can say that an added token is not special, or takes spaces around it."""


def _lost_flags(spec: "ModelSpec", name: str) -> list[str]:
    """The tokens with flags that a format cannot hold. A byte-level GGUF file says which are not special."""
    if name in _WITH_FLAGS:
        return []
    from cpbpe.model.piece_type import PLAIN

    held = {PLAIN} if name == "gguf" and spec.alphabet == "bytes" else set()
    return [text for text, flags in spec.carried.tokens.items() if not flags or set(flags) - held]


def _flags_are_lost(tokens: list[str]) -> str:
    shown = ", ".join(map(repr, tokens[:3])) + (f" and {len(tokens) - 3} more" if len(tokens) > 3 else "")
    return (
        f"the file cannot say that added tokens are not special, or take spaces around them ({shown}); "
        f"there, all of them are special tokens"
    )


def remarks(spec: "ModelSpec", format: Format) -> list[str]:
    """Where a program gives other ids to texts than the model that was read from its file."""
    if format.name != "gguf":
        return []
    found: list[str] = imported(format.module).remarks(spec)
    return found


def _values() -> Any:
    return imported("cpbpe.model.formats.values")
