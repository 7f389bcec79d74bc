"""Which pieces text can yield, in models whose symbols begin as characters.

docs/lint.md proves what is used here: a piece comes about in some text exactly if it merges into itself, and
if the normalizer makes it of some text. Where a text is needed around it, a character that occurs in no piece
is put there, because nothing merges with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.merging import Merging
from cpbpe.lint.probing import becomes_itself, first_that_yields, remaining, yields
from cpbpe.lint.sources import Sources, Undecided
from cpbpe.lint.values import Reach, Reason
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.reference.encoding import MAX_SPLIT_DEPTH
from cpbpe.text.utf8 import is_valid_utf8, text_of

NATURAL = ("\n", "-", "0", ".", "a", "x", "(", "é", "中")
"""What is put around a piece first, because it looks like text."""
_MOST_SOURCES = 64
"""So many sources of a piece are tried, if nothing simpler yields it."""
_SEPARATORS = (*range(0x10FFFD, 0x10F000, -1), *range(0xF0000, 0xF1000), *range(0xE000, 0xF8FF))
_BASIC = (*range(0x800, 0xD800), *range(0xE000, 0x10000))
_HIGH = range(0x10000, 0x110000)
_FIRST = (*range(0x800), *_BASIC[::97], *_HIGH[::4099])
MOST_CHARACTERS = 1000
MakeEngine = Callable[[ModelSpec], Engine]


class Characters:
    """Decides for one model. `make` builds an engine of a spec."""

    def __init__(self, spec: ModelSpec, engine: Engine, make: MakeEngine):
        self._spec = spec
        self._engine = engine
        self._make = make
        self._texts = spec.pieces.texts
        self._types = spec.pieces.types
        self.merging = Merging(spec)
        """How pieces merge."""
        self._sources = Sources(spec)

    # --- Tables -------------------------------------------------------------------------------------

    @kept
    def separator(self) -> str:
        """A character that no piece has and that stays as it is; "" if there is none."""
        used = set(b"".join(self._texts).decode(errors="replace"))
        for code in _SEPARATORS:
            character = chr(code)
            raw = self._engine.variant(prefix=False).normalize_str(character)
            if character not in used and raw == character:
                return character
        return ""

    @kept
    def merged(self) -> frozenset[int]:
        """The pieces, UNUSED ones included, that their own characters merge into; and user-defined ones.

        UNUSED pieces are taken apart in the end, so an engine is asked in which they are NORMAL.
        """
        of_text = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
        ids = [id for id, type in enumerate(self._types) if type in of_text]
        ids = [id for id in ids if self._spec.ids.get(self._texts[id]) == id]
        engine = self._engine
        if PieceType.UNUSED in self._types:
            types = bytearray(self._types)
            for id in ids:
                if types[id] == PieceType.UNUSED:
                    types[id] = PieceType.NORMAL
            columns = self._spec.pieces
            pieces = Pieces(columns.blob, columns.ends, columns.scores, bytes(types))
            engine = self._make(replace(self._spec, pieces=pieces, file=None))
        answers = becomes_itself(engine.variant(raw=True), ids, [self._texts[id] for id in ids])
        return frozenset(id for id, answer in zip(ids, answers, strict=True) if answer)

    @kept
    def _deep(self) -> frozenset[int]:
        """UNUSED pieces that are yielded all the same, because they are taken apart only to a depth."""
        unused = [id for id in self.merged if self._types[id] == PieceType.UNUSED]
        if len(unused) <= MAX_SPLIT_DEPTH:
            return frozenset()
        ids, depth = self._spec.ids, dict.fromkeys(unused, 0)
        for id in sorted(unused, key=lambda id: -len(self._texts[id])):
            text = self._texts[id]
            whole = self.merging.run(text)[0]
            for part in whole.parts:
                inner = ids.get(text[part.begin : part.end])
                if inner in depth:
                    depth[inner] = max(depth[inner], depth[id] + 1)
        return frozenset(id for id, below in depth.items() if below > MAX_SPLIT_DEPTH)

    # --- Texts to try -------------------------------------------------------------------------------

    def plain(self, id: int) -> str:
        """A piece as people would type it."""
        text = text_of(self._texts[id])
        return text.replace("▁", " ") if self._spec.normalizer.escape_whitespaces else text

    def _stages(self) -> Iterator[Callable[[int], str | None]]:
        """Yield functions from a piece to a text that may yield it, the most likely first."""
        rules = self._spec.normalizer
        if rules.add_dummy_prefix and rules.escape_whitespaces:

            def without_prefix(id: int) -> str | None:
                text = self.plain(id)
                cut = text[:-1] if rules.suffix else text[1:]
                return cut if cut and (text.endswith(" ") if rules.suffix else text.startswith(" ")) else None

            yield without_prefix
        yield self.plain
        sides = [(left, right) for left in NATURAL for right in ("", left)] + [("", c) for c in NATURAL[:3]]
        sides += [("a ", ""), ("", " a"), ("a ", " a")]
        for left, right in sides:
            yield lambda id, left=left, right=right: left + self.plain(id) + right  # type: ignore[misc]
        mark = self.separator
        for left, right in ((mark, ""), ("", mark), (mark, mark)) if mark else ():
            yield lambda id, left=left, right=right: left + self.plain(id) + right  # type: ignore[misc]

    def _literal(self, id: int) -> Iterator[str]:
        """Texts with U+2581 instead of spaces."""
        text, mark = text_of(self._texts[id]), self.separator
        for left, right in (("", ""), ("a", ""), ("", "a"), (mark, mark)):
            yield left + text + right
            if text.startswith("▁") and not left:
                yield text[1:] + right

    # --- The answer ---------------------------------------------------------------------------------

    def reach(self) -> Reach:
        """Which pieces text can yield."""
        types = self._types
        reasons: dict[int, Reason] = {}
        # 1. Those that do not merge into themselves, or are never shown.
        wanted = []
        for id, kind in enumerate(types):
            if kind in (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.BYTE):
                continue
            if kind == PieceType.UNUSED:
                comes_about = id in self._deep
            else:
                comes_about = id in self.merged or not self._is_told(id)
            if comes_about:
                wanted.append(id)
            else:
                reasons[id] = self._why(id)
        # 2. For the others, a text.
        texts: dict[int, str] = {}
        left = [id for id in wanted if self._is_told(id)]
        for stage in self._stages():
            pairs = [(id, text) for id in left if (text := stage(id)) is not None]
            if not pairs:
                continue
            ids, tries = [id for id, _ in pairs], [text for _, text in pairs]
            for place in yields(self._engine, ids, tries):
                texts[ids[place]] = tries[place]
            left = remaining(left, texts)
        literal = set()
        for id in remaining(wanted, texts):
            found, reason, is_literal = self._hard(id)
            if found is None:
                reasons[id] = reason
                continue
            texts[id] = found
            if is_literal:
                literal.add(id)
        # 3. Bytes and unknown characters.
        for id, kind in enumerate(types):
            if kind == PieceType.UNKNOWN:
                text = self._unknown(id)
                if text is not None:
                    texts[id] = text
                elif self._spec.byte_fallback:
                    reasons[id] = Reason("unused-unknown", "unknown characters become bytes")
                else:
                    reasons[id] = Reason("no-witness", "no unknown character was found", False)
        self._bytes(texts, reasons)
        return Reach(texts, reasons, frozenset(literal))

    def shortest(self, id: int) -> str | None:
        """A text that yields a piece, as short as possible; None if none does or was found."""
        kind = self._types[id]
        if kind == PieceType.UNKNOWN:
            return self._unknown(id)
        if kind in (PieceType.CONTROL, PieceType.BYTE):
            texts: dict[int, str] = {}
            if kind == PieceType.BYTE:
                self._bytes(texts, {})
            return texts.get(id)
        if not self._is_told(id):
            return self._hard(id)[0] if kind != PieceType.UNUSED else None
        if id not in self.merged or (kind == PieceType.UNUSED and id not in self._deep):
            return None
        # 1. The piece alone, without the space that the dummy prefix gives it.
        alone = [stage(id) for stage in islice(self._stages(), 2)]
        text = text_of(self._texts[id])
        tries = [try_ for try_ in alone if try_] + [text.removeprefix("▁"), text.removesuffix("▁"), text]
        # 2. One character beside it: every character of the vocabulary, and one that is not in it.
        characters = {*NATURAL, *filter(None, [self.separator])}
        characters.update(c for c in map(text_of, self._texts) if len(c) == 1 and c != "▁")
        plain = self.plain(id)
        for character in sorted(characters, key=lambda c: (c not in NATURAL, c)):
            tries += [character + plain, plain + character]
            if alone[0] and alone[0] != plain:
                tries += [character + alone[0], alone[0] + character]
            elif plain == " ":
                tries.append(character)
        found = first_that_yields(self._engine, id, sorted(filter(None, tries), key=len))
        if found is not None:
            return found
        # 3. More.
        stages = (stage(id) for stage in self._stages())
        found = first_that_yields(self._engine, id, sorted(filter(None, stages), key=len))
        return found if found is not None else self._hard(id)[0]

    def _is_told(self, id: int) -> bool:
        """Whether merging the piece alone tells everything. (Not for half characters, and NUL.)"""
        text = self._texts[id]
        return text == b"\0" or is_valid_utf8(text)

    def _why(self, id: int) -> Reason:
        """Why a piece does not come about by merging, which is decided."""
        text, kind = self._texts[id], self._types[id]
        if self._spec.ids.get(text) != id:
            return Reason("hidden-nul", "sentencepiece never finds the piece that is one NUL character")
        if self._spec.normalizer.escape_whitespaces and b" " in text:
            return Reason("normalized-away", self._rewritten(text))
        if kind == PieceType.UNUSED:
            return Reason("unused", "its type is UNUSED: it is taken apart again in the end")
        if kind == PieceType.USER_DEFINED:
            return Reason("crowded", "64 shorter user-defined pieces begin like it, and one of them is found")
        for symbol in self.merging.symbols(text):
            if symbol.is_user_defined:
                inside = text_of(text[symbol.begin : symbol.end])
                return Reason("shadowed", f"the user-defined piece {inside!r} in it is found first and kept")
        return blocked(self.merging, self._spec, self.merged, text)

    def _hard(self, id: int) -> tuple[str | None, Reason, bool]:
        """A text for a piece that nothing simple yields, or why there is none; whether it needs U+2581."""
        none = Reason("", "")
        text, mark = self._texts[id], self.separator
        if not is_valid_utf8(text):
            return self._half(id)
        literal = "▁" in text_of(text) and self._spec.normalizer.escape_whitespaces
        if literal:
            found = first_that_yields(self._engine, id, self._literal(id))
            if found is not None:
                return found, none, True
        try:
            sources = list(islice(self._sources.of(text), _MOST_SOURCES))
        except Undecided as reason:
            return (
                None,
                Reason("no-witness", f"no text was found, and it is not decided: {reason}", False),
                False,
            )
        tries = []
        for source, spaced in sources:
            space = " " if spaced else ""
            lefts = ("", mark + space, *(c + space for c in NATURAL))
            tries += [left + source + right for left in lefts for right in ("", mark, *NATURAL)]
        found = first_that_yields(self._engine, id, tries)
        if found is not None:
            return found, none, literal and "▁" in found
        if sources or not mark or self._sources.mentions(mark):
            return None, Reason("no-witness", "no text was found that yields it", False), False
        return None, Reason("normalized-away", self._rewritten(text)), False

    def _rewritten(self, text: bytes) -> str:
        normal = self._engine.variant(prefix=False).normalize(text)
        if self._spec.normalizer.escape_whitespaces and b" " in text:
            return "it has a space, but spaces are written as ▁ before pieces are looked for"
        if normal != text:
            return f"the normalizer makes {text_of(normal)!r} of it, and makes it of no text"
        return "the normalizer makes it of no text"

    def _half(self, id: int) -> tuple[str | None, Reason, bool]:
        """The same for a piece that is not UTF-8: only what takes characters apart makes it."""
        keys = [text for text in self._texts if not is_valid_utf8(text)][:64]
        whole = [text for key in keys for text in _completed(key)]
        found = first_that_yields(
            self._engine, id, chain(whole, (a + b for a in whole[:32] for b in whole[:32]))
        )
        if found is not None:
            return found, Reason("", ""), False
        user_defined = any(
            kind == PieceType.USER_DEFINED and not is_valid_utf8(text)
            for text, kind in zip(self._texts, self._types, strict=True)
        )
        if user_defined or self._spec.normalizer.charsmap:
            return None, Reason("no-witness", "it is not UTF-8, and no text was found", False), False
        return None, Reason("not-utf8", "it is not UTF-8, and symbols are whole characters"), False

    # --- Bytes and unknown characters ---------------------------------------------------------------

    def _unknown(self, id: int) -> str | None:
        if self._spec.byte_fallback:
            return None
        pieces = {text_of(text) for text in self._texts}
        common = (chr(code) for code in chain(range(0xA1, 0x3000), range(0x4E00, 0x5000)))
        strangers = islice((c for c in common if c not in pieces), 64)
        return first_that_yields(self._engine, id, chain(strangers, filter(None, [self.separator])))

    def _bytes(self, texts: dict[int, str], reasons: dict[int, Reason]) -> None:
        """Which BYTE pieces text can yield: those of characters that are no pieces."""
        ids = {
            int(self._texts[id][3:5], 16): id
            for id, kind in enumerate(self._types)
            if kind == PieceType.BYTE and len(self._texts[id]) == 6
        }
        if not ids:
            return
        found: dict[int, str] = {}
        mark = self.separator
        never = {0xC0, 0xC1, *range(0xF5, 0x100)}
        for characters, rest in ((_FIRST, range(256)), (_BASIC, range(0x80, 256)), (_HIGH, range(0x80, 256))):
            wanted = {byte for byte in rest if byte in ids and byte not in found and byte not in never}
            if not wanted:
                break
            some = [c for code in characters if wanted.intersection((c := chr(code)).encode())]
            for left, right in (("", ""), (mark, mark)):
                self._collect(ids, found, [left + c + right for c in some])
        for byte, id in ids.items():
            if byte in found:
                texts[id] = found[byte]
            elif self._sources.takes_characters_apart:
                why = "no text was found, and it is not decided: the model takes characters apart"
                reasons[id] = Reason("no-witness", why, False)
            elif byte in never:
                reasons[id] = Reason("unused-bytes", "no UTF-8 has this byte")
            elif byte < 0x80:
                reasons[id] = self._why_not_ascii(chr(byte), id, texts)
            else:
                reasons[id] = Reason(
                    "unused-bytes", "every character with this byte is a piece, or rewritten"
                )
        for id in [id for id in ids.values() if id in reasons and not reasons[id].code]:
            del reasons[id]

    def _why_not_ascii(self, character: str, id: int, texts: dict[int, str]) -> Reason:
        own = self._spec.ids.get(character.encode())
        if own is not None and self._types[own] in (PieceType.NORMAL, PieceType.USER_DEFINED):
            return Reason("unused-bytes", f"the character {character!r} is a piece")
        try:
            sources = list(islice(self._sources.of(character.encode()), _MOST_SOURCES))
        except Undecided as reason:
            return Reason("no-witness", f"no text was found, and it is not decided: {reason}", False)
        mark = self.separator
        tries = [
            a + (" " if spaced else "") + text + b
            for text, spaced in sources
            for a in ("", mark)
            for b in ("", mark)
        ]
        found = first_that_yields(self._engine, id, tries)
        if found is not None:
            texts[id] = found
            return Reason("", "")
        if sources:
            return Reason("no-witness", "no text was found that yields it", False)
        return Reason("unused-bytes", f"the normalizer never leaves the character {character!r}")

    def _collect(self, ids: dict[int, int], found: dict[int, str], tries: list[str]) -> None:
        """Note which bytes some texts yield."""
        for begin in range(0, len(tries), 1 << 16):
            part = tries[begin : begin + (1 << 16)]
            made, ends = self._engine.encode_arrays(part, 1)  # type: ignore[arg-type]
            for byte, id in ids.items():
                if byte not in found:
                    places = (made == id).nonzero()[0]
                    if len(places):
                        found[byte] = part[int(ends.searchsorted(places[0], "right")) - 1]


def _completed(data: bytes) -> Iterator[str]:
    """Texts that begin or end with some bytes, which need not be UTF-8."""
    for left in (b"", b"\xc3", b"\xe2", b"\xe2\x96", b"\xf0\x9f\xa6"):
        for right in (b"", b"\x81", b"\x96\x81", b"\x9f\xa6\x99", b"\xa6\x99", b"\x80\x80"):
            whole = left + data + right
            if is_valid_utf8(whole):
                yield whole.decode()


def blocked(merging: Merging, spec: ModelSpec, merged: Iterable[int], text: bytes) -> Reason:
    """Why the symbols of a text do not merge into it."""
    there = merged if isinstance(merged, frozenset) else frozenset(merged)
    ids = spec.ids
    symbols = merging.symbols(text)
    spans = {symbol[:2] for symbol in symbols}

    def is_made(begin: int, end: int) -> bool:
        return (begin, end) in spans or ids.get(text[begin:end]) in there

    borders = (symbol.begin for symbol in symbols[1:])
    border = next((b for b in borders if is_made(0, b) and is_made(b, len(text))), None)
    if border is None:
        return Reason("orphan", "no two symbols make it: no pair of its parts ever comes about")
    if len(text) > MOST_CHARACTERS:
        return Reason("blocked", "its symbols merge into others first")
    left = merging.run(text)
    ends = " ".join(repr(text_of(text[symbol.begin : symbol.end])) for symbol in left)
    # The first merge across the border is the innermost one.
    across = [symbol for symbol in left if symbol.begin < border < symbol.end]
    while across and (inner := [part for part in across[-1].parts if part.begin < border < part.end]):
        across = inner
    if not across:
        return Reason("blocked", f"its symbols end as {ends}")
    made = text_of(text[across[0].begin : across[0].end])
    parts = f"{text_of(text[:border])!r} and {text_of(text[border:])!r}"
    return Reason("blocked", f"{parts} would make it, but {made!r} is merged first, and it ends as {ends}")
