"""Text with special tokens in it: encoded and decoded stretch by stretch.

`Encoder` and `Decoder` stand between a Tokenizer and its engine, and only when a call asks for what the
engine does not know: special tokens in text. They offer what the engine offers.

A stretch is what stands between two special tokens. Each is encoded as if it were a text, by itself, with a
dummy prefix of its own where the model adds one; decoding, where it shows special tokens, mirrors that.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, TypeVar

from cpbpe.engine.choice import Engine
from cpbpe.reference.dropout import mixed
from cpbpe.tokenizer.checks import checked_text
from cpbpe.tokenizer.special_tokens import Scanner, Special, SpecialTokens

Part = str | bytes | int | Special
"""What a list that is encoded may hold."""

Result = TypeVar("Result")
Tokens = tuple[list[int], list[bytes], list[int], list[int]]


class Encoder:
    """Encodes texts whose special tokens are found by a scanner."""

    __slots__ = ("_first", "_later", "scanner")

    def __init__(self, first: Engine, later: Engine, scanner: Scanner | None):
        """`first` encodes a stretch at the beginning of a text, `later` one behind a special token."""
        self._first = first
        self._later = later
        self.scanner = scanner

    def _found(self, text: str | bytes) -> list[str | bytes | int] | None:
        """The parts of a text that holds special tokens."""
        return self.scanner.split(text) if self.scanner else None

    def _parts(self, text: str | bytes) -> Sequence[str | bytes | int]:
        return self._found(text) or [text]

    def _engine(self, position: int | bool) -> Engine:
        return self._later if position else self._first

    def encode_parts(self, parts: Sequence[str | bytes | int], special: Container[int]) -> list[int]:
        """The ids of texts, each of which begins anew unless it stands behind a special token, and of ids."""
        ids: list[int] = []
        behind = False
        for part in parts:
            if isinstance(part, int):
                ids.append(part)
                behind = part in special
            elif part:
                found = self._parts(part)
                ids += self._encode(found, behind)
                behind = len(found) > 1 and not found[-1]  # it ends with a special token
        return ids

    def _encode(self, parts: Sequence[str | bytes | int], behind: bool = False) -> list[int]:
        ids: list[int] = []
        for position, part in enumerate(parts):
            if isinstance(part, int):
                ids.append(part)
            elif part:
                ids += self._engine(position or behind).encode(part)
        return ids

    def encode(self, text: str | bytes) -> list[int]:
        """See `Engine`, here and below."""
        parts = self._found(text)
        return self._first.encode(text) if parts is None else self._encode(parts)

    def encode_array(self, text: str | bytes, threads: int) -> bytearray:
        parts = self._found(text)
        if parts is None:
            return self._first.encode_array(text, threads)
        ids = bytearray()
        for position, part in enumerate(parts):
            if isinstance(part, int):
                ids += array("I", [part]).tobytes()
            else:
                ids += self._engine(position).encode_array(part, threads)
        return ids

    def count(self, text: str | bytes) -> int:
        parts = enumerate(self._parts(text))
        return sum(1 if isinstance(part, int) else self._engine(i).count(part) for i, part in parts)

    def encode_batch(self, texts: list[str | bytes], threads: int) -> list[list[int]]:
        found: list[list[int]] = []

        def make(engine: Engine, stretches: list[str | bytes]) -> Iterable[list[int]]:
            return engine.encode_batch(stretches, threads)

        for row in self._batch(texts, make):
            if len(row) == 1 and not isinstance(row[0], int):
                found.append(row[0])
            else:
                found.append([id for part in row for id in ([part] if isinstance(part, int) else part)])
        return found

    def encode_batch_arrays(self, texts: list[str | bytes], threads: int) -> tuple[bytearray, bytearray]:
        ids, offsets = bytearray(), array("q", [0])

        def make(engine: Engine, stretches: list[str | bytes]) -> Iterable[memoryview]:
            data, ends = engine.encode_batch_arrays(stretches, threads)
            places = array("q", bytes(ends))
            view = memoryview(data)
            return [view[4 * places[i] : 4 * places[i + 1]] for i in range(len(places) - 1)]

        for row in self._batch(texts, make):
            for part in row:
                ids += array("I", [part]).tobytes() if isinstance(part, int) else part
            offsets.append(len(ids) // 4)
        return ids, bytearray(offsets.tobytes())

    def _batch(
        self, texts: list[str | bytes], make: Callable[[Engine, list[str | bytes]], Iterable[Result]]
    ) -> Iterable[list[Result | int]]:
        """For each text its parts, with what `make` makes of all stretches of a kind at once."""
        rows = [self._parts(text) for text in texts]
        first = [row[0] for row in rows if not isinstance(row[0], int)]
        later = [part for row in rows for part in row[1:] if not isinstance(part, int)]
        firsts, laters = iter(make(self._first, first)), iter(make(self._later, later))
        for row in rows:
            yield [
                part if isinstance(part, int) else next(laters if position else firsts)
                for position, part in enumerate(row)
            ]

    def tokens(self, text: str | bytes) -> Tokens:
        return self._tokens(text, lambda engine, part, _: engine.tokens(part))

    def sample(self, text: str | bytes, alpha: float, seed: int) -> Tokens:
        def make(engine: Engine, part: bytes, position: int) -> Tokens:
            return engine.sample(part, alpha, mixed(mixed(seed) ^ position) if position else seed)

        return self._tokens(text, make)

    def _tokens(self, text: str | bytes, make: Callable[[Engine, bytes, int], Tokens]) -> Tokens:
        found: Tokens = ([], [], [], [])
        at = 0
        for position, part in enumerate(self._parts(text.encode() if isinstance(text, str) else text)):
            if isinstance(part, int):
                assert self.scanner is not None
                piece = self.scanner.text_of(part)
                columns: Tokens = ([part], [piece], [0], [len(piece)])
                length = len(piece)
            else:
                assert isinstance(part, bytes)
                columns = make(self._engine(position), part, position)
                length = len(part)
            found[0].extend(columns[0])
            found[1].extend(columns[1])
            found[2].extend(at + begin for begin in columns[2])
            found[3].extend(at + end for end in columns[3])
            at += length
        return found


class Decoder:
    """Decodes ids some of which are special tokens."""

    def __init__(self, first: Engine, later: Engine, shown: dict[int, str], hidden: frozenset[int]):
        """`shown` are special tokens with the text to show; `hidden` added ones that leave nothing."""
        self._first = first
        self._later = later
        self._shown = shown
        self._hidden = hidden

    def _is_plain(self, ids: Iterable[int]) -> bool:
        return self._shown.keys().isdisjoint(ids) and self._hidden.isdisjoint(ids)

    def decode(self, ids: list[int]) -> str | None:
        """See `Engine`, here and below; but ids are a list."""
        if self._is_plain(ids):
            return self._first.decode(ids)
        text: str | None = self._join(ids, lambda engine, part: engine.decode(part), str, "".join)
        return text

    def decode_bytes(self, ids: list[int]) -> bytes | None:
        if self._is_plain(ids):
            return self._first.decode_bytes(ids)
        data: bytes | None = self._join(
            ids, lambda engine, part: engine.decode_bytes(part), str.encode, b"".join
        )
        return data

    def decode_batch(self, batch: list[list[int]], threads: int) -> list[str] | None:
        plain: list[list[int] | bytes] = [ids for ids in batch if self._is_plain(ids)]
        if len(plain) == len(batch):
            return self._first.decode_batch(plain, threads)
        texts = [self.decode(ids) for ids in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def _join(
        self,
        ids: list[int],
        decode: Callable[[Engine, list[int]], Any],
        spell: Callable[[str], Any],
        join: Callable[[list[Any]], Any],
    ) -> Any:
        parts: list[Any] = []
        stretch: list[int] = []
        engine = self._first

        def end() -> bool:
            text = decode(engine, stretch) if stretch else spell("")
            parts.append(text)
            stretch.clear()
            return text is not None

        for id in ids:
            text = self._shown.get(id)
            if text is not None:
                if not end():
                    return None
                parts.append(spell(text))
                engine = self._later
            elif id not in self._hidden:
                stretch.append(id)
        return join(parts) if end() else None


def checked_parts(
    parts: Iterable[Part], special: SpecialTokens, check_id: Callable[[Any, str], int]
) -> list[str | bytes | int]:
    """A list that is to be encoded: texts, and ids, among them those of special tokens."""
    found: list[str | bytes | int] = []
    for part in parts:
        if isinstance(part, Special):
            found.append(special.id_of(part))
        elif isinstance(part, (str, bytes, bytearray, memoryview)):
            found.append(checked_text(part, "encode"))
        elif hasattr(part, "__index__"):
            found.append(check_id(part, "encode"))
        else:
            raise TypeError(
                f"a part of what is encoded is str, bytes, Special or an id, not {type(part).__name__}; "
                f"for several texts use encode_batch"
            )
    return found
