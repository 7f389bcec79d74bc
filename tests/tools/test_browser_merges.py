"""The page's panels about merging in a real browser: the replay, trees, samples and the search."""

import json

import pytest

import cpbpe
from tests.support import browser as browsers
from tests.support import tiers
from tests.support.browser import Opener, typed, until
from tests.tools.page_models import BYTES

pytestmark = pytest.mark.skipif(not browsers.RUNS, reason=f"not there: {', '.join(browsers.MISSING)}")


# --- The merges of a text -----------------------------------------------------------------------------


@pytest.mark.parametrize("which", tiers.some([0, 1], [0]))
def test_replay(which: int, two: str, opened: Opener, tok: cpbpe.Tokenizer) -> None:
    """The slider, the text and the tree number the steps alike."""
    page = opened(two)
    typed(page, "the cat")
    page.select_option("#which", str(which))
    page.click("#replay summary")
    until(page, "document.querySelectorAll('#symbols .symbol').length > 5")
    assert page.inner_text("#why").startswith("The text begins as ")
    steps = int(page.get_attribute("#step", "max"))
    for number in range(1, steps + 1):
        page.click("#forward")
        assert page.inner_text("#place") == f"{number} of {steps}"
        assert page.inner_text("#why").startswith(f"Step {number} of {steps}: ")
        assert page.get_attribute("#step", "aria-valuetext").startswith(f"Step {number} of {steps}: ")
        assert page.locator("#symbols .chosen").count() == 1
    ids = (tok, BYTES)[which].encode("the cat")
    assert page.inner_text("#why").endswith(
        f"Nothing merges any more; the ids are {', '.join(map(str, ids))}."
    )
    # Pieces in the reason are elements of their own, and so are what a screen reader hears.
    assert page.locator("#why .symbol").count() >= 1
    assert page.inner_text("#heard").startswith(f"Step {steps} of {steps}: ")
    assert " become " in page.inner_text("#heard")
    page.select_option("#drawn", "trees")
    assert page.locator("#symbols > .node").count() == len(ids)
    assert page.locator("#symbols .label.chosen").inner_text().endswith(f"step {steps}")


def test_replay_is_moved_by_keys_and_plays(address: str, opened: Opener) -> None:
    page = opened(address)
    typed(page, "the cat")
    page.click("#replay summary")
    until(page, "document.getElementById('step').max > 0")  # (a browser tells later that the tool is open)
    steps = int(page.get_attribute("#step", "max"))
    for focus in ("#forward", "#symbols", "#step"):
        page.focus(focus)
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#place") == f"1 of {steps}"
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#place") == f"0 of {steps}"
    page.select_option("#speed", "fast")
    page.click("#play")
    assert page.inner_text("#play") == "Pause"
    until(page, "Number(document.getElementById('step').value) >= 2")
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    # All steps are rows; a click on one goes there.
    page.select_option("#drawn", "rows")
    assert page.locator("#symbols .step").count() == steps + 1
    page.locator("#symbols .step").nth(3).click()
    assert page.inner_text("#place") == f"3 of {steps}"
    assert page.locator("#symbols .step.current").inner_text().startswith("Step 3 ")


@tiers.slow
def test_long_texts_are_not_replayed(address: str, opened: Opener) -> None:
    page = opened(address)
    page.click("#replay summary")
    until(page, "document.getElementById('why').textContent == 'Type a text to see how it is merged.'")
    typed(page, "x" * 401)
    until(page, "document.getElementById('why').textContent.includes('401 characters')")
    assert page.inner_text("#why").endswith("up to 400. Select a part of it in the text box.")
    assert page.is_disabled("#play")
    page.evaluate("document.getElementById('text').setSelectionRange(0, 3)")
    until(page, "document.getElementById('why').textContent.startsWith('The text begins as')")


# --- Two texts ----------------------------------------------------------------------------------------


def test_two_texts_that_one_model_cuts_differently(
    address: str, opened: Opener, tok: cpbpe.Tokenizer
) -> None:
    page = opened(address)
    typed(page, "egg")
    page.click("#two summary")
    assert page.inner_text("#compared") == "Type two texts: one above, the other here."
    page.fill("#other", "Eggs")
    until(page, "document.querySelectorAll('#pair .symbols').length === 2")
    counts = [f"{tok.count(text)} token{'s' * (tok.count(text) != 1)}" for text in ("egg", "Eggs")]
    assert page.inner_text("#compared").startswith(" and ".join(counts))
    page.fill("#other", "egg")
    until(page, "document.getElementById('compared').textContent.endsWith('alike.')")
    assert page.locator("#two-why").is_hidden()
    typed(page, "lowest")
    page.fill("#other", "slowest")
    until(page, "!document.getElementById('two-why').hidden")
    page.click("#two-why")
    assert page.inner_text("#tree-title") == "Why are the texts cut differently?"
    assert " comes about" in page.inner_text("#tree-note")
    assert page.locator("#tree-nodes .side h3").all_inner_texts() == ["The first text", "The second text"]


