"""What a report is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.findings import Finding
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source


@dataclass(frozen=True)
class Run:
    """The findings of a finished run, in order, and what it takes to show them.

    `source` gives the file behind a finding's path, None where it cannot be read. `targets` are those of `--verify`,
    as the JSON report prints them, None without it.
    """

    findings: Sequence[Finding]
    rulebook: RuleBook
    source: Callable[[str], Source | None]
    files: Sequence[Path] = ()
    folder: Path = field(default_factory=Path.cwd)
    colour: bool = False
    targets: Sequence[dict[str, Any]] | None = None

    def shown(self, filename: str) -> str:
        """A path as people see it: relative to the working folder where it lies in it."""
        path = Path(filename)
        try:
            return path.relative_to(self.folder).as_posix()
        except ValueError:
            return path.as_posix()

    def place(self, finding: Finding) -> str:
        """`model.py:9:12`, with the cell of a notebook."""
        cell = f":cell {finding.cell}" if finding.cell is not None else ""
        return f"{self.shown(finding.filename)}{cell}:{finding.start.row}:{finding.start.column}"

    def url(self, finding: Finding) -> str | None:
        """The public page of the graph break that Dynamo itself names, where the finding has one."""
        return gb_url(finding.gb[0]) if finding.gb else None

    def line(self, finding: Finding) -> str:
        """The source line a finding starts at."""
        source = self.source(finding.filename)
        return source.line(row_in_text(source, finding.cell, finding.start.row)) if source else ""


def gb_url(gb: str) -> str:
    """PyTorch's page about one of Dynamo's graph-break ids."""
    return f"https://meta-pytorch.org/compile-graph-break-site/gb/{gb.lower()}.html"


def row_in_text(source: Source, cell: int | None, row: int) -> int:
    """The row in `source.text` of a row in a notebook cell."""
    for known in source.cells or ():
        if known.number == cell:
            return known.first_row + row - 1
    return row
