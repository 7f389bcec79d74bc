"""A comparison as one page of HTML, which needs nothing else: no script, no font, no request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from cpbpe.comparing.page import GROUPS, REFERENCES
from cpbpe.comparing.plots import bars, legend
from cpbpe.comparing.values import Costs
from cpbpe.look.shown import shown

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
{body}
</body>
</html>
"""

Plot = list[tuple[str, list[float | None]]]


def page(found: Costs) -> str:
    """The whole page."""
    names = ", ".join(model.name for model in found.models)
    return _PAGE.format(title=escape(f"{names}: what texts cost"), body=f"<main>{fragment(found)}</main>")


def fragment(found: Costs) -> str:
    """The part of it that can stand in another page, such as a notebook."""
    return f'<div class="cpbpe"><style>{_STYLE}</style>{"".join(_sections(found))}</div>'


def _sections(found: Costs) -> Iterator[str]:
    names = [model.name for model in found.models]
    yield "<h1>What texts cost</h1>"
    rows = [
        [
            m.name,
            m.library,
            f"{m.size:,}",
            "–" if m.megabytes_per_second is None else f"{m.megabytes_per_second:.3g}",
        ]
        for m in found.models
    ]
    yield _table(["Model", "Library", "Ids", "MB/s"], rows)
    yield legend(names)
    if found.base is not None:
        note = f"How many tokens a text has for each of “{shown(found.base)}”."
        yield from _measured(found, "Price", note, lambda m, t: found.price(m, t), ".2f")
    yield from _measured(found, "Tokens", "", lambda m, t: found[m, t].tokens, ",.0f")

    def per_token(model: str, text: str) -> float | None:
        tokens = found[model, text].tokens
        return found.text(text).characters / tokens if tokens else None

    def per_word(model: str, text: str) -> float | None:
        words = found.text(text).words
        return found[model, text].tokens / words if words else None

    def share(model: str, text: str) -> float | None:
        cell = found[model, text]
        return 100 * cell.byte_tokens / cell.tokens if cell.tokens else None

    yield from _measured(found, "Characters for each token", "", per_token, ".2f")
    note = (
        "A word is a run of characters that are not white space. In scripts without spaces this says nothing."
    )
    yield from _measured(found, "Tokens for each word", note, per_word, ".2f")
    if any(cell.byte_tokens for cell in found.cells):
        note = "Tokens that are single bytes, or parts of characters, in percent."
        yield from _measured(found, "Bytes", note, share, ".2f")
    note = "How evenly ids are used: 1 if all are equally frequent (of order 2.5)."
    yield from _measured(found, "Rényi efficiency", note, lambda m, t: found[m, t].renyi_efficiency, ".3f")
    yield from _lost(found)
    for group, title in GROUPS.items():
        yield from _group(found, group, title)


def _measured(
    found: Costs, title: str, note: str, of: Callable[[str, str], float | None], form: str
) -> Iterator[str]:
    names = [model.name for model in found.models]
    values: Plot = [(text.name, [of(name, text.name) for name in names]) for text in found.texts]
    yield from _section(title, note, names, values, form)


def _section(title: str, note: str, names: list[str], values: Plot, form: str) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>"
    if note:
        yield f"<p>{escape(note)}</p>"
    yield _table(["", *names], [[label, *(_number(value, form) for value in row)] for label, row in values])
    yield bars([(shown(label), row) for label, row in values], [shown(name) for name in names], form, title)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _lost(found: Costs) -> Iterator[str]:
    rows = [
        [cell.model, cell.text, f"{cell.changed:,} of {cell.checked:,}", (cell.example or "")[:60]]
        for cell in found.cells
        if cell.changed
    ]
    if rows:
        yield "<h2>Decoding does not give back</h2>"
        yield _table(["Model", "Text", "Documents", "Such as"], rows)
    wrong = [[t.name, f"{t.replaced:,} of {t.documents:,}"] for t in found.texts if t.replaced]
    if wrong:
        yield "<h2>Not valid Unicode, read with U+FFFD</h2>"
        yield _table(["Text", "Documents"], wrong)


def _group(found: Costs, group: str, title: str) -> Iterator[str]:
    probes = [probe for probe in found.probes if probe.group == group]
    if not probes:
        return
    names = [model.name for model in found.models]
    costs = {(probe.name, probe.model): probe.tokens for probe in probes}
    rows = [
        (name, [costs[name, model] for model in names])
        for name in dict.fromkeys(probe.name for probe in probes)
    ]
    form = ",.2f" if REFERENCES[group] is None else ",.0f"
    heading, _, note = title.partition(":")
    values: Plot = [(name, list(row)) for name, row in rows]
    yield from _section(heading, f"{note.strip().partition(',')[0].capitalize()}.", names, values, form)


def _table(head: list[str], rows: list[list[str]]) -> str:
    columns = "".join(f'<th scope="col">{escape(shown(cell))}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(shown(row[0]))}</th>'
        + "".join(f'<td dir="auto">{escape(shown(cell))}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>'
