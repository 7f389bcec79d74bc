"""What may be given where texts are expected: lists and columns; and what is refused, with the way out."""

import re
from array import array
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import cpbpe
from cpbpe import Tokenizer
from tests.support.tokenizers import tokenizer

TEXTS = ["The old keeper", "", "Grüße 🦙", "a  b", "The old keeper"]
ROWS = {"text": TEXTS, "other": ["x"] * len(TEXTS)}

BATCHES = ["encode_batch", "encode_arrays", "align_batch", "count_batch"]


@pytest.fixture
def tok(engine: str) -> Tokenizer:
    return tokenizer("llama", engine)


def given(tok: Tokenizer, method: str, texts: Any) -> Any:
    """What a call makes of texts, in a form that compares."""
    found = getattr(tok, method)(texts)
    return found.tolist() if method == "encode_arrays" else found


# --- Taken ----------------------------------------------------------------------------------------

MISSING_AT_3 = [*TEXTS[:3], None, *TEXTS[3:]]

TAKEN: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda texts: (text for text in texts),
    "map": lambda texts: map(str, texts),
    "deque": deque,
    "keys": lambda texts: dict(enumerate(texts)).values(),
    "Series": pd.Series,
    "Series with an index": lambda texts: pd.Series(texts, index=range(9, 9 + len(texts))),
    "Series of objects": lambda texts: pd.Series(texts, dtype=object),
    "Series of Arrow strings": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "categories": lambda texts: pd.Series(texts, dtype="category"),
    "column of a DataFrame": lambda texts: pd.DataFrame({"text": texts})["text"],
    "Index": pd.Index,
    "extension array": lambda texts: pd.Series(texts, dtype="string").array,
    "polars Series": pl.Series,
    "polars column": lambda texts: pl.DataFrame({"text": texts})["text"],
    "polars categories": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "Array": pa.array,
    "large strings": lambda texts: pa.array(texts, pa.large_string()),
    "string views": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "ChunkedArray": lambda texts: pa.chunked_array([texts[:2], texts[2:]], pa.string()),
    "column of a Table": lambda texts: pa.table({"text": pa.array(texts, pa.string())})["text"],
    "numpy": lambda texts: np.array(texts, dtype=str),
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "numpy, not in a row": lambda texts: np.array([[text, "x"] for text in texts], dtype=object).reshape(
        -1, 2
    )[:, 0],
    "flat iterator": lambda texts: np.array(texts, dtype=object).flat,
    "dataset's column": lambda texts: datasets.Dataset.from_dict({"text": texts})["text"],
    "dataset's rows": lambda texts: datasets.Dataset.from_dict({"text": texts})[:]["text"],
    "iterable dataset": lambda texts: (
        row["text"] for row in datasets.Dataset.from_dict({"text": texts}).to_iterable_dataset()
    ),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_taken(tok: Tokenizer, kind: str) -> None:
    for method in BATCHES:
        assert given(tok, method, TAKEN[kind](TEXTS)) == given(tok, method, TEXTS)


@pytest.mark.parametrize(
    "kind", [kind for kind in TAKEN if kind not in ("numpy, not in a row", "iterable dataset")]
)
def test_nothing_is_taken(tok: Tokenizer, kind: str) -> None:
    for method in BATCHES:
        assert given(tok, method, TAKEN[kind]([])) == []


BINARY: dict[str, Callable[[list[bytes]], Any]] = {
    "Array": pa.array,
    "large": lambda data: pa.array(data, pa.large_binary()),
    "polars": pl.Series,
    "numpy objects": lambda data: np.array(data, dtype=object),
    "Series": lambda data: pd.Series(data, dtype=object),
    "memoryviews": lambda data: [memoryview(part) for part in data],
    "bytearrays": lambda data: tuple(map(bytearray, data)),
}


@pytest.mark.parametrize("kind", BINARY)
def test_binary_columns(tok: Tokenizer, kind: str) -> None:
    """Bytes that need not be UTF-8; they are aligned in bytes."""
    data = [text.encode() for text in TEXTS] + [b"a\xff"]
    for method in BATCHES:
        assert given(tok, method, BINARY[kind](data)) == given(tok, method, data)


