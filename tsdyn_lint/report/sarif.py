"""SARIF 2.1.0, as code scanning services read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tsdyn_lint import __version__
from tsdyn_lint.findings import Confidence, Finding, Fix, Location, Related, Severity
from tsdyn_lint.report.fingerprint import fingerprints
from tsdyn_lint.report.run import Run, gb_url
from tsdyn_lint.rulebook import Rule

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_RANKS = {Confidence.CERTAIN: 90.0, Confidence.LIKELY: 60.0, Confidence.POSSIBLE: 30.0}


def render(run: Run) -> str:
    rules = [rule for rule in run.rulebook if any(finding.code == rule.code for finding in run.findings)]
    indices = {rule.code: index for index, rule in enumerate(rules)}
    driver = {"name": "tsdyn-lint", "version": __version__, "rules": list(map(_rule, rules))}
    log = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"ROOT": {"uri": run.folder.as_uri().rstrip("/") + "/"}},
                "results": [_result(run, found, mark, indices) for found, mark in fingerprints(run)],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary or rule.name},
        "fullDescription": {"text": rule.summary or rule.name},
        "help": {"text": rule.text.strip(), "markdown": rule.text.strip()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [engine.value for engine in rule.engines], "gb": list(rule.gb)},
        **({"helpUri": gb_url(rule.gb[0])} if rule.gb else {}),
    }


def _result(run: Run, finding: Finding, fingerprint: str, indices: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": _physical(run, finding.filename, finding.start, finding.end)}],
        "partialFingerprints": {"tsdynLint/v1": fingerprint},
        "rank": _rank(finding),
        "properties": dict(_properties(finding)),
    }
    if finding.code in indices:
        result["ruleIndex"] = indices[finding.code]
    if finding.scope:
        result["locations"][0]["logicalLocations"] = [{"fullyQualifiedName": finding.scope}]
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, **_related(run, related)} for number, related in enumerate(finding.related, 1)
        ]
    if finding.fix and finding.fix.applicability != "display":
        result["fixes"] = [_fix(run, finding, finding.fix)]
    return result


def _rank(finding: Finding) -> float:
    """How likely it is real: the confidence, unless torch itself has decided."""
    decided = {"confirmed": 100.0, "refuted": 0.0}
    status = (finding.verify or {}).get("status")
    return decided.get(str(status), _RANKS[finding.confidence])


def _properties(finding: Finding) -> Iterator[tuple[str, Any]]:
    yield "engines", [engine.value for engine in finding.engines]
    yield "confidence", finding.confidence.value
    yield "gb", list(finding.gb)
    if finding.entry:
        yield "entry", finding.entry
    if finding.cell is not None:
        yield "cell", finding.cell
    if finding.verify:
        yield "verify", finding.verify


def _related(run: Run, related: Related) -> dict[str, Any]:
    return {
        "physicalLocation": _physical(run, related.filename, related.start, related.end),
        "message": {"text": related.message},
    }


def _physical(run: Run, filename: str, start: Location, end: Location) -> dict[str, Any]:
    return {"artifactLocation": _artifact(run, filename), "region": _region(start, end)}


def _artifact(run: Run, filename: str) -> dict[str, Any]:
    from urllib.parse import quote

    shown = run.shown(filename)
    if Path(shown).is_absolute():
        return {"uri": Path(shown).as_uri()}
    return {"uri": quote(shown), "uriBaseId": "ROOT"}


def _region(start: Location, end: Location) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _fix(run: Run, finding: Finding, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.content}}
        for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(run, finding.filename), "replacements": replacements}
    return {"description": {"text": fix.message}, "artifactChanges": [change]}
