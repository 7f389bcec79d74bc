r"""The patterns that cut a text into chunks before it is merged, and what each part of them is for.

A model of the SentencePiece family cuts where nothing can merge. A byte-level model is cut first, by a rule
that somebody wrote down, and nothing merges across the cuts. The rule keeps pieces meaningful and the
vocabulary free of variants: without it, a frequent word would be learned once with each mark that follows it
("dog", "dog.", "dog!", "dog?").

The rule is a regular expression. It is matched again and again, each time where the last match ended, and the
matches are the chunks. The first alternative that matches is taken, even if a later one would match more. The
patterns here match at every place of every text: each character is a letter, a number, whitespace or none of
these, and for each of the four there is an alternative that a single such character satisfies. So no text is
lost. (A pattern of your own may leave something out; `ByteLevel` then loses it, as tiktoken and minbpe do.)

>>> cut(PATTERNS["gpt2"], "Hello world, it's 2024!")
['Hello', ' world', ',', ' it', "'s", ' 2024', '!']
>>> cut(PATTERNS["cl100k"], "Hello world, it's 2024!")
['Hello', ' world', ',', ' it', "'s", ' ', '202', '4', '!']

A word keeps the space in front of it, so that "world" in the middle of a text is one chunk, and no id has to
be spent on the space alone. Of several spaces, the last goes to the word, and the others are a chunk
themselves. `\s+(?!\S)` does this: it matches whitespace that only whitespace may follow, so if a word comes
next, the match gives its last character back.

>>> cut(PATTERNS["gpt2"], "if x:\n    return y")
['if', ' x', ':', '\n   ', ' return', ' y']
>>> cut(PATTERNS["cl100k"], "if x:\n    return y")
['if', ' x', ':\n', '   ', ' return', ' y']

The package `regex` matches them, because the module `re` knows neither `\p{L}`, a letter in any script, nor
`\p{N}`, a number. The libraries that are compared with each bring tables of some version of Unicode, and
differ on characters that only a newer version knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from cpbpe.lazy import importing

# --- The parts ------------------------------------------------------------------------------------

_ENGLISH_ENDINGS = r"'(?:[sdmt]|ll|ve|re)"
"""The endings 's, 'd, 'm, 't, 'll, 've, 're. GPT-2 forgot capitals, and so cuts "IT'S" into IT, ' and S."""
_ENDINGS = r"(?i:'(?:[sdmt]|ll|ve|re))"
"""The same in capitals, too; `(?i:...)` also takes the long s for an s: ſ (U+017F)."""

_LAST_SPACE_GOES_ON = r"\s+(?!\S)"
"""Whitespace, except for its last character if something else follows."""
_SPACES = r"\s+"
"""The whitespace that remains: one character, with which the next chunk does not begin."""
_LINES = r"\s*[\r\n]+"
"""Whitespace up to its last line break, so that indentation does not depend on how many lines are empty."""

_WHOLE_END = r"\s+\Z"
"""Whitespace at the end of the text in one chunk, even after a line break. tiktoken's pattern for GPT-4
has this part; the patterns derived from it do not. GPT-4's ids are the same without it, because none of its
pieces has whitespace after its last line break. The ids of another vocabulary may differ."""

_ANY_BUT_WORD = r"[^\r\n\p{L}\p{N}]?"
"""One character of any kind in front of a word, not only a space: a tab, a bracket, an underscore."""
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
"""Capitals, letters without capitals (as in Chinese or Arabic), and marks, such as accents of their own."""
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
"""Small letters; letters without capitals and marks are in both classes."""

_GPT2 = (
    _ENGLISH_ENDINGS,
    r" ?\p{L}+",  # a word, with a space in front
    r" ?\p{N}+",  # a number of any length
    r" ?[^\s\p{L}\p{N}]+",  # everything else that is not whitespace: marks, symbols, emoji
    _LAST_SPACE_GOES_ON,
    _SPACES,
)


