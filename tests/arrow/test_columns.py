"""`cpbpe.arrow`: columns of every type and shape against `encode_arrays` of their texts, on both engines."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest

import cpbpe
import cpbpe.arrow
from cpbpe.arrow import texts_of
from cpbpe.engine.protocol import Slices
from tests.bytes import models as byte_models
from tests.support import corpus, tiers, zoo
from tests.support.budget import SEED

pandas: Any = import_module("pandas")  # (It has no types.)
TEXTS = ["Hi", "", None, "Hello world", " <s>Hi</s>", "日本語 🦙", None, "x", "<|end|>a<|end|>", "é" * 9]
CONVERSIONS: dict[str, Callable[[list[Any]], Any]] = {
    "string": lambda texts: pa.array(texts, pa.string()),
    "large_string": lambda texts: pa.array(texts, pa.large_string()),
    "string_view": lambda texts: pa.array(texts, pa.string_view()),
    "binary": lambda texts: pa.array(in_bytes(texts), pa.binary()),
    "large_binary": lambda texts: pa.array(in_bytes(texts), pa.large_binary()),
    "binary_view": lambda texts: pa.array(in_bytes(texts), pa.binary_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "sliced": lambda texts: pa.array(["before", None, *texts, "after"])[2:-1],
    "sliced twice": lambda texts: pa.array(["b"] * 9 + texts + ["a"], pa.large_string())[3:].slice(
        6, len(texts)
    ),
    "chunked": lambda texts: pa.chunked_array([texts[:3], [], texts[3:4], texts[4:]], pa.string()),
    "chunks of dictionaries": lambda texts: pa.chunked_array([texts[:5], texts[5:]]).dictionary_encode(),
    "polars": lambda texts: polars.Series(texts, dtype=polars.String),
    "polars categories": lambda texts: polars.Series(texts, dtype=polars.Categorical),
    "pandas": lambda texts: pandas.Series(texts, dtype="str"),
    "pandas objects": lambda texts: pandas.Series(texts, dtype=object),
    "pandas categories": lambda texts: pandas.Series(texts, dtype="category"),
}
TYPES = pytest.mark.parametrize("kind", CONVERSIONS)


def in_bytes(texts: list[str | None]) -> list[bytes | None]:
    return [None if text is None else text.encode() for text in texts]


def sentencepiece() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["<|end|>"])


def byte_level() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_spec(byte_models.model())


FAMILIES = pytest.mark.parametrize("make", [sentencepiece, byte_level], ids=lambda make: make.__name__)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"add_eos": True, "reverse": True},
    {"allowed_special": "all"},
    {"allowed_special": "all", "add_eos": True, "prefix_after_special": False},
    {"prefix_space": False},
    {"alpha": 0.3, "seed": 7},
    {"alpha": 0.3, "seed": 7, "allowed_special": {"<|end|>"}, "add_eos": True},
]


def expected(tok: cpbpe.Tokenizer, texts: list[Any], **options: Any) -> list[list[int] | None]:
    """The ids of the texts, and None for None."""
    rows = iter(tok.encode_arrays([text for text in texts if text is not None], **options).tolist())
    return [None if text is None else next(rows) for text in texts]


@TYPES
@FAMILIES
def test_every_type(kind: str, make: Callable[[], cpbpe.Tokenizer], engine: str) -> None:
    tok = make()
    column = CONVERSIONS[kind](TEXTS)
    ids = cpbpe.arrow.encode(tok, column)
    ids.validate(full=True)
    assert ids.to_pylist() == expected(tok, TEXTS)
    assert ids.null_count == 2
    counts = cpbpe.arrow.count(tok, column, add_eos=True)
    counts.validate(full=True)
    assert counts.type == pa.int64()
    rows = expected(tok, TEXTS, add_eos=True)
    assert counts.to_pylist() == [None if row is None else len(row) for row in rows]


@FAMILIES
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "none")
@pytest.mark.parametrize("kind", ["string", "large_binary", "sliced", "chunked", "dictionary"])
def test_every_option(
    kind: str, options: dict[str, Any], make: Callable[[], cpbpe.Tokenizer], engine: str
) -> None:
    tok = make()
    column = CONVERSIONS[kind](TEXTS)
    wanted = expected(tok, TEXTS, **options)
    assert cpbpe.arrow.encode(tok, column, **options).to_pylist() == wanted
    assert cpbpe.arrow.encode(tok.using(**options), column).to_pylist() == wanted
    lengths = [None if row is None else len(row) for row in wanted]
    assert cpbpe.arrow.count(tok, column, threads=1, **options).to_pylist() == lengths
    for unit in ("char", "byte", None):
        structs = cpbpe.arrow.encode(tok, column, spans=True, unit=unit, **options)
        structs.validate(full=True)
        given = in_bytes(TEXTS) if "binary" in kind else TEXTS
        rows = tok.encode_arrays(
            [text for text in given if text is not None], spans=True, unit=unit, **options
        )
        assert rows.spans is not None
        parts = iter(
            {"ids": rows[at].tolist(), "spans": rows[at : at + 1].spans.tolist()}  # type: ignore[union-attr]
            for at in range(len(rows))
        )
        assert structs.to_pylist() == [None if text is None else next(parts) for text in given]


def test_refused_special_tokens(engine: str) -> None:
    """A token that one text begins and the next one ends is none."""
    tok = sentencepiece()
    across = pa.array(["a<|e", "nd|>b", None])
    options: Any = {"disallowed_special": "raise", "allowed_special": {"</s>"}}
    assert cpbpe.arrow.encode(tok, across, **options).to_pylist() == expected(tok, across.to_pylist())
    for call in (cpbpe.arrow.encode, cpbpe.arrow.count):
        with pytest.raises(ValueError, match=r"holds the special token '<\|end\|>' at position 1"):
            call(tok, pa.array(["x", "a<|end|>"]), **options)
        for kind, place in ((pa.string(), 1), (pa.binary(), 2)):  # (as in encode_arrays)
            with pytest.raises(ValueError, match=rf"'<\|end\|>' at position {place}\b"):
                call(tok, pa.array(["x</s>", "é<|end|>"]).cast(kind), **options)
    # A text of a dictionary that no row has is not encoded.
    column = pa.array(["a<|end|>", "b", "c", None]).dictionary_encode()
    for more in ({}, {"alpha": 0.1, "seed": 1}):
        options.update(more)
        assert cpbpe.arrow.encode(tok, column[1:], **options).to_pylist() == [
            [*tok.encode("b")],
            [*tok.encode("c")],
            None,
        ]
        with pytest.raises(ValueError, match=r"'<\|end\|>' at position 1\b"):
            cpbpe.arrow.encode(tok, column, **options)


def test_types_of_results() -> None:
    tok = sentencepiece()
    narrow, wide = pa.list_(pa.uint32()), pa.large_list(pa.uint32())
    for kind in CONVERSIONS:
        column = CONVERSIONS[kind](TEXTS)
        ids = cpbpe.arrow.encode(tok, column)
        expects_wide = any(word in kind for word in ("large", "view", "polars", "twice"))
        if not kind.startswith("pandas"):  # they differ by version
            assert ids.type == (wide if expects_wide else narrow), kind
        assert isinstance(ids, pa.ChunkedArray) == isinstance(
            column if isinstance(column, (pa.Array, pa.ChunkedArray)) else ids, pa.ChunkedArray
        )
    chunks = cpbpe.arrow.encode(tok, pa.chunked_array([], pa.string()))
    assert (chunks.type, chunks.num_chunks) == (narrow, 0)
    spans = cpbpe.arrow.encode(tok, pa.chunked_array([["a"]]), spans=True)
    assert spans.type == pa.struct([("ids", narrow), ("spans", pa.list_(pa.list_(pa.int64(), 2)))])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.null(), pa.string_view(), pa.binary(2)])
def test_empty_and_absent(kind: Any, engine: str) -> None:
    tok = sentencepiece()
    for count in (0, 1, 9):
        column = pa.nulls(count, kind)
        for options in ({}, {"add_bos": True}, {"allowed_special": "all"}, {"alpha": 0.5, "seed": 1}):
            assert cpbpe.arrow.encode(tok, column, **options).to_pylist() == [None] * count
            assert cpbpe.arrow.count(tok, column, **options).to_pylist() == [None] * count
            assert cpbpe.arrow.encode(tok, column, spans=True, **options).to_pylist() == [None] * count
    assert cpbpe.arrow.encode(tok, pa.array([b"ab", b"cd"], pa.binary(2))).to_pylist() == tok.encode_batch(
        ["ab", "cd"]
    )


def test_absent_texts_with_something_in_their_place(engine: str) -> None:
    """Arrow allows any offsets where there is no text."""
    validity = pa.py_buffer(np.packbits([1, 0, 1], bitorder="little"))
    offsets = pa.py_buffer(np.array([0, 2, 7, 8], np.int32))
    column = pa.Array.from_buffers(pa.string(), 3, [validity, offsets, pa.py_buffer(b"HiHelloX")], 1)
    column.validate(full=True)
    tok = sentencepiece()
    ids = cpbpe.arrow.encode(tok, column, add_bos=True)
    assert ids.to_pylist() == expected(tok, ["Hi", None, "X"], add_bos=True)
    assert len(ids.values) == sum(len(row) for row in ids.to_pylist() if row is not None)


def test_bytes_that_are_not_text(engine: str) -> None:
    """They read as U+FFFD, in columns of strings, too, which may be damaged."""
    tok = sentencepiece()
    broken = [b"a\xff\xfeb", b"\xe2\x96", b"\xed\xa0\x80", b"ok"]
    column = pa.array(broken, pa.binary())
    wanted = tok.encode_arrays(broken)
    assert cpbpe.arrow.encode(tok, column).to_pylist() == wanted.tolist()
    damaged = pa.Array.from_buffers(pa.string(), 4, column.buffers())
    assert cpbpe.arrow.encode(tok, damaged).to_pylist() == wanted.tolist()


@pytest.mark.parametrize("middle", [9, -1, 1 << 30])
def test_damaged_offsets(middle: int, engine: str) -> None:
    tok = sentencepiece()
    for kind, width in ((pa.string(), np.int32), (pa.large_string(), np.int64)):
        offsets = np.array([0, middle, 2], width)
        column = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
        with pytest.raises(ValueError, match="each text must begin and end within the data"):
            cpbpe.arrow.encode(tok, column)


def test_slices(engine: str) -> None:
    """What engines offer, given by hand."""
    own = sentencepiece().facts.engine
    data = np.frombuffer(b"Hello", np.uint8)
    kinds: list[Any] = [np.int32, np.int64]
    for kind in kinds:
        ids, offsets = own.encode_arrays(Slices(data, np.array([2, 0], kind), np.array([5, 0], kind)), 1)
        assert ids.tolist() == sentencepiece().encode("llo")
        assert offsets.tolist() == [0, len(ids), len(ids)]
        for begins, ends in (([0], []), ([], [1]), ([3], [2]), ([0], [6]), ([-1], [2])):
            with pytest.raises(ValueError, match="each text must begin and end within the data"):
                own.encode_arrays(Slices(data, np.array(begins, kind), np.array(ends, kind)), 1)
    if engine == "core":
        one = np.array([1], np.int64)
        with pytest.raises(TypeError, match="begins and ends must be arrays of int32, or of int64"):
            own.count_batch(Slices(data, one, one.astype(np.int32)), 1)
        with pytest.raises(TypeError, match="contiguous"):
            own.count_batch(Slices(data[::2], one, one), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["Hi"], r"encode\(\) takes a column.* not list; give it pyarrow.array\(texts\), or use the method"),
        ("Hi", r"takes a column.* not str; pyarrow.array makes one"),
        (None, r"takes a column.* not NoneType"),
        (pa.table({"text": ["Hi"]}), r"not Table; give it the column that holds the texts.*table\['text'\]"),
        (pandas.DataFrame({"text": ["Hi"]}), r"not DataFrame; give it the column"),
        (polars.DataFrame({"text": ["Hi"]}), r"not DataFrame; give it the column"),
        (pa.array([1, 2]), r"takes a column of strings or bytes, not of int64$"),
        (pa.array([["Hi"]]), r"not of list<item: string>; its values are texts, column.flatten\(\)"),
        (pa.chunked_array([[1.5]]), r"not of double$"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_what_is_no_column(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cpbpe.arrow.encode(sentencepiece(), given)


def test_wrong_arguments() -> None:
    tok, column = sentencepiece(), pa.array(["Hi"])
    with pytest.raises(TypeError, match=r"count\(\) takes a Tokenizer first, not StringArray; cpbpe.load"):
        cpbpe.arrow.count(column, tok)
    with pytest.raises(TypeError, match=r"encode\(\) has no option 'bos'; it has add_bos"):
        cpbpe.arrow.encode(tok, column, bos=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unit must be 'char' or 'byte', not 'word'"):
        cpbpe.arrow.encode(tok, column, spans=True, unit="word")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        cpbpe.arrow.encode(tok, column, threads=0)


def test_a_list_can_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpbpe.arrow._MOST_IDS", 2)
    tok, column = sentencepiece(), pa.array(["a b c d e"])
    with pytest.raises(ValueError, match=r"with offsets of 32 bits .*cast\(pyarrow.large_string\(\)\)"):
        cpbpe.arrow.encode(tok, column)
    assert cpbpe.arrow.encode(tok, column.cast(pa.large_string())).to_pylist() == [tok.encode("a b c d e")]


@tiers.models()
def test_models(name: str, engine: str) -> None:
    """Random columns of real texts with every kind of model."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    rng = random.Random(SEED)
    pool = [*corpus.lines(60), None, "", None]
    given = [rng.choice(pool) for _ in range(300 if engine == "core" else 20)]
    column = pa.chunked_array([given[:7], given[7:7], given[7:]], pa.string())
    for threads in (None, 1, 2):
        assert cpbpe.arrow.encode(tok, column[3:], threads=threads).to_pylist() == expected(tok, given[3:])


