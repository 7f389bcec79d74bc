"""Which pieces text can yield, with a text for each of them: decided for all pieces at once.

docs/inspecting.md proves the facts that this file relies on. A text can yield a piece only if the piece's
own text merges into it, or, in a byte-level model, if a chunk of exactly this text is taken whole. Whether
the piece then stays depends on what is around it, and on the normalizer or the pattern.

In models whose symbols begin as characters, a character that occurs in no piece is put beside the piece,
because nothing merges with it. Then the piece stays, provided that the normalizer turns some text into these
two (`sources.py`). In byte-level models, a pattern may cut for any reason, so many surroundings are tried.
Where none works, the file looks for a proof that none can: from the pattern, whose chunks never have these
characters side by side (`chunks.py`), from UTF-8, from the Unicode normal form, or from what can follow the
piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, product

import numpy as np

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.chunks import chunks_of
from cpbpe.lint.findings import Reach, Reason
from cpbpe.lint.halves import completions, goes_on, open_bytes, parted
from cpbpe.lint.merging import Merging
from cpbpe.lint.sources import Sources, Undecided
from cpbpe.model.spec import MAX_SPLIT_DEPTH, ModelSpec, Pieces, PieceType
from cpbpe.text.drawn import quoted
from cpbpe.text.unicode_forms import normal_form
from cpbpe.text.utf8 import is_valid_utf8, text_of

MakeEngine = Callable[[ModelSpec], Engine]
Sides = Iterable[tuple[str, str]]
"""What is put in front of a piece and after it, to make texts that may yield it."""

_BATCH = 1 << 16
"""This many texts are encoded at once."""


def witnesses_of(spec: ModelSpec, engine: Engine, make: MakeEngine) -> Witnesses:
    """The `Witnesses` for a model of either family. `make` builds an engine from a spec.

    >>> from cpbpe.engine.choice import make_engine
    >>> from cpbpe.model.spec import MAX_SPLIT_DEPTH, NormalizerSpec, Piece, Pieces, PieceType
    >>> pieces = Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)] + [
    ...     Piece(text.encode(), -rank) for rank, text in enumerate(["bc", "ab", "abc", "a", "b", "c"])])
    >>> spec = ModelSpec(pieces, NormalizerSpec(add_dummy_prefix=False))
    >>> witnesses = witnesses_of(spec, make_engine(spec), make_engine)
    >>> witnesses.shortest(3), witnesses.reach().reasons
    ('abc', {})
    """
    return (Bytes if spec.alphabet == "bytes" else Characters)(spec, engine, make)


class Witnesses:
    """Finds a text for each piece of one model. This class has what both families of models share."""

    def __init__(self, spec: ModelSpec, engine: Engine, make: MakeEngine):
        self._spec = spec
        self._engine = engine
        self._make = make
        self._texts = spec.pieces.texts
        self._types = spec.pieces.types
        self._merging = Merging(spec)

    def reach(self) -> Reach:
        """Return which pieces text can yield."""
        raise NotImplementedError

    def shortest(self, id: int) -> str | None:
        """The shortest text found that yields a piece; None if no text does, or none was found."""
        raise NotImplementedError

    def why_not_in_a_chunk(self, text: bytes) -> Reason | None:
        """Why no chunk contains these bytes, however they are completed; None if one may contain them."""
        return None

    def _plain(self, id: int) -> str:
        """A piece as people would type it."""
        text = text_of(self._texts[id])
        return text.replace("▁", " ") if self._spec.normalizer.escape_whitespaces else text

    def _find(self, ids: Iterable[int], sides: Sides, texts: dict[int, str]) -> None:
        """Find texts for pieces, in which each stands between two sides."""
        for left, right in sides:
            if not (ids := _remaining(ids, texts)):
                return
            self._record(((id, left + self._plain(id) + right) for id in ids), texts)

    def _record(self, pairs: Iterable[tuple[int, str]], texts: dict[int, str]) -> None:
        """Add to `texts` the first text of each piece that yields it."""
        for id, text in self._yielding(pairs):
            texts.setdefault(id, text)

    def _first(self, id: int, texts: Iterable[str]) -> str | None:
        """The first of some texts that yields a piece."""
        return next((text for _, text in self._yielding((id, text) for text in texts)), None)

    def _yielding(self, pairs: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the pairs whose text yields their piece."""
        every = iter(pairs)
        while batch := list(islice(every, _BATCH)):
            wanted, texts = zip(*batch, strict=True)
            found, ends = self._engine.encode_arrays(list(texts), 1)
            owner = np.repeat(np.arange(len(batch)), np.diff(ends))
            hits = found.astype(np.int64) == np.asarray(wanted, np.int64)[owner]
            yield from (batch[place] for place in np.unique(owner[hits]).tolist())

    def _become_themselves(self, engine: Engine, ids: list[int]) -> frozenset[int]:
        """The pieces whose own text encodes to them alone; the engine must not normalize."""
        same: list[int] = []
        for begin in range(0, len(ids), _BATCH):
            part = ids[begin : begin + _BATCH]
            found, ends = engine.encode_arrays([self._texts[id] for id in part], 1)
            single = np.flatnonzero(np.diff(ends) == 1)
            same += (part[place] for place in single.tolist() if found[ends[place]] == part[place])
        return frozenset(same)


