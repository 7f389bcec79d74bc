"""What the same manual costs in several languages, with several models: the tables of docs/comparing.md.

    python -m benchmarks.languages --model 'GPT-4o'=o200k_base.tiktoken --readme docs/comparing.md

The manual is the Debian Reference, which Debian has in English and in translations. These have the commands
and listings of the original, and now and then a paragraph that nobody has translated yet.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mistral_common

import cpbpe
from benchmarks.corpora import DATA, Reader, html_text, unpack
from cpbpe.tools.comparison import GROUPS, Comparison

LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "pt": "Portuguese",
    "id": "Indonesian",
    "ja": "Japanese",
    "zh-cn": "Chinese, simplified",
    "zh-tw": "Chinese, traditional",
}
MISTRAL = Path(mistral_common.__path__[0]) / "data"
MODELS = {"Mistral 7B": MISTRAL / "tokenizer.model.v1", "Mistral NeMo": MISTRAL / "tekken_240911.json"}
BEGIN, END = "<!-- languages:begin -->", "<!-- languages:end -->"


def manuals(data: Path) -> dict[str, list[str]]:
    """The pages of the manual, by language: those that every language has."""
    folders, _ = unpack([f"debian-reference-{code}" for code in LANGUAGES], data / "packages")
    reader = Reader()
    found: dict[str, dict[str, str]] = {}
    for code in LANGUAGES:
        folder = folders[f"debian-reference-{code}"]
        pages = sorted(folder.rglob("*.html")) or sorted(folder.rglob(f"*.{code}.html"))
        found[code] = {page.name.partition(".")[0]: html_text(reader.read(page)) for page in pages}
    common = set.intersection(*map(set, found.values()))
    return {LANGUAGES[code]: [texts[name] for name in sorted(common)] for code, texts in found.items()}


def tables(found: Comparison) -> str:
    """The tables, as Markdown."""
    names = [model.name for model in found.models]
    lines = [
        f"`python -m benchmarks.languages`: the Debian Reference in {len(found.texts)} languages, "
        f"{found.texts[0].documents} pages each; English has {found.texts[0].bytes:,} bytes. "
        "The first number is the price, relative to English; the second is how many characters a token has "
        "on average.",
        "",
        *_rows(["", *names]),
    ]
    for text in found.texts:
        cells = [text.name]
        for name in names:
            cell = found[name, text.name]
            cells.append(f"{found.price(name, text.name):.2f} ×, {text.characters / cell.tokens:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "The share of tokens that are bytes or parts of characters:", "", *_rows(["", *names])]
    for text in found.texts:
        cells = [text.name]
        for name in names:
            cell = found[name, text.name]
            cells.append(f"{cell.byte_tokens / cell.tokens:.1%}")
        lines.append(f"| {' | '.join(cells)} |")
    for group, (title, reference, called) in GROUPS.items():
        lines += ["", f"{title}, and × {called}:" if reference else f"{title}:", "", *_rows(["", *names])]
        costs = {(p.name, p.model): p.tokens for p in found.probes if p.group == group}
        for probe in dict.fromkeys(p.name for p in found.probes if p.group == group):
            cells = [probe]
            for name in names:
                tokens = costs[probe, name]
                ratio = f", {tokens / costs[reference, name]:.2f} ×" if reference else ""
                cells.append(f"{tokens:.0f}{ratio}" if reference else f"{tokens:.2f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows(head: list[str]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="one more model")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--readme", type=Path, help="the page whose tables are replaced")
    parser.add_argument("--html", type=Path, help="write the page with plots there")
    options = parser.parse_args()
    models = {**MODELS, **dict(given.split("=", 1) for given in options.model)}
    found = cpbpe.compare(models, manuals(options.data), base="English", rounds=0)
    made = tables(found)
    print(made)
    if options.html:
        options.html.write_text(found.html(), encoding="utf-8")
    if options.readme:
        page = options.readme.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        options.readme.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
