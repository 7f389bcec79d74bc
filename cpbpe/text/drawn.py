r"""How tokens and symbols are drawn, in a terminal and in HTML.

What is drawn comes from texts and models of unknown origin. It may contain controls that move the cursor,
characters that cannot be seen, marks that attach to the character before them, letters that reverse the
direction of a line, halves of characters, and markup. So nothing is written unchecked:

| what | is drawn as |
| --- | --- |
| a space | `␣` (a piece of a SentencePiece model has `▁` instead, which stays) |
| a line feed, a carriage return, a tab | `⏎`, `␍`, `⇥` |
| another control or invisible character | its code point in a frame: `‹U+200B›` |
| a byte: a part of a character, or a piece for a byte | two hexadecimal digits in a frame: `‹F0›` |
| a combining mark with nothing before it | on a circle: `◌́` |
| an emoji of several characters | as it is, with the invisible characters that hold it together |

This is the notation of everything that people look at: drawings, reports, the page in the browser. Its signs
are rare in texts and one column wide in every terminal, unlike `·` and `→`. Files and JSON, which programs
read, have escapes of their own (`cpbpe/tools/vocabulary_file.py`), and `<0x0A>` is the name of a piece.

`spelled` returns this as one text, in which the signs themselves are framed, too (`‹U+2423›` for `␣`), so
that different bytes are never drawn alike. In HTML and in colours, what stands for something else is paler
instead.

At the end of this file are the parts of larger drawings: for terminals `Lines` (titles, labelled rows, bars,
tables), for HTML chips and tables. `pages.py` draws as HTML what `Lines` draws in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Literal, NamedTuple
from unicodedata import bidirectional, category, east_asian_width

from cpbpe.text.utf8 import is_inside, valid_character

Direction = Literal["ltr", "rtl", ""]
Marks = Mapping[tuple[int, int], str]
"""Cells of a table that are "best" or "worst", by the numbers of their rows and columns."""

SIGNS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥"}
"""What is drawn for characters that are common and cannot be seen."""
FRAME = "‹{}›"
"""What is drawn for other characters and for bytes: their codes in a frame."""
CIRCLE = "◌"
"""What a combining mark is drawn on if there is nothing before it."""
MORE = "…"
"""What is drawn where something is left out."""
MAX_CHARACTERS = 200
"""Longer tokens are cut when they are drawn. (An unknown token can be as long as the text.)"""
MAX_SPELLED = 12
"""How many characters are drawn, at most, of what several tokens spell together."""
MOST_LISTED = 20
"""How many entries of a list are drawn, at most."""
_LABEL = 14
"""How many columns the labels of rows take."""
_MOST_CELL = 28
"""The most columns of a cell of a table."""
_MOST_BARS = 5
"""How many bars stand below each other, usually."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
"""The ends of bars, by their size in eighths of a column."""

TERMINAL_COLOURS = ("30;48;5;152", "30;48;5;223", "30;48;5;151", "30;48;5;182", "30;48;5;187", "30;48;5;217")
"""Black on pale colours, which can be read in light and in dark terminals."""
TERMINAL_SUBSTITUTE = "38;5;240"
"""The colour, on each of these, of what stands for something else."""
TONES = {"error": "31", "warning": "33", "note": "36", "best": "32", "worst": "31"}
"""The colours of words in a terminal."""
SYMBOLS = {"best": "▲", "worst": "▽"}
"""What follows marked cells, for those who see no colours."""
HTML_COLOURS = (
    *("rgba(66,133,244,.28)", "rgba(251,160,20,.28)", "rgba(52,168,83,.28)"),
    *("rgba(171,71,188,.28)", "rgba(158,157,36,.28)", "rgba(234,67,53,.28)"),
)
"""Transparent colours, so that they suit pages with light and with dark backgrounds."""


class Part(NamedTuple):
    """A part of what is drawn."""

    text: str
    """What is written."""
    is_substitute: bool
    """Whether it stands for something that cannot be seen alone."""


