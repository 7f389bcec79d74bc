"""Which tokens begin a word: the parts into which the pre-tokenizer of a file cuts a text."""

from __future__ import annotations

import re
from typing import Any

from cpbpe.compat.tokenizers.normalizing import python_pattern
from cpbpe.engine.protocol import Engine
from cpbpe.model.formats.tokenizer_json.steps import pieces_of
from cpbpe.model.spec import PieceType


class Words:
    """The words of texts for one pre-tokenizer. They consist of whole tokens: nothing is merged across ends.

    With Llama's and Gemma's files, all of a text is one word.
    """

    def __init__(self, pre_tokenizer: Any, engine: Engine):
        self._engine = engine
        self._at_spaces = False
        self._isolated = False
        self._cut: re.Pattern[str] | None = None
        if pre_tokenizer is None:
            return
        steps = pre_tokenizer["pretokenizers"] if pre_tokenizer.get("type") == "Sequence" else [pre_tokenizer]
        if steps and steps[0].get("type") == "Metaspace":
            self._at_spaces = steps[0].get("split", True) is not False
            steps = steps[1:]
        if pieces_of(steps) is not None:
            self._isolated = True
            for step in steps[1:]:
                self._cut = re.compile(python_pattern(step["pattern"]["Regex"]))

    def starts(self, ids: list[int], pieces: list[str]) -> list[bool] | None:
        """Whether each token of a text begins a word; None if the text is one."""
        if not (self._at_spaces or self._isolated):
            return None
        if self._at_spaces:
            return [not at or piece.startswith("▁") for at, piece in enumerate(pieces)]
        starts = [not at for at in range(len(ids))]
        begin = 0
        for at, id in enumerate(ids):
            if self._engine.kind(id) == PieceType.USER_DEFINED:
                self._cut_at(starts, ids, pieces, begin, at)
                starts[at] = True
                if at + 1 < len(ids):
                    starts[at + 1] = True
                begin = at + 1
        self._cut_at(starts, ids, pieces, begin, len(ids))
        return starts

    def _cut_at(self, starts: list[bool], ids: list[int], pieces: list[str], begin: int, end: int) -> None:
        """Cut what is between user-defined pieces, if the file says so."""
        if self._cut is None or begin == end:
            return
        parts = [
            bytes([int(piece[3:5], 16)]) if self._engine.kind(id) == PieceType.BYTE else piece.encode()
            for id, piece in zip(ids[begin:end], pieces[begin:end], strict=True)
        ]
        found = self._cut.match(b"".join(parts).decode())
        if found is None:
            return
        length = len(found[0].encode())
        for at, part in enumerate(parts, begin):
            if length == 0:
                starts[at] = True
                return
            length -= len(part)
