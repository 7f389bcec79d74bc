r"""How a byte-level tokenizer.json cuts texts: translates its pre-tokenizers into patterns, and back.

The library's steps cut one after the other, as the patterns of a `SplitSpec` do. `ByteLevel` comes last: it
writes every byte as a letter (see `cpbpe.text.utf8`), and may cut by GPT-2's pattern itself.

That library (0.23.3) uses Oniguruma with the syntax of Ruby; tiktoken and cpbpe's core use the crate
fancy-regex, and the reference engine uses the package regex. Oniguruma and fancy-regex have the same version
of Unicode, 16: `\p{L}`, `\p{Han}`, `\s`, `\d` and all other classes that are allowed here are the same code
points. But their syntax differs:

- `{1,3}+` is possessive in fancy-regex, but a repeat of a repeat in Ruby's syntax;
- `$` is the end of the text in fancy-regex, but the end of any line in Ruby's syntax;
- in Ruby's syntax, a class inside a class is a part of it, `&&` is an intersection, and there is `[:punct:]`;
- `\<` and `\>` are the ends of words in fancy-regex, but characters in Ruby's syntax;
- where case is ignored, Oniguruma also finds `ss` as `ß`, and `\p{Lu}` outside a class finds no small letter;
- the characters of `\w` differ, in eight of them.

So a pattern is parsed, and written again in syntax that means the same in all three. Anything that is not
known here is an error that names it. A pattern that needs no change stays exactly as it is, so that the core
recognizes the published ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json.steps import escaped, member, sequence, shown, split_at, typed, wrong
from cpbpe.model.spec import ModelSpec, SplitSpec
from cpbpe.text.split_patterns import PATTERNS, name_of

# --- Patterns -------------------------------------------------------------------------------------

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
_CASED = frozenset(
    ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "Latin", "Cyrillic", "Greek", "Armenian")
)
"""The classes of characters that change with case."""
_BRACKETS = {"punct": r"\p{P}\p{S}", "digit": r"\p{Nd}", "space": r"\s"}
"""The known classes of the form `[:punct:]`, in syntax that all three read."""
_GROUPS = ("(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_CONTROL = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
_BRACES = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CODE = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_PROPERTY = re.compile(r"([pP])\{(\^?)(\w+)\}")
_END = r"(?![\s\S])"
"""The end of the text, in syntax that all three read."""
_MOST_NESTED = 50
_MOST_LETTERS = 3
"""How many letters may be one where case is ignored (`ffi`)."""


class PatternError(ValueError):
    """A pattern cannot be written in the other syntax. The message is the part of it that prevents this."""


def from_theirs(pattern: str) -> str:
    r"""Translate a pattern of Oniguruma for cpbpe; a PatternError says what in it cpbpe does not know.

    >>> from_theirs(r"\p{N}{1,3}| ?[^(\s|[.,!])]+")
    '\\p{N}{1,3}| ?[^(\\s\\|.,!)]+'
    >>> from_theirs(r"[\p{L}&&[^\p{Han}]]+\w")
    Traceback (most recent call last):
    ...
    cpbpe.model.formats.tokenizer_json.patterns.PatternError: \w, which is not the same in Oniguruma
    """
    return _Translation(pattern, "theirs").done()


def to_theirs(pattern: str) -> str:
    r"""Translate a pattern of cpbpe for Oniguruma; a PatternError says what in it cannot be translated.

    >>> to_theirs(r"\p{N}{1,3}+|\s++$|\pL")
    '(?>\\p{N}{1,3})|\\s++(?![\\s\\S])|\\p{L}'
    """
    return _Translation(pattern, "ours").done()


def without_intersections(pattern: str) -> str:
    r"""Return a pattern of tiktoken without `&&` in classes, which the reference would read otherwise.

    >>> without_intersections(r"[\p{L}&&[^\p{Han}]]+")
    '(?:(?=[\\p{L}])[^\\p{Han}])+'
    """
    if "&&" not in pattern:
        return pattern
    try:
        return to_theirs(pattern)
    except PatternError as error:
        raise ModelError(
            f"the pattern {shown(pattern)} has && and {error}, which cpbpe cannot write for all its engines; "
            f"spell the intersection out: (?=[A])[B] is [A&&B]"
        ) from None


@dataclass
class _Translation:
    """The translation of one pattern, which is read from left to right."""

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
    is_negated: bool = False
    """Whether the class that is read is negated."""
    ignores_case: bool = False
    """Whether case is ignored in all of it."""
    run: str = ""
    """Where case is ignored: the last few characters that have just been written, one after the other."""

    def done(self) -> str:
        """The pattern in the other syntax."""
        if self.pattern.startswith("(?i)") and not self.ignores_case:
            return f"(?i:{_Translation(self.pattern[4:], self.syntax, ignores_case=True).done()})"
        while self.at < len(self.pattern):
            self._part()
        if self.open:
            raise PatternError("a group without an end")
        if self._can_be_empty(0):  # the library would cut after every character, but tiktoken would not
            raise PatternError("a way to match nothing")
        return "".join(self.out)

    def _can_be_empty(self, begin: int) -> bool:
        """Whether, from this part on, there is an alternative of which all parts can match nothing."""
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
            self.run = ""
        elif character == "[":
            begin = self.at
            self.run = ""
            text = self._class()
            # A class that means the same in all three stays as it is.
            given = self.pattern[begin : self.at]
            self._write(given if _is_plain(given) else text, 0)
        elif character == "\\":
            text, length = self._escape(in_class=False)
            is_place = text.startswith("(?")
            if is_place or text in _CLASSES or text[:2] in (r"\p", r"\P"):
                self._check_property(text, in_class=False)
            else:
                self._check_run(chr(_value(text)))
            self._write(text, length, can_repeat=not is_place, empty=is_place)
        elif character == "$":
            # `$` is the end of the text for us, but the end of any line for them.
            text = _END if self.syntax == "ours" else r"(?![^\n])"
            self._write(text, 1, can_repeat=False, empty=True)
        elif character == "^":
            raise PatternError("^, which is not the same in Oniguruma")
        elif character in "*+?":
            self._repeat(character, 1)
        elif character == "{":
            self._braces()
        else:
            self._check_run(character)
            self._write(character, 1)

    def _write(self, text: str, length: int, *, can_repeat: bool = True, empty: bool = False) -> None:
        self.out.append(text)
        self.empty.append(empty)
        self.at += length
        self.can_repeat = can_repeat

    # --- Case -------------------------------------------------------------------------------------

    def _case_counts(self) -> bool:
        return not self.ignores_case and all(self.out[begin] != "(?i:" for begin in self.open)

    def _check_run(self, character: str) -> None:
        """One more character. Where case is ignored, Oniguruma also finds `ss` as one letter, `ß`."""
        if self._case_counts():
            self.run = ""
            return
        self.run = (self.run + character.casefold())[-_MOST_LETTERS:]
        if self.run.endswith(tuple(_several().values())):
            raise PatternError(f"{self.run} where case is ignored, which is not the same in Oniguruma")

    def _check_property(self, text: str, *, in_class: bool) -> None:
        r"""Where case is ignored, Oniguruma does not ignore it in `\p{Lu}`, but finds `ss` in `[\p{L}]`."""
        self.run = ""
        differs = text[3:-1] in _CASED or (in_class and text[1] in "PSD")
        if differs and not self._case_counts() and not (in_class and self.is_negated):
            raise PatternError(f"{text} where case is ignored, which is not the same in Oniguruma")

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
            # This is possessive for us, but a repeat of the repeat for them.
            if self.syntax == "ours":
                self.out[-1] = f"(?>{self.out[-1]}{text})"
            elif int(least) > 1 or (most if comma else least) == "0":
                self.out[-1] = f"(?:{self.out[-1]}{text})+"
            else:  # the same, and shorter (the crate `regex` errs with some repeats of repeats)
                self.out[-1] += "+" if int(least) else "*"
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
        self.run = ""
        if not self.can_repeat or not self.out:
            raise PatternError(f"{self.pattern[self.at]} where nothing can be repeated (again)")

    # --- Characters and classes -------------------------------------------------------------------

    def _escape(self, *, in_class: bool) -> tuple[str, int]:
        """Return the escape at this place in syntax that all three read, and how long the original is."""
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
        if first in "<>" and self.syntax == "theirs":
            return first, 2
        if first in "<>" or first.isalnum() or ord(first) > 0x7F:
            raise PatternError(f"\\{first}, which is not the same in Oniguruma")
        return f"\\{first}", 2

    def _class(self) -> str:
        """Return the class in brackets at this place, in syntax that all three read."""
        negated, sides = self._sides(0)
        if len(sides) == 1:
            return f"[{'^' if negated else ''}{''.join(sides[0])}]"
        *before, last = (side[0] if side[0].startswith("[^") else f"[{''.join(side)}]" for side in sides)
        both = "".join(f"(?={side})" for side in before) + last
        return rf"(?:(?!{both})[\s\S])" if negated else f"(?:{both})"

    def _sides(self, depth: int) -> tuple[bool, list[list[str]]]:
        """Return whether a class is negated, and its items; of an intersection, those of each side."""
        if depth > _MOST_NESTED:
            raise PatternError(f"more than {_MOST_NESTED} classes in one another")
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        self.is_negated = negated if depth == 0 else self.is_negated
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
        # Inside a class, a negated class is supported only as one side of an intersection.
        if any(
            item.startswith("[^") and (len(sides) == 1 or len(side) > 1) for side in sides for item in side
        ):
            raise PatternError("a negated class in another")
        if len(sides) > 1 and (depth or not all(sides)):
            raise PatternError("&& in a class that is in another, or with nothing on one side")
        return negated, sides

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
            negated, [inner] = self._sides(depth + 1)
            return [f"[^{''.join(inner)}]"] if negated else inner  # `_sides` checks whether it is allowed
        low = self._character()
        after = self.pattern[self.at + 1 : self.at + 2]
        is_range = self.pattern.startswith("-", self.at) and after not in ("]", "")
        if len(low) > 2 or low in _CLASSES:
            self._check_property(low, in_class=True)
            return [low]
        high = low
        if is_range:
            self.at += 1
            high = self._character()
            if high in _CLASSES or _value(low) > _value(high):
                raise PatternError(f"the range {low}-{high}")
        if not self._case_counts() and not self.is_negated:
            for letter in _several():
                if _value(low) <= ord(letter) <= _value(high):
                    raise PatternError(f"{letter} where case is ignored, which is not the same in Oniguruma")
        return [f"{low}-{high}" if is_range else low]

    def _character(self) -> str:
        """A character, or an escape, in a class."""
        if self.pattern[self.at : self.at + 1] == "\\":
            text, length = self._escape(in_class=True)
        else:
            text, length = self.pattern[self.at : self.at + 1], 1
            if text in ("", "["):
                raise PatternError("a class without an end")
            if self.syntax == "ours" and self.pattern.startswith(("--", "~~"), self.at):
                raise PatternError(f"{text * 2} in a class, which is not the same in Oniguruma")
            text = escaped_character(text) if text in r"-^&~|" else text
        self.at += length
        return text


_CLASSES = frozenset((r"\s", r"\S", r"\d", r"\D"))
_DOUBLED = re.compile(r"&&|--|~~|\|\|")


def _is_plain(given: str) -> bool:
    r"""Whether a class means the same in all three: it has no inner class, doubled sign or code point."""
    inner = given[1:-1].removeprefix("^")
    unescaped = re.sub(r"\\(?:[pP]\{\w+\}|[^xupP])", "", inner)
    return not (set("[]\\") & {*unescaped}) and not _DOUBLED.search(inner) and not unescaped.startswith("-")


def _value(text: str) -> int:
    return ord(_CONTROL.get(text[1], text[1]) if text[0] == "\\" else text)


@cache
def _several() -> dict[str, str]:
    """The letters that are several where case is ignored, and what they are."""
    letters = map(chr, range(0xFB18))
    return {letter: letter.casefold() for letter in letters if len(letter.casefold()) > 1}


def escaped_character(character: str) -> str:
    """Return a pattern for exactly this character, to use inside a class or outside of one."""
    named = {value: f"\\{name}" for name, value in _CONTROL.items()}
    if character in named:
        return named[character]
    return f"\\{character}" if character in r"\[]{}()*+?.|^$-&~" else character


# --- Punctuation ----------------------------------------------------------------------------------

_RANGES = """
21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4
609-60a 60c-60d 61b 61e-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f
e5a-e5b f04-f12 f14 f3a-f3d f85 fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166d-166e 169b-169c
16eb-16ed 1735-1736 17d4-17d6 17d8-17da 1800-180a 1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad
1b5a-1b60 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027 2030-2043 2045-2051 2053-205e
207d-207e 208d-208e 2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef 2983-2998 29d8-29db
29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 2e00-2e2e 2e30-2e42 3001-3003 3008-3011 3014-301f 3030 303d
30a0 30fb a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f
a95f a9c1-a9cd a9de-a9df aa5c-aa5f aade-aadf aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52
fe54-fe61 fe63 fe68 fe6a-fe6b ff01-ff03 ff05-ff0a ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f
ff5b ff5d ff5f-ff65 10100-10102 1039f 103d0 1056f 10857 1091f 1093f 10a50-10a58 10a7f 10af0-10af6
10b39-10b3f 10b99-10b9c 11047-1104d 110bb-110bc 110be-110c1 11140-11143 11174-11175 111c5-111c9
111cd 111db 111dd-111df 11238-1123d 112a9 114c6 115c1-115d7 11641-11643 1173c-1173e 12470-12474
16a6e-16a6f 16af5 16b37-16b3b 16b44 1bc9f 1da87-1da8b
"""
PUNCTUATION_RANGES = tuple(_RANGES.split())
"""The first and the last character of each range."""


@cache
def punctuation() -> str:
    r"""Return what the pre-tokenizer Punctuation takes for punctuation: a class, without its brackets.

    These are the signs of ASCII, and what was punctuation in Unicode 8. The library does not count newer
    signs, so `\p{P}` would not be the same. A test asks the library about each character.

    >>> len(PUNCTUATION_RANGES), punctuation()[:10]
    (156, '!-/:-@\\[-`')
    """
    items = []
    for characters in PUNCTUATION_RANGES:
        ends = dict.fromkeys(chr(int(code, 16)) for code in characters.split("-"))
        items.append("-".join(map(escaped_character, ends)))
    return "".join(items)


# --- Pre-tokenizers -------------------------------------------------------------------------------

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern that ByteLevel has, unless `use_regex` is off."""
_NUMBERS = r"\p{N}𑷠-𑷩𖿴-𖿶"
"""What Digits takes for numbers: those of Unicode 16, and two sets of digits that are new in Unicode 17."""
_OURS = MappingProxyType(
    {to_theirs(pattern): pattern for pattern in PATTERNS.values()} | {GPT2: PATTERNS["gpt2"]}
)
"""The named patterns, by their form in files."""


