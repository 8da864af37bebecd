"""T_compile and its parts: the first call with empty caches, and a first call again with those that it filled."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from tsdyn_lint.verify.figures import CompileParts
from tsdyn_lint.verify.measure.rig import Rig, fresh_caches, rig
from tsdyn_lint.verify.measure.schedule import Schedule
from tsdyn_lint.verify.measure.toolchain import warm_up
from tsdyn_lint.verify.measured import Compiling
from tsdyn_lint.verify.probes.subject import Subject
from tsdyn_lint.verify.probes.tap import Tap

NESTED = (
    "dynamo_cumulative_compile_time_us", "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us", "inductor_code_gen_cumulative_compile_time_us", "triton_compile_time_us",
)  # fmt: skip
"""torch's metrics, each part of the one before; the last, its name aside, is the C++ compiler's time on a CPU."""


def probe(subject: Subject) -> Compiling:
    """A throw-away compile first, so that neither pays for the toolchain. Raises Unavailable without one."""
    made = rig(subject)
    warm_up(subject.backend, made.device)
    fresh_caches(subject.folder)
    with made.conditions():
        made.plain()()
        made.renew()
        cold = _first_call(made, subject.backend == "inductor")
        made.renew()
        warm = _first_call(made, listen=False)
    return Compiling(cold, warm)


def _first_call(made: Rig, listen: bool) -> CompileParts:
    """Seconds until the first answer, a step's own time left in: it is what the caller waits for."""
    step = made.step(made.compile())
    schedule = Schedule(made.subject.project)
    _forget_modules()
    with Tap(made.subject.project) as tap, schedule if listen else contextlib.nullcontext():
        begin = time.perf_counter()
        step()
        whole = time.perf_counter() - begin - schedule.seconds
    if listen:
        made.schedule = schedule
    return parts(whole, tap.metrics, schedule.building)


def _forget_modules() -> None:
    """A second compile in the same process finds generated code on disk only, as a new process does."""
    with contextlib.suppress(ImportError, AttributeError):
        from torch._inductor import codecache

        caches: Any = codecache.PyCodeCache
        caches.cache_clear()


def parts(whole: float, metrics: list[dict[str, Any]], building: float = 0.0) -> CompileParts:
    """The parts of all frames' compiles, each less what is nested in it; None where this torch does not tell."""
    sums = [sum((record.get(name) or 0) for record in metrics) / 1e6 for name in NESTED]
    if not any(name in record for record in metrics for name in NESTED):
        return CompileParts(whole)
    sums[-1] = max(sums[-1], building)
    own = [max(outer - inner, 0.0) for outer, inner in zip(sums, [*sums[1:], 0.0], strict=True)]
    return CompileParts(whole, *own)