def _remaining(wanted: Iterable[int], texts: Mapping[int, str]) -> list[int]:
    """The pieces for which no text is known yet."""
    return [id for id in wanted if id not in texts]


# --- Models whose symbols begin as characters -----------------------------------------------------

NATURAL = ("\n", "-", "0", ".", "a", "x", "(", "é", "中")
"""These are put around a piece first, because such texts look natural."""
_MOST_SOURCES = 64
"""This many sources of a piece are tried, if nothing simpler yields it."""
_MOST_COMPLETIONS = 200
"""This many completions of each piece that is not UTF-8 are tried."""
_SEPARATORS = (*range(0x10FFFD, 0x10F000, -1), *range(0xF0000, 0xF1000), *range(0xE000, 0xF8FF))
"""Candidates for the separator: code points for private use."""
# Code points of three and of four bytes; and some of all lengths, which are searched for bytes first.
_BASIC = (*range(0x800, 0xD800), *range(0xE000, 0x10000))
_HIGH = range(0x10000, 0x110000)
_FIRST = (*range(0x800), *_BASIC[::97], *_HIGH[::4099])
_NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
_TEXT_TYPES = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)


class Characters(Witnesses):
    """Finds texts for the pieces of models whose symbols begin as characters."""

    def __init__(self, spec: ModelSpec, engine: Engine, make: MakeEngine):
        super().__init__(spec, engine, make)
        self._sources = Sources(spec)

    # --- Tables -------------------------------------------------------------------------------------

    @kept
    def _separator(self) -> str:
        """A character that no piece has and that stays as it is; "" if there is none."""
        used = set(b"".join(self._texts).decode(errors="replace"))
        normalized = self._engine.variant(prefix=False).normalize
        free = (c for c in map(chr, _SEPARATORS) if c not in used and normalized(c) == c)
        return next(free, "")

    @kept
    def _separates(self) -> bool:
        """Whether there is a separator, and no rule and no user-defined piece has it."""
        return bool(self._separator) and not self._sources.mentions(self._separator)

    @kept
    def _merged(self) -> frozenset[int]:
        """The pieces that their own characters merge into, UNUSED ones included, and user-defined pieces.

        UNUSED pieces are taken apart in the end, so this uses an engine in which they are NORMAL.
        """
        ids = [id for text, id in self._spec.ids.items() if self._types[id] in _TEXT_TYPES]
        engine = self._engine
        if PieceType.UNUSED in self._types:
            types = bytearray(self._types)
            for id in ids:
                if types[id] == PieceType.UNUSED:
                    types[id] = PieceType.NORMAL
            columns = self._spec.pieces
            pieces = Pieces(columns.blob, columns.ends, columns.scores, bytes(types))
            engine = self._make(replace(self._spec, pieces=pieces, file=None))
        return self._become_themselves(engine.variant(raw=True), ids)

    @kept
    def _deep(self) -> frozenset[int]:
        """UNUSED pieces that text yields nevertheless: pieces are taken apart only to a limited depth."""
        unused = [id for id in self._merged if self._types[id] == PieceType.UNUSED]
        if len(unused) <= MAX_SPLIT_DEPTH:
            return frozenset()
        depth = dict.fromkeys(unused, 0)
        for id in sorted(unused, key=lambda id: -len(self._texts[id])):
            text = self._texts[id]
            for _, middle, _ in self._merging.run(text)[1][-1:]:  # the last merge
                for part in (text[:middle], text[middle:]):
                    inner = self._spec.ids.get(part)
                    if inner in depth:
                        depth[inner] = max(depth[inner], depth[id] + 1)
        return frozenset(id for id, below in depth.items() if below > MAX_SPLIT_DEPTH)

    def _may_be_output(self, id: int) -> bool:
        """Whether merging its text makes the piece, and leaves it. For one that is not UTF-8: True."""
        if self._types[id] == PieceType.UNUSED:
            return id in self._deep
        return id in self._merged or not self._is_whole(id)

    def _is_whole(self, id: int) -> bool:
        """Whether a piece is whole characters, so that merging its own text decides whether it is made."""
        return is_valid_utf8(self._texts[id])

    # --- Texts to try -------------------------------------------------------------------------------

    def _without_prefix(self, id: int) -> str | None:
        """A piece without the space that a dummy prefix adds; None if it has none, or nothing else."""
        text, rules = self._plain(id), self._spec.normalizer
        at_end = rules.suffix
        if not (rules.add_dummy_prefix and rules.escape_whitespaces):
            return None
        bare = text.removesuffix(" ") if at_end else text.removeprefix(" ")
        return bare if bare not in ("", text) else None

    @kept
    def _sides(self) -> list[tuple[str, str]]:
        """What to put around pieces, the most likely first."""
        mark = self._separator
        sides = [("", "")]
        sides += [(left, right) for left in NATURAL for right in ("", left)] + [("", c) for c in NATURAL[:3]]
        sides += [("a ", ""), ("", " a"), ("a ", " a")]
        return sides + ([(mark, ""), ("", mark), (mark, mark)] if mark else [])

    def _literal(self, id: int) -> Iterator[str]:
        """Texts with U+2581 instead of spaces."""
        text, mark = text_of(self._texts[id]), self._separator
        for left, right in (("", ""), ("a", ""), ("", "a"), (mark, mark)):
            yield left + text + right
            if text.startswith("▁") and not left:
                yield text[1:] + right

    # --- The answer ---------------------------------------------------------------------------------

    def reach(self) -> Reach:
        """Which pieces text can yield."""
        texts: dict[int, str] = {}
        reasons: dict[int, Reason] = {}
        # 1. The pieces that do not merge into themselves, or are taken apart again.
        of_text = [id for id, kind in enumerate(self._types) if kind in _TEXT_TYPES]
        reasons.update((id, self._why(id)) for id in of_text if not self._may_be_output(id))
        # 2. A text for each of the others.
        wanted = [id for id in of_text if id not in reasons]
        whole = list(filter(self._is_whole, wanted))
        self._record(((id, text) for id in whole if (text := self._without_prefix(id)) is not None), texts)
        self._find(whole, self._sides, texts)
        hard = {id: self._search_harder(id) for id in _remaining(wanted, texts)}
        # 3. Unknown characters and bytes.
        unknown = {id: self._unknown(id) for id, t in enumerate(self._types) if t == PieceType.UNKNOWN}
        for id, found in chain(hard.items(), unknown.items(), self._bytes.items()):
            if isinstance(found, str):
                texts[id] = found
            else:
                reasons[id] = found
        escapes = self._spec.normalizer.escape_whitespaces
        literal = frozenset(id for id in hard if escapes and "▁" in texts.get(id, "") and self._is_whole(id))
        return Reach(texts, reasons, literal)

    def shortest(self, id: int) -> str | None:
        """A text that yields a piece, as short as possible; None if no text does, or none was found."""
        kind = self._types[id]
        if kind == PieceType.UNKNOWN:
            return _text(self._unknown(id))
        if kind == PieceType.BYTE:
            return _text(self._bytes.get(id))
        if kind == PieceType.CONTROL or not self._may_be_output(id):
            return None
        if not self._is_whole(id):
            return _text(self._search_harder(id))
        # 1. The piece alone, without the space that the dummy prefix gives it.
        text, plain, bare = text_of(self._texts[id]), self._plain(id), self._without_prefix(id)
        tries = [bare or "", plain, text.removeprefix("▁"), text.removesuffix("▁"), text]
        # 2. One character beside it: every character of the vocabulary, and one that is not in it.
        characters = {*NATURAL, *filter(None, [self._separator])}
        characters.update(c for c in map(text_of, self._texts) if len(c) == 1 and c != "▁")
        for character in sorted(characters, key=lambda c: (c not in NATURAL, c)):
            tries += [character + plain, plain + character]
            if bare:
                tries += [character + bare, bare + character]
            elif plain == " ":
                tries.append(character)  # (the piece may be the dummy prefix before it)
        found = self._first(id, sorted(filter(None, tries), key=len))
        # 3. More.
        if found is None:
            found = self._first(id, sorted((left + plain + right for left, right in self._sides), key=len))
        return found if found is not None else _text(self._search_harder(id))

    def _why(self, id: int) -> Reason:
        """Why a piece for which `_may_be_output` is False never is."""
        text, kind = self._texts[id], self._types[id]
        if self._spec.ids.get(text) != id:
            return Reason("hidden-nul", "sentencepiece never finds the piece that is one NUL character")
        if self._spec.normalizer.escape_whitespaces and b" " in text:
            return Reason("normalized-away", self._rewritten(text))
        if kind == PieceType.UNUSED:
            return Reason("unused", "its type is UNUSED: it is taken apart again in the end")
        if kind == PieceType.USER_DEFINED:
            return Reason("crowded", "it begins with 64 shorter user-defined pieces, of which one is found")
        for symbol in self._merging.symbols(text):
            if symbol.is_user_defined:
                inside = text_of(text[symbol.begin : symbol.end])
                return Reason(
                    "shadowed", f"the user-defined piece {quoted(inside)} in it is found first and kept"
                )
        return self._merging.why_not(text, self._merged)

    def _search_harder(self, id: int) -> str | Reason:
        """A text for a piece that no simple text yields, or the reason why there is none."""
        text = self._texts[id]
        if not is_valid_utf8(text):
            return self._search_not_utf8(id)
        if "▁" in text_of(text) and self._spec.normalizer.escape_whitespaces:
            literal = self._first(id, self._literal(id))
            if literal is not None:
                return literal
        never = Reason("normalized-away", self._rewritten(text))
        return self._of_sources(id, text, (self._separator, *NATURAL), never)

    def _of_sources(self, id: int, wanted: bytes, around: tuple[str, ...], never: Reason) -> str | Reason:
        """A text for a piece among those that the normalizer turns into `wanted`, or why there is none.

        `around` is what is tried on both sides. `never` is the reason if it is proved that there is none.
        """
        try:
            sources = list(islice(self._sources.of(wanted), _MOST_SOURCES))
        except Undecided as reason:
            return Reason("no-witness", f"no text was found, and it is not decided: {reason}", False)
        # (Some sources must come after a space.)
        sides = ((source, " " if spaced else "") for source, spaced in sources)
        tries = (
            left + source + right
            for source, space in sides
            for left in ("", *(character + space for character in around))
            for right in ("", *around)
        )
        found = self._first(id, tries)
        if found is not None:
            return found
        if sources or not self._separates:
            return Reason("no-witness", "no text was found that yields it", False)
        return never

    def _rewritten(self, text: bytes) -> str:
        normal = self._engine.variant(prefix=False).normalize(text)
        if self._spec.normalizer.escape_whitespaces and b" " in text:
            return "it has a space, but spaces are written as ▁ before pieces are looked for"
        if normal != text:
            return f"the normalizer rewrites it to {quoted(text_of(normal))}, and never produces it"
        return "the normalizer never produces it"

    def _search_not_utf8(self, id: int) -> str | Reason:
        """The same for a piece that is not UTF-8. It is made only if the model takes characters apart."""
        keys = [text for text in self._texts if not is_valid_utf8(text)][:64]
        whole = [text for key in keys for text in islice(completions(key), _MOST_COMPLETIONS)]
        found = self._first(id, chain(whole, map("".join, product(whole[:32], repeat=2))))
        if found is not None:
            return found
        user_defined = any(
            kind == PieceType.USER_DEFINED and not is_valid_utf8(text)
            for text, kind in zip(self._texts, self._types, strict=True)
        )
        if user_defined or self._spec.normalizer.charsmap:
            return Reason("no-witness", "it is not UTF-8, and no text was found", False)
        return Reason("not-utf8", "it is not UTF-8, and symbols are whole characters")

    # --- Bytes and unknown characters ---------------------------------------------------------------

    def _unknown(self, id: int) -> str | Reason:
        if self._spec.byte_fallback:
            return Reason("unused-unknown", "unknown characters become bytes")
        pieces = {text_of(text) for text in self._texts}
        common = (chr(code) for code in chain(range(0xA1, 0x3000), range(0x4E00, 0x5000)))
        strangers = islice((c for c in common if c not in pieces), 64)
        found = self._first(id, chain(strangers, filter(None, [self._separator])))
        return found if found is not None else Reason("no-witness", "no unknown character was found", False)

    @kept
    def _bytes(self) -> dict[int, str | Reason]:
        """For each BYTE piece a text, or why there is none. Characters without a piece become bytes."""
        ids = {
            int(self._texts[id][3:5], 16): id
            for id, kind in enumerate(self._types)
            if kind == PieceType.BYTE and len(self._texts[id]) == 6
        }
        texts: dict[int, str] = {}
        for codes in (_FIRST, _BASIC, _HIGH):
            # (`_FIRST` has all of ASCII, so only the bytes of longer characters are left after it.)
            least = 0 if codes is _FIRST else 0x80
            missing = {byte for byte, id in ids.items() if id not in texts and byte >= least} - _NEVER_IN_UTF8
            if not missing:
                break
            some = [c for c in map(chr, codes) if missing.intersection(c.encode())]
            for side in ("", self._separator):
                self._record_bytes(ids, [side + c + side for c in some], texts)
        return {id: texts[id] if id in texts else self._why_no_byte(byte, id) for byte, id in ids.items()}

    def _record_bytes(self, ids: dict[int, int], tries: list[str], texts: dict[int, str]) -> None:
        """Add to `texts` a text for each BYTE piece that some texts yield."""
        for begin in range(0, len(tries), _BATCH):
            part = tries[begin : begin + _BATCH]
            made, ends = self._engine.encode_arrays(list(part), 1)
            for id in _remaining(ids.values(), texts):
                places = np.flatnonzero(made == id)
                if len(places):
                    texts[id] = part[int(ends.searchsorted(places[0], "right")) - 1]

    def _why_no_byte(self, byte: int, id: int) -> str | Reason:
        """Why no text yields a BYTE piece; or a text that does yield it."""
        if self._sources.takes_characters_apart:
            why = "no text was found, and it is not decided: the model takes characters apart"
            return Reason("no-witness", why, False)
        if byte in _NEVER_IN_UTF8:
            return Reason("unused-bytes", "no UTF-8 has this byte")
        if byte >= 0x80:
            return Reason("unused-bytes", "every character with this byte is a piece, or rewritten")
        character = chr(byte)
        own = self._spec.ids.get(character.encode())
        if own is not None and self._types[own] in (PieceType.NORMAL, PieceType.USER_DEFINED):
            return Reason("unused-bytes", f"the character {quoted(character)} is a piece")
        never = Reason("unused-bytes", f"the normalizer never leaves the character {quoted(character)}")
        return self._of_sources(id, character.encode(), (self._separator,), never)


