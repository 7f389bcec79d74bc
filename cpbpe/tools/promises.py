"""What edits promise about the tokens of texts, in words. `rows.py` says why each of them holds."""

from __future__ import annotations

from cpbpe.model.spec import ModelSpec

HOLDS = (
    "a text that holds none of the new pieces has the same tokens as before, because new pieces merge after "
    "all others; in any other text, each token is an old one, or several old ones joined"
)
FOUND_FIRST = "a text that holds none of the new pieces has the same tokens as before"
NOT_TEXT = "every text has the same tokens as before, because no text yields the new pieces"
NOT_MADE = "every text has the same tokens as before, because the removed pieces were never made in any text"
ALL_KEPT = (
    "a text all of whose tokens were kept has the same tokens as before, because everything that is made on "
    "the way to them was kept, too"
)
SPLIT_UP = (
    "a text that had none of these tokens has the same tokens as before; in any other, each of them is split "
    "into the two parts that had been merged to make it"
)
LOWEST = (
    "each old token is a token still, or several that make it up, because what was removed merged after "
    "everything else"
)
TIED = (
    "tokens may change in any text with the pieces that went, because some that stay have the same score, "
    "and which of these merges first depends on where they are"
)
RENUMBERED = "every text has the same tokens as before; only ids have changed"
RENAMED = "every text has the same tokens as before; only names have changed"
OTHER_NAMES = "a text that holds none of the old and new names has the same tokens as before"
ROLES = "every text has the same tokens as before; only roles have changed"
REWRITTEN = "tokens may change in any text: text is rewritten in another way before it is merged"

_ASIDE = " (but a run of unknown characters is one token, whatever is merged in it)"
_ABOUT_PARTS = {HOLDS, SPLIT_UP, LOWEST}
"""Promises that say what becomes of single tokens."""
KEEP_REACH = {HOLDS, NOT_TEXT, NOT_MADE, RENUMBERED, RENAMED, ROLES}
"""After these, every piece that is left can come out of a text as before."""


def promised(promise: str, spec: ModelSpec) -> str:
    """A promise as it holds for a model: without byte fallback, unknown characters are joined."""
    joins = spec.alphabet == "characters" and not spec.byte_fallback
    return promise + _ASIDE if joins and promise in _ABOUT_PARTS else promise
