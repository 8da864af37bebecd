"""What the tests of the shell share: a project in a folder of its own, and an analysis that flags `print`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tsdyn_lint.cli import main
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Confidence, Edit, Engine, Finding, Fix, Location, Related, Severity
from tsdyn_lint.pipeline import Analysis
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source, check_syntax

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Project:
    """A folder that is the working folder, with files made on the way."""

    folder: Path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run(self, *args: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(main, ["--no-cache", *args] if args[:1] not in _VERBS else args, input=stdin, env=env)

    def json(self, *args: str, stdin: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("-o", "json", *args, stdin=stdin).stdout)
        return found

    def rows(self, *args: str) -> list[tuple[str, int]]:
        """(code, row) of each finding."""
        return [(finding["code"], finding["location"]["row"]) for finding in self.json(*args)]


_VERBS = [(verb,) for verb in ("rule", "config", "clean", "lsp", "check", "--version", "--help")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for variable in [name for name in os.environ if name.startswith("TSDYN_LINT")] + ["NO_COLOR", "FORCE_COLOR"]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


@pytest.fixture
def prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the analysis: each `print(` is a TSD301 that a fix takes away, with an entry and a call path.

    Words on the line change it: `unsure` makes it possible, `notice` of severity info, `unsafe` its fix unsafe.
    """
    monkeypatch.setattr("tsdyn_lint.pipeline.analyse", _flag_prints)


def _flag_prints(files: Sequence[Source], settings: Settings, rulebook: RuleBook, *rest: object) -> Analysis:
    findings = []
    for source in files:
        if problem := check_syntax(source):
            findings.append(problem)
            continue
        for row, line in enumerate(source.lines, 1):
            if "explode" in line:
                raise RuntimeError("exploded")
            if "print(" in line:
                findings.append(_finding(source, row, line))
    return Analysis(findings, settings.engines or frozenset(), "")


def _finding(source: Source, row: int, line: str) -> Finding:
    column = line.index("print(")
    start, end = Location(row, column + 1), Location(row, line.index(")", column) + 2)
    applicability = "unsafe" if "unsafe" in line else "display" if "shown" in line else "safe"
    content = "pass(" if "broken" in line else "pass"
    return Finding(
        "TSD301",
        "print-call",
        f"`{line[column : end.column - 1]}` prints: 100% [é], a:b",
        Severity.INFO if "notice" in line else Severity.WARNING,
        str(source.path),
        start,
        end,
        engines=(Engine.DYNAMO, Engine.TRACE),
        confidence=Confidence.POSSIBLE if "unsure" in line else Confidence.LIKELY,
        gb=("GB0059",),
        entry="model.Gate.forward",
        related=(Related(str(source.path), Location(1, 1), Location(1, 2), "called from here"),),
        fix=Fix(applicability, "Remove the call", (Edit(content, start, end),)),
        scope="Gate.forward",
    )


def run_cli(
    *args: str, cwd: Path, env: dict[str, str] | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tsdyn_lint", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )
