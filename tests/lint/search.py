"""A search for texts that yield what lint calls unreachable: pairs and triples of pieces, merge trees.

`python -m tests.lint.search MODEL ... [--seconds N] [--prose FILE]` searches for as long as asked, on one
core; the tests search for a moment. Nothing here uses what lint concludes from: only the pieces' texts and
the engine.

**Many pairs in one text.** Between two of them stands a character that is in no piece and that the
normalizer leaves alone. No merge takes it in, because what a merge makes is a piece. So nothing merges
across it, and what is between two of these comes out as it would in a text of its own, after such a
character. It is no space: squeezed spaces and the dummy prefix do not reach beyond it. Pieces are written
with U+2581 as it is, so that the normalized text is the pieces themselves; the other spelling, with spaces,
is searched, too.

In byte-level models the separator is such a character between two line breaks. Published patterns cut there,
except that whitespace at the beginning of a piece may join the line break; this only changes what is tried,
because whatever a text yields counts. With other patterns each pair is a text.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

import cpbpe
from cpbpe.lint.merging import Merging
from cpbpe.model.spec import ModelSpec
from cpbpe.text.split_patterns import PATTERNS

Texts = Iterator[str]
_BATCH = 1 << 19
"""So many characters are encoded at once, about."""


class Search:
    """Which ids the texts of a search yield, for one model."""

    def __init__(self, tok: cpbpe.Tokenizer, seed: int = 1):
        self.tok = tok
        self.spec: ModelSpec = tok.facts.spec
        self.rng = random.Random(seed)
        self.seen = np.zeros(max(tok.vocab_size, len(self.spec.pieces)) + 1, bool)
        """For each id, whether a text yielded it."""
        self.tried: dict[str, int] = {}
        """How many texts were tried, by the kind of text."""
        texts = self.spec.pieces.texts
        self.pieces = [text.decode(errors="replace") for text in texts]
        self.separator = self._separator()

    def _separator(self) -> str:
        used = set("".join(self.pieces))
        if self.spec.alphabet == "bytes":
            splitter = self.spec.splitter
            if splitter is None or splitter.then or splitter.pattern not in PATTERNS.values():
                return ""
            return "\n\U000ffffd\n"
        for code in (0x10FFFD, 0xF1234, 0xE123):
            if chr(code) not in used and self.tok.normalize("a" + chr(code)).endswith("a" + chr(code)):
                return chr(code)
        return ""

    def look(self, kind: str, texts: Texts, seconds: float) -> bool:
        """Encode texts until they or the time are at an end; whether all were encoded."""
        end = time.monotonic() + seconds
        parts: list[str] = []
        size = 0
        for text in texts:
            parts.append(text)
            size += len(text) + 1
            if size >= _BATCH:
                self._encode(kind, parts)
                parts, size = [], 0
                if time.monotonic() > end:
                    return False
        self._encode(kind, parts)
        return True

    def _encode(self, kind: str, parts: list[str]) -> None:
        self.tried[kind] = self.tried.get(kind, 0) + len(parts)
        mark = self.separator
        batch = [mark + mark.join(parts) + mark] if mark else parts
        self.seen[self.tok.encode_arrays(batch, threads=1).ids] = True

    def rows(self, firsts: Sequence[str], seconds: float, kind: str = "pairs") -> bool:
        """All pairs of one of `firsts` and any piece, a text for each first one (joined at C speed)."""
        end = time.monotonic() + seconds
        for first in firsts:
            if self.separator:
                text = (self.separator + first).join(["", *self.pieces, ""])
                self.seen[self.tok.encode_arrays([text], threads=1).ids] = True
            else:
                ids = self.tok.encode_arrays([first + piece for piece in self.pieces], threads=1).ids
                self.seen[ids] = True
            self.tried[kind] = self.tried.get(kind, 0) + len(self.pieces)
            if time.monotonic() > end:
                return False
        return True

    # --- Texts ----------------------------------------------------------------------------------------

    def alone(self) -> Texts:
        """Each piece alone, in both spellings."""
        for piece in self.pieces:
            yield piece
            yield piece.replace("▁", " ")

    def triples(self) -> Texts:
        """All triples of pieces, for small models."""
        yield from map("".join, product(self.pieces, repeat=3))

    def at_random(self) -> Texts:
        """Two to five pieces, some of them spelled with spaces, without end."""
        rng, pieces = self.rng, self.pieces
        while True:
            text = "".join(rng.choices(pieces, k=rng.randint(2, 5)))
            yield text.replace("▁", " ") if rng.random() < 0.5 else text

    def trees(self) -> Texts:
        """Pieces in which one part of their merge tree, or what is beside them, is another piece."""
        merging = Merging(self.spec)
        texts = self.spec.pieces.texts
        while True:
            piece = self.rng.choice(texts)
            _, steps = merging.run(piece)
            cut = tuple(self.rng.choice(steps)) if steps else (0, len(piece), len(piece))
            begin, end = self.rng.choice((cut[:2], cut[1:]))
            other = self.rng.choice(texts)
            for text in (piece[:begin] + other + piece[end:], piece[:end] + other, other + piece[begin:]):
                yield text.decode(errors="replace")

    def run(self, seconds: float, prose: Sequence[str] = ()) -> dict[str, bool]:
        """Search for some time; for each kind of text whether all were tried."""
        done = {"alone": self.look("alone", self.alone(), seconds)}
        done["prose"] = self.look("prose", iter(prose), seconds)
        if len(self.pieces) <= 300:
            done["triples"] = self.look("triples", self.triples(), seconds)
        firsts = self.rng.sample(self.pieces, len(self.pieces))
        done["pairs"] = self.rows(firsts, seconds * 0.6)
        for kind, texts in (("trees", self.trees()), ("random", self.at_random())):
            done[kind] = self.look(kind, texts, seconds * 0.2)
        return done

    def wrong(self, report: cpbpe.Lint) -> list[int]:
        """Pieces that are called unreachable and that a text yielded."""
        bad = [id for id, reason in report.reach.reasons.items() if reason.decided]
        return [id for id in bad if self.seen[id]]

    def unwitnessed(self, report: cpbpe.Lint) -> list[int]:
        """Pieces whose witness does not yield them."""
        texts = report.reach.texts
        rows = self.tok.encode_batch(list(texts.values()), threads=1)
        return [id for id, row in zip(texts, rows, strict=True) if id not in row]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", help="files of models")
    parser.add_argument("--seconds", type=float, default=60, help="how long each model is searched, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prose", type=Path, action="append", default=[], help="a text (may be repeated)")
    options = parser.parse_args()
    failed = 0
    prose = [text for path in options.prose for text in path.read_text("utf-8", "replace").split("\0")]
    for path in options.models:
        tok = cpbpe.load(path)
        began = time.perf_counter()
        report = tok.lint()
        took = time.perf_counter() - began
        search = Search(tok, options.seed)
        done = search.run(options.seconds, prose)
        wrong, unwitnessed = search.wrong(report), search.unwitnessed(report)
        failed += len(wrong) + len(unwitnessed)
        tried = ", ".join(
            f"{number:,} {kind}{' (all)' * done.get(kind, False)}" for kind, number in search.tried.items()
        )
        decided = [reason for reason in report.reach.reasons.values() if reason.decided]
        print(
            f"{path}: {len(tok):,} ids, lint {took:.2f} s, {len(decided):,} called unreachable,"
            f" {len(report.reach.reasons) - len(decided):,} undecided; tried {tried};"
            f" wrong: {wrong[:20]}, witnesses that fail: {unwitnessed[:20]}",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
