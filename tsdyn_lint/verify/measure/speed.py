"""T_eager and T_compiled, and their ratio."""

from __future__ import annotations

from tsdyn_lint.verify.measure.clock import compared, level, rounds
from tsdyn_lint.verify.measure.rig import rig
from tsdyn_lint.verify.measured import Speed
from tsdyn_lint.verify.probes.subject import Subject


def probe(subject: Subject) -> Speed:
    """Eager, compiled and eager again in every round, on one instance and equal inputs."""
    made = rig(subject)
    with made.conditions():
        compiled = made.settled()
        steps = {"eager": made.step(made.instance), "compiled": compiled, "again": made.step(made.instance)}
        times = rounds(steps, made.clock)
    speedup, control = compared(times["eager"], times["compiled"], times["again"])
    eager = level([*times["eager"], *times["again"]])
    return Speed(made.clock_name, eager, level(times["compiled"]), speedup, control)
