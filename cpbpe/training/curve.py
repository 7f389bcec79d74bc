"""How many tokens a corpus has with a vocabulary of any size: the numbers, and their drawing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10

from cpbpe.text.pages import COLOURS, Page, svg, svg_text


@dataclass(frozen=True, repr=False)
class Curve:
    """How many tokens the corpus has with a vocabulary of any size up to the one that was trained.

    More pieces never need more tokens, so the curve does not say which size is best. It says what each size
    gains on this corpus.
    """

    first: int
    """The smallest size: special pieces and characters, no merges."""
    tokens: tuple[int, ...]
    """The number of tokens for this size, the next one, and so on."""
    text_bytes: int
    """The bytes of the corpus, normalized, a space counted as one byte."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((self.first + index, tokens) for index, tokens in enumerate(self.tokens))

    def __repr__(self) -> str:
        if not self.tokens:
            return "<Curve: empty>"
        last = self.first + len(self) - 1
        return f"<Curve: {self.tokens[0]:,} tokens at {self.first} pieces to {self.tokens[-1]:,} at {last}>"

    def tokens_per_byte(self, vocab_size: int) -> float:
        """The number of tokens per byte of the corpus, for a vocabulary size."""
        if not self.first <= vocab_size < self.first + len(self.tokens):
            raise ValueError(
                f"the curve is known from {self.first} to {self.first + len(self.tokens) - 1} pieces, "
                f"not for {vocab_size}"
            )
        return self.tokens[vocab_size - self.first] / max(self.text_bytes, 1)

    def smallest(self, tokens_per_byte: float) -> int | None:
        """The smallest vocabulary size with at most this many tokens per byte; None if there is none."""
        # (Compared as `tokens_per_byte` computes it: a product of the two may round to a little less.)
        size = max(self.text_bytes, 1)
        place = bisect_left(self.tokens, -tokens_per_byte, key=lambda tokens: -(tokens / size))
        return self.first + place if place < len(self.tokens) else None

    @property
    def knee(self) -> int | None:
        """The size at which the curve bends, if it does: a description of the curve, not the best size.

        Up to it, each piece saves more tokens than the pieces of the whole curve do on average, and from then
        on less. So it is the point farthest below the straight line between the ends of the curve. (The curve
        ends at the size that was trained: with a larger one, the knee is farther to the right.)
        """
        if not self.tokens:
            return None
        most, steps = self.tokens[0], len(self.tokens) - 1
        saved = most - self.tokens[-1]
        below = [steps * (most - tokens) - saved * place for place, tokens in enumerate(self.tokens)]
        farthest = max(below)
        return self.first + below.index(farthest) if farthest > 0 else None


# --- The drawing ----------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 480, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 26, 40
"""The margins: room for the numbers of the axes, and for what sticks out of the plot."""
_POINTS = 400
"""This many sizes are drawn, at most."""


def draw_curve(curve: Curve, on: Page) -> None:
    """Draw the curve with its knee, and its numbers beside it."""
    last, knee = curve.first + len(curve) - 1, curve.knee
    on.title("Tokens with smaller vocabularies")
    if knee is not None:
        on.text(
            f"The curve bends at {knee:,} pieces: up to there, each piece saves more tokens than all do on "
            f"average, and then less. This depends on how far the curve goes; it is not the best size."
        )
    sizes = {curve.first, last, *(last * share // 8 for share in (1, 2, 4, 6)), *filter(None, [knee])}
    rows = [["pieces", "tokens", "bytes per token"]]
    for size in sorted(size for size in sizes if size >= curve.first):
        tokens = curve.tokens[size - curve.first]
        each = f"{curve.text_bytes / tokens:.3f}" if tokens else "–"
        rows.append([f"{size:,}{', the knee' if size == knee else ''}", f"{tokens:,}", each])
    on.figure('<div class="beside">' + _plot(curve, last, knee))
    on.table(rows)
    on.figure("</div>")


def _plot(curve: Curve, last: int, knee: int | None) -> str:
    """The curve as SVG. Both axes begin at 0, so that lengths can be compared."""
    most = max(curve.tokens[0], 1)
    bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT

    def place(size: int, tokens: float) -> tuple[float, float]:
        return _LEFT + size / last * (end - _LEFT), bottom - tokens / most * (bottom - _TOP)

    # 1. The axes, with lines at round numbers.
    parts = [svg_text(end, _HEIGHT - 6, "pieces", "end"), svg_text(0, 12, "tokens")]
    for tokens in _round_numbers(most):
        _, y = place(0, tokens)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{end}" stroke="#8886"/>')
        parts.append(svg_text(_LEFT - 6, y + 4, _short(tokens), "end"))
    for size in _round_numbers(last):
        x, _ = place(size, 0)
        parts.append(svg_text(x, bottom + 16, _short(size), "middle"))
    # 2. The curve.
    step = -(-len(curve) // _POINTS)
    points = [*list(curve)[:-1:step], (last, curve.tokens[-1])]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>')
    # 3. The knee.
    label = f"{curve.tokens[0]:,} tokens with {curve.first:,} pieces, {curve.tokens[-1]:,} with {last:,}"
    if knee is not None:
        x, y = place(knee, curve.tokens[knee - curve.first])
        parts.append(f'<path d="M{x:.1f} {bottom}V{y:.1f}" stroke="currentColor" stroke-dasharray="3 3"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[1]}"/>')
        # (The curve is on the left above its knee, so the right has room, except at the end of the axis.)
        away, anchor = (8, "start") if x < end - 100 else (-8, "end")
        parts.append(svg_text(x + away, y - 8, f"knee: {knee:,}", anchor))
        label += f"; the knee is at {knee:,}"
    return svg(_WIDTH, _HEIGHT, label, parts)


def _round_numbers(most: float) -> list[int]:
    """Up to six round numbers from 0 to a number.

    >>> _round_numbers(1000), _round_numbers(32000), _round_numbers(3)
    ([0, 200, 400, 600, 800, 1000], [0, 10000, 20000, 30000], [0, 1, 2, 3])
    """
    power = 10 ** int(log10(most))
    step = max(next(step for step in (power / 5, power / 2, power, power * 2) if most / step <= 5), 1)
    return [round(number * step) for number in range(int(most / step) + 1)]


def _short(number: int) -> str:
    """A number of an axis.

    >>> _short(0), _short(2500), _short(3 * 10**9)
    ('0', '2.5k', '3G')
    """
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:g}{unit}"
    return str(number)