# --- Missing values, and values that are not text -------------------------------------------------

MASKED: Any = np.ma.array([*TEXTS[:3], "x"], mask=[0, 0, 0, 1])  # type: ignore[no-untyped-call]

MISSING: dict[str, tuple[Any, str]] = {
    "list": (MISSING_AT_3, "NoneType"),
    # What a missing value becomes here depends on the version of pandas.
    "Series": (pd.Series(MISSING_AT_3), type(pd.Series(MISSING_AT_3).tolist()[3]).__name__),
    "Series of objects": (pd.Series(MISSING_AT_3, dtype=object), "NoneType"),
    "Series with NA": (pd.Series(MISSING_AT_3, dtype="string[pyarrow]"), "NAType"),
    "nullable strings": (pd.Series(MISSING_AT_3, dtype="string[python]"), "NAType"),
    "polars": (pl.Series(MISSING_AT_3), "NoneType"),
    "Array": (pa.array(MISSING_AT_3), "NoneType"),
    "ChunkedArray": (pa.chunked_array([MISSING_AT_3[:2], MISSING_AT_3[2:]]), "NoneType"),
    "numpy": (np.array(MISSING_AT_3, dtype=object), "NoneType"),
    "masked": (MASKED, "NoneType"),
    "dataset": (datasets.Dataset.from_dict({"text": MISSING_AT_3})["text"], "NoneType"),
    "values": (dict(enumerate(MISSING_AT_3)).values(), "NoneType"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_values(tok: Tokenizer, kind: str) -> None:
    texts, name = MISSING[kind]
    for method in BATCHES:
        message = f"{method}() takes texts (str or bytes), found {name} at position 3; is a value missing?"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            getattr(tok, method)(texts)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (5, "int"),
        (["a"], "list"),
        (("a",), "tuple"),
        ({"text": "a"}, "dict"),
        (1.5, "float"),
        (array("i"), "array"),
    ],
)
def test_lists_of_what_is_no_text(tok: Tokenizer, wrong: Any, name: str) -> None:
    for method in BATCHES:
        for texts in (["a", wrong], iter(["a", wrong]), ("a", wrong)):
            with pytest.raises(TypeError, match=rf"^{method}\(\) takes texts .*, found {name} at position 1"):
                getattr(tok, method)(texts)


# --- Refused --------------------------------------------------------------------------------------


class Frame(pd.DataFrame):  # type: ignore[misc]
    """What GeoPandas and others make of it."""


class PolarsFrame(pl.DataFrame):
    """The same of polars, whose frames do not say how many dimensions they have."""


class Lazy:
    """A table of a library that nobody has heard of."""

    columns = ("text",)
    ndim = 2

    def __iter__(self) -> Any:
        return iter(self.columns)


DATASET = datasets.Dataset.from_dict(ROWS)

