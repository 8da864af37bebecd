"""Findings and observations -> a verdict for each finding and engine: what torch itself said of that line.

Only a line that ran, in a frame that was captured, can be refuted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.statements import Statements
from tsdyn_lint.verify.observe import (
    Answer,
    Break,
    Draft,
    Dynamo,
    Eager,
    Export,
    Fault,
    Recompiles,
    Script,
    Site,
    Trace,
)

CONFIRMED, REFUTED, MASKED, NOT_REACHED, NOT_RUN = "confirmed", "refuted", "masked", "not-reached", "not-run"
ORDER = (CONFIRMED, REFUTED, MASKED, NOT_REACHED, NOT_RUN)
"""Which verdict stands where several targets or engines give one."""
OTHER_SHARD = "its target is another shard's"
"""Why a finding was not tried in this run, though all is well with it."""
FROM_A_BREAK = "___stack"
"""How guards call a value that came out of a graph break."""
SETTLED = 3
"""Recompiles of one function that new sizes alone explain: each dimension turns dynamic once."""
PER_VALUE = 2
"""Recompiles at a line from which on they are one for each new value: one alone turns the value dynamic."""


@dataclass(frozen=True)
class Verdict:
    """What one engine did with one finding, and why it is thought so."""

    engine: str
    status: str
    reason: str
    gb: str | None = None
    target: str = ""

    def as_json(self) -> dict[str, Any]:
        """As in `verify.observed` of a finding."""
        data = {"engine": self.engine, "status": self.status, "gb": self.gb, "reason": self.reason}
        return {**data, "target": self.target} if self.target else data


@dataclass(frozen=True)
class Observed:
    """All that was seen of one target. `files` gives the statements of a file by its name."""

    target: str
    seen: Mapping[str, Any]
    broken: Mapping[str, str]
    failure: tuple[str, str] | None
    files: Callable[[str], Statements]
    findings: Sequence[Finding] = field(default=())
    """All findings of the run: a break is that of the finding whose id fits best."""

    @property
    def eager(self) -> Eager | None:
        return self.seen.get("eager")

    def ran(self, finding: Finding) -> bool:
        """Whether the finding's statement ran eagerly; a `def` line or a decorator did if its function was entered."""
        function = self.files(finding.filename).function(finding.start.row)
        if function is not None and finding.start.row <= function[0]:
            return self.entered(finding)
        rows = set(self.eager.lines.get(finding.filename, ())) if self.eager else set()
        first, last = self.files(finding.filename).span(finding.start.row)
        return bool(rows & set(range(first, last + 1)))

    def entered(self, finding: Finding) -> bool:
        """Whether anything of the function around it ran; for a constructor, anything of its class."""
        statements = self.files(finding.filename)
        function = statements.function(finding.start.row)
        rows = self.eager.lines.get(finding.filename, ()) if self.eager else ()
        if function is None:
            return False
        if function[2].endswith(".__init__"):  # it ran before the call that is watched
            kind = function[2].removesuffix("__init__")
            return any(found[2].startswith(kind) for row in rows if (found := statements.function(row)))
        return any(function[0] < row <= function[1] for row in rows)

    def at(self, site: Site | None, finding: Finding) -> bool:
        """Whether a site is the finding's statement, or one of those it names as related."""
        if site is None:
            return False
        places = [(finding.filename, finding.start.row), *((r.filename, r.start.row) for r in finding.related)]
        return any(site.filename == name and self.files(name).same(site.row, row) for name, row in places)


def verdict(finding: Finding, engine: Engine, observed: Observed) -> Verdict:
    """What that engine did with that finding in one target."""
    status, reason, gb = _judge(finding, engine, observed)
    return Verdict(engine.value, status, reason, gb, observed.target)


Judged = tuple[str, str, "str | None"]


def _judge(finding: Finding, engine: Engine, observed: Observed) -> Judged:
    if observed.failure is not None and not (observed.eager and observed.eager.ok):
        return NOT_RUN, f"{observed.failure[0]}: {observed.failure[1]}", None
    if observed.eager is None or not observed.eager.ok:
        error = observed.eager.error if observed.eager else None
        return NOT_RUN, f"eager itself failed: {_told(error)}", None
    probe = PROBE_OF[engine]
    if probe in observed.broken:
        return NOT_RUN, observed.broken[probe], None
    seen = observed.seen.get(probe)
    if seen is None:
        return NOT_RUN, observed.failure[1] if observed.failure else f"{engine.value} was not tried", None
    if seen.unavailable:
        return NOT_RUN, seen.unavailable, None
    return JUDGES[engine](finding, seen, observed)


def _told(fault: Fault | None) -> str:
    if fault is None:
        return "unknown"
    place = f" at {fault.site.filename}:{fault.site.row}" if fault.site else ""
    return f"{fault.type}: {_first_line(fault.message)}{place}"


