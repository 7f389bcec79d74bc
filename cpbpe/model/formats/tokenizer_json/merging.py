"""The tokens and pairs that a tokenizer.json lists for a model of characters, and texts that they get wrong.

`cpbpe.model.pair_ranks` says which pairs can be listed at all, and in which order to list pairs of equal
scores. `Names` has the names of the pieces in the file, and `Merging` the pairs. `Comparison` tries out
whether something that a file says changes the ids of a text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from cpbpe.errors import ConversionError
from cpbpe.lazy import kept
from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json.steps import HIDDEN, SPACE, decoder_of, normalized, shown
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import (
    Pair,
    by_pair,
    by_text,
    candidates,
    differences,
    merged,
    ordered,
    pairs_by_text,
    shortest_first,
)
from cpbpe.model.spec import MAX_SPLIT_DEPTH, MAX_USER_DEFINED_MATCHES, ModelSpec, PieceType
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import text_of

# --- Names ----------------------------------------------------------------------------------------
#
# The other library finds a token if it is one character of the text, or if a listed pair makes it; its type
# does not matter. sentencepiece never finds a CONTROL, UNKNOWN or UNUSED piece that is one character, nor the
# piece that is one NUL. So the file calls these by another name, with a NUL in front: it is longer than one
# character, and no pair makes it. (No other piece contains a NUL.) The decoder removes the NUL again.
#
# sentencepiece also merges characters that are no pieces, but a pair of the other library consists of tokens.
# If such a character is a single byte, and the model has BYTE pieces, the file calls the BYTE piece by the
# character, as Gemma's files do. Then the character is a token, and its id is the same as before.

_NEVER_FOUND = (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.UNUSED)


class Names:
    """The names of a model's pieces in the file, where they are tokens."""

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        self.texts = [_decoded(text, id) for id, text in enumerate(spec.pieces.texts)]
        """The text of each piece."""
        self.types = spec.pieces.types
        """Their types."""
        self.names = [
            HIDDEN + text if len(text) == 1 and (type in _NEVER_FOUND or text == "\0") else text
            for text, type in zip(self.texts, self.types, strict=True)
        ]
        """The name of each piece in the file."""
        bytes = self._bytes_as_characters()
        for character, id in bytes.items():
            self.names[id] = character
        self.bytes = frozenset(bytes)
        """The characters that are names of BYTE pieces."""
        self.has_hidden = any(name[0] == HIDDEN for name in self.names)
        """Whether a name begins with a NUL, so that no text finds it."""

    def _bytes_as_characters(self) -> dict[str, int]:
        """Return the ids of the BYTE pieces to be named by their character, by this character.

        These are the characters that longer pieces contain, but that are no tokens themselves.
        """
        if not self.spec.byte_fallback:
            return {}
        longer = "".join(text for text in self.ranks if len(text) > 1)
        tokens = [*self.texts, *(text.decode() for text, _ in self.spec.added)]
        alone = {text for text in tokens if len(text) == 1}
        return {
            character: self.spec.ids[b"<0x%02X>" % ord(character)]
            for character in sorted({*longer} - alone)
            if character.isascii()
        }

    def _of(self, *types: PieceType) -> list[str]:
        return [text for text, type in zip(self.texts, self.types, strict=True) if type in types]

    @kept
    def all_user_defined(self) -> list[str]:
        """The USER_DEFINED pieces that are found in text before it is normalized."""
        keys = {text: text.encode() for text in self._of(PieceType.USER_DEFINED) if text != "\0"}
        finder = Finder(keys.values(), MAX_USER_DEFINED_MATCHES)
        return [text for text, key in keys.items() if finder.longest(key, 0) == len(key)]

    @kept
    def user_defined(self) -> list[str]:
        """Those that can be found in normalized text (if spaces are escaped, it has none)."""
        return [text for text in self.all_user_defined if self.can_be_found(text)]

    def can_be_found(self, text: str) -> bool:
        """Whether normalized text can contain this text."""
        return not (self.spec.normalizer.escape_whitespaces and " " in text)

    @kept
    def control(self) -> dict[str, int]:
        """The names of the CONTROL pieces, with their ids."""
        return {
            name: id
            for id, (name, type) in enumerate(zip(self.names, self.types, strict=True))
            if type == PieceType.CONTROL
        }

    @kept
    def characters(self) -> frozenset[str]:
        """The tokens of one character. All other characters are unknown."""
        return frozenset(name for name in self.names if len(name) == 1)

    @kept
    def all(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.names)

    @kept
    def unused(self) -> frozenset[str]:
        """The UNUSED pieces, which merge and are split again."""
        return frozenset(self._of(PieceType.UNUSED))

    @kept
    def ranks(self) -> dict[str, float]:
        """The ranks of the pieces that merges may make. The highest score has the lowest rank.

        Scores are compared by their bits, as in sentencepiece, which also orders -0.0 and NaN. Pieces that
        contain a user-defined one, or a space where spaces are escaped, are left out: no text can make them.
        """
        ranks = self.spec.pieces.ranks()
        mergeable = (PieceType.NORMAL, PieceType.UNUSED)
        return {
            text: ranks[id]
            for id, text in enumerate(self.texts)
            if self.types[id] in mergeable
            and text != "\0"
            and self.can_be_found(text)
            and not self.holds_user_defined(text)
        }

    def holds_user_defined(self, text: str) -> bool:
        """Whether a text contains a user-defined piece."""
        return bool(self.user_defined) and self._finder.split(text.encode()) is not None

    def decoder(self) -> Json:
        """Return the decoder of the file."""
        spec, surface = self.spec, None
        if spec.unknown_id is not None:
            surface = self.names[spec.unknown_id], spec.unk_surface.decode(errors="replace")
        return decoder_of(spec.normalizer, spec.byte_fallback, surface, self.has_hidden, self.private)

    @kept
    def _finder(self) -> Finder:
        return Finder(text.encode() for text in self.user_defined)

    @kept
    def absent(self) -> str:
        """A character that no piece contains: it is unknown, and nothing is merged across it."""
        return absent_character([*self.texts, self.spec.unk_surface.decode(errors="replace")])

    @kept
    def private(self) -> str:
        """A private-use character that no piece contains."""
        characters = set().union(*self.texts, self.spec.unk_surface.decode(errors="replace"))
        private = chain(range(0xE000, 0xF900), range(0xF0000, 0x10FFFE))
        return next(c for c in map(chr, private) if c not in characters)


