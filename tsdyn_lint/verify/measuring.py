"""Which targets are measured by which probes, and how what those saw becomes part of a target's report."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tsdyn_lint.verify import budget
from tsdyn_lint.verify.measured import MEASURED
from tsdyn_lint.verify.observe import decode
from tsdyn_lint.verify.route import route
from tsdyn_lint.verify.spawn import Result
from tsdyn_lint.verify.summary import measure
from tsdyn_lint.verify.target import Target


@dataclass(frozen=True)
class Measuring:
    """What was asked for: the stage, the backend, and the number of calls for the benefit."""

    stage: str
    backend: str
    calls: int | None = None

    def wants(self, target: Target, result: Result) -> bool:
        """Whether to measure a target that was confirmed with that result: all, or those with such a budget."""
        eager = result.seen.get("eager")
        if result.failure is not None or not eager or not eager["ok"]:
            return False
        return self.stage != "confirm" or budget.needs_measure(target.table, result.about.get("torch"))

    def probes(self) -> tuple[str, ...]:
        """Those of the stage."""
        return tuple(name for name in MEASURED if name != "aot" or self.stage == "aot")

    def added(self, report: dict[str, Any], result: Result) -> dict[str, Any]:
        """The report with `measure`, `aot` and `route` filled in."""
        seen = {name: decode(MEASURED[name], data) for name, data in result.seen.items()}
        unavailable = dict(result.broken)
        if result.failure is not None:
            unavailable["worker"] = ": ".join(result.failure)
        mode = str(result.about.get("mode") or "eval")
        figures = measure(seen, unavailable, self.backend, mode, self.calls)
        aot = seen.get("aot")
        report = {
            **report,
            "measure": dataclasses.asdict(figures),
            "aot": dataclasses.asdict(aot) if aot is not None else None,
            "seconds": {**report["seconds"], **{name: round(spent, 3) for name, spent in result.seconds.items()}},
        }
        return {**report, "route": dataclasses.asdict(route(report))}
