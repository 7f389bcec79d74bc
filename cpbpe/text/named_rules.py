"""The normalization rules that have a name: NFKC as of Unicode 17, and what machine translation adds to it.

Python knows the Unicode of the year it was made. Unicode promises that no normalization ever changes for
a character that it has; so the characters that came after Python 3.10 (Unicode 13) are all that is told here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from types import ModuleType

UNICODE = 17
"""The version of Unicode that sentencepiece 0.2.3 normalizes by."""

_SPACES = "\t\n\f\r\u061c\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd\u200c"
"""What the nmt rules make a space."""
_CONTROLS = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]
"""What the nmt rules delete."""
_FULLWIDTH_TILDE = "\uff5e"
"""What they leave alone: in Japanese it is not the same as a tilde."""

_DECOMPOSITIONS = """
A7F1=53 A7F2=43 A7F3=46 A7F4=51 105C9=105D2+307 105E4=105DA+307 10781-10782=2D0 10783=E6 10784=299
10785=253 10787=2A3 10788=AB66 10789=2A5 1078A=2A4 1078B-1078C=256 1078D=1D91 1078E=258 1078F=25E
10790=2A9 10791=264 10792=262 10793=260 10794=29B 10795=127 10796=29C 10797=267 10798=284
10799-1079A=2AA 1079B=26C 1079C=1DF04 1079D=A78E 1079E=26E 1079F=1DF05 107A0=28E 107A1=1DF06
107A2=F8 107A3-107A4=276 107A5=71 107A6=27A 107A7=1DF08 107A8-107A9=27D 107AA=280 107AB=2A8
107AC=2A6 107AD=AB67 107AE=2A7 107AF=288 107B0=2C71 107B2=28F 107B3-107B4=2A1 107B5=298
107B6-107B8=1C0 107B9=1DF0A 107BA=1DF1E 11383=11382+113C9 11385=11384+113BB 1138E=1138B+113C2
11391=11390+113C9 113C5=113C2+113C2 113C7=113C2+113B8 113C8=113C2+113C9 16121=1611E+1611E
16122=1611E+16129 16123=1611E+1611F 16124=16129+1611F 16125=1611E+16120 16126=1611E+1611E+1611F
16127=1611E+16129+1611F 16128=1611E+1611E+16120 16D68=16D67+16D67 16D69=16D63+16D67
16D6A=16D63+16D67+16D67 1CCD6-1CCEF=41 1CCF0-1CCF9=30 1E030-1E038=430 1E039-1E03B=43A
1E03C-1E046=43E 1E047=44B 1E048-1E049=44D 1E04A=A689 1E04B=4D9 1E04C=456 1E04D=458 1E04E=4E9
1E04F=4AF 1E050=4CF 1E051-1E059=430 1E05A-1E05B=43A 1E05C-1E05D=43E 1E05E=441 1E05F-1E064=443
1E065-1E066=44A 1E067=491 1E068=456 1E069=455 1E06A=45F 1E06B=4AB 1E06C=A651 1E06D=4B1
"""
"""What the characters that came with Unicode 14 to 17 decompose to, all the way (NFKD)."""

_FOLDS = """
1C89=1C8A 2C2F=2C5F A7C0=A7C1 A7CB=264 A7CC=A7CD A7CE=A7CF A7D0=A7D1 A7D2=A7D3 A7D4=A7D5 A7D6=A7D7 A7D8=A7D9
A7DA=A7DB A7DC=19B 10570-1057A=10597 1057C-1058A=105A3 1058C-10592=105B3 10594-10595=105BB 10D50-10D65=10D70
16EA0-16EB8=16EBB
"""
"""The lower case of the capital letters that came with Unicode 14 to 17."""


def named_rules(name: str) -> dict[str, str]:
    """The rules of a name: every text that one of them replaces, and by what.

    >>> rules = named_rules("nfkc")
    >>> rules["①"], rules["e\u0301"], "é" in rules, len(rules)
    ('1', 'é', False, 225232)
    """
    if name not in ("nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"):
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
    """The rules of NFKC, for texts of one character and for texts of several that become one form.

    A text of several is any way to write the full decomposition of some character with characters that
    decompose to one each: `e` may be a full-width `e`, and the accent another that is equal to it.
    """
    decompose = _decompose()
    rules: dict[str, str] = {}
    sources: dict[str, list[str]] = {}  # of one character: what decomposes to it alone
    composed: dict[str, str] = {}  # of several: the NFKC of what decomposes to them
    for character in _characters():
        decomposed, normal = decompose(character)
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
    """Leave out the rules that shorter ones, applied one after the other, make unnecessary."""
    kept = {source: target for source, target in rules.items() if len(source) == 1}
    lengths: dict[int, list[str]] = {}
    for source in rules:
        lengths.setdefault(len(source), []).append(source)
    for length in range(2, max(lengths, default=0) + 1):
        needed = [s for s in lengths.get(length, ()) if rules[s] != _apply(kept, s, length - 1)]
        kept.update((source, rules[source]) for source in needed)
    return kept


def _apply(rules: dict[str, str], text: str, longest: int) -> str:
    """Replace from left to right, the longest rule first."""
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
    """The planes of Unicode in which characters have a normal form or a lower case."""
    return (chr(point) for point in range(1, 0x30000) if not 0xD800 <= point < 0xE000)


def _decompose() -> Callable[[str], tuple[str, str]]:
    """A function that gives a character's NFKD and NFKC, as of Unicode 17."""
    data = _unicode_data()
    later = _table(_DECOMPOSITIONS)

    def decompose(character: str) -> tuple[str, str]:
        if character in later:
            # A single character is a variant of another; several are what the character is composed of.
            decomposed = later[character]
            return decomposed, decomposed if len(decomposed) == 1 else character
        return data.normalize("NFKD", character), data.normalize("NFKC", character)

    return decompose


@cache
def _unicode_data() -> ModuleType:
    """Python's own data, if they are not newer than Unicode 17; else those of the package unicodedata2."""
    if int(unicodedata.unidata_version.split(".")[0]) <= UNICODE:
        return unicodedata
    try:
        import unicodedata2  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        unicodedata2 = None
    if unicodedata2 is None or int(unicodedata2.unidata_version.split(".")[0]) > UNICODE:
        raise ImportError(
            f"the named normalization rules are those of Unicode {UNICODE}, and this Python knows a newer "
            f"one, {unicodedata.unidata_version}; the older: pip install 'unicodedata2=={UNICODE}.*'"
        )
    data: ModuleType = unicodedata2
    return data


def _fold(character: str) -> str:
    """The simple case folding of a character: always one character, so `ß` stays."""
    later = _table(_FOLDS)
    if character in later:
        return later[character]
    if _unicode_data().category(character) == "Cn":  # a letter that is newer than Unicode 17
        return character
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


@cache
def _table(text: str) -> dict[str, str]:
    """`A=B+C` says what a code point becomes; `A-B=C` says it of a range, which becomes a range."""
    table = {}
    for entry in text.split():
        source, target = entry.split("=")
        first, _, last = source.partition("-")
        points = [int(point, 16) for point in target.split("+")]
        for step in range(int(last or first, 16) - int(first, 16) + 1):
            table[chr(int(first, 16) + step)] = "".join(chr(point + step) for point in points)
    return table
