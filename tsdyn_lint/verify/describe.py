"""A target's JSON object for the report: the keys that the documentation promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tsdyn_lint.findings import Finding
from tsdyn_lint.verify.confirm import Observed
from tsdyn_lint.verify.observe import Answer, Dynamo, Eager, Export, Fault, Recompiles, Script, Site, Trace, agree
from tsdyn_lint.verify.spawn import Result
from tsdyn_lint.verify.target import Target

OTHERS = ("again", "values", "sizes", "given")
"""Kinds of call other than the example itself."""


def describe(target: Target, result: Result, observed: Observed, findings: Sequence[Finding]) -> dict[str, Any]:
    """Everything seen of one target. Engines that were not tried are null."""
    about, eager = result.about, observed.eager
    return {
        "target": target.name,
        "torch": about.get("torch"),
        "device": about.get("device"),
        "inputs": list(about.get("inputs", [])),
        "kwargs": about.get("kwargs", {}),
        "synthesised": bool(about.get("synthesised", target.found)),
        "lines_reached": lines_reached(observed, findings),
        "eager": _eager(eager),
        "dynamo": _dynamo(observed, findings),
        "script": _script(observed.seen.get("script")),
        "trace": _trace(observed.seen.get("trace")),
        "export": _export(observed),
        "aot": None,
        "measure": None,
        "route": None,
        "budget": {"broken": []},
        "failure": _failure(result, observed),
        "network": result.network,
        "seconds": {name: round(seconds, 3) for name, seconds in result.seconds.items()},
    }


def lines_reached(observed: Observed, findings: Sequence[Finding]) -> float | None:
    """The share of statements that ran, of the functions that were entered in the linted files with findings."""
    if observed.eager is None:
        return None
    ran = total = 0
    for filename, rows in observed.eager.lines.items():
        statements = observed.files(filename)
        functions = {found for row in rows if (found := statements.function(row)) and row > found[0]}
        got, all_of_them = statements.share(set(rows), functions)
        ran, total = ran + got, total + all_of_them
    return round(ran / total, 3) if total else None


def _failure(result: Result, observed: Observed) -> dict[str, str] | None:
    """Why the target did not run, or not all the way."""
    if result.failure is not None:
        kind, message = result.failure
        text = {"kind": kind, "message": message}
        return {**text, "toml": result.toml} if result.toml else text
    if observed.eager is not None and not observed.eager.ok:
        error = observed.eager.error
        return {"kind": "eager", "message": f"{error.type}: {error.message}" if error else "failed"}
    if result.broken:
        return {"kind": "crash", "message": "; ".join(result.broken.values())}
    return None


def _place(site: Site | None) -> dict[str, Any]:
    return {"filename": site.filename if site else None, "location": {"row": site.row} if site else None}


def _fault(fault: Fault | None) -> dict[str, Any] | None:
    return None if fault is None else {**_place(fault.site), "message": f"{fault.type}: {fault.message}"}


def _lines(rows: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    return [{"filename": name, "rows": list(found)} for name, found in rows.items()]


def _eager(seen: Eager | None) -> dict[str, Any]:
    if seen is None:
        return {"ok": False, "error": None, "lines": []}
    return {"ok": seen.ok, "error": _fault(seen.error), "lines": _lines(seen.lines)}


def _dynamo(observed: Observed, findings: Sequence[Finding]) -> dict[str, Any] | None:
    seen = observed.seen.get("dynamo")
    if not isinstance(seen, Dynamo):
        return None
    swept = observed.seen.get("recompile")
    recompiles = swept if isinstance(swept, Recompiles) else None
    return {
        "ok": seen.ok,
        "error": _fault(seen.error),
        "graphs": seen.graphs,
        "ops": seen.ops,
        "captured": [{"ops": graph.ops, "lines": _lines(graph.lines)} for graph in seen.captured],
        "breaks": [
            {
                **_place(item.site), "gb": item.gb, "reason": item.reason, "frame_skipped": item.frame_skipped,
                "finding": _predicted(item.site, observed, findings),
            }
            for item in seen.breaks
        ],
        "frames_skipped": [
            {"filename": f.filename, "location": {"row": f.row or f.first_row}, "function": f.name,
             "first_row": f.first_row}
            for f in seen.skipped
        ],
        "lifted_by": {name: list(map(_place, sites)) for name, sites in seen.lifted.items()},
        "guard_hit_rate": recompiles.hit_rate if recompiles else None,
        "limit_hit": recompiles.limit_hit if recompiles else None,
        "recompiles": [{"input": r.input, "guard": r.guard, **_place(r.site)} for r in recompiles.recompiles]
        if recompiles
        else [],
        "same_input": agree(seen.answers, ("example",)),
        "other_inputs": agree((*seen.answers, *(recompiles.answers if recompiles else ())), OTHERS),
        "unavailable": seen.unavailable,
    }  # fmt: skip


def _predicted(site: Site | None, observed: Observed, findings: Sequence[Finding]) -> str | None:
    return next((finding.code for finding in findings if observed.at(site, finding)), None)


def _answers(answers: Sequence[Answer]) -> list[dict[str, str]]:
    return [{"input": a.input, "outcome": a.outcome, "message": a.message} for a in answers]


def _script(seen: Any) -> dict[str, Any] | None:
    if not isinstance(seen, Script):
        return None
    return {
        "ok": seen.ok and seen.run_error is None,
        "errors": [{**_place(e.fault.site), "message": e.fault.message, "how": e.how} for e in seen.errors]
        + (
            [{**_place(seen.run_error.site), "message": seen.run_error.message, "how": "run"}] if seen.run_error else []
        ),
        "complete": seen.complete,
        "same_input": agree(seen.answers, ("example",)),
        "other_inputs": agree(seen.answers, OTHERS),
        "unavailable": seen.unavailable,
    }


def _trace(seen: Any) -> dict[str, Any] | None:
    if not isinstance(seen, Trace):
        return None
    return {
        "ok": seen.ok,
        "error": _fault(seen.error),
        "same_input": agree(seen.answers, ("example",)),
        "other_inputs": agree(seen.answers, OTHERS),
        "answers": _answers(seen.answers),
        "warnings": [{**_place(w.site), "message": w.message} for w in seen.warnings],
        "unavailable": seen.unavailable,
    }


def _export(observed: Observed) -> dict[str, Any] | None:
    seen, strict, draft = (observed.seen.get(name) for name in ("export", "export_strict", "draft"))
    if not isinstance(seen, Export):
        return None
    return {
        "ok": seen.ok,
        "errors": [_fault(seen.error)] if seen.error else [],
        "same_input": agree(seen.answers, ("example",)),
        "other_inputs": agree(seen.answers, OTHERS),
        "strict": {"ok": strict.ok, "errors": [_fault(strict.error)] if strict.error else []} if strict else None,
        "draft": [{"kind": f.kind, "expression": f.expression, **_place(f.site)} for f in draft.failures]
        if draft
        else None,
        "unavailable": seen.unavailable,
    }
