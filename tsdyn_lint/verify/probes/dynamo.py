"""Dynamo: every graph break of one call, with a backend that changes nothing."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo

from tsdyn_lint.verify.observe import Answer, Break, Dynamo, Graph, Site
from tsdyn_lint.verify.probes.agreement import Result, agreement, detached
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.places import Project, fault, frames_in
from tsdyn_lint.verify.probes.subject import Subject, invoke
from tsdyn_lint.verify.probes.tap import Tap

SWITCHES: dict[str, dict[str, Any]] = {
    "capture_scalar_outputs": {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True},
    "reorderable_logging_functions": {"reorderable_logging_functions": {print, warnings.warn}},
}
"""Settings of torch that lift some kinds of break."""


class Graphs:
    """A backend that runs the graph as it is, and keeps what it was made of."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.captured: list[Graph] = []

    @property
    def count(self) -> int:
        return len(self.captured)

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any], **_: Any) -> Callable[..., Any]:
        self.captured.append(self._described(graph))
        forward: Callable[..., Any] = graph.forward
        return forward

    def _described(self, graph: torch.fx.GraphModule) -> Graph:
        """A node's stack is text, outermost frame first: the calls that led to it are lines of the graph too.

        What is checkpointed, or a branch of `torch.cond`, is a graph inside of the graph.
        """
        rows: dict[str, set[int]] = {}
        inside = [module.graph for module in graph.modules() if isinstance(module, torch.fx.GraphModule)]
        for text in {node.stack_trace for one in inside for node in _calls(one) if node.stack_trace}:
            for site in frames_in(text):
                if self._project.has(site.filename):
                    rows.setdefault(site.filename, set()).add(site.row)
        return Graph(len(_calls(graph.graph)), {name: sorted(found) for name, found in rows.items()})


def _calls(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    return [node for node in graph.nodes if node.op.startswith("call")]


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under a `torch.compile` decorator, so that it is not compiled twice."""
    original: Callable[..., Any] = getattr(function, "_torchdynamo_orig_callable", function)
    return original


@contextlib.contextmanager
def clean() -> Iterator[None]:
    """Dynamo with empty caches and counters, before and after.

    Each compile ends with flushing the processor's caches to time the new guards: some 50 ms, of no use here.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    guards: Any = torch._dynamo.guards
    timing = getattr(guards, "profile_guard_manager", None)
    try:
        if timing is not None:
            guards.profile_guard_manager = lambda *args: 0.0
        yield
    finally:
        if timing is not None:
            guards.profile_guard_manager = timing
        torch._dynamo.reset()


def probe(subject: Subject) -> Dynamo:
    """Breaks of the example call; whether its answers are eager's; which switches lift which break."""
    if missing := lacking("dynamo"):
        return Dynamo(False, unavailable=missing)
    eager = agreement(subject)
    answers: tuple[Answer, ...] = ()
    graphs = Graphs(subject.project)
    with clean():
        tap, first, compiled = compile_once(subject, graphs)
        captured = tuple(graphs.captured)
        error = None if first[0] else fault(first[1], subject.project)
        if error is None:
            answers = eager.repeated(compiled, first)
    breaks = distinct(tap.breaks, subject.project)
    lifted = {name: _lifted(subject, breaks, config) for name, config in SWITCHES.items()} if breaks else {}
    return Dynamo(
        error is None, len(captured), sum(graph.ops for graph in captured), breaks, tap.skipped(), error, answers,
        {name: sites for name, sites in lifted.items() if sites}, captured,
    )  # fmt: skip


def compile_once(subject: Subject, backend: Graphs) -> tuple[Tap, Result, Callable[..., Any]]:
    """Compile and call a fresh instance: what was said, what came of the call, and the compiled thing."""
    with Tap(subject.project) as tap:
        compiled = torch.compile(uncompiled(subject.fresh()), backend=backend, fullgraph=subject.fullgraph)
        try:
            result = True, detached(invoke(compiled, subject.example))
        except Exception as raised:
            return tap, (False, raised), compiled
    return tap, result, compiled


def distinct(breaks: list[Break], project: Project) -> tuple[Break, ...]:
    """Each break once: a callee that is compiled on its own tells the same ones again.

    While a break runs, Python below it is compiled too (`logging` alone makes dozens of frames): what breaks in
    there is the consequence of the project's line, which is listed already.
    """
    found: dict[tuple[Any, ...], Break] = {}
    sites: set[Site] = set()
    for item in breaks:
        key = (item.site, item.gb, item.reason if item.gb is None else "")
        inside = bool(item.stack) and not project.has(item.stack[-1].filename)
        if inside and item.site in sites:
            continue
        if item.site is not None:
            sites.add(item.site)
        if key not in found or (item.frame_skipped and not found[key].frame_skipped):
            found[key] = item
    return tuple(found.values())


def _lifted(subject: Subject, breaks: tuple[Break, ...], config: dict[str, Any]) -> list[Site]:
    """Sites that no longer break with that setting, unless it makes the compile fail."""
    known = {name: value for name, value in config.items() if hasattr(torch._dynamo.config, name)}
    if not known:
        return []
    with clean(), torch._dynamo.config.patch(known):
        tap, (ok, _), _ = compile_once(subject, Graphs(subject.project))
    if not ok:
        return []
    left = {item.site for item in tap.breaks}
    return sorted({b.site for b in breaks if b.site and b.site not in left}, key=lambda s: (s.filename, s.row))
