"""Where a call's time goes, and what many calls cost: bars and a curve, drawn here as plain markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.markup import Html, el

_WIDTH, _HEIGHT = 400.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 12.0, 14.0, 36.0
_POINTS = 80
_LABEL = 84.0
"""Room for `N* = 116 529`."""


def breakdown(measure: Mapping[str, Any]) -> Html | None:
    """A bar for eager and one for compiled on one scale, the latter split into guards, graphs and the rest."""
    eager, compiled = measure["t_eager_us"], measure["t_compiled_us"]
    if not eager or not compiled:
        return None
    parts = {
        name: measure[f"t_{term}_us"] for name, term in (("guards", "guard"), ("graphs", "graph"), ("rest", "rest"))
    }
    return _bars({"eager": (eager, {"eager": eager}), "compiled": (compiled, parts)}, units.microseconds, ["eager"])


def compiling(measure: Mapping[str, Any]) -> Html | None:
    """A bar for a compile with cold caches and one with warm ones, split into what torch does one after the other."""
    bars = {}
    for caches, parts in (measure.get("compile_parts_s") or {}).items():
        bars[caches] = (parts["whole"], {name: value for name, value in parts.items() if name != "whole"})
    return _bars(bars, units.seconds) if bars else None


Bars = Mapping[str, tuple[float, Mapping[str, "float | None"]]]
"""Label -> the whole, and its parts by name."""


def _bars(bars: Bars, written: Callable[[float | None], str], unkeyed: Sequence[str] = ()) -> Html:
    longest = max(max(whole, sum(value or 0 for value in parts.values())) for whole, parts in bars.values())
    rows = []
    for label, (whole, parts) in bars.items():
        pieces = [
            el("span", cls=f"piece {name}", style=width(value / longest), title=f"{name} {written(value)}")
            for name, value in parts.items()
            if value
        ]
        number = el("span", written(whole), cls="number")
        rows.append(el("div", el("span", label, cls="label"), el("span", pieces, cls="track"), number, cls="bar"))
    values: dict[str, list[str]] = {}
    for _, parts in bars.values():
        for name, value in parts.items():
            if value is not None and name not in unkeyed:
                values.setdefault(name, []).append(written(value))
    key = [el("li", el("span", cls=f"swatch {name}"), f" {name} {', '.join(told)}") for name, told in values.items()]
    return el("div", rows, el("ul", key, cls="key"), cls="breakdown")


def width(share: float) -> str:
    """A length of a bar as a style."""
    return f"width:{100 * share:.2f}%"


def curve(measure: Mapping[str, Any]) -> Html | None:
    """Seconds spent after so many calls, both axes logarithmic: eager against compiled with cold and warm caches."""
    eager, compiled = measure["t_eager_us"], measure["t_compiled_us"]
    compiles = {kind: (measure["t_compile_s"] or {}).get(kind) for kind in ("cold", "warm")}
    if not eager or not compiled or compiles["cold"] is None:
        return None
    per_call = {"eager": eager * 1e-6, "compiled": compiled * 1e-6}
    marks = {kind: n for kind, n in (measure["break_even_calls"] or {}).items() if n}
    powers = _powers(per_call["eager"], compiles["cold"], marks)
    axes = _Axes(powers, per_call["eager"], compiles, per_call["compiled"])
    lines = [axes.line("eager", lambda n: n * per_call["eager"])]
    for kind, once in compiles.items():
        if once is not None:
            lines.append(axes.line(kind, lambda n, once=once: once + n * per_call["compiled"]))  # type: ignore[misc]
    dots = [part for kind, n in marks.items() for part in axes.mark(kind, n, n * per_call["eager"])]
    told = ", ".join(f"{units.count(n)} calls with {kind} caches" for kind, n in marks.items())
    label = f"Cost over calls; compiling pays after {told}" if told else "Cost over calls; compiling never pays"
    return el(
        "svg", list(axes.grid()), lines, dots, cls="curve", role="img", aria_label=label,
        viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}",
    )  # fmt: skip


def _powers(eager: float, compile_cold: float, marks: Mapping[str, float]) -> int:
    """The power of ten at which the curve ends: well past the last break-even, or past what a compile costs."""
    last = max([*marks.values(), compile_cold / eager])
    return min(max(math.ceil(math.log10(max(last, 1) * 8)), 3), 12)


class _Axes:
    """Calls from 1 to 10**powers to the right, seconds upwards."""

    def __init__(self, powers: int, eager: float, compiles: Mapping[str, float | None], compiled: float) -> None:
        self.powers = powers
        most = 10.0**powers * max(eager, compiled) + max(once or 0 for once in compiles.values())
        self.low = math.floor(math.log10(eager))
        self.high = max(math.ceil(math.log10(most)), self.low + 1)

    def x(self, calls: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log10(calls) / self.powers

    def y(self, seconds: float) -> float:
        share = (math.log10(seconds) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(max(share, 0.0), 1.0)

    def line(self, kind: str, cost: Callable[[float], float]) -> Html:
        calls = [10 ** (self.powers * step / _POINTS) for step in range(_POINTS + 1)]
        points = " ".join(f"{self.x(n):.1f},{self.y(cost(n)):.1f}" for n in calls)
        return el("polyline", points=points, cls=f"line {kind}")

    def mark(self, kind: str, calls: float, seconds: float) -> Iterator[Html]:
        x, y = self.x(calls), self.y(seconds)
        yield el("line", x1=x, x2=x, y1=y, y2=_HEIGHT - _BOTTOM, cls="drop")
        yield el("circle", cx=x, cy=y, r=4, cls=f"dot {kind}")
        left = kind == "cold" and x - _LEFT > _LABEL or _WIDTH - x < _LABEL
        place = {"x": x + (-8 if left else 8), "y": y + (-8 if left else 16), "text_anchor": "end" if left else "start"}
        yield el("text", f"N* = {units.count(calls)}", cls="nstar", **place)

    def grid(self) -> Iterator[Html]:
        bottom = _HEIGHT - _BOTTOM
        for power in range(self.low, self.high + 1, max(math.ceil((self.high - self.low) / 6), 1)):
            y = self.y(10.0**power)
            yield el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, cls="grid")
            yield el("text", _seconds(power), x=_LEFT - 6, y=y, dy="0.32em", text_anchor="end", cls="tick")
        for power in range(0, self.powers + 1, max(math.ceil(self.powers / 7), 1)):
            x = self.x(10.0**power)
            yield el("line", x1=x, x2=x, y1=_TOP, y2=bottom, cls="grid")
            yield el("text", _calls(power), x=x, y=bottom + 14, text_anchor="middle", cls="tick")
        yield el("text", "calls", x=_WIDTH - _RIGHT, y=_HEIGHT - 6, text_anchor="end", cls="axis")


def _seconds(power: int) -> str:
    """`10 ms`: a power of ten."""
    unit, base = next(((unit, base) for unit, base in (("s", 0), ("ms", -3), ("µs", -6)) if power >= base), ("ns", -9))
    return f"{units.count(10.0 ** (power - base))} {unit}"


def _calls(power: int) -> str:
    """Thousands in words that fit below an axis."""
    prefix = ("", "k", "M", "G", "T")[power // 3]
    return f"{10 ** (power % 3)}{prefix}"
