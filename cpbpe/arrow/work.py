"""From the texts of a column to ids, spans and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from cpbpe.arrow.texts import Column, Texts, as_arrow, pyarrow, texts_of
from cpbpe.checks import THREAD_ITEMS, Text, Unit, checked_threads, cores
from cpbpe.engine.protocol import Slices
from cpbpe.lazy import numpy
from cpbpe.text.utf8 import character_positions
from cpbpe.tokenizer.options import ENCODE, EncodeOptions, check_names
from cpbpe.tokenizer.plans import EncodePlan, Plans
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from cpbpe.engine.protocol import AnyPlaces, Places

_MOST_IDS = (1 << 31) - 1
"""A list with offsets of 32 bits, as the texts have, holds no more."""


class Work:
    """What is done to each chunk of a column."""

    def __init__(
        self, tokenizer: Tokenizer, options: EncodeOptions, name: str, threads: SupportsIndex | None
    ):
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(
                f"{name}() takes a Tokenizer first, not {type(tokenizer).__name__}; "
                "cpbpe.load(path) gives one"
            )
        check_names(options, name, ENCODE)
        bound = {key: value for key, value in tokenizer.bound_options.items() if key in ENCODE}
        merged: Any = {**bound, **options}
        self._plan: EncodePlan = Plans(tokenizer.facts).encode(merged, "encode_arrays")
        self._name = name
        self._threads = None if threads is None else checked_threads(threads)
        self._before = 0  # texts in the chunks before this one

    # --- Columns --------------------------------------------------------------------------------------

    def mapped(self, column: Any, work: Callable[[Texts], Column]) -> Column:
        """What `work` makes of each chunk."""
        arrow = pyarrow()
        given = as_arrow(column, self._name)
        if isinstance(given, arrow.ChunkedArray):
            empty = work(texts_of(arrow.array([], given.type), self._name))
            made = [self._of_chunk(chunk, work) for chunk in given.chunks]
            return arrow.chunked_array(made, type=empty.type)
        return self._of_chunk(given, work)

    def _of_chunk(self, chunk: Any, work: Callable[[Texts], Column]) -> Column:
        arrow = pyarrow()
        if isinstance(chunk, arrow.DictionaryArray) and self._plan.alpha is None:
            # Each of the dictionary's texts once.
            return work(texts_of(chunk.dictionary, self._name)).take(chunk.indices)
        texts = texts_of(chunk, self._name)
        made = work(texts)
        self._before += len(texts.begins)
        return made

    # --- Results --------------------------------------------------------------------------------------

    def lists(self, texts: Texts) -> Column:
        """The ids of a chunk."""
        arrow = pyarrow()
        rows = self._encoded(texts)
        validity, nulls = texts.validity
        return _list_array(texts, texts.offsets(rows.offsets), arrow.array(rows.ids), validity, nulls)

    def structs(self, texts: Texts, unit: Unit | None) -> Column:
        """The ids and spans of a chunk."""
        arrow = pyarrow()
        chars = texts.strings if unit is None else unit == "char"
        rows = self._aligned(texts, chars)
        assert rows.spans is not None
        validity, nulls = texts.validity
        offsets = texts.offsets(rows.offsets)
        pairs = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.spans.reshape(-1)), 2)
        fields = [_list_array(texts, offsets, values, None, 0) for values in (arrow.array(rows.ids), pairs)]
        kind = arrow.struct([("ids", fields[0].type), ("spans", fields[1].type)])
        return arrow.Array.from_buffers(kind, texts.rows, [validity], nulls, children=fields)

    def numbers(self, texts: Texts) -> Column:
        """How many ids each text of a chunk has."""
        arrow, np = pyarrow(), numpy()
        counts = self._counted(texts)
        if texts.present is not None:
            full = np.zeros(texts.rows, np.int64)
            full[texts.present] = counts
            counts = full
        validity, nulls = texts.validity
        return arrow.Array.from_buffers(arrow.int64(), texts.rows, [validity, arrow.py_buffer(counts)], nulls)

    # --- Encoding -------------------------------------------------------------------------------------

    def _encoded(self, texts: Texts) -> Ragged:
        plan = self._plan
        if plan.alpha is not None:
            rows = self._aligned(texts, chars=False)
            return Ragged(rows.ids, rows.offsets)

        def whole(slices: Slices, threads: int) -> Ragged:
            return Ragged(*slices.encode(threads, *plan.ends))

        def some(encoder: SpecialEncoder, given: list[Text], threads: int) -> Ragged:
            return Ragged(*encoder.encode_arrays(given, threads, *plan.ends))

        return _joined(self._in_parts(texts, whole, some))

    def _counted(self, texts: Texts) -> Any:
        plan, np = self._plan, numpy()
        if plan.alpha is not None:
            return np.diff(self._encoded(texts).offsets)

        def some(encoder: SpecialEncoder, given: list[Text], threads: int) -> Any:
            return np.array(encoder.count_batch(given, threads), np.int64)

        parts = self._in_parts(texts, lambda slices, threads: slices.count(threads), some)
        return np.concatenate([np.zeros(0, np.int64), *parts]) + plan.around

    def _aligned(self, texts: Texts, chars: bool) -> Ragged:
        """The ids with their spans, sampled if there is a chance."""
        plan, np = self._plan, numpy()
        done = self._before

        def rows_of(found: tuple[Any, Any, Any, Any], begins: Any, ends: Any) -> Ragged:
            nonlocal done
            done += len(begins)
            lengths = None
            if plan.back:
                lengths = ends.astype(np.int64) - begins
                if chars:
                    lengths = [character_positions(text)[-1] for text in texts.as_bytes(begins, ends)]
            return plan.finish_ragged(Ragged(*found[:3]), lengths)

        def seed() -> int:
            return (plan.seed + done) % (1 << 64)

        encoder = plan.encoder
        made = []
        for begins, ends in self._parts(texts):
            threads = self._threads_for(begins, ends)
            if isinstance(encoder, SpecialEncoder) and _has_special(encoder, texts, begins, ends):
                given: list[Text] = [*texts.as_bytes(begins, ends)]
                found = encoder.align_arrays(given, threads, chars, plan.alpha, seed())
            else:
                engine = encoder.first if isinstance(encoder, SpecialEncoder) else encoder
                slices = engine.slices(texts.data, begins, ends)
                found = slices.align(threads, chars, plan.alpha, seed())
            made.append(rows_of(found, begins, ends))
        return _joined(made, spans=True)

    def _in_parts(
        self,
        texts: Texts,
        whole: Callable[[Slices, int], Any],
        some: Callable[[SpecialEncoder, list[Text], int], Any],
    ) -> list[Any]:
        """What `whole` makes of the texts, or `some` of those parts that hold special tokens."""
        encoder = self._plan.encoder
        made = []
        for begins, ends in self._parts(texts):
            threads = self._threads_for(begins, ends)
            if isinstance(encoder, SpecialEncoder) and _has_special(encoder, texts, begins, ends):
                made.append(some(encoder, [*texts.as_bytes(begins, ends)], threads))
            else:
                engine = encoder.first if isinstance(encoder, SpecialEncoder) else encoder
                made.append(whole(engine.slices(texts.data, begins, ends), threads))
        return made

    def _parts(self, texts: Texts) -> Iterator[tuple[AnyPlaces, AnyPlaces]]:
        """All texts at once, or a little at a time if special tokens have to be found."""
        if isinstance(self._plan.encoder, SpecialEncoder):
            return texts.parts()
        return iter([(texts.begins, texts.ends)])

    def _threads_for(self, begins: AnyPlaces, ends: AnyPlaces) -> int:
        if self._threads is not None:
            return self._threads
        size = int(ends.sum(dtype="int64") - begins.sum(dtype="int64"))
        return max(1, min(size // THREAD_ITEMS, cores()))


def _has_special(encoder: SpecialEncoder, texts: Texts, begins: AnyPlaces, ends: AnyPlaces) -> bool:
    """Whether there may be a special token in texts that lie one after the other.

    What is found may be the end of one text and the beginning of the next; so this decides only that the
    texts are looked at one by one.
    """
    if encoder.finder is None or not len(begins):
        return False
    if encoder.finder.odd is not None:
        return True
    try:
        return encoder.finder.split(texts.data[begins.min() : ends.max()].tobytes()) is not None
    except ValueError:  # one that is refused
        return True


def _list_array(texts: Texts, offsets: Places, values: Column, validity: Any, nulls: int) -> Column:
    """Lists of values, with offsets as wide as those of the texts."""
    arrow, np = pyarrow(), numpy()
    if texts.large:
        kind = arrow.large_list(values.type)
    elif offsets[-1] > _MOST_IDS:
        raise ValueError(
            f"a chunk of this column has {offsets[-1]:,} ids, and a list with offsets of 32 bits holds "
            f"{_MOST_IDS:,}; give it column.cast(pyarrow.large_string()), or smaller chunks"
        )
    else:
        kind, offsets = arrow.list_(values.type), offsets.astype(np.int32)
    return arrow.Array.from_buffers(
        kind, texts.rows, [validity, arrow.py_buffer(offsets)], nulls, children=[values]
    )


def _joined(parts: list[Ragged], spans: bool = False) -> Ragged:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    np = numpy()
    ids = np.concatenate([np.zeros(0, np.uint32), *(part.ids for part in parts)])
    lengths = [np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)]
    offsets = np.cumsum(np.concatenate(lengths))
    if not spans:
        return Ragged(ids, offsets)
    return Ragged(ids, offsets, np.concatenate([np.zeros((0, 2), np.int64), *(part.spans for part in parts)]))
