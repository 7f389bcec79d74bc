"""The result of `cpbpe.diff`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from cpbpe.differing.page import lines
from cpbpe.differing.parts import Parts


@dataclass(frozen=True, repr=False)
class ModelDiff(Parts):
    """What is different between two models.

    >>> import cpbpe
    >>> found = cpbpe.diff("tokenizer.model", "tokenizer.model")
    >>> found, bool(found), found.same_tokens
    (<cpbpe.ModelDiff: no difference>, False, True)
    """

    def __bool__(self) -> bool:
        """Whether anything is different."""
        return bool(self.pieces or self.settings or self.text)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON has."""
        corpus = None if self.corpus is None else {**asdict(self.corpus), "share": self.corpus.share}
        return {
            "same_tokens": self.same_tokens,
            "same_ids": self.same_ids,
            "tried": self.tried,
            "pieces": [{"kinds": change.kinds, **change.to_dict()} for change in self.pieces],
            "settings": [asdict(change) for change in self.settings],
            "text": None if self.text is None else asdict(self.text),
            "corpus": corpus,
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def __repr__(self) -> str:
        counts = Counter(kind for change in self.pieces for kind in change.kinds)
        parts = [f"{number:,} {kind}" for kind, number in counts.items()]
        parts += [f"{len(self.settings):,} settings"] if self.settings else []
        parts += ["other tokens for some texts"] if self.text else []
        return f"<cpbpe.ModelDiff: {', '.join(parts) or 'no difference'}>"
