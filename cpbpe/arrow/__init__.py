"""Columns of Arrow, encoded where they lie: no text becomes an object of Python.

A column is an array of strings or bytes, of pyarrow or of whatever shares its memory in Arrow's form: polars,
pandas, datasets, DuckDB. The result is a column with a list of ids for each text, and null where there is no
text.

>>> import cpbpe, cpbpe.arrow, pyarrow
>>> tok = cpbpe.load("tokenizer.model")
>>> cpbpe.arrow.encode(tok, pyarrow.array(["Hi", None, "Hello world"])).to_pylist()
[[15359], None, [22557, 1526]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

from cpbpe.arrow.texts import Column
from cpbpe.arrow.work import Work
from cpbpe.checks import Unit, checked_unit
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack


def encode(
    tokenizer: Tokenizer,
    column: Any,
    *,
    threads: SupportsIndex | None = None,
    spans: bool = False,
    unit: Unit | None = None,
    **options: Unpack[EncodeOptions],
) -> Column:
    """The ids of the texts of a column: a column of lists of uint32, null where there is no text.

    `column` is an array or a chunked array of pyarrow, or a column that pyarrow makes one of, such as a
    Series of polars or pandas. It holds strings or bytes, of any type that Arrow has for these, or
    dictionaries of them. The result has as many chunks. Its lists have offsets of 32 bits for texts whose own
    have 32 bits, and of 64 bits for all others.

    With `spans`, a column of structs: `ids`, and `spans`, the begin and end of each id in its text, in
    characters for strings, in bytes for binary, or as `unit` ("char" or "byte") says.

    `threads` is how many work; by default all cores, if it is worth it. The other options are those of
    `Tokenizer.encode_arrays`. (With `alpha`, a text is sampled by `seed` plus its number among the texts that
    are not null.)

    >>> import cpbpe, cpbpe.arrow, pyarrow
    >>> tok = cpbpe.load("tokenizer.model")
    >>> texts = pyarrow.chunked_array([["Hi"], [None, "Hello world"]])
    >>> ids = cpbpe.arrow.encode(tok, texts, add_bos=True)
    >>> ids.type, ids.num_chunks, ids.to_pylist()
    (ListType(list<item: uint32>), 2, [[1, 15359], None, [1, 22557, 1526]])
    >>> cpbpe.arrow.encode(tok, texts, spans=True)[2].as_py()
    {'ids': [22557, 1526], 'spans': [[0, 5], [5, 11]]}
    """
    checked_unit(unit, "")
    work = Work(tokenizer, options, "encode", threads)
    if not spans:
        return work.mapped(column, work.lists)
    return work.mapped(column, lambda texts: work.structs(texts, unit))


def count(
    tokenizer: Tokenizer,
    column: Any,
    *,
    threads: SupportsIndex | None = None,
    **options: Unpack[EncodeOptions],
) -> Column:
    """How many ids each text of a column has: a column of int64, null where there is no text.

    `column`, `threads` and the options are those of `encode`.

    >>> import cpbpe, cpbpe.arrow, pyarrow
    >>> tok = cpbpe.load("tokenizer.model")
    >>> cpbpe.arrow.count(tok, pyarrow.array(["Hi", None, "Hello world"])).to_pylist()
    [1, None, 2]
    """
    work = Work(tokenizer, options, "count", threads)
    return work.mapped(column, work.numbers)
