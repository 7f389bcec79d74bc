r"""Which id may come next, if ids must be those that encoding gives: a model as an automaton over ids.

A text is encoded in steps, and each of them limits what may follow:

- **Merging.** Only stable neighbours stand side by side (`neighbours.py`), except across a cut.
- **Cutting.** Where a pattern cuts depends on what follows, so cuts are assumed (`cuts.py`). In models whose
  symbols begin as characters, user-defined pieces cut the text: none may be spelled by other ids.
- **Symbols that become several ids:** the bytes of a character that is no piece, and the parts of an UNUSED
  piece. All of these ids have to come.
- **Normalizing.** What ids decode to must be normalized to the same text again. So there must be a `▁` at the
  beginning if the model adds one, and there must not be two of them if the model makes one of them.

What is known about ids so far is a set of *hypotheses*: each is one way in which a text can have led to them.
Usually there is one. An id may come if it leads from one of them to a hypothesis that is *live*: the text may
end there, or after some more ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.lint.halves import codes_beginning, open_bytes
from cpbpe.lint.merging import Merging
from cpbpe.model.piece_type import PLAIN
from cpbpe.model.spec import MAX_SPLIT_DEPTH, MAX_USER_DEFINED_MATCHES, ModelSpec, PieceType
from cpbpe.reference.encoding import BYTE_PIECES, MERGEABLE
from cpbpe.text.split_probes import is_probed
from cpbpe.text.unicode_forms import is_stable, known_ranges, normal_form
from cpbpe.text.utf8 import is_valid_utf8, valid_character, valid_text
from cpbpe.tokenizer.cuts import DEAD, Begun, Keys, Ordered, cuts_of
from cpbpe.tokenizer.neighbours import Bools, Neighbours, Places

_SPACE = "▁"
_NONE = -1
_NO_CLASS = 255
"""The class of characters that a Unicode normal form does not leave as they are."""
_MOST = 1 << 12
"""This many results are kept."""
_HAVE_IDS = (PieceType.NORMAL, PieceType.USER_DEFINED)
"""Types of pieces that are output as their own id. A symbol of another type becomes several ids."""


class Sequences:
    """The canonical sequences of one model. Subclasses say how hypotheses follow each other."""

    size: int
    """How many ids the model has, without added tokens."""

    def start(self, prefix: bool) -> Any:
        """The hypothesis of an empty text; `prefix`: whether encoding puts a dummy prefix in front."""
        raise NotImplementedError

    def accepts(self, one: Any) -> bool:
        """Whether the text may end here."""
        raise NotImplementedError

    def steps(self, one: Any, id: int) -> Iterator[Any]:
        """The hypotheses to which an id leads. They need not be live."""
        raise NotImplementedError

    def follow(self, one: Any) -> tuple[Bools, list[int]]:
        """The ids that may come next: a mask of those that certainly lead to a live hypothesis, and a list of
        those for which `steps` must find this out.
        """
        raise NotImplementedError

    def mask(self, hypotheses: Iterable[Any]) -> Bools:
        """Which ids may come next."""
        allowed: Bools = np.zeros(self.size, np.bool_)
        for one in hypotheses:
            sure, others = self.follow(one)
            allowed |= sure
            for id in others:
                allowed[id] = allowed[id] or any(map(self.is_live, self.steps(one, id)))
        return allowed

    def after(self, hypotheses: Iterable[Any], id: int) -> frozenset[Any]:
        """The live hypotheses after one more id."""
        return frozenset(new for one in hypotheses for new in self.steps(one, id) if self.is_live(new))

    def is_live(self, one: Any) -> bool:
        """Whether the text may end here, or after some more ids."""
        if self.accepts(one):
            return True
        found = self._live.get(one)
        if found is None:
            if len(self._live) >= _MOST:
                self._live.clear()
            found = self._live[one] = self._search(one)
        return found

    @kept
    def _live(self) -> dict[Any, bool]:
        """The results of the searches."""
        return {}

    def _search(self, one: Any) -> bool:
        seen, waiting = {one}, [one]
        while waiting:
            one = waiting.pop()
            sure, others = self.follow(one)
            if sure.any():
                return True
            for new in chain.from_iterable(self.steps(one, id) for id in others):
                if self.accepts(new):
                    return True
                if new not in seen:
                    seen.add(new)
                    waiting.append(new)
        return False


def sequences_of(spec: ModelSpec, tokens: Mapping[str, Collection[str]]) -> Sequences:
    """The canonical sequences of a model. A ModelError if they are not known.

    `tokens`: the added tokens, each with its flags. Every text is searched for them before it is cut, so no
    other ids may spell one.
    """
    for token, flags in tokens.items():
        # (ASCII without spaces is the same in every normal form, and no dummy prefix changes it.)
        if {*flags} != {PLAIN} or not token.isascii() or " " in token:
            raise _refused(f"its added token {token!r} has options, a space, or characters other than ASCII")
    return OfBytes(spec, tokens) if spec.alphabet == "bytes" else OfCharacters(spec, tokens)


def _refused(why: str) -> ModelError:
    return ModelError(
        f"which ids can follow others is not known for this model: {why}; "
        f"tok.is_canonical(ids) works with every model"
    )


# --- Models whose symbols begin as characters -----------------------------------------------------


class _Spelled(NamedTuple):
    """A hypothesis: what the ids so far stand for."""

    last: str
    """The last symbol; "" if nothing merges with it."""
    rest: tuple[int, ...]
    """The ids of this symbol that have not come yet."""
    part: bytes
    """The first bytes of a character that is no symbol."""
    begun: Begun
    """The beginnings of keys that the text ends with."""
    edge: int
    """What the text ends with: one of the values below."""


_BARE, _NOTHING, _BLOCKED, _PREFIX, _INSIDE, _SPACE_LEFT, _NEVER = range(7)
"""What a text ends with:

