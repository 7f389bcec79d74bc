"""The files that the page consists of. They are as they are delivered: nothing builds them."""

from __future__ import annotations

import importlib.resources

PARTS = {
    "page.css": "text/css",
    "text.js": "text/javascript",
    "tokens.js": "text/javascript",
    "merges.js": "text/javascript",
    "page.js": "text/javascript",
}
"""What the page loads, in this order, and what it is."""


def page() -> str:
    """The page itself."""
    return part("page.html")


def part(name: str) -> str:
    """One of the files."""
    return importlib.resources.files("cpbpe.view").joinpath(name).read_text(encoding="utf-8")


def reference(name: str) -> str:
    """How the page loads a file."""
    if name.endswith(".css"):
        return f'<link rel="stylesheet" href="{name}">'
    return f'<script src="{name}" defer></script>'
