"""Recompiles: which guards fail over a sweep of calls, and where those guards were made."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
import torch._dynamo

from tsdyn_lint.verify.observe import Answer, Recompile, Recompiles, Site
from tsdyn_lint.verify.probes.agreement import Result, answer, attempt, taken
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.dynamo import Graphs, clean, uncompiled
from tsdyn_lint.verify.probes.places import Project, fault, frames_in
from tsdyn_lint.verify.probes.subject import Call, Subject
from tsdyn_lint.verify.probes.tap import Tap

REASON = re.compile(r"^\s*(?:- )?\d+/\d+: (?P<guard>.*)$", re.DOTALL)
SOURCE = re.compile(r"(?P<guard>.*?)\s+# (?P<code>.*?)\s+# (?P<file>\S+?):(?P<row>\d+) in (?P<function>\S+)", re.DOTALL)
LIMITS = ("recompile_limit", "cache_size_limit")


def probe(subject: Subject) -> Recompiles:
    """Call one compiled instance through the sweep; the first call compiles, the others should not."""
    if missing := lacking("dynamo"):
        return Recompiles(False, unavailable=missing)
    labels: list[str] = []
    recompiles: list[Recompile] = []
    after: list[int] = []
    hits, error = 0, None
    graphs = Graphs(subject.project)
    answers: list[Answer] = []
    calls, eager = swept(subject)
    with clean(), contextlib.ExitStack() as stack, Tap(subject.project) as tap:
        compiled = used(subject, graphs, stack)
        for index, (call, want) in enumerate(zip(calls, eager, strict=True)):
            before = len(tap.recompiles), len(_mine(tap, subject.project)), graphs.count
            got = attempt(compiled, call, index)
            answers.append(answer(call, want, got))
            if not got[0]:
                if not labels:
                    error = fault(got[1], subject.project)
                    break
                continue
            files = {record["co_filename"] for record in _mine(tap, subject.project)}
            labels.append(call.label)
            after.append(graphs.count)
            recompiles += _parsed(tap, before[0], call.label, files)
            compiled_now = len(_mine(tap, subject.project)) > before[1] or graphs.count > before[2]
            hits += len(labels) > 1 and not compiled_now
        limit = limit_hit(tap)
    return Recompiles(error is None, tuple(labels), tuple(recompiles), tuple(after), hits, tuple(answers), limit, error)


def used(subject: Subject, graphs: Graphs, stack: contextlib.ExitStack) -> Callable[..., Any]:
    """The subject compiled; as it is, where it compiles parts of its own, whose instances fail each other's guards."""
    function: Callable[..., Any] = uncompiled(subject.fresh())
    parts = list(function.modules())[1:] if isinstance(function, torch.nn.Module) else []
    if any(map(_is_compiled, parts)):
        with contextlib.suppress(TypeError, AttributeError):  # this torch cannot have its backends replaced
            stack.enter_context(torch.compiler.set_stance("default", force_backend=graphs))
            return function
    compiled: Callable[..., Any] = torch.compile(function, backend=graphs)
    return compiled


def _is_compiled(module: torch.nn.Module) -> bool:
    forward = inspect.getattr_static(type(module), "forward")  # a scripted module's cannot be asked for by its class
    decorated = hasattr(forward, "_torchdynamo_orig_callable")
    return decorated or isinstance(module, torch._dynamo.OptimizedModule) or module._compiled_call_impl is not None


def swept(subject: Subject) -> tuple[tuple[Call, ...], list[Result]]:
    """The example and the calls of the sweep that eager takes, with its results: the others say nothing of guards."""
    return taken(subject, (subject.example, *subject.sweep))


def _mine(tap: Tap, project: Project) -> list[dict[str, Any]]:
    return [record for record in tap.metrics if project.has(record.get("co_filename") or "")]


def limit_hit(tap: Tap) -> bool:
    """Whether Dynamo gave up on a frame because it had compiled it too often."""
    counters = torch._dynamo.utils.counters
    text = " ".join([*map(str, counters.get("unimplemented", {})), *tap.errors, *(b.reason for b in tap.breaks)])
    return any(name in text for name in LIMITS)


def _parsed(tap: Tap, first: int, label: str, files: Iterable[str]) -> list[Recompile]:
    """Torch lists why each cached graph did not fit; the first is the newest one's."""
    found = []
    for record, place in tap.recompiles[first:]:
        try:
            data = json.loads(record) if isinstance(record, str) else record
        except ValueError:
            data = record
        reasons = data if isinstance(data, list) else [data]
        if reasons:
            metrics = tap.metrics[place] if place < len(tap.metrics) else {}
            name = metrics.get("co_filename") or ""
            frame = Site(name, metrics.get("co_firstlineno") or 0, metrics.get("co_name") or "") if name else None
            found.append(replace(parse_reason(str(reasons[0]), label, tap.project, files), frame=frame))
    return found


def parse_reason(text: str, label: str, project: Project, files: Iterable[str] = ()) -> Recompile:
    """`0/0: n == 4  # if n > 3:  # b.py:9 in forward` as guard and site; a size mismatch names no line.

    The path before the row may be cut off at its front: a stack below it has the whole, else one of `files` fits.
    """
    outer = REASON.match(text)
    body = (outer["guard"] if outer else text).strip()
    guard, _, stack = body.partition("User stack trace:")
    site = project.last(frames_in(stack))
    source = SOURCE.match(guard)
    if source is not None and site is None:
        name = next((file for file in files if file.endswith(source["file"])), source["file"])
        site = Site(name, int(source["row"]), source["function"])
    plain = source["guard"] if source is not None else next(iter(guard.splitlines()), "")
    return Recompile(label, plain.strip(), site if site and project.has(site.filename) else None)
