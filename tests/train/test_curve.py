"""The curve of vocabulary sizes: where it bends, and how it is drawn."""

from hypothesis import given
from hypothesis import strategies as st

from cpbpe.text.pages import Page
from cpbpe.training.curve import Curve, draw_curve
from tests.support.drawings import WholePage


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_the_knee(numbers: list[int]) -> None:
    """Pieces before it save more than the average of all, pieces after it less; a line has none."""
    tokens = tuple(sorted(numbers, reverse=True))
    knee, steps, saved = Curve(10, tokens, 1000).knee, len(tokens) - 1, tokens[0] - tokens[-1]
    if knee is None:
        assert all((tokens[0] - count) * steps <= saved * place for place, count in enumerate(tokens))
        return
    at = knee - 10
    for place in range(at):
        assert (tokens[place] - tokens[at]) * steps > saved * (at - place)
    for place in range(at + 1, len(tokens)):
        assert (tokens[at] - tokens[place]) * steps <= saved * (place - at)


def test_curves_that_do_not_bend() -> None:
    for tokens in ((), (5,), (9, 6, 3), (4, 4, 4), (0, 0), (9, 9, 1)):
        assert Curve(10, tokens, 100).knee is None
    page = Page()
    draw_curve(Curve(1, (0, 0), 0), page)
    assert "–" in WholePage(page.document()).text
