"""How the page looks, that everybody can use it, and the page as a file."""

import re
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.view import static_page
from tests.support import browser as browsers
from tests.support import tiers
from tests.support.browser import Opener, tokens, typed, until
from tests.tools.page_models import BYTES, EVIL

pytestmark = pytest.mark.skipif(not browsers.RUNS, reason=f"not there: {', '.join(browsers.MISSING)}")

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
TOOLS = ("replay", "samples", "search")


def with_tools(page: Any) -> None:
    for tool in TOOLS:
        page.click(f"#{tool} summary")
    page.fill("#wanted", "the")
    until(
        page, "document.querySelectorAll('#pieces li').length && document.querySelectorAll('#rows li').length"
    )


@pytest.mark.parametrize("scheme", tiers.some(["light", "dark"], ["dark"]))
def test_contrast(scheme: str, two: str, opened: Opener) -> None:
    """All text that is shown has a contrast of 4.5 at least (WCAG, AA), also in dialogs and in messages."""
    page = opened(two, color_scheme=scheme)
    typed(page, "Hello  the\tcat\n🦙 e\u0301\u200b <s>")
    page.check("#special")
    page.check("#eos")
    with_tools(page)
    page.hover(".token >> nth=1")
    found = page.evaluate(CONTRAST)
    assert found["texts"] > 40
    assert found["low"] == []
    page.click(".token >> nth=1")
    page.wait_for_selector("#tree[open]")
    assert page.evaluate(CONTRAST)["low"] == []
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", back))) < 150) == (scheme == "dark")


@tiers.slow
def test_every_control_has_a_name(two: str, opened: Opener) -> None:
    page = opened(two)
    typed(page, "Hi 🦙")
    with_tools(page)
    nameless = page.evaluate(
        """() => {
          const controls = 'button, input, select, textarea, [role=button], [role=group], summary';
          const name = (one) =>
            one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.textContent;
          const shown = [...document.querySelectorAll(controls)].filter((one) => one.checkVisibility());
          return shown.filter((one) => !name(one).trim()).map((one) => one.outerHTML);
        }"""
    )
    assert nameless == []
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("[tabindex='0'].token").count() == 2
    ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(set(ids)) == len(ids)