_SPACE = Part(SIGNS[" "], True)


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
"""An emoji of several characters. The invisible ones have an effect in it, so they are not replaced."""
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U00016fe4\U000e0100-\U000e01ef]"
)
"""Characters that cannot be seen, although Python calls them printable."""
_FRAMED = re.compile(f"[{''.join(SIGNS.values())}{CIRCLE}{FRAME[0]}]")
"""The signs, where they stand for themselves."""
_SEVERAL = re.compile("[^!-~]")


def parts_of(data: bytes, most: int | None = MAX_CHARACTERS) -> list[Part]:
    r"""The parts of what is drawn for bytes; of a longer text, what is drawn for the first characters.

    >>> [part.text for part in parts_of(" a\n".encode())], [part.text for part in parts_of(b"\xf0\x9f")]
    (['␣', 'a', '⏎'], ['‹F0›', '‹9F›'])
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
                parts += byte_parts(data[at : at + 1])
                begin = at + 1
            at += len(character or b"?")
        _add_text(parts, data[begin:].decode())
    if left:
        parts.append(Part(MORE, True))
    return parts


def byte_parts(data: bytes) -> list[Part]:
    r"""What is drawn for bytes that stand for themselves, not for characters.

    >>> "".join(part.text for part in byte_parts(b"\n\xf0"))
    '‹0A›‹F0›'
    """
    return [Part(FRAME.format(f"{byte:02X}"), True) for byte in data]


def code_point(character: str) -> str:
    """A character by its number, if there is no other way to show it: `‹U+200B›`."""
    return FRAME.format(f"U+{ord(character):04X}")


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
    if character.isprintable() and not _BLANK.match(character):
        return SIGNS.get(character)
    return SIGNS.get(character) or code_point(character)


def cut(data: bytes, most: int | None) -> tuple[bytes, int]:
    r"""The first characters of bytes, and how many bytes are left.

    >>> cut("añb".encode(), 2), cut(b"abc", None)
    ((b'a\xc3\xb1', 1), (b'abc', 0))
    """
    if most is None or len(data) <= most:
        return data, 0
    # (A character has at most four bytes. Marks and emojis may be cut in the middle.)
    first = data[: 4 * most]
    at = count = 0
    while at < len(first) and count < most:
        at += len(valid_character(data, at) or b"?")
        count += 1
    return data[:at], len(data) - at


def spelled(data: bytes, most: int | None = MAX_CHARACTERS) -> str:
    r"""Return what is drawn for bytes, as one text. It is different for different bytes, unless it is cut.

    >>> spelled("▁a\tb".encode()), spelled(b"\x1b[2J"), spelled("\u202egnp".encode()), spelled("␣".encode())
    ('▁a⇥b', '‹U+001B›[2J', '‹U+202E›gnp', '‹U+2423›')
    >>> spelled("\u0301".encode()), spelled(b" \xe4\xbd"), spelled("👩\u200d🚀".encode()) == "👩\u200d🚀"
    ('◌́', '␣‹E4›‹BD›', True)
    """
    return "".join(in_one(part) for part in parts_of(data, most))


def in_one(part: Part) -> str:
    """Return a part as `spelled` writes it."""
    return part.text if part.is_substitute else _FRAMED.sub(lambda sign: code_point(sign[0]), part.text)


def shown(text: str, spaces: bool = False, codes: bool = False) -> str:
    r"""A text, such as a message or a name, as `spelled` draws it, but with spaces and signs as they are.

    So it leaves a text that has been drawn as it is. `spaces`: spaces are drawn as well, as in pieces.
    `codes`: characters outside ASCII are drawn as their code points, which tells apart what looks alike.

    >>> shown("a b\n"), shown("\x1b[2J"), shown("C:\\"), shown(" hello", spaces=True), shown("é", codes=True)
    ('a b⏎', '‹U+001B›[2J', 'C:\\', '␣hello', '‹U+00E9›')
    """
    if codes:
        return re.sub("[^ -~]", lambda character: code_point(character[0]), text)
    parts: list[Part] = []
    _add_text(parts, text)
    return "".join(" " if part == _SPACE and not spaces else part.text for part in parts)


def quoted(text: str, codes: bool = False) -> str:
    """A text within a sentence.

    >>> quoted("a\u200b")
    "'a‹U+200B›'"
    """
    return f"'{shown(text, codes=codes)}'"


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
    """Return a text with isolates, if it needs them not to disturb the order of the rest of its line.

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


