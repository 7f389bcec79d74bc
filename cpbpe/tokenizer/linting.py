"""`Tokenizer.lint` and `Tokenizer.witness`: the room `lint`, for the facts of a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cpbpe.engine.choice import make_engine
from cpbpe.errors import ModelError
from cpbpe.lint.checks import CHECKS, Subject
from cpbpe.lint.checks_settings import SETTINGS_CHECKS
from cpbpe.lint.reach import reach_of
from cpbpe.lint.usage import embedding_findings, usage_findings
from cpbpe.lint.values import SEVERITIES, Finding, Lint
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.lossless import losslessness


def lint(facts: ModelFacts, texts: Iterable[str | bytes] | None = None, embeddings: Any = None) -> Lint:
    """Check a model, and also what some texts and an embedding matrix show of it."""
    spec = facts.spec
    try:
        losses: tuple[Any, ...] | None = losslessness(spec).reasons
    except ModelError:
        losses = None
    subject = Subject(
        spec,
        facts.engine,
        facts.special.added,
        facts.special.size,
        losses,
        facts.settings.trainer,
        reach_of(spec, facts.engine, make_engine),
    )
    findings: list[Finding] = []
    for check in (*CHECKS, *SETTINGS_CHECKS):
        findings += check(subject)
    if texts is not None:
        findings += usage_findings(subject, texts)
    if embeddings is not None:
        findings += embedding_findings(subject, embeddings)
    findings.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    return Lint(tuple(findings), len(spec.pieces), len(subject.reach.texts), subject.reach)


def witness(facts: ModelFacts, id: int) -> str | None:
    """A short text that yields a piece; None if none does or was found."""
    if id >= facts.engine.size:
        return None
    return facts.witnesses.shortest(id)
