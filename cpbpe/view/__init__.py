"""The page that shows what models do with a text: `cpbpe view`, and the same page as one file.

`answers.py` knows what the page asks about models, and needs no server; `server.py` serves it to a browser of
the same machine, `guard.py` keeps everybody else out, and `standalone.py` writes it as a file that needs no
server. The page itself is `page.html`, `page.css` and the `.js` files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpbpe.lazy import imported

if TYPE_CHECKING:
    from cpbpe.view.server import app as app
    from cpbpe.view.standalone import static_page as static_page

__all__ = ["app", "static_page"]

_LATER = {"app": "cpbpe.view.server", "static_page": "cpbpe.view.standalone"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cpbpe.view' has no attribute {name!r}")
    return getattr(imported(_LATER[name]), name)
