"""The parts of a training step: forward with gradients on, and what loss and backward take besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tsdyn_lint.verify.figures import Pair, TrainStep
from tsdyn_lint.verify.measure.clock import per_call
from tsdyn_lint.verify.measure.memory import peak_mb
from tsdyn_lint.verify.measure.rig import Rig, bound, rig, settle
from tsdyn_lint.verify.probes.subject import Subject


def probe(subject: Subject) -> TrainStep | None:
    """None for a target that is not trained."""
    made = rig(subject)
    if not made.training:
        return None
    with made.conditions():
        eager = _parts(made, made.instance)
        compiled = made.compile()
        settle(made.step(compiled))
        fast = _parts(made, compiled)
    return TrainStep(*(Pair(a, b) for a, b in zip(eager, fast, strict=True)))


def _parts(made: Rig, function: Callable[..., Any]) -> tuple[float, float, float | None]:
    step, forward = made.step(function), bound(function, made.subject.example)
    whole, first = per_call(step, made.clock), per_call(forward, made.clock)
    return first, max(whole - first, 0.0), peak_mb(step, made.device)
