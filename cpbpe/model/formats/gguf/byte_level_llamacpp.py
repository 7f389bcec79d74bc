"""What llama.cpp does with a byte-level model, where that is not what the model does.

It merges by the list of pairs, as the library `tokenizers`. What is different was measured with llama.cpp:

- It cuts texts by the patterns that the name in the file stands for (see `pre_names`), and never brings them
  into a Unicode normal form.
- It takes a chunk whole that is a token only if the name says so, and then any token: also a special one
  that is spelled like a word.
- It finds a few special tokens of gpt-oss in every text, whatever their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cpbpe.lazy import imported, kept
from cpbpe.model.byte_pairs import Listed, cut_pieces, normal, pairs_of, shown
from cpbpe.model.formats.gguf.pre_names import PreName, name_for, nearest
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import by_text, merged
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.byte_letters import from_letters, is_spelled, to_letters
from cpbpe.text.unicode_forms import NOT_IN_FORM

_LONG_S = "ſ"
_JOINED = re.compile(rb"[\r\n](?=[ \t\x0b\x0c\xc2\xe1-\xe3])[^\r\n]*\Z")
"""The last line break, and after it the first byte of a character that may be another space."""
_ALWAYS_FOUND = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
_FOUND_TOGETHER = ({"<|end|>", "<|return|>", "<|call|>"}, {"<|end|>", "<|flush|>", "<|calls|>"})
"""If all of one set are there, the first is found in every text, too."""
_SAMPLES = (
    *("aÉb", "éÉb", "Éa", "e\u0301", "e\u0301a", "a\u0301b\u0301", "ÀÈ", "ЖЖж", "жЖ", "ไทยคำ", "हिन्दी", "'ſ"),
    *("\n ", "a\n ", "a \n  ", "it'ſ a", "x'ſt", "12345", "a1b", "\r\n\n \t"),
)
"""Where the patterns differ."""
_TRIED = 300


class LlamaCppBytes:
    """A byte-level model, and what llama.cpp makes of it."""

    def __init__(self, spec: ModelSpec, pre: PreName):
        self.spec = spec
        self.pre = pre
        self.patterns = () if spec.splitter is None else (spec.splitter.pattern, *spec.splitter.then)
        self.their_patterns = pre.theirs or pre.patterns

    @kept
    def ranks(self) -> dict[str, float]:
        """The rank of each piece of several bytes, spelled in letters."""
        pairs = self.listed.pairs
        unmade = {to_letters(piece): float(len(pairs)) for piece in self.listed.unmade}
        return {to_letters(piece): float(rank) for rank, piece in enumerate(pairs)} | unmade

    @kept
    def listed(self) -> Listed:
        """The pairs of the model."""
        return pairs_of(self.spec)

    @kept
    def names(self) -> dict[str, int]:
        """The ids of all tokens by how the file spells them."""
        rows = zip(self.spec.pieces.texts, self.spec.pieces.types, strict=True)
        own = {
            to_letters(text) if type == PieceType.NORMAL else text.decode(errors="replace"): id
            for id, (text, type) in enumerate(rows)
        }
        return own | {text.decode(errors="replace"): id for text, id in self.spec.added}

    # --- Ids -------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """The ids that llama.cpp gives to a text in which it looks for no special tokens."""
        whole = self.names if self.pre.their_whole else {}
        return [self.names[symbol] for symbol in self._symbols(text, self.their_patterns, whole)]

    def _symbols(self, text: str, patterns: Iterable[str], whole: Mapping[str, int]) -> Iterator[str]:
        rank = by_text(self.ranks)
        for chunk in chunks(text, patterns):
            letters = to_letters(chunk.encode())
            yield from [letters] if letters in whole else merged(letters, rank)[0]

    # --- Differences -----------------------------------------------------------------------------

    def differences(self) -> Iterator[Difference]:
        """Yield what llama.cpp does in another way."""
        form = self.spec.normalizer.unicode_form
        if form:
            reason = f"llama.cpp does not bring texts into the Unicode normal form {form}"
            yield Difference(reason, NOT_IN_FORM[form])
        if self.spec.normalizer.add_dummy_prefix:
            yield Difference("llama.cpp puts no space in front of texts of byte-level models", "a")
        yield from self._of_cuts()
        yield from self._of_whole()
        if self.listed.differs is not None:
            reason = "of merges with equal scores, llama.cpp chooses another one"
            yield Difference(reason, self.listed.differs)
        yield from self._of_names()

    def _of_cuts(self) -> Iterator[Difference]:
        if self.their_patterns == self.patterns:
            return
        if self.pre.patterns != self.patterns and self._joins_lines():
            reason = f"llama.cpp cuts the spaces at the end of a text as {self.pre.name}, after a line break"
            yield Difference(reason, self._text_that_differs())
        if r"[^a-z]" in self.their_patterns[0]:
            reason = "llama.cpp knows capitals only from A to Z, and takes marks such as accents for signs"
            yield Difference(reason, self._text_that_differs())
        elif self._sees_long_s():
            reason = "llama.cpp does not take ſ for an s in endings such as 's"
            yield Difference(reason, self._text_that_differs())

    def _joins_lines(self) -> bool:
        """Whether it may matter where cl100k's pattern, which is the other one, cuts at the end of a text.

        There it leaves all spaces together, and llama3's cuts after the last line break. All the rest is the
        same. So it cannot matter if no piece ends with a line break and then other spaces.
        """
        return any(_JOINED.search(piece) for _, piece in normal(self.spec))

    def _sees_long_s(self) -> bool:
        """Whether it may matter that "'ſ" is cut off from the letters after it, which it is not in llama.cpp.

        It cannot if no piece reaches from that ſ into the next character, and "'ſ" is what its merges make.
        """
        first, last = _LONG_S.encode()
        for _, piece in normal(self.spec):
            if piece == b"'" + _LONG_S.encode() and piece in self.listed.unmade:
                return True
            for at, byte in enumerate(piece[:-1]):
                before = piece[at - 1] if at else first
                if byte == last and before == first and piece[at + 1] & 0xC0 != 0x80:
                    return True
        return False

    def _text_that_differs(self) -> str | None:
        """A text with other ids; None if none is found."""
        pieces = [piece for _, piece in normal(self.spec)]
        tried = [*_SAMPLES]
        for pattern in (self.their_patterns[0], *self.patterns[:1]):
            tried += [text for text, _ in zip(cut_pieces(pieces, pattern), range(_TRIED), strict=False)]
        long_s = (piece.decode(errors="replace") for piece in pieces if _LONG_S.encode() in piece)
        tried += [f"'{text[text.index(_LONG_S) :]}" for text in long_s]
        rows = normal(self.spec) if self.spec.whole else ()
        whole = {to_letters(piece): id for id, piece in rows}

        def differs(text: str) -> bool:
            ours, theirs = (self._symbols(text, way, whole) for way in (self.patterns, self.their_patterns))
            return list(ours) != list(theirs)

        return min(
            filter(differs, tried),
            key=lambda text: (len(text), text),
            default=None,
        )

    def _of_whole(self) -> Iterator[Difference]:
        if self.spec.whole == self.pre.their_whole:
            return
        for piece in self.listed.unmade:
            try:
                text = piece.decode()
            except UnicodeDecodeError:
                continue  # no chunk is a part of a character
            reason = (
                f"with {self.pre.name} llama.cpp takes a chunk that is a piece whole, and here it is merged"
            )
            if self.spec.whole:
                reason = "a chunk that is a piece is taken whole, and llama.cpp merges it"
            yield Difference(reason, text if len(list(chunks(text, self.patterns))) == 1 else None)
            break

    def _of_names(self) -> Iterator[Difference]:
        special = {name for name, id in self.names.items() if not self._is_normal(id)}
        always = [name for name in _ALWAYS_FOUND if name in self.names]
        always += [sorted(names)[1] for names in _FOUND_TOGETHER if names <= self.names.keys()]
        if always:
            yield Difference("llama.cpp finds this token in every text, whatever its type", always[0])
        if self.pre.their_whole:
            for name in sorted(special, key=lambda name: (len(name), name)):
                if not is_spelled(name):
                    continue
                text = shown(from_letters(name))
                if len(list(chunks(text, self.their_patterns))) == 1:
                    yield Difference("llama.cpp finds a special token that is a chunk of a text", text)
                    break

    def _is_normal(self, id: int) -> bool:
        return id < len(self.spec.pieces) and self.spec.pieces.types[id] == PieceType.NORMAL


def chunks(text: str, patterns: Iterable[str]) -> Iterator[str]:
    """The chunks of a text: each pattern cuts those of the one before; what it leaves out is a chunk, too.

    >>> list(chunks("a1b", ["[0-9]"]))
    ['a', '1', 'b']
    """
    regex = imported("regex")
    parts = [text] if text else []
    for pattern in patterns:
        compiled = regex.compile(pattern)
        found: list[str] = []
        for part in parts:
            at = 0
            for match in compiled.finditer(part):
                found += [part[at : match.start()], match.group()]
                at = match.end()
            found.append(part[at:])
        parts = [part for part in found if part]
    return iter(parts)


def differences(spec: ModelSpec) -> list[Difference]:
    """What llama.cpp does with a model in another way; empty if it gives the same ids to all texts."""
    pre = name_for(spec) or nearest(spec)
    return [] if pre is None else list(LlamaCppBytes(spec, pre).differences())
