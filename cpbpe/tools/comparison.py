"""The result of `cpbpe.compare`: its numbers, and how they are shown in a terminal and in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from operator import itemgetter
from typing import Any, NamedTuple

from cpbpe.spelling import counted, listed
from cpbpe.text.drawn import SYMBOLS, Marks, shown
from cpbpe.text.pages import COLOURS, Canvas, Drawn, Page, svg, svg_text

GROUPS = {
    "formats": ("The same ten records in several formats: tokens", "JSON", "JSON"),
    "digits": ("A number of 1 to 12 digits, alone: tokens on average", None, ""),
    "indentation": ("A function of 12 lines, indented in several ways: tokens", "none", "no indentation"),
}
"""The groups of probes: a title, the probe that the others are relative to, and what to call that one."""
_MANY = 0.05
"""From this share on, tokens that are bytes or unknown are named among the findings."""
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
    """Runs of characters that are not white space."""
    spaced: bool
    """Whether these are words. They are not in Chinese, Japanese, Thai, Lao, Khmer and Burmese."""
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
class Comparison(Drawn):
    """What texts cost with several models: the result of `cpbpe.compare`.

    >>> import cpbpe
    >>> found = cpbpe.compare("tokenizer.model", {"en": "good morning", "de": "guten Morgen"}, base="en")
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
    """The text that prices are relative to; None if the texts do not say the same."""

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
        return _ratio(self[model, text].tokens, base)

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
            if not text.spaced:
                row["tokens_per_word"] = None
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

    def draw(self, on: Canvas) -> None:
        """Draw the report: first what was found, then every number."""
        names = [shown(model.name) for model in self.models]
        # 1. What was found.
        on.title(f"What texts cost with {listed(names)}")
        for finding in _findings(self):
            on.text(finding, "  - ", "    ")
        for title, rows in _losses(self):
            on.title(title)
            on.table(rows)
        # 2. The models.
        legend = f": {SYMBOLS['best']} marks the best number, {SYMBOLS['worst']} the worst"
        on.title(f"Models{legend if len(names) > 1 else ''}")
        speeds = [model.megabytes_per_second for model in self.models]
        on.table(_models(self), {(1 + place, 3): tone for place, tone in _toned(speeds, ".3g", MORE).items()})
        if isinstance(on, Page):
            on.figure(_legend(names))
        # 3. The numbers.
        for section in _sections(self):
            relative = section.relative
            on.title(section.title + (f", and × {shown(section.called)}" if relative else ""))
            if section.note:
                on.text(section.note, "", "")
            on.table(section.table(self), section.marks())
            if isinstance(on, Page):
                on.figure(_bars(section.rows, names, section.form, section.title))
                if relative:
                    title = f"{section.title}, for each of “{shown(section.called)}”"
                    on.title(title)
                    on.figure(_bars(relative, names, ".2f", title))

    def __repr__(self) -> str:
        return f"<cpbpe.Comparison: {counted(len(self.models), 'model')}, {counted(len(self.texts), 'text')}>"


# --- What is shown --------------------------------------------------------------------------------

Rows = dict[str, list["float | None"]]
"""A number for each model, by what stands in front of the row."""


FEWER, MORE = -1, 1
"""Which numbers are better."""


class _Section(NamedTuple):
    """Numbers that are shown together, for texts or for probes."""

    title: str
    note: str
    """An explanation, if one is needed."""
    form: str
    """How the numbers are written."""
    rows: Rows
    better: int = 0
    """FEWER or MORE; 0 if neither is better."""
    base: str | None = None
    """The row that the others are relative to."""
    called: str = ""
    """What to call that row."""

    @property
    def relative(self) -> Rows:
        """All numbers, divided by those of the base; none if there is no base, or nothing else."""
        base = self.rows.get(self.base or "", [])
        return {
            label: [_ratio(value, one) for value, one in zip(values, base, strict=True)]
            for label, values in self.rows.items()
            if base and len(self.rows) > 1
        }

    def table(self, comparison: Comparison) -> list[list[str]]:
        """The rows with their numbers, below the names of the models."""
        relative = self.relative
        table = [["", *(model.name for model in comparison.models)]]
        for label, values in self.rows.items():
            cells = [_number(value, self.form) for value in values]
            if relative:
                signs = ["–" if ratio is None else f"{ratio:.2f} ×" for ratio in relative[label]]
                cells = [f"{cell}{sign:>8}" for cell, sign in zip(cells, signs, strict=True)]
            table.append([label, *cells])
        return table

    def marks(self) -> Marks:
        """The best and the worst number of each row."""
        return {
            (row, 1 + place): tone
            for row, values in enumerate(self.rows.values(), 1)
            for place, tone in _toned(values, self.form, self.better).items()
        }


def _toned(values: Sequence[float | None], form: str, better: int) -> dict[int, str]:
    """Which of some numbers are the best and the worst; none if they are written alike.

    >>> _toned([3, None, 5, 3], ".0f", FEWER), _toned([1.001, 1.002], ".2f", MORE)
    ({0: 'best', 2: 'worst', 3: 'best'}, {})
    """
    known = sorted((value for value in values if value is not None), reverse=better == MORE)
    if not better or not known:
        return {}
    best, worst = _number(known[0], form), _number(known[-1], form)
    tones = {best: "best", worst: "worst"} if best != worst else {}
    written = {place: _number(value, form) for place, value in enumerate(values)}
    return {place: tones[text] for place, text in written.items() if text in tones}


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if whole and part is not None else None


