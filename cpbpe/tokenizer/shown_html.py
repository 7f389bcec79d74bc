"""The tokens of a text as HTML: a fragment without scripts, style sheets or requests.

Every token is isolated in its direction, as the rules of bidirectional text have it, and neighbours whose
letters run from right to left are put in one element that does. Everything about a token is in its `title`,
which is shown where the mouse is, and in a table, for keyboards, screen readers and touch.
"""

from __future__ import annotations

from itertools import groupby

from cpbpe.spelling import counted
from cpbpe.text.drawn import (
    HTML_COLOURS,
    MAX_SPELLED,
    Direction,
    direction,
    escaped,
    in_html,
    isolated,
    parts_of,
    spelled,
)
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.cells import Cell, Drawing, Group, given_text

_WHOLE = "line-height:1.8;font-family:ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere"
_TOKEN = "display:inline-block;max-width:100%;line-height:1.4;border-radius:3px;padding:0 2px;margin:1px"
_STYLES = {
    "text": "",
    "byte": "",
    "special": ";outline:1px solid currentColor;outline-offset:-1px;font-weight:bold",
    "unknown": ";outline:1px dashed currentColor;outline-offset:-1px",
    "removed": ";opacity:.6;text-decoration:line-through",
}
_GROUP = "display:inline-block;max-width:100%;line-height:1.4;border-radius:3px;margin:1px;padding:0 2px"
_NOTES = {
    "text": "",
    "byte": "a byte of a character that has no piece",
    "special": "special token",
    "unknown": "unknown: no piece has this text",
    "removed": "no token came from this text",
}
_UNITS = {"char": ("character", "characters"), "byte": ("byte", "bytes")}
_MOST_IN_TITLE = 60


def html_of(shown: Drawing) -> str:
    """The fragment."""
    encoding = shown.encoding
    text = given_text(encoding)
    summary = f"{counted(len(encoding.ids), 'token')}, {counted(len(text), _UNITS[encoding.unit][0])}"
    if not shown.groups:
        rest = escaped(shown.rest or "no tokens")
        return f'<div role="group" aria-label="{summary}">{rest}</div>'
    drawn = _drawn(shown)
    given = encoding.text if isinstance(encoding.text, str) else text_of(encoding.text[:1000])
    base = direction(given[:1000]) or "ltr"
    rest = f"<div>{escaped(shown.rest)}</div>" if shown.rest else ""
    return (
        f'<div role="group" aria-label="{summary}"><div dir="{base}" style="{_WHOLE}">{drawn}</div>{rest}'
        f"<details><summary>{summary}</summary>{_table(shown)}</details></div>"
    )


# --- Tokens ---------------------------------------------------------------------------------------


def _drawn(shown: Drawing) -> str:
    """All tokens; neighbours of one direction in an element of that direction."""
    groups = shown.groups
    directions = _directions([_direction(group) for group in groups])
    rows = zip(groups, directions, range(len(groups)), strict=True)
    several = len(set(directions)) > 1
    made = ""
    for way, members in groupby(rows, key=lambda row: row[1]):
        line = "".join(_group(shown, group, index) for group, _, index in members)
        made += f'<bdi dir="{way}">{line}</bdi>' if several else line
    return made


def _direction(group: Group) -> Direction:
    """The direction of a group. A special token, whatever it is called, has none."""
    if group.cells[0].kind == "special":
        return ""
    text = text_of(b"".join(cell.data for cell in group.cells))
    return direction(text) or ("ltr" if any(map(str.isdigit, text)) else "")


def _directions(found: list[Direction]) -> list[Direction]:
    """The direction that each token is read in. (Digits run from left to right in every script.)

    One without a letter goes with its neighbours if these agree, and otherwise with the text.
    """
    left: Direction = "ltr"
    base = next((way for way in found if way), left)
    before = _carried(found, base)
    after = _carried(found[::-1], base)[::-1]
    return [one if one == other else base for one, other in zip(before, after, strict=True)]


