"""Guards: how many are checked on a call, and which one failed on which input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import place
from tsdyn_lint.report.page.code import first_line
from tsdyn_lint.report.page.markup import Html, el
from tsdyn_lint.report.page.tables import table
from tsdyn_lint.report.run import Run

_MOST = 20


def guards(run: Run, target: Mapping[str, Any]) -> Html | None:
    """A sentence and the table of failed guards; None where no second call was compiled."""
    dynamo, measure = target["dynamo"], target["measure"]
    if not dynamo or dynamo["guard_hit_rate"] is None:
        return None
    known = measure["guards"] if measure else None
    counted = f"{units.count(known)} guards, {units.microseconds(measure['t_guard_us'])} a call. " if known else ""
    hits = f"{units.share(dynamo['guard_hit_rate'])} of the later calls found a compiled graph"
    limit = "; the limit of recompiles was reached, further calls run eagerly" if dynamo["limit_hit"] else ""
    return el("div", el("p", f"{counted}{hits}{limit}."), _failed(run, dynamo["recompiles"]))


def _failed(run: Run, recompiles: Sequence[Mapping[str, Any]]) -> Html | None:
    rows = [
        (item["input"], el("code", first_line(item["guard"])), place(run, item) or units.NONE) for item in recompiles
    ]
    return table(("Call", "Guard that failed", "Made at"), rows)
