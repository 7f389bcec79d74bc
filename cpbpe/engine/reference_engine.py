"""The reference (`cpbpe.reference.encoding`) with the operations that every engine has."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cpbpe.engine.columns import Columns, columns_of
from cpbpe.engine.ends import between
from cpbpe.engine.protocol import Aligned, Text, Tokens
from cpbpe.lazy import numpy
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.byte_level.encoding import ByteLevelEngine
from cpbpe.reference.encoding import ReferenceEngine, Token
from cpbpe.reference.lines import read_lines
from cpbpe.reference.merging import mixed
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length, character_positions, repair, text_of

if TYPE_CHECKING:
    from cpbpe.engine.protocol import AnyPlaces, Bytes, Ids, Places


class PythonEngine:
    """The reference engine. It uses one thread, whatever `threads` says."""

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        self._spec = spec
        kind = ByteLevelEngine if spec.alphabet == "bytes" else ReferenceEngine
        self._reference = kind(spec, keep_space)
        self._variants: dict[tuple[bool | None, bool, bool], PythonEngine] = {}
        self.size = len(spec.pieces)
        self.byte_fallback = spec.byte_fallback
        self.byte_level = columns_of(spec)["byte_level"]
        self.unicode_form = spec.normalizer.unicode_form
        self.normalizer_name = spec.normalizer.name.encode()
        ids = (spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id)
        self.specials = [id if id is not None and id < self.size else None for id in ids]
        self.added = list(spec.added)
        user_defined = (p.text for p in spec.pieces if p.type == PieceType.USER_DEFINED)
        self._longest_key = max(map(len, user_defined), default=1)

    def columns(self) -> Columns:
        return columns_of(self._spec)

    def variant(
        self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False
    ) -> PythonEngine:
        engine = self._variants.get((prefix, keep_space, raw))
        if engine is None:
            normalizer = self._spec.normalizer
            if prefix is not None:
                normalizer = replace(normalizer, add_dummy_prefix=prefix)
            if raw:
                normalizer = replace(
                    normalizer,
                    add_dummy_prefix=False,
                    remove_extra_whitespaces=False,
                    charsmap=b"",
                    unicode_form="",
                )
            engine = PythonEngine(replace(self._spec, normalizer=normalizer), keep_space)
            self._variants[prefix, keep_space, raw] = engine
        return engine

    def finder(self, keys: list[bytes]) -> Finder:
        return Finder(keys)

    def slices(self, data: Bytes, begins: AnyPlaces, ends: AnyPlaces) -> PythonSlices:
        if not len(begins) == len(ends) or any(
            not 0 <= begin <= end <= len(data) for begin, end in zip(begins, ends, strict=True)
        ):
            raise ValueError("each text must begin and end within the data")
        return PythonSlices(
            self, [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]
        )

    def piece(self, id: int) -> bytes:
        return self._spec.pieces.texts[id]

    def find(self, piece: bytes) -> int | None:
        return self._spec.ids.get(piece)

    def score(self, id: int) -> float:
        return self._spec.pieces[id].score

    def kind(self, id: int) -> int:
        return self._spec.pieces.types[id]

    # --- Text to ids ------------------------------------------------------------------------------

    def normalize(self, text: Text) -> bytes:
        return self._reference.normalize(_bytes(text))

    def normalize_str(self, text: Text, strict: bool = False) -> str:
        data = self.normalize(text)
        return data.decode() if strict else text_of(data)

    def normalize_batch(self, texts: list[Any], strict: bool) -> list[Any] | None:
        normalized: list[str | bytes] = []
        for text in texts:
            if type(text) is not str and type(text) is not bytes:
                return None
            normalized.append(self.normalize_str(text, strict) if type(text) is str else self.normalize(text))
        return normalized

    def origins(self, text: Text) -> tuple[bytes, list[int]]:
        return self._reference.normalizer.normalize(_bytes(text))

    def cut(self, text: bytes) -> int:
        reference = self._reference
        if isinstance(reference, ByteLevelEngine):
            return reference.last_cut(text)
        if reference.joinable is None:
            return 0
        end = len(text) - self._longest_key + 1  # a user-defined piece may begin there and continue
        cut = at = 0
        before = b""
        while at < end:
            length = reference.user_defined.longest(text, at)
            symbol = text[at : at + (length or character_length(text, at))]
            if length or not before or before + symbol not in reference.joinable:
                cut = at
            at += len(symbol)
            before = b"" if length else symbol
        return cut

    def encode(
        self, text: Text, front: int | None = None, back: int | None = None, reverse: bool = False
    ) -> list[int]:
        return between([token.id for token in self._tokens(text, None, 0)], front, back, reverse)

    def encode_array(
        self,
        text: Text,
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> Ids:
        np = numpy()
        ids: Ids = np.array(self.encode(text, front, back, reverse), np.uint32)
        return ids

    def encode_batch(
        self,
        texts: list[Text],
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> list[list[int]]:
        return [self.encode(text, front, back, reverse) for text in texts]

    def encode_arrays(
        self,
        texts: list[Text],
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> tuple[Ids, Places]:
        rows = self.encode_batch(texts, threads, front, back, reverse)
        return _joined(rows), _offsets(rows)

    def encode_lines(
        self,
        data: bytes,
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> tuple[Ids, Places, Places]:
        lines = data.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        empty = [number for number, line in enumerate(lines) if not line]
        rows = self.encode_arrays(list(filter(None, lines)), threads, front, back, reverse)
        return *rows, numpy().array(empty, numpy().int64)

    def encode_pieces(
        self,
        text: Text,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
        strict: bool = False,
    ) -> list[str]:
        first, last = (None if id is None else self.piece(id) for id in (front, back))
        pieces = between([token.piece for token in self._tokens(text, None, 0)], first, last, reverse)
        return [piece.decode() if strict else text_of(piece) for piece in pieces]

    def count(self, text: Text) -> int:
        return len(self.encode(text))

    def count_batch(self, texts: list[Text], threads: int) -> list[int]:
        return [self.count(text) for text in texts]

    def align(self, text: Text, alpha: float | None = None, seed: int = 0) -> Aligned:
        tokens = self._tokens(text, alpha, seed)
        return (
            [token.id for token in tokens],
            [token.piece for token in tokens],
            [token.begin for token in tokens],
            [token.end for token in tokens],
        )

    def sample(self, text: Text, alpha: float, seed: int) -> list[int]:
        return [token.id for token in self._tokens(text, alpha, seed)]

    def mapping(
        self, text: Text, chars: bool, as_bytes: bool = False, alpha: float | None = None, seed: int = 0
    ) -> None:
        return None

    def mapping_batch(
        self,
        texts: list[Text],
        threads: int,
        chars: bool | None,
        as_bytes: bool = False,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        return None

    def message(
        self, text: Text, in_parallel: bool = False, alpha: float | None = None, seed: int = 0
    ) -> None:
        return None

    def character_origins(self, text: str) -> None:
        return None

    def align_arrays(
        self, texts: list[Text], threads: int, chars: bool | None, alpha: float | None = None, seed: int = 0
    ) -> tuple[Ids, Places, Places, list[tuple[int, bytes]]]:
        np = numpy()
        rows: list[list[int]] = []
        spans: list[tuple[int, int]] = []
        unknown: list[tuple[int, bytes]] = []
        for number, text in enumerate(texts):
            tokens = self._tokens(text, alpha, (seed + number) % (1 << 64))
            data = _bytes(text)
            in_characters = isinstance(text, str) if chars is None else chars
            places = character_positions(data) if in_characters else range(len(data) + 1)
            for token in tokens:
                if token.id == self._spec.unknown_id:
                    unknown.append((len(spans), token.piece))
                spans.append((places[token.begin], places[token.end]))
            rows.append([token.id for token in tokens])
        return _joined(rows), _offsets(rows), np.array(spans, np.int64).reshape(-1, 2), unknown

    def _tokens(self, text: Text, alpha: float | None, seed: int) -> list[Token]:
        return self._reference.encode(_bytes(text), None if alpha is None else (alpha, mixed(seed)))

    # --- Ids to text ------------------------------------------------------------------------------

    def decode(self, ids: list[int] | bytes) -> str | None:
        checked = self._checked(ids)
        return None if checked is None else repair(self._reference.decode_ids(checked)).decode()

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        checked = self._checked(ids)
        return None if checked is None else self._reference.decode_ids(checked, keep_invalid=True)

    def decode_pieces(self, pieces: list[Any]) -> str | None:
        text = self.decode_pieces_bytes(pieces)
        return None if text is None else text_of(text)

    def decode_pieces_batch(self, batch: list[Any]) -> list[str] | None:
        texts = [self.decode_pieces(pieces) if type(pieces) is list else None for pieces in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def decode_pieces_bytes(self, pieces: list[Any]) -> bytes | None:
        if not all(isinstance(piece, (str, bytes)) for piece in pieces):
            return None
        return self._reference.decode_pieces([_bytes(piece) for piece in pieces])

    def decode_mapping(self, tokens: Tokens, as_bytes: bool) -> None:
        return None

    def decode_message(self, tokens: Tokens) -> None:
        return None

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        texts = [self.decode(ids) for ids in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def decode_lines(self, ids: Ids, offsets: Places) -> bytes | None:
        checked = self._checked(ids.tolist())
        if checked is None:
            return None
        rows = (self._reference.decode_ids(checked[begin:end]) for begin, end in pairwise(offsets))
        return b"".join(row + b"\n" for row in rows)

    def read_pieces(self, data: bytes) -> tuple[Ids, Places, int | None]:
        np = numpy()
        ids, offsets, wrong = read_lines(data, self.find)
        return np.array(ids, np.uint32), np.array(offsets, np.int64), wrong

    def _checked(self, ids: list[int] | bytes) -> list[int] | None:
        numbers = array("I", ids).tolist() if isinstance(ids, bytes) else ids
        return numbers if all(type(id) is int and 0 <= id < self.size for id in numbers) else None


class PythonSlices:
    """Texts that were slices of an array."""

    def __init__(self, engine: PythonEngine, texts: list[Text]):
        self._engine = engine
        self._texts = texts

    def encode(
        self, threads: int, front: int | None = None, back: int | None = None, reverse: bool = False
    ) -> tuple[Ids, Places]:
        return self._engine.encode_arrays(self._texts, threads, front, back, reverse)

    def count(self, threads: int) -> Places:
        counts: Places = numpy().array(self._engine.count_batch(self._texts, threads), numpy().int64)
        return counts

    def align(
        self, threads: int, chars: bool | None, alpha: float | None = None, seed: int = 0
    ) -> tuple[Ids, Places, Places, list[tuple[int, bytes]]]:
        return self._engine.align_arrays(self._texts, threads, chars, alpha, seed)


def _joined(rows: list[list[int]]) -> Ids:
    np = numpy()
    ids: Ids = np.array([id for row in rows for id in row], np.uint32)
    return ids


def _offsets(rows: list[list[int]]) -> Places:
    np = numpy()
    offsets: Places = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return offsets


def _bytes(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else text
