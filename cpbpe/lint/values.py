"""The values of lint: why a piece cannot be produced, what was found, and the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEVERITIES = ("note", "warning", "error")
"""How bad a finding is, from the least to the worst."""


class Reason(NamedTuple):
    """Why a text yields no such piece."""

    code: str
    """The reason in a word: the code of the finding that lists the piece."""
    detail: str
    """The same in a sentence, about this piece."""
    decided: bool = True
    """Whether no text yields it, for sure; else no text was found that does."""


@dataclass(frozen=True)
class Reach:
    """Which pieces text can yield, and how."""

    texts: Mapping[int, str]
    """For each piece that a text yields, by its id, such a text."""
    reasons: Mapping[int, Reason]
    """For the others, the reason. CONTROL pieces are in neither: they never come from text."""
    literal: frozenset[int] = frozenset()
    """Those of `texts` for which only a text with the character U+2581 was found."""
    whole: frozenset[int] = frozenset()
    """Those that no merges make: a chunk that is the piece is taken whole, in a byte-level model."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a model, or good to know."""

    code: str
    """What it is, in a word that never changes."""
    severity: str
    """"error", "warning" or "note"."""
    message: str
    """The same in a sentence."""
    remedy: str
    """What can be done."""
    evidence: tuple[str, ...] = ()
    """Examples: what shows it."""
    ids: tuple[int, ...] = ()
    """The ids of all pieces that it is about."""

    def to_dict(self) -> dict[str, Any]:
        """The finding as values that JSON has."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "remedy": self.remedy,
            "evidence": list(self.evidence),
            "ids": list(self.ids),
        }


@dataclass(frozen=True, repr=False)
class Lint:
    """The report of `Tokenizer.lint`.

    >>> import cpbpe
    >>> report = cpbpe.load("tokenizer.model").lint()
    >>> report
    <cpbpe.Lint: 0 errors, 0 warnings, 6 notes>
    >>> report["unused-bytes"].severity, len(report["unused-bytes"].ids), report.worst
    ('note', 140, 'note')
    """

    findings: tuple[Finding, ...]
    """What was found, the worst first."""
    pieces: int
    """How many pieces the model has."""
    reachable: int
    """How many of them some text yields."""
    reach: Reach = field(default=Reach({}, {}))
    """For each piece, a text that yields it or the reason why there is none."""

    @property
    def worst(self) -> str | None:
        """The worst severity; None if nothing was found."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index, default=None)

    def fails(self, severity: str) -> bool:
        """Whether anything of this severity or a worse one was found."""
        least = SEVERITIES.index(severity)
        return any(SEVERITIES.index(finding.severity) >= least for finding in self.findings)

    def count(self, severity: str) -> int:
        """How many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def __getitem__(self, code: str) -> Finding:
        """The finding with a code; KeyError if there is none."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(f"nothing of the kind {code!r} was found")

    def __contains__(self, code: object) -> bool:
        return any(finding.code == code for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON has."""
        reach = self.reach
        return {
            "pieces": self.pieces,
            "reachable": self.reachable,
            "worst": self.worst,
            "findings": [finding.to_dict() for finding in self.findings],
            "unreachable": [
                {"id": id, "code": reason.code, "decided": reason.decided, "detail": reason.detail}
                for id, reason in sorted(reach.reasons.items())
            ],
        }

    def to_json(self, **options: Any) -> str:
        """The same as JSON; `options` are those of `json.dumps`."""
        return json.dumps(self.to_dict(), **options)

    def __repr__(self) -> str:
        counts = (f"{n} {s if n == 1 else s + 's'}" for s in reversed(SEVERITIES) for n in [self.count(s)])
        return f"<cpbpe.Lint: {', '.join(counts)}>"