def splitter_of(steps: list[Json]) -> SplitSpec | None:
    """Return the patterns of pre-tokenizers, the last of which is ByteLevel."""
    patterns: list[str] = []
    for step in steps[:-1]:
        patterns += _patterns_of(step)
    if member(steps[-1], "use_regex", bool, "pre_tokenizer", True):
        patterns.append(PATTERNS["gpt2"])
    if not patterns:
        return None
    first, *then = patterns
    return SplitSpec(first, name_of(first), tuple(then))


def _patterns_of(step: Json) -> list[str]:  # noqa: RET503 (`wrong` raises an error)
    kind = step["type"]
    if kind == "Digits":
        each = member(step, "individual_digits", bool, "pre_tokenizer.Digits", False)
        return [f"[{_NUMBERS}]" if each else f"[{_NUMBERS}]+"]
    if kind == "Split":
        return [_split(step)]
    if kind == "Punctuation":
        behavior = member(step, "behavior", str, "pre_tokenizer.Punctuation", "Isolated")
        if behavior not in PUNCTUATION:
            wrong(
                f"its pre-tokenizer has Punctuation with the behavior {shown(behavior)}; cpbpe knows "
                f"{', '.join(PUNCTUATION)}"
            )
        return [_punctuation(behavior)]
    if kind == "ByteLevel":
        wrong("its pre-tokenizer has ByteLevel twice, or goes on after it, where bytes are letters already")
    wrong(
        f"its pre-tokenizer has {kind}, and cpbpe knows Split, Digits, Punctuation and ByteLevel in "
        f"byte-level models"
    )


