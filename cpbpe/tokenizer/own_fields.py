"""What a `.model` file says in fields of ours, which sentencepiece passes over, so that it gives other ids.

There is one such field: `prefix_before_space`. (The others hold added tokens and what other files say beside
the model; these change no ids unless a call asks for it.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cpbpe.engine.choice import make_engine
from cpbpe.model.formats.values import Difference, Written, refuse
from cpbpe.model.spec import ModelSpec
from cpbpe.text.utf8 import text_of

_REASON = "sentencepiece puts a space in front of every text, also of text that begins with one"
_ALLOW = (
    "To write it all the same, for use with cpbpe, use cpbpe.convert with allow_differences=True, which "
    "lists them"
)


def model_file_differences(spec: ModelSpec) -> list[Difference]:
    """Texts to which sentencepiece gives other ids than the model has, with the file of a model."""
    rules = spec.normalizer
    if spec.alphabet == "bytes" or rules.prefix_before_space or rules.suffix or not rules.add_dummy_prefix:
        return []
    ours = make_engine(replace(spec, file=None))
    theirs = make_engine(replace(spec, normalizer=replace(rules, prefix_before_space=True), file=None))
    shown = next((text for text in _texts(spec) if ours.encode(text) != theirs.encode(text)), None)
    return [] if shown is None else [Difference(_REASON, shown)]


def checked(spec: ModelSpec, written: Written, allow_differences: bool) -> Written:
    """A `.model` file with these texts in its differences; unless they are allowed, a ConversionError."""
    differences = model_file_differences(spec)
    if not allow_differences:
        refuse(differences, "there is no .model file with which sentencepiece does the same", _ALLOW)
    return replace(written, differences=(*written.differences, *differences))


def _texts(spec: ModelSpec) -> Iterable[str]:
    """Texts that begin with a space, or with U+2581, and one for each piece that does."""
    spaces = " " if not spec.normalizer.remove_extra_whitespaces else "▁"
    pieces = (text_of(text) for text in spec.pieces.texts)
    return [f"{spaces}a", spaces, *(text.replace("▁", spaces) for text in pieces if text.startswith("▁"))]
