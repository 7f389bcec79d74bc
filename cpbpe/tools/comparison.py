"""The result of `cpbpe.compare`: its numbers, and how they are shown in a terminal and in a browser.

The page is one file that needs nothing else: no script, no font, no request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import zip_longest
from typing import Any, NamedTuple

from cpbpe.spelling import counted
from cpbpe.text.drawn import Lines, html_table, shown

GROUPS = {
    "formats": ("The same ten records in several formats: tokens", "JSON", "JSON"),
    "digits": ("A number of 1 to 12 digits, alone: tokens on average", None, ""),
    "indentation": ("A function of 12 lines, indented in several ways: tokens", "none", "no indentation"),
}
"""The groups of probes: a title, the probe that the others are relative to, and what to call that one."""
_COLUMNS = (
    *("model", "text", "tokens", "bytes", "characters", "words"),
    *("tokens_per_byte", "tokens_per_character", "tokens_per_word", "price", "byte_tokens", "byte_share"),
    *("unknown_tokens", "used", "renyi_efficiency", "megabytes_per_second", "checked", "changed"),
)
"""The columns of CSV."""


@dataclass(frozen=True)
class ComparedModel:
    """One of the models."""

    name: str
    library: str
    """The library that encoded: "cpbpe", "tiktoken", "tokenizers" or "sentencepiece"."""
    size: int
    """The number of ids."""
    megabytes_per_second: float | None
    """How fast it encoded text to lists, on one thread, after a warm-up: the median of the rounds."""


@dataclass(frozen=True)
class ComparedText:
    """One of the texts."""

    name: str
    documents: int
    bytes: int
    characters: int
    words: int
    """Runs of characters that are not white space. In scripts without spaces they mean nothing."""
    replaced: int = 0
    """Documents that were not valid Unicode. They were read with U+FFFD in the place of what is wrong."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files of folders that were not read, and why."""


@dataclass(frozen=True)
class Cell:
    """One text with one model."""

    model: str
    text: str
    tokens: int
    used: int
    """How many different ids occur."""
    byte_tokens: int
    """Tokens that are single bytes, or parts of characters."""
    unknown_tokens: int
    renyi_efficiency: float | None
    """How evenly ids are used, from 0 to 1: the Rényi entropy (order 2.5), divided by its maximum."""
    checked: int
    """How many documents were decoded again."""
    changed: int
    """How many of them decoding did not give back."""
    example: str | None
    """The shortest of these."""


@dataclass(frozen=True)
class Probed:
    """What a probe costs with one model."""

    group: str
    """"formats", "digits" or "indentation"."""
    name: str
    model: str
    tokens: float
    """The number of tokens: the mean, if the probe has several texts."""
    example: tuple[str, ...]
    """The tokens of a number, or the first ones of another text."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """What texts cost with several models: the result of `cpbpe.compare`.

    >>> import cpbpe
    >>> found = cpbpe.compare("tokenizer.model", {"en": "good morning", "de": "guten Morgen"})
    >>> found
    <cpbpe.Comparison: 1 model, 2 texts>
    >>> found["tokenizer.model", "de"].tokens, found.price("tokenizer.model", "de")
    (5, 2.5)
    """

    models: tuple[ComparedModel, ...]
    texts: tuple[ComparedText, ...]
    cells: tuple[Cell, ...]
    """Every text with every model, text by text."""
    probes: tuple[Probed, ...]
    base: str | None
    """The text that prices are relative to."""

    def __getitem__(self, key: tuple[str, str]) -> Cell:
        """The cell of a model and a text, by their names."""
        for cell in self.cells:
            if (cell.model, cell.text) == tuple(key):
                return cell
        raise KeyError(f"there is no model and text {key!r}")

    def text(self, name: str) -> ComparedText:
        """A text, by its name."""
        for text in self.texts:
            if text.name == name:
                return text
        raise KeyError(f"there is no text {name!r}")

    def price(self, model: str, text: str) -> float | None:
        """The tokens of a text, divided by those of the base. None without a base, or if it is empty."""
        base = self[model, self.base].tokens if self.base is not None else 0
        return self[model, text].tokens / base if base else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each cell, with everything that is derived from it, and the model's speed."""
        speeds = {model.name: model.megabytes_per_second for model in self.models}
        for cell in self.cells:
            text = self.text(cell.text)
            row: dict[str, Any] = {**asdict(cell)}
            for name in ("bytes", "characters", "words"):
                whole: int = getattr(text, name)
                row[name] = whole
                row[f"tokens_per_{name[:-1]}"] = cell.tokens / whole if whole else None
            row["byte_share"] = cell.byte_tokens / cell.tokens if cell.tokens else None
            row["price"] = self.price(cell.model, cell.text)
            row["megabytes_per_second"] = speeds[cell.model]
            yield row

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON has."""
        return {
            "base": self.base,
            "models": [asdict(model) for model in self.models],
            "texts": [asdict(text) for text in self.texts],
            "rows": list(self.rows()),
            "probes": [{**asdict(probe), "example": list(probe.example)} for probe in self.probes],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def to_csv(self) -> str:
        """The rows as CSV, with a line of names; then the probes, with their group as the text."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.DictWriter(out, _COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        for probe in self.probes:
            writer.writerow(
                {"model": probe.model, "text": f"{probe.group}: {probe.name}", "tokens": f"{probe.tokens:g}"}
            )
        return out.getvalue()

    def html(self) -> str:
        """A page with tables and plots, in one file that needs nothing else."""
        names = ", ".join(model.name for model in self.models)
        return _PAGE.format(title=escape(f"{names}: what texts cost"), body=self._repr_html_())

    def _repr_html_(self) -> str:
        return f'<div class="cpbpe"><style>{_STYLE}</style>{"".join(_html(self))}</div>'

    def lines(self, columns: int = 100) -> list[str]:
        """The report for a terminal of this width."""
        made = Lines(columns)
        made.table(_models(self))
        for section in _sections(self):
            made.title(section.title + (f", and × {shown(section.called)}" if section.relative else ""))
            made.table(section.table(self))
        for title, rows in _losses(self):
            made.title(title)
            made.table(rows)
        return made.lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<cpbpe.Comparison: {counted(len(self.models), 'model')}, {counted(len(self.texts), 'text')}>"