def _text(found: str | Reason | None) -> str | None:
    return found if isinstance(found, str) else None


# --- Byte-level models ----------------------------------------------------------------------------

_LEFT = ("", " ", "a", ".", "\n", "1", "中", "'", "A", "  ", "\t", "é", "\u0301", "((", "aa", "x\n")
"""What is tried in front of a piece."""
_RIGHT = ("", " ", "a", ".", "\n", "1", "中", "'", "A", "  ", "x", "\r\n", "é", "\u0301", "))", "aa", " x")
"""What is tried after it."""
_RARE_LEFT = ("", "€", "ſ", "\u0489", "中", "a", " ", "٣", "\r\n", "€€", "Ƣ", "ꙮ", "🦙", "\n\n", "\x01", "-€")
"""What is tried in front of a piece that no text has yielded so far: characters that are in few pieces."""
_RARE_RIGHT = (
    *("", "ſ", "€", "ꙮ", "\u0489", "Ƣ", "🦙", "٣", "\x01", "/€", "\r\r", "ſſ", "€€"),
    *("s", "t", "ll", "re", "ve", "S", "T", "D", "M", "LL", "Re", "VE", "lL", "rE", "vE"),
)
"""What is tried after such a piece; and the English endings, which some patterns keep with their word."""
_SIDES, _RARE_SIDES = (
    sorted(product(left, right), key=lambda pair: len("".join(pair)))
    for left, right in ((_LEFT, _RIGHT), (_RARE_LEFT, _RARE_RIGHT))
)
_STEPS = ((0, 8, ("",)), (0, 120, ("", " ", "a")), (120, 5000, ("", " ", "a")))
"""Which completions of a piece are tried if it is not whole characters, and after what. Each step is for
pieces that have no text by then."""


