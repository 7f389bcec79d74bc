"""What is measured, as data: the libraries with the calls that each offers, and the cases.

A library's calls are made once, before the clock starts, from a loaded tokenizer; each takes one argument.
They are the simplest and fastest form that the library's own documentation gives. Where a library has no
such call it has no entry here.

| call           | takes                 | gives                                             |
| -------------- | --------------------- | ------------------------------------------------- |
| `array`        | a text                | its ids in a numpy array                          |
| `list`         | a text                | its ids in a list                                 |
| `lists_1`, `lists_2`   | a list of texts | lists of ids, by 1 or 2 threads                 |
| `arrays_1`, `arrays_2` | a list of texts | arrays of ids, by 1 or 2 threads                |
| `decode`, `decode_bytes` | a list of ids | the text as str or as bytes                     |
| `decode_array` | an array of uint32    | the text as bytes                                 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

THREADS = 2
STRING_LENGTH = 32
STRINGS = 1000
FIRST_PASS_BYTES = 10_000_000

Call = Callable[[Any], Any]
Kind = Literal["texts", "batch", "ids", "strings", "load", "first", "unseen"]


@dataclass(frozen=True)
class Files:
    """The same model in the two formats that the libraries read."""

    model: Path  # .model
    json: Path  # tokenizer.json


@dataclass(frozen=True)
class Library:
    """A library: how it loads the model, and the calls it offers."""

    name: str  # the distribution, which is also the module
    load: Callable[[Files], Any]
    calls: Mapping[str, Callable[[Any], Call]]  # the name of a call -> what makes it from a tokenizer
    note: str = ""


@dataclass(frozen=True)
class Case:
    """One thing to measure: a call, and what it is given."""

    name: str
    title: str
    kind: Kind
    call: str
    unit: Literal["MB/s", "µs", "ms"] = "MB/s"
    count: int = 0  # of different strings, for the kind "strings"


# --- Libraries ----------------------------------------------------------------------------------------


def load_cpbpe(files: Files) -> Any:
    """From its `.model`."""
    return import_module("cpbpe").load(files.model)


def load_sentencepiece(files: Files) -> Any:
    """From its `.model`."""
    return import_module("sentencepiece").SentencePieceProcessor(model_file=str(files.model))


def load_gigatoken(files: Files) -> Any:
    """From the `.model`, which it turns into a tokenizer.json by itself."""
    return import_module("gigatoken").Tokenizer.from_sentencepiece(files.model)


def load_fastokens(files: Files) -> Any:
    """From a tokenizer.json."""
    return import_module("fastokens").Tokenizer.from_file(str(files.json))


def load_tokenizers(files: Files) -> Any:
    """From a tokenizer.json."""
    return import_module("tokenizers").Tokenizer.from_file(str(files.json))


def load_kitoken(files: Files) -> Any:
    """From the `.model`."""
    return import_module("kitoken").Kitoken.from_sentencepiece_file(str(files.model))


def flat_arrays(tok: Any) -> Call:
    """A batch from fastokens is two strings of bytes, to be read with numpy."""
    np = import_module("numpy")

    def call(texts: list[str]) -> tuple[Any, Any]:
        ids, offsets = tok.encode_batch_flat(texts)
        return np.frombuffer(ids, np.uint32), np.frombuffer(offsets, np.uint64)

    return call


CPBPE = Library(
    "cpbpe",
    load_cpbpe,
    {
        "array": lambda tok: tok.encode_array,
        "list": lambda tok: tok.encode,
        "lists_1": lambda tok: partial(tok.encode_batch, threads=1),
        "lists_2": lambda tok: partial(tok.encode_batch, threads=THREADS),
        "arrays_1": lambda tok: partial(tok.encode_arrays, threads=1),
        "arrays_2": lambda tok: partial(tok.encode_arrays, threads=THREADS),
        "decode": lambda tok: tok.decode,
        "decode_bytes": lambda tok: tok.decode_bytes,
        "decode_array": lambda tok: tok.decode_bytes,
    },
)

SENTENCEPIECE = Library(
    "sentencepiece",
    load_sentencepiece,
    {
        "array": lambda tok: partial(tok.encode, return_type="numpy"),
        "list": lambda tok: tok.encode,
        "lists_1": lambda tok: partial(tok.encode, num_threads=1),
        "lists_2": lambda tok: partial(tok.encode, num_threads=THREADS),
        "arrays_1": lambda tok: partial(tok.encode, num_threads=1, return_type="numpy"),
        "arrays_2": lambda tok: partial(tok.encode, num_threads=THREADS, return_type="numpy"),
        "decode": lambda tok: tok.decode,
        "decode_bytes": lambda tok: partial(tok.decode, return_type=bytes),
        "decode_array": lambda tok: partial(tok.decode, return_type=bytes),
    },
)

GIGATOKEN = Library(
    "gigatoken",
    load_gigatoken,
    {
        "array": lambda tok: tok.encode,
        "list": lambda tok: lambda text: tok.encode(text).tolist(),
        "lists_1": lambda tok: partial(tok.encode_batch_list, parallel=False),
        "lists_2": lambda tok: partial(tok.encode_batch_list, parallel=True),
        "arrays_1": lambda tok: partial(tok.encode_batch, parallel=False),
        "arrays_2": lambda tok: partial(tok.encode_batch, parallel=True),
        "decode_bytes": lambda tok: tok.decode,
        "decode_array": lambda tok: tok.decode,
    },
    "its lists are `encode(text).tolist()`; its batches of arrays are `awkward.Array`; it decodes to bytes",
)

FASTOKENS = Library(
    "fastokens",
    load_fastokens,
    {
        "list": lambda tok: lambda text: tok.encode(text).ids,
        "lists_2": lambda tok: lambda texts: [encoding.ids for encoding in tok.encode_batch(texts)],
        "arrays_2": flat_arrays,
        "decode": lambda tok: tok.decode,
    },
    "its batches of arrays are `encode_batch_flat`",
)

TOKENIZERS = Library(
    "tokenizers",
    load_tokenizers,
    {
        "list": lambda tok: lambda text: tok.encode(text, add_special_tokens=False).ids,
        "lists_2": lambda tok: (
            lambda texts: [
                encoding.ids for encoding in tok.encode_batch_fast(texts, add_special_tokens=False)
            ]
        ),
        "decode": lambda tok: partial(tok.decode, skip_special_tokens=False),
    },
)

KITOKEN = Library(
    "kitoken",
    load_kitoken,
    {
        "list": lambda tok: tok.encode,
        "lists_1": lambda tok: tok.encode_all,
        "decode_bytes": lambda tok: tok.decode,
    },
    "it has no threads; it decodes to bytes",
)

LIBRARIES = [CPBPE, SENTENCEPIECE, GIGATOKEN, FASTOKENS, TOKENIZERS, KITOKEN]


# --- Cases --------------------------------------------------------------------------------------------

CASES = [
    Case("array", "encode to array", "texts", "array"),
    Case("list", "encode to list", "texts", "list"),
    Case("lists_1", "batch to lists, 1 thread", "batch", "lists_1"),
    Case("lists_2", "batch to lists, 2 threads", "batch", "lists_2"),
    Case("arrays_1", "batch to arrays, 1 thread", "batch", "arrays_1"),
    Case("arrays_2", "batch to arrays, 2 threads", "batch", "arrays_2"),
    Case("decode", "decode a list to str", "ids", "decode"),
    Case("decode_bytes", "decode a list to bytes", "ids", "decode_bytes"),
    Case("decode_array", "decode an array to bytes", "ids", "decode_array"),
    Case("string_list", "one 32-character string to list", "strings", "list", "µs", 1),
    Case("string_array", "one 32-character string to array", "strings", "array", "µs", 1),
    Case("strings_list", "1,000 different 32-character strings to list", "strings", "list", "µs", STRINGS),
    Case("strings_array", "1,000 different 32-character strings to array", "strings", "array", "µs", STRINGS),
    Case("first_array", "first pass, fresh tokenizer, to array", "first", "array"),
    Case("first_list", "first pass, fresh tokenizer, to list", "first", "list"),
    Case("unseen_array", "new texts after others of the kind, to array", "unseen", "array"),
    Case("load", "load the model", "load", "", "ms"),
    Case("load_encode", "load the model and encode one string", "load", "list", "ms"),
]


def as_lists(results: Any) -> list[list[int]]:
    """The ids of a batch as plain lists, from any of the libraries' own forms."""
    if isinstance(results, tuple):  # ids and offsets
        ids, offsets = results[0].tolist(), [int(offset) for offset in results[1]]
        return [ids[begin:end] for begin, end in pairwise(offsets)]
    if hasattr(results, "to_list"):  # awkward
        return list(results.to_list())
    return [as_list(result) for result in results]


def as_list(result: Any) -> list[int]:
    """The ids of one text as a plain list."""
    return list(result.tolist() if hasattr(result, "tolist") else result)
