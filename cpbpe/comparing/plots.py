"""Bars as SVG: no script, nothing from elsewhere, readable in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

COLOURS = ("#3b6fb6", "#c8553d", "#4f8a3c", "#8a63b3", "#b07d12", "#2a8c8c", "#b34a83", "#6b6b6b")
"""One for each model, again from the first after the last. Each can be told from white and from black."""

_BAR = 14
_GAP = 10
_LABEL = 18
"""The line above the bars of a row, with its name: beside them, a telephone would have no room for both."""
_VALUE = 78
_WIDTH = 420
"""Wide enough on a screen, and so narrow that a telephone hardly has to make the letters smaller."""


def bars(
    rows: Sequence[tuple[str, Sequence[float | None]]], models: Sequence[str], form: str, title: str
) -> str:
    """A group of bars for each row, a bar for each model; `form` says how numbers are written.

    What is drawn is also said in words, to those who cannot see it: the table above has the same numbers.
    """
    most = max((value for _, values in rows for value in values if value is not None), default=0) or 1
    parts: list[str] = []
    top = 0
    for label, values in rows:
        parts.append(_text(0, top + _LABEL - 6, label))
        top += _LABEL
        for number, value in enumerate(values):
            y = top + number * _BAR
            if value is not None:
                length = max(value / most * (_WIDTH - _VALUE), 1)
                name = escape(f"{label}, {models[number]}: {format(value, form)}")
                colour = COLOURS[number % len(COLOURS)]
                parts.append(
                    f'<rect x="0" y="{y + 1}" width="{length:.1f}" height="{_BAR - 2}" rx="2" '
                    f'fill="{colour}"><title>{name}</title></rect>'
                )
                parts.append(_text(length + 6, y + _BAR - 3, format(value, form)))
        top += len(values) * _BAR + _GAP
    return (
        f'<svg viewBox="0 0 {_WIDTH} {max(top, 1)}" role="img" aria-label="{escape(title)}" '
        f'width="{_WIDTH}" height="{max(top, 1)}">{"".join(parts)}</svg>'
    )


def legend(models: Sequence[str]) -> str:
    """Which colour is which model."""
    items = (
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" '
        f'fill="{COLOURS[number % len(COLOURS)]}"/></svg> {escape(name)}</li>'
        for number, name in enumerate(models)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _text(x: float, y: float, text: str) -> str:
    cut = text if len(text) <= 48 else f"{text[:47]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(cut)}</text>'
