"""What the linter did not foresee: breaks and errors that torch showed on lines without a finding (`TSD901`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsdyn_lint.findings import Confidence, Engine, Finding, Location, Severity
from tsdyn_lint.statements import Statements
from tsdyn_lint.verify.confirm import CONFIRMED, FROM_A_BREAK, PER_VALUE, Observed, Verdict, summed_up
from tsdyn_lint.verify.observe import Dynamo, Export, Fault, Recompiles, Script, Site, Trace

CODE, NAME = "TSD901", "unpredicted-break"
DISABLED = {"GB0098", "GB0099"}
"""A call of a function under `torch.compiler.disable`: meant to break."""
SILENCED = re.compile(r"#\s*(noqa\b|tsdyn:\s*ignore)", re.IGNORECASE)


@dataclass(frozen=True)
class Shown:
    """Something an engine showed at a place."""

    engine: Engine
    site: Site
    reason: str
    gb: str | None
    target: str


def unpredicted(
    views: Sequence[Observed],
    findings: Sequence[Finding],
    engines: Sequence[Engine],
    files: set[str],
    statements: Callable[[str], Statements],
) -> list[Finding]:
    """One finding a statement of the linted files, for the selected engines that showed something there."""
    by_place: dict[tuple[str, int], list[Shown]] = {}
    for view in views:
        for shown in _shown(view):
            if shown.engine not in engines or shown.site.filename not in files:
                continue
            known = any(shown.engine in finding.engines and view.at(shown.site, finding) for finding in findings)
            if not known and not _on_stack(view, shown, findings) and not _is_silenced(shown.site, statements):
                row = statements(shown.site.filename).span(shown.site.row)[0]
                by_place.setdefault((shown.site.filename, row), []).append(shown)
    return [_finding(filename, row, shown, statements) for (filename, row), shown in sorted(by_place.items())]


def _shown(view: Observed) -> Iterator[Shown]:
    dynamo = view.seen.get("dynamo")
    if isinstance(dynamo, Dynamo):
        for item in dynamo.breaks:
            if item.site is not None:
                yield Shown(Engine.DYNAMO, item.site, item.reason, item.gb, view.target)
        yield from _fault(Engine.DYNAMO, dynamo.error, view)
    yield from _recompiles(view)
    script = view.seen.get("script")
    if isinstance(script, Script):
        for error in script.errors:
            if error.how != "masked":
                yield from _fault(Engine.SCRIPT, error.fault, view)
        yield from _fault(Engine.SCRIPT, script.run_error, view)
    for engine, probe in ((Engine.TRACE, "trace"), (Engine.EXPORT, "export")):
        seen = view.seen.get(probe)
        if isinstance(seen, (Trace, Export)):
            yield from _fault(engine, seen.error, view)


def _recompiles(view: Observed) -> Iterator[Shown]:
    """Lines whose guards failed for one value after the other."""
    swept = view.seen.get("recompile")
    guards: dict[Site, dict[str, None]] = {}
    for item in swept.recompiles if isinstance(swept, Recompiles) else ():
        if item.site is not None and FROM_A_BREAK not in item.guard:  # that break is reported itself
            row = view.files(item.site.filename).span(item.site.row)[0]
            guards.setdefault(Site(item.site.filename, row), {})[item.guard] = None
    for site, failed in guards.items():
        if len(failed) > PER_VALUE:
            reason = f"{len(failed)} recompiles, one for each value: {', '.join(list(failed)[:3])}"
            yield Shown(Engine.RECOMPILE, site, reason, None, view.target)


def _fault(engine: Engine, fault: Fault | None, view: Observed) -> Iterator[Shown]:
    if fault is not None and fault.site is not None:
        text = next(iter(fault.message.strip().splitlines()), "")[:200]
        yield Shown(engine, fault.site, f"{fault.type}: {text}", None, view.target)


def _on_stack(view: Observed, shown: Shown, findings: Sequence[Finding]) -> bool:
    """Whether a finding stands at a call above the break: the line that leads there was predicted."""
    dynamo = view.seen.get("dynamo")
    if shown.engine is not Engine.DYNAMO or not isinstance(dynamo, Dynamo):
        return False
    stacks = [item.stack for item in dynamo.breaks if item.site == shown.site]
    own = [finding for finding in findings if Engine.DYNAMO in finding.engines]
    return any(view.at(site, finding) for stack in stacks for site in stack for finding in own)


def _is_silenced(site: Site, statements: Callable[[str], Statements]) -> bool:
    first, last = statements(site.filename).span(site.row)
    return any(SILENCED.search(line) for line in statements(site.filename).lines(first, last))


def _finding(filename: str, row: int, shown: list[Shown], statements: Callable[[str], Statements]) -> Finding:
    engines = tuple(engine for engine in Engine if any(item.engine is engine for item in shown))
    first = {item.engine: item for item in reversed(shown)}
    left, right = statements(filename).columns(row)
    start, end = Location(row, left), Location(row, right)
    function = statements(filename).function(row)
    gbs = tuple(dict.fromkeys(item.gb for item in shown if item.gb))
    meant = bool(gbs) and set(gbs) <= DISABLED and engines == (Engine.DYNAMO,)
    reason = shown[0].reason
    return Finding(
        CODE, NAME, f"not predicted: {reason}", Severity.INFO if meant else Severity.ERROR, filename, start, end,
        engines, Confidence.CERTAIN, gbs, entry=shown[0].target.replace(":", "."),
        scope=f"{Path(filename).stem}.{function[2]}" if function else Path(filename).stem,
        verify=summed_up([Verdict(e.value, CONFIRMED, first[e].reason, first[e].gb, first[e].target) for e in engines]),
    )  # fmt: skip