def _carried(found: list[Direction], way: Direction) -> list[Direction]:
    """Each direction, or the last one that there was."""
    made: list[Direction] = []
    for one in found:
        way = one or way
        made.append(way)
    return made


def _group(shown: Drawing, group: Group, index: int) -> str:
    """One token, or several that share characters, in a frame with what they spell together."""
    colour = HTML_COLOURS[index % len(HTML_COLOURS)]
    if len(group.cells) == 1:
        return _token(shown, group.cells[0], colour, "")
    label = spelled(group.together, MAX_SPELLED)
    inner = "".join(_token(shown, cell, colour, label) for cell in group.cells)
    together = in_html(parts_of(group.together, MAX_SPELLED))
    head = f'<bdi style="padding:0 2px">{together}</bdi>'
    outline = f"{_GROUP};outline:1px solid {colour}"
    breaks = "<br>" if group.cells[-1].data.endswith(b"\n") else ""
    return f'<span style="{outline}">{head}{inner}</span>{breaks}'


def _token(shown: Drawing, cell: Cell, colour: str, label: str) -> str:
    background = "" if cell.kind == "removed" else f";background-color:{colour}"
    style = f"{_TOKEN}{background}{_STYLES[cell.kind]}"
    tag = "del" if cell.kind == "removed" else "bdi"
    title = " · ".join(_facts(shown, cell, label))
    drawn = in_html(parts_of(cell.data))
    breaks = "<br>" if cell.data.endswith(b"\n") and not label else ""
    return f'<{tag} style="{style}" title="{escaped(title)}">{drawn}</{tag}>{breaks}'


def _facts(shown: Drawing, cell: Cell, label: str) -> list[str]:
    """What is known about a token, for its title."""
    facts = [] if cell.number < 0 else [f"id {cell.id}", f"piece {_name(shown, cell)}"]
    if cell.number >= 0:
        facts.append(f"text {isolated(spelled(cell.surface, _MOST_IN_TITLE)) or '(none)'}")
    begin, end = cell.span
    facts.append(f"{_UNITS[shown.encoding.unit][1]} {begin}–{end}")
    facts += [_score(shown, cell)] if cell.score is not None else []
    facts += [_NOTES[cell.kind]] if _NOTES[cell.kind] else []
    return [*facts, f"a part of {isolated(label)}"] if label else facts


def _name(shown: Drawing, cell: Cell) -> str:
    """The piece as the vocabulary spells it; of bytes that are no text, their escapes."""
    if cell.kind == "byte":
        return shown.encoding.pieces[cell.number]
    return isolated(spelled(cell.data, _MOST_IN_TITLE))


def _score(shown: Drawing, cell: Cell) -> str:
    """The score; in a byte-level model, where it is a rank with a minus sign, the rank."""
    facts, score = shown.encoding.facts, cell.score or 0.0
    return f"rank {0 - score:.0f}" if facts is not None and facts.is_byte_level else f"score {score}"


# --- The table ------------------------------------------------------------------------------------


def _table(shown: Drawing) -> str:
    """The tokens with everything about them, a row each."""
    unit = _UNITS[shown.encoding.unit][1]
    facts = shown.encoding.facts
    score = "rank" if facts is not None and facts.is_byte_level else "score"
    head = "".join(f"<th>{name}</th>" for name in ("", "id", "piece", "text", unit, score, ""))
    rows = "".join(_row(shown, cell) for group in shown.groups for cell in group.cells)
    style = "border-spacing:.7em 0;text-align:left"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _row(shown: Drawing, cell: Cell) -> str:
    begin, end = cell.span
    score = "" if cell.score is None else _score(shown, cell).partition(" ")[2]
    is_token = cell.number >= 0
    columns = (
        str(cell.number) if is_token else "",
        str(cell.id) if is_token else "",
        escaped(_name(shown, cell)) if is_token else "",
        in_html(parts_of(cell.surface, _MOST_IN_TITLE)),
        f"{begin}–{end}",
        score,
        escaped(_NOTES[cell.kind]),
    )
    return "<tr>" + "".join(f"<td><bdi>{column}</bdi></td>" for column in columns) + "</tr>"