# --- Trees --------------------------------------------------------------------------------------------


def test_trees(two: str, opened: Opener) -> None:
    """A wide tree is drawn smaller on a phone; parts of characters are bytes."""
    page = opened(two, viewport={"width": 390, "height": 844})
    page.click("#search summary")

    def tree(wanted: str) -> str:
        page.fill("#wanted", wanted)
        page.locator("#pieces button").first.click()
        page.wait_for_selector("#tree[open]")
        note: str = page.inner_text("#tree-note")
        return note

    assert tree("▁Hello").startswith("id 22557 · NORMAL · score -22298.")
    assert page.locator("#tree-nodes > .node").bounding_box()["width"] <= 390
    page.keyboard.press("Escape")
    assert tree("#1").endswith("A program inserts it; text that spells it out is cut into other pieces.")
    assert page.locator("#tree-nodes .node").count() == 0
    page.click("#close")
    page.select_option("#which", "1")
    first = next(id for id in range(256) if BYTES.vocab.id_to_bytes(id)[0] >= 0xC0)
    tree(f"#{first}")
    assert page.inner_text("#tree-title") == f"{BYTES.vocab.id_to_bytes(first)[0]:02X}"
    page.keyboard.press("Escape")


# --- Why two models differ ----------------------------------------------------------------------------


def test_why_different(two: str, opened: Opener) -> None:
    """A token that models cut differently has a button; it opens a reason and both trees, the step marked."""
    page = opened(two)
    typed(page, "Hello world")
    page.locator(".panel").first.locator(".token.differs").first.focus()
    page.click("#differs")
    page.wait_for_selector("#tree[open]")
    assert page.inner_text("#tree-title").startswith("Why is")
    reason = page.inner_text("#tree-note")
    assert reason.startswith(("a.model ", "<img ", "Their normalizers"))
    assert page.locator("#tree-note .symbol, #tree-note .piece").count() >= 1
    assert page.locator("#tree-nodes .side").count() == 2
    for side in page.locator("#tree-nodes .side").all():
        assert side.locator(".node").count() >= 1
    marked = page.locator("#tree-nodes .steps .marked")
    if " merges " in reason:
        assert marked.count() >= 1
        assert page.locator("#tree-nodes .label.chosen").count() == marked.count()
    assert page.locator("#hit, img").count() == 0
    page.keyboard.press("Escape")
    page.wait_for_selector("#tree:not([open])", state="hidden")
    typed(page, "")
    assert page.locator("#differs").count() == 0


# --- Samples and search -------------------------------------------------------------------------------


@tiers.slow
def test_samples_and_search(address: str, opened: Opener) -> None:
    page = opened(address)
    page.click("#samples summary")
    until(
        page,
        "document.getElementById('sampled').textContent == 'Type a text to see samples of its encoding.'",
    )
    typed(page, "the weather is nice")
    until(page, "document.querySelectorAll('#rows li').length == 8")
    before = page.inner_text("#rows")
    page.click("#again")
    until(page, f"document.getElementById('rows').innerText !== {json.dumps(before)}")
    page.fill("#alpha", "0")
    until(page, "document.getElementById('sampled').textContent == '8 samples, all alike'")
    typed(page, "a")
    until(page, "document.getElementById('rows').textContent.includes('· 1 token')")
    assert "1 tokens" not in page.inner_text("#rows")
    typed(page, "x" * 2001)
    until(page, "document.getElementById('sampled').textContent.includes('2,001 characters')")
    page.click("#search summary")
    page.fill("#wanted", " hello")
    until(page, "document.querySelectorAll('#pieces li').length")
    found = page.locator("#pieces .piece").all_text_contents()
    assert {piece.lower() for piece in found} == {"▁hello"}
    page.locator("#pieces button").first.click()
    page.wait_for_selector("#tree[open]")
    assert page.inner_text("#tree-title") == found[0]
    page.click("#close")
    page.wait_for_selector("#tree:not([open])", state="hidden")
    page.fill("#wanted", "no such piece")
    assert page.inner_text("#found") == "No piece contains this."
