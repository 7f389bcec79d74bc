"""Files with something wrong in them, made from right ones: for every loader that reads bytes.

What is changed is chosen by a `random.Random`: one with a seed in tests, and `Chosen` where a fuzzer chooses.
"""

import copy
import json
import random
from collections.abc import Sequence
from typing import Any


class Chosen(random.Random):
    """Choices that are read from bytes. When those are used up, the first of everything is chosen."""

    def __new__(cls, data: bytes) -> "Chosen":
        return super().__new__(cls)

    def __init__(self, data: bytes):
        super().__init__()
        self.data = data
        """What has not been read yet."""

    def seed(self, *unused: object, **also_unused: object) -> None:
        """Do nothing: nothing is random here."""

    def getrandbits(self, k: int) -> int:
        size = (k + 7) // 8
        number = int.from_bytes(self.data[:size], "little")
        self.data = self.data[size:]
        return number & ((1 << k) - 1)

    def _randbelow(self, n: int) -> int:  # what all choices come down to; the usual one may read on and on
        return self.getrandbits((max(n - 1, 0).bit_length() + 7) // 8 * 8) % max(n, 1)

    def random(self) -> float:
        return self.getrandbits(16) / (1 << 16)


EXTREME = (
    *(0, 1, 2, 7, 8, 12, 13, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20),
    *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
"""Numbers for lengths, counts and types."""
PARTS = (
    *(b"\t", b"\n", b"\0", b"\xff", b"-", b"nan", b"inf", b"1e999", b"\t0\n", b"<unk>", "▁".encode(), b" "),
    *(b"null", b"true", b"-1", b"99999999999", b"[]", b"{}", b'""', b'"\\ud800"'),
    *(b",", b"}", b"]", b'"', b":"),
)
"""What is put between bytes."""
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        5,
        700,
        2**40,
        10**20,
        1.5,
        [],
        {},
        "",
        "a",
        "ab",
        "x",
        " ",
        "\0",
        "\ud800",
    ),
    *("▁", "▁the", "<s>", "<x>", "x" * 400, "always", "never", "first"),
    *(["<s>"], [None], ["a", "b"], ["a", "▁"], [{"name": "a"}], [{"id": 3, "content": "a"}]),
    *({"content": "<q>"}, {"content": None}, {"type": "Fuse"}, {"type": "Strip"}),
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
]
"""Values that JSON may have somewhere, right or wrong."""
NAMES = [
    *("a", "b", "bab", "▁b", "a b", "7", "701", "type", "content", "id", "mask_token", "legacy"),
    *("add_prefix_space", "extra_special_tokens"),
]
"""Names of members."""


def mutated(chance: random.Random, files: Sequence[bytes]) -> bytes:
    """One of these files with one to three things wrong."""
    data = bytearray(chance.choice(files))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _change(chance, data, files)
    return bytes(data)


def _change(chance: random.Random, data: bytearray, files: Sequence[bytes]) -> None:
    size = len(data)
    # The beginning matters most: there are the header, keys and lengths.
    at = min(int(size * chance.random() ** chance.choice((1, 1, 3))), max(size - 1, 0))
    kind = chance.randrange(8)
    if kind == 0 and size:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and size:
        data[at] = chance.choice((0, 1, 9, 0x0A, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        width = chance.choice((4, 8))
        number = chance.choice(EXTREME) % (1 << 8 * width)
        data[at : at + width] = number.to_bytes(width, chance.choice(("little", "little", "big")))
    elif kind == 4:
        del data[at : at + chance.choice((1, 2, 4, 8, 50))]
    elif kind == 5:
        data[at:at] = chance.choice((*PARTS, chance.randbytes(chance.randrange(1, 9))))
    elif kind == 6:
        other = chance.choice(files)
        begin = chance.randrange(len(other))
        data[at : at + chance.choice((0, 10, 10000))] = other[begin : begin + chance.choice((8, 40, 10000))]
    elif size:
        begin = chance.randrange(size)
        data[at:at] = data[begin : begin + chance.choice((1, 8, 30))]


def other_values(chance: random.Random, data: bytes) -> bytes:
    """The same JSON with one to three values changed."""
    content = json.loads(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if not isinstance(content, (dict, list)) or chance.random() > 0.97:
            content = copy.deepcopy(chance.choice(VALUES))
        _change_value(chance, content)
    return json.dumps(content).encode()


def _change_value(chance: random.Random, content: Any) -> None:
    """Replace, remove, add, move or copy one value, at any depth."""
    holder = content
    while True:
        if not isinstance(holder, (dict, list)) or not holder:
            return
        keys: list[Any] = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
        key = chance.choice(keys)
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.15:
            break
        holder = inner
    kind = chance.random()
    if kind < 0.5:
        holder[key] = copy.deepcopy(chance.choice(VALUES))
    elif kind < 0.65:
        del holder[key]
    elif kind < 0.8:
        other = chance.choice(keys)
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif kind < 0.85:
        holder[chance.choice(NAMES)] = copy.deepcopy(chance.choice(VALUES))
    elif isinstance(holder[key], (bool, int)):
        holder[key] = not holder[key] if isinstance(holder[key], bool) else chance.choice((0, 1, 2, 7))
    else:
        holder[chance.choice(NAMES)] = holder.pop(key)
