"""All there is to say of one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.captures import captures, place
from tsdyn_lint.report.page.code import listing
from tsdyn_lint.report.page.cost import breakdown, compiling, curve
from tsdyn_lint.report.page.guards import guards
from tsdyn_lint.report.page.kernels import kernels
from tsdyn_lint.report.page.markup import Child, Html, el
from tsdyn_lint.report.page.summary import coverage, title
from tsdyn_lint.report.page.tables import lifted, missing, pairs, roads, sweep
from tsdyn_lint.report.run import Run

Target = Mapping[str, Any]


def section(run: Run, index: int, target: Target) -> Html:
    """Its parts in the order in which they are asked for; a part without figures is left out."""
    return el(
        "section",
        el("h2", title(target)), _about(target), _failure(target), _budget(run, target), _tiles(target), _route(target),
        [el("div", el("h3", head), part, cls="part") for head, part in _parts(run, target) if part],
        id=f"t{index}",
    )  # fmt: skip


def _parts(run: Run, target: Target) -> Iterator[tuple[str, Html | None]]:
    yield "Captures", captures(run, target)
    yield "Source, by graph", listing(run, target)
    measure, route = target["measure"], target["route"]
    if measure:
        yield "Where a call’s time goes", breakdown(measure)
        yield "Eager and compiled", pairs(measure)
        yield "Cost over calls", _cost(measure)
        yield "Where a compile’s time goes, cold and warm caches", compiling(measure)
        yield "Kernels", kernels(run, measure["kernels"])
        yield "What breaks cost", lifted(run, measure)
        yield "Other sizes", sweep(measure)
    yield "Guards", guards(run, target)
    if route:
        yield "Which road to take", roads(route)
    if measure:
        yield "Not measured", missing(measure)


def _about(target: Target) -> Html:
    facts: list[Child] = []
    if target["inputs"]:
        made = "on made-up inputs " if target["synthesised"] else "on "
        facts.append(el("span", made, _codes(target["inputs"])))
    if target["kwargs"]:
        facts.append(el("span", "built with ", _codes(f"{key}={value}" for key, value in target["kwargs"].items())))
    if target["lines_reached"] is not None:
        facts.append(el("span", f"{units.share(target['lines_reached'])} of its lines reached"))
    if target["torch"]:
        facts.append(el("span", f"torch {target['torch']}, {target['device']}"))
    return el("p", facts, cls="about")


def _codes(values: Any) -> list[Child]:
    parts: list[Child] = []
    for value in values:
        parts += [el("code", value), " "]
    return parts[:-1]


def _failure(target: Target) -> Html | None:
    failure = target["failure"]
    if not failure:
        return None
    toml = el("pre", failure["toml"]) if failure.get("toml") else None
    return el("div", el("b", f"Not run ({failure['kind']}). "), failure["message"], toml, cls="note bad")


def _budget(run: Run, target: Target) -> Html | None:
    broken, unknown = target["budget"]["broken"], target["budget"].get("unknown")
    told = [el("li", *place(run, item), item["message"]) for item in broken]
    if unknown:
        told.append(el("li", f"not checked, figures that could not be had: {', '.join(unknown)}"))
    if not told:
        return None
    head = el("b", "Budget broken" if broken else "Budget")
    return el("div", head, el("ul", told), cls="note bad" if broken else "note")


def _route(target: Target) -> Html | None:
    route = target["route"]
    if not route:
        return None
    return el(
        "div", el("b", f"Route: {route['advice']}"), el("ul", [el("li", why) for why in route["why"]]), cls="note"
    )


def _tiles(target: Target) -> Html | None:
    tiles = [
        el("div", el("dt", name), el("dd", value, el("small", extra) if extra else None))
        for name, value, extra in _figures(target)
    ]
    return el("dl", tiles, cls="tiles") if tiles else None


def _figures(target: Target) -> Iterator[tuple[str, Child, str]]:
    dynamo, measure = target["dynamo"], target["measure"]
    if dynamo and dynamo["ok"]:
        yield "Graphs", dynamo["graphs"], units.plural(dynamo["ops"], "op")
        yield "Breaks", len(dynamo["breaks"]), ""
        yield "Recompiles", len(dynamo["recompiles"]), ""
    if not measure:
        return
    if (share := coverage(target)) is not None:
        yield "Coverage", share, "of a call in graphs"
    if (ratio := measure["speedup"]) and ratio["value"] is not None:
        interval = f"{ratio['low']:.2f} to {ratio['high']:.2f}"
        if ratio.get("resolved") is False:
            yield "Speedup", units.NONE, f"not resolvable, {interval}"
        else:
            yield "Speedup", f"{ratio['value']:.2f}×", interval
    launches = measure["launches"]
    if launches and launches["compiled"] is not None:
        eager = f"{units.count(launches['eager'])} eager" if launches["eager"] is not None else ""
        yield "Launches", units.count(launches["compiled"]), eager
    compiles = measure["t_compile_s"]
    if compiles and compiles["cold"] is not None:
        warm = f"{units.seconds(compiles['warm'])} warm" if compiles["warm"] is not None else ""
        yield "Compile", units.seconds(compiles["cold"]), warm


def _cost(measure: Mapping[str, Any]) -> Html | None:
    drawn = curve(measure)
    if drawn is None:
        return None
    lines = [
        el("li", el("span", cls=f"swatch {kind}"), " ", label)
        for kind, label in (("eager", "eager"), ("cold", "compiled, cold caches"), ("warm", "compiled, warm caches"))
    ]
    return el("div", drawn, el("div", el("ul", lines, cls="key"), el("p", _pays(measure))), cls="cost")


def _pays(measure: Mapping[str, Any]) -> str:
    calls = measure["break_even_calls"] or {}
    benefit = measure.get("benefit_s")
    told = []
    if calls.get("cold") is not None:
        told.append(f"Compiling pays past N* = {units.count(calls['cold'])} calls")
        if calls.get("warm") is not None:
            told.append(f"with warm caches past {units.count(calls['warm'])}")
    else:
        told.append("Compiling does not pay, however many calls: no gain per call is resolved")
    if benefit and benefit.get("cold") is not None:
        verb = "saves" if benefit["cold"] >= 0 else "costs"
        told.append(f"over {units.count(benefit['calls'])} calls it {verb} {units.seconds(abs(benefit['cold']))}")
    return "; ".join(told) + "."
