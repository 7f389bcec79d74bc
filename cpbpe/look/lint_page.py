"""What lint found, as lines for a terminal of any width."""

from __future__ import annotations

from cpbpe.lint.checks import MOST_EVIDENCE
from cpbpe.lint.values import SEVERITIES, Finding, Lint
from cpbpe.look.shown import fitted, shown
from cpbpe.spelling import counted

_COLOURS = {"error": "31", "warning": "33", "note": "36"}


def lint_page(report: Lint, name: str, columns: int = 100, colours: bool = False) -> list[str]:
    """The report for people; `name` is what the model is called."""
    lines = [fitted(shown(name), columns)]
    if colours:
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    for finding in report.findings:
        lines += ["", *_finding(finding, columns, colours)]
    counts = [counted(report.count(severity), severity) for severity in reversed(SEVERITIES)]
    total = f"{report.pieces:,} pieces, of which text can yield {report.reachable:,}"
    return [*lines, "", *_wrapped(f"{', '.join(counts)}; {total}", "", "", columns)]


def _finding(finding: Finding, columns: int, colours: bool) -> list[str]:
    severity = finding.severity
    head = f"{severity:<8}{finding.code}"
    if colours:
        head = f"\x1b[{_COLOURS[severity]}m{severity:<8}\x1b[0m{finding.code}"
    lines = [head, *_wrapped(f"{shown(finding.message)}.", "        ", "        ", columns)]
    for text in finding.evidence:
        lines += _wrapped(shown(text).replace("\\\\", "\\"), "        - ", "          ", columns)
    more = len(finding.ids) - len(finding.evidence)
    if more > 0 and len(finding.evidence) == MOST_EVIDENCE:
        lines.append(f"        - and {more:,} more, which --json lists")
    return lines + _wrapped(f"{shown(finding.remedy)}.", "        > ", "          ", columns)


def _wrapped(text: str, first: str, others: str, columns: int) -> list[str]:
    from textwrap import wrap

    width = max(columns, 40)
    return wrap(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
