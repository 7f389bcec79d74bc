r"""How byte-level vocabularies are written down: ranks, printable letters, and lists of pairs.

There are two forms. OpenAI's newer files list the pieces with their ranks, and that is all: which two
pieces a piece is made of is not written down, because merging by the rank of the joined text does not need
it. GPT-2's files, and Hugging Face's, list pairs. `recover_merges` leads from the first form to the second.

GPT-2's files spell the bytes of a piece as printable letters, which `cpbpe/text/utf8.py` explains.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from cpbpe.errors import ModelError
from cpbpe.reference.byte_level.encoding import BYTES, merge
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS, from_letters

# --- Files ----------------------------------------------------------------------------------------


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

    The first has the id of each piece, the second a pair on each line after the first, in the order of
    training. That the ids were given out in the same order is what makes them ranks, so it is checked. An
    id of the first file that no merge explains, `<|endoftext|>`, is that of a special token.

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

    When training came to a piece, its text consisted of two symbols wherever it was merged. Which two? Those
    that the merges learned until then make of it: encoding the piece with only the lower ranks leaves two
    symbols. They are the same everywhere, because equal texts consist of equal symbols. Consider a part of a
    text that consists of whole symbols now. No merge has crossed its ends, since symbols only grow. So all
    merges that touched it were inside it, and since merging goes from left to right, they are those that its
    own text asks for.

    For the same reason, merging by the pairs and merging by the joined text give the same ids, if all pieces
    were learned in this way: whenever two neighbours have the text of a piece, and nothing with a lower rank
    is left to merge, they are its pair.

    A piece that was added in another way may be left as more than two symbols, and is in the list. So are 678
    of Llama 3's.

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
            found = ranks.get(text)
            return None if found is None or found >= below else (found, text)

        parts = merge((BYTES[byte] for byte in piece), joined)
        if len(parts) == 2:
            merges[parts[0], parts[1]] = rank
        else:
            added.append(piece)
    return merges, added