# --- What is shown --------------------------------------------------------------------------------

Rows = dict[str, list["float | None"]]
"""A number for each model, by what stands in front of the row."""


class _Section(NamedTuple):
    """Numbers that are shown together, for texts or for probes."""

    title: str
    note: str
    """An explanation, if one is needed."""
    form: str
    """How the numbers are written."""
    rows: Rows
    base: str | None = None
    """The row that the others are relative to."""
    called: str = ""
    """What to call that row."""

    @property
    def relative(self) -> Rows:
        """All numbers, divided by those of the base; none without a base."""
        base = self.rows.get(self.base or "", [])
        return {
            label: [_ratio(value, one) for value, one in zip(values, base, strict=True)]
            for label, values in self.rows.items()
            if base
        }

    def table(self, comparison: Comparison) -> list[list[str]]:
        """The rows with their numbers, below the names of the models."""
        relative = self.relative
        table = [["", *(model.name for model in comparison.models)]]
        for label, values in self.rows.items():
            cells = [_number(value, self.form) for value in values]
            ratios = [f"  {_number(ratio, '.2f')} ×" for ratio in relative.get(label, ())]
            table.append([label, *map("".join, zip_longest(cells, ratios, fillvalue=""))])
        return table


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if whole and part is not None else None


def _sections(comparison: Comparison) -> Iterator[_Section]:
    """Everything that is measured of the texts, and then of the probes."""

    def by_text(measure: Callable[[Cell, ComparedText], float | None]) -> Rows:
        return {
            text.name: [measure(comparison[model.name, text.name], text) for model in comparison.models]
            for text in comparison.texts
        }

    # 1. The texts.
    base = comparison.base
    yield _Section("Tokens", "", ",.0f", by_text(lambda cell, _: cell.tokens), base, base or "")
    characters = by_text(lambda cell, text: _ratio(text.characters, cell.tokens))
    yield _Section("Characters for each token", "", ".2f", characters)
    note = "A word is a run of characters that are not white space. Without spaces, this says nothing."
    words = by_text(lambda cell, text: _ratio(cell.tokens, text.words))
    yield _Section("Tokens for each word", note, ".2f", words)
    if any(cell.byte_tokens for cell in comparison.cells):
        parts = by_text(lambda cell, _: _ratio(cell.byte_tokens, cell.tokens))
        yield _Section("Tokens that are bytes or parts of characters", "", ".2%", parts)
    if any(cell.unknown_tokens for cell in comparison.cells):
        unknown = by_text(lambda cell, _: _ratio(cell.unknown_tokens, cell.tokens))
        yield _Section("Tokens for unknown characters", "", ".2%", unknown)
    note = "How evenly ids are used: 1 if all are equally frequent (of order 2.5)."
    yield _Section("Rényi efficiency", note, ".3f", by_text(lambda cell, _: cell.renyi_efficiency))
    # 2. The probes.
    for group, (title, base, called) in GROUPS.items():
        rows: Rows = {}
        for probe in comparison.probes:
            if probe.group == group:
                rows.setdefault(probe.name, []).append(probe.tokens)
        if rows:
            yield _Section(title, "", ".2f" if base is None else ",.0f", rows, base, called)


def _models(comparison: Comparison) -> list[list[str]]:
    """The models, as a table."""
    return [
        ["model", "library", "ids", "MB/s"],
        *(
            [model.name, model.library, f"{model.size:,}", _number(model.megabytes_per_second, ".3g")]
            for model in comparison.models
        ),
    ]


