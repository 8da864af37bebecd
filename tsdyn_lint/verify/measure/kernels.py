"""The kernels of the compiled call: what they fused, their time and bytes, launches before and after, the saving."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tsdyn_lint.verify.figures import Kernel, Pair, Saving
from tsdyn_lint.verify.measure.calls import COSTLESS, Profiled, is_view, profiled, typical
from tsdyn_lint.verify.measure.gpu import launch_us
from tsdyn_lint.verify.measure.rig import Rig, rig
from tsdyn_lint.verify.measure.schedule import EXTERNAL, Scheduled
from tsdyn_lint.verify.measure.toolchain import Unavailable
from tsdyn_lint.verify.measured import Kernels
from tsdyn_lint.verify.probes.subject import Subject

CALLED = {"bias_addmm": "addmm"}
"""External kernels whose operator has another name."""


def probe(subject: Subject) -> Kernels:
    """Static facts are those of the cold compile; times come from profiles of settled calls."""
    made = rig(subject)
    with made.conditions():
        eager_step = made.step(made.instance)
        eager = profiled(eager_step, made.device)
        moved = Traffic()
        with moved:
            eager_step()
        compiled = profiled(made.settled(), made.device)
    if made.schedule and made.schedule.unread:
        raise Unavailable(f"Inductor's schedule could not be read: {made.schedule.unread}")
    scheduled = made.schedule.kernels if made.schedule else []
    kernels = tuple(_timed(scheduled, compiled, made))
    sizes = [kernel.bytes for kernel in kernels]
    total = sum(size for size in sizes if size is not None) if kernels and None not in sizes else None
    launch = None
    if made.device == "cuda":
        launch = max(eager.launches - compiled.launches, 0.0) * launch_us()
    return Kernels(
        kernels, Pair(eager.launches, compiled.launches), Pair(moved.bytes, total),
        Saving(eager.busy_us - compiled.busy_us, launch),
    )  # fmt: skip


def _timed(scheduled: list[Scheduled], compiled: Profiled, made: Rig) -> list[Kernel]:
    """The schedule's entries with the times of the profile: of those of one name, the n-th has the n-th of a call."""
    names = [operator(entry.name) if entry.kind == EXTERNAL else entry.name for entry in scheduled]
    on_gpu, counts, seen, kernels = made.device == "cuda", Counter(names), Counter[str](), []
    for name, entry in zip(names, scheduled, strict=True):
        times = (compiled.operators if entry.kind == EXTERNAL else compiled.kernels).get(name, [])
        own = times[seen[name] :: counts[name]] if len(times) % counts[name] == 0 else times
        seen[name] += 1
        time = typical(own, on_gpu) if own else None
        gbps = entry.bytes / time / 1e3 if time and entry.bytes and on_gpu else None
        kernels.append(Kernel(entry.name, entry.ops, time, entry.bytes, entry.kind, entry.lines, entry.graph, gbps))
    return kernels


def operator(name: str) -> str:
    """`aten::addmm` for `extern_kernels.addmm`, `aten::bmm` for `torch.ops.aten.bmm.default`."""
    parts = name.removeprefix("torch.ops.").split(".")
    if parts[0] == "extern_kernels":
        return f"aten::{CALLED.get(parts[1], parts[1])}"
    return "::".join(parts[:2]) if len(parts) > 1 else name


class Traffic(TorchDispatchMode):  # type: ignore[misc]
    """The bytes of all tensors that eager's operators take and give: more than moves, since caches are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not is_view(func) and func._schema.name.partition("::")[2] not in COSTLESS:
            for leaf in pytree.tree_leaves((args, kwargs, result)):
                if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
                    self.bytes += leaf.numel() * leaf.element_size()
        return result
