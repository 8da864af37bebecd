"""Workflow commands that GitHub turns into annotations of a pull request."""

from __future__ import annotations

from tsdyn_lint.findings import Finding, Severity
from tsdyn_lint.report.run import Run

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(run: Run) -> str:
    return "".join(_command(run, finding) + "\n" for finding in run.findings)


def _command(run: Run, finding: Finding) -> str:
    place = {"title": f"tsdyn-lint ({finding.code})", "file": run.shown(finding.filename)}
    if finding.cell is None:
        place |= {"line": str(finding.start.row), "col": str(finding.start.column), "endLine": str(finding.end.row)}
        if finding.end.row == finding.start.row:
            place["endColumn"] = str(finding.end.column)
    properties = ",".join(f"{key}={_property(value)}" for key, value in place.items())
    text = f"{run.place(finding)}: {finding.code} {finding.message}"
    if finding.engines:
        text += f" [{', '.join(finding.engines)}]"
    if finding.verify:
        text += f" ({finding.verify['status']})"
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