class Lines:
    """Lines that fit a terminal."""

    def __init__(self, columns: int = 100, bold: bool = False):
        self.columns = max(columns, 40)
        self.bold = bold
        self.lines: list[str] = []

    def title(self, text: str) -> None:
        """A line that begins a section."""
        if self.lines:
            self.lines.append("")
        text = fitted(text, self.columns)
        self.lines.append(f"\x1b[1m{text}\x1b[0m" if self.bold else text)

    def heading(self, tone: str, text: str) -> None:
        """A line that begins with a word in its colour, such as "warning"."""
        self.lines += ["", self._toned(f"{tone:<8}", tone) + fitted(text, self.columns - 8)]

    def _toned(self, text: str, tone: str) -> str:
        return f"\x1b[{TONES[tone]}m{text}\x1b[0m" if self.bold and tone else text

    def row(self, label: str, text: str, most: int | None = None) -> None:
        """A label with a text, which is wrapped, and cut if it has more than this many lines."""
        first = f"  {fitted(label, _LABEL - 1)}"
        first += " " * (_LABEL + 2 - width(first))
        self.text(text, first, " " * (_LABEL + 2), most)

    def text(self, text: str, first: str = "  ", others: str = "  ", most: int | None = None) -> None:
        """A text, wrapped: `first` stands before its first line, `others` before the others."""
        begin = len(self.lines)
        at = first
        left = self.columns - width(first)
        line = ""
        for word in text.split(" "):
            for part in slices(word, max(self.columns - width(others), 8)):
                if line and width(line) + 1 + width(part) > left:
                    self.lines.append(at + line)
                    at, left, line = others, self.columns - width(others), part
                else:
                    line = f"{line} {part}" if line else part
        self.lines.append((at + line).rstrip())
        if most is not None and len(self.lines) > begin + most:
            del self.lines[begin + most :]
            self.lines[-1] = f"{next(slices(self.lines[-1], self.columns - 2))} {MORE}"

    def labelled(self, lines: Iterable[str]) -> None:
        """Lines that begin with their labels, without any indentation; the texts after these are wrapped."""
        for line in lines:
            self.text(line[_LABEL:], line[:_LABEL], " " * _LABEL)

    def paragraph(self, *texts: str) -> None:
        """Texts that each begin a line, without any indentation."""
        for text in texts:
            self.text(text, "", "")

    def bars(self, counts: Mapping[str, int], most: int = _MOST_BARS) -> None:
        """Counts, each with its share of all, and a bar: the largest by themselves, and the others as one."""
        total, largest = sum(counts.values()), max(counts.values())
        rows = gathered(counts, most)
        size = max(width(label) for label, _ in rows)
        room = min(self.columns - size - 25, 30)
        for label, count in rows:
            eighths = round(8 * room * count / largest)
            bar = _EIGHTHS[-1] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
            line = f"{label}{' ' * (size - width(label))}  {count:>9,}  {count / total:>6.1%}  {bar}"
            self.lines.append(f"  {line}".rstrip())

    def table(self, rows: Sequence[Sequence[str]], marks: Marks | None = None) -> None:
        """Rows, the first of them the head; columns that do not fit go into further tables."""
        tones = marks or {}
        drawn = [[fitted(shown(cell), _MOST_CELL) for cell in row] for row in rows]
        for place in {place for _, place in tones}:
            for number, row in enumerate(drawn):
                row[place] += f" {SYMBOLS.get(tones.get((number, place), ''), ' ')}"
        widths = [max(map(width, column)) for column in zip(*drawn, strict=True)]
        begin = 1
        while begin < len(widths) or begin == 1:
            end, room = begin + 1, self.columns - widths[0] - sum(widths[begin : begin + 1]) - 2
            while end < len(widths) and (room := room - widths[end] - 2) >= 0:
                end += 1
            for number, row in enumerate(drawn):
                line = row[0] + " " * (widths[0] - width(row[0]))
                for place in range(begin, min(end, len(row))):
                    space = " " * (2 + widths[place] - width(row[place]))
                    line += space + self._toned(row[place], tones.get((number, place), ""))
                self.lines.append(line.rstrip())
            begin = end
            if begin < len(widths):
                self.lines.append("")

    def document(self) -> str:
        """All lines, as a text."""
        return "".join(f"{line}\n" for line in self.lines)


