r"""Regular expressions of the `tokenizers` library as cpbpe and tiktoken write them, and back.

That library (0.23.3) uses Oniguruma with the syntax of Ruby; tiktoken and cpbpe's core use the crate
fancy-regex, and the reference the package regex. The first two have the same Unicode, version 16: `\p{L}`,
`\p{Han}`, `\s`, `\d` and all other classes that are allowed here are the same code points. Syntax differs:

- `{1,3}+` is possessive in fancy-regex, and in Ruby's syntax a repeat of a repeat;
- `$` is the end of the text in one, and the end of any line in the other;
- in Ruby's syntax a class in a class is part of it, `&&` is an intersection, and there are `[:punct:]`;
- `\w` is another set of characters, by eight.

A pattern is taken apart, and written again with what means the same for all. What is not known here is an
error that names it. Patterns that need no change stay as they are, so that the core knows the published ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_CATEGORIES = frozenset(
    (
        *("L", "Lu", "Ll", "Lt", "Lm", "Lo"),
        *("M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
        *("S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"),
    )
)
_SCRIPTS = frozenset(
    (
        *("Han", "Hiragana", "Katakana", "Hangul", "Latin", "Cyrillic", "Greek"),
        *("Arabic", "Hebrew", "Thai", "Devanagari", "Bengali", "Armenian"),
    )
)
_BRACKETS = {"punct": r"\p{P}\p{S}", "digit": r"\p{Nd}", "space": r"\s"}
"""The classes in brackets, `[:punct:]`, that are known, as others write them."""
_GROUPS = ("(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_CONTROL = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
_BRACES = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CODE = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_PROPERTY = re.compile(r"([pP])\{(\^?)(\w+)\}")
_END = r"(?![\s\S])"
"""The end of the text, in any of the three."""
_MOST_NESTED = 50


class PatternError(ValueError):
    """A pattern that cannot be written in the other syntax, with what it has."""


def from_theirs(pattern: str) -> str:
    r"""A pattern of Oniguruma for cpbpe; a PatternError says what it has that cpbpe does not know.

    >>> from_theirs(r"\p{N}{1,3}| ?[^(\s|[.,!])]+")
    '\\p{N}{1,3}| ?[^(\\s\\|.,!)]+'
    >>> from_theirs(r"[\p{L}&&[^\p{Han}]]+\w")
    Traceback (most recent call last):
    ...
    cpbpe.model.formats.tokenizer_json.patterns.PatternError: \w, which is not the same in Oniguruma
    """
    return _Translation(pattern, "theirs").done()


def to_theirs(pattern: str) -> str:
    r"""A pattern of cpbpe for Oniguruma, likewise.

    >>> to_theirs(r"\p{N}{1,3}+|\s++$|\pL")
    '(?>\\p{N}{1,3})|\\s++(?![\\s\\S])|\\p{L}'
    """
    return _Translation(pattern, "ours").done()


@dataclass
class _Translation:
    """One pattern, which is read from left to right."""

    pattern: str
    """What is read."""
    syntax: str
    """Whose syntax it has: "theirs" (Oniguruma) or "ours" (fancy-regex)."""
    at: int = 0
    out: list[str] = field(default_factory=list)
    """The parts that have been written. Each group, class or character is one, with its repeats."""
    empty: list[bool] = field(default_factory=list)
    """For each part, whether it can match nothing."""
    open: list[int] = field(default_factory=list)
    """Where in `out` each group that is open begins."""
    can_repeat: bool = False
    """Whether the last part may be repeated."""

    def done(self) -> str:
        """The pattern in the other syntax."""
        if self.pattern.startswith("(?i)"):
            return f"(?i:{_Translation(self.pattern[4:], self.syntax).done()})"
        while self.at < len(self.pattern):
            self._part()
        if self.open:
            raise PatternError("a group without an end")
        if self._can_be_empty(0):  # then the library cuts after every character, and tiktoken does not
            raise PatternError("a way to match nothing")
        return "".join(self.out)

    def _can_be_empty(self, begin: int) -> bool:
        """Whether all parts of an alternative can match nothing, from a part on."""
        empty = True
        for text, is_empty in zip(self.out[begin:], self.empty[begin:], strict=True):
            if text == "|" and empty:
                return True
            empty = True if text == "|" else empty and is_empty
        return empty

    def _part(self) -> None:
        character = self.pattern[self.at]
        if character == "(":
            self._begin_group()
        elif character == ")":
            self._end_group()
        elif character == "|":
            self._write("|", 1, can_repeat=False)
        elif character == "[":
            begin = self.at
            text = self._class()
            # A class that all read alike stays as it is.
            given = self.pattern[begin : self.at]
            self._write(given if _is_plain(given) else text, 0)
        elif character == "\\":
            text, length = self._escape(in_class=False)
            is_place = text.startswith("(?")
            self._write(text, length, can_repeat=not is_place, empty=is_place)
        elif character == "$":
            # At the end of the text for us, and of any line for them.
            text = _END if self.syntax == "ours" else r"(?![^\n])"
            self._write(text, 1, can_repeat=False, empty=True)
        elif character == "^":
            raise PatternError("^, which is not the same in Oniguruma")
        elif character in "*+?":
            self._repeat(character, 1)
        elif character == "{":
            self._braces()
        else:
            self._write(character, 1)

    def _write(self, text: str, length: int, *, can_repeat: bool = True, empty: bool = False) -> None:
        self.out.append(text)
        self.empty.append(empty)
        self.at += length
        self.can_repeat = can_repeat

    # --- Groups -----------------------------------------------------------------------------------

    def _begin_group(self) -> None:
        text = next((group for group in _GROUPS if self.pattern.startswith(group, self.at)), None)
        if text is None:
            if self.pattern.startswith("(?", self.at):
                raise PatternError(f"{self.pattern[self.at : self.at + 4]}, a group of another kind")
            text = "("
        self.open.append(len(self.out))
        if len(self.open) > _MOST_NESTED:
            raise PatternError(f"more than {_MOST_NESTED} groups in one another")
        self._write(text if text != "(" else "(?:", len(text), can_repeat=False, empty=True)

    def _end_group(self) -> None:
        if not self.open:
            raise PatternError("a ) without a (")
        begin = self.open.pop()
        looks_around = self.out[begin].startswith(("(?=", "(?!", "(?<=", "(?<!"))
        self.empty[begin:] = [looks_around or self._can_be_empty(begin)]
        self.out[begin:] = ["".join(self.out[begin:]) + ")"]
        self.at += 1
        self.can_repeat = not looks_around

    # --- Repeats ----------------------------------------------------------------------------------

    def _braces(self) -> None:
        found = _BRACES.match(self.pattern, self.at)
        if found is None or not (found[1] or found[3]):
            raise PatternError("a { that is no repeat")
        least, comma, most = found[1] or "0", found[2], found[3]
        if max(map(int, (least, most or "0"))) > 1000 or (most and int(most) < int(least)):
            raise PatternError(f"the repeat {found[0]}")
        text = f"{{{least}{comma}{most}}}"
        following = self.pattern[found.end() : found.end() + 1]
        if following == "?" and not comma:
            raise PatternError(f"{found[0]}?, which is not the same in Oniguruma")
        if following == "+":
            self._check_repeat()
            # Possessive for us, and for them a repeat of the repeat.
            before, after = ("(?>", ")") if self.syntax == "ours" else ("(?:", ")+")
            self.out[-1] = f"{before}{self.out[-1]}{text}{after}"
            self.empty[-1] |= int(least) == 0
            self.at = found.end() + 1
            self.can_repeat = False
            return
        self._repeat(text, found.end() - self.at)

    def _repeat(self, text: str, length: int) -> None:
        self._check_repeat()
        self.at += length
        following = self.pattern[self.at : self.at + 1]
        if following == "?" or (following == "+" and length == 1):
            text += following
            self.at += 1
        self.out[-1] += text
        self.empty[-1] |= text[0] in "*?" or text.startswith(("{0,", "{0}"))
        self.can_repeat = False

    def _check_repeat(self) -> None:
        if not self.can_repeat or not self.out:
            raise PatternError(f"{self.pattern[self.at]} where nothing can be repeated (again)")

    # --- Characters and classes -------------------------------------------------------------------

    def _escape(self, *, in_class: bool) -> tuple[str, int]:
        """What an escape at this place is for both, and how long it is."""
        rest = self.pattern[self.at + 1 : self.at + 40]
        if not rest:
            raise PatternError(r"a \ at the end")
        first = rest[0]
        if first in "sSdD" or first in _CONTROL:
            return f"\\{first}", 2
        if found := _PROPERTY.match(rest):
            kind, negated, name = found.groups()
            if name not in _CATEGORIES and name not in _SCRIPTS:
                raise PatternError(f"the class \\{found[0]}, which cpbpe has not compared")
            upper = (kind == "P") != bool(negated)
            return f"\\{'P' if upper else 'p'}{{{name}}}", 1 + found.end()
        if first in "pP" and rest[1:2].isalpha() and self.syntax == "ours" and rest[1] in _CATEGORIES:
            return f"\\{first}{{{rest[1]}}}", 3
        if found := _CODE.match(rest):
            code = int(next(filter(None, found.groups())), 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000 or (found[2] and code > 0x7F):
                raise PatternError(f"\\{found[0]}, which is no character")
            return escaped_character(chr(code)), 1 + found.end()
        if not in_class and first in "zZA":
            if first == "A":
                return r"(?<![\s\S])", 2
            if first == "z":
                return _END, 2
            if self.syntax == "theirs":
                return rf"(?=\n?{_END})", 2
        if first.isalnum() or ord(first) > 0x7F:
            raise PatternError(f"\\{first}, which is not the same in Oniguruma")
        return f"\\{first}", 2

    def _class(self, depth: int = 0) -> str:
        """A class in brackets, as all write it."""
        if depth > _MOST_NESTED:
            raise PatternError(f"more than {_MOST_NESTED} classes in one another")
        negated, items = self._items(depth)
        if isinstance(items, str):
            return items
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _items(self, depth: int) -> tuple[bool, list[str] | str]:
        """Whether a class is negated, and what is in it; or all of it, if it is an intersection."""
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        items: list[str] = []
        sides: list[list[str]] = []
        first = self.at
        while not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                raise PatternError("a class without an end")
            if self.pattern.startswith("&&", self.at):
                self.at += 2
                sides.append(items)
                items = []
                continue
            items += self._item(depth)
        if self.at == first:
            raise PatternError("an empty class")
        self.at += 1
        sides.append(items)
        # A negated class is only known as one side of an intersection.
        if any(
            item.startswith("[^") and (len(sides) == 1 or len(side) > 1) for side in sides for item in side
        ):
            raise PatternError("a negated class in another")
        if len(sides) == 1:
            return negated, items
        if depth or not all(sides):
            raise PatternError("&& in a class that is in another, or with nothing on one side")
        *before, last = (side[0] if side[0].startswith("[^") else f"[{''.join(side)}]" for side in sides)
        both = "".join(f"(?={side})" for side in before) + last
        return negated, rf"(?:(?!{both})[\s\S])" if negated else f"(?:{both})"

    def _item(self, depth: int) -> list[str]:
        """A character, a range, an escape or a class within a class."""
        if self.pattern.startswith("[:", self.at):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : end]
            if end < 0 or name not in _BRACKETS or self.syntax == "ours":
                raise PatternError(f"[:{name[:20]}:], which is not the same in Oniguruma")
            self.at = end + 2
            return [_BRACKETS[name]]
        if self.pattern[self.at] == "[":
            negated, inner = self._items(depth + 1)
            if isinstance(inner, str):
                raise PatternError("&& in a class that is in another")
            if not negated:
                return inner
            return [f"[^{''.join(inner)}]"]  # `_items` says where it may be
        low = self._character()
        if len(low) > 2 or low in _CLASSES or not self._is_range():
            return [low]
        self.at += 1
        high = self._character()
        if high in _CLASSES or _value(low) > _value(high):
            raise PatternError(f"the range {low}-{high}")
        return [f"{low}-{high}"]

    def _is_range(self) -> bool:
        following = self.pattern[self.at + 1 : self.at + 2]
        return self.pattern.startswith("-", self.at) and following not in ("]", "")

    def _character(self) -> str:
        """A character, or an escape, in a class."""
        if self.pattern[self.at : self.at + 1] == "\\":
            text, length = self._escape(in_class=True)
        else:
            text, length = self.pattern[self.at : self.at + 1], 1
            if text in ("", "["):
                raise PatternError("a class without an end")
            text = escaped_character(text) if text in r"-^&~|" else text
        self.at += length
        return text


_CLASSES = frozenset((r"\s", r"\S", r"\d", r"\D"))
_DOUBLED = re.compile(r"&&|--|~~|\|\|")


def _is_plain(given: str) -> bool:
    r"""Whether a class means the same for all, as it is: it has no class in it, nothing doubled, no code."""
    inner = given[1:-1].removeprefix("^")
    unescaped = re.sub(r"\\(?:[pP]\{\w+\}|[^xupP])", "", inner)
    return not (set("[]\\") & {*unescaped}) and not _DOUBLED.search(inner) and not unescaped.startswith("-")


def _value(text: str) -> int:
    return ord(_CONTROL.get(text[1], text[1]) if text[0] == "\\" else text)


def escaped_character(character: str) -> str:
    """A character as itself, in a class and outside of one."""
    named = {value: f"\\{name}" for name, value in _CONTROL.items()}
    if character in named:
        return named[character]
    return f"\\{character}" if character in r"\[]{}()*+?.|^$-&~" else character
