"""Compares cpbpe with sentencepiece for as long as one likes.

    python -m tests.support.soak --seconds 3600 corpora/*.txt

Takes parts of the files (any text; UTF-8 where possible), changes them at random (words shuffled,
characters replaced, repeated or left out, pieces of the vocabulary and of other files put in), and encodes
and decodes them with every model of the zoo. Stops at the first difference, and shows it. `--seed` makes
another run.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from time import monotonic

from tests.support import zoo
from tests.support.corpus import lines
from tests.support.parity import Pair

LENGTHS = (5, 40, 300, 2_000, 20_000, 200_000)
SECONDS_BETWEEN_LINES = 60.0
REAL_SHARE = 0.5  # of the texts for the models that people use


def part(source: str, chance: random.Random) -> str:
    """Some characters of a text, more often few than many."""
    length = chance.choice(LENGTHS)
    begin = chance.randrange(max(len(source) - length, 1))
    return source[begin : begin + length]


def changed(text: str, sources: list[str], pieces: list[str], chance: random.Random) -> str:
    """The text, or something that was made of it."""
    kind = chance.randrange(8)
    if kind == 0:
        words = text.split(" ")
        chance.shuffle(words)
        return " ".join(words)
    if kind == 1:
        characters = list(text)
        for _ in range(len(characters) // 20 + 1):
            at = chance.randrange(len(characters) + 1)
            characters[at : at + chance.randrange(2)] = chance.choice(pieces) * chance.choice((1, 1, 1, 30))
        return "".join(characters)
    if kind == 2:
        other = part(chance.choice(sources), chance)
        return "".join(map("".join, zip(text, other, strict=False)))
    if kind == 3:
        return "".join(chance.choices(pieces, k=len(text) // 4 + 1))
    if kind == 4:
        return text.replace(
            chance.choice(text or " "), chance.choice(["", "\u2581", "  ", "\0", "\U0010fffe"])
        )
    return text


def soak(seconds: float, seed: int, sources: list[str]) -> tuple[int, int]:
    """How many texts were compared, and of how many bytes."""
    chance = random.Random(seed)
    pairs: dict[str, tuple[Pair, list[str]]] = {}
    texts = size = 0
    end, say = monotonic() + seconds, monotonic() + SECONDS_BETWEEN_LINES
    while monotonic() < end:
        name = chance.choice(zoo.REAL if chance.random() < REAL_SHARE else zoo.NAMES)
        if name not in pairs:
            pair = Pair(zoo.model(name), "core")
            usual = range(259, len(pair.ours)) if len(pair.ours) > 600 else range(len(pair.ours))
            pairs[name] = (pair, [pair.ours.id_to_piece(id).replace("\u2581", " ") for id in usual])
        pair, pieces = pairs[name]
        text = changed(part(chance.choice(sources), chance), sources, pieces, chance)
        ids_found = pair.ours.encode_array(text, threads=chance.choice((1, 2))).tolist()
        ids_expected = pair.theirs.encode(text)
        if ids_found != ids_expected:
            raise AssertionError(f"{name}, seed {seed}, text {texts}: the ids of {text!r} differ")
        pair.check_ids(ids_found)
        if len(text) < LENGTHS[2] and texts % 10 == 0:
            pair.check_text(text)
        texts += 1
        size += len(text.encode())
        if monotonic() > say:
            print(f"{texts:,} texts, {size / 1e6:,.0f} MB so far", flush=True)
            say = monotonic() + SECONDS_BETWEEN_LINES
    return texts, size


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sources = [path.read_text("utf-8", "replace") for path in options.files] or ["\n".join(lines())]
    texts, size = soak(options.seconds, options.seed, sources)
    print(f"{texts:,} texts, {size / 1e6:,.0f} MB, seed {options.seed}: no difference")


if __name__ == "__main__":
    main()
