"""Calls of other sizes on one compiled instance: the graph is reused, compiled again, or no graph any more."""

from __future__ import annotations

from tsdyn_lint.verify.figures import Swept
from tsdyn_lint.verify.measure.clock import per_call
from tsdyn_lint.verify.measure.rig import frames_compiled, rig, settle
from tsdyn_lint.verify.measured import Sweep
from tsdyn_lint.verify.probes.recompile import limit_hit, swept
from tsdyn_lint.verify.probes.subject import Subject
from tsdyn_lint.verify.probes.tap import Tap

MOST = 4


def probe(subject: Subject) -> Sweep | None:
    """Only for inputs that are said to vary, by a named size or second inputs: a compile for each costs its time."""
    if not subject.about.get("varies"):
        return None
    made = rig(subject)
    calls = [call for call in swept(subject)[0][1:] if call.sized][:MOST]
    found = []
    with made.conditions(), Tap(subject.project) as tap:
        compiled = made.compile()
        settle(made.step(compiled))
        for call in calls:
            before = frames_compiled()
            step = made.step(compiled, call)
            step()
            how = "recompiled" if frames_compiled() > before else "reused"
            settle(step)
            if limit_hit(tap):
                how = "eager"
            eager = per_call(made.step(made.instance, call), made.clock)
            found.append(Swept(call.label, how, eager, per_call(step, made.clock)))
    return Sweep(tuple(found))
