"""The named sets of normalization rules: NFKC as of Unicode 17, with additions for machine translation (nmt).

Each version of Python has its own version of Unicode, and the rules must not depend on it, because they are
written into model files. The package unicodedata2 has Unicode 17 for every Python.

Nobody needs this file to use the rules: their charsmaps lie ready in `charsmaps/`, and `rule_charsmap` reads
them there. This command writes them again; a test compares them with what it would write:

    python -m cpbpe.text.named_rules
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from cpbpe.lazy import imported
from cpbpe.text.charsmap_build import charsmap_from_rules
from cpbpe.text.rule_charsmaps import NAMES

UNICODE = 17
"""The version of Unicode that sentencepiece 0.2.3 uses for normalization."""

_SPACES = "\t\n\f\r\u061c\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd\u200c"
"""The characters that the nmt rules replace by a space."""
_CONTROLS = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]
"""The code points that the nmt rules delete."""
_FULLWIDTH_TILDE = "\uff5e"
"""The one character that they do not change: in Japanese it differs from a tilde."""


def named_rules(name: str) -> dict[str, str]:
    """A named set of rules: each key and its replacement.

    >>> rules = named_rules("nfkc")
    >>> rules["①"], rules["e\u0301"], "é" in rules, len(rules)
    ('1', 'é', False, 225232)
    """
    if name not in NAMES:
        raise ValueError(f"there are no rules named {name!r}")
    rules = dict(_nfkc())
    if name.startswith("nmt_"):
        rules.update(dict.fromkeys(_SPACES, " "))
        rules.update(dict.fromkeys(map(chr, _CONTROLS), ""))
        del rules[_FULLWIDTH_TILDE]
        rules = _without_redundant(rules)
    if name.endswith("_cf"):
        rules = {source: "".join(map(_fold, target)) for source, target in rules.items()}
        for character in _characters():
            folded = _fold(character)
            if folded != character:
                rules.setdefault(character, folded)
        rules = _without_redundant(rules)
    return rules


@cache
def _nfkc() -> dict[str, str]:
    """The rules of NFKC. Their keys are single characters, and sequences that compose to a character.

    Such a sequence is any way to write the full decomposition of some character with characters that
    decompose to one character each: instead of `e` there may be a full-width `e`, and so on for the accent.
    """
    normalize = _unicode_data().normalize
    rules: dict[str, str] = {}
    sources: dict[str, list[str]] = {}  # for each character, those that decompose to it alone
    composed: dict[str, str] = {}  # for each sequence, the NFKC of the characters that decompose to it
    for character in _characters():
        decomposed = normalize("NFKD", character)
        normal = character if decomposed == character else normalize("NFKC", character)
        if normal != character:
            rules[character] = normal
        if len(decomposed) == 1:
            sources.setdefault(decomposed, []).append(character)
        else:
            composed[decomposed] = normal
    for decomposed, normal in composed.items():
        if normal == decomposed:
            continue
        for written in map("".join, product(*(sources[character] for character in decomposed))):
            if written != normal:
                rules[written] = normal
    return _without_redundant(rules)


def _without_redundant(rules: dict[str, str]) -> dict[str, str]:
    """Leave out rules whose keys the shorter rules rewrite in the same way."""
    kept = {source: target for source, target in rules.items() if len(source) == 1}
    lengths: dict[int, list[str]] = {}
    for source in rules:
        lengths.setdefault(len(source), []).append(source)
    for length in range(2, max(lengths, default=0) + 1):
        needed = [s for s in lengths.get(length, ()) if rules[s] != _apply(kept, s, length - 1)]
        kept.update((source, rules[source]) for source in needed)
    return kept


def _apply(rules: dict[str, str], text: str, longest: int) -> str:
    """Apply rules from left to right, at each position the one with the longest key."""
    result = []
    at = 0
    while at < len(text):
        for end in range(min(len(text), at + longest), at, -1):
            if text[at:end] in rules:
                result.append(rules[text[at:end]])
                break
        else:
            end = at + 1
            result.append(text[at])
        at = end
    return "".join(result)


def _characters() -> Iterable[str]:
    """The characters of the planes that have characters with a decomposition or a lower case."""
    return (chr(point) for point in range(1, 0x30000) if not 0xD800 <= point < 0xE000)


@cache
def _unicode_data() -> Any:
    """The package unicodedata2, imported only when rules are built."""
    data = imported("unicodedata2")
    if not data.unidata_version.startswith(f"{UNICODE}."):
        raise ImportError(
            f"the named normalization rules are those of Unicode {UNICODE}, and the installed package "
            f"unicodedata2 has {data.unidata_version}; pip install 'unicodedata2=={UNICODE}.*'"
        )
    return data


def _fold(character: str) -> str:
    """The simple case folding of a character: always one character, so `ß` stays.

    Python folds according to its own version of Unicode. A capital letter that was added later has a small
    letter of the same name; a letter that was added after Unicode 17 stays as it is.
    """
    folded = character.casefold()
    if folded == character:
        data = _unicode_data()
        if unicodedata.category(character) == "Cn" and data.category(character) == "Lu":
            return str(data.lookup(data.name(character).replace("CAPITAL", "SMALL")))
        return character
    if len(folded) > 1:
        folded = character.lower()
    if len(folded) > 1 or _unicode_data().category(character) == "Cn":
        return character
    return folded


def main() -> None:
    """Write the charsmaps of all named rules into the package."""
    for name in NAMES:
        charsmap = charsmap_from_rules(named_rules(name).items())
        path = Path(__file__).with_name("charsmaps") / f"{name}.zlib"
        path.write_bytes(zlib.compress(charsmap, 9))


if __name__ == "__main__":
    main()
