"""The result of `cpbpe.compare`: its numbers, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass

from cpbpe.comparing.html import fragment, page
from cpbpe.comparing.page import lines
from cpbpe.comparing.values import Costs
from cpbpe.spelling import counted


@dataclass(frozen=True, repr=False)
class Comparison(Costs):
    """What texts cost with several models: the result of `cpbpe.compare`.

    >>> import cpbpe
    >>> found = cpbpe.compare("tokenizer.model", {"en": "good morning", "de": "guten Morgen"})
    >>> found
    <cpbpe.Comparison: 1 model, 2 texts>
    >>> found["tokenizer.model", "de"].tokens, found.price("tokenizer.model", "de")
    (5, 2.5)
    """

    def html(self) -> str:
        """A page with tables and plots, in one file that needs nothing else."""
        return page(self)

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def _repr_html_(self) -> str:
        return fragment(self)

    def __repr__(self) -> str:
        return f"<cpbpe.Comparison: {counted(len(self.models), 'model')}, {counted(len(self.texts), 'text')}>"
