"""Unicode normal forms of texts, with the place that each character of the result came from.

`é` can be written as one character or as an `e` and an accent. A *normal form* is a choice between such
spellings, so that texts which look alike are alike: NFC composes what can be composed, NFD takes everything
apart, and NFKC and NFKD also replace what is only a variant of something (`ﬁ`, `²`, `℃`). Many byte-level
models bring a text into one of them before it is cut.

A form depends on the version of Unicode, but little: what a character is composed of never changes. So
versions differ only on characters that one of them does not know, and an unknown character stays as it is.
The forms here are those of Unicode 9, as in `tokenizers` 0.23.3, with which such models were trained.
Python's own module `unicodedata` is newer, and is asked only about the characters in `_KNOWN`.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
"""The normal forms."""
NOT_IN_FORM = {"NFC": "e\u0301", "NFD": "\u00e9", "NFKC": "\ufb01", "NFKD": "\ufb01"}
"""A text that is not in each normal form."""

_KNOWN = """
A0-374 37A-37E 384-38A 38C 38E-390 3AA-4F9 587 591-5C7 610-6ED 711-74A 7EB-7F3 816-82D 859-85B
8D4-95F 9BC 9CB-9CD 9DC-9DD 9DF A33 A36 A3C A4D A59-A5B A5E ABC ACD B3C B48 B4B-B4D B5C-B5D B94
BCA-BCD C48 C4D C55-C56 CBC-CC0 CC7-CC8 CCA-CCD D4A-D4D DCA DDA-DDE E33-E3A E48-E4B EB3-EB9 EC8-ECB
EDC-EDD F0C-F43 F4D-F69 F71-F93 F9D-FB9 FC6 1026-108D 10FC 135D-135F 1714 1734 17D2-17DD 18A9
1939-193B 1A17-1A18 1A60-1A7C 1A7F 1AB0-1ABD 1B06-1B44 1B6B-1BF3 1C37 1CD0-1CF9 1D2C-1DF5 1DFB-1F15
1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FC4 1FC6-1FD3
1FD6-1FDB 1FDD-1FEF 1FF2-1FF4 1FF6-1FFE 2000-205F 2070-2071 2074-208E 2090-209C 20A8 20D0-20F0
2100-2189 219A-232A 2460-2ADC 2C7C-2CF1 2D6F 2D7F 2DE0-2DFF 2E9F-2EF3 2F00-2FD5 3000-303A 304C-3094
3099-30FF 3131-318E 3192-319F 3200-321E 3220-32FE 3300-33FF A66F-A6F1 A770 A7F8-A806 A8C4 A8E0-A953
A9B3-A9C0 AAB0-AAC1 AAF6 AB5C-AB5F ABED AC00-D7A3 F900-FA6D FA70-FAD9 FB00-FB06 FB13-FB17 FB1D-FB36
FB38-FB3C FB3E FB40-FB41 FB43-FB44 FB46-FDC7 FDF0-FE19 FE20-FE52 FE54-FE66 FE68-FE6B FE70-FE74
FE76-FEFC FF01-FFBE FFC2-FFC7 FFCA-FFCF FFD2-FFD7 FFDA-FFDC FFE0-FFE6 FFE8-FFEE 101FD 102E0
10376-1037A 10A0D-10A0F 10A38-10A3A 10A3F 10AE5-10AE6 11046 1107F-110BA 11100-11134 11173
111C0-111CA 11235-11236 112E9-112EA 1133C 1134B-1134D 11366-1136C 11370-11374 11442-11446
114BB-114C3 115BA-115C0 1163F 116B6-116B7 1172B 11C3F 16AF0-16AF4 16B30-16B36 1BC9E 1D15E-1D1C0
1D242-1D244 1D400-1D454 1D456-1D49C 1D49E-1D49F 1D4A2 1D4A5-1D4A6 1D4A9-1D4AC 1D4AE-1D4B9 1D4BB
1D4BD-1D4C3 1D4C5-1D505 1D507-1D50A 1D50D-1D514 1D516-1D51C 1D51E-1D539 1D53B-1D53E 1D540-1D544
1D546 1D54A-1D550 1D552-1D6A5 1D6A8-1D7CB 1D7CE-1D7FF 1E000-1E006 1E008-1E018 1E01B-1E021
1E023-1E024 1E026-1E02A 1E8D0-1E8D6 1E944-1E94A 1EE00-1EE03 1EE05-1EE1F 1EE21-1EE22 1EE24 1EE27
1EE29-1EE32 1EE34-1EE37 1EE39 1EE3B 1EE42 1EE47 1EE49 1EE4B 1EE4D-1EE4F 1EE51-1EE52 1EE54 1EE57
1EE59 1EE5B 1EE5D 1EE5F 1EE61-1EE62 1EE64 1EE67-1EE6A 1EE6C-1EE72 1EE74-1EE77 1EE79-1EE7C 1EE7E
1EE80-1EE89 1EE8B-1EE9B 1EEA1-1EEA3 1EEA5-1EEA9 1EEAB-1EEBB 1F100-1F16B 1F190 1F200-1F202
1F210-1F23B 1F240-1F248 1F250-1F251 2F800-2FA1D
"""
"""Every character of Unicode 9 that is composed of others, or that has a combining class; and others between
them that are neither in any version, because that makes the list shorter."""

_HANGUL, _L, _V, _T = 0xAC00, 0x1100, 0x1161, 0x11A7
"""The first syllable, and the first letter of each of its three parts (of the third, the one before)."""
_SYLLABLES, _LETTERS_L, _LETTERS_V, _LETTERS_T = 11172, 19, 21, 28


class Placed(NamedTuple):
    """A character of a normal form."""

    character: str
    """The character."""
    origin: int
    """The place of the character that it came from; of several, the first. Characters that came from the same
    ones have the same origin."""
    is_own: bool
    """Whether it came from the character at that place alone, and is the same."""


class _Part(NamedTuple):
    """A character on the way to a normal form, and the first and last place that it came from."""

    character: str
    first: int
    last: int
    begun: int
    """How many characters of the text begin in it. If one becomes several, it begins in the first."""


# --- What Unicode says about a character ----------------------------------------------------------


@cache
def known_ranges() -> tuple[list[int], list[int]]:
    """Where the ranges of known characters begin and end."""
    rows = [row.split("-") for row in _KNOWN.split()]
    return [int(row[0], 16) for row in rows], [int(row[-1], 16) for row in rows]


@lru_cache(1 << 14)
def _is_known(character: str) -> bool:
    firsts, lasts = known_ranges()
    place = bisect_right(firsts, ord(character)) - 1
    return place >= 0 and ord(character) <= lasts[place]


def combining_class(character: str) -> int:
    """The order of a mark among the marks after a letter; 0 if the character is no such mark.

    >>> combining_class("a"), combining_class("\u0301"), combining_class("\u0327")
    (0, 230, 202)
    """
    return unicodedata.combining(character) if _is_known(character) else 0


@lru_cache(1 << 14)
def decomposed(character: str, compatible: bool) -> str:
    r"""What a character is composed of, down to characters that are composed of nothing.

    `compatible`: also what it is only a variant of.

    >>> decomposed("ṩ", False) == "s\u0323\u0307", decomposed("ﬁ", False), decomposed("ﬁ", True)
    (True, 'ﬁ', 'fi')
    """
    # 1. Syllables of Hangul are composed by a rule.
    number = ord(character) - _HANGUL
    if 0 <= number < _SYLLABLES:
        rest, last = divmod(number, _LETTERS_T)
        first, middle = divmod(rest, _LETTERS_V)
        return chr(_L + first) + chr(_V + middle) + (chr(_T + last) if last else "")
    # 2. Others by a table. A word in angle brackets at the beginning says that it is a variant.
    parts = unicodedata.decomposition(character).split() if _is_known(character) else []
    if parts and parts[0].startswith("<"):
        parts = parts[1:] if compatible else []
    if not parts:
        return character
    return "".join(decomposed(chr(int(part, 16)), compatible) for part in parts)


@cache
def compositions() -> dict[tuple[str, str], str]:
    """The character that two are composed to, except in Hangul.

    Some characters are composed of two but are never composed again: `normalize` takes them apart.
    """
    found: dict[tuple[str, str], str] = {}
    for begin, end in zip(*known_ranges(), strict=True):
        for character in map(chr, range(begin, end + 1)):
            parts = unicodedata.decomposition(character).split()
            if len(parts) != 2 or parts[0].startswith("<"):
                continue
            if unicodedata.normalize("NFC", character) == character:
                found[chr(int(parts[0], 16)), chr(int(parts[1], 16))] = character
    return found


def _composed(left: str, right: str) -> str | None:
    """The character that two are composed to, if there is one."""
    first, middle, last = ord(left) - _L, ord(right) - _V, ord(right) - _T
    if 0 <= first < _LETTERS_L and 0 <= middle < _LETTERS_V:
        return chr(_HANGUL + (first * _LETTERS_V + middle) * _LETTERS_T)
    number = ord(left) - _HANGUL
    if 0 <= number < _SYLLABLES and number % _LETTERS_T == 0 and 0 < last < _LETTERS_T:
        return chr(ord(left) + last)
    return compositions().get((left, right))


# --- The normal form of a text --------------------------------------------------------------------


def normal_form(form: str, text: str) -> list[Placed]:
    """The characters of a text in a normal form.

    >>> "".join(placed.character for placed in normal_form("NFC", "e\u0301a"))
    'éa'
    >>> [(origin, is_own) for _, origin, is_own in normal_form("NFC", "e\u0301a")]
    [(0, False), (2, True)]
    """
    if text.isascii():
        return [Placed(character, at, True) for at, character in enumerate(text)]
    return _placed(text, _parts(form, text))


def counted(form: str, text: str) -> list[tuple[str, int]]:
    """The characters of a text in a normal form, each with how many characters of the text begin in it.

    `tokenizers` counts places like this, so marks that change their order do not keep their places.

    >>> counted("NFC", "e\u0301a"), [begun for _, begun in counted("NFD", "éa")]
    ([('é', 2), ('a', 1)], [1, 0, 1])
    """
    return [(part.character, part.begun) for part in _parts(form, text)]


def _parts(form: str, text: str) -> list[_Part]:
    # 1. Take everything apart.
    parts: list[_Part] = []
    for at, character in enumerate(text):
        made = decomposed(character, form in ("NFKC", "NFKD"))
        parts += (_Part(part, at, at, int(number == 0)) for number, part in enumerate(made))
    # 2. Put marks that stand side by side into the order of their classes. (Those of one class keep theirs.)
    ordered: list[_Part] = []
    marks: list[_Part] = []
    for part in parts:
        if combining_class(part.character):
            marks.append(part)
            continue
        ordered += sorted(marks, key=lambda mark: combining_class(mark.character))
        ordered.append(part)
        marks = []
    ordered += sorted(marks, key=lambda mark: combining_class(mark.character))
    # 3. Compose.
    return ordered if form in ("NFD", "NFKD") else _compose(ordered)


def _compose(parts: list[_Part]) -> list[_Part]:
    """Compose each letter with the marks after it, as far as there are characters for that.

    A mark is composed with the last letter before it, unless it is *blocked*: something stands between the
    two that has the same class, or a higher one, or is a letter.
    """
    made: list[_Part] = []
    letter = -1  # where the last letter is in `made`
    before = 0  # the class of what stands last in `made`, if that is a mark after this letter
    for part in parts:
        its_class = combining_class(part.character)
        together = None
        if letter >= 0 and (before == 0 or before < its_class):
            together = _composed(made[letter].character, part.character)
        if together is not None:
            first, last = min(made[letter].first, part.first), max(made[letter].last, part.last)
            made[letter] = _Part(together, first, last, made[letter].begun + part.begun)
            continue
        made.append(part)
        before = its_class
        if its_class == 0:
            letter = len(made) - 1
    return made


def _placed(text: str, parts: list[_Part]) -> list[Placed]:
    """The origins of characters.

    Where marks change places, or one character becomes several, the text cannot be cut between the characters
    concerned, so all of them have the place of the first. Everywhere else, all that precedes a character came
    from what precedes its origin.
    """
    highest = [-1, *accumulate((part.last for part in parts), max)]
    lowest = [*accumulate((part.first for part in reversed(parts)), min, initial=len(text))][::-1]
    placed: list[Placed] = []
    origin = 0
    for number, (character, first, last, _) in enumerate(parts):
        begins = highest[number] < lowest[number]
        ends = highest[number + 1] < lowest[number + 1]
        if begins:
            origin = lowest[number]
        placed.append(
            Placed(character, origin, begins and ends and first == last and text[first] == character)
        )
    return placed


# --- Text that arrives in parts -------------------------------------------------------------------


@lru_cache(1 << 14)
def is_stable(form: str, character: str) -> bool:
    """Whether a character stays as it is, unless something after it is composed with it.

    >>> [is_stable("NFC", character) for character in "aé\u0301"], is_stable("NFD", "é")
    ([True, True, False], False)
    """
    if character.isascii():
        return True
    if combining_class(character):
        return False
    if decomposed(character, form in ("NFKC", "NFKD")) != character:
        made = normal_form(form, character)
        if len(made) > 1 or made[0].character != character:
            return False
    return form in ("NFD", "NFKD") or character not in _seconds()


def only_moves(form: str, character: str) -> bool:
    """Whether a character is a mark that stays as it is, and changes at most its place among other marks.

    Such marks are in order if none has a lower class than the mark before it, and then nothing changes.

    >>> [only_moves("NFC", character) for character in "e\u0301\u0e48"], only_moves("NFD", "\u0301")
    ([False, False, True], True)
    """
    if not combining_class(character) or decomposed(character, form in ("NFKC", "NFKD")) != character:
        return False
    return form in ("NFD", "NFKD") or character not in _seconds()


@cache
def _seconds() -> frozenset[str]:
    """The characters that may be composed with one before them."""
    middles, lasts = range(_V, _V + _LETTERS_V), range(_T + 1, _T + _LETTERS_T)
    return frozenset((*(second for _, second in compositions()), *map(chr, middles), *map(chr, lasts)))


@cache
def _firsts() -> frozenset[str]:
    """Those that may be composed with one after them, if they are composed of nothing themselves."""
    return frozenset((*(first for first, _ in compositions()), *map(chr, range(_L, _L + _LETTERS_L))))


def last_boundary(form: str, text: str) -> int | None:
    """The last place in a text before which its normal form is final, whatever follows; None without one.

    >>> last_boundary("NFC", "one"), last_boundary("NFC", "one "), last_boundary("NFC", "\u0301")
    (2, 4, None)
    """
    last = text[-1:]
    # (Of a character that is composed of others, the first might be composed with what follows instead.)
    is_alone = form in ("NFD", "NFKD") or last not in _firsts()
    if last and is_alone and is_stable(form, last) and decomposed(last, False) == last:
        return len(text)
    places = range(len(text) - 1, -1, -1)
    return next((at for at in places if is_stable(form, text[at])), None)
