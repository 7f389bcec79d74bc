"""Reports, written once and drawn twice: as lines in a terminal, and as HTML for a browser or a notebook.

A report is a `Drawn`: its method `draw` says what is in it, and calls the methods that `Lines` (`drawn.py`)
and `Page` both have. A page is one file that needs nothing else: no script, no font, no request. What it says
comes from models and texts of unknown origin, so `Page` escapes every text that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TypeAlias

from cpbpe.text.drawn import SYMBOLS, Lines, Marks, fitted, gathered, html_table, shown

COLOURS = ("#3b6fb6", "#c8553d", "#4f8a3c", "#8a63b3", "#b07d12", "#2a8c8c", "#b34a83", "#6b6b6b")
"""Colours of bars and lines. Each is visible on white and on black."""

_BULLETS = {"-": "•", ">": "→"}
"""What stands in front of paragraphs, where a terminal has plainer characters."""
_STYLE = """
.cpbpe{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
.cpbpe h1,.cpbpe h2,.cpbpe h3{overflow-wrap:anywhere}
.cpbpe h1{font-size:1.5rem;margin:0 0 .5rem}
.cpbpe h2{font-size:1.1rem;margin:2rem 0 .5rem}
.cpbpe h3{font-size:1rem;margin:1.5rem 0 .25rem}
.cpbpe .wide{overflow-x:auto}
.cpbpe table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.cpbpe th,.cpbpe td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #8884;white-space:nowrap}
.cpbpe th:first-child,.cpbpe td:first-child{text-align:left;padding-left:0}
.cpbpe thead th{border-bottom:2px solid #888a}
.cpbpe svg[role]{max-width:100%;height:auto;display:block;margin:1rem 0}
.cpbpe svg text{font:12px system-ui,sans-serif;fill:currentColor}
.cpbpe .beside{display:flex;flex-wrap:wrap;gap:0 2rem;align-items:flex-start}
.cpbpe .bar{width:min(12rem,30vw);display:block}
.cpbpe .legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:0;margin:1rem 0}
.cpbpe p,.cpbpe .row{overflow-wrap:anywhere;white-space:pre-wrap}
.cpbpe p{max-width:45rem;margin:.25rem 0}
.cpbpe .row{display:grid;grid-template-columns:clamp(6.5rem,25vw,9rem) minmax(0,1fr);gap:0 1rem}
.cpbpe .wide+.row{margin-top:.5rem}
.cpbpe .row b{font-weight:600}
.cpbpe [data-tone]{padding:.1rem .4rem;border-radius:.25rem}
.cpbpe [data-tone=best]{background:#4f8a3c44}
.cpbpe [data-tone=worst],.cpbpe [data-tone=error]{background:#c8553d44}
.cpbpe [data-tone=warning]{background:#b07d1244}
.cpbpe [data-tone=note]{background:#3b6fb644}
""".strip().replace("\n", "")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>body{{margin:0}}</style>
</head>
<body>
<main>{body}</main>
</body>
</html>
"""


class Page:
    """A report as HTML. It has the methods of `Lines`, which say what is drawn."""

    def __init__(self) -> None:
        self._title = ""
        self._parts: list[str] = []

    def title(self, text: str) -> None:
        """What begins a section; the first one is the title of the page."""
        level = 2 if self._title else 1
        self._title = self._title or text
        self._parts.append(f'<h{level} dir="auto">{escape(text)}</h{level}>')

    def heading(self, tone: str, text: str) -> None:
        """A smaller one that begins with a word in its colour."""
        self._parts.append(f'<h3><span data-tone="{tone}">{tone}</span> {escape(text)}</h3>')

    def row(self, label: str, text: str, most: int | None = None) -> None:
        """A label with a text. (Nothing is cut here, whatever `most` says to a terminal.)"""
        self._parts.append(
            f'<div class="row"><b>{escape(label)}</b><span dir="auto">{escape(text)}</span></div>'
        )

    def text(self, text: str, first: str = "", others: str = "", most: int | None = None) -> None:
        """A paragraph, as far to the right as in a terminal, with what stands in front of it there."""
        mark = first.strip()
        indent, hanging = len(first) - len(first.lstrip()), 1 if mark else 0
        style = f"padding-left:{indent + hanging}ch;text-indent:-{hanging}ch"
        whole = f"{_BULLETS.get(mark, mark)} {text}".strip()
        self._parts.append(f'<p dir="auto" style="{style}">{escape(whole)}</p>')

    def bars(self, counts: Mapping[str, int]) -> None:
        """Counts, each with its share of all, and a bar."""
        total, largest = sum(counts.values()), max(counts.values())
        head = ["", "number", "share", ""]
        rows = [
            [
                *(escape(label), f"{count:,}", f"{count / total:.1%}"),
                f'<svg class="bar" height="10" aria-hidden="true"><rect width="{100 * count / largest:.1f}%" '
                f'height="10" rx="2" fill="{COLOURS[0]}"/></svg>',
            ]
            for label, count in gathered(counts)
        ]
        self._scrolled(html_table(head, rows, ""))

    def table(self, rows: Sequence[Sequence[str]], marks: Marks | None = None) -> None:
        """Rows, the first of them the head."""
        tones = marks or {}
        drawn = [
            [_marked(escape(shown(cell)), tones.get((number, place), "")) for place, cell in enumerate(row)]
            for number, row in enumerate(rows)
        ]
        self._scrolled(html_table(drawn[0], drawn[1:], ' dir="auto"'))

    def _scrolled(self, table: str) -> None:
        self._parts.append(f'<div class="wide" tabindex="0">{table}</div>')

    def figure(self, html: str) -> None:
        """HTML, as it is: a drawing."""
        self._parts.append(html)

    def fragment(self) -> str:
        """The report for a notebook."""
        return f'<div class="cpbpe"><style>{_STYLE}</style>{"".join(self._parts)}</div>'

    def document(self) -> str:
        """The report as a file."""
        return _PAGE.format(title=escape(self._title), body=self.fragment())


def _marked(cell: str, tone: str) -> str:
    return f'<span data-tone="{tone}">{cell} {SYMBOLS[tone]}</span>' if tone else cell


Canvas: TypeAlias = Lines | Page
"""What a report is drawn on."""


class Drawn:
    """A report: what `draw` says, in a terminal, as a page, and in a notebook."""

    def draw(self, on: Canvas) -> None:
        """Draw the report."""
        raise NotImplementedError

    def lines(self, columns: int = 100, colours: bool = False) -> list[str]:
        """The report for a terminal of this width."""
        on = Lines(columns, colours)
        self.draw(on)
        return on.lines

    def html(self) -> str:
        """A page in one file that needs nothing else."""
        return self._page().document()

    def _repr_html_(self) -> str:
        return self._page().fragment()

    def _page(self) -> Page:
        on = Page()
        self.draw(on)
        return on

    def __str__(self) -> str:
        return "\n".join(self.lines())


# --- Parts of drawings ----------------------------------------------------------------------------


def svg(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    """A drawing of this size; `label` says what it shows, for those who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}">{"".join(parts)}</svg>'
    )


def svg_text(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A short text in a drawing: where it begins, or ends if `anchor` is "end"."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(fitted(text, 48))}</text>'
