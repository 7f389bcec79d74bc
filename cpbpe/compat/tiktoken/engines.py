"""cpbpe's engines for a table of ranks as tiktoken accepts it, and how the last tokens of a text may change.

A model of cpbpe has ids without gaps, all bytes, and no two pieces or special tokens with the same text.
tiktoken requires none of that, so this file arranges the ranks into such a model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain, count, takewhile
from operator import index, itemgetter
from typing import TYPE_CHECKING, Any

from cpbpe.checks import threads_for
from cpbpe.engine.choice import make_engine
from cpbpe.engine.cutting import Cutter, make_cutter
from cpbpe.engine.protocol import Engine, Text
from cpbpe.lazy import importing, kept
from cpbpe.model.byte_level import AS_IT_IS, in_letters, tiktoken_splitter
from cpbpe.model.spec import ModelSpec, Pieces, PieceType, SplitSpec
from cpbpe.text.split_patterns import name_of
from cpbpe.text.utf8 import to_letters
from cpbpe.tokenizer.special_tokens import SPACES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BYTES = [bytes([byte]) for byte in range(256)]
GAP = b"\xff" * 16
"""The beginning of a piece that fills a gap in the ranks. No text has such bytes, so none yields it."""
GAP_TEXT = "\ufffd" * 16
"""The same in decoded text. If decoding yields it, the ids are decoded again, one by one."""
_MORE_GAPS = 1 << 12
"""Gaps are filled if there are no more of them than this, or than ranks."""
_LIMIT = 2**32 - 1
"""Ranks must be smaller, because this number means "no rank" in tiktoken."""


class Engines:
    """Encodes and decodes for one table of ranks, its special tokens and its pattern."""

    def __init__(self, ranks: Mapping[bytes, int], special: Mapping[str, int], pattern: str):
        ranks, special = dict(ranks), dict(special)  # (they may be changed later)
        # 1. Checks, where tiktoken raises an error or panics.
        self._ranks = ranks
        self.rank = ranks.__getitem__
        """Returns the rank of bytes; KeyError if they have none."""
        self.rank_or_none = ranks.get
        self.special = special
        if not pattern:
            raise ValueError(
                'pat_str is empty, and would match nothing; for texts as one chunk use r"[\\s\\S]+"'
            )
        self._pattern = pattern = tiktoken_splitter(pattern).pattern
        _check_ranks(ranks)
        # 2. The pieces. Gaps are filled if there are few; otherwise the engine's ids differ from the ranks.
        rows = sorted(((rank, text) for text, rank in ranks.items() if text), key=itemgetter(0))
        self._names: list[int | None] | None = None
        """The rank of each id of the engine (None: a byte without a rank); None if ids are the ranks."""
        texts = [text for _, text in rows]
        missing = [byte for byte in _BYTES if byte not in ranks]
        size = rows[-1][0] + 1 if rows else 0
        if missing or size > len(rows) + max(len(rows), _MORE_GAPS):
            self._names = [*(rank for rank, _ in rows), *([None] * len(missing))]
            texts += missing
        elif size != len(rows):
            texts = _filled(rows, size)
        self._engine = _engine(texts, pattern)
        self.decoder: Engine | None = self._engine if self._names is None else None
        """The engine that decodes ids, if one can: first without special tokens, later one that has them."""
        self._is_decoder_complete = False
        self.has_no_gaps = size == len(rows)
        """Whether no id of the decoder fills a gap."""

    # --- Text to ids ------------------------------------------------------------------------------

    @kept
    def _cutter(self) -> Cutter:
        return make_cutter(self._pattern)

    @kept
    def _without_pattern(self) -> Engine:
        """An engine with the same pieces that encodes chunks, without cutting them."""
        return _engine([self._engine.piece(id) for id in range(self._engine.size)], None)

    def chunks(self, text: str) -> list[bytes]:
        """The chunks of a text, without what the pattern does not match."""
        return self._cutter.chunks(text)

    @kept
    def direct(self) -> Engine | None:
        """The engine, if its ids are the ranks and the pattern matches all of every text."""
        return self._engine if self._cutter.is_complete and self._names is None else None

    def _parts(self, text: str) -> list[Any] | None:
        """The chunks of a text, for the engine without a pattern; None if they are all of the text.

        The engine with the pattern is only for texts that are all chunks, because it also encodes what lies
        between chunks. Such a text is cut twice, which takes less time than to join the ids of its chunks.
        """
        return None if self._cutter.is_complete else self._cutter.parts(text)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        chunks = self._parts(text)
        if chunks is None:
            return self._ranks_of(self._engine.encode(text))
        rows = self._without_pattern.encode_batch(chunks, 1)
        return self._ranks_of(list(chain.from_iterable(rows)))

    def encode_array(self, text: str) -> NDArray[np.uint32]:
        """The same as an array."""
        chunks = self._parts(text)
        if chunks is None:
            ids = self._engine.encode_array(text, 1)
        else:
            ids, _ = self._without_pattern.encode_arrays(chunks, 1)
        if self._names is None:
            return ids
        with importing:
            import numpy as np
        return np.array(self._ranks_of(ids.tolist()), np.uint32)

    def encode_batch(self, texts: Sequence[str], threads: int) -> list[list[int]]:
        """The ids of many texts, by at most this many threads."""
        if not self._cutter.is_complete:
            return [self.encode(text) for text in texts]
        given: list[Text] = list(texts)
        rows = self._engine.encode_batch(given, min(threads, threads_for(given, None)))
        return rows if self._names is None else [self._ranks_of(row) for row in rows]

    def encode_chunk(self, chunk: bytes) -> list[int]:
        """The ids of a chunk: its rank, or what merging makes of it."""
        rank = self._ranks.get(chunk)
        return self.merge(chunk) if rank is None else [rank]

    def _ranks_of(self, ids: list[int]) -> list[int]:
        if self._names is None:
            return ids
        names = self._names
        ranks = [names[id] for id in ids]
        if None in ranks:
            byte = self._engine.piece(ids[ranks.index(None)])
            raise ValueError(f"the text has the byte {byte!r}, which has no rank in mergeable_ranks")
        return ranks  # type: ignore[return-value]

    # --- Merging bytes ----------------------------------------------------------------------------

    @kept
    def _merger(self) -> tuple[Engine, list[int]]:
        """An engine for any bytes, as GPT-2's letters, and the rank of each of its ids."""
        rows = sorted(((rank, text) for text, rank in self._ranks.items() if text), key=itemgetter(0))
        return make_engine(in_letters(_pieces([text for _, text in rows]))), [rank for rank, _ in rows]

    def merge(self, chunk: bytes) -> list[int]:
        """The ids that merging makes of any bytes, even if these have a rank themselves."""
        return self.merge_all([chunk])[0]

    def merge_all(self, chunks: Sequence[bytes]) -> list[list[int]]:
        """`merge` for many chunks."""
        engine, ranks = self._merger
        rows = [engine.encode(to_letters(chunk)) for chunk in chunks]
        try:
            return [[ranks[id] for id in row] for row in rows]
        except IndexError:  # the id of the unknown
            raise ValueError("the text has a byte that has no rank in mergeable_ranks") from None

    # --- Ids to text ------------------------------------------------------------------------------

    @kept
    def table(self) -> dict[int, bytes]:
        """The bytes of every id.

        A rank takes precedence over a special token with the same id, and the first of two special tokens
        over the second. (In tiktoken, the order of these is that of a hash table. For o200k_harmony, in which
        two have the same id, the result is the same.)
        """
        special = {id: token.encode() for token, id in reversed([*self.special.items()])}
        return {**special, **self.rank_bytes}

    @kept
    def rank_bytes(self) -> dict[int, bytes]:
        """The bytes of every rank."""
        return {rank: text for text, rank in self._ranks.items()}

    @kept
    def row(self) -> list[bytes]:
        """The bytes of the ids from 0 to the first gap, as a list, which is faster than a dict."""
        table = self.table
        return [table[id] for id in takewhile(table.__contains__, count())]

    @kept
    def sorted_bytes(self) -> list[bytes]:
        """The bytes of all ranks, sorted."""
        return sorted(self._ranks)

    def _complete_decoder(self) -> Engine | None:
        """An engine with special tokens as pieces; None if there are many gaps, or two tokens are the same.

        Making it takes a few hundredths of a second, so it is made only once such ids are decoded.
        """
        size = max(self.table, default=-1) + 1
        texts = set(self.table.values())
        if not texts.issuperset(_BYTES) or b"" in texts or len(texts) < len(self.table):
            return None
        if size > len(self.table) + max(len(self.table), _MORE_GAPS):
            return None
        return _engine(_filled(list(self.table.items()), size), None)

    def decode_bytes(self, ids: Any) -> bytes:
        """The bytes of ids. KeyError, TypeError or OverflowError for anything else, as in tiktoken."""
        ids = listed(ids)
        data = None if self.decoder is None else self.decoder.decode_bytes(ids)
        if data is None and not self._is_decoder_complete:
            complete = self._complete_decoder()
            if complete is not None:
                self.has_no_gaps, self.decoder = False, complete
                data = complete.decode_bytes(ids)
            self._is_decoder_complete = True
        if data is not None and GAP not in data:
            return data
        return b"".join([self.bytes_of(id, "Invalid token for decoding: ") for id in ids])

    def bytes_of(self, id: Any, said: str = "") -> bytes:
        """The bytes of one id."""
        number: int = index(id)
        if not 0 <= number < 1 << 32:
            raise OverflowError(f"{number} is not a token: tokens are numbers from 0 to 2^32 - 1")
        data = self.table.get(number)
        if data is None:
            raise KeyError(f"{said}{number}")
        return data


