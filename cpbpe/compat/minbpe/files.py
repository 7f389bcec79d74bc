r"""minbpe's two files.

`.model` is what `load` reads: the line `minbpe v1`, the pattern, the number of special tokens, each of them
with its id, and the pairs that were merged. The merges have the ids 256, 257, ..., which are not written.

`.vocab` is for people: each piece in brackets with its id, and before it the two that it was made of.

>>> print("\n".join(vocab_lines({97: b"a", 256: b"aa"}, {(97, 97): 256})))
[a] 97
[a][a] -> [aa] 256
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Pair = tuple[int, int]
BYTES = 256
VERSION = "minbpe v1"


class LectureError(AssertionError, ValueError):
    """A wrong argument or file, for which minbpe raises AssertionError."""


class Model(NamedTuple):
    """What a `.model` file holds."""

    pattern: str
    special_tokens: dict[str, int]
    merges: dict[Pair, int]


# --- Writing --------------------------------------------------------------------------------------


def model_lines(model: Model) -> list[str]:
    """The lines of a `.model` file; or an error about what it cannot hold.

    >>> model_lines(Model("", {"<e>": 257}, {(97, 97): 256}))
    ['minbpe v1', '', '1', '<e> 257', '97 97']
    """
    pattern, special_tokens, merges = model
    if pattern != pattern.strip() or len(pattern.splitlines()) > 1:
        raise ValueError(
            f"the pattern {pattern!r} cannot be saved: a .model file has it on one line, without spaces "
            f"around it; write \\n for a line break and [ ] for a space"
        )
    for token in special_tokens:
        if token.split() != [token]:
            raise ValueError(
                f"the special token {token!r} cannot be saved: in a .model file a token ends at the first "
                f"space; choose a name without spaces"
            )
    for expected, idx in enumerate(merges.values(), BYTES):
        if idx != expected:
            raise ValueError(
                f"the merge with the id {idx} cannot be saved: a .model file does not hold the ids of "
                f"merges, but counts from 256 on, and would give it {expected}"
            )
    lines = [VERSION, pattern, str(len(special_tokens))]
    lines += [f"{token} {idx}" for token, idx in special_tokens.items()]
    return lines + [f"{left} {right}" for left, right in merges]


def vocab_lines(vocab: Mapping[int, bytes], merges: Mapping[Pair, int]) -> list[str]:
    """The lines of a `.vocab` file."""
    halves = {idx: pair for pair, idx in merges.items()}
    lines = []
    for idx, piece in vocab.items():
        made = "".join(f"[{render_token(vocab[half])}]" for half in halves.get(idx, ()))
        lines.append(f"{made}{' -> ' if made else ''}[{render_token(piece)}] {idx}")
    return lines


def write(path: str, lines: Iterable[str]) -> None:
    """Write lines in UTF-8."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def replace_control_characters(s: str) -> str:
    r"""The text with escapes for characters that are not printed: control characters, and unassigned ones.

    >>> replace_control_characters("a\tb")
    'a\\u0009b'
    """
    return "".join([f"\\u{ord(c):04x}" if unicodedata.category(c)[0] == "C" else c for c in s])


def render_token(t: bytes) -> str:
    r"""A piece as `.vocab` files show it; bytes that belong to no character are U+FFFD.

    >>> render_token(b"a\n\xc3")
    'a\\u000a\ufffd'
    """
    return replace_control_characters(t.decode(errors="replace"))


# --- Reading --------------------------------------------------------------------------------------


def read(path: str) -> Model:
    """What a `.model` file holds; or an error that names the line."""
    if not path.endswith(".model"):
        raise LectureError(f"load() reads the file that ends in .model, and {path!r} does not")
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except UnicodeDecodeError as error:
        raise LectureError(
            f"{path!r} is not a file that minbpe has saved: it is not UTF-8 ({error})"
        ) from None
    if lines[0].strip() != VERSION:
        raise LectureError(f"{path!r} does not begin with the line {VERSION!r}, but with {lines[0][:40]!r}")
    if lines[-1] == "":
        lines.pop()
    at = 1

    def fields(count: int, expected: str) -> list[str]:
        """The fields of the next line; the last one is a number."""
        nonlocal at
        at += 1
        found = lines[at].split() if at < len(lines) else []
        if len(found) != count or not found[-1].isdecimal():
            raise wrong(expected)
        return found

    def wrong(expected: str) -> ValueError:
        shown = repr(lines[at][:60]) if at < len(lines) else "the end of the file"
        return ValueError(f"line {at + 1} of {path!r} should be {expected}, but is {shown}")

    model = Model(lines[1].strip() if len(lines) > 1 else "", {}, {})
    for _ in range(int(fields(1, "the number of special tokens")[0])):
        token, id = fields(2, "a special token and its id")
        model.special_tokens[token] = int(id)
    while at < len(lines) - 1:
        idx = BYTES + len(model.merges)
        expected = f"a new pair of ids below {idx}"
        left, right = fields(2, expected)
        pair = int(left) if left.isdecimal() else idx, int(right)
        if max(pair) >= idx or pair in model.merges:
            raise wrong(expected)
        model.merges[pair] = idx
    return model