def absent_character(texts: Iterable[str]) -> str:
    """Return a character that none of these texts contains, if possible a printable one."""
    characters = set().union(*texts)
    free = (c for c in map(chr, chain(range(0x21, 0xD800), [0x10FFFD])) if c not in characters)
    first = next(free, chr(0x10FFFD))
    return first if first.isprintable() else next((c for c in free if c.isprintable()), first)


def _decoded(text: bytes, id: int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ConversionError(
            f"piece {id}, {text!r}, is not UTF-8, and a tokenizer.json can hold only text. Give the piece "
            f"another text first (tok.spec, cpbpe.Tokenizer.from_spec)"
        ) from None


# --- Pairs ----------------------------------------------------------------------------------------
#
# Besides equal scores, there are two more reasons why a list of pairs may differ:
#
# **Characters that are no tokens.** sentencepiece merges the characters of a text whether they are pieces or
# not. A pair of the other library consists of two tokens. So a piece with a character that is no token cannot
# be listed. (Single bytes are tokens if there is byte fallback.)
#
# **UNUSED pieces.** sentencepiece merges them, and at the end splits them again into the pair that made them.
# The other library cannot split. If no other piece is made from an UNUSED piece, its pair can be left out of
# the list, because what is never merged need not be split. But then its two parts remain free to merge with
# their other neighbours. That cannot happen if nothing else is left to merge when it is their turn, that is,
# if the scores of all UNUSED pieces are below all others. Otherwise, as with equal scores, the texts xyz such
# that (x, y) and (y, z) make pieces decide: by the same proof, if the two libraries differ on any text, they
# differ on one of these.

_EQUAL = "of merges with equal scores, tokenizers chooses another one"
_NO_TOKEN = "sentencepiece merges characters that are no pieces, and tokenizers cannot"
_UNUSED = "sentencepiece splits UNUSED pieces again, and tokenizers cannot"

UNKNOWN = "\0"
"""Stands in front of an unknown character when two results are compared."""


class Merging:
    """The pairs to list for a model."""

    def __init__(self, names: Names):
        self.names = names
        # 1. Leave out pieces that cannot be listed, and UNUSED pieces from which no other piece is made.
        ranks = names.ranks
        self.made = made = pairs_by_text(ranks)
        """The pieces that sentencepiece can make, with the pairs that make them."""
        parts: set[str] = set()
        if names.unused:
            parts.update(part for piece in made if piece not in names.unused for part in self._parts(piece))
        wanted = {piece: pair for piece, pair in made.items() if piece not in names.unused or piece in parts}
        known = names.characters
        listed = {
            piece: pair
            for piece, pair in wanted.items()
            if all(len(part) > 1 or part in known for part in pair)
        }
        # 2. Choose the order, and collect the differences that remain.
        equal = candidates(listed, ranks)
        order = ordered(listed, ranks, equal)
        self.pairs = [listed[piece] for piece in order]
        """The pairs to list, in order."""
        self._theirs = by_pair({pair: place for place, pair in enumerate(self.pairs)})
        reasons: list[tuple[str, Iterable[str], bool]] = [
            (_EQUAL, differences(listed, ranks, order, equal), True),
            (_NO_TOKEN, _by_length(wanted.keys() - listed.keys()), True),
            (_UNUSED, self._unused_texts(wanted, listed), False),
        ]
        self.differences: list[Difference] = []
        """Why some texts merge differently by the list."""
        for reason, texts, is_certain in reasons:
            found = self._first(texts)
            if found is not None and (is_certain or found[1] is not None):
                self.differences.append(Difference(reason, found[1]))

    def _parts(self, piece: str) -> Iterator[str]:
        """Yield the pieces from which a piece is made, directly or not."""
        waiting = [*self.made[piece]]
        while waiting:
            part = waiting.pop()
            if part in self.made:
                yield part
                waiting += self.made[part]

    # --- Texts that may differ --------------------------------------------------------------------

    def _unused_texts(self, wanted: dict[str, Pair], listed: dict[str, Pair]) -> Iterator[str]:
        """Yield texts that may differ because only one library splits UNUSED pieces, shorter ones first."""
        made, ranks = self.made, self.names.ranks
        yield from _by_length(piece for piece in self.names.unused if piece in wanted)
        dropped = made.keys() - wanted.keys()
        depths: dict[str, int] = {}
        for piece in _by_length(dropped):
            depths[piece] = 1 + max(depths.get(part, 0) for part in made[piece])
            if depths[piece] > MAX_SPLIT_DEPTH:
                yield piece
        last = max(map(ranks.__getitem__, listed), default=float("-inf"))
        if all(ranks[piece] > last for piece in dropped):
            return
        beginning, ending = defaultdict(list), defaultdict(list)
        for piece, (x, y) in made.items():
            beginning[x].append(piece)
            ending[y].append(piece)
        for piece in _by_length(dropped):
            x, y = made[piece]
            texts = [x + right for right in beginning[y]] + [left + y for left in ending[x]]
            yield from _by_length(texts)

    def _first(self, texts: Iterable[str]) -> tuple[str, str | None] | None:
        """Return the first of these normalized texts for which there is a counter-example, and that example.

        If there is none for any of them, return the first text and None. Texts that contain a user-defined
        piece, which is never merged, are skipped; if no others are left, return None.
        """
        first = None
        for text in texts:
            if not self.names.holds_user_defined(text):
                if (shown := self.counter_example(text)) is not None:
                    return text, shown
                first = first or (text, None)
        return first

    def counter_example(self, text: str) -> str | None:
        """Return a text that contains this normalized one, and on which the two libraries differ, or None.

        What is put around it must not merge with it: a character that no piece contains never does.
        """
        alone = self.names.absent
        tried = {
            f"{before}{inner}{after}": None
            for before in ("", alone)
            for after in ("", alone)
            for inner in (text.replace("▁", " "), text)
        }
        return next((given for given in sorted(tried, key=len) if self.differ(given)), None)

    # --- Both libraries on a text -----------------------------------------------------------------

    def differ(self, text: str) -> bool:
        """Whether a text gets other ids in the other library.

        This is False, too, if user-defined pieces play a part: if the text contains one; or if the model has
        some and the text is a token, because then (with `ignore_merges`) a token is not merged.
        """
        rewritten = normalized(self.names.spec.normalizer, text)
        if self.names.user_defined and rewritten in self.names.all:
            return False
        if self.names.holds_user_defined(rewritten):
            return False
        return self.fused(self.symbols(rewritten)) != self.fused(self._others(rewritten))

    def symbols(self, text: str) -> list[str]:
        """Return the pieces of a normalized text in sentencepiece; unknown characters follow UNKNOWN."""
        names, result = self.names, []
        waiting = [(symbol, 0) for symbol in reversed(merged(text, by_text(names.ranks)))]
        while waiting:
            symbol, depth = waiting.pop()
            if symbol in names.unused and symbol in self.made and depth <= MAX_SPLIT_DEPTH:
                waiting += [(part, depth + 1) for part in reversed(self.made[symbol])]
            else:
                found = symbol in names.ranks and (symbol not in names.unused or depth > MAX_SPLIT_DEPTH)
                result.append(symbol if found or symbol in names.bytes else UNKNOWN + symbol)
        return result

    def _others(self, text: str) -> list[str]:
        """The same in the other library."""
        known = self.names.characters
        found = merged(text, self._theirs)
        return [symbol if len(symbol) > 1 or symbol in known else UNKNOWN + symbol for symbol in found]

    def fused(self, symbols: list[str]) -> list[str]:
        """Join unknown characters that are side by side if, without byte fallback, they have one id."""
        if self.names.spec.byte_fallback:
            return symbols
        return [
            part
            for unknown, group in groupby(symbols, is_unknown)
            for part in ([UNKNOWN * 2] if unknown else group)
        ]

    def unfound(self, name: str) -> list[str] | None:
        """Return what the text of a token becomes in sentencepiece; None if it is the token itself."""
        if name in self.made and name not in self.names.unused:
            return None
        symbols = self.symbols(name)
        return None if symbols == [name] else symbols


def is_unknown(symbol: str) -> bool:
    """Whether a symbol is an unknown character, or several."""
    return symbol[0] == UNKNOWN and len(symbol) > 1


def _by_length(texts: Iterable[str]) -> list[str]:
    """Sort texts by length, and then alphabetically."""
    return sorted(texts, key=shortest_first)


# --- What a file says, tried out ------------------------------------------------------------------
#
# Some settings of a file may give other ids to some text, and for this the file is refused. The code here
# tries out whether there is such a text: the text that an error shows must really get other ids.

Ids = list[int | str]
"""Ids, and unknown characters, which become bytes."""


@dataclass(frozen=True)
class Suspect:
    """Something that a file says, and texts to which this may give other ids."""

    reason: str
    """What it says, worded as a `Difference.reason`."""
    tokens: tuple[str, ...]
    """Normalized texts to try, alone and next to other text."""
    is_certain: bool = True
    """Whether it counts as a difference even if no text shows it."""


@dataclass(frozen=True)
class Comparison:
    """A file and the model that was read from it."""

    spec: ModelSpec
    """The model."""
    vocab: Mapping[str, int]
    """The tokens of the file."""
    pairs: Mapping[Pair, float]
    """Its merges."""
    unknown: str | None
    """Its unknown token."""
    ignores_merges: bool
    """Whether it takes a text that is a token whole, without merging."""
    splits: bool
    """Whether it cuts texts before every U+2581."""

    @kept
    def _merging(self) -> Merging:
        return Merging(Names(self.spec))

    def difference(self, suspect: Suspect) -> Difference | None:
        """Return the suspect as a difference, with a text that shows it; None if it makes no difference."""
        for text in chain.from_iterable(map(self._texts, suspect.tokens)):
            rewritten = normalized(self.spec.normalizer, text)
            if self._merging.names.holds_user_defined(rewritten):
                continue
            if self._ids(self._merging.symbols(rewritten), self._own_ids) != self._theirs(rewritten):
                return Difference(suspect.reason, text)
        return Difference(suspect.reason) if suspect.is_certain else None

    def _texts(self, token: str) -> Iterable[str]:
        """Return texts that contain a token, the shortest first."""
        alone = self._merging.names.absent
        texts = {token.replace(SPACE, " "), token}
        if self.spec.normalizer.add_dummy_prefix:
            texts |= {text[1:] for text in texts if text[:1] in (SPACE, " ")}
        found = [
            *texts,
            *(text * 2 for text in texts),
            *(
                before + text + after
                for text in texts
                for before, after in (("", alone), (alone, ""), (alone, alone))
            ),
            *(alone + text * 2 for text in texts),
        ]
        return sorted(filter(None, dict.fromkeys(found)), key=shortest_first)

    @kept
    def _own_ids(self) -> dict[str, int]:
        return {name.decode(errors="replace"): id for name, id in self.spec.ids.items()}

    def _theirs(self, text: str) -> Ids:
        parts = re.findall(rf"{SPACE}[^{SPACE}]*|[^{SPACE}]+", text) if self.splits else [text]
        found: Ids = []
        for part in parts:
            symbols = [part]
            if not (self.ignores_merges and part in self.vocab):
                symbols = merged(part, by_pair(self.pairs))
            found += self._ids([s if s in self.vocab else UNKNOWN + s for s in symbols], self.vocab)
        return found

    def _ids(self, symbols: list[str], ids: Mapping[str, int]) -> Ids:
        found: Ids = []
        for symbol in self._merging.fused(symbols):
            if symbol in ids:
                found.append(ids[symbol])
            elif self.unknown is None or self.spec.byte_fallback:
                found.append(symbol if is_unknown(symbol) else UNKNOWN + symbol)
            else:
                found.append(self.vocab[self.unknown])
        return found


# --- Truncation and padding -----------------------------------------------------------------------
#
# They change how many ids a text has, and no model of cpbpe has such settings.

_LONGEST = 1000
"""If a file truncates to more tokens than this, no text is made to show it."""


def read_lengths(content: Json, spec: ModelSpec) -> tuple[list[Difference], list[str]]:
    """Return what truncation and padding in a file change: differences and notes."""
    differences, notes = list[Difference](), list[str]()
    truncation, padding = content.get("truncation"), content.get("padding")
    if truncation is not None:
        most = truncation.get("max_length") if isinstance(truncation, dict) else truncation
        reason = f"it cuts every text to {shown(most)} tokens (truncation)"
        differences.append(Difference(reason, _long_text(most, spec)))
    if padding is not None:
        settings: Json = padding if isinstance(padding, dict) else {}
        strategy = settings.get("strategy")
        length = strategy.get("Fixed") if isinstance(strategy, dict) else None
        multiple = settings.get("pad_to_multiple_of")
        if length:
            reason = f"it fills every text up to {shown(length)} tokens (padding)"
            differences.append(Difference(reason, ""))
        elif multiple not in (None, 0, 1):
            reason = f"it fills every text up to a multiple of {shown(multiple)} tokens (padding)"
            differences.append(Difference(reason, _unaligned_text(multiple, spec)))
        else:
            notes.append(
                "tokenizers fills up the shorter texts of a batch (padding); here, "
                "encode_arrays(texts).padded() does"
            )
    return differences, notes


def _unaligned_text(multiple: Any, spec: ModelSpec) -> str | None:
    """Return a text whose number of tokens is no multiple of this number, or None."""
    if type(multiple) is not int or spec.alphabet == "bytes":
        return None
    merging = Merging(Names(spec))
    for text in ("a", "a b", "b", "1", "a b c"):
        symbols = merging.symbols(normalized(spec.normalizer, text))
        known = all(symbol[0] != UNKNOWN for symbol in symbols)
        if known and len(symbols) % multiple:
            return text
    return None


def _long_text(most: Any, spec: ModelSpec) -> str | None:
    """Return a text of more than `most` tokens, or None.

    A character that is a piece alternates with one that no piece contains, so that nothing merges.
    """
    if spec.alphabet == "bytes":
        return None
    texts = list(map(text_of, spec.pieces.texts))
    single = next((text for text in texts if len(text) == 1 and text not in "\0\u2581 "), None)
    if type(most) is not int or not 0 <= most <= _LONGEST or single is None:
        return None
    return (single + absent_character(texts)) * (most // 2 + 1)