def listed(ids: Any) -> list[Any]:
    """Ids as a list, from a sequence or an array."""
    if isinstance(ids, (str, set, frozenset, dict)) or not hasattr(ids, "__getitem__"):
        raise TypeError(f"tokens must be a sequence of integers, not {type(ids).__name__}")
    return ids.tolist() if hasattr(ids, "dtype") and ids.ndim == 1 else list(ids)


def _check_ranks(ranks: Mapping[bytes, int]) -> None:
    if set(map(type, ranks)) - {bytes} or set(map(type, ranks.values())) - {int}:
        for text, rank in ranks.items():
            if type(text) is not bytes or type(rank) is not int:
                raise TypeError(
                    f"mergeable_ranks must have the rank of each piece by its bytes, not {text!r}: {rank!r}"
                )
    if not ranks:
        raise ValueError("mergeable_ranks is empty")
    if min(ranks.values()) < 0 or max(ranks.values()) >= _LIMIT:
        raise OverflowError(f"ranks are numbers from 0 to {_LIMIT - 1}")
    if len(set(ranks.values())) < len(ranks):
        seen: dict[int, bytes] = {}
        for text, rank in ranks.items():
            if rank in seen:
                raise ValueError(f"two pieces have the rank {rank}: {seen[rank]!r} and {text!r}")
            seen[rank] = text