- `_BARE`: there is no text yet, and any may come.
- `_NOTHING`: there is no text yet, and a dummy prefix must come.
- `_BLOCKED`: there is no text yet, and what comes must not get a dummy prefix: decoding would keep it.
- `_PREFIX`: there is nothing but the dummy prefix.
- `_INSIDE`: there is text, which may end here.
- `_SPACE_LEFT`: there is text, and then a space that would be removed at the end, so it may not end here.
- `_NEVER`: no text is normalized to this.
"""
_ENDS = (_BARE, _NOTHING, _BLOCKED, _INSIDE)


class OfCharacters(Sequences):
    """The canonical sequences of a model whose symbols begin as characters."""

    def __init__(self, spec: ModelSpec, tokens: Collection[str]):
        rules, kinds = spec.normalizer, {text: spec.pieces.types[id] for text, id in spec.ids.items()}
        in_text = [text for text, kind in kinds.items() if kind in MERGEABLE]
        if rules.charsmap or (spec.denormalizer is not None and spec.denormalizer.charsmap):
            raise _refused("it has rules that rewrite characters")
        if rules.suffix or not rules.escape_whitespaces:
            raise _refused("it does not write a space as ▁, or puts the dummy prefix at the end")
        if not all(map(is_valid_utf8, in_text)):
            raise _refused("it has pieces that are not UTF-8")
        if rules.remove_extra_whitespaces and any(
            b"  " in text and kind == PieceType.USER_DEFINED for text, kind in kinds.items()
        ):
            raise _refused("it removes spaces, but not in its user-defined pieces")
        self._spec = spec
        self.size = len(spec.pieces)
        # 1. The symbols: those that merge, then user-defined pieces. (At each place, encoding looks only at
        #    the 64 shortest that match. So one that begins with 64 others is never found.)
        marked = {text for text, kind in kinds.items() if kind == PieceType.USER_DEFINED}
        found = {
            text.decode()
            for text in marked
            if sum(text[:end] in marked for end in range(1, len(text) + 1)) <= MAX_USER_DEFINED_MATCHES
        }
        self._keys = Keys(tokens, found)
        letters = {*b"".join(in_text).decode()}.union(*tokens)
        ranks = Merging(spec).ranks.items()
        self._beside = Neighbours(
            {text.decode(): rank for text, rank in ranks if text.decode() not in found}, letters
        )
        self._texts = [*self._beside.texts, *sorted(found)]
        # 2. Their ids, and the symbols by their first ids.
        known = {letter for letter in letters if kinds.get(letter.encode()) in _HAVE_IDS}
        if _SPACE not in known:
            raise _refused("▁ is not one of its pieces")
        self._check_unknown(known)
        is_marked = [place >= len(self._beside.texts) for place in range(len(self._texts))]
        self._ids = [
            () if " " in text or self._keys.are_in(text, is_piece) else self._expanded(text, 0)
            for text, is_piece in zip(self._texts, is_marked, strict=True)
        ]
        self._first = np.array([ids[0] if ids else _NONE for ids in self._ids], np.int64)
        self._by_first: dict[int, list[int]] = {}
        for place, id in enumerate(self._first.tolist()):
            self._by_first.setdefault(id, []).append(place)
        # (Several symbols have the same first id only if some are UNUSED, or have no piece and begin with the
        # same byte.)
        rows = [(id, places) for id, places in self._by_first.items() if id != _NONE]
        self._place_of = np.full(self.size, _NONE)
        self._place_of[[id for id, _ in rows]] = [places[0] for _, places in rows]
        self._second = np.array([place for _, places in rows for place in places[1:]], np.int64)
        # 3. Characters that are no symbols become bytes. To know whether one of them begins with some bytes
        #    (`_has_others`), count the symbols that do. (The space
        #    counts as a symbol: no normalized text has one, so it never becomes bytes.)
        self._bytes = {spec.ids[piece]: byte for byte, piece in enumerate(BYTE_PIECES) if spec.byte_fallback}
        taken = {letter.encode() for letter in {*letters, " "}}
        self._taken = Counter(letter[:end] for letter in taken for end in range(1, len(letter) + 1))
        self._leads: Bools = np.zeros(self.size, np.bool_)
        self._leads[[id for id, byte in self._bytes.items() if self._has_others(bytes([byte]))]] = True
        shapes: dict[str, int] = {}
        rest = re.compile(f"[^{_SPACE}]+")
        self._shape_of = np.array(
            [shapes.setdefault(rest.sub("x", text), len(shapes)) for text in self._texts]
        )
        self._shapes = [*shapes]
        """The symbols, with each run of characters other than ▁ as one x: all that an edge depends on."""
        self._edges: dict[int, tuple[Bools, Places]] = {}

    # --- Tables -------------------------------------------------------------------------------------

    @kept
    def _by_text(self) -> Ordered:
        """The symbols in their order."""
        return Ordered((text, place) for place, text in enumerate(self._texts))

    def _check_unknown(self, known: set[str]) -> None:
        """Refuse a model in which what the unknown id decodes to may be encoded to that id.

        If that text has a character that is a piece, no canonical ids contain the unknown id: the pieces of
        an encoded text have the character as often as the text has it, but an unknown id adds one to the
        text that no piece accounts for.
        """
        spec, rules = self._spec, self._spec.normalizer
        surface = spec.unk_surface.decode(errors="replace").replace(" ", _SPACE)
        letters = surface.replace(_SPACE, "")
        # (A single ▁ may not be enough: decoding may drop it, and encoding then puts none in front.)
        spaces = 0 if rules.remove_extra_whitespaces else surface.count(_SPACE)
        allowed = 0 if rules.prefix_before_space else 1
        is_rare = known.isdisjoint(letters) and spaces <= allowed
        if not spec.byte_fallback and spec.unknown_id is not None and letters and is_rare:
            raise _refused(f"its unknown id decodes to {surface!r}, which may be encoded to that id again")

    def _expanded(self, text: str, depth: int) -> tuple[int, ...]:
        """The ids that a symbol becomes; none if one of them is the unknown id."""
        id = self._spec.ids.get(text.encode(), _NONE)
        kind = self._spec.pieces.types[id] if id != _NONE else None
        if kind in _HAVE_IDS or (kind is not None and depth > MAX_SPLIT_DEPTH):
            return (id,)
        parts = self._beside.parts(text)
        if parts is not None:
            left, right = (self._expanded(part, depth + 1) for part in parts)
            return (*left, *right) if left and right else ()
        return tuple(self._spec.ids[BYTE_PIECES[byte]] for byte in text.encode() if self._spec.byte_fallback)

    def _has_others(self, part: bytes) -> bool:
        """Whether a character that is no symbol begins with these bytes."""
        return len(codes_beginning(part)) > self._taken[part]

    def _after(self, edge: int) -> tuple[Bools, Places]:
        """The symbols that can follow an edge: those after which text may end, and the others."""
        found = self._edges.get(edge)
        if found is None:
            after = np.array([self._edge(edge, shape) for shape in self._shapes], np.int8)[self._shape_of]
            after[self._first == _NONE] = _NEVER
            found = self._edges[edge] = (
                after == _INSIDE,
                np.flatnonzero((after != _INSIDE) & (after != _NEVER)),
            )
        return found

    # --- The automaton ------------------------------------------------------------------------------

    def start(self, prefix: bool) -> _Spelled:
        """The hypothesis of an empty text."""
        rules = self._spec.normalizer
        drops = rules.add_dummy_prefix or rules.remove_extra_whitespaces  # decoding drops the prefix again
        edge = _BARE if not prefix else _NOTHING if drops else _BLOCKED
        return _Spelled("", (), b"", frozenset(), edge)

    def accepts(self, one: _Spelled) -> bool:
        """Whether the text may end here."""
        return not one.rest and not one.part and one.edge in _ENDS

    def _edge(self, edge: int, text: str) -> int:
        """The edge after some more text."""
        rules = self._spec.normalizer
        squeezes = rules.remove_extra_whitespaces
        for letter in text:
            is_space = letter == _SPACE
            if edge == _NOTHING:
                edge = _PREFIX if is_space else _NEVER
            elif edge == _PREFIX:
                edge = _NEVER if is_space and (squeezes or not rules.prefix_before_space) else _INSIDE
            elif edge == _BLOCKED:
                edge = _INSIDE if is_space and not rules.prefix_before_space else _NEVER
            elif edge == _NEVER:
                break
            elif is_space and squeezes:
                edge = _SPACE_LEFT if edge == _INSIDE else _NEVER
            else:
                edge = _INSIDE
        return edge

    def steps(self, one: _Spelled, id: int) -> Iterator[_Spelled]:
        """The hypotheses to which an id leads."""
        if one.rest:
            if id == one.rest[0]:
                yield one._replace(rest=one.rest[1:])
            return
        # 1. A byte of a character that is no symbol.
        if id in self._bytes and (one.part or self._leads[id]):
            part = one.part + bytes([self._bytes[id]])
            edge = self._edge(one.edge, "x")
            if valid_character(part, 0) == part and not self._taken[part]:
                yield _Spelled("", (), b"", frozenset(), edge)
            elif edge != _NEVER and self._has_others(part):
                yield one._replace(part=part)
        if one.part:
            return
        # 2. The first id of a symbol.
        for place in self._by_first.get(id, ()):
            text, is_key = self._texts[place], place >= len(self._beside.texts)
            begun, edge = self._keys.begun(one.begun, text, is_key), self._edge(one.edge, text)
            merges = one.last and not is_key and not self._beside.is_stable(one.last, text)
            if begun is not None and edge != _NEVER and not merges:
                yield _Spelled("" if is_key else text, self._ids[place][1:], b"", begun, edge)

    def follow(self, one: _Spelled) -> tuple[Bools, list[int]]:
        """The ids that surely can come next, and others that may."""
        allowed: Bools = np.zeros(self.size, np.bool_)
        if one.rest:
            return allowed, [one.rest[0]]
        if one.part:
            for id, byte in self._bytes.items():
                allowed[id] = byte & 0xC0 == 0x80 and self._has_others(one.part + bytes([byte]))
            return allowed, []
        ends, goes_on = self._after(one.edge)
        ends = ends.copy()
        if one.last:
            ends[: len(self._beside.texts)] &= self._beside.after(one.last)
        for rest in self._keys.rests(one.begun):
            ends[self._by_text.beginning_with(rest)] = False
        allowed |= np.append(ends, False)[self._place_of]
        allowed[self._first[self._second[ends[self._second]]]] = True
        if self._edge(one.edge, "x") != _NEVER:
            allowed |= self._leads
        return allowed, [id for id in set(self._first[goes_on].tolist()) if not allowed[id]]


# --- Byte-level models ----------------------------------------------------------------------------


class _Cut(NamedTuple):
    """A hypothesis: what the ids so far stand for, and where their text is cut."""

    last: str
    """The last symbol: bytes, as the characters with these codes."""
    state: int
    """The state of the pattern, after the character that is incomplete, if one is."""
    part: bytes
    """The first bytes of that character."""
    kind: int
    """Its class."""
    chunk: str
    """The chunk so far, if it is the beginning of a piece that is only taken whole; "" otherwise."""
    begun: Begun
    """The beginnings of keys that the text ends with."""
    tail: str
    """The last characters, with which a Unicode normal form may combine what follows."""
    needs_prefix: bool = False
    """Whether there is no text yet, and a dummy prefix must come."""


def _columns(rows: list[tuple[int, int]]) -> Places:
    """Pairs of numbers as two columns."""
    return np.array(rows, np.int64).reshape(-1, 2).T


class _Piece(NamedTuple):
    """A piece of a byte-level model in three parts."""

    front: bytes
    """The last bytes of a character that begins before the piece."""
    path: bytes
    """The classes of the whole characters."""
    back: bytes
    """The first bytes of a character that ends after the piece."""
    middle: str
    """The whole characters."""


class OfBytes(Sequences):
    """The canonical sequences of a byte-level model."""

    def __init__(self, spec: ModelSpec, tokens: Collection[str]):
        rules, types, ranks = spec.normalizer, spec.pieces.types, spec.pieces.ranks()
        if spec.splitter is not None and (spec.splitter.then or not is_probed(spec.splitter.pattern)):
            raise _refused("it does not cut text by one of the published patterns")
        self._form = rules.unicode_form
        self._keys = Keys(tokens)
        self.size = len(types)
        # 1. The symbols; and the pieces that no merges make, which are taken only as whole chunks.
        every = enumerate(zip(spec.pieces.texts, types, strict=True))
        self._ids = {text.decode("latin-1"): id for id, (text, kind) in every if kind == PieceType.NORMAL}
        self._beside = Neighbours(
            {text: ranks[id] for text, id in self._ids.items() if len(text) > 1}, map(chr, range(256))
        )
        places = self._beside.places
        self._whole = {
            text
            for text in self._ids
            if spec.whole and text not in places and is_valid_utf8(text.encode("latin-1"))
        }
        self._beginnings = {text[:end] for text in self._whole for end in range(1, len(text) + 1)}
        self._texts = {id: text for text, id in self._ids.items() if text in places or text in self._whole}
        self._places = np.full(self.size, _NONE)
        self._places[[*self._texts]] = [places.get(text, _NONE) for text in self._texts.values()]
        self._may_be_first: Bools = np.zeros(self.size, np.bool_)
        if not rules.prefix_before_space:
            self._may_be_first[[id for id, text in self._texts.items() if text.startswith(" ")]] = True
        # 2. The steps of the pattern. Without one, a text is one chunk. The last state leads nowhere.
        cuts = None if spec.splitter is None else cuts_of(spec.splitter.pattern)
        steps, accepts = (
            ([[(DEAD, 1)], [(1, DEAD)]], [True, True]) if cuts is None else (cuts.steps, cuts.accepts)
        )
        self._classes = np.zeros(0x110000, np.uint8) if cuts is None else cuts.classes.copy()
        # (`unicodedata` may be of a newer Unicode version than the form. But two versions differ only on
        # characters that one of them does not know, and `known_ranges` leaves these out.)
        if self._form:
            known = chain.from_iterable(
                range(begin, end + 1) for begin, end in zip(*known_ranges(), strict=True)
            )
            form: Any = self._form
            changed = [code for code in known if not unicodedata.is_normalized(form, chr(code))]
            self._classes[changed] = _NO_CLASS
        self._of_ascii = self._classes[:256].tobytes()
        self._dead = len(steps)
        self._accepts: Bools = np.array([*accepts, False])
        table = np.array([*steps, [(DEAD, DEAD)] * len(steps[0])])
        self._steps: Places = np.where(table == DEAD, self._dead, table)
        # 3. The pieces in their parts, and the paths: from each state, without a cut and with one in front.
        start = np.repeat(np.arange(self._dead + 1)[:, None], 2, axis=1)
        self._paths: dict[bytes, Places] = {b"": start}
        self._kinds: dict[bytes, list[int]] = {}
        self._parts = {id: parts for id, text in self._texts.items() if (parts := self._parted(text))}
        self._by_front: dict[bytes, list[int]] = {}
        self._is_first: Bools = np.ones(self.size, np.bool_)
        """Whether each piece begins where a character begins."""
        inner = [id for id, parts in self._parts.items() if parts.front]
        self._is_first[inner] = False
        # (Short pieces first: with these, `_endings` is most likely to find an empty path, and to stop.)
        for id in sorted(inner, key=lambda id: len(self._texts[id])):
            self._by_front.setdefault(self._parts[id].front, []).append(id)
        self._moved: dict[tuple[int, int], tuple[Bools, list[int]]] = {}
        self._doubtful: dict[str, list[int]] = {}
        self._completed: dict[tuple[int, bytes, int], bool | None] = {}
        self._joined_with: dict[str, list[int]] = {}

    # --- Tables -------------------------------------------------------------------------------------

    def _parted(self, text: str) -> _Piece | None:
        """A piece in its parts; None if no text that encoding sees has these bytes, or a key is in it."""
        if self._keys.are_in(text):
            return None
        data = text.encode("latin-1")
        if text.isascii():
            return _Piece(b"", data.translate(self._of_ascii), b"", text)
        begin, end = 0, len(data) - open_bytes(data)
        while begin < end and data[begin] & 0xC0 == 0x80:
            begin += 1
        back, middle = data[end:], valid_text(data[begin:end])
        if begin > 3 or middle is None or (back and not self._kinds_of(back)):
            return None
        path = bytes(map(self._classes.item, map(ord, middle)))
        if _NO_CLASS in path or not self._is_in_form(middle):
            return None
        return _Piece(data[:begin], path, back, middle)

    def _is_in_form(self, text: str) -> bool:
        """Whether a text is in the normal form of the model."""
        if not self._form or all(is_stable(self._form, letter) for letter in text):
            return True
        return "".join(placed.character for placed in normal_form(self._form, text)) == text

    def _tail(self, text: str) -> str:
        """The end of a text, from its last stable character on: a normal form may combine it with more."""
        if not self._form:
            return ""
        at = len(text) - 1
        while at > 0 and not is_stable(self._form, text[at]):
            at -= 1
        return text[max(at, 0) :]

    @kept
    def _joining(self) -> dict[str, list[int]]:
        """The pieces that begin with characters which the normal form may combine with text before them. The
        keys are these characters.
        """
        found: dict[str, list[int]] = {}
        for id, piece in self._parts.items():
            at = 0
            while at < len(piece.middle) and not is_stable(self._form, piece.middle[at]):
                at += 1
            if at and not piece.front:
                found.setdefault(piece.middle[:at], []).append(id)
        return found

    def _joined(self, tail: str) -> list[int]:
        """The pieces whose beginning the normal form would combine with the end of a text."""
        found = self._joined_with.get(tail)
        if found is None:
            groups = (ids for begin, ids in self._joining.items() if not self._is_in_form(tail + begin))
            if len(self._joined_with) >= _MOST:
                self._joined_with.clear()
            found = self._joined_with[tail] = [*chain.from_iterable(groups)]
        return found

    def _path(self, path: bytes) -> Places:
        """Where a path leads: for each state before it, the state without and with a cut in front of it."""
        found = self._paths.get(path)
        if found is not None:
            return found
        known = len(path) - 1
        while path[:known] not in self._paths:
            known -= 1
        found = self._paths[path[:known]]
        for at in range(known, len(path)):
            found = self._steps[found, path[at], 0] if at else self._steps[:, path[0]]
            self._paths[path[: at + 1]] = found
        return found

    def _kinds_of(self, part: bytes) -> list[int]:
        """The classes of the characters that begin with some bytes."""
        found = self._kinds.get(part)
        if found is None:
            codes = codes_beginning(part)
            kinds = np.unique(self._classes[codes.start : codes.stop])
            found = self._kinds[part] = kinds[kinds != _NO_CLASS].tolist()
        return found

    def _fronts(self, part: bytes, kind: int) -> Iterator[tuple[str | None, list[int]]]:
        """How a character of this class that begins with `part` may go on: for each way the character, if it
        is complete then, and the pieces that begin so.
        """
        for front, ids in self._by_front.items():
            if kind in self._kinds_of(part + front):
                letter = valid_text(part + front)
                yield letter, ids if letter is not None else [id for id in ids if self._is_inside(id)]

    def _is_inside(self, id: int) -> bool:
        """Whether a piece consists of bytes within one character."""
        return not self._parts[id].path and not self._parts[id].back

    def _continuing(self, last: str, part: bytes, kind: int) -> Iterator[int]:
        """The pieces that may follow `last`, and go on with the character whose beginning it ends with."""
        for _, ids in self._fronts(part, kind):
            yield from (id for id in ids if self._can_follow(last, self._texts[id]))

    def _endings(self, chunk: str, last: str, part: bytes, kind: int) -> set[bytes]:
        """How the character that `last` ends with may be completed (see `_continuing`): the paths of what
        comes after that character in the pieces that complete it. If that may be nothing, only {b""}. (The
        results only make ids sure; others are tried.)

        `chunk`: the chunk so far, which must not become a piece that is only taken whole.
        """
        found: set[bytes] = set()
        for id in self._continuing(last, part, kind):
            text, (front, path, back, middle) = self._texts[id], self._parts[id]
            if back or chunk + text in self._whole:
                continue
            letter = valid_text(part + front)
            if letter is not None:
                if not self._form or (is_stable(self._form, letter) and self._is_in_form(letter + middle)):
                    found.add(path)
            else:
                found |= self._endings(chunk + text, text, part + front, kind)
            if b"" in found:
                return {b""}
        return found

    def _toward_whole(self, chunk: str) -> list[int]:
        """The pieces that give, after `chunk`, the beginning of a piece that is only taken whole, or all of
        it. Whether the text may end after them is not for the pattern alone to decide.
        """
        found = self._doubtful.get(chunk)
        if found is None:
            rests = [text[len(chunk) :] for text in self._whole if text.startswith(chunk)]
            ids = {self._ids.get(rest[:end]) for rest in rests for end in range(1, len(rest) + 1)}
            found = self._doubtful[chunk] = [id for id in ids if id is not None]
        return found

    @kept
    def _by_text(self) -> Ordered:
        """The pieces in their order."""
        return Ordered((text, id) for id, text in self._texts.items())

    @kept
    def _rows(self) -> tuple[NDArray[np.int16], Places, Places, Places]:
        """The paths of all pieces, as four tables in which each path has a number.

        1. Where each path leads.
        2. For each piece that ends with a whole character, its path.
        3. For each other piece that begins with a whole one, and each class that the character at its end may
           have: its id and its path.
        4. For the same pieces: the id, and each longer path that completes this character and ends with a
           whole one.
        """
        numbers: dict[bytes, int] = {}
        path_of = np.full(self.size, _NONE)
        open_ended, ended = [], []
        for id, (front, path, back, middle) in self._parts.items():
            if not back and not (front and self._form and middle and not is_stable(self._form, middle[0])):
                path_of[id] = numbers.setdefault(path, len(numbers))
            for kind in self._kinds_of(back) if back and not front else ():
                text, whole = self._texts[id], path + bytes([kind])
                ends = self._endings(text, text, back, kind)
                if ends or any(True for _ in self._continuing(text, back, kind)):
                    open_ended.append((id, numbers.setdefault(whole, len(numbers))))
                    ended += [(id, numbers.setdefault(whole + end, len(numbers))) for end in ends]
        # (The last row is that of pieces without a path: their number is _NONE, -1.)
        nowhere = np.full((self._dead + 1, 2), self._dead)
        table = np.array([*map(self._path, numbers), nowhere], np.int16)
        return table, path_of, _columns(open_ended), _columns(ended)

    def _moves(self, state: int, cut: int) -> tuple[Bools, list[int]]:
        """The pieces after which a text may end, and others that may come, without a cut or with one."""
        found = self._moved.get((state, cut))
        if found is None:
            table, path_of, (open_ended, paths), (ended, ends) = self._rows
            after = table[:, state, cut]
            sure = self._accepts[after][path_of] & self._is_first
            others = (after != self._dead)[path_of] & self._is_first
            sure[ended[self._accepts[after[ends]]]] = True
            others[open_ended[after[paths] != self._dead]] = True
            found = self._moved[state, cut] = sure, np.flatnonzero(others & ~sure).tolist()
        return found

    # --- The automaton ------------------------------------------------------------------------------

    def start(self, prefix: bool) -> _Cut:
        """The hypothesis of an empty text."""
        return _Cut("", 0, b"", 0, "", frozenset(), "", prefix)

    def accepts(self, one: _Cut) -> bool:
        """Whether the text may end here."""
        return not one.part and bool(self._accepts[one.state]) and self._may_cut(one)

    def _may_cut(self, one: _Cut) -> bool:
        """Whether the chunk may end here: not if it is a piece that is taken whole, spelled by other ids."""
        return not one.part and (one.chunk not in self._whole or one.last in self._whole)

    def steps(self, one: _Cut, id: int) -> Iterator[_Cut]:
        """The hypotheses to which an id leads."""
        if id not in self._parts or (one.needs_prefix and not self._may_be_first[id]):
            return
        text, (front, path, back, middle) = self._texts[id], self._parts[id]
        if bool(one.part) != bool(front):
            return
        begun, letter = self._keys.begun(one.begun, text), valid_text(one.part + front)
        if begun is None or (front and one.kind not in self._kinds_of(one.part + front)):
            return
        if not self._is_inside(id) if letter is None else not self._is_in_form(one.tail + letter + middle):
            return
        for cut in (0, 1):
            if cut and not self._may_cut(one):
                continue
            if not cut and not (one.state and self._can_follow(one.last, text)):
                continue
            chunk = text if cut else one.chunk and one.chunk + text
            chunk = chunk if chunk in self._beginnings else ""
            if letter is None:
                yield one._replace(last=text, part=one.part + front, chunk=chunk, begun=begun)
                continue
            tail = self._tail(one.tail + letter + middle)
            for kind in self._kinds_of(back) if back else [0]:
                whole = path + bytes([kind]) if back else path
                state = int(self._path(whole)[one.state, cut]) if whole else one.state
                if state != self._dead:
                    yield _Cut(text, state, back, kind, chunk, begun, tail)

    def _can_follow(self, left: str, right: str) -> bool:
        """Whether a symbol can follow another one in one chunk."""
        both = left in self._beside.places and right in self._beside.places
        return both and self._beside.is_stable(left, right)

    def _within_character(self, one: _Cut) -> tuple[Bools, list[int]]:
        """What `_moves` returns, for pieces that go on within a character."""
        table, path_of, *_ = self._rows
        ends = self._accepts[table[:, one.state, 0]]
        sure: Bools = np.zeros(self.size, np.bool_)
        others: list[int] = []
        for letter, ids in self._fronts(one.part, one.kind):
            if letter is None:
                for id in ids:
                    part = one.part + self._parts[id].front
                    is_completed = self._is_completed(id, part, one.kind)
                    sure[id] = is_completed and ends[path_of[id]] and not one.chunk
                    others += [id] * (is_completed is not None)
                continue
            if not self._form or is_stable(self._form, letter):
                sure[ids] = ends[path_of[ids]]
            others += ids
        return sure, [id for id in others if not sure[id]]

    def _is_completed(self, id: int, part: bytes, kind: int) -> bool | None:
        """Whether pieces can follow one within a character that complete it, and end with it. None: none can
        follow.
        """
        key = (id, part, kind)
        if key not in self._completed:
            text = self._texts[id]
            self._completed[key] = b"" in self._endings("", text, part, kind)
            if not self._completed[key] and not any(True for _ in self._continuing(text, part, kind)):
                self._completed[key] = None
        return self._completed[key]

    def follow(self, one: _Cut) -> tuple[Bools, list[int]]:
        """The ids that surely can come next, and others that may."""
        sure: Bools = np.zeros(self.size, np.bool_)
        others: list[int] = []
        if not one.state:
            sure, others = self._moves(0, 1)
            if one.needs_prefix:
                sure, others = sure & self._may_be_first, [id for id in others if self._may_be_first[id]]
            return sure, others
        stable = sure
        if one.last in self._beside.places:
            stable = np.append(self._beside.after(one.last), False)[self._places]
        if one.part:
            within, more = self._within_character(one)
        else:
            within, more = self._moves(one.state, 0)
            if self._may_cut(one):
                sure, others = self._moves(one.state, 1)
        within = within & stable
        if one.chunk:
            doubtful = self._toward_whole(one.chunk)
            within[doubtful] = False
            more = [*more, *doubtful]
        sure = sure | within
        possible = {*others, *(id for id in more if stable[id])}
        if one.tail:
            joined = self._joined(one.tail)
            sure[joined] = False
            possible.difference_update(joined)
        for rest in self._keys.rests(one.begun):
            sure[self._by_text.beginning_with(rest)] = False
        return sure, [id for id in possible if not sure[id]]
