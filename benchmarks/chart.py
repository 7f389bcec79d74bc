"""Draws the bar chart of README.md, docs/images/speed-*.svg, from what `benchmarks.run` wrote.

    python -m benchmarks.chart benchmarks/results.json

One file for light pages and one for dark ones: GitHub chooses by its own setting, which a style sheet in the
file cannot see. It is narrow, and so its letters can be read on a phone.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path

from benchmarks.table import Report, number

FOLDER = Path(__file__).parents[1] / "docs" / "images"
CASE, CORPUS = "list", "en"
COLOURS = {
    # (the letters, those that matter less, our bar, the other bars)
    "light": ("#1f2328", "#59636e", "#0a57b8", "#a9b4bf"),
    "dark": ("#f0f6fc", "#9198a1", "#4493f8", "#4c5561"),
}
WIDTH, LEFT, RIGHT, ROW = 480, 122, 84, 26


def speeds(results: Report) -> dict[str, float]:
    """The speed of each library in the case: cpbpe's own, divided by how many times as fast it was."""
    (found,) = (
        result["libraries"]
        for result in results["results"]
        if (result["case"], result["corpus"]) == (CASE, CORPUS)
    )
    own = found["cpbpe"]["median"]
    ratios = {name: result.get("cpbpe_is_times_as_fast", 1) for name, result in found.items()}
    return dict(sorted(((name, own / ratio) for name, ratio in ratios.items()), key=lambda pair: -pair[1]))


def drawn(results: Report, scheme: str) -> str:
    """The chart as SVG."""
    front, quiet, ours, others = COLOURS[scheme]
    found = speeds(results)
    most = max(found.values())
    title = "Encoding English to lists of ids, on one thread"
    lines = []
    for place, (name, speed) in enumerate(found.items()):
        top, bar = 40 + ROW * place, (WIDTH - LEFT - RIGHT) * speed / most
        own = name == "cpbpe"
        weight = ' font-weight="700"' if own else ""
        lines += [
            f'<text x="{LEFT - 10}" y="{top + 15}" text-anchor="end"{weight}>{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{max(bar, 2):.1f}" height="20" rx="2" '
            f'fill="{ours if own else others}"/>',
            f'<text x="{LEFT + max(bar, 2) + 8:.1f}" y="{top + 15}"{weight}>{number(speed)} MB/s</text>',
        ]
    height = 40 + ROW * len(found) + 4
    label = ", ".join(f"{name} {number(speed)} MB/s" for name, speed in found.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" fill="{front}" font-size="15" '
            'font-family="-apple-system, Segoe UI, Noto Sans, Helvetica, Arial, sans-serif">',
            f"<title>{title}: {label}</title>",
            f'<text x="0" y="20" font-size="14" fill="{quiet}">{title}</text>',
            *lines,
            "</svg>\n",
        ]
    )


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description="The bar chart of README.md.")
    parser.add_argument("results", type=Path, help="what benchmarks.run wrote")
    results = json.loads(parser.parse_args().results.read_text(encoding="utf-8"))
    for scheme in COLOURS:
        (FOLDER / f"speed-{scheme}.svg").write_text(drawn(results, scheme), encoding="utf-8")


if __name__ == "__main__":
    main()