REFUSED: dict[str, tuple[Any, str, str]] = {
    "str": ("one text", "str", r"put it into a list: \[text\]"),
    "bytes": (b"one text", "bytes", r"put it into a list: \[text\]"),
    "bytearray": (bytearray(b"one"), "bytearray", r"put it into a list: \[text\]"),
    "memoryview": (memoryview(b"one"), "memoryview", r"put it into a list: \[text\]"),
    "numpy str": (np.str_("one text"), "str_", r"put it into a list: \[text\]"),
    "dict": (ROWS, "dict", r"give it one of its values, such as texts\['text'\]"),
    "OrderedDict": (OrderedDict(ROWS), "OrderedDict", "one of its values"),
    "UserDict": (UserDict(ROWS), "UserDict", "one of its values"),
    "set": ({"a", "b"}, "set", r"give it sorted\(texts\)"),
    "frozenset": (frozenset("ab"), "frozenset", r"give it sorted\(texts\)"),
    "DataFrame": (
        pd.DataFrame(ROWS),
        "DataFrame",
        r"the column that holds the texts, such as table\['text'\]",
    ),
    "DataFrame of one column": (pd.DataFrame({"text": TEXTS}), "DataFrame", r"such as table\['text'\]"),
    "subclass of DataFrame": (Frame(ROWS), "Frame", r"such as table\['text'\]"),
    "subclass of a polars DataFrame": (PolarsFrame(ROWS), "PolarsFrame", r"such as table\['text'\]"),
    "polars DataFrame": (pl.DataFrame(ROWS), "DataFrame", r"such as table\['text'\]"),
    "LazyFrame": (pl.DataFrame(ROWS).lazy(), "LazyFrame", r"such as table\.collect\(\)\['text'\]"),
    "Table": (pa.table(ROWS), "Table", r"such as table\['text'\]"),
    "RecordBatch": (pa.RecordBatch.from_pydict(ROWS), "RecordBatch", r"such as table\['text'\]"),
    "another table": (Lazy(), "Lazy", r"such as table\['text'\]"),
    "Dataset": (DATASET, "Dataset", r"such as dataset\['text'\]"),
    "IterableDataset": (
        DATASET.to_iterable_dataset(),
        "IterableDataset",
        r"\(row\['text'\] for row in dataset\)",
    ),
    "DatasetDict": (
        datasets.DatasetDict(train=DATASET),
        "DatasetDict",
        r"such as dataset\['train'\]\['text'\]",
    ),
    "IterableDatasetDict": (
        datasets.IterableDatasetDict(train=DATASET.to_iterable_dataset()),
        "IterableDatasetDict",
        r"\(row\['text'\] for row in dataset\['train'\]\)",
    ),
    "two dimensions": (np.array([["a", "b"], ["c", "d"]]), "2", "an array with one dimension"),
    "no dimension": (np.array("a"), "0", "an array with one dimension"),
    "None": (None, "NoneType", "a list of texts"),
    "int": (5, "int", "a list of texts"),
    "scalar": (pa.scalar("a"), "StringScalar", "a list of texts"),
    "path": (Path("texts.txt"), r"\w*Path", "a list of texts"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(tok: Tokenizer, kind: str) -> None:
    texts, name, way_out = REFUSED[kind]
    for method in BATCHES:
        with pytest.raises(TypeError) as caught:
            getattr(tok, method)(texts)
        message = str(caught.value)
        assert re.match(rf"{method}\(\) takes .*, not (a )?{name}(;|$)", message), message
        assert re.search(way_out, message), message


@pytest.mark.parametrize("kind", [k for k in REFUSED if k not in ("two dimensions", "no dimension")])
def test_no_parts(tok: Tokenizer, kind: str) -> None:
    """What is no list of texts is no list of parts of a text."""
    parts, name, _ = REFUSED[kind]
    with pytest.raises(TypeError, match=rf"encode_parts\(\) takes .*, not (a )?{name}(;|$)"):
        tok.encode_parts(parts)


# --- One text -------------------------------------------------------------------------------------

SINGLE: dict[str, str] = {
    "encode": r"for several texts use encode_batch\(\), and for one text in parts encode_parts\(\)",
    "encode_array": r"for several texts use encode_arrays\(\)",
    "encode_pieces": r"for several texts use align_batch\(\)",
    "tokenize": r"for several texts use align_batch\(\)",
    "align": r"for several texts use align_batch\(\)",
    "count": r"for several texts use count_batch\(\)",
    "normalize": "give it one text after the other",
    "truncate": "give it one text after the other",
    "split": "give it one text after the other",
}


@pytest.mark.parametrize("method", SINGLE)
def test_several_where_one_is_meant(tok: Tokenizer, method: str) -> None:
    """The error names the call for several texts; for None, NaN and NA it asks whether a value is missing."""
    more = (3,) if method in ("truncate", "split") else ()
    call = getattr(tok, method)
    several = [["a", "b"], ("a",), [], iter(["a"]), (c for c in "ab"), pd.Series(["a"]), pl.Series(["a"])]
    several += [pa.array(["a"]), np.array(["a", "b"]), DATASET["text"], {"a"}]
    for texts in several:
        with pytest.raises(
            TypeError, match=rf"\(\) takes str or bytes, not {type(texts).__name__}; {SINGLE[method]}"
        ):
            call(texts, *more)
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(TypeError, match=rf"not {type(missing).__name__}; is a value missing\?"):
            call(missing, *more)
    with pytest.raises(TypeError, match=r"not dict; give it one of its values, such as text\['text'\]$"):
        call({"text": "a"}, *more)
    for wrong in (5, 1.5, object()):
        with pytest.raises(TypeError, match=rf"takes str or bytes, not {type(wrong).__name__}$"):
            call(wrong, *more)


def test_a_tokenizer_is_not_called(tok: Tokenizer) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: tok("text"),
        lambda: tok(["a"], padding=True),
        lambda: tok.using()("a"),
    ]
    for call in calls:
        with pytest.raises(
            TypeError, match=r"tok\.encode\(text\) .* tok\.encode_batch\(texts\) .*compat\.transf"
        ):
            call()


def test_nothing(tok: Tokenizer) -> None:
    """No text, and no texts, in every call."""
    for empty in ("", b""):
        assert (
            tok.encode(empty) == tok.encode_array(empty, threads=3).tolist() == tok.encode_pieces(empty) == []
        )
        assert (len(tok.align(empty)), tok.count(empty), tok.split(empty, 5)) == (0, 0, [])
        assert tok.truncate(empty, 0) == empty == tok.normalize(empty)
        assert tok.stream_encoder().push(empty) == tok.stream_encoder().flush() == []
        assert tok.encode_parts([empty, empty]) == []
        ends: Any = {"add_bos": True, "add_eos": True, "reverse": True}
        assert tok.encode(empty, **ends) == [1, 2] == tok.encode_arrays([empty], **ends).tolist()[0]
        assert tok.align(empty, **ends).offsets == [(0, 0), (0, 0)]
        assert tok.align_batch([empty], **ends) == [tok.align(empty, **ends)]
    for options in (
        {},
        {"add_bos": True},
        {"reverse": True, "add_eos": True},
        {"alpha": 0.5},
        {"allowed_special": "all"},
    ):
        chosen: Any = options
        for threads in (None, 1, 3):
            assert tok.encode_batch([], threads=threads, **chosen) == []
            assert tok.count_batch([], threads=threads, **chosen) == []
            assert tok.align_batch([], threads=threads, **chosen) == []
            for spans in (False, True):
                rows = tok.encode_arrays([], threads=threads, spans=spans, **chosen)
                assert (len(rows), rows.tolist(), rows.padded(0).shape) == (0, [], (0, 0))
                assert (rows.spans is not None and rows.spans.shape == (0, 2)) == spans
        assert len(tok.encode_parts([], **chosen)) == len({"add_bos", "add_eos"} & chosen.keys())
    assert (tok.decode([]), tok.decode_bytes([]), tok.decode_pieces([]), tok.decode_batch([])) == (
        "",
        b"",
        "",
        [],
    )
    assert tok.decode_batch([[], []]) == ["", ""]
    assert tok.stream_decoder([]).push([]) + tok.stream_decoder().flush() == ""


# --- Training -------------------------------------------------------------------------------------

CORPUS = ["the old lighthouse keeper", "the cat sat on the old mat"] * 30


def trained(texts: Any) -> bytes:
    return cpbpe.train(texts, vocab_size=60, preset="sentencepiece", progress=False).tokenizer.to_bytes()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "kind", ["tuple", "generator", "Series", "polars Series", "ChunkedArray", "numpy", "dataset's column"]
)
def test_columns_train(kind: str) -> None:
    assert trained(TAKEN[kind](CORPUS)) == trained(iter(CORPUS))


TABLES = [kind for kind in REFUSED if re.search("Data|[tT]able|Record|Frame", kind) and "Dict" not in kind]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kind", TABLES)
def test_tables_do_not_train(kind: str) -> None:
    """They would train on the names of their columns."""
    texts, name, way_out = REFUSED[kind]
    with pytest.raises(TypeError, match=rf"source is a whole table, {name}; .*{way_out}"):
        cpbpe.train(texts)


def test_mappings_train_on_counts() -> None:
    """A dict of texts with counts trains, a dict of columns or of datasets does not."""
    counts = {text: CORPUS.count(text) for text in CORPUS}
    assert trained(counts) == trained(iter(CORPUS))
    for kind in ("dict", "DatasetDict", "IterableDatasetDict"):
        with pytest.raises((TypeError, ValueError), match="item 1"):
            trained(REFUSED[kind][0])