def _findings(comparison: Comparison) -> Iterator[str]:
    """What the numbers say, in sentences."""
    names = [model.name for model in comparison.models]
    cells = comparison.cells
    # 1. Tokens of all texts. (Every model has encoded the same ones.)
    totals = [(sum(cell.tokens for cell in cells if cell.model == name), shown(name)) for name in names]
    (fewest, best), (most, worst) = min(totals, key=itemgetter(0)), max(totals, key=itemgetter(0))
    if fewest < most:
        more = f", {most / fewest - 1:.1%} more" if fewest else ""
        yield f"fewest tokens: {best}, {fewest:,} for all texts; most: {worst}, {most:,}{more}"
    elif len(names) > 1:
        yield f"all models need the same number of tokens, {fewest:,}"
    # 2. The text with the highest price.
    prices = [(comparison.price(cell.model, cell.text) or 0, cell) for cell in cells]
    highest, dearest = max(prices, key=itemgetter(0))
    if highest > 1:
        each = [
            f"{price:.2f} × with {shown(cell.model)}" for price, cell in prices if cell.text == dearest.text
        ]
        yield f"most expensive: {shown(dearest.text)}, beside {shown(comparison.base or '')} {listed(each)}"
    # 3. Bytes and unknown characters, where there are many.
    for what in ("byte_tokens", "unknown_tokens"):
        shares = [(_ratio(getattr(cell, what), cell.tokens) or 0, cell) for cell in cells]
        share, cell = max(shares, key=itemgetter(0))
        if share >= _MANY:
            are = "bytes or parts of characters" if what == "byte_tokens" else "unknown characters"
            yield f"{share:.1%} of the tokens of {shown(cell.text)} with {shown(cell.model)} are {are}"
    # 4. Time.
    speeds = [(model.megabytes_per_second or 0, shown(model.name)) for model in comparison.models]
    (fast, first), (slow, last) = max(speeds), min(speeds)
    if slow < fast:
        yield f"fastest: {first}, {fast:.3g} MB/s; slowest: {last}, {slow:.3g} MB/s"


def _sections(comparison: Comparison) -> Iterator[_Section]:
    """Everything that is measured of the texts, and then of the probes."""

    def by_text(measure: Callable[[Cell, ComparedText], float | None]) -> Rows:
        return {
            text.name: [measure(comparison[model.name, text.name], text) for model in comparison.models]
            for text in comparison.texts
        }

    # 1. The texts.
    base = comparison.base
    yield _Section("Tokens", "", ",.0f", by_text(lambda cell, _: cell.tokens), FEWER, base, base or "")
    characters = by_text(lambda cell, text: _ratio(text.characters, cell.tokens))
    yield _Section("Characters for each token", "", ".2f", characters, MORE)
    note = "A word is what stands between spaces. A – stands for languages without spaces between words."
    words = by_text(lambda cell, text: _ratio(cell.tokens, text.words) if text.spaced else None)
    note = "" if all(text.spaced for text in comparison.texts) else note
    yield _Section("Tokens for each word", note, ".2f", words, FEWER)
    if any(cell.byte_tokens for cell in comparison.cells):
        parts = by_text(lambda cell, _: _ratio(cell.byte_tokens, cell.tokens))
        yield _Section("Tokens that are bytes or parts of characters", "", ".2%", parts, FEWER)
    if any(cell.unknown_tokens for cell in comparison.cells):
        unknown = by_text(lambda cell, _: _ratio(cell.unknown_tokens, cell.tokens))
        yield _Section("Tokens for unknown characters", "", ".2%", unknown, FEWER)
    note = "How evenly ids are used: 1 if all are equally frequent (of order 2.5)."
    yield _Section("Rényi efficiency", note, ".3f", by_text(lambda cell, _: cell.renyi_efficiency))
    # 2. The probes.
    for group, (title, base, called) in GROUPS.items():
        rows: Rows = {}
        for probe in comparison.probes:
            if probe.group == group:
                rows.setdefault(probe.name, []).append(probe.tokens)
        if rows:
            form = ".2f" if base is None else ",.0f"
            yield _Section(title, "", form, rows, FEWER, base, called)


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


# --- Bars as SVG ----------------------------------------------------------------------------------

_BAR = 14
_GAP = 10
_LABEL = 18
"""The height of a row's name, which stands above its bars: a telephone has no room for it beside them."""
_VALUE = 78
_WIDTH = 420
"""Wide enough for a screen, and narrow enough that a telephone hardly has to shrink the letters."""


def _legend(models: Sequence[str]) -> str:
    """The colours of the models."""
    items = (
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" '
        f'fill="{COLOURS[number % len(COLOURS)]}"/></svg> {escape(name)}</li>'
        for number, name in enumerate(models)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _bars(rows: Rows, models: Sequence[str], form: str, title: str) -> str:
    """A group of bars for each row, a bar for each model; `form` says how numbers are written.

    For readers who cannot see the bars, each one has its value as a title, and the table above has the same
    numbers.
    """
    most = max((value for values in rows.values() for value in values if value is not None), default=0) or 1
    parts: list[str] = []
    top = 0
    for label, values in ((shown(label), values) for label, values in rows.items()):
        parts.append(svg_text(0, top + _LABEL - 6, label))
        top += _LABEL
        for number, value in enumerate(values):
            y = top + number * _BAR
            if value is not None:
                length = max(value / most * (_WIDTH - _VALUE), 1)
                name = escape(f"{label}, {models[number]}: {format(value, form)}")
                parts.append(
                    f'<rect x="0" y="{y + 1}" width="{length:.1f}" height="{_BAR - 2}" rx="2" '
                    f'fill="{COLOURS[number % len(COLOURS)]}"><title>{name}</title></rect>'
                )
                parts.append(svg_text(length + 6, y + _BAR - 3, format(value, form)))
        top += len(values) * _BAR + _GAP
    return svg(_WIDTH, max(top, 1), title, parts)
