"""The page in a browser, for the tests that need one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.view import static_page
from tests.support import browser as browsers
from tests.support import zoo
from tests.support.browser import Opener
from tests.tools.page_models import BYTES, EVIL


@pytest.fixture(scope="module")
def tok() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model("tokenizer.model.v1"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.started() as found:
        yield found


@pytest.fixture(scope="module")
def address(tok: cpbpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One model."""
    return stored(tmp_path_factory.mktemp("page"), {"a.model": tok})


@pytest.fixture(scope="module")
def two(tok: cpbpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two models, of which the second has a name that is markup, and pieces that are."""
    evil = BYTES.with_special_tokens([EVIL])
    return stored(tmp_path_factory.mktemp("page"), {"a.model": tok, f"{EVIL[:30]}": evil})


def stored(folder: Path, models: dict[str, cpbpe.Tokenizer], text: str = "") -> str:
    """The page in a file: its address."""
    file = folder / "page.html"
    file.write_text(static_page(models, text), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Open a page. At the end: no error, no message, no request to anywhere."""
    pages: list[Any] = []
    wrong: list[str] = []
    asked: list[tuple[str, str]] = []

    def open_page(address: str, **settings: Any) -> Any:
        page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **settings})
        pages.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        origin = address.split("#")[0]
        page.on("request", lambda request: asked.append((origin, request.url)))
        page.set_default_timeout(20_000)
        page.goto(address)
        page.wait_for_selector("body[data-shown]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []
    # (A worker of the page has an address, too, which is a script in the page.)
    assert [url for origin, url in asked if not url.startswith((origin, "data:", "blob:"))] == []
