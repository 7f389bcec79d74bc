"""Encodings by their names: OpenAI's, and those of plugins in the namespace package `tiktoken_ext`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

from cpbpe.compat.tiktoken.core import Encoding, registered
from cpbpe.compat.tiktoken.openai_public import ENCODING_CONSTRUCTORS as _PUBLIC
from cpbpe.lazy import importing

ENCODINGS: dict[str, Encoding] = registered.made
"""The encodings that exist already."""
ENCODING_CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] | None = None
"""Functions that make the arguments of each encoding; None until plugins have been looked up."""

_OWN_MODULE = "tiktoken_ext.openai_public"
"""tiktoken's own module of encodings, which cpbpe replaces."""


def _plugins() -> list[str]:
    """The names of the plugins that are installed."""
    try:
        with importing:
            package = import_module("tiktoken_ext")
    except ModuleNotFoundError:
        return []
    found = pkgutil.iter_modules(package.__path__, "tiktoken_ext.")
    return [name for _, name, _ in found if name != _OWN_MODULE]


def _constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    """The constructors of all encodings, plugins included."""
    global ENCODING_CONSTRUCTORS
    if ENCODING_CONSTRUCTORS is None:
        known = dict(_PUBLIC)
        for name in _plugins():
            with importing:
                own = getattr(import_module(name), "ENCODING_CONSTRUCTORS", None)
            if own is None:
                raise ValueError(f"tiktoken plugin {name} does not define ENCODING_CONSTRUCTORS")
            if twice := sorted(known.keys() & own.keys()):
                raise ValueError(f"Duplicate encoding name {twice[0]} in tiktoken plugin {name}")
            known |= own
        ENCODING_CONSTRUCTORS = known
    return ENCODING_CONSTRUCTORS


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding of this name. It is made once.

    FileNotFoundError if its file is not where tiktoken keeps it: nothing is downloaded.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"Expected a string in get_encoding, got {type(encoding_name)}")
    known = ENCODINGS.get(encoding_name)
    if known is not None:
        return known
    constructors = _constructors()
    if encoding_name not in constructors:
        raise ValueError(
            f"Unknown encoding {encoding_name}; known are {', '.join(constructors)}. For another file of "
            f"ranks use Encoding(...) with load_tiktoken_bpe(path)"
        )
    # (If two threads make the encoding at once, both get the same one.)
    return ENCODINGS.setdefault(encoding_name, Encoding(**constructors[encoding_name]()))


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` knows."""
    return list(_constructors())


registered.get = get_encoding
