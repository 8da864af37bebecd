"""Rule pages on the real torch, through the verdicts that users get: each marked row as if the linter had found it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tsdyn_lint.findings import Finding, Location
from tsdyn_lint.rulebook import Rule
from tsdyn_lint.statements import Statements
from tsdyn_lint.verify.confirm import CONFIRMED, NOT_RUN, Verdict, best, verdict
from tsdyn_lint.verify.observe import OBSERVATIONS
from tsdyn_lint.verify.session import observed
from tsdyn_lint.verify.spawn import Job, Result, run


@dataclass(frozen=True)
class PageVerdict:
    """What torch said of one row of a page's example: a verdict for each capture that the page names."""

    code: str
    row: int
    verdicts: tuple[Verdict, ...]
    device: str
    seconds: float


def judge_pages(rules: Iterable[Rule], device: str = "cpu", parallel: int = 1) -> list[PageVerdict]:
    """Verdicts for every marked row of every example of these rules; `fixed` blocks have none."""
    with tempfile.TemporaryDirectory(prefix="tsdyn-pages-") as folder:
        files: dict[Path, tuple[Rule, dict[int, tuple[str, ...]]]] = {}
        for rule in rules:
            for number, example in enumerate(rule.examples):
                if not example.fixed:
                    path = Path(folder).resolve() / f"{rule.code}_{number}.py"
                    path.write_text(example.code, encoding="utf-8")
                    files[path] = rule, {row: tuple(names) for row, names in example.expected.items()}
        jobs = [Job({"file": str(path)}, tuple(OBSERVATIONS), device=device) for path in files]
        results = dict(run(jobs, parallel))
        return [
            judged
            for index, (path, (rule, marked)) in enumerate(files.items())
            for judged in _of_file(path, rule, marked, results[index])
        ]


def _of_file(path: Path, rule: Rule, marked: dict[int, tuple[str, ...]], result: Result) -> list[PageVerdict]:
    statements = Statements(path.read_text(encoding="utf-8"))
    findings = [_finding(path, rule, row) for row, names in marked.items() if rule.name in names]
    seen = observed(rule.code, result, lambda name: statements, findings)
    device = str(result.about.get("device", ""))
    seconds = sum(result.seconds.values())
    return [
        PageVerdict(rule.code, f.start.row, tuple(verdict(f, engine, seen) for engine in rule.engines), device, seconds)
        for f in findings
    ]


def _finding(path: Path, rule: Rule, row: int) -> Finding:
    place = Location(row, 1)
    return Finding(
        rule.code,
        rule.name,
        rule.message,
        rule.severity,
        str(path),
        place,
        place,
        tuple(rule.engines),
        gb=tuple(rule.gb),
    )


def unconfirmed(judged: Iterable[PageVerdict]) -> dict[str, str]:
    """`TSD201 dynamo` -> why, for each capture that a page names and that no row of its examples confirms."""
    by_claim: dict[str, list[Verdict]] = {}
    for page in judged:
        for one in page.verdicts:
            by_claim.setdefault(f"{page.code} {one.engine}", []).append(one)
    worst = {claim: best(verdicts) for claim, verdicts in by_claim.items()}
    return {claim: f"{v.status}: {v.reason}" for claim, v in worst.items() if v.status != CONFIRMED}


def refuted(judged: Iterable[PageVerdict]) -> list[str]:
    """Claims that torch contradicts, row by row."""
    return [
        f"{page.code}:{page.row} {one.engine}: {one.reason}"
        for page in judged
        for one in page.verdicts
        if one.status not in (CONFIRMED, NOT_RUN, "masked", "not-reached")
    ]
