"""Modules -> events of kind `script`: what `torch.jit.script` refuses in them, or compiles to something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from tsdyn_lint.findings import Confidence, Engine, Finding
from tsdyn_lint.infer.captures import captures
from tsdyn_lint.infer.entries import Entry, entries
from tsdyn_lint.infer.events import Event, Step, Use
from tsdyn_lint.parse import ParseFailure
from tsdyn_lint.resolve import Module, Program
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.script import types
from tsdyn_lint.script.annotations import is_interface
from tsdyn_lint.script.compiler import Compiler
from tsdyn_lint.script.data import load
from tsdyn_lint.script.messages import words
from tsdyn_lint.script.problems import LIKELY, Problem
from tsdyn_lint.torchdata.load import load as load_torch

_SCRIPT = frozenset({Engine.SCRIPT})


def script_events(
    program: Program,
    version: tuple[int, int],
    fail: Callable[[Module, str, Exception], None],
) -> list[Event]:
    """One event a problem. An internal error costs its entry point and is told to `fail`."""
    data, torch = load(version), load_torch(version)
    try:
        return [_event(p) for module in program.linted for p in _problems(Compiler(program, data, torch), module, fail)]
    finally:
        data.forget()
        types.forget()


def _problems(compiler: Compiler, module: Module, fail: Callable[[Module, str, Exception], None]) -> Iterable[Problem]:
    """What TorchScript refuses of the code that the entry points of one file reach, by what that file itself makes."""
    try:
        starts = [e for e in entries(compiler.program, module) if Engine.SCRIPT in e.engines and not _declares(e)]
    except ParseFailure:  # told when the file was walked
        return ()
    for entry in starts:
        if entry.cls is not None:
            with suppress(Exception):  # met again, and told, when the entry is checked
                compiler.builder.entry(entry.cls, entry.made)
    scripts = "jit.script" in module.tree.text
    scripted = {c.name for c in captures(module) if Engine.SCRIPT in c.engines} if scripts else set()
    for entry in starts:
        compiler.entry = entry.name
        compiler.stack.clear()
        compiler.called = entry.function.name in scripted or (entry.cls is not None and entry.cls.name in scripted)
        compiler.least = entry.confidence
        try:
            if entry.cls is not None:
                compiler.check_class(entry.cls, entry.made)
            else:
                compiler.check_function(entry.function)
        except Exception as error:
            fail(module, entry.name, error)
    settled = compiler.settled()
    for scope in compiler.builder.closures:
        scope.clear()
    return settled


def _declares(entry: Entry) -> bool:
    """Whether an entry point has no body that could run."""
    return entry.cls is not None and is_interface(entry.cls)


def _event(problem: Problem) -> Event:
    return Event(
        "script",
        problem.node,
        problem.function,
        tuple(Step(caller, node) for caller, node in problem.stack),
        problem.entry,
        {**problem.facts, "cause": problem.cause, "problem": words(problem.cause, problem.facts)},
        [Use("again", node, function) for node, function in problem.again.items()],
        confidence=problem.confidence,
        engines=_SCRIPT,
    )


def reconcile(walked: Iterable[Finding], scripted: Sequence[Finding], rulebook: RuleBook) -> list[Finding]:
    """The walk's findings and the compiler's as one: a construct that a rule for several captures names keeps that
    rule's code, and it names script just where the compiler reaches the line and refuses it.

    A refusal that is only possible adds nothing to what is likelier, as in `judge.merge`.
    """
    refused: dict[tuple[str, int], list[str | None]] = {}
    for f in scripted:
        if f.confidence is not Confidence.POSSIBLE:
            for row in range(f.start.row, f.end.row + 1):
                refused.setdefault((f.filename, row), []).append(f.entry)
    named: set[tuple[str, int]] = set()
    result: list[Finding] = []
    for finding in walked:
        if Engine.SCRIPT not in rulebook[finding.code].engines:
            left = tuple(e for e in finding.engines if e is not Engine.SCRIPT)
            if left:
                result.append(replace(finding, engines=left))
            continue
        engines = set(finding.engines) - _SCRIPT
        rows = {(finding.filename, row) for row in range(finding.start.row, finding.end.row + 1)}
        by: list[str | None] = []
        if not rows.isdisjoint(refused) and finding.confidence is not Confidence.POSSIBLE:
            named |= rows
            engines |= _SCRIPT
            by = [entry for row in sorted(rows & refused.keys()) for entry in refused[row]]
        if engines:
            also = tuple(filter(None, by[:1])) if finding.entry not in by else ()
            result.append(replace(finding, engines=tuple(e for e in Engine if e in engines), also=also))
    result += [f for f in scripted if (f.filename, f.start.row) not in named]
    return result


__all__ = ["LIKELY", "reconcile", "script_events"]
