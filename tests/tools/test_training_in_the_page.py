"""Training in a browser: the vocabulary grows merge by merge, and the model is that of `cpbpe.train`."""

import re
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from tests.support import browser as browsers
from tests.support import corpus, tiers
from tests.support.browser import Opener, typed, until

pytestmark = pytest.mark.skipif(not browsers.RUNS, reason=f"not there: {', '.join(browsers.MISSING)}")

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
TEXT = "\n".join(corpus.lines(400))


def trained(page: Any, text: str = TEXT, size: int = 700) -> None:
    """Train, and wait until it is done."""
    # (Typing a long text takes Chromium long.)
    put = "box => { box.value = text; box.dispatchEvent(new Event('input')); }"
    page.evaluate(f"text => {{ ({put})(document.querySelector('#train-text')); }}", text)
    page.fill("[data-option=vocab_size]", str(size))
    page.click("#train-start")
    shown = "document.querySelector('#train-rivals').dataset.merges"
    last = "document.querySelector('#train-step').max"
    until(page, f"!document.querySelector('#trained').hidden && {shown} === {last}")


def at(page: Any, merges: int) -> None:
    """Move the slider, and wait until the pairs that lost are there."""
    page.fill("#train-step", str(merges))
    until(page, f"document.querySelector('#train-rivals').dataset.merges === '{merges}'")


def sample(page: Any) -> list[str]:
    found: list[str] = page.locator("#train-sample .made").all_text_contents()
    return found


def test_the_vocabulary_grows(address: str, opened: Opener, tmp_path: Path) -> None:
    page = opened(address)
    typed(page, "the lighthouse keeper 🦙, 1987")
    page.click("#train summary")
    trained(page)
    assert page.is_hidden("#train-problem") or not page.inner_text("#train-problem")
    file = tmp_path / "corpus.txt"
    file.write_text(TEXT, encoding="utf-8")
    result = cpbpe.train(file, vocab_size=700)
    report = result.report
    merges = report.merges
    assert page.inner_text("#train-place") == f"{merges} of {merges} merges"
    # 1. At every size, the sample is cut as the model of this size cuts it.
    for count in (0, 1, 50, merges - 1):
        at(page, count)
        size = 700 - merges + count
        smaller = cpbpe.train(file, vocab_size=size).tokenizer
        pieces = smaller.encode_pieces("the lighthouse keeper 🦙, 1987")
        # (The four bytes of the llama are written as such.)
        shown = [re.sub("<0x(..)>", r"\1", piece).replace("▁", " ") for piece in pieces]
        assert sample(page) == shown
        assert page.inner_text("#train-count") == f"{len(pieces)} tokens in the text above"
        assert page.inner_text("#train-size").startswith(f"{size} pieces · ")
    # 2. The merge, and what it was chosen from.
    at(page, 1)
    first = result.tokenizer.id_to_piece(259)
    shown = page.inner_text("#train-merge").replace("\n", " ")
    assert shown.startswith("Merge 1: ")
    assert shown.split("→ ")[1].startswith(f"{first}, ")
    counts = [
        int(text.split()[0].replace(",", ""))
        for text in page.locator("#train-rivals .quiet").all_inner_texts()
    ]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == 6
    # 3. The file of the size that is shown.
    at(page, 100)
    with page.expect_download() as download:
        page.click("#train-download")
    size = 700 - merges + 100
    assert download.value.suggested_filename == f"trained-{size}.model"
    assert Path(download.value.path()).read_bytes() == cpbpe.train(file, vocab_size=size).tokenizer.to_bytes()
    # 4. It becomes a model of the page.
    page.click("#train-use")
    until(page, "document.querySelectorAll('.panel').length === 2")


