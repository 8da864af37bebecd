"""GitLab's Code Quality report."""

from __future__ import annotations

import json

from tsdyn_lint.findings import Severity
from tsdyn_lint.report.fingerprint import fingerprints
from tsdyn_lint.report.run import Run

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Run) -> str:
    report = [
        {
            "check_name": finding.name,
            "description": f"{finding.code}: {finding.message}"
            + (f" ({finding.verify['status']})" if finding.verify else ""),
            "severity": _SEVERITIES[finding.severity],
            "fingerprint": fingerprint,
            "location": {
                "path": run.shown(finding.filename),
                "positions": {
                    "begin": {"line": finding.start.row, "column": finding.start.column},
                    "end": {"line": finding.end.row, "column": finding.end.column},
                },
            },
        }
        for finding, fingerprint in fingerprints(run)
    ]
    return json.dumps(report, indent=2) + "\n"
