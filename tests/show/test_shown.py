"""`tok.show`: what is drawn is the text and its tokens, all of them, and nothing that acts."""

import json
import pickle
import re
import sys
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe.text.drawn import width
from cpbpe.text.utf8 import text_of
from tests.bytes.models import model
from tests.show.test_drawn import any_text
from tests.support import tiers, zoo
from tests.support.budget import quick
from tests.support.drawings import SGR, Page, unspelled, without_colours

MODELS = ["llama", "defaults", "user-defined-llama", "broken-pieces", "bytes"]
INJECTION = (
    "<script>alert(1)</script> \"' onmouseover=x <img src=//x onerror=a> </bdi></div> &lt; --> "
    "\x1b]0;x\x07\x1b[2J"
)


@cache
def tokenizer(name: str) -> cpbpe.Tokenizer:
    if name == "bytes":
        return cpbpe.Tokenizer.from_spec(model())
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def cells_of(shown: cpbpe.Shown) -> list[Any]:
    return [cell for group in shown.groups for cell in group.cells]


def check(shown: cpbpe.Shown, text: str | bytes) -> None:
    """All of the text and all of its tokens are drawn, and can be read back from both drawings."""
    encoding = shown.encoding
    cells = cells_of(shown)
    tokens = [cell for cell in cells if cell.kind != "removed"]
    # 1. The cells are the tokens, and their spans the whole text.
    assert [cell.id for cell in tokens] == encoding.ids
    assert [cell.span for cell in tokens] == encoding.offsets
    spans = sorted(cell.span for cell in cells if cell.span[0] < cell.span[1])
    data = text if isinstance(text, bytes) else text.encode()
    given = data if encoding.unit == "byte" else text_of(data)
    assert [begin for begin, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
    assert [end for _, end in spans[-1:]] == [len(given)] * bool(spans)
    # 2. The HTML.
    page = Page(shown.html())
    contents = [data for _, data in page.titles]
    assert contents == [cell.data for cell in cells]
    titles = [title for title, _ in page.titles]
    for title, cell in zip(titles, cells, strict=True):
        assert title.startswith(
            f"id {cell.id} · piece " if cell.id >= 0 else "characters" if encoding.unit == "char" else "bytes"
        )
        assert f"{cell.span[0]}–{cell.span[1]}" in title
    surfaces = [row[3] for row in page.rows[1:]]
    assert len(surfaces) == len(cells)
    for surface, cell in zip(surfaces, cells, strict=True):
        is_cut = len(cell.surface) > 60 and surface.endswith("…".encode())
        assert cell.surface.startswith(surface[:-3]) if is_cut else cell.surface == surface
    # 3. The lines.
    lines = shown.text(colours=False, columns=400).split("\n")
    above, below = lines[::2], lines[1::2]
    drawn = [cell for line in above for cell in re.split("[│┊]", line)] if cells else []
    plain = [cell.rstrip(" ").rpartition(" ")[2].strip("\u2068\u2069") for cell in drawn]
    assert [unspelled(cell) for cell in plain] == [cell.data for cell in cells]
    ids = [cell.split()[0] for line in below for cell in re.split("[│┊]", line)] if cells else []
    assert ids == [str(cell.id) if cell.id >= 0 else "-" for cell in cells]
    coloured = shown.text(colours=True, columns=400).split("\n")
    assert [width(without_colours(line).rstrip()) for line in coloured] == [
        width(line.rstrip()) for line in lines
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_all_of_any_text_is_drawn(name: str) -> None:
    @quick(5, 25)
    @given(any_text.map(lambda text: text.replace("│", "").replace("┊", "")), st.booleans(), st.booleans())
    def found(text: str, reverse: bool, as_bytes: bool) -> None:
        tok = tokenizer(name)
        around = tok.bos_id is not None
        given = text.encode()[1:] if as_bytes else text
        check(tok.show(given, limit=None, reverse=reverse, add_bos=around), given)
        check(tok.show(text, unit="byte"), text)

    found()


@pytest.mark.parametrize("name", MODELS)
def test_markup_and_controls_are_drawn_and_do_nothing(name: str) -> None:
    shown = tokenizer(name).show(INJECTION)
    check(shown, INJECTION)
    assert "\x1b" not in shown.text(colours=False)
    assert "\x07" not in shown.text(colours=True)


def test_markup_in_a_model() -> None:
    """Pieces and special tokens come from anybody, too. (In tokenizers' visualizer they acted: #2210.)"""
    tok = tokenizer("bytes").with_special_tokens([INJECTION, "שלום\u202e\n<b>"])
    shown = tok.show(f"a{INJECTION}b שלום\u202e\n<b>", allowed_special="all")
    check(shown, f"a{INJECTION}b שלום\u202e\n<b>")
    assert [cell.kind for cell in cells_of(shown)].count("special") == 2


# --- What it looks like ---------------------------------------------------------------------------

LINES: dict[str, tuple[str, dict[str, Any], str]] = {
    "real": (
        "Hi \U0001f999\n\tx",
        {},
        r"""
▁Hi  │▁    │🦙 ‹F0›┊‹9F›┊‹A6›┊‹99›│⏎ ‹0A›
15359│28705│243    ┊162 ┊169 ┊156 │13
⇥ ‹09›│x
12    │28744
""",
    ),
    "defaults": (
        "  the ☃☃ two  ",
        {"add_eos": True},
        """
␣␣│▁the│▁  │☃☃       │▁t│w  │o  │␣␣│</s>
- │29  │283│0 unknown│4 │305│288│- │2
""",
    ),
    "bytes": (
        "été the \U0001f9ff",
        {},
        r"""
é ‹C3›┊‹A9›│t │é ‹C3›┊‹A9›│␣the│␣🧿 ␣‹F0›‹9F›┊‹A7›┊‹BF›
251   ┊77  │72│251   ┊77  │271 │427          ┊117 ┊103
""",
    ),
}


def test_lines_of_both_families() -> None:
    for name, (text, options, expected) in LINES.items():
        tok = tokenizer(zoo.REAL[0] if name == "real" else name)
        assert f"\n{tok.show(text, **options)}\n" == expected, name


def test_html_of_both_families() -> None:
    html = tokenizer(zoo.REAL[0]).show("Hi <b>").html()
    assert 'title="id 15359 · piece ▁Hi · text Hi · characters 0–2 · score ' in html
    assert ">▁&lt;</bdi>" in html
    page = Page(tokenizer("bytes").show("a日".encode()).html())
    assert page.labels == ["4 tokens, 4 bytes"]
    assert re.fullmatch(
        r"id \d+ · piece ‹E6› · text ‹E6› · bytes 1–2 · rank \d+ · a part of 日", page.titles[1][0]
    )
    real = Page(tokenizer(zoo.REAL[0]).show("🦙").html())
    assert real.titles[1][0] == (
        "id 243 · piece <0xF0> · text (none) · characters 0–0 · a byte of a character that has no piece · "
        "a part of 🦙"
    )


def test_signs_of_drawings_in_a_text() -> None:
    """In a terminal they have escapes; HTML marks what stands for something else, so they stay there."""
    shown = tokenizer("bytes").show("␣\\ ")
    assert str(shown).startswith("‹U+2423› ‹E2›┊")
    assert ">␣</bdi>" in shown.html()
    assert ">\\</bdi>" in shown.html()
    assert '<span style="opacity:.6">␣</span></bdi>' in shown.html()


def test_right_to_left() -> None:
    tok = tokenizer(zoo.REAL[0])
    alone = tok.show("שלום עולם", add_bos=True)
    assert '<div dir="rtl"' in alone.html()  # `<s>` does not count
    mixed = tok.show("the word שלום, and 12 more שם").html()
    assert '<div dir="ltr"' in mixed
    runs = re.findall(r'<bdi dir="(ltr|rtl)">', mixed)
    assert runs == ["ltr", "rtl", "ltr", "rtl"]
    assert alone.text(colours=False).count("\u2068") == alone.text(colours=False).count("\u2069") == 8
    digits = re.findall(r'<bdi dir="(ltr|rtl)">', tok.show("שם 12 שם").html())
    assert digits == ["rtl", "ltr", "rtl"]


def test_turned_round() -> None:
    tok = tokenizer("bytes")
    shown = tok.show("日a", reverse=True)
    assert [cell.data for cell in cells_of(shown)] == [b"a", b"\xa5", b"\x97", b"\xe6"]
    assert [group.together.decode() for group in shown.groups] == ["", "日"]
    assert ">日</bdi>" in shown.html()
    assert [cell.data for cell in cells_of(tok.show("日ab", reverse=True, limit=2))] == [b"b", b"a"]
    ends = cells_of(tokenizer("llama").show("ab", reverse=True, limit=1, add_bos=True, add_eos=True))
    assert [cell.kind for cell in ends] == ["special"]  # (no text is called removed that is not drawn)


def test_lines_fit() -> None:
    texts = ["the cat " * 40, "日本語 שלום " * 20, "a" * 500, "☃" * 300, INJECTION]
    for name in ("llama", "defaults", "bytes"):
        for text in texts:
            for columns in (20, 33, 80):
                for colours in (False, True):
                    lines = tokenizer(name).show(text).text(colours=colours, columns=columns).split("\n")
                    kept = [line for line in map(without_colours, lines) if not line.startswith("…")]
                    assert max(map(width, kept)) <= columns
    with pytest.raises(ValueError, match="columns must be at least 20, not 5"):
        tokenizer("llama").show("a").text(columns=5)


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tokenizer("llama").show("the cat")
    assert "\x1b" not in str(shown)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    assert SGR.search(str(shown))
    assert repr(shown) == str(shown) == shown.text(colours=True, columns=30)
    assert "\x1b" not in shown.text(colours=False)
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b" not in str(shown)
    monkeypatch.setattr(sys, "stdout", None)
    assert str(shown).startswith("▁the")


# --- How much -------------------------------------------------------------------------------------


def test_long_texts() -> None:
    tok = tokenizer(zoo.REAL[0])
    text = "Hello world, a line.\n" * 50_000
    begun = time.process_time()
    shown = tok.show(text)
    html, lines = shown.html(), str(shown)
    assert time.process_time() - begun < 10
    assert len(html) < 250_000
    assert len(Page(html).titles) == 300
    more = f"… and {len(shown) - 300:,} more tokens; show(text, limit=None) draws all {len(shown):,}"
    assert lines.endswith(f"\n{more}")
    assert more in html
    assert tok.show("Hello world", limit=1).text() == (
        "▁Hello\n22557\n… and 1 more token; show(text, limit=None) draws all 2"
    )
    assert tok.show("Hi", limit=0).text() == "… and 1 more token; show(text, limit=None) draws all 1"


def test_one_token_as_long_as_the_text() -> None:
    for text, count in (("☃" * 10**6, 2), (" " * 10**6, 1)):
        shown = tokenizer("defaults").show(text)
        assert len(cells_of(shown)) == count
        assert len(shown.html()) < 20_000
        assert "…" in str(shown)
        assert len(str(shown)) < 2000


def test_nothing() -> None:
    for name in MODELS:
        shown = tokenizer(name).show("")
        assert (str(shown), len(shown)) == ("(no tokens)", 0)
        assert Page(shown.html()).labels == ["0 tokens, 0 characters"]


# --- Who may ask, and what comes of it ------------------------------------------------------------


@tiers.engines
def test_encodings_draw_themselves(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    encoding = tok.align("the 日 cat", add_bos=True)
    assert encoding._repr_html_() == tok.show("the 日 cat", add_bos=True).html()
    assert tok.align_batch(["the 日 cat"])[0]._repr_html_() == tok.show("the 日 cat").html()
    assert cpbpe.Shown(encoding.truncate(2)).encoding.facts is tok.facts
    again = pickle.loads(pickle.dumps(encoding))
    assert again == encoding
    assert again.facts is None
    page = Page(again._repr_html_())
    assert [data for _, data in page.titles] == [cell.data for cell in cells_of(cpbpe.Shown(encoding))]
    assert set(asdict(encoding)) == {"ids", "pieces", "offsets", "text", "unit", "special"}


@tiers.engines
@pytest.mark.parametrize("name", ["llama", "bytes"])
def test_added_tokens_that_are_not_special(
    engine: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    tokenizer(name).save(tmp_path / "tokenizer.json")
    content = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    size = len(tokenizer(name))
    for id, text, special in ((size, "myo", False), (size + 1, "<x>", True)):
        content["added_tokens"].append({"id": id, "content": text, "special": special, **flags})
    tok = cpbpe.Tokenizer.from_bytes(json.dumps(content).encode())
    shown = tok.show("myo<x>", allowed_special="all")
    added = [(cell.kind, cell.data) for cell in cells_of(shown) if cell.id >= size]
    assert added == [("text", b"myo"), ("special", b"<x>")]
    assert shown.html().count("special token") == 2  # in its title, and in the table
    check(shown, "myo<x>")


def test_it_is_a_value() -> None:
    shown = tokenizer("llama").show("the cat")
    assert shown == tokenizer("llama").show("the cat") != tokenizer("llama").show("the cat", limit=5)
    with pytest.raises(AttributeError):
        shown.limit = 3  # type: ignore[misc]
    bound = tokenizer("llama").using(add_bos=True)
    assert bound.show("the").encoding.ids == bound.encode("the")
    assert pickle.loads(pickle.dumps(shown)) == shown


def test_wrong_arguments() -> None:
    tok = tokenizer("llama")
    wrong: Any
    for wrong, message in ((5, "takes str or bytes, not int"), (["a"], "give it one text after the other")):
        with pytest.raises(TypeError, match=rf"show\(\).*{message}"):
            tok.show(wrong)
    with pytest.raises(TypeError, match=r"Shown\(\) takes an Encoding.*not str; for a text use tok\.show"):
        cpbpe.Shown("the cat")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit must be at least 0, not -1"):
        tok.show("a", limit=-1)
    with pytest.raises(TypeError, match="limit must be an integer"):
        tok.show("a", limit="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"show\(\) has no option 'colour'"):
        tok.show("a", colour=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unit must be"):
        tok.show("a", unit="word")  # type: ignore[arg-type]