@tiers.slow
def test_a_phone(two: str, opened: Opener) -> None:
    """Nothing is wider than the screen."""
    page = opened(two, viewport={"width": 360, "height": 740}, has_touch=True)
    typed(page, "Hello world " * 20 + "W" * 200)
    with_tools(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator(".token").first.tap()
    assert "piece ▁Hello" in page.inner_text("#about").replace("\n", " ")
    assert page.locator("#about dd").first.bounding_box()["height"] < 40  # not letter below letter
    assert not page.is_visible("#tree")
    page.click("text=How it is built")
    page.wait_for_selector("#tree[open]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Escape")
    assert not page.is_visible("#show")
    page.click("#menu")
    assert page.is_visible("#show")


def top(page: Any, selector: str) -> float:
    return float(page.locator(selector).first.bounding_box()["y"])


def test_a_projector(two: str, opened: Opener) -> None:
    """On 1280 x 720, tokens are beside the text, and the tools and the token pointed at need no scrolling."""
    page = opened(two, viewport={"width": 1280, "height": 720})
    typed(page, "one\n" * 40)
    page.hover(".token >> nth=1")
    text, tokens, about = (page.locator(name).bounding_box() for name in ("#text", "#panels", "#about"))
    assert text["height"] > 150  # it has grown
    assert tokens["x"] >= text["x"] + text["width"]
    assert tokens["y"] + tokens["height"] <= about["y"]
    assert about["y"] + about["height"] <= 720
    assert max(top(page, f"#{tool} summary") for tool in TOOLS) < 500
    page.click("#samples summary")
    page.click("#search summary")
    assert not page.is_visible("#alpha")  # one at a time
    assert top(page, "#wanted") < 620
    # What a line is typed into looks like all boxes, and has room for a line.
    page.click("#two summary")
    boxes = page.locator("#other, #which").evaluate_all(
        "all => [...new Set(all.map(one => getComputedStyle(one).borderRadius))]"
    )
    assert len(boxes) == 1
    assert page.locator("#other").bounding_box()["width"] > 400


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders(scheme: str, two: str, opened: Opener) -> None:
    """Tokens are told apart without their colours: their borders have a contrast of 3, also as greys."""
    page = opened(two, color_scheme=scheme)
    typed(page, "a b c d e f g h")
    shadow = page.locator(".token").first.evaluate("one => getComputedStyle(one).boxShadow")
    edge = re.match(r"rgb\([\d, ]+\)", shadow)
    assert edge, shadow
    fills = page.locator(".token").evaluate_all(
        "all => [...new Set(all.map(one => getComputedStyle(one).backgroundColor))]"
    )
    assert len(fills) == 6
    for fill in [*fills, page.evaluate("getComputedStyle(document.documentElement).backgroundColor")]:
        one, other = sorted((luminance(edge[0]), luminance(fill)))
        assert (other + 0.05) / (one + 0.05) >= 3, fill


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@tiers.slow
def test_zoomed(two: str, opened: Opener) -> None:
    """At 200 %, which halves the room, everything is there and nothing is cut off."""
    page = opened(two, viewport={"width": 640, "height": 360}, device_scale_factor=2)
    typed(page, "Hello world " * 20)
    page.click("#samples summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    for name in ("#menu", "#text", ".tokens", "#samples"):
        assert page.locator(name).first.is_visible()


@pytest.mark.slow
def test_the_focus_in_a_list(address: str, opened: Opener) -> None:
    """The outline of what has the focus is not cut off: a row is larger than its button."""
    page = opened(address)
    page.click("#search summary")
    page.fill("#wanted", "the")
    page.keyboard.press("Tab")
    until(page, "document.activeElement.className === 'found'")
    row, button = (page.locator(name).first.bounding_box() for name in ("#pieces li", "#pieces button"))
    assert button["x"] - row["x"] >= 4
    assert row["y"] + row["height"] - button["y"] - button["height"] >= 4


@pytest.mark.slow
def test_right_to_left(address: str, opened: Opener) -> None:
    page = opened(address)
    typed(page, "שלום עולם")
    assert page.evaluate("getComputedStyle(document.querySelector('.block')).direction") == "rtl"
    first, last = (page.locator(".token").nth(at).bounding_box() for at in (0, -1))
    assert first["x"] > last["x"]
    page.locator(".token").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.at") == "1"


def test_the_file(tok: cpbpe.Tokenizer, opened: Opener, tmp_path: Path) -> None:
    """Without a server: tokens, hover, trees, replay, and the search of what is there."""
    text = f"Hello 🦙\r\n{EVIL}"
    path = tmp_path / "tokens.html"
    path.write_bytes(static_page({"a.model": tok, "b": BYTES}, text).encode())
    page = opened(path.as_uri())
    assert tokens(page)[0].startswith("▁Hello, id 22557")
    assert page.locator(".panel >> nth=0 >> .token").count() == len(tok.encode(text))
    assert page.locator(".differs").count() > 0
    page.hover(".token >> nth=0")
    assert "22557" in page.inner_text("#about")
    page.click(".token >> nth=0")
    page.wait_for_selector("#tree[open]")
    assert page.locator("#tree .label").count() == 11
    page.keyboard.press("Escape")
    page.click("#replay summary")
    page.evaluate("document.getElementById('text').setSelectionRange(0, 5)")
    until(page, "document.querySelector('#why').innerText.startsWith('The text begins as ')")
    page.fill("#step", "1")
    assert page.inner_text("#why").startswith("Step 1 of ")
    page.click("#search summary")
    page.fill("#wanted", " hello")
    until(page, "document.querySelectorAll('#pieces li').length")
    assert page.locator("#pieces .piece").all_text_contents() == ["▁Hello"]
    assert (page.title(), page.locator("img").count()) == ("cpbpe view", 0)
    page.click("#samples summary")
    until(page, "document.querySelectorAll('#rows li').length == 8")
    drawn = page.locator("#rows li >> nth=1 >> .symbol").all_text_contents()
    assert drawn == tok.encode_pieces("Hello", alpha=0.1, seed=1)
    page.fill("#alpha", "0")
    until(page, "document.getElementById('sampled').textContent == '8 samples, all alike'")
