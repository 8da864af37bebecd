"""`json`: one array, or with `--verify` one object; `json-lines`: an object a line. The keys are ruff's, then ours."""

from __future__ import annotations

import json
from typing import Any

from tsdyn_lint.findings import Edit, Finding, Fix, Location
from tsdyn_lint.report.run import Run


def render(run: Run) -> str:
    findings = [finding_object(run, finding) for finding in run.findings]
    whole: Any = findings if run.targets is None else {"findings": findings, "targets": list(run.targets)}
    return json.dumps(whole, indent=2) + "\n"


def render_lines(run: Run) -> str:
    return "".join(json.dumps(finding_object(run, finding)) + "\n" for finding in run.findings)


def finding_object(run: Run, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity.value,
        "filename": finding.filename,
        "location": _location(finding.start),
        "end_location": _location(finding.end),
        "fix": _fix(finding.fix) if finding.fix else None,
        "url": run.url(finding),
        "noqa_row": finding.noqa_row or finding.start.row,
        "cell": finding.cell,
        "engines": [engine.value for engine in finding.engines],
        "confidence": finding.confidence.value,
        "gb": list(finding.gb),
        "entry": finding.entry,
        "related": [
            {
                "filename": related.filename,
                "location": _location(related.start),
                "end_location": _location(related.end),
                "message": related.message,
            }
            for related in finding.related
        ],
        "verify": finding.verify,
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _fix(fix: Fix) -> dict[str, Any]:
    return {"applicability": fix.applicability, "message": fix.message, "edits": list(map(_edit, fix.edits))}


def _edit(edit: Edit) -> dict[str, Any]:
    return {"content": edit.content, "location": _location(edit.start), "end_location": _location(edit.end)}