def gathered(counts: Mapping[str, int], most: int = _MOST_BARS) -> list[tuple[str, int]]:
    """The first counts by themselves, and the others as one.

    >>> gathered({"a": 5, "b": 2, "c": 1}, 2)
    [('a', 5), ('2 others', 3)]
    """
    rows = list(counts.items())
    if len(rows) > most:
        others = sum(count for _, count in rows[most - 1 :])
        rows[most - 1 :] = [(f"{len(rows) - most + 1} others", others)]
    return rows


def fitted(text: str, columns: int) -> str:
    """A text without controls, cut if it takes more columns.

    >>> fitted("abcdef", 4), fitted("日本語", 5)
    ('abc…', '日本…')
    """
    return text if width(text) <= columns else f"{next(slices(text, columns - 1))}{MORE}"


def slices(text: str, columns: int) -> Iterator[str]:
    """A text in parts that each fit a line. (A character that does not fit is a part by itself.)

    >>> list(slices("abcdef", 4)), list(slices("日本語", 4))
    (['abcd', 'ef'], ['日本', '語'])
    """
    part, used = "", 0
    for character in text:
        size = _columns(character)
        if part and used + size > columns:
            yield part
            part, used = "", 0
        part += character
        used += size
    yield part


def listed(items: Sequence[str], most: int = MOST_LISTED) -> str:
    """The first items of a list, and how many there are more."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest:,} more" if rest > 0 else "")


# --- HTML -----------------------------------------------------------------------------------------

_SUBSTITUTE = '<span style="opacity:.6">'
FONT = "font-family:ui-monospace,Menlo,Consolas,monospace"
"""The style of what consists of tokens."""
CELL = ' style="text-align:left;vertical-align:top;padding:1px .7em 1px 0"'
"""The attributes of cells of tables in notebooks."""


def html_table(head: Iterable[str], rows: Iterable[Sequence[str]], cell: str = CELL, table: str = "") -> str:
    """A table of cells that are HTML; the first one of each row names the row.

    `cell` and `table` are attributes: of each cell, or of the whole table where there are many cells.

    >>> html_table(["id"], [["a", "5"]], "").removesuffix("<td>5</td></tr></tbody></table>")
    '<table><thead><tr><th scope="col">id</th></tr></thead><tbody><tr><th scope="row">a</th>'
    """
    columns = "".join(f'<th scope="col"{cell}>{name}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row"{cell}>{first}</th>{"".join(f"<td{cell}>{one}</td>" for one in others)}</tr>'
        for first, *others in rows
    )
    return f"<table{table}><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"


def chip(parts: Sequence[Part], style: str, title: str, tag: str = "bdi", after: str = "") -> str:
    """Parts in an element with a remark that is shown where the mouse is; `after` is HTML that follows them.

    >>> chip(parts_of(b"a "), "margin:1px", 'a "word"')
    '<bdi style="margin:1px" title="a &quot;word&quot;">a<span style="opacity:.6">␣</span></bdi>'
    """
    return f'<{tag} style="{style}" title="{escape(title)}">{in_html(parts)}{after}</{tag}>'


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
        made += escape(part.text)
    return f"{made}</span>" if pale else made
