r"""How tokens and symbols are drawn, in a terminal and in HTML: the rules, as functions of bytes and texts.

What is drawn comes from anybody: from a text, or from a model. It may hold controls that move the cursor,
characters that cannot be seen, marks that attach to what is before them, letters that reverse the direction
of a line, halves of characters, and markup. So nothing is written as it is:

| what | is drawn as |
| --- | --- |
| a space | `␣` (a piece of a SentencePiece model has `▁` instead, which stays) |
| a line break, a tab, another control or invisible character | its escape: `\n`, `\t`, `\x1b`, `\u200b` |
| a byte that is only a part of a character | its escape: `\xf0` |
| a combining mark with nothing before it | on a circle: `◌́` |
| an emoji of several characters | as it is, with the invisible characters that hold it together |

`spelled` is that as one text, in which `\`, `␣` and `◌` themselves have escapes, too: different bytes are
never drawn alike. In HTML and in colours, what stands for something else is marked instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from unicodedata import bidirectional, category, east_asian_width

from cpbpe.text.utf8 import is_inside, valid_character

Direction = Literal["ltr", "rtl", ""]

SPACE = "␣"
"""What is drawn for a space."""
CIRCLE = "◌"
"""What a combining mark stands on that has nothing before it."""
MORE = "…"
"""What is drawn where something is left out."""
MAX_CHARACTERS = 200
"""A longer token is cut when it is drawn: one that is unknown can be as long as the text."""
MAX_SPELLED = 12
"""This many characters are drawn of what several tokens spell together."""

TERMINAL_COLOURS = ("30;48;5;152", "30;48;5;223", "30;48;5;151", "30;48;5;182", "30;48;5;187", "30;48;5;217")
"""Black on pale colours, which can be read in light and in dark terminals."""
TERMINAL_SUBSTITUTE = "38;5;240"
"""The colour of what stands for something else, on each of these."""
HTML_COLOURS = (
    *("rgba(66,133,244,.28)", "rgba(251,160,20,.28)", "rgba(52,168,83,.28)"),
    *("rgba(171,71,188,.28)", "rgba(158,157,36,.28)", "rgba(234,67,53,.28)"),
)
"""Transparent, so that the page's own background, light or dark, and its text stay as they are."""


class Part(NamedTuple):
    """A part of what is drawn."""

    text: str
    """What is written."""
    is_substitute: bool
    """Whether it stands for something that cannot be seen alone."""


# --- What cannot be seen --------------------------------------------------------------------------

_BASE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)
_EMOJI = f"{_BASE}(?:[\ufe0e\ufe0f]|[\U0001f3fb-\U0001f3ff]\ufe0f?)?"
_SEQUENCE = re.compile(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"  # the flag of a region
    f"|{_EMOJI}(?:\u200d{_EMOJI})*"
    "|[#*0-9]\ufe0f?\u20e3"  # a key
)
"""An emoji, whose invisible characters do something: they are not hidden."""
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U00016fe4\U000e0100-\U000e01ef]"
)
"""What cannot be seen although Python calls it printable."""
_ESCAPED = re.compile(f"[\\\\{SPACE}{CIRCLE}]")
_SEVERAL = re.compile("[^!-~]")


def parts_of(data: bytes, most: int | None = MAX_CHARACTERS) -> list[Part]:
    r"""The parts of what is drawn for bytes; of a longer text, what is drawn for the first characters.

    >>> [part.text for part in parts_of(" a\n".encode())], [part.text for part in parts_of(b"\xf0\x9f")]
    (['␣', 'a', '\\n'], ['\\xf0', '\\x9f'])
    """
    data, left = cut(data, most)
    parts: list[Part] = []
    try:
        _add_text(parts, data.decode())
    except UnicodeDecodeError:
        at = begin = 0
        while at < len(data):
            character = valid_character(data, at)
            if character is None:
                _add_text(parts, data[begin:at].decode())
                parts.append(Part(f"\\x{data[at]:02x}", True))
                begin = at + 1
            at += len(character or b"?")
        _add_text(parts, data[begin:].decode())
    if left:
        parts.append(Part(MORE, True))
    return parts


def _add_text(parts: list[Part], text: str) -> None:
    """Add the parts of valid text."""
    if not _SEVERAL.search(text):
        if text:
            parts.append(Part(text, False))
        return
    at, plain = 0, ""
    while at < len(text):
        emoji = _SEQUENCE.match(text, at)
        if emoji and len(emoji[0]) > 1 and all(category(character) != "Cn" for character in emoji[0]):
            plain += emoji[0]
            at = emoji.end()
            continue
        substitute = _substitute(text[at])
        if substitute is None and (plain or not _is_mark(text[at])):
            plain += text[at]
            at += 1
            continue
        if plain:
            parts.append(Part(plain, False))
            plain = ""
        end = at + 1
        if substitute is None:  # a circle, and all marks on it
            while end < len(text) and _is_mark(text[end]) and _substitute(text[end]) is None:
                end += 1
            substitute = CIRCLE + text[at:end]
        parts.append(Part(substitute, True))
        at = end
    if plain:
        parts.append(Part(plain, False))


def _is_mark(character: str) -> bool:
    """Whether a character attaches to what is before it."""
    return category(character)[0] == "M"


