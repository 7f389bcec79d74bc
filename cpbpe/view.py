"""A web page that shows what models do with a text: `app` is for a server, `static_page` makes one file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cpbpe.errors import missing
from cpbpe.lazy import importing
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.answers import models_of, shown_text
from cpbpe.tools.page import SERVER, static_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["app", "static_page"]


def app(tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer, *, text: str = "") -> ASGIApp:
    """The page as an ASGI application, for a server that listens on this machine only.

    `tokenizers` are the models, by the names that the page shows; `text` is the text that it shows at first.
    """
    try:
        with importing:
            from cpbpe.tools.server import application
    except ImportError as error:
        raise missing(*SERVER) from error
    return application(models_of(tokenizers), shown_text(text))
