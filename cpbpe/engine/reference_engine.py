"""The reference (`cpbpe.reference`) as an engine, with the operations that every engine has."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cpbpe.engine import NO_ENDS, Dropout, Ends, between, reseeded
from cpbpe.engine.columns import Columns, columns_of, head_of
from cpbpe.engine.protocol import Aligned, AnyText, Slices, Text
from cpbpe.lazy import importing
from cpbpe.model.spec import ModelSpec
from cpbpe.reference.byte_level.encoding import ByteLevelEngine
from cpbpe.reference.encoding import ReferenceEngine, Token
from cpbpe.reference.lines import read_lines
from cpbpe.reference.merging import mixed
from cpbpe.text.utf8 import character_positions, repair, text_of

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Ids, Places


class PythonEngine:
    """The reference engine. It uses one thread, whatever `threads` says."""

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        self._spec = spec
        kind = ByteLevelEngine if spec.alphabet == "bytes" else ReferenceEngine
        self._reference = kind(spec, keep_space)
        self._variants: dict[tuple[bool | None, bool, bool], PythonEngine] = {}
        self.size = len(spec.pieces)
        self.head = head_of(spec)
        ids = (spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id)
        # (In a byte-level model they may be added tokens, which engines do not know.)
        self.specials = [id if id is not None and id < self.size else None for id in ids]

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

    def piece(self, id: int) -> bytes:
        return self._spec.pieces.texts[id]

    def find(self, piece: bytes) -> int | None:
        return self._spec.ids.get(piece)

    def score(self, id: int) -> float:
        return self._spec.pieces[id].score

    def kind(self, id: int) -> int:
        return self._spec.pieces.types[id]

    # --- Text to ids ------------------------------------------------------------------------------

    def normalize(self, text: AnyText) -> AnyText:
        data = self._reference.normalize(_bytes(text))
        return text_of(data) if isinstance(text, str) else data

    def origins(self, text: Text) -> tuple[bytes, list[int]]:
        return self._reference.normalizer.normalize(_bytes(text))

    def cut(self, text: bytes) -> int:
        return self._reference.last_cut(text)

    def encode(self, text: Text, ends: Ends | None = None, dropout: Dropout | None = None) -> list[int]:
        ids = [token.id for token in self._tokens(text, dropout)]
        return between(ids, *(ends or NO_ENDS))

    def encode_array(self, text: Text, threads: int, ends: Ends | None = None) -> Ids:
        return _joined([self.encode(text, ends)])

    def encode_batch(self, texts: list[Text], threads: int, ends: Ends | None = None) -> list[list[int]]:
        return [self.encode(text, ends) for text in texts]

    def encode_arrays(
        self, texts: list[Text] | Slices, threads: int, ends: Ends | None = None
    ) -> tuple[Ids, Places]:
        rows = self.encode_batch(_listed(texts), threads, ends)
        return _joined(rows), _offsets(rows)

    def encode_lines(self, data: bytes, threads: int, ends: Ends | None = None) -> tuple[Ids, Places, Places]:
        with importing:
            import numpy as np
        lines = data.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        empty = [number for number, line in enumerate(lines) if not line]
        rows = self.encode_arrays(list(filter(None, lines)), threads, ends)
        return *rows, np.array(empty, np.int64)

    def encode_pieces(
        self, text: Text, ends: Ends | None = None, dropout: Dropout | None = None
    ) -> list[str]:
        front, back, reverse = ends or (None, None, False)
        first, last = (None if id is None else self.piece(id) for id in (front, back))
        pieces = between([token.piece for token in self._tokens(text, dropout)], first, last, reverse)
        return list(map(text_of, pieces))

    def count(self, text: Text) -> int:
        return len(self.encode(text))

    def count_batch(self, texts: list[Text] | Slices, threads: int) -> Any:
        counts = list(map(self.count, _listed(texts)))
        if isinstance(texts, list):
            return counts
        with importing:
            import numpy as np
        return np.array(counts, np.int64)

    def align(
        self, text: Text, chars: bool, as_bytes: bool = False, dropout: Dropout | None = None
    ) -> Aligned:
        tokens = self._tokens(text, dropout)
        data = _bytes(text)
        places = character_positions(data) if chars else range(len(data) + 1)
        return (
            [token.id for token in tokens],
            [token.piece if as_bytes else text_of(token.piece) for token in tokens],
            [(places[token.begin], places[token.end]) for token in tokens],
        )

    def align_batch(
        self,
        texts: list[Text],
        threads: int,
        chars: bool | None,
        dropout: Dropout | None = None,
    ) -> list[Aligned]:
        return [
            self.align(
                text, isinstance(text, str) if chars is None else chars, False, reseeded(dropout, number)
            )
            for number, text in enumerate(texts)
        ]

    def align_arrays(
        self, texts: list[Text] | Slices, threads: int, chars: bool | None, dropout: Dropout | None = None
    ) -> tuple[Ids, Places, Places]:
        with importing:
            import numpy as np
        aligned = self.align_batch(_listed(texts), threads, chars, dropout)
        rows = [ids for ids, _, _ in aligned]
        spans = np.array([span for _, _, spans in aligned for span in spans], np.int64).reshape(-1, 2)
        return _joined(rows), _offsets(rows), spans

    def _tokens(self, text: Text, dropout: Dropout | None) -> list[Token]:
        with_mixed_seed = None if dropout is None else (dropout[0], mixed(dropout[1]))
        return self._reference.encode(_bytes(text), with_mixed_seed)

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

    def decode_pieces_bytes(self, pieces: list[Any]) -> bytes | None:
        if not all(isinstance(piece, (str, bytes)) for piece in pieces):
            return None
        return self._reference.decode_pieces([_bytes(piece) for piece in pieces])

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
        with importing:
            import numpy as np
        ids, offsets, wrong = read_lines(data, self.find)
        return np.array(ids, np.uint32), np.array(offsets, np.int64), wrong

    def _checked(self, ids: list[int] | bytes) -> list[int] | None:
        numbers = array("I", ids).tolist() if isinstance(ids, bytes) else ids
        return numbers if all(type(id) is int and 0 <= id < self.size for id in numbers) else None


def _listed(texts: list[Text] | Slices) -> list[Text]:
    if isinstance(texts, list):
        return texts
    data, begins, ends = texts
    # (If there are not as many ends as begins, a span that is invalid leads to the error.)
    spans = list(zip(begins.tolist(), ends.tolist(), strict=True)) if len(begins) == len(ends) else [(1, 0)]
    if not all(0 <= begin <= end <= len(data) for begin, end in spans):
        raise ValueError("each text must begin and end within the data")
    return [data[begin:end].tobytes() for begin, end in spans]


def _joined(rows: list[list[int]]) -> Ids:
    with importing:
        import numpy as np
    return np.array([id for row in rows for id in row], np.uint32)


def _offsets(rows: list[list[int]]) -> Places:
    with importing:
        import numpy as np
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _bytes(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else text
