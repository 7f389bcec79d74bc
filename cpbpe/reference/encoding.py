r"""SentencePiece BPE, the whole algorithm in plain Python, to be read from top to bottom.

This file is the specification of cpbpe: faster engines must return what it returns, and it must return
what google/sentencepiece 0.2.3 returns (whose quirks are pointed out where they matter). Its only
optimizations are a heap and a cache of results, so it is slow.

A tokenizer turns text into a list of small integers and back. Its model is a list of *pieces*: short texts,
each with a score and a type. The index of a piece is its *id*. The types are in `cpbpe/model/spec.py`; most
pieces are NORMAL, that is, learned from text. While a text is being encoded, the parts that it currently
consists of are its *symbols*. The rest follows from five ideas:

1. **A space is a letter.** Spaces are written as `▁` (U+2581, three bytes) and then treated like any
   other character, so joining the pieces gives the text back, and no rule about words is needed.
   Usually one more `▁`, the dummy prefix, is put in front of the text, so that "world" becomes the
   same piece, `▁world`, at the start of a text as in the middle. (`Normalizer`)
2. **Merge the best pair, again and again.** The text starts as single characters. Of all pairs of
   neighbours whose joined text is a piece, the pair whose piece has the highest score becomes one
   symbol; this is repeated until no pair is left. This is byte pair encoding, BPE. The scores record
   the order in which training merged: its first merge has the highest score. (`ReferenceEngine._merge`,
   and `merge` in `merging.py`, which is the loop)
3. **What can never merge can be cut.** If no piece holds the characters `a` and `b` side by side, no
   merge will ever join them, so the text can be cut there, and each chunk merged by itself. Chunks
   are short and recur often, so their results are cached. (`_segment`)
4. **No character is lost.** A character without a piece becomes the bytes of its UTF-8 form, each a
   piece of its own (`<0xE2>`); models without such pieces have one piece that means "unknown".
   This happens after all merging, so bytes never merge. (`encode`)
5. **Decoding is joining.** Pieces are joined, bytes become characters, `▁` becomes a space, and the
   space that idea 1 put in front is dropped. (`surfaces`)

All text in this file is UTF-8 bytes, because positions are counted in bytes and because the input may be
invalid: the normalizer replaces each byte that belongs to no character by U+FFFD. Three small tools are in
`cpbpe/text`: `utf8.py` says what a character is, `finder.py` finds the longest of several keys at a position,
and `charsmap.py` finds the longest normalization rule there.

A vocabulary small enough to follow by hand: three merges, best first, then the characters.

>>> from cpbpe.model.spec import Piece, Pieces
>>> texts = ["ab", "ra", "abra", "▁", "a", "b", "c", "d", "r"]
>>> toy = ReferenceEngine(ModelSpec(Pieces.of(
...     [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
...     + [Piece(text.encode(), -rank) for rank, text in enumerate(texts)]
... )))
>>> [token.piece.decode() for token in toy.encode(b"abracadabra")]
['▁', 'abra', 'c', 'a', 'd', 'abra']
>>> [token.id for token in toy.encode(b"abracadabra")]
[4, 3, 7, 5, 8, 3]
>>> toy.decode_ids([4, 3, 7, 5, 8, 3])
b'abracadabra'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from cpbpe.model.spec import MAX_SPLIT_DEPTH, MAX_USER_DEFINED_MATCHES, ModelSpec, NormalizerSpec, PieceType
from cpbpe.reference.merging import chance, merge
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import (
    REPLACEMENT,
    SPACE,
    character_length,
    valid_character,
)

BYTE_PIECES = [b"<0x%02X>" % byte for byte in range(256)]
CACHED_CHUNKS = 1 << 16
CACHED_CHUNK_BYTES = 64

MERGEABLE = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)  # the types that merging can make

Dropout = tuple[float, int]  # the probability that a merge is skipped, and a mixed seed
Splits = dict[bytes, tuple[bytes, bytes]]  # for each UNUSED piece, the pair that makes it in this text


class Frozen(bytes):
    """A symbol that never merges: a user-defined piece in a text."""


class Token(NamedTuple):
    """One piece of an encoded text."""

    id: int
    """Its id in the vocabulary."""
    piece: bytes
    """Its text. For the UNKNOWN piece this is the unknown text, not `<unk>`."""
    begin: int
    """Where the part of the input that it came from begins, in bytes."""
    end: int
    """Where that part ends."""


# --- Idea 1: a space is a letter ------------------------------------------------------------------


class Normalizer:
    r"""Rewrites text into its normalized form, and records where each byte came from.

    >>> normalizer = Normalizer(NormalizerSpec(), Finder([]))
    >>> normalizer.normalize("  Hello   world ".encode())[0].decode()
    '▁Hello▁world'
    >>> normalizer.normalize(b"a  b")        # '▁a▁b': the map says that b came from position 3
    (b'\xe2\x96\x81a\xe2\x96\x81b', [0, 0, 0, 0, 1, 1, 1, 3, 4])
    """

    def __init__(self, spec: NormalizerSpec, user_defined: Finder, where: str = "normalizer_spec"):
        self.spec = spec
        self._user_defined = user_defined
        self._charsmap = Charsmap(spec.charsmap, where) if spec.charsmap else None

    def rewrite(self, text: bytes, at: int, keep_invalid: bool) -> tuple[bytes, int]:
        """The rewritten form of the text at `at`, and how many bytes of `text` it replaces.

        No rule may break up a user-defined piece, so a piece that begins here is copied. (It is looked for
        again when the normalized text is segmented.) If there is none, the longest rule applies; if there is
        no rule either, the character is copied.
        """
        length = self._user_defined.longest(text, at)
        if length:
            return text[at : at + length], length
        rule = self._charsmap.longest(text, at) if self._charsmap else None
        if rule is not None:
            return rule
        character = valid_character(text, at)
        if character is None:
            return (text[at : at + 1] if keep_invalid else REPLACEMENT), 1
        return character, len(character)

    def normalize(self, text: bytes, keep_invalid: bool = False) -> tuple[bytes, list[int]]:
        """The normalized text, and for each of its bytes (and its end) the position in `text` it came from.

        With `keep_invalid`, bytes that belong to no character stay as they are.
        """
        squeeze = self.spec.remove_extra_whitespaces
        space = SPACE if self.spec.escape_whitespaces else b" "
        result = bytearray()
        origins: list[int] = []

        def add(part: bytes, origin: int) -> None:
            escaped = part.replace(b" ", space)
            result.extend(escaped)
            origins.extend([origin] * len(escaped))

        # Leading spaces are removed first, because a text of nothing but spaces is empty and gets no dummy
        # prefix.
        at = 0
        while squeeze and at < len(text):
            rewritten, used = self.rewrite(text, at, keep_invalid)
            if rewritten != b" ":
                break
            at += used
        # The dummy prefix. Some models omit it before a space, so look for the first character that is kept.
        begin, prefix = at, self.spec.add_dummy_prefix and not self.spec.suffix
        while prefix and not self.spec.prefix_before_space and at < len(text):
            rewritten, used = self.rewrite(text, at, keep_invalid)
            kept = rewritten.lstrip(b" ") if squeeze else rewritten
            if kept:
                prefix = not kept.startswith((b" ", space))
                break
            at += used
        if at == len(text):
            return b"", [at]
        if prefix:
            add(b" ", begin)

        drop_spaces = squeeze  # true at the beginning, and after a space
        while at < len(text):
            rewritten, used = self.rewrite(text, at, keep_invalid)
            if drop_spaces:
                rewritten = rewritten.lstrip(b" ")
            add(rewritten, at)
            if rewritten:
                drop_spaces = squeeze and rewritten.endswith(b" ")
            at += used

        # Trailing spaces are removed. So are a dummy prefix that nothing follows, and a trailing `▁` that the
        # text itself contained.
        end = at
        while squeeze and result.endswith(space):
            del result[-len(space) :]
            end = origins[len(result)]
            del origins[len(result) :]

        if self.spec.add_dummy_prefix and self.spec.suffix:
            add(b" ", end)
        return bytes(result), [*origins, end]


# --- Ideas 2 to 5: the engine ---------------------------------------------------------------------


class ReferenceEngine:
    """Encodes and decodes for one model. It never changes, except for the cache of `_segment_chunk`."""

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        """`keep_space`: whether decoding keeps a space at the beginning that it would otherwise drop."""
        if not isinstance(spec, ModelSpec):
            raise TypeError(
                f"ReferenceEngine takes a ModelSpec, not {type(spec).__name__}; that of a model file is "
                f"cpbpe.load(path).spec"
            )
        self.spec = spec
        self._keep_space = keep_space
        # `spec.ids` lacks a piece that is one NUL character, because sentencepiece never finds it.
        self._texts, self._types = spec.pieces.texts, spec.pieces.types
        self._ids = spec.ids
        types = {piece: self._types[id] for piece, id in self._ids.items()}
        self._unk = -1 if spec.unknown_id is None else spec.unknown_id
        self._unused = {piece for piece, type in types.items() if type == PieceType.UNUSED}
        self.user_defined = Finder(
            (piece for piece, type in types.items() if type == PieceType.USER_DEFINED),
            MAX_USER_DEFINED_MATCHES,
        )

        # The pieces that merging can make, by rank: the lowest rank has the highest score.
        mergeable = [piece for piece, type in types.items() if type in MERGEABLE]
        ranks = spec.pieces.ranks()
        self._rank = {piece: ranks[self._ids[piece]] for piece in mergeable}
        self._joinable = self._joinable_pairs()
        self._cache: dict[bytes, list[tuple[bytes, int]]] = {}

        self.normalizer = Normalizer(spec.normalizer, self.user_defined)
        self._denormalizer = None
        if spec.denormalizer is not None and spec.denormalizer.charsmap:
            self._denormalizer = Normalizer(spec.denormalizer, Finder([]), "denormalizer_spec")

    def _joinable_pairs(self) -> set[bytes] | None:
        """All pairs of characters that some piece holds side by side.

        None if a piece is not UTF-8: it does not consist of characters, so text cannot be cut between them.
        """
        pairs: set[bytes] = set()
        for piece in self._rank:
            try:
                characters = piece.decode()
            except UnicodeDecodeError:
                return None
            pairs.update((left + right).encode() for left, right in pairwise(characters))
        return pairs

    def normalize(self, text: bytes) -> bytes:
        """The normalized text."""
        return self.normalizer.normalize(text)[0]

    # --- Idea 3: what can never merge can be cut --------------------------------------------------

    def _segment(self, text: bytes, dropout: Dropout | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield the final symbols of a normalized text with their ids; an unknown one has the id `_unk`.

        A user-defined piece in the text is one frozen symbol: it never merges, even if a longer piece
        contains it. Everything else starts as single characters.

        The text is cut between two characters that no piece holds side by side, because a merge that joins
        them would make a piece that does. Each chunk then merges as if it were alone: merges in one chunk do
        not change the symbols of another.

        >>> from cpbpe.model.spec import Piece, Pieces
        >>> toy = ReferenceEngine(ModelSpec(Pieces.of(
        ...     [Piece(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"a"), Piece(b"b"), Piece(b"ab")])))
        >>> list(toy._segment(b"abba"))        # chunks: 'ab', 'b', 'a'
        [(b'ab', 3), (b'b', 2), (b'a', 1)]
        """
        # (With dropout, the rest of the text decides how `split` takes an UNUSED piece apart. So a text is
        # not cut then if the model has UNUSED pieces.)
        cuts = dropout is None or not self._unused
        chunk: list[bytes] = []
        begin = 0  # how many symbols come before the chunk
        for symbol in self.symbols(text)[0]:
            if chunk and cuts and self._is_cut(chunk[-1], symbol):
                yield from self._segment_chunk(chunk, begin, dropout)
                begin += len(chunk)
                chunk = []
            chunk.append(symbol)
        yield from self._segment_chunk(chunk, begin, dropout)

    def _is_cut(self, left: bytes, right: bytes) -> bool:
        """Whether no merge can ever join two of the symbols that a text starts as.

        None can if no piece holds them side by side.
        """
        if self._joinable is None:
            return False
        return Frozen in (type(left), type(right)) or left + right not in self._joinable

    def last_cut(self, text: bytes) -> int:
        """The last cut of a normalized text that stays one, whatever follows; 0 if none is known.

        Without user-defined pieces, spaces may also be written as spaces.
        """
        spaces = {b" ": SPACE} if self.spec.normalizer.escape_whitespaces else {}
        # A user-defined piece that begins after this may still be incomplete.
        end = len(text) - self.user_defined.longest_key
        cut = at = 0
        for left, right in pairwise(self.symbols(text)[0]):
            at += len(left)
            if at > end:
                break
            if self._is_cut(spaces.get(left, left), spaces.get(right, right)):
                cut = at
        return cut

    def symbols(self, text: bytes) -> list[list[bytes]]:
        """The symbols that a normalized text starts as.

        Here they are in one list. In a byte-level model there is a list for each chunk of the pattern.
        """
        symbols: list[bytes] = []
        at = 0
        while at < len(text):
            length = self.user_defined.longest(text, at)
            end = at + (length or character_length(text, at))
            symbols.append(Frozen(text[at:end]) if length else text[at:end])
            at = end
        return [symbols]

    def is_whole(self, chunk: bytes) -> bool:
        """Whether a chunk becomes one piece before anything merges. Only byte-level models do that."""
        return False

    def _segment_chunk(
        self, chunk: list[bytes], begin: int, dropout: Dropout | None
    ) -> list[tuple[bytes, int]]:
        """The result for one chunk, from the cache if it is there. The cache is emptied when it is full.

        The text of a chunk suffices as its key: a user-defined piece always becomes a symbol, so the same
        text always has the same frozen symbols. (A sampled chunk also depends on its position, so it is not
        cached.)
        """
        if dropout is not None:
            return self._merge(chunk, begin, dropout)
        text = b"".join(chunk)
        symbols = self._cache.get(text)
        if symbols is None:
            symbols = self._merge(chunk)
            if len(text) <= CACHED_CHUNK_BYTES:
                if len(self._cache) >= CACHED_CHUNKS:
                    self._cache.clear()
                self._cache[text] = symbols
        return symbols

    # --- Idea 2: merge the best pair, again and again ---------------------------------------------

    def join(self, left: bytes, right: bytes, splits: Splits) -> tuple[int, bytes] | None:
        """The rank of the symbol that two symbols become, and that symbol; None if they do not merge.

        All that matters is whether the joined text is a piece of a type that merges; the two halves need not
        be pieces. `splits` records the pair that makes an UNUSED piece.
        """
        if isinstance(left, Frozen) or isinstance(right, Frozen):
            return None
        joined = left + right
        rank = self._rank.get(joined)
        if rank is None:
            return None
        if joined in self._unused:
            splits[joined] = left, right
        return rank, joined

    def _merge(
        self, symbols: list[bytes], begin: int = 0, dropout: Dropout | None = None
    ) -> list[tuple[bytes, int]]:
        """Merge neighbours until no pair is a piece: highest score first, then leftmost.

        With `dropout`, each pair is skipped for good with the given probability when its turn comes, so that
        a text has many segmentations (BPE-dropout). Which pairs are skipped depends on `begin`, the place of
        the chunk in the text. (Here places are counted in the symbols that the text starts as, not in bytes.)
        """
        splits: Splits = {}

        def skips(left: int, right: int, end: int) -> bool:
            probability, seed = dropout or (0.0, 0)
            return chance(seed, begin + left, begin + right, begin + end) < probability

        merged = merge(
            symbols,
            lambda left, right: self.join(left, right, splits),
            skips if dropout is not None else None,
        )
        return [part for symbol in merged for part in self.split(symbol, splits)]

    def split(self, symbol: bytes, splits: Splits, depth: int = 0) -> Iterator[tuple[bytes, int]]:
        """Yield a symbol with its id; an UNUSED one in two parts, which are split again if they are UNUSED.

        Marking pieces UNUSED makes a vocabulary smaller after training. They still merge, so that longer
        pieces built on them can be reached, but they must not appear in the result. For each, `splits` holds
        the neighbours whose joined text is the piece, whether they were merged or not. An UNUSED piece that
        no pair makes, such as a single character, is unknown. sentencepiece stops at a depth of 100, so that
        a crafted model cannot exhaust the stack, and returns the symbol that it has reached.

        sentencepiece uses the last such pair anywhere in the text. It could use any, because all are the
        same: when two neighbours together have the text of the piece, no merge has crossed the ends of that
        text, so the merges inside it were the same, in the same order, as if it were a text of its own.
        (Dropout skips merges, so then the rest of the text matters.)
        """
        if depth > MAX_SPLIT_DEPTH:
            yield bytes(symbol), self._ids.get(symbol, self._unk)
        elif symbol in splits:
            for half in splits[symbol]:
                yield from self.split(half, splits, depth + 1)
        elif symbol in self._rank and symbol not in self._unused:
            yield bytes(symbol), self._ids[symbol]
        else:
            yield bytes(symbol), self._unk

    # --- Idea 4: no character is lost -------------------------------------------------------------

    def encode(self, text: bytes, dropout: Dropout | None = None) -> list[Token]:
        """Normalize, segment, and replace unknown symbols by their bytes or by the UNKNOWN piece.

        Symbols become bytes only after all merging. If they did so before, bytes would be symbols like any
        other and could merge; SentencePiece merges only characters.

        Of the bytes of a character, only the last has a span; those of the others are empty, so that spans
        neither overlap nor repeat. Unknown symbols side by side become one token of the UNKNOWN piece.
        """
        normalized, origins = self.normalizer.normalize(text)
        tokens: list[Token] = []
        at = 0
        segmented = self._segment(normalized, dropout)
        for unknown, group in groupby(segmented, lambda symbol: symbol[1] == self._unk):
            symbols = list(group)
            if unknown and not self.spec.byte_fallback:
                symbols = [(b"".join(symbol for symbol, _ in symbols), self._unk)]
            for symbol, id in symbols:
                begin, end = origins[at], origins[at + len(symbol)]
                at += len(symbol)
                if unknown and self.spec.byte_fallback:
                    pieces = [BYTE_PIECES[byte] for byte in symbol]
                    tokens += [Token(self._ids[piece], piece, begin, begin) for piece in pieces]
                    tokens[-1] = tokens[-1]._replace(end=end)
                else:
                    tokens.append(Token(id, symbol, begin, end))
        return tokens

    # --- Idea 5: decoding is joining --------------------------------------------------------------

    def decode_ids(self, ids: Sequence[int], keep_invalid: bool = False) -> bytes:
        """The text of a sequence of ids, which must be in the vocabulary."""
        return self._join(((self._texts[id], id) for id in ids), keep_invalid)

    def decode_pieces(self, pieces: Sequence[bytes]) -> bytes:
        """The text of a sequence of pieces; anything that is not a piece is unknown and copied as it is."""
        return self._join(((piece, self._ids.get(piece, self._unk)) for piece in pieces), False)

    def _join(self, pieces: Iterable[tuple[bytes, int]], keep_invalid: bool) -> bytes:
        """Join the pieces. A denormalizer, which few models have, rewrites the result like a normalizer."""
        text = b"".join(surfaces(self.spec, pieces, keep_invalid, self._keep_space))
        return self._denormalizer.normalize(text, keep_invalid)[0] if self._denormalizer else text


