r"""Byte-level BPE, the way of GPT-2, GPT-4, Llama 3 and Qwen, to be read from top to bottom.

`cpbpe/reference/encoding.py` explains BPE as SentencePiece does it: pieces, scores, and merging the best pair
again and again. This family merges in the same way. It differs in what it merges, and in what stands around
that:

1. **The letters are bytes.** A text starts as the bytes of its UTF-8 form, and each of the 256 bytes is a
   piece. So there is nothing unknown, and no piece is needed for it. (`ByteLevel`)
2. **The text is cut by a rule before it is merged**, and nothing merges across the cuts. The rule is a
   regular expression; `patterns.py` explains the published ones. (`ByteLevel.chunks`)
3. **A piece's rank is its score and its id in one.** The ids were given out in the order of training, so the
   pair whose joined text has the lowest rank merges first, the leftmost of equals. (`merge`)
4. **A chunk that is a piece is taken whole**, even if no merges lead to it. (`ByteLevel.encode_chunk`)
5. **Special tokens have ids that ordinary text never gets.** They stand between documents or turns of a chat.
   Whoever encodes says which ones a text may spell out. (`ByteLevel.encode`)
6. **Decoding is joining**, and nothing is added or dropped: no `▁`, no prefix. But some ids are only parts of
   characters. (`ByteLevel.decode`)
7. **In files, bytes are written as printable letters**, and ranks as a list. (`ranks.py`)

**Why bytes, and why those of UTF-8?** Computers know a text as a sequence of *code points*, one number for
each character: 104 for h, 20320 for 你. These numbers could be ids. But there are 150,000 of them and more
every year, most of which a model would hardly ever see in training. Bytes are only 256, and every text has
them. There are several ways to write code points as bytes. UTF-32 takes four bytes for each, UTF-16 two or
four, and most of them are zeros in English. UTF-8 takes one byte for ASCII and two to four for the rest,
and no byte of a longer character looks like ASCII.

>>> [ord(character) for character in "hi 你"]
[104, 105, 32, 20320]
>>> list("hi 你".encode("utf-32-le"))
[104, 0, 0, 0, 105, 0, 0, 0, 32, 0, 0, 0, 96, 79, 0, 0]
>>> list("hi 你".encode("utf-8"))
[104, 105, 32, 228, 189, 160]

The price is length: a text has more bytes than characters, and a model can attend to a limited number of ids.
Merging pays it back: what is frequent becomes one piece, however many bytes it has.

A vocabulary small enough to follow by hand: the 256 bytes, then three merges.

>>> from cpbpe.reference.byte_level.patterns import PATTERNS
>>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"ra": 257, b"abra": 258}
>>> toy = ByteLevel(ranks, PATTERNS["gpt2"], {"<|end|>": 300})
>>> toy.encode("abracadabra!")
[258, 99, 97, 100, 258, 33]
>>> toy.encode("é<|end|>", allowed_special="all")
[195, 169, 300]
>>> toy.decode([258, 195, 169, 300])
'abraé<|end|>'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import TypeVar

from cpbpe.reference.byte_level.patterns import cut

S = TypeVar("S")

BYTES = tuple(bytes([byte]) for byte in range(256))
CACHED_CHUNKS = 1 << 16
CACHED_CHUNK_BYTES = 64


# --- Idea 3: the lowest rank first ----------------------------------------------------------------


def merge(symbols: Iterable[S], joined: Callable[[S, S], tuple[int, S] | None]) -> list[S]:
    """Merge neighbours until no pair can merge: the lowest rank first, the leftmost of equals.

    `joined` says what two symbols become and the rank of that, or None. For this family it looks up the
    joined text in the ranks. Others (minbpe, GPT-2's own code, Hugging Face's tokenizers) have a list of
    pairs; `ranks.recover_merges` says when that is the same.

    A symbol is identified by its place in the list. Pairs that a merge has made invalid stay in the heap, and
    are recognized when their turn comes: one of the two symbols is not the one that it was.

    >>> table = {("a", "b"): (0, "ab"), ("b", "c"): (1, "bc")}
    >>> merge("abcbc", lambda left, right: table.get((left, right)))
    ['ab', 'c', 'bc']
    """
    now = list(symbols)
    gone = [False] * len(now)  # whether it was merged into the symbol before it
    before = list(range(-1, len(now) - 1))
    after = [*range(1, len(now)), -1]
    heap: list[tuple[int, int, int, S, S, S]] = []

    def consider(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            found = joined(now[left], now[right])
            if found is not None:
                heappush(heap, (found[0], left, right, now[left], now[right], found[1]))

    for left in range(len(now) - 1):
        consider(left, left + 1)
    while heap:
        _, left, right, first, second, made = heappop(heap)
        if gone[left] or gone[right] or now[left] != first or now[right] != second:
            continue
        now[left] = made
        gone[right] = True
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        consider(before[left], left)
        consider(left, after[left])
    return [symbol for place, symbol in enumerate(now) if not gone[place]]


# --- The tokenizer --------------------------------------------------------------------------------


class ByteLevel:
    """Encodes and decodes with one vocabulary. It never changes, except for a cache of chunks.

    `ranks` has the pieces and their ranks, which are their ids; `read_ranks` reads them from a file.
    `pattern` cuts the text; None leaves it whole. `special_tokens` has the ids of special tokens.
    """

    def __init__(
        self,
        ranks: Mapping[bytes, int],
        pattern: str | None,
        special_tokens: Mapping[str, int] | None = None,
        whole: bool = True,
    ):
        """`whole`: a chunk that is a piece is taken whole."""
        self.ranks = dict(ranks)
        self.pattern = pattern
        self.special_tokens = dict(special_tokens or {})
        self.whole = whole
        missing = [byte for byte in BYTES if byte not in self.ranks]
        if missing:
            raise ValueError(
                f"{len(missing)} of the 256 bytes have no rank, for example {missing[0]!r}; every byte must "
                f"be a piece, or texts with it could not be encoded"
            )
        self._texts = {rank: text for text, rank in self.ranks.items()}
        if len(self._texts) < len(self.ranks):
            raise ValueError("two pieces have the same rank; a rank is an id, and says which piece is meant")
        for token, id in self.special_tokens.items():
            other = self._texts.setdefault(id, token.encode())
            if other != token.encode():
                raise ValueError(f"the special token {token!r} has the id {id}, which {other!r} already has")
        self._cache: dict[bytes, tuple[int, ...]] = {}

    # --- Idea 2: the text is cut by a rule --------------------------------------------------------

    def chunks(self, text: str) -> list[str]:
        """The parts of a text that are merged, each by itself."""
        if self.pattern is None:
            return [text] if text else []
        return cut(self.pattern, text)

    # --- Ideas 1 and 4: bytes, and whole chunks ---------------------------------------------------

    def join(self, left: bytes, right: bytes) -> tuple[int, bytes] | None:
        """What two symbols become, and its rank; None if that is not a piece."""
        text = left + right
        rank = self.ranks.get(text)
        return None if rank is None else (rank, text)

    def encode_chunk(self, chunk: bytes) -> tuple[int, ...]:
        """The ids of one chunk.

        A chunk that is a piece is taken whole before any merging. This is faster, and for a vocabulary that
        was learned merge by merge it changes nothing. But pieces can be added that merging does not make: 588
        of Llama 3's are only found by this look-up. GPT-2's own code and minbpe do not have it
        (`whole=False`).

        >>> ranks = {byte: rank for rank, byte in enumerate(BYTES)} | {b"abc": 256}
        >>> [ByteLevel(ranks, None, whole=whole).encode_chunk(b"abc") for whole in (True, False)]
        [(256,), (97, 98, 99)]
        """
        if self.whole and chunk in self.ranks:
            return (self.ranks[chunk],)
        ids = self._cache.get(chunk)
        if ids is None:
            symbols = merge((BYTES[byte] for byte in chunk), self.join)
            ids = tuple(self.ranks[symbol] for symbol in symbols)
            if len(chunk) <= CACHED_CHUNK_BYTES:
                if len(self._cache) >= CACHED_CHUNKS:
                    self._cache.clear()
                self._cache[chunk] = ids
        return ids

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which special tokens are text like any other."""
        return [id for chunk in self.chunks(well_formed(text)) for id in self.encode_chunk(chunk.encode())]

    # --- Idea 5: special tokens -------------------------------------------------------------------

    def encode(
        self,
        text: str,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str | Collection[str] = "all",
    ) -> list[int]:
        """The ids of a text, in which special tokens may be spelled out.

        A text that somebody typed into a chat must not be able to end the chat's turn. So a special token
        in a text is an error, unless it is in `allowed_special`, which makes it its id, or missing in
        `disallowed_special`, which makes it text like any other. "all" stands for all tokens (that are not
        allowed). The two options and what they do are tiktoken's. Where two tokens begin at the same place,
        the longer one is found; tiktoken does not say which.

        >>> toy = ByteLevel({byte: rank for rank, byte in enumerate(BYTES)}, None, {"<e>": 256})
        >>> toy.encode("a<e>", allowed_special={"<e>"}), toy.encode("a<e>", disallowed_special=())
        ([97, 256], [97, 60, 101, 62])
        >>> toy.encode("a<e>")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: the text has the special token '<e>'; ...
        """
        known = set(self.special_tokens)
        allowed = known if allowed_special == "all" else set(allowed_special)
        disallowed = known - allowed if disallowed_special == "all" else set(disallowed_special)
        if disallowed and (found := _any_of(disallowed).search(text)):
            raise ValueError(
                f"the text has the special token {found[0]!r}; allow it in allowed_special, or pass "
                f"disallowed_special=() to encode it as plain text"
            )
        return encode_with_special(
            text,
            {token: id for token, id in self.special_tokens.items() if token in allowed},
            self.encode_ordinary,
        )

    # --- Idea 6: decoding is joining --------------------------------------------------------------

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that ids stand for."""
        try:
            return b"".join([self._texts[id] for id in ids])
        except KeyError as error:
            raise IndexError(f"{error.args[0]} is not an id of this vocabulary") from None

    def decode(self, ids: Iterable[int]) -> str:
        r"""The text of ids. Bytes that belong to no character become U+FFFD.

        Any text can be encoded and decoded again, but not every list of ids is a text: a piece may be a
        part of a character, and a model may choose any piece as the next one.

        >>> toy = ByteLevel({byte: rank for rank, byte in enumerate(BYTES)}, None)
        >>> toy.decode([228, 189, 160]), toy.decode([228, 189]), toy.decode([160, 228])
        ('你', '\ufffd', '\ufffd\ufffd')
        """
        return self.decode_bytes(ids).decode(errors="replace")


def encode_with_special(
    text: str, special_tokens: Mapping[str, int], ordinary: Callable[[str], list[int]]
) -> list[int]:
    """The ids of a text: those of the special tokens in it, and between them those that `ordinary` gives.

    The parts are cut into chunks one by one: a chunk never reaches across a special token, nor does a pattern
    look across it.
    """
    if not special_tokens:
        return ordinary(text)
    ids: list[int] = []
    at = 0
    for found in _any_of(special_tokens).finditer(text):
        ids += ordinary(text[at : found.start()])
        ids.append(special_tokens[found[0]])
        at = found.end()
    return ids + ordinary(text[at:])


def _any_of(tokens: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds these texts; of those that begin at the same place, the longest."""
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True)))


def well_formed(text: str) -> str:
    r"""The text without surrogates, which are halves of characters in UTF-16 and have no UTF-8 form.

    Two halves that belong together become their character, others U+FFFD, as in tiktoken.

    >>> well_formed("\ud83d\ude00 \ud83d")
    '😀 \ufffd'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
