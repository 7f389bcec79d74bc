r"""Byte-level BPE, as in GPT-2, GPT-4, Llama 3 and Qwen, to be read from top to bottom.

`cpbpe/reference/encoding.py` explains BPE as SentencePiece does it: pieces, scores, and merging the best pair
again and again. This family merges in the same way. It differs in what it merges, and in what happens before
and after:

1. **The letters are bytes.** A text starts as the bytes of its UTF-8 form, and each of the 256 bytes is a
   piece. So no text is unknown, and no UNKNOWN piece is needed. (`ByteLevel`)
2. **The text is cut by a rule before it is merged**, and nothing merges across the cuts. The rule is a
   regular expression; `patterns.py` explains the published ones. (`ByteLevel.chunks`)
3. **A piece's rank is its score and its id in one.** The ids were given out in the order of training, so the
   pair whose joined text has the lowest rank merges first, the leftmost of equals. (`merge` in
   `cpbpe/reference/merging.py`)
4. **A chunk that is a piece is taken whole**, even if no merges lead to it. (`ByteLevel.encode_chunk`)
5. **Special tokens have ids that ordinary text never gets.** They stand between documents or turns of a chat.
   The caller says which of them a text may spell out. (`ByteLevel.encode`)
6. **Decoding is joining**, and nothing is added or dropped: no `▁`, no prefix. But some pieces are only parts
   of characters. (`ByteLevel.decode`)
7. **In files, bytes are written as printable letters**, and ranks as a list. (`read_ranks`, `read_gpt2`)

**Why bytes, and why those of UTF-8?** Computers know a text as a sequence of *code points*, one number for
each character: 104 for h, 20320 for 你. These numbers could be ids. But there are 160,000 of them and more
every year, most of which a model would hardly ever see in training. Bytes are only 256, and every text has
them. There are several ways to write code points as bytes. UTF-32 takes four bytes for each, UTF-16 two or
four, and in English at least half of these bytes are zeros. UTF-8 takes one byte for ASCII and two to four
for the rest, and no byte of a longer character looks like ASCII.

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

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate

from cpbpe.errors import ModelError
from cpbpe.model.spec import ModelSpec, NormalizerSpec, PieceType
from cpbpe.reference.byte_level.patterns import compiled, cut, parts
from cpbpe.reference.encoding import CACHED_CHUNK_BYTES, CACHED_CHUNKS, Dropout, Normalizer, ReferenceEngine
from cpbpe.reference.merging import merge
from cpbpe.text.finder import Finder
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.unicode_forms import normal_form
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS, REPLACEMENT, from_letters, is_valid_utf8, valid_character

BYTES = tuple(bytes([byte]) for byte in range(256))


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
        """`whole`: whether a chunk that is a piece is taken whole."""
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
        """The rank of what two symbols become, and that symbol; None if it is not a piece."""
        text = left + right
        rank = self.ranks.get(text)
        return None if rank is None else (rank, text)

    def encode_chunk(self, chunk: bytes) -> tuple[int, ...]:
        """The ids of one chunk.

        A chunk that is a piece is taken whole, without merging. This is faster, and for a vocabulary that was
        learned merge by merge it changes nothing. But a vocabulary can have pieces that no merges make (678
        of Llama 3's, see `recover_merges`), and 588 of these are reached by this look-up. GPT-2's own code
        and minbpe do without it (`whole=False`).

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

        A text that somebody typed into a chat must not be able to end the turn. So a special token in a text
        is an error, with two exceptions: if it is in `allowed_special`, it becomes its id, and if it is not
        in `disallowed_special`, it is text like any other. "all" stands for all tokens (that are not
        allowed). Both options are tiktoken's. Where two tokens begin at the same place, the longer one is
        found; tiktoken does not say which.

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
        # The text is split at the special tokens, and each part is cut into chunks by itself. So no chunk
        # reaches across a special token, and no pattern looks beyond one.
        tokens = {token: id for token, id in self.special_tokens.items() if token in allowed}
        ids: list[int] = []
        at = 0
        for found in _any_of(tokens).finditer(text) if tokens else ():
            ids += [*self.encode_ordinary(text[at : found.start()]), tokens[found[0]]]
            at = found.end()
        return ids + self.encode_ordinary(text[at:])

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


def _any_of(tokens: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds these texts; if several begin at the same place, the longest."""
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


# --- The same as an engine ------------------------------------------------------------------------
#
# `ByteLevel` shows only the ideas. This engine adds what `ReferenceEngine` can do: it says which part of the
# text each token came from, skips merges at random, and takes text that is not UTF-8.


class ByteNormalizer(Normalizer):
    r"""Leaves text as it is, with three exceptions.

    It replaces bytes that belong to no character, it brings text into a Unicode normal form if the model has
    one, and it puts a space in front if the model or a call asks for that.

    Each byte is recorded as coming from its own place, because a byte-level piece may end within a character.
    (In other models, all bytes of a character come from where it begins.) Bytes that a normal form has
    changed come from the beginning of the text that they replace.

    >>> from dataclasses import replace
    >>> rules = NormalizerSpec("", b"", False, False, False)
    >>> ByteNormalizer(rules).normalize("é".encode() + b"\xff")
    (b'\xc3\xa9\xef\xbf\xbd', [0, 1, 2, 2, 2, 3])
    >>> ByteNormalizer(replace(rules, unicode_form="NFD")).normalize("é".encode() + b"\xff")
    (b'e\xcc\x81\xef\xbf\xbd', [0, 0, 0, 2, 2, 2, 3])
    """

    def __init__(self, spec: NormalizerSpec):
        super().__init__(spec, Finder([]))

    def normalize(self, text: bytes, keep_invalid: bool = False) -> tuple[bytes, list[int]]:
        """The text, and for each byte of it (and its end) the position that it came from."""
        result, origins = bytearray(), []
        at = 0
        while at < len(text):
            character = valid_character(text, at)
            if character is None:
                character = text[at : at + 1] if keep_invalid else REPLACEMENT
                origins += [at] * len(character)
                at += 1
            else:
                origins += range(at, at + len(character))
                at += len(character)
            result += character
        origins.append(len(text))
        form = self.spec.unicode_form
        made, origins = _normal_form(form, result.decode(), origins) if form else (bytes(result), origins)
        prefix = made and (self.spec.prefix_before_space or not made.startswith(b" "))
        return (b" " + made, [0, *origins]) if prefix and self.spec.add_dummy_prefix else (made, origins)


def _normal_form(form: str, text: str, origins: list[int]) -> tuple[bytes, list[int]]:
    """A text in a normal form, and where each byte came from; `origins` are those of the text given."""
    begins = [0, *accumulate(len(character.encode()) for character in text)]
    result = bytearray()
    places: list[int] = []
    for character, origin, is_own in normal_form(form, text):
        data = character.encode()
        result += data
        begin = begins[origin]
        places += origins[begin : begin + len(data)] if is_own else [origins[begin]] * len(data)
    return bytes(result), [*places, origins[-1]]


class ByteLevelEngine(ReferenceEngine):
    r"""Encodes and decodes for one byte-level model.

    >>> from cpbpe.model.spec import Piece, Pieces, SplitSpec
    >>> texts = [bytes([byte]) for byte in range(256)] + [b"ab", b"ra", b"abra", b" c"]
    >>> toy = ByteLevelEngine(ModelSpec(
    ...     Pieces.of([Piece(text, -rank) for rank, text in enumerate(texts)]),
    ...     NormalizerSpec("", b"", False, False, False),
    ...     alphabet="bytes",
    ...     splitter=SplitSpec(r" ?\p{L}+| "),
    ... ))
    >>> [(token.piece, token.begin, token.end) for token in toy.encode("abra cé".encode())]
    [(b'abra', 0, 4), (b' c', 4, 6), (b'\xc3', 6, 7), (b'\xa9', 7, 8)]
    >>> toy.decode_ids([258, 259, 195, 169])
    b'abra c\xc3\xa9'
    """

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        super().__init__(spec, keep_space)
        self.normalizer = ByteNormalizer(spec.normalizer)

    def _joinable_pairs(self) -> None:
        """None: a pattern cuts the text, not the pairs that pieces hold."""

    def symbols(self, text: bytes) -> list[list[bytes]]:
        """The bytes of each chunk of a text, which is UTF-8.

        The chunks are the matches of the pattern that are not empty. The published patterns match all of
        every text. If another pattern leaves text out between two matches, that text is a chunk as well, so
        that nothing is lost. (tiktoken drops it.) A model may have several patterns, each of which cuts the
        chunks of the one before, as if they were texts.
        """
        splitter = self.spec.splitter
        chunks = [text.decode()] if text else []
        for pattern in () if splitter is None else (splitter.pattern, *splitter.then):
            chunks = [part for chunk in chunks for part in parts(pattern, chunk)]
        return [[BYTES[byte] for byte in chunk.encode()] for chunk in chunks]

    def last_cut(self, text: bytes) -> int:
        """The last place up to which the chunks of a text are final, whatever follows; 0 if none is known.

        In all published patterns a word or a number ends where whitespace begins, and nothing that follows
        changes that.
        """
        splitter = self.spec.splitter
        known = splitter is not None and not splitter.then and splitter.pattern in PATTERNS.values()
        if not known or not is_valid_utf8(text):
            return 0
        last = 0
        for place in compiled(r"[\p{L}\p{N}](?=\s)").finditer(decoded := text.decode()):
            last = place.end()
        return len(decoded[:last].encode())

    def is_whole(self, chunk: bytes) -> bool:
        """Whether a chunk is taken whole, before anything merges."""
        return self.spec.whole and chunk in self._rank

    def _segment(self, text: bytes, dropout: Dropout | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield the final symbols of a text with their ids."""
        begin = 0
        for symbols in self.symbols(text):
            yield from self._segment_chunk(symbols, begin, dropout)
            begin += len(symbols)

    def _segment_chunk(
        self, chunk: list[bytes], begin: int, dropout: Dropout | None
    ) -> list[tuple[bytes, int]]:
        """The result for one chunk.

        With `dropout`, a chunk that is a piece is taken whole only if sampling yields the same symbols as
        merging without skips.
        """
        text = b"".join(chunk)
        whole = [(text, self._ids[text])] if self.is_whole(text) else None
        if dropout is None:
            return whole or super()._segment_chunk(chunk, begin, None)
        sampled = self._merge(chunk, begin, dropout)
        return whole if whole and sampled == self._merge(chunk) else sampled

    def _join(self, pieces: Iterable[tuple[bytes, int]], keep_invalid: bool) -> bytes:
        """Join the pieces. CONTROL pieces leave no text.

        Unless `keep_invalid` keeps them, bytes that make no character become U+FFFD: one for the longest
        beginning of a character, and one for each byte that begins none. tiktoken, tokenizers and Python's
        "replace" do the same.
        """
        joined = b"".join(piece for piece, id in pieces if id < 0 or self._types[id] != PieceType.CONTROL)
        return joined if keep_invalid else joined.decode(errors="replace").encode()


# --- Idea 7: how vocabularies are written down ---------------------------------------------------
#
# There are two forms. OpenAI's newer files list only the pieces with their ranks. They do not say which two
# pieces a piece is made of, because merging by the rank of the joined text does not need it. GPT-2's files,
# and Hugging Face's, list pairs. `recover_merges` leads from the first form to the second.
#
# GPT-2's files spell the bytes of a piece as printable letters, which `cpbpe/text/utf8.py` explains.


def read_ranks(file: bytes) -> dict[bytes, int]:
    r"""The ranks in a `.tiktoken` file: on each line a piece in Base64, a space and its rank.

    >>> read_ranks(b"IQ== 0\nIHRoZQ== 262\n")
    {b'!': 0, b' the': 262}
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(file.splitlines(), 1):
        if not line:
            continue
        try:
            text, rank = line.split()
            piece = base64.b64decode(text, validate=True)
            value = int(rank)
        except (ValueError, binascii.Error):
            raise ModelError(f"line {number} is not a piece in Base64 and its rank: {line[:60]!r}") from None
        if piece in ranks:
            raise ModelError(f"line {number} gives {piece!r} a second rank, {value} after {ranks[piece]}")
        ranks[piece] = value
    return ranks


def write_ranks(ranks: Mapping[bytes, int]) -> bytes:
    r"""A `.tiktoken` file, in the order of the ranks.

    >>> write_ranks({b" the": 262, b"!": 0})
    b'IQ== 0\nIHRoZQ== 262\n'
    """
    in_order = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join(b"%s %d\n" % (base64.b64encode(piece), rank) for piece, rank in in_order)


def read_gpt2(encoder: bytes, merges: bytes) -> tuple[dict[bytes, int], dict[str, int]]:
    r"""The ranks and the special tokens in GPT-2's two files, `encoder.json` and `vocab.bpe`.

    The first has the id of each piece; the second has a pair on each line after the first, in the order of
    training. Ids can serve as ranks only if they are in the same order, so this is checked. A piece of the
    first file that is neither a byte nor made by a merge, such as `<|endoftext|>`, is a special token.

    >>> ids = {LETTERS[byte]: id for id, byte in enumerate(BYTE_ORDER)} | {"Ġt": 256, "<|e|>": 257}
    >>> ranks, special_tokens = read_gpt2(json.dumps(ids).encode(), "#version: 0.2\nĠ t\n".encode())
    >>> ranks[b" "], ranks[b" t"], special_tokens
    (220, 256, {'<|e|>': 257})
    """
    ids: dict[str, int] = json.loads(encoder)
    ranks: dict[bytes, int] = {}
    for byte in BYTE_ORDER:
        if LETTERS[byte] not in ids:
            raise ModelError(f"encoder.json has no id for {LETTERS[byte]!r}, the letter of the byte {byte}")
        ranks[bytes([byte])] = ids.pop(LETTERS[byte])
    last = -1
    for number, line in enumerate(merges.decode().split("\n")[1:], 2):
        if not line:
            continue
        left, _, right = line.partition(" ")
        rank = ids.pop(left + right, None)
        if rank is None or rank <= last:
            reason = "has no id of its own" if rank is None else f"has the id {rank}, but comes after {last}"
            raise ModelError(
                f"line {number} of vocab.bpe makes {left + right!r}, which {reason} in encoder.json; its "
                f"order must be that of the ids"
            )
        ranks[from_letters(left + right)] = last = rank
    return ranks, ids


# --- From ranks to pairs --------------------------------------------------------------------------


def recover_merges(ranks: Mapping[bytes, int]) -> tuple[dict[tuple[bytes, bytes], int], list[bytes]]:
    """The pair that makes each piece, with the rank of the piece; and the pieces that no pair makes.

    When training learned a piece, its text consisted of two symbols wherever they were merged. To find these
    two, encode the piece with only the lower ranks, that is, with the merges that were learned before it: two
    symbols are left. They are the same everywhere in the text, because equal texts consist of equal symbols.
    To see why, consider a part of a text that consists of whole symbols now. No merge has crossed its ends,
    since symbols only grow. So all merges that touched it were inside it, and since merging goes from left to
    right, its own text alone decided which they were.

    For the same reason, merging by the pairs and merging by the joined text give the same ids, if all pieces
    were learned in this way: whenever two neighbours have the text of a piece, and nothing with a lower rank
    is left to merge, they are its pair.

    A piece that was added in another way may be left as more than two symbols. Such pieces are in the list;
    Llama 3 has 678 of them.

    >>> ranks = {byte: rank for rank, byte in enumerate(BYTES)} | {b"ab": 256, b"abab": 257, b"xyz": 258}
    >>> recover_merges(ranks)
    ({(b'a', b'b'): 256, (b'ab', b'ab'): 257}, [b'xyz'])
    """
    merges: dict[tuple[bytes, bytes], int] = {}
    added: list[bytes] = []
    for piece, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(piece) == 1:
            continue

        def joined(left: bytes, right: bytes, below: int = rank) -> tuple[int, bytes] | None:
            text = left + right
            own = ranks.get(text)
            return None if own is None or own >= below else (own, text)

        parts = merge((BYTES[byte] for byte in piece), joined)
        if len(parts) == 2:
            merges[parts[0], parts[1]] = rank
        else:
            added.append(piece)
    return merges, added
