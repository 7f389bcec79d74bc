"""A comparison as lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cpbpe.comparing.values import Cell, Costs
from cpbpe.look.shown import fitted, shown, width
from cpbpe.spelling import counted

_NAME = 28
"""The most columns of a name."""
GROUPS = {
    "formats": "The same ten records in several formats: tokens, and × JSON",
    "digits": "A number of 1 to 12 digits, alone: tokens on average",
    "indentation": "A function of 12 lines, indented in several ways: tokens, and × no indentation",
}
REFERENCES = {"formats": "JSON", "digits": None, "indentation": "none"}
"""The probe of each group that the others are relative to."""


def lines(found: Costs, columns: int = 100) -> list[str]:
    """The whole report."""
    return [line.rstrip() for line in _lines(found, columns)]


def _lines(found: Costs, columns: int) -> Iterator[str]:
    rows = [["model", "library", "ids", "MB/s"]]
    for model in found.models:
        speed = "–" if model.megabytes_per_second is None else f"{model.megabytes_per_second:.3g}"
        rows.append([model.name, model.library, f"{model.size:,}", speed])
    yield from table(rows, columns)
    price = "" if found.base is None else f", and × {shown(found.base)}"
    yield from _by_text(found, columns, f"Tokens{price}", lambda cell: _tokens(found, cell))
    yield from _by_text(found, columns, "Characters for each token", lambda cell: _per_token(found, cell))
    yield from _by_text(found, columns, "Tokens for each word", lambda cell: _per_word(found, cell))
    if any(cell.byte_tokens or cell.unknown_tokens for cell in found.cells):
        yield from _by_text(found, columns, "Tokens that are bytes or parts of characters", _bytes)
    yield from _by_text(found, columns, "Rényi efficiency", _efficiency)
    yield from _lost(found)
    yield from _replaced(found)
    for group, title in GROUPS.items():
        yield from _group(found, columns, group, title)


def _by_text(found: Costs, columns: int, title: str, of: Callable[[Cell], str]) -> Iterator[str]:
    yield from ["", title]
    names = [model.name for model in found.models]
    rows = [["text", *names]]
    rows += [[text.name, *(of(found[name, text.name]) for name in names)] for text in found.texts]
    yield from table(rows, columns)


def _tokens(found: Costs, cell: Cell) -> str:
    price = found.price(cell.model, cell.text)
    return f"{cell.tokens:,}" + ("" if price is None else f"  {price:.2f} ×")


def _per_token(found: Costs, cell: Cell) -> str:
    return f"{found.text(cell.text).characters / cell.tokens:.2f}" if cell.tokens else "–"


def _per_word(found: Costs, cell: Cell) -> str:
    words = found.text(cell.text).words
    return f"{cell.tokens / words:.2f}" if words else "–"


def _bytes(cell: Cell) -> str:
    if not cell.tokens:
        return "–"
    unknown = f" + {cell.unknown_tokens / cell.tokens:.2%} unknown" if cell.unknown_tokens else ""
    return f"{cell.byte_tokens / cell.tokens:.2%}{unknown}"


def _efficiency(cell: Cell) -> str:
    return "–" if cell.renyi_efficiency is None else f"{cell.renyi_efficiency:.3f}"


def _lost(found: Costs) -> Iterator[str]:
    changed = [cell for cell in found.cells if cell.changed]
    if changed:
        yield from ["", "Decoding does not give back"]
    for cell in changed:
        example = fitted(shown(cell.example or ""), 40)
        yield (
            f"  {shown(cell.model)}, {shown(cell.text)}: {cell.changed:,} of {cell.checked:,} documents, "
            f"such as {example}"
        )


def _replaced(found: Costs) -> Iterator[str]:
    wrong = [text for text in found.texts if text.replaced]
    if wrong:
        yield from ["", "Not valid Unicode, read with U+FFFD"]
    for text in wrong:
        yield f"  {shown(text.name)}: {text.replaced:,} of {counted(text.documents, 'document')}"


def _group(found: Costs, columns: int, group: str, title: str) -> Iterator[str]:
    probes = [probe for probe in found.probes if probe.group == group]
    if not probes:
        return
    yield from ["", title]
    names = [model.name for model in found.models]
    costs = {(probe.name, probe.model): probe.tokens for probe in probes}
    reference = REFERENCES[group]
    rows = [["", *names]]
    for name in dict.fromkeys(probe.name for probe in probes):
        row = [name]
        for model in names:
            tokens = costs[name, model]
            ratio = "" if reference is None else f"  {tokens / max(costs[reference, model], 1):.2f} ×"
            row.append(f"{tokens:,.2f}" if reference is None else f"{tokens:,.0f}{ratio}")
        rows.append(row)
    yield from table(rows, columns)


def table(rows: list[list[str]], columns: int) -> Iterator[str]:
    """Rows, the first of them the head; columns that do not fit go into further tables."""
    shown_rows = [[fitted(shown(cell), _NAME) for cell in row] for row in rows]
    widths = [max(width(row[i]) for row in shown_rows) for i in range(len(rows[0]))]
    begin = 1
    while begin < len(widths) or begin == 1:
        end = begin + 1
        while end < len(widths) and widths[0] + sum(w + 2 for w in widths[begin : end + 1]) <= columns:
            end += 1
        for row in shown_rows:
            first = row[0] + " " * (widths[0] - width(row[0]))
            rest = (
                " " * (2 + w - width(cell)) + cell
                for w, cell in zip(widths[begin:end], row[begin:end], strict=True)
            )
            yield first + "".join(rest)
        begin = end
        if begin < len(widths):
            yield ""
