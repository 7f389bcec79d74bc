"""Reports: what a file records about a model, and how a piece is built.

Phrases beside the values say what they mean: `meaning_of` explains settings, and `explained` each part of a
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from cpbpe.spelling import sized, spelled
from cpbpe.text.drawn import MORE, Lines, fitted, listed, shown
from cpbpe.text.drawn import spelled as piece_spelled
from cpbpe.text.pages import Canvas
from cpbpe.tokenizer.inspection import Inspection
from cpbpe.tools.built import Built
from cpbpe.tools.vocabulary_file import Row
from cpbpe.training.options import MEANINGS

_MOST_CHARACTERS = 300
"""A setting with more characters is cut."""
_SECTIONS = {
    "trainer": "settings of training",
    "normalizer": "normalization",
    "denormalizer": "after decoding",
}


def draw_settings(seen: Inspection, on: Canvas, name: str) -> None:
    """Everything that a file records about how the model was trained, and how it cuts and rewrites text."""
    on.title(shown(name))
    if seen.splitter is not None:
        on.title("how text is cut: the first of these that matches is a chunk")
        for part, meaning in explained(seen.splitter.pattern):
            on.text(shown(part, spaces=True), "  ", "    ")
            if meaning:
                on.text(meaning, "      ", "      ")
    for section, title in _SECTIONS.items():
        fields: Mapping[str, Any] | None = getattr(seen.settings, section)
        if fields is not None and seen.alphabet == "bytes" and section == "normalizer":
            fields = {name: value for name, value in fields.items() if value and name != "name"} or None
        if fields is not None:
            on.title(title)
            if not fields:
                on.text("nothing is recorded")
            for field, value in fields.items():
                on.text(f"{field} = {_setting(value)}", "  ", "      ")
                if phrase := meaning_of(section, field):
                    on.text(phrase, "      ", "      ")


def _setting(value: Any) -> str:
    if isinstance(value, bytes):
        return sized(len(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        text = listed([shown(str(item)) for item in value])
    else:
        text = shown(f"'{value}'" if isinstance(value, str) else str(value))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}{MORE}"


def built_lines(piece: Built, columns: int = 100, bold: bool = False, spaces: bool = False) -> list[str]:
    """How a piece is built, step by step. With `spaces`, spaces in pieces are made visible."""
    made = Lines(columns, bold)
    drawn = partial(shown, spaces=spaces)
    made.title(drawn(piece.piece))
    made.row("id", str(piece.id))
    made.row("type", piece.type)
    made.row("score", f"{piece.score:g}")
    if piece.note:
        made.text(piece.note)
    if piece.symbols and piece.type != "USER_DEFINED":
        made.row("begins as", " ".join(map(drawn, piece.symbols)))
        for number, merge in enumerate(piece.merges, 1):
            made.row(
                f"merge {number}",
                f"{drawn(merge.left)} + {drawn(merge.right)} = {drawn(merge.made)} "
                f"(rank {merge.rank:,}, score {merge.score:g}, id {merge.id})",
            )
        if len(piece.ends_as) != 1:
            made.row("ends as", " ".join(map(drawn, piece.ends_as)))
        elif not piece.merges:
            made.row("", "a single symbol, which needs no merge")
    return made.lines


def piece_lines(found: Iterable[Row], columns: int | None) -> Iterator[str]:
    """Pieces as lines: id, type, score and piece. Without `columns`, lines are not cut."""
    for id, type, score, piece in found:
        line = f"{id:>8}  {type:<12}  {score:>10g}  {piece_spelled(piece, None)}"
        yield line if columns is None else fitted(line, columns)


# --- What settings mean ---------------------------------------------------------------------------

_NOTHING = "has no effect"
_UNIGRAM = "means something for unigram models only"

_TRAINER = {
    "input": "the files that it was trained on",
    "input_format": "the format of these files: text, or tsv (a text, a tab, a count)",
    "model_prefix": "the name that the model was saved under when it was trained",
    "model_type": "the kind of model; bpe is the one that merges pairs",
    "vocab_size": "how many pieces were asked for, special pieces included",
    "accept_language": f"the languages that it was made for, if the file says so; {_NOTHING}",
    "self_test_sample_size": f"the number of texts stored as a self-test; {_NOTHING}",
    "mining_sentence_size": _NOTHING,
    "training_sentence_size": _NOTHING,
    "seed_sentencepiece_size": _UNIGRAM,
    "shrinking_factor": _UNIGRAM,
    "num_sub_iterations": _UNIGRAM,
    "seed_sentencepieces_file": _UNIGRAM,
    "num_threads": "how many threads trained it; the model does not depend on it",
    "train_extremely_large_corpus": "how the trainer counted a large corpus; the model does not depend on it",
    "enable_differential_privacy": _UNIGRAM,
    "differential_privacy_noise_level": _UNIGRAM,
    "differential_privacy_clipping_threshold": _UNIGRAM,
    "use_all_vocab": "means something for word and character models only",
    "hard_vocab_limit": "whether training would have failed if the corpus was too small for `vocab_size`",
    "vocabulary_output_piece_score": "whether the .vocab file beside the model has scores",
    "byte_fallback": "characters without a piece are encoded as bytes, instead of as unknown",
    "required_chars": "characters that got a piece however rare they were",
    "input_sentence_size": "how many lines it was trained on at most; 0 for all",
    "shuffle_input_sentence": "with `input_sentence_size`: the lines were sampled from the whole corpus",
    "max_sentence_length": "lines with more bytes were skipped in training",
}

_NORMALIZER = {
    "name": "the name of the rules by which text is rewritten before it is encoded; nothing depends on it",
    "precompiled_charsmap": "these rules, compiled; with 0 bytes there are none",
    "escape_whitespaces": "write spaces as U+2581 (▁)",
    "normalization_rule_tsv": "the file that the rules came from",
}


def meaning_of(section: str, name: str) -> str:
    """What a field of a section ("trainer", "normalizer" or "denormalizer") means; "" if it is not known.

    >>> meaning_of("normalizer", "escape_whitespaces")
    'write spaces as U+2581 (▁)'
    """
    own = _TRAINER if section == "trainer" else _NORMALIZER
    if name in own:
        return spelled(own[name])
    return spelled(MEANINGS[name].meaning) if name in MEANINGS else ""


# --- What the parts of a pattern do ---------------------------------------------------------------

_ENDING = "an ending: 's, 'd, 'm, 't, 'll, 've or 're"
_WORD = "letters, and the space in front"
_FREE_WORD = "letters, and the character in front if it is no digit or line break"
_MARKS = "marks and symbols, and the space in front"
_BREAKS = "whitespace up to its last line break"
_LAST = "whitespace, but not its last character if something else follows"

_PARTS = {
    r"'(?:[sdmt]|ll|ve|re)": _ENDING,
    r"'(?i:[sdmt]|ll|ve|re)": f"{_ENDING}, also in capitals",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)": f"{_ENDING}, also in capitals",
    r" ?\p{L}+": _WORD,
    r" ?\p{N}+": "a number of any length, and the space in front",
    r" ?[^\s\p{L}\p{N}]+": _MARKS,
    r"[^\r\n\p{L}\p{N}]?\p{L}+": _FREE_WORD,
    r"\p{N}{1,3}": "a number of one to three digits",
    r"\p{N}": "one digit",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*": f"{_MARKS}, and line breaks after them",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*": f"{_MARKS}, and line breaks or slashes after them",
    r"\s+$": "whitespace at the end of the text",
    r"\s*[\r\n]": _BREAKS,
    r"\s*[\r\n]+": _BREAKS,
    r"\s+(?!\S)": _LAST,
    r"\s+": "whitespace",
    r"\s": "one character of whitespace",
}
"""What the parts of patterns do, by their text without possessive repeats, which make no difference here."""

_POSSESSIVE = re.compile(r"([+*?]|\{\d+,\d+\})\+")
"""A repeat that gives nothing back."""

_BY_CASE = (
    (r"*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+", "a word that ends in small letters"),
    (r"+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*", "a word that begins with capitals"),
)
"""What words are in patterns that cut before a capital, by a text that occurs in their part."""
_ENDING_AFTER = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


def explained(pattern: str) -> Iterator[tuple[str, str]]:
    r"""The parts of a pattern in the order in which they are tried, each with its meaning; "" if unknown.

    >>> list(explained(r"\p{N}{1,3}|\s+"))
    [('\\p{N}{1,3}', 'a number of one to three digits'), ('\\s+', 'whitespace')]
    """
    for part in _parts(pattern):
        meaning = _PARTS.get(_POSSESSIVE.sub(r"\1", part), "")
        if not meaning and part.startswith(r"[^\r\n\p{L}\p{N}]?[\p{Lu}"):
            meaning = next((words for inside, words in _BY_CASE if inside in part), "")
            if meaning and part.endswith(_ENDING_AFTER):
                meaning += ", and an ending such as 's after it"
        yield part, meaning


def _parts(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern."""
    begin = depth = 0
    in_class = escaped = False
    for at, character in enumerate(pattern):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and not depth:
            yield pattern[begin:at]
            begin = at + 1
    yield pattern[begin:]