def _like_gpt4(numbers: str, *at_the_end: str) -> tuple[str, ...]:
    return (
        _ENDINGS,
        rf"{_ANY_BUT_WORD}\p{{L}}+",
        numbers,
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # what ends a line takes the line break: ";\n"
        *at_the_end,
        _LINES,
        _LAST_SPACE_GOES_ON,
        _SPACES,
    )


def _by_case(endings: str, numbers: str) -> tuple[str, ...]:
    """A word ends before a capital: "camelCase" becomes camel and Case; and an ending stays with its word."""
    return (
        rf"{_ANY_BUT_WORD}{_UPPER}*{_LOWER}+{endings}",  # hello, Hello, 你好
        rf"{_ANY_BUT_WORD}{_UPPER}+{_LOWER}*{endings}",  # HELLO
        numbers,
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",  # a slash, too, so that "://" is a chunk
        _LINES,
        _LAST_SPACE_GOES_ON,
        _SPACES,
    )


_SHORT_NUMBERS = r"\p{N}{1,3}"
"""Three digits at most: all numbers up to 999 are pieces, and no longer number is one by chance."""
_DIGITS = r"\p{N}"
"""One digit at a time, so that a number of any length is written in the same way."""

PATTERNS = MappingProxyType(
    {
        "gpt2": "|".join(_GPT2),  # also r50k, p50k (GPT-3)
        "cl100k": "|".join(_like_gpt4(_SHORT_NUMBERS, _WHOLE_END)),  # GPT-3.5 and GPT-4
        "llama3": "|".join(_like_gpt4(_SHORT_NUMBERS)),
        "qwen2": "|".join(_like_gpt4(_DIGITS)),
        "o200k": "|".join(_by_case(rf"{_ENDINGS}?", _SHORT_NUMBERS)),  # GPT-4o
        "tekken": "|".join(_by_case("", _DIGITS)),  # Mistral's newer models
    }
)
"""The patterns by the names of their models.

Libraries spell some of them differently, above all with possessive repeats (`\\p{L}++`), which never give
characters back. They match the same, because what follows such a repeat never begins with what it repeats.
"""


# --- Cutting --------------------------------------------------------------------------------------


@lru_cache(64)
def compiled(pattern: str) -> Any:
    """The pattern as an object of the package `regex`."""
    try:
        with importing:
            import regex

            from cpbpe.text.split_syntax import for_regex
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "cutting text by a pattern needs the package regex: pip install regex", name="regex"
        ) from None
    try:
        return regex.compile(for_regex(pattern))
    except regex.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression that regex understands: {error}") from None


def matches(pattern: str, text: str) -> Iterator[Any]:
    """The matches that are chunks.

    An empty match does not count, and the search continues after the next character, as in the library that
    tiktoken uses. (The package regex would look for a longer match at the same place.)

    >>> [match.group() for match in matches("a*?|b", "ab ba")]
    []
    """
    search, at = compiled(pattern).search, 0
    while at <= len(text) and (match := search(text, at)):
        at = match.end()
        if match.start() < at:
            yield match
        else:
            at += 1


def parts(pattern: str, text: str) -> Iterator[str]:
    r"""The chunks of a text, and the parts between them that no match covers, in order.

    >>> list(parts(r"\d", "a1bc"))
    ['a', '1', 'bc']
    """
    done = 0
    for match in matches(pattern, text):
        if done < match.start():
            yield text[done : match.start()]
        yield match.group()
        done = match.end()
    if done < len(text):
        yield text[done:]


def cut(pattern: str, text: str) -> list[str]:
    """The chunks of a text.

    >>> cut(PATTERNS["o200k"], "I'll useCamelCase, don't you?")
    ["I'll", ' use', 'Camel', 'Case', ',', " don't", ' you', '?']
    >>> cut(PATTERNS["qwen2"], "2024"), cut(PATTERNS["gpt2"], "IT'S")
    (['2', '0', '2', '4'], ['IT', "'", 'S'])
    """
    return [match.group() for match in matches(pattern, text)]
