"""T_eager and T_compiled, and their ratio."""

from __future__ import annotations

from tsdyn_lint.verify.measure.clock import Step, compared, level, rounds
from tsdyn_lint.verify.measure.rig import Rig, rig
from tsdyn_lint.verify.measured import Speed
from tsdyn_lint.verify.probes.subject import Subject


def probe(subject: Subject) -> Speed:
    """Eager, compiled and eager again in every round, on one instance and equal inputs; the next round has others."""
    made = rig(subject)
    with made.conditions():
        made.settled()
        times = rounds(lambda: _sides(made), made.clock)
    speedup, control = compared(times["eager"], times["compiled"], times["again"])
    eager = level([*times["eager"], *times["again"]])
    return Speed(made.clock_name, eager, level(times["compiled"]), speedup, control)


def _sides(made: Rig) -> dict[str, Step]:
    """Warm, on memory that no earlier round had."""
    compiled = made.laid_out_anew()
    eager, again = made.step(made.instance), made.step(made.instance)
    eager()
    again()
    return {"eager": eager, "compiled": compiled, "again": again}
