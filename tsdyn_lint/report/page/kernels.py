"""The kernels of a compiled call: what each fused, how long it takes, how much it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import places
from tsdyn_lint.report.page.code import hue
from tsdyn_lint.report.page.cost import width
from tsdyn_lint.report.page.markup import Child, Html, el
from tsdyn_lint.report.page.tables import table
from tsdyn_lint.report.run import Run


def kernels(run: Run, items: Sequence[Mapping[str, Any]]) -> Html | None:
    """One row a kernel, its bar in the colour of its graph, the longest one's the full length."""
    longest = max((item["time_us"] or 0 for item in items), default=0)
    return table(
        ("Kernel", "Operations", "Time", "Bytes"), [_row(run, item, longest) for item in items], "rows kernels"
    )


def _row(run: Run, item: Mapping[str, Any], longest: float) -> Sequence[Child]:
    time = item["time_us"]
    bar = el("span", cls="piece", style=width((time or 0) / longest if longest else 0))
    lines = places(run, item.get("lines", ()))
    ops = ", ".join(op.removeprefix("aten.") for op in item["ops"])
    moved = units.size(item["bytes"])
    if item.get("gbps"):
        moved += f", {units.significant(item['gbps'])} GB/s"
    return (
        [el("code", item["name"]), " ", el("small", item["kind"], cls="chip")],
        el("span", ops or units.NONE, lines),
        el("span", units.microseconds(time), el("span", bar, cls=f"track {hue(item.get('graph', 0))}")),
        moved,
    )