@tiers.slow
def test_byte_level(address: str, opened: Opener, tmp_path: Path) -> None:
    """Parts of characters are written as bytes. The text of the page is taken if there is no other."""
    page = opened(address)
    typed(page, "été à la fenêtre " * 20)
    page.click("#train summary")
    assert page.inner_text("#train-corpus") == "Trains on the text of the page: 420 bytes"
    page.select_option("#train-kind", "bytes")
    page.select_option("[data-option=pattern]", "gpt2")
    page.select_option("[data-option=ties]", "minbpe")
    trained(page, "", 5000)
    warning = page.inner_text("#train-warnings")
    assert warning.startswith("The text gives 257 to ")
    at(page, 0)
    assert page.inner_text("#train-merge") == "No merges yet: only bytes."
    assert page.locator("#train-sample .bytes").first.inner_text() == "C3"
    file = tmp_path / "corpus.txt"
    file.write_text("été à la fenêtre " * 20, encoding="utf-8")
    at(page, 5)
    with page.expect_download() as download:
        page.click("#train-download")
    tok = cpbpe.train(file, preset="gpt2", ties="minbpe", vocab_size=262).tokenizer
    assert Path(download.value.path()).read_bytes() == tok.to_bytes()


def test_it_plays_and_can_be_cancelled(address: str, opened: Opener, tmp_path: Path) -> None:
    page = opened(address)
    page.click("#train summary")
    # 1. Without text, with wrong options, and with too small a size, it says what to do.
    page.click("#train-start")
    until(page, "document.querySelector('#train-problem').textContent.includes('nothing to train on')")
    page.fill("[data-option=character_coverage]", "0.5")
    page.click("#train-start")
    assert page.inner_text("#train-problem") == "coverage of characters: a number from 0.98 to 1."
    page.fill("[data-option=character_coverage]", "1")
    page.fill("#train-text", "a few words")
    page.fill("[data-option=vocab_size]", "260")
    page.click("#train-start")
    until(page, "document.querySelector('#train-problem').textContent.includes('268 at least')")
    # A long text that is pasted does not go into the box.
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData('text/plain', text);
          const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
          document.querySelector('#train-text').dispatchEvent(event);
        }""",
        "a line\r\n" * 10_000,
    )
    assert page.inner_text("#train-corpus") == "Trains on the pasted text: 70,000 bytes"
    assert page.input_value("#train-text") == ""
    # 2. A file is opened, and the training of it cancelled.
    file = tmp_path / "long.txt"
    file.write_text("\n".join(corpus.lines(20_000)), encoding="utf-8")
    page.set_input_files("#train-file", file)
    until(page, "document.querySelector('#train-corpus').textContent.startsWith('Trains on long.txt')")
    page.uncheck("[data-option=split_by_whitespace]")
    page.fill("[data-option=vocab_size]", "100000")
    page.click("#train-start")
    page.click("#train-cancel")
    assert page.inner_text("#train-status") == "Cancelled."
    assert page.is_hidden("#trained")
    # 3. Merges follow one another, until they are stopped.
    page.check("[data-option=split_by_whitespace]")
    trained(page)
    at(page, 0)
    page.select_option("#train-speed", "5")
    page.click("#train-play")
    until(page, "Number(document.querySelector('#train-step').value) > 2")
    page.click("#train-play")
    stopped = page.input_value("#train-step")
    page.click("#train-forward")
    assert page.input_value("#train-step") == str(int(stopped) + 1)


@pytest.mark.parametrize("scheme", tiers.some(["light", "dark"], ["dark"]))
def test_how_it_looks(scheme: str, address: str, opened: Opener) -> None:
    """Enough contrast, a name for every control, and nothing wider than a phone."""
    page = opened(address, color_scheme=scheme, viewport={"width": 360, "height": 740})
    typed(page, "a text")
    page.click("#train summary")
    trained(page, "low lower lowest été\n" * 30)
    at(page, 1)
    found = page.evaluate(CONTRAST)
    assert found["texts"] > 40
    assert found["low"] == []
    controls = page.locator("#train").locator("input:visible, select:visible, textarea:visible")
    assert all(controls.evaluate_all("all => all.map(one => one.labels.length)"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
