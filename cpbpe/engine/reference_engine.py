"""The reference engine (`cpbpe.reference.encoding`) behind the door that every engine has: `cpbpe.engine.choice.Engine`."""

from __future__ import annotations

from array import array
from dataclasses import replace

from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.dropout import mixed
from cpbpe.reference.encoding import ReferenceEngine, Token
from cpbpe.text.utf8 import character_length, repair


class PythonEngine:
    """The reference engine behind the same door as the core."""

    name = "reference"

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        self._spec = spec
        self._reference = ReferenceEngine(spec, keep_space)
        self._variants: dict[tuple[bool | None, bool, bool], PythonEngine] = {}
        self._ids = {piece: id for id, piece in enumerate(spec.pieces) if piece != b"\0"}
        self.size = len(spec.pieces)
        self.byte_fallback = spec.byte_fallback
        self.normalizer_name = spec.normalizer.name.encode()
        self.specials = [spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id]
        self.added = list(spec.added)
        words = (p for p, type in zip(spec.pieces, spec.types, strict=True) if type == PieceType.USER_DEFINED)
        self._longest_word = max(map(len, words), default=1)

    def variant(
        self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False
    ) -> PythonEngine:
        found = self._variants.get((prefix, keep_space, raw))
        if found is None:
            normalizer = self._spec.normalizer
            if prefix is not None:
                normalizer = replace(normalizer, add_dummy_prefix=prefix)
            if raw:
                normalizer = replace(
                    normalizer, add_dummy_prefix=False, remove_extra_whitespaces=False, charsmap=b""
                )
            found = PythonEngine(replace(self._spec, normalizer=normalizer), keep_space)
            self._variants[prefix, keep_space, raw] = found
        return found

    def piece(self, id: int) -> bytes:
        return self._spec.pieces[id]

    def find(self, piece: bytes) -> int | None:
        return self._ids.get(piece)

    def score(self, id: int) -> float:
        return self._spec.scores[id]

    def kind(self, id: int) -> int:
        return self._spec.types[id]

    def normalize(self, text: str | bytes) -> bytes:
        return self._reference.normalize(_bytes(text))

    def origins(self, text: str | bytes) -> tuple[bytes, list[int]]:
        return self._reference.normalizer.normalize(_bytes(text))

    def encode(self, text: str | bytes) -> list[int]:
        return [token.id for token in self._reference.encode(_bytes(text))]

    def encode_array(self, text: str | bytes, threads: int) -> bytearray:
        return bytearray(array("I", self.encode(text)).tobytes())

    def count(self, text: str | bytes) -> int:
        return len(self.encode(text))

    def encode_batch(self, texts: list[str | bytes], threads: int) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_batch_arrays(self, texts: list[str | bytes], threads: int) -> tuple[bytearray, bytearray]:
        ids, offsets = array("I"), array("q", [0])
        for text in texts:
            ids.extend(self.encode(text))
            offsets.append(len(ids))
        return bytearray(ids.tobytes()), bytearray(offsets.tobytes())

    def tokens(self, text: str | bytes) -> tuple[list[int], list[bytes], list[int], list[int]]:
        return _columns(self._reference.encode(_bytes(text)))

    def sample(
        self, text: str | bytes, alpha: float, seed: int
    ) -> tuple[list[int], list[bytes], list[int], list[int]]:
        return _columns(self._reference.encode(_bytes(text), (alpha, mixed(seed))))

    def cut(self, text: bytes) -> int:
        reference = self._reference
        if reference.joinable is None:
            return 0
        end = len(text) - self._longest_word + 1  # a word may begin behind it and go on
        cut = at = 0
        before = b""
        while at < end:
            word = reference.user_defined.longest(text, at)
            symbol = text[at : at + (word or character_length(text, at))]
            if word or not before or before + symbol not in reference.joinable:
                cut = at
            at += len(symbol)
            before = b"" if word else symbol
        return cut

    def decode(self, ids: list[int] | bytes) -> str | None:
        checked = self._checked(ids)
        return None if checked is None else repair(self._reference.decode_ids(checked)).decode()

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        checked = self._checked(ids)
        return None if checked is None else self._reference.decode_ids(checked, keep_invalid=True)

    def decode_pieces(self, pieces: list[bytes]) -> bytes:
        return self._reference.decode_pieces(pieces)

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        texts = [self.decode(ids) for ids in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def _checked(self, ids: list[int] | bytes) -> list[int] | None:
        numbers = array("I", ids).tolist() if isinstance(ids, bytes) else ids
        return numbers if all(type(id) is int and 0 <= id < self.size for id in numbers) else None


def _columns(tokens: list[Token]) -> tuple[list[int], list[bytes], list[int], list[int]]:
    return (
        [token.id for token in tokens],
        [token.piece for token in tokens],
        [token.begin for token in tokens],
        [token.end for token in tokens],
    )


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
