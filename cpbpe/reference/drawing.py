"""Steps as HTML, for notebooks: the merges one by one, each with the reason, and below them the tree.

The rules of drawing are those of `cpbpe/text/drawn.py`. There are no scripts and no style sheets.
"""

from __future__ import annotations

from collections.abc import Sequence

from cpbpe.reference.tree import AnyStep, Node
from cpbpe.text.drawn import HTML_COLOURS, MORE, direction, escaped, in_html, parts_of
from cpbpe.text.utf8 import text_of

_MOST_SYMBOLS = 60
"""Of a text with more symbols, those near the place of the step are drawn."""
_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace"
_CELL = "text-align:left;vertical-align:top;padding:1px .7em 1px 0"
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
        return f"<div>{escaped(more)}</div>"
    if more:
        table = _table(drawn[:-1], list(map(str, range(len(drawn) - 1))))
        table += f"<div>{escaped(more)}</div>" + _table(drawn[-1:], [""])
    else:
        table = _table(drawn, list(map(str, range(len(drawn)))))
    if not roots:
        return f"<div>{table}</div>"
    trees = "".join(_tree(root, str(id)) for root, id in zip(roots, ids, strict=True))
    style = f"{_FONT};overflow-x:auto;white-space:nowrap;margin-top:.7em"
    role = 'role="group" aria-label="how the symbols merged, and the ids"'
    return f'<div>{table}<div {role} dir="{_way(drawn[0])}" style="{style}">{trees}</div></div>'


def _way(step: AnyStep) -> str:
    """The direction of the text."""
    return direction(text_of(b"".join(step.symbols))) or "ltr"


# --- Rows -----------------------------------------------------------------------------------------


def _table(steps: Sequence[AnyStep], numbers: Sequence[str]) -> str:
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("", "step", "symbols", "why"))
    rows = "".join(_row(step, number) for step, number in zip(steps, numbers, strict=True))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(step: AnyStep, number: str) -> str:
    """A step: its number, its kind, the symbols before it, and the reason."""
    symbols = f'<td dir="{_way(step)}" style="{_CELL};{_FONT}">{_symbols(step)}</td>'
    why = f'<td style="{_CELL}"><bdi>{escaped(step.explained())}</bdi></td>'
    return f'<tr><td style="{_CELL}">{number}</td><td style="{_CELL}">{step.kind}</td>{symbols}{why}</tr>'


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
    symbol = f"<bdi>{in_html(parts_of(node.symbol))}</bdi>"
    if depth < _MAX_DEPTH:
        parts = "".join(_tree(part, "", depth + 1) for part in node.parts)
    else:
        parts = MORE if node.parts else ""
    box = f'<span style="{style}" title="{escaped(title)}">{symbol}{number}</span>'
    return f'<span style="{_NODE}{";margin:0 .3em" if id else ""}">{head}{box}{parts}</span>'