def _substitute(character: str) -> str | None:
    """What is drawn for a character that cannot be seen; None for one that can."""
    if character == " ":
        return SPACE
    if character.isprintable() and not _BLANK.match(character):
        return None
    return _escape(character)


def _escape(character: str) -> str:
    r"""As Python writes it, except that `\x80` and above are bytes here and never characters."""
    if "\x80" <= character <= "\xff":
        return f"\\u{ord(character):04x}"
    return ascii(character)[1:-1]


def cut(data: bytes, most: int | None) -> tuple[bytes, int]:
    r"""The first characters of bytes, and how many bytes are left.

    >>> cut("añb".encode(), 2), cut(b"abc", None)
    ((b'a\xc3\xb1', 1), (b'abc', 0))
    """
    if most is None or len(data) <= most:
        return data, 0
    # (A character has four bytes at most, and a mark or an emoji is not kept together: it is cut anyway.)
    first = data[: 4 * most]
    at = count = 0
    while at < len(first) and count < most:
        at += len(valid_character(data, at) or b"?")
        count += 1
    return data[:at], len(data) - at


def spelled(data: bytes, most: int | None = MAX_CHARACTERS) -> str:
    r"""What is drawn for bytes, as one text. Different bytes have different ones, unless they are cut.

    >>> spelled("▁a\tb".encode()), spelled(b"\x1b[2J"), spelled("\u202egnp".encode()), spelled(b"\\")
    ('▁a\\tb', '\\x1b[2J', '\\u202egnp', '\\\\')
    >>> spelled("\u0301".encode()), spelled(b" \xe4\xbd"), spelled("👩\u200d🚀".encode()) == "👩\u200d🚀"
    ('◌́', '␣\\xe4\\xbd', True)
    """
    return "".join(in_one(part) for part in parts_of(data, most))


def in_one(part: Part) -> str:
    """A part as `spelled` has it."""
    if part.is_substitute or not _ESCAPED.search(part.text):
        return part.text
    return _ESCAPED.sub(lambda match: "\\\\" if match[0] == "\\" else _code(match[0]), part.text)


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}"


# --- Tokens that share a character ----------------------------------------------------------------


def share_a_character(tokens: Sequence[bytes]) -> list[bool]:
    r"""For each token, whether it begins inside a character: then it belongs to the token before it.

    >>> share_a_character([b"a", b"\xf0\x9f", b"\xa6", b"\x99", b"b"])
    [False, False, True, True, False]
    """
    data = b"".join(tokens)
    at = 0
    shared: list[bool] = []
    for token in tokens:
        shared.append(bool(token) and is_inside(data, at))
        at += len(token)
    return shared


# --- Directions -----------------------------------------------------------------------------------


def direction(text: str) -> Direction:
    """The direction of the first letter that has one.

    >>> direction("▁Hi"), direction("▁שלום"), direction("12")
    ('ltr', 'rtl', '')
    """
    if text.isascii():
        return "ltr" if any(map(str.isalpha, text)) else ""
    for character in text:
        kind = bidirectional(character)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            return "ltr"
    return ""


def isolated(text: str) -> str:
    """A text that does not disturb the order of what stands around it in a line: with isolates if necessary.

    >>> isolated("Hi"), isolated("שלום") == "\u2068שלום\u2069"
    ('Hi', True)
    """
    if text.isascii() or not any(bidirectional(character) in ("R", "AL", "AN") for character in text):
        return text
    return f"\u2068{text}\u2069"


# --- Terminals ------------------------------------------------------------------------------------


def width(text: str) -> int:
    """How many columns a drawn text takes in a terminal.

    >>> width("abc"), width("日本"), width("e\u0301"), width("\u2068שלום\u2069")
    (3, 4, 1, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def in_terminal(parts: Sequence[Part], colour: str = "") -> str:
    r"""Parts for a terminal, in a colour or without any.

    >>> in_terminal(parts_of(b" a")), in_terminal(parts_of(b" a"), TERMINAL_COLOURS[0])
    ('␣a', '\x1b[30;48;5;152m\x1b[38;5;240m␣\x1b[30ma\x1b[0m')
    """
    if not colour:
        return isolated("".join(map(in_one, parts)))
    line = ""
    for part in parts:
        text = in_one(part)
        line += f"\x1b[{TERMINAL_SUBSTITUTE}m{text}\x1b[30m" if part.is_substitute else text
    if isolated(plain := "".join(map(in_one, parts))) != plain:
        line = f"\u2068{line}\u2069"
    return f"\x1b[{colour}m{line}\x1b[0m"


# --- HTML -----------------------------------------------------------------------------------------

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_SUBSTITUTE = '<span style="opacity:.6">'


def escaped(text: str) -> str:
    """A text that means itself in HTML, in content as well as in an attribute.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return text.translate(_MARKUP)


def in_html(parts: Sequence[Part]) -> str:
    """Parts as HTML: what stands for something else is paler.

    >>> in_html(parts_of(b" <b>"))
    '<span style="opacity:.6">␣</span>&lt;b&gt;'
    """
    # (Neighbours share an element, because bytes come in rows.)
    made, pale = "", False
    for part in parts:
        if part.is_substitute != pale:
            made += _SUBSTITUTE if part.is_substitute else "</span>"
            pale = part.is_substitute
        made += escaped(part.text)
    return f"{made}</span>" if pale else made