def _split(step: Json) -> str:  # noqa: RET503 (likewise)
    """Return the pattern of a Split. Its matches are chunks, and so is the text between two matches."""
    given = member(step, "pattern", dict, "pre_tokenizer.Split")
    behavior = member(step, "behavior", str, "pre_tokenizer.Split")
    inverted = member(step, "invert", bool, "pre_tokenizer.Split", False)
    if set(given) == {"String"}:
        text = typed(given["String"], str, "pre_tokenizer.Split.pattern.String")
        takes_all, pattern = False, escaped(text)
    elif set(given) == {"Regex"}:
        text = typed(given["Regex"], str, "pre_tokenizer.Split.pattern.Regex")
        takes_all = text in _OURS  # all of these match every text from its beginning to its end
        try:
            pattern = _OURS[text] if text in _OURS else text and from_theirs(text)
        except PatternError as error:
            wrong(f"the pattern {shown(text)} of its pre-tokenizer has {error}")
    else:
        wrong(f"the pattern of a Split must be a String or a Regex, and is {shown(given)}")
    if not pattern:
        wrong("the pattern of a Split is empty")
    if behavior == "Isolated" or (behavior == "Removed" and inverted and takes_all):
        return pattern
    if behavior == "Removed":
        what = "between the matches" if inverted else "that matches"
        wrong(f"a Split of {shown(text)} removes what is {what} from texts, and byte-level models keep all")
    if "String" in given and not inverted:
        if len(text) == 1 and behavior in _MERGED:
            return _MERGED[behavior].format(escaped_character(text))
        if behavior in _MERGED_TEXTS:
            return _MERGED_TEXTS[behavior].format(pattern)
    wrong(f"a Split of {shown(text)} has the behavior {shown(behavior)}; cpbpe knows Isolated")


