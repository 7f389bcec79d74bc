"""Text that may go on: `encode_with_unstable`, and the ids of bytes that are not UTF-8.

The last tokens of a text can change when text follows. tiktoken takes those of the last chunk for unstable
(and whitespace before it), and tries every token that could reach over the end of the text. That finds some
completions which no text has, and misses others, but it is what programs get, so it is followed closely.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain

from cpbpe.compat.tiktoken.engines import Engines
from cpbpe.lazy import numpy

_SPACE = frozenset(b" \n\t")
_WHITESPACE = frozenset(
    map(
        chr,
        (
            *range(9, 14),
            0x20,
            0x85,
            0xA0,
            0x1680,
            *range(0x2000, 0x200B),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x3000,
        ),
    )
)
"""Unicode's whitespace, to which U+001C to U+001F do not belong, although Python says so."""
_AT_ONCE = 1 << 14
"""This many possibilities are encoded together."""
_FEW = 50
"""Fewer of them are looked at one by one, which takes less time than making arrays."""


def stable_count(engines: Engines, ids: list[int], in_last_chunk: int) -> int:
    """How many ids are stable, of a text whose last chunk has so many.

    If that begins with whitespace, all ids of whitespace before it are unstable, too.
    """

    def is_space(id: int) -> bool:
        # (A special token is none, unless a rank has the same id.)
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
    # 2. Tokens that begin within them: what then becomes of all, up to the end of the bytes.
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
    if before and last in _WHITESPACE:
        found.add(tuple(engines.merge(before) + engines.merge(last.encode())))
    found.difference_update(zip(whole, strict=True))
    return [[id] for id in whole] + [list(ids) for ids in sorted(found)]


def _beginning_with(engines: Engines, prefix: bytes) -> list[bytes]:
    """The tokens that begin so."""
    tokens = engines.sorted_bytes
    first = bisect_left(tokens, prefix)
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return tokens[first:]
    after = stem[:-1] + bytes([stem[-1] + 1])
    near = min(first + _FEW, len(tokens))  # mostly the end is there
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
    """The ids of each of these, up to the one with which they are so many bytes long."""
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
    # All at once: the place in each row where the bytes are enough.
    np = numpy()
    ids = list(chain.from_iterable(rows))
    lengths = map(len, map(engines.rank_bytes.__getitem__, ids))
    reached = np.cumsum(np.fromiter(lengths, np.int64, len(ids)))
    begins = np.cumsum([0, *map(len, rows)])[:-1]
    before = np.concatenate([[0], reached])[begins]
    ends = np.searchsorted(reached, before + length) + 1
    return {tuple(row[:count]) for row, count in zip(rows, (ends - begins).tolist(), strict=True)}


def _until(texts: dict[int, bytes], row: list[int], length: int) -> list[int]:
    """A row of ids up to the one with which they are so many bytes long."""
    for count, id in enumerate(row, 1):
        length -= len(texts[id])
        if length <= 0:
            return row[:count]
    return row
