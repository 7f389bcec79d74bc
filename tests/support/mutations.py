"""Files with something wrong in them, made from right ones: for every loader that reads bytes."""

import random
from collections.abc import Sequence

EXTREME = (
    *(0, 1, 2, 7, 8, 12, 13, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20),
    *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
"""Numbers for lengths, counts and types."""
PARTS = (
    b"\t",
    b"\n",
    b"\0",
    b"\xff",
    b"-",
    b"nan",
    b"inf",
    b"1e999",
    b"\t0\n",
    b"<unk>",
    b"\xe2\x96\x81",
    b" ",
)


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
