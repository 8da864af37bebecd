"""The plain data every stage hands on: engines, severities, places in a file, edits and findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Engine(str, Enum):
    """A capture that a line can break."""

    DYNAMO = "dynamo"
    RECOMPILE = "recompile"
    SCRIPT = "script"
    TRACE = "trace"
    EXPORT = "export"


class Severity(str, Enum):
    """How much a finding costs; `INFO` never fails a run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def fails(self) -> bool:
        return self is not Severity.INFO


class Confidence(str, Enum):
    """How sure the analysis is, from the values it knew on the way to the line."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """3 for certain, 2 for likely, 1 for possible."""
        return {"certain": 3, "likely": 2, "possible": 1}[self.value]


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file, both numbers 1-based; columns count characters, as ruff's do."""

    row: int
    column: int


@dataclass(frozen=True)
class Edit:
    """Replace the text from `start` up to, not including, `end` by `content`."""

    content: str
    start: Location
    end: Location


@dataclass(frozen=True)
class Fix:
    """Edits that remove a finding; `applicability` is `safe`, `unsafe` or `display`."""

    applicability: str
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Related:
    """Another place that explains a finding: a call on the way to it, or a use of the value it reads."""

    filename: str
    start: Location
    end: Location
    message: str


@dataclass(frozen=True)
class Finding:
    """One cause at one place. `filename` is absolute; `engines` are in the order of `Engine`."""

    code: str
    name: str
    message: str
    severity: Severity
    filename: str
    start: Location
    end: Location
    engines: tuple[Engine, ...] = ()
    confidence: Confidence = Confidence.CERTAIN
    gb: tuple[str, ...] = ()
    entry: str | None = None
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    cell: int | None = None
    noqa_row: int | None = None
    scope: str = ""
    """Qualified name of the innermost `def` or `class` around it: the baseline's and fingerprints' anchor."""
    verify: dict[str, Any] | None = field(default=None, compare=False)
    also: tuple[str, ...] = field(default=(), compare=False)
    """Other entry points, without which it would not name all of its engines."""

    @property
    def sort_key(self) -> tuple[str, int, Location, str]:
        return (self.filename, self.cell or 0, self.start, self.code)
