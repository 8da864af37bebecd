"""Drives a run: files -> analysis -> what is reported."""

from __future__ import annotations

from collections.abc import Sequence

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Finding
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source


def lint(sources: Sequence[Source], settings: Settings, rulebook: RuleBook) -> list[Finding]:
    """Findings of the given sources that settings let through, in order of place."""
    from tsdyn_lint.pipeline import analyse

    analysis = analyse(sources, settings, rulebook)
    named = {str(source.path) for source in sources}
    kept = [
        finding
        for finding in analysis.findings
        if finding.filename in named
        and finding.code in settings.selected
        and finding.confidence.rank >= settings.min_confidence.rank
    ]
    return sorted(kept, key=lambda finding: finding.sort_key)
