"""JUnit XML: a suite a file, a failed case a finding; a file without findings, or a verified target, is a case too."""

from __future__ import annotations

from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from tsdyn_lint.findings import Finding
from tsdyn_lint.report.run import Run


def render(run: Run) -> str:
    root = ElementTree.Element("testsuites", name="tsdyn-lint")
    with_findings = set()
    for filename, findings in groupby(run.findings, key=lambda finding: finding.filename):
        with_findings.add(filename)
        _suite(root, run.shown(filename), [_case(run, finding) for finding in findings])
    for file in run.files:
        if str(file) not in with_findings:
            name = run.shown(str(file))
            _suite(root, name, [ElementTree.Element("testcase", name="tsdyn-lint", classname=name)])
    if run.targets:
        _suite(root, "tsdyn-lint --verify", [_target_case(target) for target in run.targets])
    failures = sum(int(suite.get("failures", "0")) for suite in root)
    root.set("tests", str(sum(int(suite.get("tests", "0")) for suite in root)))
    root.set("failures", str(failures))
    root.set("errors", "0")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    failures = sum(case.find("failure") is not None for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "disabled": "0"}
    ElementTree.SubElement(root, "testsuite", {"name": _xml(name), **counts}).extend(cases)


def _case(run: Run, finding: Finding) -> ElementTree.Element:
    """A finding of severity info, or one that torch refuted, is no failure: its case holds the message as output.

    One that could not be tried is skipped.
    """
    place = run.place(finding)
    attributes = {"name": f"{finding.code} {finding.name}", "classname": _xml(run.shown(finding.filename))}
    case = ElementTree.Element("testcase", attributes | {"line": str(finding.start.row)})
    text = _xml(f"{place}: {finding.message} [{', '.join(finding.engines)}]")
    status = finding.verify["status"] if finding.verify else "confirmed"
    if finding.severity.fails and status not in ("confirmed", "refuted"):
        ElementTree.SubElement(case, "skipped", message=_xml(f"{status}: {text}"))
    elif finding.severity.fails and status == "confirmed":
        failure = ElementTree.SubElement(case, "failure", message=_xml(finding.message), type=finding.severity.value)
        failure.text = text
    else:
        ElementTree.SubElement(case, "system-out").text = text
    return case


def _target_case(target: dict[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", name=_xml(str(target.get("target"))), classname="tsdyn-lint.verify")
    if broken := (target.get("budget") or {}).get("broken"):
        message = "; ".join(item["message"] for item in broken)
        ElementTree.SubElement(case, "failure", message=_xml(message), type="budget")
    elif problem := target.get("failure"):
        ElementTree.SubElement(case, "skipped", message=_xml(f"not run ({problem['kind']}): {problem['message']}"))
    elif unknown := (target.get("budget") or {}).get("unknown"):
        ElementTree.SubElement(case, "skipped", message=f"budget not checked: {', '.join(unknown)}")
    return case


def _xml(text: str) -> str:
    """The text without the control characters that XML 1.0 has no way to write."""
    return "".join(character for character in text if character in "\t\n\r" or character >= " ")
