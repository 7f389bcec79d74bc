"""Steps as HTML, for notebooks: the merges one by one, each with the reason, and below them the tree.

The rules of drawing are those of `cpbpe/text/drawn.py`. There are no scripts and no style sheets.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cpbpe.reference.tree import AnyStep, Node
from cpbpe.text.drawn import FONT, HTML_COLOURS, MORE, chip, direction, html_table, in_html, parts_of
from cpbpe.text.utf8 import text_of

_MOST_SYMBOLS = 60
"""Of a text with more symbols, those near the place of the step are drawn."""
_CHOSEN = f"background-color:{HTML_COLOURS[1]};border-radius:3px;padding:0 2px;white-space:nowrap"
_MAX_DEPTH = 50
"""A deeper tree is cut: nobody can read it, and browsers are slow with it."""
_NODE = "display:inline-block;vertical-align:bottom;text-align:center"
_BOX = "display:block;margin:1px;padding:0 3px;border-radius:3px"


def step_html(step: AnyStep) -> str:
    """One step."""
    return _table([step], [""])


def steps_html(drawn: Sequence[AnyStep], more: str, roots: Sequence[Node], ids: Sequence[int]) -> str:
    """Steps, what is to be said about those that are not drawn, and the tree."""
    if not drawn:
        return f"<div>{escape(more)}</div>"
    if more:
        table = _table(drawn[:-1], list(map(str, range(len(drawn) - 1))))
        table += f"<div>{escape(more)}</div>" + _table(drawn[-1:], [""])
    else:
        table = _table(drawn, list(map(str, range(len(drawn)))))
    if not roots:
        return f"<div>{table}</div>"
    trees = "".join(_tree(root, str(id)) for root, id in zip(roots, ids, strict=True))
    style = f"{FONT};overflow-x:auto;white-space:nowrap;margin-top:.7em"
    role = 'role="group" aria-label="how the symbols merged, and the ids"'
    return f'<div>{table}<div {role} dir="{_way(drawn[0])}" style="{style}">{trees}</div></div>'


def _way(step: AnyStep) -> str:
    """The direction of the text."""
    return direction(text_of(b"".join(step.symbols))) or "ltr"


# --- Rows -----------------------------------------------------------------------------------------


def _table(steps: Sequence[AnyStep], numbers: Sequence[str]) -> str:
    """The steps: the number of each, its kind, the symbols before it, and the reason."""
    rows = (
        [
            number,
            step.kind,
            f'<div dir="{_way(step)}" style="{FONT}">{_symbols(step)}</div>',
            f"<bdi>{escape(step.explained())}</bdi>",
        ]
        for step, number in zip(steps, numbers, strict=True)
    )
    return html_table(("", "step", "symbols", "why"), rows)


def _symbols(step: AnyStep) -> str:
    """The symbols before a step, those that it changes marked."""
    first, last = 0, len(step.symbols)
    if last > _MOST_SYMBOLS:
        first = max(0, min(step.begin - _MOST_SYMBOLS // 2, last - _MOST_SYMBOLS))
        last = first + _MOST_SYMBOLS
    line = MORE if first else ""
    for place in range(first, last):
        symbol = f"<bdi>{in_html(parts_of(step.symbols[place]))}</bdi>"
        opened = f'<mark style="{_CHOSEN};color:inherit">' if place == step.begin < step.end else ""
        closed = "</mark>" if step.begin < step.end == place + 1 else ""
        line += f"{step.between(place)}{opened}{symbol}{closed}"
    return line + (f" {MORE}" if last < len(step.symbols) else "")


# --- Trees ----------------------------------------------------------------------------------------


def _tree(node: Node, id: str = "", depth: int = 0) -> str:
    """A symbol above the symbols that it was made of; the last symbols with their ids above them."""
    colour = HTML_COLOURS[node.number % len(HTML_COLOURS)]
    made = node.number > 0
    style = f"{_BOX};background-color:{colour}" if made else f"{_BOX};outline:1px solid {HTML_COLOURS[0]}"
    title = f"{node.number}: {node.why}" if made else "a symbol at the beginning"
    head = f'<small style="display:block;opacity:.7">{id}</small>' if id else ""
    number = f"<small>&nbsp;{node.number}</small>" if made else ""
    if depth < _MAX_DEPTH:
        parts = "".join(_tree(part, "", depth + 1) for part in node.parts)
    else:
        parts = MORE if node.parts else ""
    box = chip(node.symbol, style, title, "bdi", number)
    return f'<span style="{_NODE}{";margin:0 .3em" if id else ""}">{head}{box}{parts}</span>'