def _losses(comparison: Comparison) -> Iterator[tuple[str, list[list[str]]]]:
    """Tables of what is lost, with their titles."""
    if lost := [cell for cell in comparison.cells if cell.changed]:
        rows = [[c.model, c.text, f"{c.changed:,} of {c.checked:,}", (c.example or "")[:60]] for c in lost]
        yield "Decoding does not give back", [["model", "text", "documents", "such as"], *rows]
    if wrong := [text for text in comparison.texts if text.replaced]:
        rows = [[text.name, f"{text.replaced:,} of {text.documents:,}"] for text in wrong]
        yield "Not valid Unicode, read with U+FFFD", [["text", "documents"], *rows]


# --- HTML -----------------------------------------------------------------------------------------

_STYLE = """
.cpbpe{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
.cpbpe h1{font-size:1.5rem;margin:0 0 .5rem}
.cpbpe h2{font-size:1.1rem;margin:2rem 0 .5rem}
.cpbpe .wide{overflow-x:auto}
.cpbpe table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.cpbpe th,.cpbpe td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #8884;white-space:nowrap}
.cpbpe th:first-child,.cpbpe td:first-child{text-align:left;padding-left:0}
.cpbpe thead th{border-bottom:2px solid #888a}
.cpbpe svg[role]{max-width:100%;height:auto;display:block;margin:1rem 0}
.cpbpe svg text{font:12px system-ui,sans-serif;fill:currentColor}
.cpbpe .legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:0;margin:1rem 0}
.cpbpe p{max-width:45rem}
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


def _html(comparison: Comparison) -> Iterator[str]:
    """The models, what is lost, and each section as a table and as bars."""
    names = [shown(model.name) for model in comparison.models]
    yield f"<h1>What texts cost</h1>{_table(_models(comparison))}"
    items = (
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" '
        f'fill="{_COLOURS[number % len(_COLOURS)]}"/></svg> {escape(name)}</li>'
        for number, name in enumerate(names)
    )
    yield f'<ul class="legend">{"".join(items)}</ul>'
    for title, rows in _losses(comparison):
        yield f"<h2>{escape(title)}</h2>{_table(rows)}"
    for section in _sections(comparison):
        yield f"<h2>{escape(section.title)}</h2>"
        if section.note:
            yield f"<p>{escape(section.note)}</p>"
        yield _table(section.table(comparison)) + _bars(section.rows, names, section.form, section.title)
        if section.relative:
            title = f"{section.title}, for each of “{shown(section.called)}”"
            yield f"<h2>{escape(title)}</h2>{_bars(section.relative, names, '.2f', title)}"


def _table(rows: list[list[str]]) -> str:
    head, *others = ([escape(shown(cell)) for cell in row] for row in rows)
    table = html_table(head, others, ' dir="auto"')
    return f'<div class="wide" tabindex="0">{table}</div>'


# --- Bars as SVG ----------------------------------------------------------------------------------

_COLOURS = ("#3b6fb6", "#c8553d", "#4f8a3c", "#8a63b3", "#b07d12", "#2a8c8c", "#b34a83", "#6b6b6b")
"""A colour for each model; after the last, they repeat. Each is visible on white and on black."""
_BAR = 14
_GAP = 10
_LABEL = 18
"""The height of a row's name, which stands above its bars: a telephone has no room for it beside them."""
_VALUE = 78
_WIDTH = 420
"""Wide enough for a screen, and narrow enough that a telephone hardly has to shrink the letters."""


def _bars(rows: Rows, models: Sequence[str], form: str, title: str) -> str:
    """A group of bars for each row, a bar for each model; `form` says how numbers are written.

    For readers who cannot see the bars, each one has its value as a title, and the table above has the same
    numbers.
    """
    most = max((value for values in rows.values() for value in values if value is not None), default=0) or 1
    parts: list[str] = []
    top = 0
    for label, values in ((shown(label), values) for label, values in rows.items()):
        parts.append(_text(0, top + _LABEL - 6, label))
        top += _LABEL
        for number, value in enumerate(values):
            y = top + number * _BAR
            if value is not None:
                length = max(value / most * (_WIDTH - _VALUE), 1)
                name = escape(f"{label}, {models[number]}: {format(value, form)}")
                parts.append(
                    f'<rect x="0" y="{y + 1}" width="{length:.1f}" height="{_BAR - 2}" rx="2" '
                    f'fill="{_COLOURS[number % len(_COLOURS)]}"><title>{name}</title></rect>'
                )
                parts.append(_text(length + 6, y + _BAR - 3, format(value, form)))
        top += len(values) * _BAR + _GAP
    return (
        f'<svg viewBox="0 0 {_WIDTH} {max(top, 1)}" role="img" aria-label="{escape(title)}" '
        f'width="{_WIDTH}" height="{max(top, 1)}">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str) -> str:
    cut = text if len(text) <= 48 else f"{text[:47]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(cut)}</text>'