def _filled(rows: list[tuple[int, bytes]], size: int) -> list[bytes]:
    """The text of each id; gaps are filled with bytes that no text has."""
    texts = [GAP + id.to_bytes(4, "big") for id in range(size)]
    for id, text in rows:
        texts[id] = text
    return texts


def _engine(texts: list[bytes], pattern: str | None) -> Engine:
    """The engine for pieces that merge in the order of their ids."""
    splitter = None if pattern is None else SplitSpec(pattern, name_of(pattern))
    return make_engine(ModelSpec(_pieces(texts), AS_IT_IS, alphabet="bytes", splitter=splitter, whole=True))


def _pieces(texts: list[bytes]) -> Pieces:
    """Pieces that merge in the order of their ids."""
    scores = map(float, chain([0], range(-1, -len(texts), -1)))
    return Pieces.of_lists(texts, scores, bytes([PieceType.NORMAL]) * len(texts))


# --- Unstable tokens ------------------------------------------------------------------------------
#
# `encode_with_unstable`, and the ids of bytes that are not UTF-8. The last tokens of a text can change when
# text follows. tiktoken treats those of the last chunk as unstable (and whitespace before it), and tries each
# token that could reach beyond the end of the text. That finds some completions that no text has, and misses
# others; but it is what programs get from tiktoken, so this code follows it closely.

_SPACE = frozenset(b" \n\t")
_AT_ONCE = 1 << 14
"""This many candidates are encoded together."""
_FEW = 50
"""Fewer items are processed one by one, which takes less time than making arrays."""


def stable_count(engines: Engines, ids: list[int], in_last_chunk: int) -> int:
    """How many ids of a text are stable; `in_last_chunk` is how many its last chunk has.

    If the last chunk begins with whitespace, all ids of whitespace directly before it are unstable, too.
    """

    def is_space(id: int) -> bool:
        # (A special token is not whitespace, unless a rank has the same id.)
        text = engines.rank_bytes.get(id)
        return text is not None and _SPACE.issuperset(text)

    stable = len(ids) - in_last_chunk
    if in_last_chunk and is_space(ids[stable]):
        while stable and is_space(ids[stable - 1]):
            stable -= 1
    return stable


