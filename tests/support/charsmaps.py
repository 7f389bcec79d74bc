"""Charsmaps made by hand, to test what sentencepiece's own compiler never writes.

`make` builds a double array the simplest way: it tries one offset after another until all children
of a node fall on free units. `python tests/support/charsmaps.py` prints the one that the comments explain.
"""

import struct


def make(rules: dict[bytes, bytes]) -> bytes:
    """Compile rules into a blob: the u32 size, the trie, the replacements."""
    replacements = b""
    values = {}
    for key, replacement in rules.items():
        values[key] = len(replacements)
        replacements += replacement + b"\0"
    units = [0] * 256
    used = {0}
    taken_offsets = {0}

    def place(at: int, prefix: bytes) -> None:
        """Give the unit at `at`, which `prefix` leads to, its children."""
        nonlocal units
        following = sorted({key[len(prefix)] for key in rules if key.startswith(prefix) and key != prefix})
        leaf = prefix in rules
        distance = 1
        while True:
            # The unit stores at ^ base; children sit at base ^ label, and a leaf at base itself.
            base = at ^ distance
            spots = [base ^ label for label in following] + ([base] if leaf else [])
            if base not in taken_offsets and not used & set(spots) and distance < 1 << 21:
                break
            distance += 1
        taken_offsets.add(base)
        used.update(spots)
        while len(units) <= base | 0xFF:
            units += [0] * 256
        units[at] |= distance << 10 | leaf << 8
        if leaf:
            units[base] = values[prefix] | 1 << 31
        for label in following:
            units[base ^ label] = label
        for label in following:
            place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    for at in range(1, len(units)):
        if at not in used:  # a label that no walk arrives with
            units[at] = next(label for label in range(256) if at ^ label not in taken_offsets) | 1 << 10
            if (at ^ 1) | 0xFF >= len(units):
                raise AssertionError
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + replacements


def cycle(*labels: bytes, leads_to: int = 0, keys: bool = True) -> bytes:
    """Node after node, the last of which leads to one of them again; every byte of a label leads to the next.

    With `keys` one ends at each but the last.
    """
    units = [0] * 256 * (len(labels) + 2)
    bases = [256 * (number + 1) for number in range(len(labels))]
    units[0] = bases[0] << 10
    for number, label in enumerate(labels):
        last = number + 1 == len(labels)
        target = bases[leads_to] if last else bases[number + 1]
        for byte in label:
            at = bases[number] ^ byte
            units[at] = (at ^ target) << 10 | (0x100 if keys and not last else 0) | byte
        if number:
            units[bases[number]] = 1 << 31
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + b"x\0"


if __name__ == "__main__":
    print(make({b"a": b"b"}).hex())
