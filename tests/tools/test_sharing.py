"""What comes into the page and leaves it: files, links, copies and pictures; and what it says meanwhile."""

import ast
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.model.formats.registry import JSON
from cpbpe.model.formats.tiktoken import write_ranks
from cpbpe.model.spec import SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from tests.support import browser as browsers
from tests.support import tiers, zoo
from tests.support.browser import Opener, tokens, typed, until
from tests.tools.conftest import stored
from tests.tools.page_models import BYTES

pytestmark = pytest.mark.skipif(not browsers.RUNS, reason=f"not there: {', '.join(browsers.MISSING)}")

MODEL = zoo.model("tokenizer.model.v1")
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page without a model."""
    return stored(tmp_path_factory.mktemp("page"), {})


def file(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "", "buffer": data}


def copied(page: Any, what: str) -> str:
    page.click(".panel >> nth=0 >> .menu summary")
    page.click(f".menu[open] >> text={what}")
    until(page, "document.querySelector('.flash')")
    found: str = page.evaluate("navigator.clipboard.readText()")
    return found


# --- Files --------------------------------------------------------------------------------------------


def test_files(empty: str, opened: Opener, tok: cpbpe.Tokenizer) -> None:
    """A page without a model asks for one; models and texts are opened, and what is neither is named."""
    page = opened(empty)
    assert "Nothing is uploaded" in page.inner_text("#empty")
    page.set_input_files("#files", [file("my.model", MODEL), file("a.txt", "Hello 🦙".encode())])
    until(page, "document.querySelectorAll('.token').length")
    assert not page.is_visible("#empty")
    assert page.input_value("#text") == "Hello 🦙"
    assert len(tokens(page)) == len(tok.encode("Hello 🦙"))
    # The same model is not added again, and a broken one says so without changing anything else.
    page.set_input_files("#files", [file("copy.model", MODEL), file("broken.model", b"\0\1\2")])
    until(page, "document.getElementById('notice').textContent")
    assert page.inner_text("#notice").startswith("broken.model: it is no model")
    assert page.locator(".panel").count() == 1
    page.set_input_files("#files", [file("my.model", BYTES.to_bytes())])
    until(page, "document.querySelectorAll('.panel').length == 2")
    names = page.locator(".model >> nth=1 >> option").all_inner_texts()
    assert names == ["my.model", "my.model (2)"]
    assert page.inner_text("#notice") == ""


def test_files_of_other_formats(empty: str, opened: Opener) -> None:
    """Where a file does not say how texts are cut, the page asks. It says what the library does otherwise."""
    page = opened(empty)
    ranks = dict(zip(BYTES.spec.pieces.texts, range(len(BYTES)), strict=True))
    page.set_input_files("#files", [file("my.tiktoken", write_ranks(ranks))])
    page.click("#cancel")
    until(page, "document.getElementById('notice').textContent")
    assert "choose a pattern" in page.inner_text("#notice")
    page.set_input_files("#files", [file("my.tiktoken", write_ranks(ranks))])
    assert "my.tiktoken" in page.inner_text("#pattern")
    page.select_option("#patterns", "cl100k")
    page.click("#cut")
    until(page, "document.querySelectorAll('.panel').length == 1")
    assert page.inner_text("#notice") == ""
    assert not page.is_visible(".notes")
    typed(page, "the cat 12345")
    spec = replace(BYTES.spec, splitter=SplitSpec(PATTERNS["cl100k"]))
    assert len(tokens(page)) == len(cpbpe.Tokenizer.from_spec(spec).encode("the cat 12345"))
    again = JSON.write(BYTES.with_special_tokens(["<x>"]).spec).data
    page.set_input_files("#files", [file("of my own", again)])
    until(page, "document.querySelectorAll('.panel').length == 2")
    page.click(".notes >> nth=1")
    assert "special tokens" in page.inner_text(".notes >> nth=1")


@tiers.slow
def test_dropping(empty: str, opened: Opener) -> None:
    page = opened(empty)
    given = page.evaluate_handle(
        """bytes => {
          const given = new DataTransfer();
          given.items.add(new File([new Uint8Array(bytes)], 'my.model'));
          given.items.add(new File(['the cat'], 'a text'));
          return given;
        }""",
        list(BYTES.to_bytes()),
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": given})
    assert page.is_visible("#drop")
    page.dispatch_event("body", "drop", {"dataTransfer": given})
    until(page, "document.querySelectorAll('.token').length")
    assert not page.is_visible("#drop")
    assert page.input_value("#text") == "the cat"


# --- Links --------------------------------------------------------------------------------------------


def test_a_link_names_models(
    two: str, empty: str, opened: Opener, tok: cpbpe.Tokenizer, tmp_path: Path
) -> None:
    """By what they are, not by their place; one that is not there is asked for, and then shown."""
    page = opened(two)
    page.click("[aria-label='Remove this column'] >> nth=0")
    page.select_option(".model", "0")
    page.click("#search summary")
    typed(page, "Hi <s>")
    until(page, "location.hash.includes('text=Hi+')")
    assert f"model={tok.fingerprint[:12]}+a.model" in page.url
    link = page.url.split("#")[1]
    # A page that has the models in another order.
    other = stored(tmp_path, {"first": BYTES, "second": tok})
    again = opened(f"{other}#{link}")
    assert again.locator(".model").evaluate("one => one.selectedOptions[0].textContent") == "second"
    assert tokens(again) == tokens(page)
    assert again.is_visible("#wanted")
    # A page that does not have it.
    again = opened(f"{empty}#{link}")
    assert again.inner_text("#notice").startswith(
        f"The link shows a.model (fingerprint {tok.fingerprint[:12]})"
    )
    again.set_input_files("#files", [file("my.model", MODEL)])
    until(again, "document.querySelectorAll('.token').length")
    assert again.inner_text("#notice") == ""
    assert tokens(again) == tokens(page)


# --- Copies -------------------------------------------------------------------------------------------


def test_copies(address: str, opened: Opener, tok: cpbpe.Tokenizer) -> None:
    page = opened(address, **CLIPBOARD)
    text = 'Hello "wörld"\n\t🦙 <s>'
    typed(page, text)
    page.check("#bos")
    ids = tok.encode(text, add_bos=True)
    assert copied(page, "ids") == ", ".join(map(str, ids))
    assert json.loads(copied(page, "pieces")) == [tok.facts.piece(id) for id in ids]
    program = ast.parse(copied(page, "Python"))
    call = next(node for node in ast.walk(program) if isinstance(node, ast.Call) and node.keywords)
    options = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert tok.encode(ast.literal_eval(call.args[0]), **options) == ids
    page.click("#copy-link")
    until(page, "document.querySelector('.flash')?.textContent == 'Link copied'")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    # Ids that are selected are copied as a list, and are whole in every line.
    page.select_option("#show", "ids")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.tokens'))")
    page.keyboard.press("Control+C")
    assert page.evaluate("navigator.clipboard.readText()") == ", ".join(map(str, ids))
    heights = page.locator(".token").evaluate_all("all => all.map(one => one.getClientRects().length)")
    assert set(heights) == {1}


@tiers.slow
def test_pictures(address: str, opened: Opener, tmp_path: Path) -> None:
    page = opened(address)
    typed(page, "Hello <b>&amp;\n🦙 world\u0000")
    for kind in ("SVG", "PNG"):
        page.click(".menu summary")
        with page.expect_download() as download:
            page.click(f"text=picture ({kind})")
        download.value.save_as(tmp_path / kind)
    name = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.fromstring((tmp_path / "SVG").read_text(encoding="utf-8"))
    texts = ["".join(one.itertext()) for one in picture.iter(f"{name}text")]
    count = page.locator(".token").count()
    assert texts[0] == f"{count} tokens · a.model"
    assert {"Hello", "🦙 ×4", "\u00a0world"} <= set(texts)
    assert (tmp_path / "PNG").read_bytes().startswith(b"\x89PNG")


# --- What the page says -------------------------------------------------------------------------------


def test_examples(address: str, opened: Opener) -> None:
    page = opened(address)
    for name in page.locator("#examples button").all_inner_texts():
        page.click(f"#examples >> text={name}")
        assert page.locator(".token").count() > 5
    page.click("#clear")
    assert tokens(page) == []
    assert page.evaluate("document.activeElement.id") == "text"


def test_special_tokens_are_offered(address: str, opened: Opener, tok: cpbpe.Tokenizer) -> None:
    page = opened(address)
    typed(page, "Hi</s>")
    assert page.inner_text("#offer").startswith("</s> is a special token of a.model.")
    page.click("text=Treat it as one token")
    assert page.is_checked("#special")
    assert page.inner_text("#offer") == ""
    assert len(tokens(page)) == len(tok.encode("Hi</s>", allowed_special="all"))


def test_what_is_gone(address: str, opened: Opener) -> None:
    """Nothing is said any more of a token that is not there."""
    page = opened(address)
    typed(page, "the weather")
    page.hover(".token >> nth=1")
    assert "weather" in page.inner_text("#about")
    typed(page, "the weather is nice")
    assert "weather" in page.inner_text("#about")
    typed(page, "the")
    assert "weather" not in page.inner_text("#about")


def test_the_count_is_announced(two: str, opened: Opener) -> None:
    """Screen readers hear it after a pause, not with every letter."""
    page = opened(two)
    typed(page, "the cat")
    assert page.inner_text("#spoken") == ""
    until(page, "document.getElementById('spoken').textContent.startsWith('a.model: 2 tokens; ')")


@tiers.slow
def test_columns_scroll_together(two: str, opened: Opener) -> None:
    """To the same place of the text, wherever that is in each list."""
    page = opened(two)
    # (As a file, because a browser takes many seconds to type many lines.)
    lines = "".join(f"line {number} of the text\n" for number in range(2000)).encode()
    page.set_input_files("#files", [file("a.txt", lines)])
    until(page, "document.querySelectorAll('.panel:last-child .token').length")
    page.locator(".tokens").first.evaluate("list => list.scrollTo(0, list.scrollHeight / 2)")
    seen = """(list) => {
      const { top, bottom } = list.getBoundingClientRect();
      const place = (one) => one.getBoundingClientRect().top;
      const isSeen = (one) => place(one) >= top && place(one) < bottom;
      const first = [...list.querySelectorAll('.token')].find(isSeen);
      return first ? Number(first.closest('.block').textContent.match(/line.(\\d+)/)[1]) : 0;
    }"""
    lists = "[...document.querySelectorAll('.tokens')].slice(0, 2)"
    until(page, f"{lists}.every({seen})")
    page.wait_for_timeout(100)
    one, other = page.evaluate(f"() => {lists}.map({seen})")
    assert one > 500
    assert abs(one - other) < 30


def test_parts_of_characters(two: str, opened: Opener) -> None:
    """They are bytes wherever they are: among the tokens, in what is known of one, and for screen readers."""
    page = opened(two)
    typed(page, "\u2019\n")
    for shown in ("text", "pieces"):
        page.select_option("#show", shown)
        drawn = [text.strip() for text in page.locator(".panel >> nth=1 >> .token").all_inner_texts()]
        assert drawn == ["E2", "80", "99", "⏎"]
        assert "0A" in page.locator(".panel >> nth=0 >> .bytes").all_inner_texts()
        page.hover(".panel >> nth=1 >> .token >> nth=1")
        assert "piece 80" in page.inner_text("#about").replace("\n", " ")
    assert [label.split(",")[0] for label in tokens(page, 1)] == [
        *(f"bytes {part}" for part in drawn[:3]),
        "newline",
    ]
    page.click("#samples summary")
    until(page, "document.querySelectorAll('#rows li').length == 8")
    assert "<0x" not in page.inner_text("#rows")
