"""The page in a browser, for the tests that need one."""

from collections.abc import Iterator
from typing import Any

import pytest

import cpbpe
from cpbpe.view import app
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
def address(tok: cpbpe.Tokenizer) -> Iterator[str]:
    """One model."""
    with browsers.serving(app({"a.model": tok})) as found:
        yield found


@pytest.fixture(scope="module")
def two(tok: cpbpe.Tokenizer) -> Iterator[str]:
    """Two models, of which the second has a name that is markup, and pieces that are."""
    evil = BYTES.with_special_tokens([EVIL])
    with browsers.serving(app({"a.model": tok, f"{EVIL[:30]}": evil})) as found:
        yield found


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Open a page. At the end: no error, no message, no request to anywhere but its own server."""
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
    assert [url for origin, url in asked if not url.startswith((origin, "data:"))] == []
