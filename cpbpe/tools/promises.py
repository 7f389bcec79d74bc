"""What edits promise about the tokens of texts, in words. `rows.py` says why each of them holds."""

from __future__ import annotations

from typing import NamedTuple

from cpbpe.model.spec import ModelSpec

_ASIDE = " (but a run of unknown characters is one token, whatever is merged in it)"


class Promise(NamedTuple):
    """What holds after a step of an edit."""

    text: str
    """What holds for the tokens of all texts."""
    keeps_reach: bool = False
    """Whether every piece that is left can come out of a text as before."""
    is_about_parts: bool = False
    """Whether it says what becomes of single tokens."""

    def about(self, spec: ModelSpec) -> str:
        """The text as it holds for a model: without byte fallback, unknown characters are joined."""
        joins = spec.alphabet == "characters" and not spec.byte_fallback
        return self.text + _ASIDE * (joins and self.is_about_parts)


HOLDS = Promise(
    "a text that holds none of the new pieces has the same tokens as before, because new pieces merge after "
    "all others; in any other text, each token is an old one, or several old ones joined",
    keeps_reach=True,
    is_about_parts=True,
)
FOUND_FIRST = Promise("a text that holds none of the new pieces has the same tokens as before")
NOT_TEXT = Promise(
    "every text has the same tokens as before, because no text yields the new pieces", keeps_reach=True
)
NOT_MADE = Promise(
    "every text has the same tokens as before, because the removed pieces were never made in any text",
    keeps_reach=True,
)
ALL_KEPT = Promise(
    "a text all of whose tokens were kept has the same tokens as before, because everything that is made on "
    "the way to them was kept, too"
)
SPLIT_UP = Promise(
    "a text that had none of these tokens has the same tokens as before; in any other, each of them is split "
    "into the two parts that had been merged to make it",
    is_about_parts=True,
)
LOWEST = Promise(
    "each old token is a token still, or several that make it up, because what was removed merged after "
    "everything else",
    is_about_parts=True,
)
TIED = Promise(
    "tokens may change in any text with the pieces that went, because some that stay have the same score, "
    "and which of these merges first depends on where they are"
)
RENUMBERED = Promise("every text has the same tokens as before; only ids have changed", keeps_reach=True)
RENAMED = Promise("every text has the same tokens as before; only names have changed", keeps_reach=True)
OTHER_NAMES = Promise("a text that holds none of the old and new names has the same tokens as before")
ROLES = Promise("every text has the same tokens as before; only roles have changed", keeps_reach=True)
REWRITTEN = Promise("tokens may change in any text: text is rewritten in another way before it is merged")
