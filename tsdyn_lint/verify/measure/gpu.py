"""What only a GPU can tell: the cost of a launch, the bandwidth of a copy, device time, CUDA graphs."""

from __future__ import annotations

import time
from typing import Any

import torch

from tsdyn_lint.verify.figures import Cuda, Pair
from tsdyn_lint.verify.measure.calls import profiled
from tsdyn_lint.verify.measure.clock import per_call
from tsdyn_lint.verify.measure.rig import Rig, rig, settle
from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import Subject

LAUNCHES, COPIES = 1000, 20
COPIED_BYTES = 1 << 30


def probe(subject: Subject) -> Cuda | None:
    """None on a CPU, of which none of this can be said."""
    made = rig(subject)
    if made.device != "cuda":
        return None
    with made.conditions():
        eager = profiled(made.step(made.instance), made.device)
        compiled = profiled(made.settled(), made.device)
        graphed, skipped = _cuda_graphs(made) if subject.backend == "inductor" else (None, None)
    return Cuda(launch_us(), copy_gbps(), Pair(eager.busy_us, compiled.busy_us), graphed, skipped)


def launch_us() -> float:
    """T_launch: what it takes to enqueue one tiny kernel."""
    x = torch.zeros(1, device="cuda")
    for _ in range(LAUNCHES // 10):
        x.add_(1)
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(LAUNCHES):
        x.add_(1)
    spent = time.perf_counter_ns() - begin
    torch.cuda.synchronize()
    return spent / LAUNCHES / 1e3


def copy_gbps() -> float | None:
    """Read and written bytes a second of a large copy: the ceiling that a kernel's bandwidth is held against."""
    free, _ = torch.cuda.mem_get_info()
    size = min(COPIED_BYTES, free // 4)
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    target.copy_(source)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(COPIES):
        target.copy_(source)
    end.record()
    torch.cuda.synchronize()
    seconds = begin.elapsed_time(end) / 1e3 / COPIES
    return 2 * size / seconds / 1e9 if seconds else None


def _cuda_graphs(made: Rig) -> tuple[float | None, str | None]:
    """A call with `mode="reduce-overhead"`, and why torch recorded no CUDA graph, where it says."""
    made.forget()
    counters: Any = torch._dynamo.utils.counters
    compiled = torch.compile(made.instance, mode="reduce-overhead", fullgraph=made.subject.fullgraph)
    inner = made.step(compiled)

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        inner()

    try:
        settle(step)
        spent = per_call(step, made.clock)
    except Exception as error:
        return None, shorten(f"{type(error).__name__}: {error}", 300)
    skips = counters["inductor"].get("cudagraph_skips", 0)
    return spent, (_skip_reason() or f"skipped {skips} times") if skips else None


def _skip_reason() -> str | None:
    for record in torch._dynamo.utils.get_compilation_metrics():
        reason = getattr(record, "cudagraph_skip_reason", None)
        if reason:
            return shorten(str(reason), 300)
    return None
