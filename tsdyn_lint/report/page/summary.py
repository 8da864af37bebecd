"""The first table: a row a target, the figures that decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import state
from tsdyn_lint.report.page.markup import Child, Html, el

Target = Mapping[str, Any]


def summary(targets: Sequence[Target]) -> Html:
    """Columns of which no target has a value are left out."""
    columns = [(head, cell) for head, cell in _COLUMNS if any(cell(target) is not None for target in targets)]
    heads = [el("th", "Target", scope="col"), *(el("th", head, scope="col") for head, _ in columns)]
    rows = [_row(index, target, columns) for index, target in enumerate(targets, 1)]
    table = el("table", el("thead", el("tr", heads)), el("tbody", rows), cls="summary")
    return el("div", table, cls="wide")


def _row(index: int, target: Target, columns: Sequence[tuple[str, Callable[[Target], Child]]]) -> Html:
    name = el("th", el("a", title(target), href=f"#t{index}"), scope="row")
    cells = []
    for head, cell in columns:
        value = cell(target)
        cells.append(el("td", units.NONE if value is None else value, data_label=head))
    return el("tr", name, cells)


def title(target: Target) -> Html:
    """`pkg.model:Gate` with the module set back."""
    module, colon, name = target["target"].rpartition(":")
    return el("span", el("span", module + colon, cls="module") if module else None, el("wbr") if module else None, name)


def speedup(target: Target) -> Child:
    """`1.24×`, or that the noise hides it."""
    found = target["measure"] and target["measure"]["speedup"]
    if not found or found["value"] is None:
        return None
    if found.get("resolved") is False:
        return el("span", "not resolvable", cls="faint")
    return f"{found['value']:.2f}×"


def calls(target: Target) -> Child:
    """N* with cold caches."""
    found = target["measure"] and target["measure"]["break_even_calls"]
    return units.count(found["cold"]) if found and found["cold"] is not None else None


def coverage(target: Target) -> Child:
    found = target["measure"] and target["measure"]["coverage"]
    return None if found is None else units.share(found)


def _capture(name: str) -> Callable[[Target], Child]:
    def cell(target: Target) -> Child:
        if target["failure"] and target[name] is None:
            return el("span", "not run", cls="state none")
        kind, word = state(name, target[name])
        return None if target[name] is None else el("span", word, cls=f"state {kind}")

    return cell


def _graphs(target: Target) -> Child:
    return target["dynamo"]["graphs"] if target["dynamo"] and target["dynamo"]["ok"] else None


def _recompiles(target: Target) -> Child:
    return len(target["dynamo"]["recompiles"]) if target["dynamo"] and target["dynamo"]["ok"] else None


def _budget(target: Target) -> Child:
    broken = target["budget"]["broken"]
    if broken:
        return el("span", f"{len(broken)} broken", cls="state bad")
    if target["budget"].get("unknown"):
        return el("span", "not checked", cls="state none")
    return el("span", "kept", cls="state good") if target["budget"].get("limits") else None


def _route(target: Target) -> Child:
    return target["route"]["advice"] if target["route"] else None


_COLUMNS: Sequence[tuple[str, Callable[[Target], Child]]] = (
    ("torch.compile", _capture("dynamo")), ("Graphs", _graphs), ("Recompiles", _recompiles),
    ("trace", _capture("trace")), ("script", _capture("script")), ("export", _capture("export")),
    ("Coverage", coverage), ("Speedup", speedup), ("N*", calls), ("Route", _route), ("Budget", _budget),
)  # fmt: skip
