"""Which road to take for training, for serving from Python and for serving without it, by what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tsdyn_lint.verify.figures import Road, Route

COMPILE, SCRIPT, AOT, ONNX, EAGER = (
    "torch.compile", "TorchScript", "torch.export + AOTInductor", "ONNX", "eager",
)  # fmt: skip
DEPRECATED = "TorchScript is deprecated: torch takes no new features into it, and says so when it is used"
SLACK = 1.05
"""Another road is called faster only where it is by more than that."""


def route(target: Mapping[str, Any]) -> Route:
    """Of a target as the JSON report prints it, with `measure` and, where it was tried, `aot`."""
    in_python = compiled(target)
    roads = {
        "training": in_python if target["measure"]["mode"] == "train" else _trained(target, in_python),
        "serving": _serving(target, in_python),
        "python_free": python_free(target),
    }
    main = roads["training" if target["measure"]["mode"] == "train" else "serving"]
    return Route(main.advice, main.why, roads)


def compiled(target: Mapping[str, Any]) -> Road:
    """`torch.compile` or eager, by the speedup, what breaks leave of it, and the calls until it pays."""
    figures, dynamo = target["measure"], target["dynamo"]
    speedup = figures["speedup"]
    if dynamo is not None and not dynamo["ok"]:
        return Road(EAGER, (f"torch.compile raises: {_first(dynamo['error'])}",))
    if dynamo is not None and dynamo["same_input"] is False:
        return Road(EAGER, ("torch.compile answers otherwise than eager",))
    if speedup is None:
        why = figures["unavailable"].get("compiling") or figures["unavailable"].get("speed") or "nothing was measured"
        return Road(EAGER, (next(iter(why.splitlines()), ""),))
    reasons = [_speed(figures), *_breaks(target)]
    if not speedup["resolved"] or speedup["value"] <= 1:
        return Road(EAGER, (*reasons, *_lifted(figures)))
    return Road(COMPILE, (*reasons, *_pays(figures), *_lifted(figures)))


def _speed(figures: Mapping[str, Any]) -> str:
    ratio = figures["speedup"]
    between = f"{ratio['low']:.2f} to {ratio['high']:.2f}"
    if not ratio["resolved"]:
        control = figures["control"]
        noise = f"eager against itself {control['low']:.2f} to {control['high']:.2f}"
        return f"no difference to eager that could be told from noise ({between} times, {noise})"
    word = "faster" if ratio["value"] > 1 else "as fast"
    return f"{ratio['value']:.2f} times {word} ({between}), {figures['coverage'] or 0:.0%} of a call in graphs"


def _breaks(target: Mapping[str, Any]) -> Iterator[str]:
    dynamo = target["dynamo"] or {"breaks": [], "graphs": 0, "recompiles": []}
    if dynamo["breaks"]:
        rows = sorted({item["location"]["row"] for item in dynamo["breaks"] if item["location"]})
        where = f" at line{'s' * (len(rows) != 1)} {', '.join(map(str, rows))}" if rows else ""
        if dynamo["graphs"]:
            yield f"{dynamo['graphs']} graph{'s' * (dynamo['graphs'] != 1)}: it breaks{where}"
        else:
            yield f"nothing is compiled: it breaks{where}"
    if dynamo.get("limit_hit"):
        yield "compiled again for each new value, up to the limit: past it calls run eagerly"


def _pays(figures: Mapping[str, Any]) -> Iterator[str]:
    calls = figures["break_even_calls"]
    if calls["cold"] is not None:
        warm = f", {calls['warm']:,} with warm caches" if calls["warm"] is not None else ""
        yield f"pays after {calls['cold']:,} calls{warm}"
    won = figures["benefit_s"]
    if won is not None and won["cold"] is not None:
        yield f"{won['cold']:+.3g} s over {won['calls']:,} calls"


def _lifted(figures: Mapping[str, Any]) -> Iterator[str]:
    for item in figures["lifted"]:
        if item["gain_us"]:
            yield f"{item['switch']} would save {item['gain_us']:.3g} us a call"


def _trained(target: Mapping[str, Any], in_python: Road) -> Road:
    """What is known of training from a target that was only called forward."""
    if in_python.advice == EAGER:
        return in_python
    return Road(in_python.advice, (*in_python.why, 'by forward calls: mode = "train" measures a whole step'))


def _serving(target: Mapping[str, Any], in_python: Road) -> Road:
    """With Python at hand, and inputs that vary."""
    sweep = [item for item in target["measure"]["sweep"] if item["how"] != "reused"]
    dynamo = target["dynamo"] or {}
    rate = dynamo.get("guard_hit_rate")
    told = [f"{len(sweep)} of {len(target['measure']['sweep'])} other sizes compile again"] if sweep else []
    if rate is not None and rate < 1 and not sweep:
        told.append(f"guards hit {rate:.0%} of calls with other inputs")
    return Road(in_python.advice, (*in_python.why, *told))


def python_free(target: Mapping[str, Any]) -> Road:
    """The package of AOTInductor, ONNX or TorchScript: the first that is right, since the last has no future."""
    offers = list(_offers(target))
    refused = tuple(_refusals(target))
    if not offers:
        return Road(EAGER, (*refused, "nothing here runs without Python"))
    name, time, why = offers[0]
    faster = tuple(
        f"{other} takes {_us(spent)}"
        for other, spent, _ in offers[1:]
        if time is not None and spent is not None and spent * SLACK < time
    )
    return Road(name, (why, *faster, *((DEPRECATED, *refused) if name == SCRIPT else ())))


def _offers(target: Mapping[str, Any]) -> Iterator[tuple[str, float | None, str]]:
    """What works, its time a call where that is known, and the reason in words."""
    aot, export, onnx = target["aot"], target["export"], target["measure"]["onnx"]
    if aot is not None and aot["ok"] and aot["same_input"] is not False:
        yield AOT, aot["t_call_us"], f"its package answers as eager does in {_us(aot['t_call_us'])} a call"
    elif aot is None and export is not None and export["ok"] and export["same_input"] is not False:
        yield AOT, None, "torch.export takes it and answers as eager does; --verify=aot builds and times the package"
    if onnx is not None and onnx["ok"] and onnx["same_input"] is not False:
        yield ONNX, onnx["t_call_us"], f"its program answers as eager does in {_us(onnx['t_call_us'])} a call"
    figures = target["measure"]["torchscript"] or {}
    script, trace = target["script"], target["trace"]
    if script is not None and script["ok"] and False not in (script["same_input"], script["other_inputs"]):
        yield SCRIPT, figures.get("t_script_us"), f"scripted: {_us(figures.get('t_script_us'))} a call{_file(figures)}"
    elif trace is not None and trace["ok"] and trace["same_input"] and trace["other_inputs"]:
        yield SCRIPT, figures.get("t_trace_us"), f"traced, right on other inputs too: {_us(figures.get('t_trace_us'))}"


def _refusals(target: Mapping[str, Any]) -> Iterator[str]:
    aot, export, script, trace = (target[name] for name in ("aot", "export", "script", "trace"))
    if export is not None and not export["ok"] and not export["unavailable"]:
        yield f"torch.export refuses it: {_first(next(iter(export['errors']), None))}"
    elif aot is not None and not aot["ok"]:
        yield f"AOTInductor: {aot['unavailable'] or _first(aot['error'])}"
    onnx = target["measure"]["onnx"]
    if onnx is not None and not onnx["ok"]:
        yield f"ONNX: {onnx['message']}"
    if script is not None and not script["ok"] and not script["unavailable"]:
        yield f"torch.jit.script refuses it: {_first(next(iter(script['errors']), None))}"
    if trace is not None and trace["other_inputs"] is False:
        yield "a trace answers otherwise than eager on other inputs"


def _file(figures: Mapping[str, Any]) -> str:
    size = figures.get("file_mb")
    return f", a file of {size:.3g} MB" if size is not None else ""


def _us(time: float | None) -> str:
    return "an unmeasured time" if time is None else f"{time:,.0f} us"


def _first(error: Mapping[str, Any] | None) -> str:
    if not error:
        return "no reason given"
    row = f" (line {error['location']['row']})" if error.get("location") else ""
    text = next(iter(str(error["message"]).strip().splitlines()), "")
    return (text if len(text) <= 160 else text[:157] + "...") + row