class Bytes(Witnesses):
    """Finds texts for the pieces of byte-level models."""

    def __init__(self, spec: ModelSpec, engine: Engine, make: MakeEngine):
        super().__init__(spec, engine, make)
        self._chunks = chunks_of(spec.splitter)

    def reach(self) -> Reach:
        """Which pieces text can yield."""
        normal = [id for id, kind in enumerate(self._types) if kind == PieceType.NORMAL]
        whole = [id for id in normal if is_valid_utf8(self._texts[id])]
        halves = [id for id in normal if not is_valid_utf8(self._texts[id])]
        merged = self._merged(whole, halves)
        # 1. Whole characters: as they are, then with something around them.
        texts: dict[int, str] = {}
        self._find((id for id in whole if id in merged or self._spec.whole), _SIDES, texts)
        # 2. Pieces that begin or end inside a character.
        self._complete([id for id in halves if id in merged], texts)
        # 3. Why no text yields the others. Where there is no proof, a longer search.
        reasons = {id: self._why(id, merged) for id in _remaining(normal, texts)}
        undecided = [id for id in whole if id in reasons and not reasons[id].decided]
        self._find(undecided, _RARE_SIDES, texts)
        reasons = {id: why for id, why in reasons.items() if id not in texts}
        unmerged = frozenset(texts) - merged if self._spec.whole else frozenset()
        return Reach(texts, reasons, frozenset(), unmerged)

    def shortest(self, id: int) -> str | None:
        """The shortest text found that yields a piece; None if none was found."""
        texts: dict[int, str] = {}
        if self._types[id] == PieceType.NORMAL and is_valid_utf8(self._texts[id]):
            self._find([id], (*_SIDES, *_RARE_SIDES), texts)
        elif self._types[id] == PieceType.NORMAL:
            self._complete([id], texts)
        return texts.get(id)

    def _complete(self, ids: list[int], texts: dict[int, str]) -> None:
        """Find texts for pieces that are not whole characters."""
        for first, end, sides in _STEPS:
            self._record(
                (
                    (id, side + text)
                    for id in _remaining(ids, texts)
                    for text in islice(completions(self._texts[id]), first, end)
                    for side in sides
                ),
                texts,
            )
        # The rest of the character may also begin another piece.
        for id in _remaining(ids, texts):
            data = self._texts[id]
            completed = (islice(completions(data + after), 3) for after in self._followers(data))
            self._record(((id, text) for text in chain.from_iterable(completed)), texts)

    def _followers(self, text: bytes) -> list[bytes]:
        """Pieces that may follow one that ends inside a character.

        The follower is in the same chunk, because a pattern cuts only between characters. If both pieces are
        left in the end, nothing has merged across their borders, so their text alone also ends as these two.
        And some chunk must be able to contain the character that is split between them.
        """
        found: list[bytes] = []
        for byte in range(0x80, 0xC0) if open_bytes(text) else ():
            if goes_on(text, byte) and self._chunk_may_hold(text + bytes([byte])):
                found += [after for after in self._by_first.get(byte, ()) if self._stay(text, after)]
        return found

    def _stay(self, text: bytes, after: bytes) -> bool:
        """Whether two pieces may be left side by side at the end of merging, in some text."""
        both = text + after
        # (The first condition is only for speed: it makes most of the others unnecessary.)
        return (
            both not in self._spec.ids
            and [symbol.end for symbol in self._merging.run(both)[0]] == [len(text), len(both)]
            and self._chunk_may_hold(both)
        )

    def _chunk_may_hold(self, text: bytes) -> bool:
        """Whether a chunk may contain these bytes; False if all of them continue a character."""
        return parted(text) is not None and self.why_not_in_a_chunk(text) is None

    def why_not_in_a_chunk(self, text: bytes) -> Reason | None:
        """Why no chunk contains these bytes, however they are completed; None if one may contain them."""
        sides = parted(text)
        if sides is None:
            return None
        before, middle, after = sides
        form = self._spec.normalizer.unicode_form
        if form:
            left = tuple(left_by(form, characters) for characters in (before, after))
            if (before and not left[0]) or (after and not left[1]):
                return Reason("normalized-away", f"the normal form {form} has no character with these bytes")
            before, after = left
        if self._chunks is None or self._chunks.may_hold(middle, before, after):
            return None
        return Reason("cut-apart", "the pattern always cuts between its characters")

    def _merged(self, whole: list[int], halves: list[int]) -> frozenset[int]:
        """The pieces that their own bytes merge into if no pattern cuts them."""
        bare = self._make(replace(self._spec, splitter=None, whole=False, file=None, added=()))
        raw = bare.variant(raw=True) if self._spec.normalizer.unicode_form else bare
        merged = self._become_themselves(raw, whole)
        return merged.union(id for id in halves if len(self._merging.run(self._texts[id])[0]) == 1)

    def _why(self, id: int, merged: frozenset[int]) -> Reason:
        text = self._texts[id]
        is_text = is_valid_utf8(text)
        if not is_text and next(completions(text), None) is None:
            return Reason("not-utf8", "no UTF-8 has these bytes")
        if id not in merged and not (self._spec.whole and is_text):
            return self._merging.why_not(text, merged)
        form = self._spec.normalizer.unicode_form
        if is_text and form:
            # (Every part of a text in normal form is in normal form, too.)
            made = "".join(placed.character for placed in normal_form(form, text.decode()))
            if made != text.decode():
                return Reason(
                    "normalized-away", f"it is not in the normal form {form}, which makes it {quoted(made)}"
                )
        reason = self.why_not_in_a_chunk(text)
        if reason is not None:
            return reason
        if open_bytes(text) and not self._followers(text):
            return Reason("completed", "whatever follows it in the same character merges with it")
        why = "no text was found: the pattern cuts it, or it merges with more"
        if id not in merged:
            why = "no merges make it, and no text was found with a chunk that is it"
        return Reason("no-witness", why, False)

    @kept
    def _by_first(self) -> dict[int, list[bytes]]:
        """The pieces that begin inside a character, by their first byte."""
        found: dict[int, list[bytes]] = {}
        for text, kind in zip(self._texts, self._types, strict=True):
            if kind == PieceType.NORMAL and text[0] & 0xC0 == 0x80:
                found.setdefault(text[0], []).append(text)
        return found


@lru_cache(maxsize=256)
def left_by(form: str, characters: str) -> str:
    """The characters that a Unicode normal form leaves as they are."""
    return "".join(
        character
        for character in characters
        if [placed.character for placed in normal_form(form, character)] == [character]
    )
