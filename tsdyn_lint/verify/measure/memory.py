"""The most memory that a call holds at a time, beyond what was there before it."""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from tsdyn_lint.verify.figures import Pair
from tsdyn_lint.verify.measure.clock import Step
from tsdyn_lint.verify.measure.rig import rig
from tsdyn_lint.verify.measured import Memory
from tsdyn_lint.verify.probes.subject import Subject

MEGABYTE = 1 << 20


def probe(subject: Subject) -> Memory:
    """Eager and compiled."""
    made = rig(subject)
    with made.conditions():
        return Memory(
            Pair(peak_mb(made.step(made.instance), made.device), peak_mb(made.settled(), made.device)),
        )


def peak_mb(step: Step, device: str) -> float | None:
    """Of one call of a warm step, by the allocator: what the process holds otherwise does not count."""
    step()
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return float(torch.cuda.max_memory_allocated() - before) / MEGABYTE
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    changes = sorted(_changes(recorded))
    held = peak = 0
    for _, size in changes:
        held += size
        peak = max(peak, held)
    return peak / MEGABYTE if changes else None


def _changes(recorded: Any) -> list[tuple[int, int]]:
    """When and by how many bytes the CPU's allocations grew or shrank."""
    results: Any = recorded.profiler.kineto_results
    return [(event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]"]
