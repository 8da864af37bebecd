"""The kernels of a compiled call: what each fused, how long it takes, how much it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import place
from tsdyn_lint.report.page.cost import width
from tsdyn_lint.report.page.markup import Html, el
from tsdyn_lint.report.run import Run


def kernels(run: Run, items: Sequence[Mapping[str, Any]]) -> Html | None:
    """One row a kernel, in the order in which they were captured; the bar is its share of the longest one."""
    if not items:
        return None
    longest = max((item["time_us"] or 0 for item in items), default=0)
    heads = el("tr", [el("th", name, scope="col") for name in ("Kernel", "Operations", "Time", "Bytes")])
    rows = [_row(run, item, longest) for item in items]
    return el("table", el("thead", heads), el("tbody", rows), cls="kernels rows")


def _row(run: Run, item: Mapping[str, Any], longest: float) -> Html:
    time = item["time_us"]
    share = (time or 0) / longest if longest else 0
    lines = [part for line in item.get("lines", ()) for part in place(run, {**line, "location": {"row": line["row"]}})]
    ops = ", ".join(op.removeprefix("aten.") for op in item["ops"])
    moved = units.size(item["bytes"])
    if item.get("gbps"):
        moved += f", {units.significant(item['gbps'])} GB/s"
    return el(
        "tr",
        el("th", el("code", item["name"]), " ", el("small", item["kind"], cls="chip"), scope="row"),
        el("td", ops or units.NONE, el("div", lines, cls="lines") if lines else None, data_label="Operations"),
        el("td", el("span", units.microseconds(time), cls="number"),
           el("span", el("span", cls="piece graphs", style=width(share)), cls="track"), data_label="Time"),
        el("td", moved, data_label="Bytes", cls="number"),
    )  # fmt: skip
