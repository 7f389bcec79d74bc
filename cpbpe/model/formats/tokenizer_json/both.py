"""What a text becomes with a file in the other library, and with the model that was read from it.

A file is refused for what some setting of it does. Whether that shows, and in which text, is tried out here:
the text in the error has to have other ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from cpbpe.lazy import kept
from cpbpe.model.formats.tokenizer_json.merging import UNKNOWN, Merging
from cpbpe.model.formats.tokenizer_json.names import Names
from cpbpe.model.formats.tokenizer_json.spaces import SPACE, normalized
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import Pair, by_pair, merged
from cpbpe.model.spec import ModelSpec

Ids = list[int | str]
"""Ids, and unknown characters that become bytes."""


@dataclass(frozen=True)
class Suspect:
    """Something that a file says, and texts to which it may give other ids."""

    reason: str
    """What it says, as `Difference.reason`."""
    tokens: tuple[str, ...]
    """Normalized texts in which it shows, if it does, alone or next to something else."""
    is_certain: bool = True
    """Whether it makes a difference even if no text is found."""


@dataclass(frozen=True)
class Both:
    """A file and the model that was read from it."""

    spec: ModelSpec
    """The model."""
    vocab: Mapping[str, int]
    """The tokens of the file."""
    pairs: Mapping[Pair, float]
    """Its merges."""
    unknown: str | None
    """Its unknown token."""
    ignores_merges: bool
    """Whether it takes a text whole that is a token."""
    splits: bool
    """Whether it cuts texts before every U+2581."""

    @kept
    def _merging(self) -> Merging:
        return Merging(Names(self.spec))

    def difference(self, suspect: Suspect) -> Difference | None:
        """The suspect with a text that shows it; None if it makes no difference."""
        for token in suspect.tokens:
            for text in self._texts(token):
                if self._differ(text):
                    return Difference(suspect.reason, text)
        return Difference(suspect.reason) if suspect.is_certain else None

    def _texts(self, token: str) -> Iterable[str]:
        """Texts with a token in them, the shortest first."""
        alone = self._merging.names.absent
        texts = {token.replace(SPACE, " "), token}
        if self.spec.normalizer.add_dummy_prefix:
            texts |= {text[1:] for text in texts if text[:1] in (SPACE, " ")}
        found = [
            *texts,
            *(text * 2 for text in texts),
            *(
                before + text + after
                for text in texts
                for before, after in (("", alone), (alone, ""), (alone, alone))
            ),
            *(alone + text * 2 for text in texts),
        ]
        return sorted(filter(None, dict.fromkeys(found)), key=lambda text: (len(text), text))

    def _differ(self, text: str) -> bool:
        """Whether a text has other ids. (False also if it holds a user-defined piece.)"""
        rewritten = normalized(self.spec.normalizer, text)
        if self._merging.names.holds_user_defined(rewritten):
            return False
        return self._ours(rewritten) != self._theirs(rewritten)

    def _ours(self, text: str) -> Ids:
        symbols = self._merging.pieces_of(text)
        return self._ids(symbols, {name.decode(errors="replace"): id for name, id in self.spec.ids.items()})

    def _theirs(self, text: str) -> Ids:
        parts = re.findall(rf"{SPACE}[^{SPACE}]*|[^{SPACE}]+", text) if self.splits else [text]
        found: Ids = []
        for part in parts:
            symbols = [part]
            if not (self.ignores_merges and part in self.vocab):
                symbols = merged(part, by_pair(self.pairs))[0]
            found += self._ids([s if s in self.vocab else UNKNOWN + s for s in symbols], self.vocab)
        return found

    def _ids(self, symbols: Iterable[str], ids: Mapping[str, int]) -> Ids:
        found: Ids = []
        for unknown, group in groupby(symbols, lambda symbol: symbol[0] == UNKNOWN and len(symbol) > 1):
            if not unknown:
                found += [ids[symbol] for symbol in group]
            elif self.spec.byte_fallback or self.unknown is None:
                found += group
            else:
                found.append(self.vocab[self.unknown])
        return found
