"""What breaks cost: the same target under each switch of torch that lifts some of them, Inductor and all."""

from __future__ import annotations

from typing import Any

import torch._dynamo

from tsdyn_lint.verify.figures import Lifted, Line, State
from tsdyn_lint.verify.measure.calls import profiled
from tsdyn_lint.verify.measure.clock import interval, level, logarithm
from tsdyn_lint.verify.measure.graphs import measured
from tsdyn_lint.verify.measure.rig import Rig, rig
from tsdyn_lint.verify.measured import Lifts
from tsdyn_lint.verify.observe import Break
from tsdyn_lint.verify.probes import dynamo
from tsdyn_lint.verify.probes.subject import Subject

SWITCHES: dict[str, dict[str, Any]] = {**dynamo.SWITCHES, "nested_graph_breaks": {"nested_graph_breaks": True}}
"""The last keeps the break, and joins what the callers of the function that breaks would be split into."""
LAYOUT = 0.05
"""What two instances differ by, whatever the rounds of each say: all of a state's rounds are of one."""


def probe(subject: Subject) -> Lifts | None:
    """The switch that wins most a call first. What no switch lifts is not listed."""
    found, breaks = _breaks(subject, {})
    if not breaks:
        return None
    made = rig(subject)
    useful = {}
    for name, config in SWITCHES.items():
        known = {key: value for key, value in config.items() if hasattr(torch._dynamo.config, key)}
        if known:
            graphs, left = _breaks(subject, known)
            gone = {item.site for item in breaks} - {item.site for item in left}
            if graphs is not None and found is not None and (gone or graphs < found):
                useful[name] = (known, gone)
    with made.conditions():
        before = state(made, {}) if useful else None
        lifted = []
        for name, (config, gone) in useful.items():
            assert before is not None
            after = state(made, config)
            sites = {Line(site.filename, site.row) for site in gone if site is not None}
            lifted.append(
                Lifted(
                    name, tuple(sorted(sites, key=lambda site: (site.filename, site.row))), before[0], after[0],
                    gain_us(before[1], after[1]),
                )
            )  # fmt: skip
    return Lifts(tuple(sorted(lifted, key=lambda item: -(item.gain_us or 0.0))))


def _breaks(subject: Subject, config: dict[str, Any]) -> tuple[int | None, tuple[Break, ...]]:
    """The graphs and breaks of one call with a backend that changes nothing; None where the capture fails."""
    graphs = dynamo.Graphs(subject.project)
    with dynamo.clean(), torch._dynamo.config.patch(config):
        tap, (ok, _), _ = dynamo.compile_once(subject, graphs)
    return graphs.count if ok else None, dynamo.distinct(tap.breaks, subject.project)


def state(made: Rig, config: dict[str, Any]) -> tuple[State, list[float]]:
    """The target compiled under those settings, and the times that its call took."""
    with torch._dynamo.config.patch(config):
        graphs, times = measured(made)
        launches = profiled(made.settled(made.subject.backend), made.device).launches
    return State(graphs.count, launches, graphs.share, level(times)), times


def gain_us(before: list[float], after: list[float]) -> float | None:
    """What a call gets faster by, None where that could as well be chance."""
    gain = logarithm([(time,) for time in before], after)
    _, low, high = interval(gain, gain.error, min(len(before), len(after)))
    if low * (1 - LAYOUT) <= 1 <= high * (1 + LAYOUT):
        return None
    return level(before) - level(after)
