"""What a model is, as lines for a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cpbpe.look.built import Built
from cpbpe.look.cutting import explained
from cpbpe.look.meanings import meaning_of
from cpbpe.look.shown import fitted, shown, shown_with_spaces, width
from cpbpe.model.spec import SplitSpec
from cpbpe.spelling import counted
from cpbpe.tokenizer.inspection import SEVERAL, Inspection, prefix_of

_LABEL = 14
"""How many columns labels take."""
_MOST_LISTED = 20
"""At most this many entries of a list are shown; --json has all."""
_MOST_CHARACTERS = 300
"""A longer setting is cut."""
_SCRIPTS = {"Common": "no letters (digits, punctuation, symbols)", SEVERAL: "several scripts"}
_NORMALIZERS = (("normalizer", "normalization"), ("denormalizer", "after decoding"))


class _Page:
    """Lines that fit a terminal."""

    def __init__(self, columns: int, bold: bool):
        self._columns = max(columns, 40)
        self._bold = bold
        self.lines: list[str] = []

    def title(self, text: str) -> None:
        """A line that begins a section."""
        if self.lines:
            self.lines.append("")
        text = fitted(text, self._columns)
        self.lines.append(f"\x1b[1m{text}\x1b[0m" if self._bold else text)

    def row(self, label: str, text: str) -> None:
        """A label with a text, which is wrapped."""
        first = f"  {fitted(label, _LABEL - 1)}"
        first += " " * (_LABEL + 2 - width(first))
        self.text(text, first, " " * (_LABEL + 2))

    def text(self, text: str, first: str = "  ", others: str = "  ") -> None:
        """A text, wrapped."""
        at = first
        left = self._columns - width(first)
        line = ""
        for word in text.split(" "):
            for part in _parts(word, max(self._columns - width(others), 8)):
                if line and width(line) + 1 + width(part) > left:
                    self.lines.append(at + line)
                    at, left, line = others, self._columns - width(others), part
                else:
                    line = f"{line} {part}" if line else part
        self.lines.append((at + line).rstrip())

    def bars(self, counts: Mapping[Any, int], names: Mapping[Any, str] | None = None) -> None:
        """Counts, each with its share of all."""
        total = sum(counts.values()) or 1
        rows = list(counts.items())
        for name, count in rows[:_MOST_LISTED]:
            label = str((names or {}).get(name, name))
            self.text(label, f"  {count:>9,} {100 * count / total:>5.1f} %  ", " " * 22)
        if len(rows) > _MOST_LISTED:
            rest = rows[_MOST_LISTED:]
            count = sum(count for _, count in rest)
            self.text(f"{len(rest)} others", f"  {count:>9,} {100 * count / total:>5.1f} %  ", " " * 22)


def _parts(word: str, columns: int) -> Iterator[str]:
    """A word in parts that each fit a line."""
    while width(word) > columns:
        end = 1
        while end < len(word) and width(word[: end + 1]) <= columns:
            end += 1
        yield word[:end]
        word = word[end:]
    yield word


def page(
    seen: Inspection, name: str, columns: int = 100, bold: bool = False, notes: Iterable[str] = ()
) -> list[str]:
    """Everything that `Inspection` has, for people; `name` is what the model is called.

    `notes` is what was said about the model when it was read.
    """
    made = _Page(columns, bold)
    # 1. What it is.
    made.title(shown(name))
    fallback = "with byte fallback" if seen.byte_fallback else "without byte fallback"
    if seen.alphabet == "bytes":
        made.row("type", "byte-level BPE")
        cut = seen.splitter and (seen.splitter.name or seen.splitter.pattern)
        made.row(
            "text is cut", f"by the pattern {shown(cut)}, see below" if cut else "nowhere: it is one chunk"
        )
        for pattern in seen.splitter.then if seen.splitter else ():
            made.row("then", f"by the pattern {shown(pattern)}")
        if form := seen.normalizer.unicode_form:
            made.row("before that", f"it is brought into the Unicode normal form {form}")
        taken = (
            "taken whole, even if no merges make it" if seen.whole else "made by merges, as any other text"
        )
        made.row("a chunk", f"that is a piece is {taken}")
    else:
        made.row("type", f"BPE, {fallback}")
    more = seen.vocab_size - seen.pieces
    made.row("pieces", f"{seen.pieces:,}" + (f", and ids up to {seen.vocab_size - 1:,}" if more else ""))
    made.row("file", f"{seen.file_bytes:,} bytes")
    made.row("fingerprint", seen.fingerprint)
    made.row("lossless", _lossless(seen))
    for loss in seen.losses:
        quoted = ascii if loss.looks_alike else lambda text: shown(ascii_quoted(text))
        made.text(
            f"{loss.reason} {quoted(loss.example)} becomes {quoted(loss.becomes)}.",
            "    - ",
            "      ",
        )
    if seen.splitter is not None:
        _pattern(made, seen.splitter)
    # 2. Special and added tokens.
    made.title("special pieces")
    for kind, id in seen.special_ids.items():
        piece = "none" if id is None else str(id)
        made.row(kind, piece)
    tokens = [f"{shown(token)} {id}" for token, id in seen.special_tokens.items()]
    made.row("all", _listed(tokens) or "none")
    if seen.added_tokens:
        made.row("added", _listed([f"{shown(token)} {id}" for token, id in seen.added_tokens.items()]))
    # 3. What goes around texts, and what else the file carries.
    made.title("around texts")
    made.row("prefix", _prefix(seen))
    options = ", ".join(f"{name}={value}" for name, value in seen.file_options.items())
    made.row("file asks for", f"{options}; tok.using(**tok.file_options) does it" if options else "nothing")
    for role, token in seen.token_roles.items():
        made.row(shown(role), shown(token))
    for name, template in seen.chat_templates.items():
        made.row("chat template", f"{shown(name)}, {counted(len(template), 'character')}")
    for note in notes:
        made.row("note", shown(note))
    # 4. Counts.
    made.title("by type")
    made.bars(seen.types)
    made.title("by script")
    made.bars(seen.scripts, _SCRIPTS)
    made.title("by length")
    made.bars(seen.lengths, {length: counted(length, "character") for length in seen.lengths})
    piece_shown = shown_with_spaces if seen.alphabet == "bytes" else shown
    made.title("longest pieces")
    for id, piece in seen.longest:
        made.text(fitted(piece_shown(piece), max(columns - 12, 12)), f"  {id:>8}  ", " " * 12)
    # 5. What the file records.
    for section, title in (("trainer", "settings of training"), *_NORMALIZERS):
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
    # 6. A sentence.
    made.title("sample")
    made.row("text", shown(seen.sample.text))
    made.row("pieces", " ".join(map(piece_shown, seen.sample.pieces)))
    made.row("ids", " ".join(map(str, seen.sample.ids)))
    same = "the same text" if seen.sample.decoded == seen.sample.text else shown(seen.sample.decoded)
    made.row("decoded", same)
    return made.lines


def _pattern(made: _Page, splitter: SplitSpec) -> None:
    """What the parts of a pattern do."""
    made.title("how text is cut: the first of these that matches is a chunk")
    for part, meaning in explained(splitter.pattern):
        made.text(shown_with_spaces(part).replace("\\\\", "\\"), "  ", "    ")
        if meaning:
            made.text(meaning, "      ", "      ")


_PREFIXES = {
    "front": "a space is put in front of a text",
    "end": "a space is put at the end of a text",
    "none": "no space is put in front of a text",
}


def _prefix(seen: Inspection) -> str:
    where = _PREFIXES[prefix_of(seen.normalizer)]
    if prefix_of(seen.normalizer) == "none" or seen.file_options.get("prefix_after_special") is not False:
        return where
    return f"{where}, and by the file's wish not after special tokens"


def ascii_quoted(text: str) -> str:
    """A text in quotes, so that spaces at its ends can be seen."""
    return f"'{text}'"


def _lossless(seen: Inspection) -> str:
    if seen.lossless is None:
        return seen.undecided
    return "every text comes back from its ids" if seen.lossless else "no, some texts do not come back:"


def _listed(items: list[str]) -> str:
    rest = len(items) - _MOST_LISTED
    return ", ".join(items[:_MOST_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def _setting(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        text = _listed([shown(str(item)) for item in value])
    else:
        text = shown(str(value)) if not isinstance(value, str) else shown(ascii_quoted(value))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def built_page(piece: Built, columns: int = 100, bold: bool = False, spaces: bool = False) -> list[str]:
    """How a piece is built, step by step. `spaces`: pieces have spaces, which are to be seen."""
    made = _Page(columns, bold)
    piece_shown = shown_with_spaces if spaces else shown
    made.title(piece_shown(piece.piece))
    made.row("id", str(piece.id))
    made.row("type", piece.type)
    made.row("score", f"{piece.score:g}")
    if piece.note:
        made.text(piece.note)
    if piece.symbols and piece.type != "USER_DEFINED":
        made.row("begins as", " ".join(map(piece_shown, piece.symbols)))
        for number, merge in enumerate(piece.merges, 1):
            made.row(
                f"merge {number}",
                f"{piece_shown(merge.left)} + {piece_shown(merge.right)} = {piece_shown(merge.made)} "
                f"(rank {merge.rank:,}, score {merge.score:g}, id {merge.id})",
            )
        if len(piece.ends_as) != 1:
            made.row("ends as", " ".join(map(piece_shown, piece.ends_as)))
        elif not piece.merges:
            made.row("", "a single symbol, which needs no merge")
    return made.lines


def piece_lines(
    found: Iterable[tuple[int, str, float, str]], columns: int | None, spaces: bool = False
) -> Iterator[str]:
    """Pieces as lines: id, type, score and piece. Without a width nothing is cut."""
    piece_shown = shown_with_spaces if spaces else shown
    for id, type, score, piece in found:
        line = f"{id:>8}  {type:<12}  {score:>10g}  {piece_shown(piece)}"
        yield line if columns is None else fitted(line, columns)