def ids_of_bytes(engines: Engines, data: bytes) -> list[int]:
    """The ids of bytes. What is not UTF-8 joins the last chunk of the text before it."""
    try:
        return engines.encode(data.decode())
    except UnicodeDecodeError as error:
        valid = error.start
    text = data[:valid].decode()
    ids = engines.encode(text)
    chunks = engines.chunks(text)
    stable = stable_count(engines, ids, len(engines.encode_chunk(chunks[-1])) if chunks else 0)
    rest = b"".join(map(engines.rank_bytes.__getitem__, ids[stable:])) + data[valid:]
    return ids[:stable] + engines.encode_chunk(rest)


def completions(engines: Engines, unstable: bytes) -> list[list[int]]:
    """The ids that unstable bytes may become: single tokens first, then sequences, sorted."""
    # 1. Tokens that begin with all of the bytes.
    whole = sorted(map(engines.rank, _beginning_with(engines, unstable)))
    # 2. Tokens that begin inside the bytes: encode all of it, and keep the ids up to the end of the bytes.
    found: set[tuple[int, ...]] = set()
    possible: list[bytes] = []
    for begin in range(1, len(unstable)):
        before = unstable[:begin]
        possible += [before + token for token in _beginning_with(engines, unstable[begin:])]
        if len(possible) > _AT_ONCE:
            found |= _reaching(engines, possible, len(unstable))
            possible.clear()
    found |= _reaching(engines, possible, len(unstable))
    # 3. Whitespace at the end may become a chunk of its own.
    last = _last_character(unstable)
    before = unstable[: len(unstable) - len(last.encode())]
    if before and last in SPACES:
        found.add(tuple(engines.merge(before) + engines.merge(last.encode())))
    found.difference_update(zip(whole, strict=True))
    return [[id] for id in whole] + [list(ids) for ids in sorted(found)]


def _beginning_with(engines: Engines, prefix: bytes) -> list[bytes]:
    """The tokens that begin with these bytes."""
    tokens = engines.sorted_bytes
    first = bisect_left(tokens, prefix)
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return tokens[first:]
    after = stem[:-1] + bytes([stem[-1] + 1])
    near = min(first + _FEW, len(tokens))  # the end is usually within this range
    end = bisect_left(tokens, after, first, near)
    return tokens[first : bisect_left(tokens, after, end) if end == near else end]


def _last_character(data: bytes) -> str:
    """The last character of bytes; "" if they do not end with one."""
    for length in range(1, min(4, len(data)) + 1):
        try:
            text = data[-length:].decode()
        except UnicodeDecodeError:
            continue
        return text
    return ""


def _reaching(engines: Engines, possible: list[bytes], length: int) -> set[tuple[int, ...]]:
    """The ids of each candidate, as far as they are needed to cover `length` bytes."""
    texts, others = [], []
    for data in possible:
        try:
            texts.append(data.decode())
        except UnicodeDecodeError:
            others.append(data)
    rows = engines.encode_batch(texts, 1) if texts else []
    rows += engines.merge_all(others)
    if len(rows) < _FEW:
        return {tuple(_until(engines.rank_bytes, row, length)) for row in rows}
    # For many rows, arrays find the place in each row where `length` bytes are covered.
    with importing:
        import numpy as np
    ids = list(chain.from_iterable(rows))
    lengths = map(len, map(engines.rank_bytes.__getitem__, ids))
    reached = np.cumsum(np.fromiter(lengths, np.int64, len(ids)))
    begins = np.cumsum([0, *map(len, rows)])[:-1]
    before = np.concatenate([[0], reached])[begins]
    ends = np.searchsorted(reached, before + length) + 1
    return {tuple(row[:count]) for row, count in zip(rows, (ends - begins).tolist(), strict=True)}


def _until(texts: dict[int, bytes], row: list[int], length: int) -> list[int]:
    """The first ids of a row that cover `length` bytes."""
    for stop, id in enumerate(row, 1):
        length -= len(texts[id])
        if length <= 0:
            return row[:stop]
    return row
