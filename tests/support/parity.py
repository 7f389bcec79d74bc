"""Comparing cpbpe with sentencepiece on one text, one list of ids, or one list of pieces."""

from collections.abc import Callable, Sequence
from typing import Any

import sentencepiece

from cpbpe.text.utf8 import repair
from tests.support import tokenizers


class Pair:
    """One model in both libraries."""

    def __init__(self, data: bytes, engine: str):
        self.theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
        self.ours = tokenizers.make(data, engine)
        name = type(self.ours.facts.engine).__name__
        assert name == {"core": "Engine", "reference": "PythonEngine"}[engine]
        self.compared = 0

    def _same(self, what: str, given: Any, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Any:
        self.compared += 1
        found, expected = ours(), theirs()
        assert found == expected, f"{what} of {given!r}:\n ours {found!r}\n  not {expected!r}"
        return found

    def check_text(self, text: str | bytes) -> None:
        """Ids, pieces, offsets, the normalized text, and what the ids and pieces decode to."""
        ours, theirs = self.ours, self.theirs
        ids = self._same("ids", text, lambda: ours.encode(text), lambda: theirs.encode(text))
        data = text.encode() if isinstance(text, str) else text
        normalized = self._same(
            "normalized", text, lambda: ours.normalize(data), lambda: theirs.normalize(data)
        )
        assert ours.normalize(text) in (normalized, repair(normalized).decode())
        self.check_ids(ids)
        self._same("count", text, lambda: ours.count(text), lambda: len(ids))
        self._same("array", text, lambda: ours.encode_array(text, threads=2).tolist(), lambda: ids)
        batch = [ids, ours.encode("a"), ids]
        self._same("batch", text, lambda: ours.encode_batch([text, "a", text]), lambda: batch)

        found = ours.align(text)
        expected = theirs.encode(text, return_type="offset_mapping", return_bytes=True)
        proto = theirs.encode(text, return_type="proto")
        self._same("offsets' ids", text, lambda: found.ids, lambda: expected["ids"])
        pieces = [repair(piece).decode() for piece in expected["pieces"]]
        self._same("pieces", text, lambda: found.pieces, lambda: pieces)
        self._same("pieces", text, lambda: ours.encode_pieces(text), lambda: pieces)
        in_bytes = ours.align(text, unit="byte")
        self._same("byte offsets", text, lambda: in_bytes.offsets, lambda: expected["offsets"])
        spans = [data[begin:end] for begin, end in expected["offsets"]]
        self._same("surfaces", text, lambda: in_bytes.surfaces, lambda: spans)
        # protobuf gives a surface that is not UTF-8, half a character, as bytes
        theirs_in_bytes = [
            p.surface if isinstance(p.surface, bytes) else p.surface.encode() for p in proto.pieces
        ]
        self._same("surfaces", text, lambda: in_bytes.surfaces, lambda: theirs_in_bytes)
        if isinstance(text, str):
            try:
                characters = theirs.encode(text, return_type="offset_mapping")["offsets"]
            except UnicodeDecodeError:  # a piece that is not UTF-8, which sentencepiece cannot show as str
                return
            self._same("offsets", text, lambda: found.offsets, lambda: characters)
            cut = [text[begin:end] for begin, end in characters]
            self._same("surfaces", text, lambda: found.surfaces, lambda: cut)
        self.check_pieces(pieces)

    def check_ids(self, ids: Sequence[int]) -> None:
        ids = list(ids)
        theirs = self.theirs.decode(ids, return_type=bytes)
        self._same("decoded", ids, lambda: self.ours.decode(ids), lambda: repair(theirs).decode())

    def check_pieces(self, pieces: Sequence[str]) -> None:
        pieces = list(pieces)
        theirs = self.theirs.decode(pieces, return_type=bytes) if pieces else b""
        self._same(
            "decoded",
            pieces,
            lambda: self.ours.decode_pieces(pieces),
            lambda: repair(theirs).decode(),
        )
