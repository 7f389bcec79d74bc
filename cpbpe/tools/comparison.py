"""The result of `cpbpe.compare`: its numbers, and how they are shown in a terminal and in a browser.

The page is one file that needs nothing else: no script, no font, no request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from cpbpe.spelling import counted
from cpbpe.text.drawn import Lines, fitted, html_table, shown

GROUPS = {
    "formats": "The same ten records in several formats: tokens, and × JSON",
    "digits": "A number of 1 to 12 digits, alone: tokens on average",
    "indentation": "A function of 12 lines, indented in several ways: tokens, and × no indentation",
}
REFERENCES = {"formats": "JSON", "digits": None, "indentation": "none"}
"""The probe of each group that the others are relative to."""
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
        return f'<div class="cpbpe"><style>{_STYLE}</style>{"".join(_sections(self))}</div>'

    def lines(self, columns: int = 100) -> list[str]:
        """The report for a terminal of this width."""
        return _lines(self, columns)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<cpbpe.Comparison: {counted(len(self.models), 'model')}, {counted(len(self.texts), 'text')}>"


# --- What is shown --------------------------------------------------------------------------------

Measure = Callable[[Cell], float | None]


def _model_rows(comparison: Comparison) -> list[list[str]]:
    rows = []
    for model in comparison.models:
        speed = _number(model.megabytes_per_second, ".3g")
        rows.append([model.name, model.library, f"{model.size:,}", speed])
    return rows


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _measures(comparison: Comparison) -> dict[str, tuple[str, str, Measure]]:
    """By title, what is measured of a cell: a note for readers, a format for the number, and a function."""

    def per_token(cell: Cell) -> float | None:
        return comparison.text(cell.text).characters / cell.tokens if cell.tokens else None

    def per_word(cell: Cell) -> float | None:
        words = comparison.text(cell.text).words
        return cell.tokens / words if words else None

    a_word = "A word is a run of characters that are not white space. In scripts without spaces this says "
    evenly = "How evenly ids are used: 1 if all are equally frequent (of order 2.5)."
    return {
        "Characters for each token": ("", ".2f", per_token),
        "Tokens for each word": (f"{a_word}nothing.", ".2f", per_word),
        "Rényi efficiency": (evenly, ".3f", lambda cell: cell.renyi_efficiency),
    }


def _costs(comparison: Comparison, group: str) -> dict[str, list[float]]:
    """The tokens of each probe of a group, one number for each model."""
    costs: dict[str, list[float]] = {}
    for probe in comparison.probes:
        if probe.group == group:
            costs.setdefault(probe.name, []).append(probe.tokens)
    return costs


def _lines(comparison: Comparison, columns: int) -> list[str]:
    made = Lines(columns)
    names = [model.name for model in comparison.models]
    made.table([["model", "library", "ids", "MB/s"], *_model_rows(comparison)])

    def by_text(title: str, of: Callable[[Cell], str]) -> None:
        made.lines += ["", title]
        rows = [
            [text.name, *(of(comparison[name, text.name]) for name in names)] for text in comparison.texts
        ]
        made.table([["text", *names], *rows])

    def tokens(cell: Cell) -> str:
        price = comparison.price(cell.model, cell.text)
        return f"{cell.tokens:,}" + ("" if price is None else f"  {price:.2f} ×")

    def parts(cell: Cell) -> str:
        if not cell.tokens:
            return "–"
        unknown = f" + {cell.unknown_tokens / cell.tokens:.2%} unknown" if cell.unknown_tokens else ""
        return f"{cell.byte_tokens / cell.tokens:.2%}{unknown}"

    # 1. Every text with every model.
    by_text("Tokens" + ("" if comparison.base is None else f", and × {shown(comparison.base)}"), tokens)
    for title, (_, form, value) in _measures(comparison).items():
        if title == "Rényi efficiency" and any(c.byte_tokens or c.unknown_tokens for c in comparison.cells):
            by_text("Tokens that are bytes or parts of characters", parts)
        by_text(title, lambda cell, value=value, form=form: _number(value(cell), form))  # type: ignore[misc]
    # 2. What is lost.
    if changed := [cell for cell in comparison.cells if cell.changed]:
        made.lines += ["", "Decoding does not give back"]
    for cell in changed:
        made.lines.append(
            f"  {shown(cell.model)}, {shown(cell.text)}: {cell.changed:,} of {cell.checked:,} documents, "
            f"such as {fitted(shown(cell.example or ''), 40)}"
        )
    if wrong := [text for text in comparison.texts if text.replaced]:
        made.lines += ["", "Not valid Unicode, read with U+FFFD"]
    for text in wrong:
        made.lines.append(f"  {shown(text.name)}: {text.replaced:,} of {counted(text.documents, 'document')}")
    # 3. The probes.
    for group, title in GROUPS.items():
        if costs := _costs(comparison, group):
            made.lines += ["", title]
            base = costs.get(REFERENCES[group] or "")
            made.table([["", *names], *([name, *_written(row, base)] for name, row in costs.items())])
    return made.lines


def _written(costs: Sequence[float], base: Sequence[float] | None) -> list[str]:
    """The tokens of a probe with each model, and relative to those of the probe `base`, if there is one."""
    if base is None:
        return [f"{cost:,.2f}" for cost in costs]
    return [f"{cost:,.0f}  {cost / max(one, 1):.2f} ×" for cost, one in zip(costs, base, strict=True)]


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

Plot = list[tuple[str, list[float | None]]]


def _sections(comparison: Comparison) -> Iterator[str]:
    names = [model.name for model in comparison.models]

    def measured(title: str, note: str, form: str, of: Measure) -> Iterator[str]:
        values: Plot = [
            (text.name, [of(comparison[name, text.name]) for name in names]) for text in comparison.texts
        ]
        return _section(title, note, names, values, form)

    # 1. The models.
    yield "<h1>What texts cost</h1>"
    yield _table(["Model", "Library", "Ids", "MB/s"], _model_rows(comparison))
    items = (
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" '
        f'fill="{_COLOURS[number % len(_COLOURS)]}"/></svg> {escape(shown(name))}</li>'
        for number, name in enumerate(names)
    )
    yield f'<ul class="legend">{"".join(items)}</ul>'
    # 2. Every text with every model.
    if comparison.base is not None:
        note = f"How many tokens a text has for each of “{shown(comparison.base)}”."
        yield from measured("Price", note, ".2f", lambda cell: comparison.price(cell.model, cell.text))
    yield from measured("Tokens", "", ",.0f", lambda cell: cell.tokens)
    for title, (note, form, value) in _measures(comparison).items():
        if title == "Rényi efficiency" and any(cell.byte_tokens for cell in comparison.cells):
            parts = "Tokens that are single bytes, or parts of characters, in percent."
            yield from measured(
                "Bytes", parts, ".2f", lambda c: 100 * c.byte_tokens / c.tokens if c.tokens else None
            )
        yield from measured(title, note, form, value)
    # 3. What is lost.
    if lost := [cell for cell in comparison.cells if cell.changed]:
        yield "<h2>Decoding does not give back</h2>"
        yield _table(
            ["Model", "Text", "Documents", "Such as"],
            [[c.model, c.text, f"{c.changed:,} of {c.checked:,}", (c.example or "")[:60]] for c in lost],
        )
    if wrong := [text for text in comparison.texts if text.replaced]:
        yield "<h2>Not valid Unicode, read with U+FFFD</h2>"
        rows = [[text.name, f"{text.replaced:,} of {text.documents:,}"] for text in wrong]
        yield _table(["Text", "Documents"], rows)
    # 4. The probes.
    for group, title in GROUPS.items():
        if costs := _costs(comparison, group):
            heading, _, note = title.partition(":")
            note = f"{note.strip().partition(',')[0].capitalize()}."
            form = ",.2f" if REFERENCES[group] is None else ",.0f"
            values: Plot = [(name, [*row]) for name, row in costs.items()]
            yield from _section(heading, note, names, values, form)


def _section(title: str, note: str, names: list[str], values: Plot, form: str) -> Iterator[str]:
    """Numbers as a table and as bars."""
    yield f"<h2>{escape(title)}</h2>"
    if note:
        yield f"<p>{escape(note)}</p>"
    yield _table(["", *names], [[label, *(_number(value, form) for value in row)] for label, row in values])
    yield _bars([(shown(label), row) for label, row in values], [shown(name) for name in names], form, title)


def _table(head: list[str], rows: list[list[str]]) -> str:
    drawn = [[escape(shown(cell)) for cell in row] for row in (head, *rows)]
    table = html_table(drawn[0], drawn[1:], ' dir="auto"')
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


def _bars(rows: Plot, models: Sequence[str], form: str, title: str) -> str:
    """A group of bars for each row, a bar for each model; `form` says how numbers are written.

    For readers who cannot see the bars, each one has its value as a title, and the table above has the same
    numbers.
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
