"""What an edit promises about the tokens of all texts, and what it changed: pieces, ids, and your texts.

`rows.py` says why each of the promises holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.model.spec import ModelSpec
from cpbpe.spelling import counted
from cpbpe.text.drawn import shown
from cpbpe.text.pages import Canvas, Drawn
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.diff import CorpusDifference, corpus_difference
from cpbpe.tools.differing_text import TwoModels

_MOST_SHOWN = 8


# --- What is promised, in words -------------------------------------------------------------------

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


# Of `add`, `from_corpus` and `merge`. The next two are of `add` with `kind`: user_defined, and control.
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
# Of `prune`, without a corpus and with one (and of `remove`, which takes what is made from a piece along).
NOT_MADE = Promise(
    "every text has the same tokens as before, because the removed pieces were never made in any text",
    keeps_reach=True,
)
ALL_KEPT = Promise(
    "a text all of whose tokens were kept has the same tokens as before, because everything that is made on "
    "the way to them was kept, too"
)
# Of `remove` with `leave="unused"`.
SPLIT_UP = Promise(
    "a text that had none of these tokens has the same tokens as before; in any other, each of them is split "
    "into the two parts that had been merged to make it",
    is_about_parts=True,
)
# Of `truncate`, unless it cuts between equal scores; then TIED.
LOWEST = Promise(
    "each old token is a token still, or several that make it up, because what was removed merged after "
    "everything else",
    is_about_parts=True,
)
TIED = Promise(
    "tokens may change in any text with the pieces that went, because some that stay have the same score, "
    "and which of these merges first depends on where they are"
)
# Of `reorder`; of `rename` (OTHER_NAMES if one of the pieces is user-defined); of `set_special`; and of
# `set_normalizer`.
RENUMBERED = Promise("every text has the same tokens as before; only ids have changed", keeps_reach=True)
RENAMED = Promise("every text has the same tokens as before; only names have changed", keeps_reach=True)
OTHER_NAMES = Promise("a text that holds none of the old and new names has the same tokens as before")
ROLES = Promise("every text has the same tokens as before; only roles have changed", keeps_reach=True)
REWRITTEN = Promise("tokens may change in any text: text is rewritten in another way before it is merged")


# --- What was changed -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One step of an edit."""

    name: str
    """The method."""
    promise: str
    """What holds for the tokens of all texts."""
    notes: tuple[str, ...] = ()
    """What else there is to know, such as words that were there already."""
    keeps_reach: bool = True
    """Whether every piece that is left can come out of a text as before."""


@dataclass(frozen=True, repr=False)
class EditReport(Drawn):
    """What an edit changed: the result of `Edit.report`."""

    steps: tuple[Step, ...]
    """What was done, with what is promised about the tokens of texts."""
    ids: tuple[int, ...]
    """For each old id the new one; -1 for one that is gone or never was in use."""
    made: tuple[str, ...]
    """The new pieces, in the order of their ids."""
    lost: tuple[str, ...]
    """The pieces that are gone, in the order of their old ids."""
    unreachable: tuple[str, ...]
    """The pieces that were kept, and that no text yields any more."""
    old_size: int
    """How many ids there were."""
    new_size: int
    """How many there are."""
    corpus: CorpusDifference | None
    """What changed in the texts that were given."""

    @property
    def moved(self) -> int:
        """How many pieces have another id."""
        return sum(new not in (old, -1) for old, new in enumerate(self.ids))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON has."""
        return {**asdict(self), "moved": self.moved}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def draw(self, on: Canvas) -> None:
        """Draw the report, with what is promised first."""
        on.title("what was edited")
        on.row("ids", f"{self.old_size:,} → {self.new_size:,}")
        kept = "every id means the same as before"
        if self.moved or self.lost:
            kept = f"{counted(self.moved, 'piece')} moved to another id, {len(self.lost):,} gone"
        on.row("stored ids", kept)
        for step in self.steps:
            on.row(step.name, step.promise)
            for note in step.notes:
                on.text(note, " " * 16 + "- ", " " * 18)
        if self.corpus is not None:
            texts = self.corpus
            on.row(
                "your texts",
                f"{texts.different:,} of {counted(texts.documents, 'text')} have other tokens; "
                f"{texts.old_tokens:,} tokens → {texts.new_tokens:,}",
            )
            for example in texts.examples:
                on.text(shown(example), " " * 16 + "- ", " " * 18)
        for title, pieces in (
            ("new", self.made),
            ("gone", self.lost),
            ("kept, but no text yields them any more", self.unreachable),
        ):
            if pieces:
                on.title(f"{counted(len(pieces), 'piece')}: {title}")
                listed = [f"'{shown(piece)}'" for piece in pieces[:_MOST_SHOWN]]
                if len(pieces) > _MOST_SHOWN:
                    listed.append(f"and {len(pieces) - _MOST_SHOWN:,} more")
                on.text("  ".join(listed))

    def __repr__(self) -> str:
        return (
            f"<cpbpe.EditReport: {len(self.made):,} new, {len(self.lost):,} gone, "
            f"{len(self.unreachable):,} unreachable>"
        )


def report(
    old: Tokenizer,
    new: Tokenizer,
    origins: NDArray[np.int64],
    steps: tuple[Step, ...],
    texts: Iterable[str | bytes] | None,
) -> EditReport:
    """The report about an edit; `origins` are the old ids of the new ones."""
    ids = new_ids(old, origins)
    made = [id for id in np.flatnonzero(origins < 0).tolist() if new.vocab.get(id) is not None]
    gone = [id for id in np.flatnonzero(ids < 0).tolist() if old.vocab.get(id) is not None]
    unreachable: list[int] = []
    if not all(step.keeps_reach for step in steps):
        before, after = (tok.facts.witnesses.reach() for tok in (old, new))
        was = {int(ids[id]) for id in before.texts if ids[id] >= 0}
        unreachable = [id for id in sorted(after.reasons) if id in was]
    return EditReport(
        steps=steps,
        ids=tuple(ids.tolist()),
        made=tuple(map(new.id_to_piece, made)),
        lost=tuple(map(old.id_to_piece, gone)),
        unreachable=tuple(map(new.id_to_piece, unreachable)),
        old_size=len(old),
        new_size=len(new),
        corpus=None if texts is None else corpus_difference(TwoModels(old, new), texts),
    )


def new_ids(old: Tokenizer, origins: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each old id the new one, or -1."""
    found = np.full(len(old), -1)
    new = np.flatnonzero(origins >= 0)
    found[origins[new]] = new
    return found
