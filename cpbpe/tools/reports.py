"""Reports for a terminal of any width: what a model is, and how a piece is built.

Phrases beside the values say what they mean: `meaning_of` explains settings, and `explained` each part of a
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from cpbpe.spelling import advised, counted, sized, spelled
from cpbpe.text.drawn import MORE, Lines, fitted, listed, quoted, shown
from cpbpe.text.drawn import spelled as piece_spelled
from cpbpe.tokenizer.inspection import SEVERAL, Inspection, prefix_of
from cpbpe.tools.built import Built
from cpbpe.tools.vocabulary_file import Row
from cpbpe.training.options import MEANINGS

_MOST_CHARACTERS = 300
"""A setting with more characters is cut."""
_MOST_TOKENS = 8
"""How many special tokens are named, at most."""
_MOST_LOSSES = 2
"""How many of the reasons why texts do not come back are shown."""
_MOST_DRAWN = 4
"""How many lines of the drawing of the sample are on the page: two of tokens, with their ids."""
_LENGTHS = (0, 2, 4, 7, 11)
"""Where the ranges begin in which pieces are counted by length."""
_SCRIPTS = {"Common": "no letters", SEVERAL: "several scripts"}
_SECTIONS = {
    "trainer": "settings of training",
    "normalizer": "normalization",
    "denormalizer": "after decoding",
}
_PREFIXES = {
    "front": "a space is put in front of a text",
    "end": "a space is put at the end of a text",
    "none": "no space is put in front of a text",
}


def inspection_lines(
    seen: Inspection,
    name: str,
    columns: int = 100,
    bold: bool = False,
    notes: Iterable[str] = (),
    drawing: str = "",
) -> list[str]:
    """What a model is, on one page; `name` is what the model is called.

    `notes` are remarks that were made when the model was read, and `drawing` are the tokens of the sample.
    `settings_lines` has the settings.
    """
    made = Lines(columns, bold)
    drawn = partial(shown, spaces=seen.alphabet == "bytes")
    # 1. What it is.
    made.title(shown(name))
    _kind_rows(made, seen)
    more = seen.vocab_size - seen.pieces
    types = ", ".join(f"{count:,} {type}" for type, count in seen.types.items())
    ids = f"; ids up to {seen.vocab_size - 1:,}" if more else ""
    made.row("pieces", f"{seen.pieces:,}: {types}{ids}")
    recorded = sum(len(getattr(seen.settings, section) or ()) for section in _SECTIONS)
    seen_with = advised("see .settings", "--settings shows them")
    made.row("file", f"{sized(seen.file_bytes)}; {counted(recorded, 'setting')}, {seen_with}")
    made.row("fingerprint", seen.fingerprint)
    if seen.lossless is None:
        made.row("lossless", seen.undecided)
    elif seen.lossless:
        made.row("lossless", "every text comes back from its ids")
    else:
        ways = "in these ways" if len(seen.losses) <= _MOST_LOSSES else f"in {len(seen.losses)} ways, such as"
        made.row("lossless", f"no, some texts do not come back, {ways}:")
    for loss in seen.losses[:_MOST_LOSSES]:
        example, becomes = (quoted(text, loss.looks_alike) for text in (loss.example, loss.becomes))
        made.text(f"{loss.reason} {example} becomes {becomes}.", "    - ", "      ", 2)
    # 2. Special and added tokens.
    ids = ", ".join(f"{kind} {'none' if id is None else id}" for kind, id in seen.special_ids.items())
    made.row("special", f"{ids}; {_tokens(seen.special_tokens)}", 2)
    if seen.added_tokens:
        made.row("added", _tokens(seen.added_tokens), 1)
    # 3. What goes around texts, and what else the file carries.
    where = prefix_of(seen.normalizer)
    wish = where != "none" and seen.file_options.get("prefix_after_special") is False
    made.row(
        "prefix", _PREFIXES[where] + (", and by the file's wish not after special tokens" if wish else "")
    )
    options = ", ".join(f"{name}={value}" for name, value in seen.file_options.items())
    does = advised("tok.using(**tok.file_options) does it", "the option --file-options does it")
    if options:
        made.row("file asks for", f"{options}; {does}")
    if seen.token_roles:
        made.row("roles", ", ".join(f"{shown(role)} {shown(it)}" for role, it in seen.token_roles.items()), 2)
    for name, template in seen.chat_templates.items():
        made.row("chat template", f"{shown(name)}, {counted(len(template), 'character')}")
    for note in notes:
        made.row("note", shown(note))
    # 4. Counts.
    if seen.scripts:
        made.title("by script")
        made.bars({_SCRIPTS.get(script, script): count for script, count in seen.scripts.items()})
    if seen.lengths:
        made.title("by length, in characters")
        made.bars(_ranges(seen.lengths))
        made.row("longest", " ".join(drawn(piece) for _, piece in seen.longest), 1)
    # 5. A sentence.
    made.title(f"sample: {shown(seen.sample.text)}")
    if seen.sample.decoded != seen.sample.text:
        made.row("decoded", shown(seen.sample.decoded), 1)
    lines = drawing.splitlines()
    made.lines += [f"  {line}" for line in lines[:_MOST_DRAWN]]
    if len(lines) > _MOST_DRAWN:
        made.text(f"{MORE} {advised('tok.show(text)', 'cpbpe show')} draws all of it")
    return made.lines


def _kind_rows(made: Lines, seen: Inspection) -> None:
    """Rows about the family of a model, and about how a byte-level model cuts text."""
    if seen.alphabet != "bytes":
        made.row("type", f"BPE, with{'' if seen.byte_fallback else 'out'} byte fallback")
        return
    made.row("type", "byte-level BPE")
    cut = seen.splitter and (seen.splitter.name or seen.splitter.pattern)
    made.row("text is cut", f"by the pattern {_short(shown(cut))}" if cut else "nowhere: it is one chunk")
    for pattern in seen.splitter.then if seen.splitter else ():
        made.row("then", f"by the pattern {_short(shown(pattern))}")
    if form := seen.normalizer.unicode_form:
        made.row("before that", f"it is brought into the Unicode normal form {form}")
    taken = "taken whole, even if no merges make it" if seen.whole else "made by merges, as any other text"
    made.row("a chunk", f"that is a piece is {taken}")


def _ranges(lengths: Mapping[int, int]) -> dict[str, int]:
    """Counts by length, in a few ranges of lengths."""
    counts: dict[str, int] = {}
    for low, after in pairwise((*_LENGTHS, max(lengths) + 1)):
        if inside := [length for length in lengths if low <= length < after]:
            first, last = min(inside), max(inside)
            name = str(first) if first == last else f"{first}–{last}"
            counts[name] = sum(lengths[length] for length in inside)
    return counts


def settings_lines(seen: Inspection, name: str, columns: int = 100, bold: bool = False) -> list[str]:
    """Everything that a file records about how the model was trained, and how it cuts and rewrites text."""
    made = Lines(columns, bold)
    made.title(shown(name))
    if seen.splitter is not None:
        made.title("how text is cut: the first of these that matches is a chunk")
        for part, meaning in explained(seen.splitter.pattern):
            made.text(shown(part, spaces=True), "  ", "    ")
            if meaning:
                made.text(meaning, "      ", "      ")
    for section, title in _SECTIONS.items():
        fields: Mapping[str, Any] | None = getattr(seen.settings, section)
        if fields is not None and seen.alphabet == "bytes" and section == "normalizer":
            fields = {name: value for name, value in fields.items() if value and name != "name"} or None
        if fields is not None:
            made.title(title)
            if not fields:
                made.text("nothing is recorded")
            for field, value in fields.items():
                made.text(f"{field} = {_setting(value)}", "  ", "      ")
                if phrase := meaning_of(section, field):
                    made.text(phrase, "      ", "      ")
    return made.lines


def _tokens(tokens: Mapping[str, int]) -> str:
    return listed([f"{shown(token)} {id}" for token, id in tokens.items()], _MOST_TOKENS) or "no tokens"


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[:most]}{MORE}"


def _setting(value: Any) -> str:
    if isinstance(value, bytes):
        return sized(len(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        text = listed([shown(str(item)) for item in value])
    else:
        text = shown(f"'{value}'" if isinstance(value, str) else str(value))
    return _short(text, _MOST_CHARACTERS)


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
