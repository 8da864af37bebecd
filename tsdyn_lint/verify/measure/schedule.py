"""Listens to Inductor while it compiles: which kernels it made of which operators, and the bytes they move.

Hooks: where a backend of code generation names a kernel (it is told the scheduler's nodes), and where a graph is done,
since only then every node of its schedule is final; before both, where a pattern of the graph is replaced. Graphs that
come from the caches pass by none.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tsdyn_lint.verify.figures import Line
from tsdyn_lint.verify.probes.places import Project, frames_in, shorten

FUSED, EXTERNAL = "fused", "external"
PATTERN = "tsdyn_lint_pattern"
"""Where a node keeps the stacks of those that it replaced."""
BACKENDS = (
    ("torch._inductor.codegen.cpp", "CppScheduling"),
    ("torch._inductor.codegen.triton", "TritonScheduling"),
)


@dataclass(frozen=True)
class Scheduled:
    """A kernel of the schedule. `ops` are the operators as the model called them, before they were taken apart."""

    name: str
    kind: str
    ops: tuple[str, ...]
    lines: tuple[Line, ...]
    bytes: int | None
    graph: int


@dataclass
class Schedule:
    """Context manager around compiles; afterwards `kernels` holds one entry a launch, in order."""

    project: Project
    kernels: list[Scheduled] = field(default_factory=list)
    graphs: int = 0
    seconds: float = 0.0
    """What listening took: no part of what a compile costs."""
    unread: str = ""
    """Why a graph's schedule could not be read."""
    building: float = 0.0
    """Seconds in the C++ compiler where the compiling thread itself runs it: torch counts those as code generation."""

    def __enter__(self) -> Schedule:
        from torch._inductor.graph import GraphLowering

        self._named: list[tuple[str, list[Any]]] = []
        self._compiles: dict[str, int] = {}
        self._hooks = contextlib.ExitStack()
        for module, name in BACKENDS:
            with contextlib.suppress(ImportError):
                kind = getattr(importlib.import_module(module), name, None)
                if kind is not None and hasattr(kind, "define_kernel"):
                    self._replace(kind, "define_kernel", self._on_kernel)
        self._replace(GraphLowering, "compile_to_module", self._on_graph)
        with contextlib.suppress(ImportError, AttributeError):
            from torch._inductor.cpp_builder import CppBuilder

            self._replace(CppBuilder, "build", self._on_build)
        with contextlib.suppress(ImportError, AttributeError):
            from torch._inductor.pattern_matcher import ReplacementPatternEntry

            self._replace(ReplacementPatternEntry, "replace_with_graph", self._on_pattern)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._hooks.close()

    def _replace(self, owner: Any, name: str, hook: Any) -> None:
        original, stored = getattr(owner, name), vars(owner)[name]

        def wrapper(this: Any, *args: Any, **kwargs: Any) -> Any:
            return hook(original, this, *args, **kwargs)

        setattr(owner, name, staticmethod(wrapper) if isinstance(stored, staticmethod) else wrapper)
        self._hooks.callback(setattr, owner, name, stored)

    def _on_kernel(self, original: Any, this: Any, source: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        name = original(this, source, nodes, *args, **kwargs)
        self._named.append((str(name), list(nodes)))
        return name

    def _on_build(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            self.building += time.perf_counter() - begin

    def _on_pattern(self, original: Any, match: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        """What replaces a pattern (attention written out, by the library's) comes from the lines of the pattern."""
        before = set(graph.nodes)
        traces = [node.stack_trace for node in match.nodes if node.stack_trace]
        result = original(match, graph, *args, **kwargs)
        for node in set(graph.nodes) - before:
            node.meta[PATTERN] = traces
        return result

    def _on_graph(self, original: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        self._named = []
        module = original(graph, *args, **kwargs)
        begin = time.perf_counter()
        try:
            self._note(graph)
        except Exception as error:  # another torch's schedule is no reason to fail the user's compile
            self.unread = shorten(f"{type(error).__name__}: {error}", 300)
        self.seconds += time.perf_counter() - begin
        return module

    def _note(self, graph: Any) -> None:
        index = self._compiles.setdefault(_compile_id(self.graphs), len(self._compiles))
        self.graphs += 1
        owner = {_name(leaf): number for number, (_, nodes) in enumerate(self._named) for leaf in _leaves(nodes)}
        rows: dict[Any, tuple[str, str, list[Any]]] = {}  # in the schedule's order; one kernel may hold several nodes
        for node in graph.scheduler.nodes:
            number = next((owner[_name(leaf)] for leaf in _leaves([node]) if _name(leaf) in owner), None)
            if number is not None:
                rows.setdefault(number, (self._named[number][0], FUSED, []))[2].append(node)
            elif _is_external(node):
                rows[node] = (_external_name(node), EXTERNAL, [node])
        credited = {_call(_own(nodes[0])) for _, kind, nodes in rows.values() if kind == EXTERNAL}
        for name, kind, nodes in rows.values():
            if kind == EXTERNAL:
                own = [_own(nodes[0])]
            else:
                origins = _origins(nodes)
                own = [origin for origin in origins if _call(origin) not in credited]
                credited.update(map(_call, own))
                own = own or origins
            self._add(name, kind, nodes, [origin for origin in own if origin is not None], index)

    def _add(self, name: str, kind: str, nodes: list[Any], origins: list[Any], graph: int) -> None:
        """An operator is listed by the first kernel that has it: later ones may just read what it gave.

        A kernel that has nothing of its own (a copy into the layout a convolution wants) lists what it serves.
        """
        calls = {_call(origin): origin for origin in origins}
        computing = [origin for origin in calls.values() if not getattr(origin.target, "is_view", False)]
        lines = {
            Line(site.filename, site.row)
            for origin in computing or origins
            for trace in _traces(origin)
            if (site := self.project.last(frames_in(trace)))
        }
        self.kernels.append(
            Scheduled(
                name, kind, tuple(map(_operator, computing or calls.values())),
                tuple(sorted(lines, key=lambda line: (line.filename, line.row))), _bytes(nodes), graph,
            )
        )  # fmt: skip


def _compile_id(fallback: int) -> str:
    """Dynamo's name for the graph that is being compiled: its backward, compiled later, has the same."""
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return str(found) if found is not None else f"graph {fallback}"


def _leaves(nodes: Iterable[Any]) -> Iterator[Any]:
    """The scheduler's single nodes below fused ones; what else stands in a kernel's list are marks."""
    for node in nodes:
        if not hasattr(node, "get_nodes"):
            continue
        inner = list(node.get_nodes())
        if inner == [node]:
            yield node
        else:
            yield from _leaves(inner)


def _name(node: Any) -> str:
    return str(node.get_name())


def _is_external(node: Any) -> bool:
    """Whether a library does it. One of several results of such a call is a node too, and runs nothing."""
    external = hasattr(node, "is_extern") and node.is_extern()
    return bool(external and type(node.node).__name__ != "MultiOutput")


def _own(node: Any) -> Any:
    """The call of the graph that an external node stands for; None where it does not say."""
    ir = node.node
    if getattr(ir, "origin_node", None) is not None:
        return ir.origin_node
    origins = _origins([node])
    wanted = getattr(ir, "op_overload", None)
    return next((origin for origin in origins if origin.target == wanted), origins[-1] if origins else None)


def _external_name(node: Any) -> str:
    ir = node.node
    return str(getattr(ir, "python_kernel_name", None) or getattr(ir, "op_overload", None) or type(ir).__name__)


def _origins(nodes: Iterable[Any]) -> list[Any]:
    """The calls of the graph that went into the nodes, in the graph's order."""
    found: dict[Any, None] = {}
    for leaf in _leaves(nodes):
        ir = leaf.node
        if ir is None:
            continue
        origins = ir.get_origins() if hasattr(ir, "get_origins") else ir.origins
        found.update(dict.fromkeys(origin for origin in origins if origin.op == "call_function"))
    place = {node: index for node in list(found)[:1] for index, node in enumerate(node.graph.nodes)}
    return sorted(found, key=lambda origin: place.get(origin, 0))


def _call(origin: Any) -> tuple[str, str]:
    """What tells one call of the model from another: the parts that an operator was taken apart into are one."""
    if origin is None:
        return ("", "")
    stack = origin.meta.get("source_fn_stack") or origin.meta.get("fwd_source_fn_stack") or ()
    return (_operator(origin), str(stack[-1][0]) if stack else origin.name)


def _traces(origin: Any) -> list[str]:
    """The stacks of a call of the graph, outermost frame first: one, or those of the pattern it came to stand for."""
    own = getattr(origin, "stack_trace", None)
    return [str(own)] if own else list(origin.meta.get(PATTERN, ()))


def _operator(origin: Any) -> str:
    """`aten.add`, the overload left out."""
    target = origin.meta.get("original_aten") or origin.target
    packet = getattr(target, "overloadpacket", target)
    return str(packet).removeprefix("torch.ops.")


def _bytes(nodes: Iterable[Any]) -> int | None:
    """What the scheduler reckons that the nodes read and write; None where it cannot."""
    try:
        return int(sum(node.get_read_write_buffers_sizes() for node in nodes))
    except Exception:
        return None