_MERGED = {
    "MergedWithPrevious": "[^{0}]+[{0}]?|[{0}]",
    "MergedWithNext": "[{0}]?[^{0}]+|[{0}]",
    "Contiguous": "[{0}]+",
}
"""The pattern for each behavior of a Split at a single character, or at any character of a class."""
_MERGED_TEXTS = {
    "MergedWithPrevious": r"(?:(?!{0})[\s\S])+(?:{0})?|{0}",
    "MergedWithNext": r"(?:{0})?(?:(?!{0})[\s\S])+|{0}",
    "Contiguous": "(?:{0})+",
}
"""The pattern for each behavior of a Split at a text of several characters."""
PUNCTUATION = ("Isolated", *_MERGED)
"""The behaviors of Punctuation that keep all of the text."""


@cache
def _punctuation(behavior: str) -> str:
    """Return the pattern of Punctuation with this behavior."""
    return _MERGED.get(behavior, "[{0}]").format(punctuation())


def is_only_step(splitter: SplitSpec | None) -> bool:
    """Whether only ByteLevel cuts texts, without steps before it."""
    return splitter is None or (not splitter.then and splitter.pattern in (PATTERNS["gpt2"], GPT2))


def pre_tokenizer_of(spec: ModelSpec) -> Json:
    """Return the pre-tokenizers of a byte-level model, or raise a ConversionError if a pattern has none."""
    prefix, patterns = spec.normalizer.add_dummy_prefix, spec.patterns
    steps: list[Json] = []
    uses_gpt2 = bool(patterns) and patterns[-1] in (PATTERNS["gpt2"], GPT2)
    for pattern in patterns[: len(patterns) - uses_gpt2]:
        digits = {f"[{_NUMBERS}]": True, f"[{_NUMBERS}]+": False}.get(pattern)
        if digits is not None:
            steps.append({"type": "Digits", "individual_digits": digits})
            continue
        behavior = next((name for name in PUNCTUATION if pattern == _punctuation(name)), None)
        if behavior is not None:
            steps.append({"type": "Punctuation", "behavior": behavior})
            continue
        try:
            steps.append(split_at(to_theirs(pattern)))
        except PatternError as error:
            raise ConversionError(
                f"there is no tokenizer.json for this model: its pattern {shown(pattern)} has {error}"
            ) from None
    steps.append(
        {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": uses_gpt2}
    )
    made = sequence("pretokenizers", steps)
    assert made is not None
    return made
