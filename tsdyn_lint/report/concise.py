"""One line a finding: `model.py:9:12: TSD201 branch on a tensor value [dynamo, trace]`."""

from __future__ import annotations

from tsdyn_lint.findings import Finding
from tsdyn_lint.report.run import Run
from tsdyn_lint.report.style import paint


def render(run: Run) -> str:
    return "".join(f"{_line(run, finding)}\n" for finding in run.findings)


def _line(run: Run, finding: Finding) -> str:
    engines = f" [{', '.join(finding.engines)}]" if finding.engines else ""
    mark = " [*]" if finding.fix and finding.fix.applicability == "safe" else ""
    verdict = f" ({finding.verify['status']})" if finding.verify else ""
    code = paint(finding.code, "red", run.colour, bold=True)
    return f"{paint(run.place(finding), 'bold', run.colour)}: {code}{mark} {finding.message}{engines}{verdict}"
