r"""Normalizing a text, with the characters that each character of the result came from.

`cpbpe.Tokenizer.align` says it in sentencepiece's way. tokenizers has another one, which follows from its
steps:

- What `Prepend` puts in front belongs to the first character.
- Of several spaces that become one, that one is the last.
- What is added at the end belongs to the last character.
- No token is without characters: all bytes of a character have its span.
"""

from __future__ import annotations

import re
from typing import Any

from cpbpe.compat.tokenizers.runs import Span
from cpbpe.model.formats.tokenizer_json.steps import normalizer_of
from cpbpe.model.spec import NormalizerSpec
from cpbpe.text.unicode_forms import counted


class Normalizer:
    """The steps that tokenizers has for the options of a model, without a charsmap."""

    def __init__(self, rules: NormalizerSpec, has_user_defined: bool = False):
        made: Any = normalizer_of(rules)
        steps = [] if made is None else made.get("normalizers", [made])
        self._steps = [_step(step) for step in steps]
        self._form = rules.unicode_form
        self.is_simple = not (rules.remove_extra_whitespaces or rules.suffix or has_user_defined)
        """Whether the spans of `cpbpe.Tokenizer.align` need only be widened to one character."""

    def __call__(self, text: str) -> tuple[str, list[Span]]:
        """The normalized text, and the span of each of its characters.

        >>> Normalizer(NormalizerSpec())("a  b ")
        ('▁a▁b', [(0, 1), (0, 1), (2, 3), (3, 4)])
        """
        spans = [(at, at + 1) for at in range(len(text))]
        if self._form and not text.isascii():
            text, spans = _normal_form(self._form, text)
        for pattern, content in self._steps:
            if pattern is None:
                if text:
                    text, spans = content + text, [*spans[:1] * len(content), *spans]
                continue
            parts, kept, at = [], [], 0
            for found in pattern.finditer(text):
                begin, end = found.span()
                parts += [text[at:begin], content]
                kept += spans[at:begin] + [spans[max(end, 1) - 1]] * len(content)
                at = end
            text = "".join([*parts, text[at:]])
            spans = kept + spans[at:]
        return text, spans


def _normal_form(form: str, text: str) -> tuple[str, list[Span]]:
    """A Unicode normal form. What is composed of several has the span of the first; what a character becomes
    beside its first character has the span of the one before.
    """
    characters, spans = [], []
    at = 0
    for character, begun in counted(form, text):
        place = at if begun else at - 1
        characters.append(character)
        spans.append((place, place + 1) if place >= 0 else (0, 0))
        at += begun
    return "".join(characters), spans


def _step(step: Any) -> tuple[re.Pattern[str] | None, str]:
    if step["type"] == "Prepend":
        return None, step["prepend"]
    pattern = step["pattern"]
    if "String" in pattern:
        return re.compile(re.escape(pattern["String"])), step["content"]
    return re.compile(python_pattern(pattern["Regex"])), step["content"]


def python_pattern(pattern: str) -> str:
    r"""A regular expression of a file as Python spells it.

    >>> python_pattern(r"\A\\z\z")
    '\\A\\\\z\\Z'
    """
    return re.sub(r"\\(.)", lambda found: r"\Z" if found[1] == "z" else found[0], pattern, flags=re.DOTALL)
