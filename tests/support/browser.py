"""A browser for the tests of the page: the system's chromium, driven by playwright.

Where one of them is missing, these tests do not run, and pytest's header says so; under CI it is an error.
"""

import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support import node as nodes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = [
    name
    for name, there in (
        ("chromium", CHROMIUM),
        ("playwright", importlib.util.find_spec("playwright")),
        ("engine.wasm (.ci/wasm makes it)", nodes.CORE.exists()),
    )
    if not there
]
Opener = Callable[..., Any]
"""Opens a page."""
RUNS = not MISSING or bool(os.environ.get("CI"))
"""Whether the tests run. Under CI they do, and fail if something is missing."""


@contextmanager
def started() -> Iterator[Any]:
    """A browser, as playwright has it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def until(page: Any, condition: str) -> None:
    """Wait for a condition. (What playwright has for that needs `eval`, which the page's policy forbids.)"""
    end = time.monotonic() + 20
    while not page.evaluate(f"() => Boolean({condition})"):
        assert time.monotonic() < end, f"it never came true: {condition}"
        time.sleep(0.02)


def typed(page: Any, text: str) -> None:
    """Put a text into the box at once, and wait until its tokens are there."""
    before = int(page.get_attribute("body", "data-shown"))
    page.fill("#text", text)
    until(page, f"Number(document.body.dataset.shown) > {before}")


def tokens(page: Any, panel: int = 0) -> list[str]:
    """The tokens that have elements, as a screen reader names them."""
    names = "all => all.map(one => one.getAttribute('aria-label'))"
    found: list[str] = page.locator(".panel").nth(panel).locator(".token").evaluate_all(names)
    return found
