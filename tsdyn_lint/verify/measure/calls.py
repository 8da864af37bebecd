"""One call under the profiler: the operators it runs, the kernels of compiled code, and launches on a GPU."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tsdyn_lint.verify.measure.clock import Step

MOST, FEWEST, SECONDS = 11, 3, 1.0
"""How many calls are profiled: as many as take about that long."""
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "hipLaunchKernel", "hipExtLaunchKernel")
NO_KERNELS = ("Memcpy", "Memset", "## Call", "Torch-Compiled Region", "ProfilerStep")
"""What else a profile lists for the device: copies, and the ranges in which the host was."""
COSTLESS = frozenset(
    "empty empty_like empty_strided new_empty new_empty_strided resize_ set_ detach detach_ _unsafe_view "
    "_reshape_alias lift_fresh item _local_scalar_dense is_nonzero resolve_conj resolve_neg _nested_tensor_size".split()
)
"""Operators that compute nothing, views aside, which tell themselves."""
COMPUTES, COMPOSITE, EITHER, FREE = "computes", "composite", "either", "free"
"""An operator with a kernel; one made of others (what is no operator too); by overload; a view or an allocation."""


@dataclass
class Profiled:
    """What some calls did, a call. `operators`: name -> microseconds of each, in order; `kernels` likewise."""

    operators: dict[str, list[float]] = field(default_factory=dict)
    kernels: dict[str, list[float]] = field(default_factory=dict)
    launches: float = 0.0
    busy_us: float = 0.0
    """Time in operators and kernels: on a GPU the device's own."""

    @property
    def done(self) -> int:
        """How many operators and kernels are listed."""
        return sum(map(len, (*self.operators.values(), *self.kernels.values())))


def profiled(step: Step, device: str) -> Profiled:
    """Profile a step that is warm. On a GPU kernels are the device's, and launches what the runtime was asked."""
    on_gpu = device == "cuda"
    begin = time.perf_counter()
    step()
    repeats = max(FEWEST, min(MOST, int(SECONDS / max(time.perf_counter() - begin, 1e-6))))
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    with named_kernels(), profile(activities=activities) as recorded:
        for _ in range(repeats):
            step()
        if on_gpu:
            torch.cuda.synchronize()
    events = list(recorded.events() or ())
    found = Profiled()
    for event in events:
        if event.device_type == DeviceType.CPU and event.cpu_parent is None:
            _walk(event, found, on_gpu)
    timed = (*found.operators.values(), *found.kernels.values())
    if on_gpu:
        _device_kernels(events, found)
        timed = tuple(found.kernels.values())
    else:
        found.launches = sum(map(len, timed))
    found.launches /= repeats
    found.busy_us = sum(_a_call(times, repeats, on_gpu) for times in timed)
    return found


def _a_call(times: list[float], repeats: int, on_gpu: bool) -> float:
    """What all runs of one name take in a call."""
    each, rest = divmod(len(times), repeats)
    if rest:
        return sum(times) / repeats
    return sum(typical(times[place::each], on_gpu) for place in range(each))


def typical(times: list[float], on_gpu: bool) -> float:
    """Of one kernel over some calls. On a CPU the profiler reads the wall, of which only the least is the kernel's."""
    return statistics.median(times) if on_gpu else min(times)


def _device_kernels(events: list[Any], found: Profiled) -> None:
    for event in events:
        if event.device_type == DeviceType.CUDA:
            if not (event.name.startswith(NO_KERNELS) or getattr(event, "is_user_annotation", False)):
                found.kernels.setdefault(event.name, []).append(event.time_range.elapsed_us())
        elif event.name.startswith(LAUNCHES):
            found.launches += 1


def _walk(event: Any, found: Profiled, on_gpu: bool) -> None:
    """Operators as the dispatcher runs them: one that is made of others is those. On a GPU, by its kernels' time."""
    name = event.name
    if name.startswith(KERNEL_MARK):
        found.kernels.setdefault(name.removeprefix(KERNEL_MARK), []).append(event.time_range.elapsed_us())
        return
    kind = kind_of(name)
    if kind == FREE:
        return
    before = found.done
    if kind != COMPUTES:
        for child in event.cpu_children:
            _walk(child, found, on_gpu)
    if kind == COMPUTES or (kind == EITHER and found.done == before):
        spent = event.device_time_total if on_gpu else event.time_range.elapsed_us()
        found.operators.setdefault(name, []).append(spent)


@cache
def kind_of(name: str) -> str:
    """What an event's name stands for. Composite operators that may copy (`reshape`, `to`) are views by their schema.

    Events do not tell overloads apart: `max` of two tensors is made of `maximum`, `max` along a dimension computes.
    """
    space, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, space), operator, None) if operator.isidentifier() else None
    key: Any = torch._C.DispatchKey.CompositeImplicitAutograd
    composite, views = [], []
    for each in packet.overloads() if packet is not None else ():
        with contextlib.suppress(AttributeError, RuntimeError):  # TorchScript has overloads that the dispatcher lacks
            overload = getattr(packet, each)
            composite.append(overload.has_kernel_for_dispatch_key(key))
            views.append(is_view(overload))
    if operator in COSTLESS or (views and all(views) and not any(composite)):
        return FREE
    if all(composite) or all(views):
        return COMPOSITE
    return EITHER if any(composite) else COMPUTES


def is_view(overload: Any) -> bool:
    """Whether it moves no data, those among them that change a tensor's own shape."""
    return bool(overload.is_view or torch.Tag.inplace_view in overload.tags)


KERNEL_MARK = "kernel "


@contextlib.contextmanager
def named_kernels() -> Iterator[None]:
    """Let the C++ kernels that Inductor has loaded show in a profile: on a CPU nothing else tells them apart.

    Compiling anew with torch's own switch for that would be another build, of other code.
    """
    replaced = []
    for module in _modules():
        for name, kernel in list(vars(module).items()):
            if name.startswith("cpp_") and callable(kernel):
                replaced.append((module, name, kernel))
                setattr(module, name, _recorded(name, kernel))
    try:
        yield
    finally:
        for module, name, kernel in replaced:
            setattr(module, name, kernel)


def _modules() -> list[ModuleType]:
    from torch._inductor import codecache

    loaded: Any = getattr(codecache.PyCodeCache, "modules", ())
    return [module for module in (loaded.values() if isinstance(loaded, dict) else loaded) if module is not None]


def _recorded(name: str, kernel: Any) -> Any:
    mark: Any = torch._C._profiler._RecordFunctionFast

    def run(*args: Any) -> Any:
        with mark(KERNEL_MARK + name):
            return kernel(*args)

    return run
