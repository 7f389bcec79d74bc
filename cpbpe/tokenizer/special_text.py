"""Text with special tokens in it, encoded and decoded segment by segment.

A segment is the text before, between or after special tokens. Each is encoded as if it were a whole text,
with a dummy prefix if the model adds one. If decoding shows special tokens, it treats segments the same way.

`SpecialEncoder` and `SpecialDecoder` stand between a Tokenizer and its engine, but only if a call needs more
than the engine can do. Their methods are those of the engine (but `encode_pieces` has no `ends`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Mapping as AnyMapping
from itertools import chain, islice, pairwise, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from cpbpe.checks import checked_text, refuse_single, refuse_unordered
from cpbpe.engine import Dropout, Ends, between, reseeded
from cpbpe.lazy import importing
from cpbpe.reference.merging import mixed
from cpbpe.text.utf8 import character_positions, text_of
from cpbpe.tokenizer.special_tokens import FoundToken, Row, SpecialFinder, SpecialTokens, engine_at
from cpbpe.tokenizer.special_tokens import as_bytes as bytes_of

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Aligned, Engine, Ids, Places, Span, Text
    from cpbpe.tokenizer.encoding import Part

Result = TypeVar("Result")


class SpecialEncoder:
    """Encodes texts whose special tokens are found by a finder."""

    __slots__ = ("_engines", "finder", "first", "later")

    def __init__(self, first: Engine, later: Engine, finder: SpecialFinder | None):
        """`first` encodes a segment at the beginning of a text, `later` one after a special token."""
        self.first = first
        self.later = later
        self.finder = finder
        self._engines = (first,), repeat(later)  # for `chain`

    def split(self, text: Text) -> Row:
        """The segments of a text."""
        return (self.finder and self.finder.split(text, self.first, self.later)) or [text]

    def checked(self, text: Text) -> SpecialEncoder:
        """The encoder for parts of a text. A ValueError if the text holds a token that is not allowed.

        The parts themselves are not checked: a token at the end of one may be the beginning of a longer
        token.
        """
        if self.finder is None or len(self.finder.ids) == len(self.finder.texts):  # it refuses no token
            return self
        self.split(text)
        return SpecialEncoder(self.first, self.later, self.finder.allowed)

    def after_special(self) -> SpecialEncoder:
        """The encoder for a text that comes after a special token."""
        return SpecialEncoder(self.later, self.later, self.finder)

    # --- One text ---------------------------------------------------------------------------------

    def encode(self, text: Text, ends: Ends | None = None, dropout: Dropout | None = None) -> list[int]:
        row = self.split(text)
        if len(row) == 1:
            return self.first.encode(text, ends, dropout)
        ids = self.encode_row(row, dropout)
        return ids if ends is None else between(ids, *ends)

    def encode_row(self, row: Row, dropout: Dropout | None) -> list[int]:
        """The ids of a text in segments."""
        if dropout is not None:
            return self.align_row(row, False, dropout)[0]
        ids: list[int] = []
        engines = self._engines_of(row)
        for part in row:
            if type(part) is FoundToken:
                ids.append(part[0])
            else:
                engine = next(engines)
                if part:
                    ids += engine.encode(part)  # type: ignore[arg-type]
        return ids

    def _engines_of(self, row: Row) -> Iterator[Engine]:
        """The engines of the segments of a row. (`engine_at` for each took half as long as encoding it.)"""
        if self.finder is None or self.finder.odd is None:
            return chain(*self._engines)
        return (engine_at(row, position, self.first, self.later) for position in range(0, len(row), 2))

    def encode_parts(
        self, parts: Iterable[Text | int], special: Container[int], dropout: Dropout | None
    ) -> list[int]:
        """The ids of a list of texts and ids. Each text begins anew, unless it comes after a special token.

        The first text is sampled as if it were alone. The others get seeds that none of its segments gets.
        """
        ids: list[int] = []
        encoder, after = self, self.after_special()
        for number, part in enumerate(parts):
            if isinstance(part, int):
                ids.append(part)
                encoder = after if part in special else self
            elif part:
                row = encoder.split(part)
                own = dropout
                if dropout is not None and number:
                    own = (dropout[0], mixed(mixed(dropout[1]) ^ number << 32))
                ids += encoder.encode_row(row, own)
                encoder = after if len(row) > 1 and not row[-1] else self  # it ends with a special token
        return ids

    def encode_array(self, text: Text, threads: int, ends: Ends | None = None) -> Ids:
        row = self.split(text)
        if len(row) == 1:
            return self.first.encode_array(text, threads, ends)
        with importing:
            import numpy as np

        def encode(engine: Engine, segments: list[Text]) -> Iterable[Ids]:
            return [engine.encode_array(segment, threads) for segment in segments]

        [parts] = self._parts([row], encode, lambda id: np.array([id], np.uint32))
        return _joined(parts, ends)

    def encode_pieces(self, text: Text, dropout: Dropout | None = None) -> list[str]:
        row = self.split(text)
        if len(row) == 1:
            return self.first.encode_pieces(text, None, dropout)
        if dropout is not None:
            return self.align_row(row, False, dropout)[1]
        [parts] = self._parts(
            [row],
            lambda engine, segments: map(engine.encode_pieces, segments),
            lambda id: [self._spelled(id)],
        )
        return [*chain.from_iterable(parts)]

    def count(self, text: Text) -> int:
        row = self.split(text)
        engines = self._engines_of(row)
        return sum(1 if isinstance(part, FoundToken) else next(engines).count(part) for part in row)

    def align(
        self, text: Text, chars: bool, as_bytes: bool = False, dropout: Dropout | None = None
    ) -> Aligned:
        row = self.split(text)
        if len(row) == 1:
            return self.first.align(text, chars, as_bytes, dropout)
        ids, pieces, spans = self.align_row(row, as_bytes, dropout)
        return ids, pieces, _in_characters(text, spans) if chars else spans

    def align_row(self, row: Row, as_bytes: bool, dropout: Dropout | None) -> Aligned:
        """The tokens of a row. Positions count bytes, even if its segments are str."""
        aligned: Aligned = ([], [], [])
        engines = self._engines_of(row)
        at = 0
        for position, part in enumerate(row):
            data = bytes_of(part)
            length = len(data)
            columns: Aligned
            if isinstance(part, FoundToken):
                piece = self._spelled(part.id)
                columns = ([part.id], [piece.encode() if as_bytes else piece], [(0, length)])
            else:
                # Each segment has a seed of its own; the first one has the seed of the text.
                own = dropout
                if dropout is not None and position:
                    own = (dropout[0], mixed(mixed(dropout[1]) ^ position))
                columns = next(engines).align(data, False, as_bytes, own)
            aligned[0].extend(columns[0])
            aligned[1].extend(columns[1])
            aligned[2].extend([(at + begin, at + end) for begin, end in columns[2]] if at else columns[2])
            at += length
        return aligned

    def _spelled(self, id: int) -> str:
        """The text of a token, by its id."""
        assert self.finder is not None
        return self.finder.texts[id]

    # --- Many texts -------------------------------------------------------------------------------

    def encode_batch(self, texts: list[Text], threads: int, ends: Ends | None = None) -> list[list[int]]:
        rows = [self.split(text) for text in texts]
        if all(len(row) == 1 for row in rows):
            return self.first.encode_batch(texts, threads, ends)
        made = self._parts(rows, lambda engine, texts: engine.encode_batch(texts, threads), lambda id: [id])
        ids = [parts[0] if len(parts) == 1 else [*chain.from_iterable(parts)] for parts in made]
        return ids if ends is None else [between(own, *ends) for own in ids]

    def count_batch(self, texts: list[Text], threads: int) -> list[int]:
        rows = [self.split(text) for text in texts]
        made = self._parts(rows, lambda engine, texts: engine.count_batch(texts, threads), lambda id: 1)
        return list(map(sum, made))

    def encode_arrays(self, texts: list[Text], threads: int, ends: Ends | None = None) -> tuple[Ids, Places]:
        with importing:
            import numpy as np
        rows = [self.split(text) for text in texts]
        if all(len(row) == 1 for row in rows):
            return self.first.encode_arrays(texts, threads, ends)

        def encode(engine: Engine, segments: list[Text]) -> Iterable[Ids]:
            ids, offsets = engine.encode_arrays(segments, threads)
            return np.split(ids, offsets[1:-1]) if segments else []

        parts = [
            _joined(own, ends) for own in self._parts(rows, encode, lambda id: np.array([id], np.uint32))
        ]
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)], dtype=np.int64)

    def align_batch(
        self,
        texts: list[Text],
        threads: int,
        chars: bool | None,
        dropout: Dropout | None = None,
    ) -> list[Aligned]:
        """If one text has special tokens, all are encoded one by one: spans depend on the segments before."""
        if all(len(self.split(text)) == 1 for text in texts):
            return self.first.align_batch(texts, threads, chars, dropout)
        return [
            self.align(
                text, isinstance(text, str) if chars is None else chars, False, reseeded(dropout, number)
            )
            for number, text in enumerate(texts)
        ]

    def align_arrays(
        self, texts: list[Text], threads: int, chars: bool | None, dropout: Dropout | None = None
    ) -> tuple[Ids, Places, Places]:
        """The same as arrays."""
        with importing:
            import numpy as np
        rows = [self.split(text) for text in texts]
        if all(len(row) == 1 for row in rows):
            return self.first.align_arrays(texts, threads, chars, dropout)
        # The seed of a text depends on its index, and the plain texts alone would have other indexes.
        plain = [text for text, row in zip(texts, rows, strict=True) if len(row) == 1 and dropout is None]
        ids, offsets, spans = self.first.align_arrays(plain, threads, chars)
        aligned = (slice(begin, end) for begin, end in pairwise(offsets.tolist()))
        made: list[tuple[Ids, Places]] = []
        for number, (text, row) in enumerate(zip(texts, rows, strict=True)):
            if len(row) == 1 and dropout is None:
                place = next(aligned)
                made.append((ids[place], spans[place]))
                continue
            own, _, places = self.align_row(row, True, reseeded(dropout, number))
            if isinstance(text, str) if chars is None else chars:
                places = _in_characters(text, places)
            made.append((np.array(own, np.uint32), np.array(places, np.int64).reshape(-1, 2)))
        return (
            np.concatenate([ids for ids, _ in made]),
            np.cumsum([0, *(len(ids) for ids, _ in made)], dtype=np.int64),
            np.concatenate([spans for _, spans in made]),
        )

    def _parts(
        self,
        rows: list[Row],
        make: Callable[[Engine, list[Text]], Iterable[Result]],
        of_token: Callable[[int], Result],
    ) -> list[list[Result]]:
        """The results for the parts of each row. `make` is called once per engine, with all its segments."""
        made: Iterator[Result]
        if self.finder is None or self.finder.odd is None:
            first: list[Any] = [row[0] for row in rows]
            later: list[Any] = [part for row in rows for part in row[2::2]]
            firsts, laters = iter(make(self.first, first)), iter(make(self.later, later))
            # In the order of the texts: a row has one first segment, and one more after each of its tokens.
            made = (one for row in rows for one in (next(firsts), *islice(laters, len(row) // 2)))
        else:
            engines = [engine for row in rows for engine in self._engines_of(row)]
            segments: dict[Engine, list[Any]] = {}
            parts = (part for row in rows for part in row[::2])
            for engine, part in zip(engines, parts, strict=True):
                segments.setdefault(engine, []).append(part)
            results = {engine: iter(make(engine, texts)) for engine, texts in segments.items()}
            made = (next(results[engine]) for engine in engines)
        return [
            [of_token(part.id) if isinstance(part, FoundToken) else next(made) for part in row]
            for row in rows
        ]


def _in_characters(text: Text, spans: list[Span]) -> list[Span]:
    """Spans that count bytes of a text, as spans that count its characters."""
    data = text.encode() if isinstance(text, str) else text
    if data.isascii():
        return spans
    places = character_positions(data)
    return [(places[begin], places[end]) for begin, end in spans]


def _joined(parts: list[Ids], ends: Ends | None) -> Ids:
    """The ids of all parts in one array, with what goes around them."""
    front, back, reverse = ends or (None, None, False)
    if reverse:
        parts = [part[::-1] for part in reversed(parts)]
    with importing:
        import numpy as np
    first, last = ([] if id is None else [np.array([id], np.uint32)] for id in (front, back))
    return np.concatenate([*first, *parts, *last])


class SpecialDecoder:
    """Decodes ids that may include special tokens."""

    def __init__(
        self,
        first: Engine,
        later: Engine,
        shown: AnyMapping[int, str],
        hidden: AnyMapping[int, str],
        strips: bool = False,
        names: AnyMapping[int, str] | None = None,
    ):
        """`shown`: special tokens with the text to show; `hidden`: added tokens that are dropped.

        `strips`: whether a space at the beginning is dropped even if it belongs to a special token. Then
        `later` drops none. `names`: the tokens as pieces, if not all are shown as they are.
        """
        self._strips = strips
        self._names = shown if names is None else names
        self._first = first
        self._later = later
        self._shown = shown
        self._hidden = hidden
        added_only = all(id >= first.size for tokens in (shown, hidden) for id in tokens)
        self.plain = first if added_only else None
        """An engine that decodes pieces and refuses other ids; None if some of these tokens are pieces, which
        it would not refuse."""

    def _is_plain(self, ids: Iterable[int]) -> bool:
        return self._shown.keys().isdisjoint(ids) and self._hidden.keys().isdisjoint(ids)

    def decode(self, ids: list[int]) -> str | None:
        if self._is_plain(ids):
            return self._first.decode(ids)
        parts = self._segments(ids, self._shown, self._hidden, lambda engine, part: engine.decode(part), str)
        return None if parts is None else "".join(parts)

    def decode_bytes(self, ids: list[int]) -> bytes | None:
        if self._is_plain(ids):
            return self._first.decode_bytes(ids)
        parts = self._segments(
            ids, self._shown, self._hidden, lambda engine, part: engine.decode_bytes(part), str.encode
        )
        return None if parts is None else b"".join(parts)

    def decode_batch(self, batch: list[Any], threads: int) -> list[str] | None:
        plain: list[list[int] | bytes] = [ids for ids in batch if self._is_plain(ids)]
        if len(plain) == len(batch):
            return self._first.decode_batch(plain, threads)
        texts = [self.decode(ids) for ids in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def decode_pieces(self, pieces: list[bytes]) -> str | None:
        parts = self._segments(
            pieces,
            {self._names[id].encode(): text for id, text in self._shown.items()},
            {text.encode(): text for text in self._hidden.values()},
            lambda engine, part: engine.decode_pieces_bytes(part),
            str.encode,
        )
        return None if parts is None else text_of(b"".join(parts))

    def _segments(
        self,
        tokens: Iterable[Any],
        shown: AnyMapping[Any, str],
        hidden: AnyMapping[Any, str],
        decode: Callable[[Engine, list[Any]], Any],
        spell: Callable[[str], Any],
    ) -> list[Any] | None:
        """The texts of segments and of the tokens that are shown; None if a segment cannot be decoded."""
        parts: list[Any] = []
        segment: list[Any] = []
        engine = self._first

        def end_segment() -> bool:
            text = decode(engine, segment) if segment else spell("")
            parts.append(text)
            segment.clear()
            return text is not None

        for token in tokens:
            text = shown.get(token)
            if text is not None:
                # Nothing is in front of the token if its segment has no text, not even a space to be dropped.
                strips = self._strips and not parts and not (segment and decode(self._later, segment))
                if not end_segment():
                    return None
                parts.append(spell(text.removeprefix(" ") if strips else text))
                engine = self._later
            elif token not in hidden:
                segment.append(token)
        return parts if end_segment() else None


def checked_parts(
    parts: Iterable[Part], special: SpecialTokens, check_id: Callable[[Any, str], int]
) -> list[str | bytes | int]:
    """A text in parts: texts and ids, including those of special tokens."""
    refuse_single(parts, (str, bytes, bytearray, memoryview), "encode_parts", "parts")
    refuse_unordered(parts, "encode_parts", "parts")
    checked: list[str | bytes | int] = []
    with importing:
        from cpbpe.tokenizer.encoding import Special
    for part in parts:
        if isinstance(part, Special):
            checked.append(special.id_of(part.text))
        elif isinstance(part, (str, bytes, bytearray, memoryview)):
            checked.append(checked_text(part, "encode_parts"))
        elif hasattr(part, "__index__") and not isinstance(part, bool):
            checked.append(check_id(part, "encode_parts"))
        else:  # (True is more often the result of a condition than the id 1.)
            truth = isinstance(part, bool)
            hint = (
                f"for the id {int(part)} write {int(part)}" if truth else "for several texts use encode_batch"
            )
            raise TypeError(
                f"a part of what is encoded must be str, bytes, Special or an id, not {type(part).__name__}; "
                f"{hint}"
            )
    return checked
