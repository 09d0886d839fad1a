"""Warnings of a report, and how much they matter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Severity = Literal["scores", "information"]
"""Whether a fact changes what the scores mean, or only helps to read them."""

HEADINGS: dict[Severity, str] = {
    "scores": "What affects the scores",
    "information": "Further information",
}


class ReportWarning(NamedTuple):
    """One sentence about runs or tables."""

    text: str
    severity: Severity = "scores"


def by_severity(warnings: Iterable[ReportWarning]) -> dict[Severity, list[str]]:
    """Return the texts of the warnings, the most severe ones first; no empty groups."""
    listed = list(warnings)
    groups: dict[Severity, list[str]] = {
        severity: [warning.text for warning in listed if warning.severity == severity]
        for severity in HEADINGS
    }
    return {severity: texts for severity, texts in groups.items() if texts}
