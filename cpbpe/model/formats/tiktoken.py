"""`.tiktoken` files: the ranks of a byte-level vocabulary, a piece in a line, as tiktoken has them.

    IQ== 0
    Ig== 1

The bytes of a piece in base64, a space, and its rank, which is its id. The file says neither by which pattern
texts are cut nor which special tokens there are. tiktoken has both in its code. Here the well-known files are
recognized by a hash; for others they are given: `cpbpe.load(path, pattern="cl100k", special_tokens={...})`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from operator import itemgetter

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model.byte_level import assembled, example, known_patterns, said_again, splitter_of, unsaid
from cpbpe.model.formats.given import NOTHING, Given
from cpbpe.model.formats.values import Difference, ReadModel, Written, refuse
from cpbpe.model.known_ranks import known_ranks
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.spelling import advised

# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes, *, allow_differences: bool = False, given: Given = NOTHING) -> ReadModel:
    """The model in a file; if nothing is known of it, a ModelError says how to load it."""
    if given == NOTHING and known_ranks(data) is None:
        raise ModelError(
            "this is a file of ranks (.tiktoken), and none of the well-known ones. It says neither how texts "
            f"are cut nor which special tokens there are; load it with both, for example {example()}. "
            f"{known_patterns()}"
        )
    return ReadModel(spec_of(data, *given))


def spec_of(
    data: bytes, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> ModelSpec:
    r"""The model in a file of ranks. What is not given is known if the file is well-known.

    `pattern`: the name of a published one, or a regular expression; "": a text is one chunk.

    >>> file = write_ranks({bytes([byte]): byte for byte in range(256)} | {b"ab": 256})
    >>> spec = spec_of(file, "gpt2", {"<|endoftext|>": 257})
    >>> spec.pieces[256], spec.pieces[257].type.name, spec.splitter.name
    (Piece(text=b'ab', score=-256.0, type=<PieceType.NORMAL: 1>), 'CONTROL', 'gpt2')
    """
    known = known_ranks(data)
    if pattern is None and known is None:
        raise ModelError(
            f"a file of ranks (.tiktoken) does not say how texts are cut; give a pattern, too: {example()}. "
            f"{known_patterns()}"
        )
    if pattern is None and known is not None:
        pattern = known.pattern
    if special_tokens is None:
        special_tokens = known.special_tokens if known else {}
    return assembled(
        {id: (piece, float(-id)) for piece, id in _ranks(data).items()},
        special_tokens,
        splitter=splitter_of(pattern or ""),
        ends=(known.begin, known.end) if known else ("", "<|endoftext|>"),
        whole=True,
        number="rank",
    )


def _ranks(data: bytes) -> dict[bytes, int]:
    """The rank of each piece. Every line is one, or the file is refused."""
    # 1. All at once, which takes a fifth of the time. If anything is wrong, the lines say what.
    if _LINES.fullmatch(data):
        words = data.split()
        with suppress(binascii.Error):
            ranks = dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
            if 2 * len(ranks) == len(words) and len(set(ranks.values())) == len(ranks) and b"" not in ranks:
                return ranks
    # 2. Line by line.
    return _ranks_by_line(data)


_LINES = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]{1,9}\r?\n)*")


def _ranks_by_line(data: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    seen: dict[int, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        line = line.rstrip(b"\r")
        if not line:
            continue
        token, _, rank = line.partition(b" ")
        try:
            # Padding alone is how Whisper's file spells an empty piece; not every Python decodes it.
            piece = base64.b64decode(token.strip(b"=") and token, validate=True)
        except binascii.Error as error:
            raise _wrong(number, f"{_shown(token)} is not base64: {error}") from None
        if not rank.isdigit() or len(rank) > 9:
            raise _wrong(number, f"a rank is a number from 0, not {_shown(rank)}")
        id = int(rank)
        if not piece:
            token_of = advised(f"special_tokens={{'<|empty|>': {id}}}", f"--special-token '<|empty|>={id}'")
            raise ModelError(
                f"line {number} of the file of ranks: the piece is empty, and no text has such a token. "
                f"Leave the line out, and give its id to a special token: {token_of}"
            )
        if piece in ranks:
            raise _wrong(number, f"the piece {piece!r} has a rank already: {ranks[piece]}")
        if id in seen:
            raise _wrong(number, f"the rank {id} is that of line {seen[id]}, too")
        ranks[piece] = id
        seen[id] = number
    return ranks


def _shown(part: bytes) -> str:
    text = part[:40].decode(errors="backslashreplace")
    return repr(text + "..." if len(part) > 40 else text)


def _wrong(line: int, reason: str) -> ModelError:
    return ModelError(
        f"line {line} of the file of ranks: {reason}; each line is a piece in base64, a space and a rank"
    )


# --- Writing --------------------------------------------------------------------------------------


def write_ranks(ranks: Mapping[bytes, int]) -> bytes:
    r"""The file of some ranks.

    >>> write_ranks({b"!": 0, b"ab": 1})
    b'IQ== 0\nYWI= 1\n'
    """
    rows = sorted(ranks.items(), key=itemgetter(1))
    return b"".join(b"%b %d\n" % (base64.b64encode(piece), rank) for piece, rank in rows)


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """The file of a byte-level model, whose ids are ranks: pieces must merge in the order of their ids."""
    if spec.alphabet != "bytes":
        raise ConversionError(
            "a .tiktoken file holds the ranks of a byte-level model, and this one is made of characters"
        )
    types = spec.pieces.types
    ranks = {piece: id for id, piece in enumerate(spec.pieces.texts) if types[id] == PieceType.NORMAL}
    differences = list(_differences(spec, ranks))
    if not allow_differences:
        refuse(
            differences,
            "there is no file of ranks that is exactly this model",
            "To write it all the same, use convert() with allow_differences=True, which lists them",
        )
    special = {piece.decode(errors="replace"): id for piece, id in spec.ids.items() if piece not in ranks}
    special |= {token.decode(errors="replace"): id for token, id in spec.added}
    note = (
        "the file says neither by which pattern texts are cut nor which special tokens there are: it is "
        f"loaded with {said_again(spec.splitter, special)}"
    )
    return Written(write_ranks(ranks), tuple(differences), (note,))


def _differences(spec: ModelSpec, ranks: Mapping[bytes, int]) -> Iterator[Difference]:
    """Yield what tiktoken would do in another way."""
    yield from unsaid(spec)
    scores = spec.pieces.numbers()
    merged = [(id, piece) for piece, id in ranks.items() if len(piece) > 1]
    for (id, _), (next_id, piece) in pairwise(merged):
        if not scores[id] > scores[next_id]:
            shown = piece.decode(errors="backslashreplace")
            reason = (
                f"the piece {next_id}, {shown!r}, does not merge after those before it, and ranks are ids"
            )
            yield Difference(reason)
            return
    if not spec.whole:
        for _, piece in merged:
            if not is_made(piece, ranks):
                reason = "tiktoken takes a chunk that is a piece whole, and here no merges make it"
                yield Difference(reason, piece.decode(errors="backslashreplace"))
                return


def is_made(piece: bytes, ranks: Mapping[bytes, int]) -> bool:
    """Whether merging makes a piece of its bytes."""
    parts = [bytes([byte]) for byte in piece]
    while len(parts) > 1:
        pairs = [ranks.get(one + other, len(ranks) << 32) for one, other in pairwise(parts)]
        at = pairs.index(min(pairs))
        if parts[at] + parts[at + 1] not in ranks:
            return False
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return True