@pytest.mark.slow
def test_large_columns() -> None:
    """Enough for threads, and for the parts that special tokens are looked for in."""
    tok = sentencepiece()
    rng = random.Random(SEED)
    words = ["the", "llama", "eats", "日本", "<|end|>", "\n", "x" * 50]
    given = [" ".join(rng.choices(words, (9, 9, 9, 3, 0.01, 1, 1), k=20)) for _ in range(4_000)]
    for column in (pa.array(given), pa.array(given, pa.large_string())):
        for options in ({}, {"allowed_special": "all"}, {"alpha": 0.1, "seed": 3, "allowed_special": "all"}):
            rows = tok.encode_arrays(given, **options)
            ids = cpbpe.arrow.encode(tok, column, **options)
            assert np.array_equal(ids.values.to_numpy(), rows.ids)
            assert np.array_equal(ids.offsets.to_numpy(), rows.offsets)
            counts = cpbpe.arrow.count(tok, column, **options)
            assert np.array_equal(counts.to_numpy(), np.diff(rows.offsets))


def test_memory_is_shared() -> None:
    """Neither the texts nor the ids are copied."""
    column = pa.array(["Hello world"] * 1000)
    texts = texts_of(column, "encode")
    assert texts.data.ctypes.data == column.buffers()[2].address
    assert texts.begins.ctypes.data == column.buffers()[1].address


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Windows has no signals like these")
def test_ctrl_c() -> None:
    tok = sentencepiece()
    column = pa.array(["the llama eats " * 1000] * 500)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        cpbpe.arrow.count(tok, pa.chunked_array([column] * 1000))
    assert time.perf_counter() - begin < 10
    timer.join()
