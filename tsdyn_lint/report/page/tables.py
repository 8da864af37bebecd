"""Measured figures in rows: eager beside compiled, what a break costs, other sizes, and what could not be measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import places
from tsdyn_lint.report.page.markup import Child, Html, el
from tsdyn_lint.report.run import Run

Measure = Mapping[str, Any]
_HOW = {"reused": ("good", "same graph"), "recompiled": ("fair", "recompiled"), "eager": ("bad", "runs eagerly")}
_ROADS = {"training": "Training", "serving": "Serving, inputs that vary", "python_free": "Without Python"}


def table(heads: Sequence[str], rows: Sequence[Sequence[Child]], cls: str = "rows") -> Html | None:
    """A table, None without rows; those of class `rows` turn into blocks on a narrow screen."""
    if not rows:
        return None
    top = el("tr", [el("th", head, scope="col") for head in heads])
    body = []
    for first, *rest in rows:
        cells = [el("td", cell, data_label=head) for head, cell in zip(heads[1:], rest, strict=True)]
        body.append(el("tr", el("th", first, scope="row"), cells))
    return el("table", el("thead", top), el("tbody", body), cls=cls)


def pairs(measure: Measure) -> Html | None:
    """Eager and compiled side by side, and what fusing saves."""
    found = table(("", "Eager", "Compiled"), list(_pairs(measure)), "pairs")
    saving = measure.get("saving_us") or {}
    terms = [
        f"{units.microseconds(saving[term])} {words}"
        for term, words in (("device", "in kernels"), ("launch", "in launches"))
        if saving.get(term) is not None
    ]
    return (
        el("div", found, el("p", f"Fusing saves {' and '.join(terms)} a call.") if terms else None) if found else None
    )


def _pairs(measure: Measure) -> Iterator[Sequence[Child]]:
    step, cuda = measure.get("train_step") or {}, measure.get("cuda") or {}
    rows: Sequence[tuple[str, Any, Callable[[float | None], str]]] = (
        ("A step" if step else "A call", {"eager": measure["t_eager_us"], "compiled": measure["t_compiled_us"]},
         units.microseconds),
        ("Forward", step.get("forward_us"), units.microseconds),
        ("Backward", step.get("backward_us"), units.microseconds),
        ("On the device", cuda.get("device_us"), units.microseconds),
        ("With CUDA graphs", {"compiled": cuda.get("cudagraphs_us")}, units.microseconds),
        ("Launches", measure.get("launches"), units.count),
        ("Moved", measure.get("bytes"), units.size),
        ("Peak memory", measure.get("peak_memory_mb"), _megabytes),
    )  # fmt: skip
    for name, pair, written in rows:
        if pair and (pair.get("eager") is not None or pair.get("compiled") is not None):
            yield name, written(pair.get("eager")), written(pair.get("compiled"))


def _megabytes(value: float | None) -> str:
    return units.size(None if value is None else value * 1e6)


def lifted(run: Run, measure: Measure) -> Html | None:
    """Each switch that lifts breaks, and what a call gains by it."""
    rows: list[Sequence[Child]] = []
    for item in measure.get("lifted") or ():
        sites = places(run, item["sites"])
        before, after = item["before"], item["after"]
        gain = item["gain_us"]
        rows.append((
            el("code", item["switch"]), sites or units.NONE,
            el("span", "not resolvable", cls="faint") if gain is None else units.microseconds(gain),
            f"{before['graphs']} → {after['graphs']}",
            f"{units.share(before['coverage'])} → {units.share(after['coverage'])}",
        ))  # fmt: skip
    return table(("With", "Lifts", "Gained a call", "Graphs", "Coverage"), rows)


def sweep(measure: Measure) -> Html | None:
    """Inputs of other sizes on one compiled module."""
    rows: list[Sequence[Child]] = []
    for item in measure.get("sweep") or ():
        kind, words = _HOW.get(item["how"], ("none", item["how"]))
        times = units.microseconds(item["t_eager_us"]), units.microseconds(item["t_compiled_us"])
        rows.append((item["input"], el("span", words, cls=f"state {kind}"), *times))
    return table(("Call", "Compiled", "Eager", "Compiled, a call"), rows)


def roads(route: Mapping[str, Any]) -> Html | None:
    """What to take for each use, and why."""
    found = route.get("roads") or {}
    rows = [
        (_ROADS.get(use, use), found[use]["advice"], el("ul", [el("li", why) for why in found[use]["why"]], cls="why"))
        for use in found
    ]
    return table(("Use", "Take", "Because"), rows, "rows roads")


def missing(measure: Measure) -> Html | None:
    """What gave no figure, and why."""
    found = dict(measure.get("unavailable") or {})
    if skipped := (measure.get("cuda") or {}).get("cudagraphs_skipped"):
        found["CUDA graphs"] = skipped
    items = [el("li", el("b", name), " ", why) for name, why in found.items()]
    return el("ul", items, cls="missing") if items else None
