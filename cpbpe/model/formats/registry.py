"""The formats of model files: a row for each, with its name, how to recognize it, and its module.

Loading any model imports this file, so it must import quickly. That is why modules are imported only when
their format is needed, and why the functions that recognize a format are here, not in its module. These
functions say what data is *meant* to be; it may still be broken.
"""

# (No `from __future__ import annotations` here: a NamedTuple would have to compile its annotations from
# strings, and the first compilation takes a tenth of the time of loading a model.)

import binascii
import codecs
import gc
import math
import os
import re
import struct
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.lazy import importing
from cpbpe.model.piece_type import PLAIN, TOKEN_FLAGS

if TYPE_CHECKING:
    from cpbpe.model.formats.values import ReadModel, Written
    from cpbpe.model.spec import ModelSpec

PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""Two files that together are one model, see `gpt2`. Their names may have a prefix: `my-vocab.json`."""

_CARRIED_TAG = b"\xaa\xae\x14"
"""The first bytes of the field of a `.model` that holds a `Carried` (field number 41701)."""
_BOM = b"\xef\xbb\xbf"
_HEAD = 4096
"""How many bytes are looked at to tell what a file is."""
_LOOKED_AT = 32
"""How many pieces or lines are looked at."""
_LONGEST_PIECE = 8000
"""Pieces are shorter than this."""
# (These patterns are compiled only when they are needed: most files have another format.)
_IDS = rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?[0-9]+\s*,\s*"'
_NUMBER = rb"[-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)"


class Hints(NamedTuple):
    """What a user says about a model because its file does not; None for what is not given."""

    pattern: str | None = None
    """The name of a published pattern, or a regular expression; "" for none: a text is one chunk."""
    special_tokens: Mapping[str, int] | None = None
    """The special tokens with their ids."""

    @classmethod
    def checked(cls, pattern: object, special_tokens: object) -> "Hints":
        """Return hints from what a user has passed. Raise a TypeError if its types are wrong."""
        if pattern is not None and not isinstance(pattern, str):
            raise TypeError(f"pattern must be a str, not {type(pattern).__name__}")
        if special_tokens is not None and not isinstance(special_tokens, Mapping):
            raise TypeError(
                f"special_tokens must be a dict from the text of each token to its id, not "
                f"{type(special_tokens).__name__}"
            )
        for token, id in (special_tokens or {}).items():
            if not isinstance(token, str) or type(id) is not int or id < 0:
                raise TypeError(
                    f"special_tokens must have the id of each token by its text, not {token!r}: {id!r}"
                )
        return cls(pattern, special_tokens)

    @property
    def name(self) -> str:
        """The name of the first hint that is given; "" if none is."""
        given = (name for name, value in zip(self._fields, self, strict=True) if value is not None)
        return next(given, "")


NO_HINTS = Hints()
"""No hints: the file must say everything."""


class Format(NamedTuple):
    """A format of model files.

    Its module has `read(data, *, allow_differences=False)`, which returns a `ReadModel`; `write(spec, *,
    allow_differences=False)`, which returns a `Written`; and `read_back(spec, written)`, which returns what
    is wrong with a file that has been written, or "" if nothing is. (The module of MODEL differs: its
    `read(data)` returns a `ModelSpec`, and its `write(spec)` returns bytes.)
    """

    name: str
    """Its name in messages, and for the options `--from` and `--to`."""
    module: str
    """The module that reads and writes it, in this folder; imported when it is needed."""
    suffixes: tuple[str, ...]
    """How the names of its files end."""
    begins: Callable[[bytes], bool]
    """Whether data is meant to be a file of this format."""
    takes_hints: bool = False
    """Whether some of its files do not say how texts are cut. If so, its `read` has a parameter `hints`."""
    has_files: bool = False
    """Whether a model is more than one file. If so, its module has `files`, which gives them their paths."""
    has_remarks: bool = False
    """Whether programs that read the format may give other ids. If so, its module has `remarks`, which says
    where."""
    flags: tuple[str, ...] = ()
    """The flags of added tokens that a file can express. (If these are not all flags, only the files
    of byte-level models express them; those of other models express none.)"""

    def imported(self) -> Any:
        """Import and return the module."""
        with importing:
            return import_module(f"cpbpe.model.formats.{self.module}")

    def read(self, data: bytes, *, allow_differences: bool = False, hints: Hints = NO_HINTS) -> "ReadModel":
        """Return the model in a file. `hints` are what a user says about it because the file does not."""
        module = self.imported()
        if hints.name and not self.takes_hints:
            with importing:
                from cpbpe.spelling import advised, named
            adds = "" if hints.pattern is not None else advised("; with_special_tokens() adds tokens", "")
            raise ValueError(
                f"{named(hints.name)} is for files that say neither how texts are cut nor which special "
                f"tokens there are (.tiktoken, vocab.json with merges.txt), and this one is not: a "
                f"{self.name} file says by itself what it needs{adds}"
            )
        with importing:
            from cpbpe.model.formats.values import ReadModel
        if self is MODEL:
            return ReadModel(module.read(data))
        more = {"hints": hints} if self.takes_hints else {}
        # Hundreds of thousands of objects are made. The garbage collector would search them again and again.
        collects = gc.isenabled()
        gc.disable()
        try:
            read: ReadModel = module.read(data, allow_differences=allow_differences, **more)
        finally:
            if collects:
                gc.enable()
        return read

    def write(self, spec: "ModelSpec", *, allow_differences: bool = False) -> "Written":
        """Return the file of a model, after reading it again to check it."""
        module = self.imported()
        with importing:
            from dataclasses import replace

            from cpbpe.model.formats.values import TO_WRITE, Difference, Written, refuse
        if self is MODEL:
            written = Written(module.write(spec))
        else:
            written = module.write(spec, allow_differences=allow_differences)
        if self.flags != TOKEN_FLAGS:
            held = {*self.flags} if spec.alphabet == "bytes" else set()
            lost = [text for text, flags in spec.carried.tokens.items() if not flags or {*flags} - held]
            if lost:
                shown = ", ".join(map(repr, lost[:3])) + (f" and {len(lost) - 3} more" if lost[3:] else "")
                note = (
                    f"the file cannot say that added tokens are not special, or take spaces around them "
                    f"({shown}); they are ordinary special tokens there, or none"
                )
                written = replace(written, notes=(*written.notes, note))
            if plain := [text for text in lost if PLAIN in spec.carried.tokens[text]]:
                reason = f"texts are not searched for {plain[0]!r}, which is no special token"
                differences = (Difference(reason, plain[0]),)
                refuse(differences, allow_differences, f"no {self.name} is exactly this model", TO_WRITE)
                written = replace(written, differences=(*written.differences, *differences))
        self.check(spec, written)
        return written

    def check(self, spec: "ModelSpec", written: "Written") -> None:
        """Raise a ConversionError if a file that has been written does not say what a model is.

        This guards against mistakes in a writer. What the format cannot hold has been refused before, or is
        listed in `written`, which may then be no model any more.
        """
        with importing:
            from cpbpe.errors import ConversionError, ModelError
        report = "; please report this, with the model"
        try:
            wrong = self.imported().read_back(spec, written)
        except ModelError as error:
            wrong = f"it cannot be read: {error}"
            report = "" if written.differences else report
        if wrong:
            raise ConversionError(f"nothing was written: the file was read again, and {wrong}{report}")

    def files(self, path: str, data: bytes) -> dict[str, bytes]:
        """Return the files of a model by path. Most formats have one file."""
        if not self.has_files:
            return {path: data}
        found: dict[str, bytes] = self.imported().files(path, data)
        return found

    def notes_of(self, read: "ReadModel") -> list[str]:
        """Return everything a user should know about a model that was read, except for differences."""
        remarks = self.imported().remarks(read.spec) if self.has_remarks else ()
        return [*read.notes, *read.assumptions, *remarks]


# --- What files begin with ------------------------------------------------------------------------


def is_tokenizer_json(data: bytes) -> bool:
    """Whether data is meant to be a tokenizer.json.

    >>> is_tokenizer_json(b'{"version": "1.0", "added_tokens": []}'), is_tokenizer_json(b'{"a": 0}')
    (True, False)
    """
    return _is_object(data) and (b'"added_tokens"' in data or b'"pre_tokenizer"' in data)


def is_tekken(data: bytes) -> bool:
    """Whether data is meant to be a tekken.json.

    >>> is_tekken(b'{"config": {}, "vocab": [{"token_bytes": "AA=="}]}'), is_tekken(b'{"vocab": {}}')
    (True, False)
    """
    return _is_object(data) and b'"config"' in data and b'"token_bytes"' in data


def is_ids(data: bytes) -> bool:
    r"""Whether data begins as a file of ids (vocab.json, encoder.json): an object of numbers by name.

    >>> is_ids(b'{"!": 0, "\"": 1}'), is_ids(b'{"version": "1.0"}'), is_ids(b'{"a": 1.5}')
    (True, False, False)
    """
    head = data[:_HEAD].removeprefix(_BOM).lstrip()
    return head.startswith(b"{") and re.match(_IDS, head) is not None


def is_gpt2(data: bytes) -> bool:
    r"""Whether data is a file of ids, or a file of merges (merges.txt, vocab.bpe) with a version, or both.

    >>> is_gpt2(b"#version: 0.2\nt h\n"), is_gpt2(b"t h\n")
    (True, False)
    """
    return is_ids(data) or b"#version" in data[:64].partition(b"\n")[0]


def _is_object(data: bytes) -> bool:
    return data[:64].removeprefix(_BOM).lstrip()[:1] == b"{"


def is_llama2c(data: bytes) -> bool:
    r"""Whether data looks like a `tokenizer.bin`: nothing marks one, so its first pieces must make sense.

    >>> is_llama2c(struct.pack("<IfI", 5, 0, 5) + b"<unk>"), is_llama2c(b"\x0a\x0e\x0a\x05<unk>\x15")
    (True, False)
    """
    longest = int.from_bytes(data[:4], "little")
    if not 0 < longest < _LONGEST_PIECE:
        return False
    at = 4
    for number in range(_LOOKED_AT):
        if at + 8 > len(data):
            return number > 0  # the end of the file, which may have been cut off
        score, size = struct.unpack_from("<fI", data, at)
        # Other formats that begin with a small integer have a second one here, which would be a tiny float.
        if not math.isfinite(score) or 0 < abs(score) < 1e-30 or not 0 < size <= longest:
            return False
        at += 8 + size
    return True


def is_vocab(data: bytes) -> bool:
    r"""Whether data looks like a `.vocab`: lines of a text, a tab and a number. One line in 8 may be wrong.

    >>> is_vocab("<unk>\t0\n▁t\t-0\nhe\t-1\n".encode()), is_vocab(b"IQ== 0\n")
    (True, False)
    """
    lines = data[:_HEAD].removeprefix(_BOM).splitlines()
    if len(data) > _HEAD:
        lines = lines[:-1]
    given = [line for line in lines[:_LOOKED_AT] if line.strip()]
    right = list(map(_is_vocab_line, given))
    return bool(right) and right[0] and right.count(False) <= len(right) // 8


def _is_vocab_line(line: bytes) -> bool:
    _, tab, number = line.rpartition(b"\t")
    return tab != b"" and number[:1] in b"+-0123456789in" and re.fullmatch(_NUMBER, number) is not None


def is_ranks(data: bytes) -> bool:
    r"""Whether data is meant to be a file of ranks (.tiktoken).

    >>> is_ranks(b"IQ== 0\nIg== 1\n"), is_ranks(b"t h\n")
    (True, False)
    """
    lines = first_lines(data.removeprefix(codecs.BOM_UTF8))
    return bool(lines) and all(map(_is_rank_line, lines))


def _is_rank_line(line: bytes) -> bool:
    with importing:
        import base64
    words = line.split()
    token, rank = words if len(words) == 2 else line.partition(b" ")[::2]
    try:
        base64.b64decode(token, validate=True)
    except binascii.Error:
        return False
    return rank.isdigit()


def first_lines(data: bytes) -> list[bytes]:
    """Return the first lines, without empty ones, and without the last of several, which may be cut off."""
    lines = data[:_HEAD].split(b"\n", 20)[:20]
    return [line.rstrip(b"\r") for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]


def may_carry(data: bytes) -> bool:
    """Whether a `.model` may hold a `Carried`. (Python is faster at searching backwards.)"""
    return data.rfind(_CARRIED_TAG) >= 0


# --- The rows -------------------------------------------------------------------------------------

MODEL = Format("model", "sentencepiece", (".model",), lambda data: True, flags=TOKEN_FLAGS)
"""SentencePiece's own. Data of no other format is given to its reader, whose error says what the data is."""