def _first_line(message: str) -> str:
    return next(iter(message.strip().splitlines()), "")[:300]


def matched_break(finding: Finding, seen: Dynamo, observed: Observed) -> Break | None:
    """The break that is this finding's: at its statement, or at one on the stack above it.

    Where another finding at the same statement has the break's id and this one has not, it is the other's.
    """
    same = observed.files(finding.filename).same
    rivals = [
        other
        for other in observed.findings
        if other is not finding and other.filename == finding.filename and same(other.start.row, finding.start.row)
    ]
    for item in seen.breaks:
        others_own = item.gb is not None and item.gb not in finding.gb and any(item.gb in f.gb for f in rivals)
        if not others_own and (observed.at(item.site, finding) or any(observed.at(s, finding) for s in item.stack)):
            return item
    return None


def _dynamo(finding: Finding, seen: Dynamo, observed: Observed) -> Judged:
    found = matched_break(finding, seen, observed)
    if found is not None:
        return CONFIRMED, f"graph break: {found.reason}", found.gb
    if seen.error is not None and observed.at(seen.error.site, finding):
        return CONFIRMED, f"torch.compile raised {_told(seen.error)}", None
    if not observed.ran(finding):
        return NOT_REACHED, "the line did not run with these inputs", None
    if seen.error is not None:
        return MASKED, f"torch.compile had raised before: {_told(seen.error)}", None
    function = observed.files(finding.filename).function(finding.start.row)
    for item in seen.breaks:
        if function and item.gb in finding.gb and _in(function, item.frame, finding):
            return CONFIRMED, f"graph break inside of torch, called by {function[2]}: {item.reason}", item.gb
    for frame in seen.skipped:
        if frame.filename == finding.filename and function and function[0] <= frame.first_row <= function[1]:
            return MASKED, f"Dynamo skipped {function[2]} because of line {frame.row or frame.first_row}", None
    return REFUTED, f"captured without a break, {seen.graphs} graph{'s' * (seen.graphs != 1)}", None


def _recompile(finding: Finding, seen: Recompiles, observed: Observed) -> Judged:
    if seen.error is not None:
        if observed.at(seen.error.site, finding):
            return CONFIRMED, f"torch.compile raised {_told(seen.error)}", None
        return MASKED, f"torch.compile raised before: {_told(seen.error)}", None
    dynamo = observed.seen.get("dynamo")
    broke = isinstance(dynamo, Dynamo) and matched_break(finding, dynamo, observed) is not None
    function = observed.files(finding.filename).function(finding.start.row)
    here = [
        item
        for item in seen.recompiles
        if observed.at(item.site, finding)
        or (broke and FROM_A_BREAK in item.guard and _in(function, item.site, finding))
    ]
    guards = list(dict.fromkeys(item.guard for item in here))
    if len(guards) >= PER_VALUE:
        return CONFIRMED, f"{len(guards)} recompiles here in {len(seen.calls)} calls, for example on {guards[0]}", None
    unplaced = [item for item in seen.recompiles if item.site is None and _in(function, item.frame, finding)]
    most = max(Counter(item.frame for item in unplaced).values(), default=0)
    ran = observed.ran(finding)
    if ran and most > SETTLED:
        return CONFIRMED, f"{most} recompiles of this function in {len(seen.calls)} calls: {unplaced[-1].guard}", None
    if ran and seen.limit_hit:
        return CONFIRMED, f"the limit of recompiles was reached in {len(seen.calls)} calls", None
    if not ran:
        return NOT_REACHED, "the line did not run with these inputs", None
    if len(seen.calls) < 2:
        return NOT_RUN, "no second call ran", None
    if isinstance(dynamo, Dynamo):
        status, reason, _ = _dynamo(finding, dynamo, observed)
        if status == MASKED:
            return MASKED, reason, None
    return REFUTED, f"{len(guards)} recompiles here in {len(seen.calls)} calls", None


def _in(function: tuple[int, int, str] | None, site: Site | None, finding: Finding) -> bool:
    """Whether a site is within that function of the finding's file."""
    return bool(function and site and site.filename == finding.filename and function[0] <= site.row <= function[1])


def _script(finding: Finding, seen: Script, observed: Observed) -> Judged:
    for error in seen.errors:
        if observed.at(error.fault.site, finding):
            return CONFIRMED, f"torch.jit.script: {_first_line(error.fault.message)}", None
    if seen.run_error is not None and observed.at(seen.run_error.site, finding):
        return CONFIRMED, f"compiles, then raises {_told(seen.run_error)}", None
    wrong = [a for a in seen.answers if a.outcome in ("differs", "raises")]
    if wrong and observed.ran(finding) and seen.run_error is None:
        return CONFIRMED, f"compiles, then answers otherwise than eager on {wrong[0].input}: {wrong[0].message}", None
    if seen.errors and all(error.fault.site is None for error in seen.errors) and observed.entered(finding):
        fault = seen.errors[0].fault
        return CONFIRMED, f"torch.jit.script names no line: {fault.type}: {_first_line(fault.message)}", None
    if not observed.entered(finding):
        return NOT_REACHED, "nothing of this function ran, so it may not have been compiled", None
    if not seen.ok and not seen.complete:
        return MASKED, "torch.jit.script stopped at another line", None
    return REFUTED, "torch.jit.script compiles this line", None


