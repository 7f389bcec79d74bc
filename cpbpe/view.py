"""A web page that shows what models do with a text: `static_page` makes it, as one file."""

from cpbpe.tools.page import static_page

__all__ = ["static_page"]
