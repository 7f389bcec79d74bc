r"""USER_DEFINED pieces in a tokenizer.json: pre-tokenizers that cut a text around them.

sentencepiece looks for these pieces in the normalized text, the longest first, and merges nothing across
them. In the other library, `Split` cuts the normalized text, and `ignore_merges` takes a part that is a token
as it is. So a first Split isolates the pieces. (Added tokens would not do: they are looked for before the
dummy prefix is there, or, if they are to be normalized, with a prefix of their own.)

But then other tokens that no merge makes, such as the text `<0x41>`, would be taken whole, too, when such a
text stands between two user-defined pieces. So a second Split cuts a part that is the text of such a token at
a place where nothing is merged anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from cpbpe.model.formats.tokenizer_json.spaces import Json, escaped, unescaped


def splits_of(pieces: Iterable[str], cuts: Mapping[str, int]) -> list[Json]:
    """The pre-tokenizers for user-defined pieces, and for texts that have to be cut at these places."""
    pieces = sorted(pieces)
    if not pieces:
        return []
    steps = [_split(_alternatives(pieces))]
    if cuts:
        parts = (rf"{escaped(text[:at])}(?={escaped(text[at:])}\z)" for text, at in sorted(cuts.items()))
        steps.append(_split(rf"\A(?:{'|'.join(parts)})"))
    return steps


def _split(pattern: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _alternatives(words: list[str]) -> str:
    r"""A regular expression that matches the longest of sorted words; what begins alike is written once.

    A list of 16,000 alternatives takes 85 times as long to search for.

    >>> _alternatives(["a.", "a.bc", "a.bd"])
    'a\\.(?:b(?:c|d))?'
    """
    first, last = words[0], words[-1]
    alike = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = first[:alike]
    rest = [word[len(start) :] for word in words if len(word) > len(start)]
    if not rest:
        return escaped(start)
    groups = [list(group) for _, group in groupby(rest, lambda word: word[0])]
    inner = "|".join(map(_alternatives, groups))
    optional = "?" if len(rest) < len(words) else ""
    return f"{escaped(start)}(?:{inner}){optional}" if len(groups) > 1 or optional else escaped(start) + inner


def pieces_of(steps: Sequence[Any]) -> list[str] | None:
    """The user-defined pieces of pre-tokenizers of this kind, or None if they are of another."""
    first = steps[0] if steps else None
    if not isinstance(first, dict) or first.get("type") != "Split":
        return None
    pattern = first["pattern"].get("Regex") if isinstance(first.get("pattern"), dict) else None
    if not isinstance(pattern, str):
        return None
    words = _words(pattern)
    return words if words and _alternatives(sorted(words)) == pattern else None


def _words(pattern: str) -> list[str] | None:
    """The words that a pattern of `_alternatives` stands for; None if it is not one."""
    # What has been read of each group that is open: its finished alternatives, and the one being read.
    done: list[list[str]] = [[]]
    current: list[list[str]] = [[""]]
    literal = ""
    at = 0
    while at <= len(pattern):
        end = at == len(pattern)
        special = end or pattern[at] in "|)" or pattern.startswith("(?:", at)
        if not special:
            length = 2 if pattern[at] == "\\" else 1
            literal += pattern[at : at + length]
            at += length
            continue
        current[-1] = [word + unescaped(literal) for word in current[-1]]
        literal = ""
        if end:
            break
        if pattern[at] == "(":
            done.append([])
            current.append([""])
            at += 3
            continue
        done[-1] += current[-1]
        current[-1] = [""]
        at += 1
        if pattern[at - 1] == ")":
            if len(done) == 1:
                return None
            inner = done.pop()
            current.pop()
            if pattern[at : at + 1] == "?":
                inner.append("")
                at += 1
            if len(current[-1]) * len(inner) > 1 << 20:
                return None
            current[-1] = [word + tail for word in current[-1] for tail in inner]
    words = done[-1] + current[-1]
    return words if len(done) == 1 and "" not in words else None