def surfaces(
    spec: ModelSpec,
    pieces: Iterable[tuple[bytes, int]],
    keep_invalid: bool = False,
    keep_space: bool = False,
    *,
    listed: bool = False,
) -> Iterator[bytes]:
    """The text that each piece stands for: bytes become characters, `▁` a space, and one in front is dropped.

    A character that several BYTE pieces form together belongs to the last of them.

    Encoding may have put a `▁` in front, so one is dropped at the beginning of the text. "The beginning"
    lasts until there is text or a `▁` has been dropped; a CONTROL piece, which has no text, does not end
    it. With remove_extra_whitespaces the text had no space in front at all, so every piece loses its
    first `▁` until there is text. (A dummy prefix at the end, `suffix`, is not dropped, so the decoded
    text ends in a space.)

    The `▁` in the name of an unknown piece counts as dropped, too, although its text does not have it. Where
    sentencepiece lists the texts of pieces (`listed`), it does not count.
    """
    rules, texts, types = spec.normalizer, spec.pieces.texts, spec.pieces.types
    drops_space = (rules.add_dummy_prefix or rules.remove_extra_whitespaces) and not keep_space
    at_beginning = True
    run = bytearray()  # the bytes of consecutive BYTE pieces, decoded when the run ends
    for piece, id in pieces:
        type = types[id] if id >= 0 else PieceType.UNKNOWN
        if type == PieceType.BYTE:
            run.append(int(piece[3:5], 16))
            continue
        if run:
            yield from _surfaces_of_bytes(bytes(run), keep_invalid)
            run.clear()
            at_beginning = False
        drop = at_beginning and drops_space and piece.startswith(SPACE)
        if type == PieceType.CONTROL:
            drop, surface = False, b""
        elif type == PieceType.UNKNOWN:
            drop = drop and not listed
            surface = spec.unk_surface if id >= 0 and piece == texts[id] else piece
        else:
            surface = piece[len(SPACE) if drop else 0 :].replace(SPACE, b" ")
        at_beginning = at_beginning and not surface and (not drop or rules.remove_extra_whitespaces)
        yield surface
    yield from _surfaces_of_bytes(bytes(run), keep_invalid)


def _surfaces_of_bytes(run: bytes, keep_invalid: bool) -> Iterator[bytes]:
    at = 0
    while at < len(run):
        character = run[at : at + 1] if keep_invalid else valid_character(run, at)
        yield from [b""] * (len(character or b"?") - 1)
        yield REPLACEMENT if character is None else character
        at += len(character or b"?")