def _trace(finding: Finding, seen: Trace, observed: Observed) -> Judged:
    if seen.error is not None:
        return _raised(finding, seen.error, seen.lines, "torch.jit.trace", observed)
    warned = next((w for w in seen.warnings if observed.at(w.site, finding)), None)
    differing = [a for a in seen.answers if a.outcome in ("differs", "raises")]
    if warned is not None:
        shown = f"; on {differing[0].input} it {_how(differing[0])}" if differing else ""
        what = _first_line(warned.message).partition(" might cause")[0]
        return CONFIRMED, f"{what}, a constant of the trace{shown}", None
    return _silent(finding, seen.answers, observed)


def _export(finding: Finding, seen: Export, observed: Observed) -> Judged:
    draft = observed.seen.get("draft")
    if isinstance(draft, Draft):
        for failure in draft.failures:
            if not seen.ok and observed.at(failure.site, finding):
                return CONFIRMED, f"torch.export cannot decide {failure.expression or failure.kind}", None
    if seen.error is not None:
        return _raised(finding, seen.error, seen.lines, "torch.export", observed)
    return _silent(finding, seen.answers, observed)


def _raised(
    finding: Finding, error: Fault, lines: Mapping[str, Sequence[int]], what: str, observed: Observed
) -> Judged:
    if observed.at(error.site, finding):
        return CONFIRMED, f"{what} raised {error.type}: {_first_line(error.message)}", None
    if any(observed.at(site, finding) for site in error.stack):
        return CONFIRMED, f"{what} raised {error.type} below this line: {_first_line(error.message)}", None
    if not observed.ran(finding):
        return NOT_REACHED, "the line did not run with these inputs", None
    if error.site is None:
        return CONFIRMED, f"{what} raised and names no line: {_told(error)}", None
    return MASKED, f"{what} stopped elsewhere: {_told(error)}", None


def _how(answer: Answer) -> str:
    return "raises" if answer.outcome == "raises" else f"is {answer.message}" if answer.message else "differs"


def by_size(code: str) -> bool:
    """Whether what such a line bakes or guards is a size."""
    return code[:4] == "TSD5" or code in ("TSD601", "TSD602", "TSD603", "TSD606")


def varies_by(code: str) -> set[str]:
    """The kinds of call on which a value baked at such a line shows."""
    if by_size(code):
        return {"sizes", "given"}
    if code[:4] == "TSD4":
        return {"again", "values", "given"}
    return {"values", "sizes", "again", "given"}


def _silent(finding: Finding, answers: Sequence[Answer], observed: Observed) -> Judged:
    """Captured without a word: do other calls give other results than eager does?"""
    if not observed.ran(finding):
        return NOT_REACHED, "the line did not run with these inputs", None
    kinds = varies_by(finding.code)
    telling = [a for a in answers if a.kind in kinds]
    differing = [a for a in telling if a.outcome in ("differs", "raises")]
    if differing:
        return CONFIRMED, f"captured, then wrong on {differing[0].input}: {differing[0].message}", None
    if not [a for a in telling if a.outcome == "same"]:
        return NOT_RUN, "no call that would show it could be compared with eager", None
    return REFUTED, f"the same as eager on {', '.join(a.input for a in telling if a.outcome == 'same')}", None


PROBE_OF = {
    Engine.DYNAMO: "dynamo", Engine.RECOMPILE: "recompile", Engine.SCRIPT: "script", Engine.TRACE: "trace",
    Engine.EXPORT: "export",
}  # fmt: skip
JUDGES: dict[Engine, Callable[[Finding, Any, Observed], Judged]] = {
    Engine.DYNAMO: _dynamo, Engine.RECOMPILE: _recompile, Engine.SCRIPT: _script, Engine.TRACE: _trace,
    Engine.EXPORT: _export,
}  # fmt: skip


def best(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that stands: one target that shows it is enough, and being refuted says more than not being run."""
    return min(verdicts, key=lambda v: ORDER.index(v.status))


def summed_up(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """A finding's `verify` value: confirmed by any engine is confirmed; refuted only if nothing is left open."""
    statuses = {v.status for v in verdicts}
    open_ones = [s for s in (MASKED, NOT_REACHED, NOT_RUN) if s in statuses]
    status = CONFIRMED if CONFIRMED in statuses else open_ones[0] if open_ones else REFUTED
    return {"status": status, "observed": [v.as_json() for v in verdicts]}
