"""Sources -> findings: the stages of the analysis, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source, check_syntax


@dataclass(frozen=True)
class Analysis:
    """Findings in any file reached, unsuppressed and unfiltered; which engines were judged and why.

    `dependencies` maps each linted file to the files read while it was analysed.
    """

    findings: list[Finding]
    engines: frozenset[Engine]
    engine_reason: str
    dependencies: Mapping[Path, frozenset[Path]] = field(default_factory=dict)


def analyse(files: Sequence[Source], settings: Settings, rulebook: RuleBook) -> Analysis:
    """Judges the files together. A file that does not parse gives `TSD000`."""
    findings = [problem for source in files if (problem := source.error or check_syntax(source))]
    return Analysis(findings, settings.engines or frozenset({Engine.DYNAMO}), "asked for")
