"""Draws the pictures of the course, docs/images/learn-*.svg, out of what the code computes.

PYTHONPATH=. python docs/learn/pictures.py MODEL GPT2_FOLDER CL100K

Nearly all of them are rows of chips: the states of a text, one below the other. `tests/test_docs.py` draws
them again and compares.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import cpbpe
from cpbpe.reference import steps
from cpbpe.reference.byte_level.patterns import PATTERNS, cut
from cpbpe.text.drawn import width

FOLDER = Path(__file__).parents[1] / "images"
LETTER, HEIGHT, LINE, GAP = 9, 26, 38, 6  # the width of a letter; the height of a chip and of a row
SECONDS = 1.6  # that a row takes where it moves
STYLE = """\
text { font: 15px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1b1f24; }
.label { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #57606a; }
rect { stroke: #8c959f; fill: #f6f8fa; }
.c0 { fill: #dbeafe; } .c1 { fill: #dcfce7; } .c2 { fill: #fef3c7; } .c3 { fill: #fce7f3; }
.strong { stroke: #7a3e00; stroke-width: 2.5; fill: #fde68a; }
path { stroke: #0a57b8; stroke-width: 2; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #eef1f4; } .label { fill: #a5b0bb; } rect { stroke: #6b7785; fill: #182028; }
  .c0 { fill: #1d3a60; } .c1 { fill: #1d4530; } .c2 { fill: #4a3b12; } .c3 { fill: #52233f; }
  .strong { stroke: #ffc46b; fill: #6b4a00; } path { stroke: #7db8ff; }
}"""


class Chip(NamedTuple):
    """A framed text."""

    text: str
    look: str = ""
    """The name of its colour: c0 to c3, strong, or none."""


Row = tuple[str, Sequence[Chip]]
"""A label, and chips."""

Place = tuple[Chip, int]
"""A chip, and where it begins."""


def coloured(texts: Iterable[str]) -> list[Chip]:
    """Chips of which neighbours differ."""
    return [Chip(text, f"c{place % 4}") for place, text in enumerate(texts)]


def size(one: Chip) -> int:
    """How wide a chip is."""
    return LETTER * max(width(one.text), 1) + 12


def chip(one: Chip, x: float, y: float) -> str:
    """A chip at a place."""
    return (
        f'<rect class="{one.look}" x="{x}" y="{y}" width="{size(one)}" height="{HEIGHT}" rx="5"/>\n'
        f'<text x="{x + size(one) / 2:g}" y="{y + 18}" text-anchor="middle">{escape(one.text)}</text>'
    )


def drawn(title: str, rows: Sequence[Row], moving: bool = False) -> str:
    """The picture of some rows; `title` says what it shows to those who do not see it.

    If `moving`, each row slides out of the one above it, which must have the same text. Where there is no
    motion, or once it has ended, all rows are there.
    """
    indent = 14 + max(round(width(label) * 7.2) for label, _ in rows)
    parts = [f"<style>\n{motion(len(rows))}</style>"] if moving else []
    widest, above = 0, list[Place]()
    for number, (label, chips) in enumerate(rows):
        x, y = indent, 8 + number * LINE
        places = []
        for one in chips:
            places.append((one, x))
            x += size(one) + GAP
        row = [f'<text class="label" x="6" y="{y + 18}">{escape(label)}</text>']
        row += [chip(one, x, y) for one, x in places]
        if moving and number:
            row = [*sliding(above, places, y, number), f'<g class="show{number}">', *row, "</g>"]
        parts += row
        widest, above = max(widest, x), places
    return framed(title, widest + 6, 8 + len(rows) * LINE, parts)


def sliding(above: Sequence[Place], below: Sequence[Place], y: int, number: int) -> Iterator[str]:
    """The chips of one row on their way to where their letters are in the next, seen only while they move."""
    rest = iter(above)
    for one, x in below:
        end = x + LETTER * width(one.text)
        while x < end:
            part, begin = next(rest)
            away = f'class="slide{number}" style="--x: {begin - x}px" opacity="0"'
            yield f"<g {away}>\n{chip(part, x, y)}\n</g>"
            x += LETTER * width(part.text)


def motion(rows: int) -> str:
    """What moves the rows, three times, for readers who have not asked their system for less motion."""
    whole = rows * SECONDS + 5  # (the whole picture stays for five seconds)
    time, rules = f"{whole:g}s ease-in-out 3", []
    for row in range(1, rows):
        begin, end = (round(100 * SECONDS * moment / whole, 1) for moment in (row - 0.5, row))
        away = f"transform: translate(var(--x), -{LINE}px)"
        rules += [
            f".slide{row} {{ animation: slide{row} {time} }} .show{row} {{ animation: show{row} {time} }}",
            f"@keyframes slide{row} {{",
            f"  0%, {begin:g}% {{ opacity: 0; {away} }} {begin + 0.1:g}% {{ opacity: 1; {away} }}",
            f"  {end:g}% {{ opacity: 1; transform: none }} {end + 0.1:g}%, 100% {{ opacity: 0 }}\n}}",
            f"@keyframes show{row} {{",
            f"  0%, {end:g}% {{ opacity: 0.2 }} {end + 0.1:g}%, 100% {{ opacity: 1 }}\n}}",
        ]
    return "\n".join(["@media (prefers-reduced-motion: no-preference) {", *rules, "}\n"])


def framed(title: str, wide: int, high: int, parts: Sequence[str]) -> str:
    """An SVG file."""
    lines = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img">\n<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n{lines}\n</svg>\n'
    )


def merges(tok: cpbpe.Tokenizer, text: str) -> list[Row]:
    """The states of a text, with the pair that merges next."""
    rows: list[Row] = []
    for step in steps(tok, text):
        shown = [step.show(symbol) for symbol in step.symbols]
        if step.kind == "end":
            rows.append(("no pair is left", coloured(shown)))
            continue
        label = {"begin": "characters", "unknown": "no piece"}.get(step.kind, f"merge {len(rows)}")
        chosen = range(step.begin, step.end)
        rows.append((label, [Chip(one, "strong" if at in chosen else "") for at, one in enumerate(shown)]))
    return rows


def curve(tokens: Sequence[tuple[int, float]]) -> str:
    """Bytes in a token by the size of the vocabulary."""
    wide, high, left, low = 560, 260, 56, 40
    most, top = tokens[-1][0], max(value for _, value in tokens) * 1.1

    def place(size: float, value: float) -> tuple[float, float]:
        return left + size / most * (wide - left - 20), high - low - value / top * (high - low - 20)

    places = [place(*one) for one in tokens]
    line = " ".join(f"{'L' if at else 'M'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(places))
    parts = [f'<path d="{line}"/>']
    for value in range(1, int(top) + 1):
        x, y = place(0, value)
        parts.append(f'<text class="label" x="{x - 20:.0f}" y="{y + 5:.0f}">{value}</text>')
    for size in range(0, most + 1, most // 4):
        x, _ = place(size, 0)
        parts.append(f'<text class="label" x="{x:.0f}" y="{high - 20}" text-anchor="middle">{size:,}</text>')
    parts.append('<text class="label" x="6" y="14">bytes in a token</text>')
    parts.append(f'<text class="label" x="{wide - 8}" y="{high - 4}" text-anchor="end">pieces</text>')
    return framed("Bytes in a token by the size of the vocabulary", wide, high, parts)


def pictures(model: Path, gpt2_folder: Path, cl100k: Path, corpus: Path) -> dict[str, str]:
    """All pictures by their names."""
    tok, gpt2, gpt4 = map(cpbpe.load, (model, gpt2_folder, cl100k))
    text, word, code, bars = "The tokenizer turns texts", "untokenizable", "if x == 1234567:", "▇▃▅▂▆"
    characters, message = "hé你👋", gpt2.encode_pieces("Hi<|end|>")
    report = cpbpe.train(corpus, vocab_size=1200).report
    assert report.curve is not None
    sizes = range(report.special_pieces + report.characters, 1201, 10)
    ids = tok.encode(text)

    def spaced(texts: Iterable[str]) -> list[Chip]:
        return coloured(one.replace(" ", "␣") for one in texts)

    def with_bos(prompt: str) -> list[Chip]:
        return coloured(map(str, tok.encode(prompt, add_bos=True)))

    rows: dict[str, tuple[str, list[Row]]] = {
        "why-tokens": (
            "A text becomes pieces, each piece an id, and each id a row of the network's table",
            [
                ("text", [Chip(text)]),
                ("pieces", coloured(tok.encode_pieces(text))),
                ("ids", coloured(map(str, ids))),
                ("rows of a table", coloured(bars[at:] + bars[:at] for at in range(len(ids)))),
            ],
        ),
        "characters-and-bytes": (
            "Four characters as code points and as the bytes of UTF-8",
            [
                ("characters", coloured(characters)),
                ("code points", coloured(f"U+{ord(one):04X}" for one in characters)),
                *(
                    (f"UTF-8 of {one}", coloured(f"{byte:02X}" for byte in one.encode()))
                    for one in characters
                ),
            ],
        ),
        "letters-and-words": (
            "One word as letters, as pieces, and as a word that is not in the list",
            [
                ("letters", coloured(word)),
                ("pieces", coloured(tok.encode_pieces(word))),
                ("words", [Chip("<unk>", "strong")]),
            ],
        ),
        "patterns": (
            "The same line as the patterns of GPT-2 and GPT-4 cut it",
            [
                ("GPT-2", spaced(cut(PATTERNS["gpt2"], code))),
                ("GPT-4", spaced(cut(PATTERNS["cl100k"], code))),
                ("GPT-4's tokens", spaced(gpt4.encode_pieces(code))),
            ],
        ),
        "special-tokens": (
            "Special tokens around a message that spells one out, which is ordinary pieces",
            [
                (
                    "what a program builds",
                    [Chip("<|user|>", "strong"), *coloured(message), Chip("<|end|>", "strong")],
                )
            ],
        ),
        "sentencepiece": ("The steps from a text to pieces, with bytes at the end", merges(tok, "Hi 🦙")),
        "quirks": (
            "A word, a sum and a capital as GPT-2, GPT-4 and Mistral see them",
            [
                (f"{name}: {what}", spaced(model.encode_pieces(what)))
                for what in ("strawberry", "127 + 677", "Egg")
                for name, model in (("GPT-2", gpt2), ("GPT-4", gpt4), ("Mistral", tok))
            ],
        ),
        "in-a-language-model": (
            "Ids go in, a score for every piece comes out, one is chosen and appended",
            [
                ("ids go in", with_bos("The cat sat on the")),
                ("scores come out", [Chip("▁mat", "strong"), Chip("▁floor"), Chip("▁table"), Chip("…")]),
                ("next round", with_bos("The cat sat on the mat")),
            ],
        ),
    }
    return {
        **{name: drawn(*picture) for name, picture in rows.items()},
        "bpe-by-hand": drawn(
            "The merges of the word lowest, one below the other", merges(tok, "lowest"), moving=True
        ),
        "your-own-model": curve([(size, 1 / report.curve.tokens_per_byte(size)) for size in sizes]),
    }


if __name__ == "__main__":
    folder = Path(__file__).parents[2]
    for name, picture in pictures(*map(Path, sys.argv[1:4]), folder / "LICENSE").items():
        (FOLDER / f"learn-{name}.svg").write_text(picture, encoding="utf-8")
