"""The rules of drawing: nothing is drawn that acts, and nothing looks like something else."""

import unicodedata
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbpe.text import drawn
from cpbpe.text.utf8 import is_inside, is_valid_utf8
from tests.support.budget import quick
from tests.support.drawings import unspelled, without_colours

_CHARACTERS = (
    "\\ ␣◌\u0301\u200b\u200d\ufe0f\u202e\u2068\u2069\x1b\n\r\0\x85\u3164שا٣12日ｶ<>&\"'▁│┊\U000e0041\u2028"
)
ODD = [*_CHARACTERS, "\r\n", "👩\u200d🚀", "❤\ufe0f", "1\ufe0f\u20e3", "👍🏽", "🇩🇪", "e\u0301", "<b>"]
ODD += ["🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"]
any_text = st.lists(st.sampled_from(ODD) | st.text(max_size=3)).map("".join)
any_bytes = st.binary(max_size=20) | st.tuples(any_text, st.binary(max_size=3)).map(
    lambda both: both[0].encode() + both[1]
)
CONTROLS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@quick(1, 100)
@given(any_bytes)
def test_what_is_drawn_can_be_read_back(data: bytes) -> None:
    text = drawn.spelled(data, None)
    assert unspelled(text) == data
    parts = drawn.parts_of(data, None)
    meant = (unspelled(part.text) if part.is_substitute else part.text.encode() for part in parts)
    assert b"".join(meant) == data


@quick(1, 100)
@given(any_bytes)
def test_nothing_is_drawn_that_acts(data: bytes) -> None:
    text = drawn.spelled(data, None)
    assert not any(
        c in CONTROLS or unicodedata.category(c) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") for c in text
    )
    assert drawn.width(text) >= 0
    # What cannot be seen is within an emoji: something is before it.
    for before, character in pairwise(["", *text]):
        if unicodedata.category(character) == "Cf":
            assert before > "\x7f"
    assert not text or unicodedata.category(text[0])[0] != "M"
    assert without_colours(drawn.in_terminal(drawn.parts_of(data, None), "30;48;5;152")) == drawn.isolated(
        text
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("▁Hello", "▁Hello"),
        (" Hello", "␣Hello"),
        ("a\tb\r\n", "a⇥b␍⏎"),
        ("\x1b[2J", "‹U+001B›[2J"),
        ("C:\\new", "C:\\new"),
        ("␣⏎◌ ‹F0›", "‹U+2423›‹U+23CE›‹U+25CC›␣‹U+2039›F0›"),
        ("\u0301", "◌\u0301"),
        (" \u0301\u0302x", "␣◌\u0301\u0302x"),
        ("e\u0301", "e\u0301"),
        ("pay\u200dpal", "pay‹U+200D›pal"),
        ("می\u200cخواهم", "می‹U+200C›خواهم"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("👩\u200d", "👩‹U+200D›"),
        ("\u200d🚀", "‹U+200D›🚀"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("👩\u200d\U0001f02f", "👩‹U+200D›‹U+1F02F›"),  # which is no character yet
        ("a\ufe0f", "a‹U+FE0F›"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f‹U+FE0F›"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("\u3164\u2800\xad\x85", "‹U+3164›‹U+2800›‹U+00AD›‹U+0085›"),
        ("\U000e0041", "‹U+E0041›"),
    ],
    ids=ascii,
)
def test_examples(text: str, expected: str) -> None:
    assert drawn.spelled(text.encode()) == expected


def test_bytes_that_are_no_character() -> None:
    assert drawn.spelled(b"\xf0\x9f") == "‹F0›‹9F›"
    assert drawn.spelled(b"a\xe4\xbdb") == "a‹E4›‹BD›b"
    assert drawn.spelled("é".encode()[1:] + "日".encode()) == "‹A9›日"


def test_long_tokens_are_cut() -> None:
    assert drawn.spelled(b"a" * 200) == "a" * 200
    assert drawn.spelled(b"a" * 201) == "a" * 200 + "…"
    assert drawn.spelled("日".encode() * 10**6, 3) == "日日日…"
    assert drawn.spelled(b"\xff" * 10, 3) == "‹FF›‹FF›‹FF›…"


@quick(1, 100)
@given(any_text, st.lists(st.integers(0, 40)))
def test_tokens_that_share_a_character(text: str, sizes: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(place for place in accumulate(sizes) if place < len(data))})
    tokens = [data[begin:end] for begin, end in pairwise(places)]
    shared = drawn.share_a_character(tokens)
    assert shared == [is_inside(data, place) for place in places[: len(tokens)]]
    groups: list[bytes] = []
    for token, joins in zip(tokens, shared, strict=True):
        if joins:
            groups[-1] += token
        else:
            groups.append(token)
    assert all(map(is_valid_utf8, groups))


def test_directions() -> None:
    assert [drawn.direction(text) for text in ("abc", "▁12", "12 שלום abc", "ab שלום", "مرحبا", "")] == [
        *("ltr", "", "rtl", "ltr", "rtl", "")
    ]
    assert drawn.isolated("abc 日本") == "abc 日本"
    assert drawn.isolated("a שלום") == "\u2068a שלום\u2069"


def test_markup_is_text() -> None:
    drawn_title = drawn.chip([], "", "<b a='1' c=\"2\">&amp;").split('title="')[1]
    assert drawn_title == '&lt;b a=&#x27;1&#x27; c=&quot;2&quot;&gt;&amp;amp;"></bdi>'
    assert drawn.in_html(drawn.parts_of(b"<b'\"&")) == "&lt;b&#x27;&quot;&amp;"
    assert drawn.in_html(drawn.parts_of(b"<a>\n\n&")) == ('&lt;a&gt;<span style="opacity:.6">⏎⏎</span>&amp;')
