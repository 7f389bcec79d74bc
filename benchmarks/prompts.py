"""Prompts that grow: ways to make the ids of the longer text from those of the shorter, and their errors.

    python -m benchmarks.prompts [--model tokenizer.model] [--turns 2000]

Servers keep the ids of a prompt, and encode only its end when the prompt comes back longer. Their ways are
rebuilt here, each in a few lines. The texts are documentation, source code, lines with deep indentation, and
words without spaces. What is appended ends at a line end, or anywhere, as generated text does. The right ids
are those of encoding the whole text; a way goes on with what it has made, right or wrong, as it would in a
server.

The second table appends 1 KB to 1 MB of text.
"""

from __future__ import annotations

import argparse
import random
import sysconfig
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import cpbpe
from benchmarks.run import default_model
from benchmarks.table import grid

SEED = 20261127
ROUNDS = 21
TURNS = 20
"""How often a conversation grows."""
Way = Callable[[str, list[int], str], list[int]]
"""Makes the ids of a text from a text that it begins with, and the ids of that."""


def texts() -> dict[str, str]:
    """About a megabyte of each kind."""
    rng = random.Random(SEED)
    docs = Path(__file__).resolve().parents[1].glob("docs/**/*.md")
    code = Path(sysconfig.get_paths()["stdlib"]).glob("*.py")
    lines = ("", "", "x", "return", "# a", "(b)", "}")
    return {
        "documentation": "".join(path.read_text(encoding="utf-8") for path in sorted(docs)),
        "source code": "".join(path.read_text(encoding="utf-8") for path in sorted(code))[:1_000_000],
        "indentation": "\n".join(
            " " * rng.choice((0, 4, 8, 12, 40)) + rng.choice(lines) for _ in range(60_000)
        ),
        "no spaces": "".join(rng.choice("=-ab") * rng.choice((1, 3, 17, 500)) for _ in range(7_000)),
    }


def ways(tok: cpbpe.Tokenizer) -> dict[str, Way]:
    """What servers do, by what it is called in the table."""
    sizes = [len(data) for data in tok.vocab.token_bytes()]
    inside: Any = {"prefix_space": False} if tok.spec.normalizer.add_dummy_prefix else {}

    def only_the_rest(old: str, ids: list[int], new: str) -> list[int]:
        return ids + tok.encode(new[len(old) :], **inside)

    def some_back(count: int, checked: int) -> Way:
        """Take the last ids back, encode from there, and compare the first ids with those that were there."""

        def way(old: str, ids: list[int], new: str) -> list[int]:
            text = new.encode()
            place = len(old.encode()) - sum(sizes[id] for id in ids[-count:])
            kept = len(ids) - count
            while kept > 0 and text[place] & 0xC0 == 0x80:  # within a character
                kept -= 1
                place -= sizes[ids[kept]]
            if kept <= 0:
                return tok.encode(new)
            again = tok.encode(text[place:], **inside)
            if again[:checked] != ids[kept : kept + checked]:
                return tok.encode(new)
            return ids[:kept] + again

        return way

    return {
        "encode only what is new": only_the_rest,
        "take 1 id back": some_back(1, 0),
        "take 4 ids back, compare 2": some_back(4, 2),
        "take 8 ids back, compare 4": some_back(8, 4),
        "take 16 ids back, compare 8": some_back(16, 8),
    }


def conversations(text: str, turns: int) -> Iterator[list[str]]:
    """Texts that grow."""
    rng = random.Random(SEED)
    for _ in range(turns // TURNS):
        begin = rng.randrange(len(text) - 12_000)
        ends = [begin + 1000]
        while len(ends) <= TURNS:
            end = ends[-1] + rng.randrange(1, 500)
            line = text.find("\n", end) + 1
            ends.append(line if 0 < line < end + 200 and rng.random() < 0.5 else end)
        yield [text[begin:end] for end in ends]


def wrong(tok: cpbpe.Tokenizer, text: str, turns: int) -> dict[str, float]:
    """For each way, the share of the texts with other ids than encoding them whole gives."""
    made = ways(tok)
    count = dict.fromkeys([*made, "cpbpe's document"], 0)
    total = 0
    for grown in conversations(text, turns):
        first = tok.encode(grown[0])
        ids = dict.fromkeys(made, first)
        document = tok.document(grown[0])
        for old, new in pairwise(grown):
            right = tok.encode(new)
            total += 1
            for name, way in made.items():
                ids[name] = way(old, ids[name], new)
                count[name] += ids[name] != right
            document = document.append(new[len(old) :])
            count["cpbpe's document"] += document.ids != right
    return {name: number / total for name, number in count.items()}


def speed(tok: cpbpe.Tokenizer, text: str) -> list[float]:
    """Milliseconds: to encode 1 MB and 1 KB more, to append the 1 KB, and to list all ids after that.

    Each of the three again and again, and once more right after encoding the whole, which fills the
    processor's caches with something else.
    """
    old = (text * (1_000_000 // len(text) + 1))[:1_000_000]
    more = text[5_000:6_000]
    document = tok.document(old)
    assert document.append(more).ids == tok.encode(old + more)
    calls: list[Callable[[], object]] = [
        lambda: tok.encode(old + more),
        lambda: document.append(more),
        lambda: document.append(more).ids,
    ]
    took = [median(milliseconds(call) for _ in range(ROUNDS)) for call in calls]
    mixed = [[milliseconds(call) for call in (calls[0], calls[1])][1] for _ in range(ROUNDS)]
    return [*took, median(mixed)]


def milliseconds(call: Callable[[], object]) -> float:
    """How long it takes."""
    begin = perf_counter()
    call()
    return (perf_counter() - begin) * 1e3


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a model file (default: Mistral's)")
    parser.add_argument("--turns", type=int, default=2000, help="how often a text of each kind grows (2000)")
    options = parser.parse_args()
    tok = cpbpe.load(options.model or default_model())
    kinds = texts()
    shares = {kind: wrong(tok, text, options.turns) for kind, text in kinds.items()}
    rows = [[name, *(f"{shares[kind][name]:.1%}" for kind in kinds)] for name in next(iter(shares.values()))]
    print("\n".join(grid(["texts with wrong ids", *kinds], rows)))
    rows = []
    for kind, text in kinds.items():
        whole, append, ids, mixed = speed(tok, text)
        times = f"{whole / append:.0f}"
        rows.append([kind, f"{whole:.2f}", f"{append:.3f}", times, f"{mixed:.3f}", f"{ids:.2f}"])
    head = ["ms", "encode 1 MB", "append 1 KB", "times as fast", "append, cold", "append, list of all ids"]
    print("\n" + "\n".join(grid(head, rows)))


if __name__ == "__main__":
    main()
