"""Examples in docstrings as blocks of code, so that the site does not take what they print for links."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(^>>> .*(?:\n(?!\s*$).*)*)", re.MULTILINE)
"""An example up to the next empty line."""


class Fenced(griffe.Extension):
    """Changes docstrings as they are read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Put fences around each example."""
        if obj.docstring is not None:
            text = EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
            obj.docstring.value = text.replace("\n```\n\n```pycon", "\n")  # one block for neighbours