_OTHERS = (
    Format("minbpe", "minbpe", (), lambda data: data.startswith(b"minbpe v"), has_files=True),
    Format(
        *("gguf", "gguf", (".gguf",), lambda data: data.startswith(b"GGUF")),
        takes_hints=True,
        has_remarks=True,
        flags=(PLAIN,),
    ),
    Format(
        *("gpt2", "gpt2", ("vocab.json", "merges.txt", "encoder.json", "vocab.bpe"), is_gpt2),
        takes_hints=True,
        has_files=True,
    ),
    Format("tekken.json", "tekken", ("tekken.json",), is_tekken),
    Format("tokenizer.json", "tokenizer_json", (".json",), is_tokenizer_json, flags=TOKEN_FLAGS),
    Format("tiktoken", "tiktoken", (".tiktoken",), is_ranks, takes_hints=True),
    Format("tokenizer.bin", "llama2c", (".bin",), is_llama2c),
    Format("vocab", "vocab_text", (".vocab", ".tsv"), is_vocab),
)
"""The other formats, in the order in which they are tried."""

FORMATS = {format.name: format for format in (MODEL, *_OTHERS)}
"""All formats by name."""
GGUF, GPT2, JSON = FORMATS["gguf"], FORMATS["gpt2"], FORMATS["tokenizer.json"]
"""The formats that other rooms refer to by name."""


def format_of(data: bytes) -> Format:
    """Return the format of a file.

    >>> format_of(b'{"version": "1.0", "added_tokens": []}').name
    'tokenizer.json'
    """
    return next((format for format in _OTHERS if format.begins(data)), MODEL)


def format_for(path: str) -> Format:
    """Return the format to write, by how a file's name ends. If no other format has that ending: `.model`.

    >>> format_for("my/Tokenizer.JSON").name, format_for("my.spm").name, format_for("my-merges.txt").name
    ('tokenizer.json', 'model', 'gpt2')
    """
    name = os.path.basename(path.lower())
    return next((format for format in _OTHERS if any(_ends(name, end) for end in format.suffixes)), MODEL)


def _ends(name: str, end: str) -> bool:
    """Whether a name ends like this. If the end is a whole file name, a part like `my-` may precede it."""
    before = name.removesuffix(end)
    return before != name and (end.startswith(".") or not before or before[-1] in "-_.")
