"""T_graph: a backend around the real one that times each call of what that compiled. Coverage is its share."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tsdyn_lint.verify.measure.clock import fitting, repeats_for
from tsdyn_lint.verify.measure.rig import Rig, rig
from tsdyn_lint.verify.measured import Graphs
from tsdyn_lint.verify.probes.subject import Subject


class TimedBackend:
    """Compiles with another backend, and adds up what its graphs take: by the wall, by events on a GPU.

    Reading a thread's own clock takes longer than some graphs do; a share of the wall's time is as good.
    """

    def __init__(self, inner: str, device: str) -> None:
        from torch._dynamo.backends.registry import lookup_backend

        self._inner: Callable[..., Any] = lookup_backend(inner)
        self._on_gpu = device == "cuda"
        self._events: list[tuple[Any, Any]] = []
        self._spent = 0
        self._inside = 0
        self.count = 0

    def __call__(self, graph: Any, inputs: Any, **options: Any) -> Callable[..., Any]:
        compiled = self._inner(graph, inputs, **options)
        self.count += 1
        return self.timed(compiled)

    def timed(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The same function on the clock, unless a graph around it is already."""

        def run(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return compiled(*args, **kwargs)
            self._inside += 1
            begin = self._begin()
            try:
                return compiled(*args, **kwargs)
            finally:
                self._end(begin)
                self._inside -= 1

        return run

    def _begin(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter_ns()
        pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        pair[0].record()
        return pair

    def _end(self, begin: Any) -> None:
        if self._on_gpu:
            begin[1].record()
            self._events.append(begin)
        else:
            self._spent += time.perf_counter_ns() - begin

    def take(self) -> float:
        """Microseconds in graphs since this was last asked."""
        if self._events:
            torch.cuda.synchronize()
            self._spent += round(sum(start.elapsed_time(end) for start, end in self._events) * 1e6)
            self._events.clear()
        spent, self._spent = self._spent / 1e3, 0
        return spent


def probe(subject: Subject) -> Graphs:
    """The share of the steps' time that graphs take, backward graphs too."""
    made = rig(subject)
    with made.conditions():
        return measured(made)[0]


def measured(made: Rig) -> tuple[Graphs, list[float]]:
    """The graphs and their share, and microseconds a call, one number a round."""
    backend = TimedBackend(made.subject.backend, made.device)
    with _backward_graphs(backend) if made.training else contextlib.nullcontext():
        step = made.settled(backend)
        repeats, seconds = repeats_for(step, made.clock)
        shares, totals = [], []
        for _ in range(fitting(seconds)):
            backend.take()
            spent, begin = made.clock(), time.perf_counter_ns()
            for _ in range(repeats):
                step()
            spent, wall = made.clock() - spent, time.perf_counter_ns() - begin
            totals.append(spent / repeats / 1e3)
            shares.append(min(backend.take() / (wall / 1e3), 1.0))
    return Graphs(backend.count, statistics.median(shares)), totals


@contextlib.contextmanager
def _backward_graphs(backend: TimedBackend) -> Iterator[None]:
    """Time Inductor's backward graphs as well: autograd calls those, not the function that the backend returned."""
    from torch._inductor import output_code

    kind: Any = output_code.CompiledFxGraph
    original = kind.__call__
    timed = backend.timed(original)

    def call(graph: Any, inputs: Any) -> Any:
        backward = (getattr(graph, "fx_kwargs", None) or {}).get("is_backward")
        return (timed if backward else original)(graph, inputs)

    kind.__call__ = call
    try:
        yield
    finally:
        kind.__call__ = original
