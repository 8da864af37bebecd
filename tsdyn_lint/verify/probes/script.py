"""`torch.jit.script`: every error it can be made to tell, then whether the compiled code answers as eager does."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from tsdyn_lint.verify.observe import Fault, Script, ScriptError, Site
from tsdyn_lint.verify.probes.agreement import Result, agreement, attempt, never
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.dynamo import uncompiled
from tsdyn_lint.verify.probes.masks import Masks
from tsdyn_lint.verify.probes.places import Project, fault
from tsdyn_lint.verify.probes.subject import Subject, quiet

HALF_DONE = "Can't redefine method"
"""What a class says that failed to compile once: the error of that time is listed already."""
RETRIES, RETRY_SECONDS = 16, 6.0


def probe(subject: Subject) -> Script:
    """Compile the whole; where that fails, each submodule alone, then the whole with failed statements masked."""
    if missing := lacking("script"):
        return Script(False, unavailable=missing)
    function = uncompiled(subject.fresh())
    compiled, error = compile_script(function, subject.project)
    if error is not None:
        errors, complete = _all_errors(subject, function, error)
        return Script(False, errors, complete)
    with unoptimised():
        answers = agreement(subject).answers(compiled, never)
    return Script(True, (), True, answers, _run_error(compiled, subject) if _any(answers, "raises") else None)


def unoptimised() -> contextlib.AbstractContextManager[Any]:
    """TorchScript without its optimiser, which rewrites the code on the second call: time that no answer needs."""
    switch: Any = getattr(torch.jit, "optimized_execution", None)
    return switch(False) if switch is not None else contextlib.nullcontext()


def compile_script(function: Any, project: Project) -> tuple[Any, Fault | None]:
    """The scripted module or function, or what was raised. The message's first frame is the site."""
    try:
        with quiet():
            return torch.jit.script(function), None
    except Exception as error:
        return None, fault(error, project, first=True)


def _any(answers: Any, outcome: str) -> bool:
    return any(answer.outcome == outcome for answer in answers)


def _run_error(compiled: Callable[..., Any], subject: Subject) -> Fault | None:
    """Where the compiled code fails: TorchScript's traceback is in the message, innermost last."""
    for call in agreement(subject).calls:
        result: Result = attempt(compiled, call, 0)
        if not result[0]:
            return fault(result[1], subject.project)
    return None


def _all_errors(subject: Subject, function: Any, first: Fault) -> tuple[tuple[ScriptError, ...], bool]:
    found: dict[tuple[Any, str], ScriptError] = {}

    def add(error: Fault, how: str) -> None:
        if HALF_DONE in error.message:
            return
        found.setdefault((error.site, error.message.splitlines()[0] if error.message else ""), ScriptError(error, how))

    add(first, "whole")
    deadline = time.monotonic() + RETRY_SECONDS
    if isinstance(function, torch.nn.Module):
        for error in _leaf_errors(function, subject.project, deadline):
            add(error, "leaf")
    masked, complete = _masked_errors(subject, first, deadline)
    for error in masked:
        add(error, "masked")
    return tuple(found.values()), complete


def _leaf_errors(model: torch.nn.Module, project: Project, deadline: float) -> list[Fault]:
    """Each of the project's submodule classes alone, deepest first: a child's error hides its parent's."""
    errors, tried = [], set()
    named = sorted(model.named_modules(), key=lambda pair: -pair[0].count(".") if pair[0] else 1)
    for _, child in named:
        kind = type(child)
        if kind in tried or child is model or time.monotonic() > deadline or not _is_own(kind, project):
            continue
        tried.add(kind)
        _, error = compile_script(child, project)
        if error is not None:
            errors.append(error)
    return errors


def _is_own(kind: type, project: Project) -> bool:
    try:
        return project.has(inspect.getsourcefile(kind) or "")
    except (TypeError, OSError):
        return False


def _masked_errors(subject: Subject, first: Fault, deadline: float) -> tuple[list[Fault], bool]:
    """Errors told after the statements of earlier ones were replaced; and whether the last try compiled."""
    errors: list[Fault] = []
    with Masks(subject.project) as masks:
        site = first.site or _blamed(subject, first, deadline)
        if first.site is None and site is not None:
            errors.append(replace(first, site=site))
        if site is None or not masks.mask(site):
            return errors, False
        for _ in range(RETRIES):
            if time.monotonic() > deadline:
                return errors, False
            try:
                function = masks.apply(uncompiled(subject.fresh()))
            except Exception:  # the masked file does not run: what it would have told is unknown
                return errors, False
            _, error = compile_script(function, masks.project)
            if error is None:
                return errors, True
            error = masks.original(error)
            errors.append(error)
            if error.site is None or not masks.mask(error.site):
                return errors, False
    return errors, False


def _blamed(subject: Subject, error: Fault, deadline: float) -> Site | None:
    """The statement without which an error that names no line of the project goes away."""
    function = uncompiled(subject.fresh())
    for site in _statements(function, subject.project):
        if time.monotonic() > deadline:
            return None
        with Masks(subject.project) as masks:
            if not masks.mask(site):
                continue
            with contextlib.suppress(Exception):
                _, other = compile_script(masks.apply(uncompiled(subject.fresh())), masks.project)
                if other is None or (other.type, other.message) != (error.type, error.message):
                    return site
    return None


def _statements(function: Any, project: Project) -> Iterator[Site]:
    """Every row of the methods that may be compiled: of the classes in use, or of the function itself."""
    kinds = {type(child) for child in function.modules()} if isinstance(function, torch.nn.Module) else set()
    methods = [method for kind in kinds for name, method in vars(kind).items() if name != "__init__"]
    for method in methods or [function]:
        if not inspect.isfunction(method) or not project.has(method.__code__.co_filename):
            continue
        for row in sorted({row for _, _, row in method.__code__.co_lines() if row} - {method.__code__.co_firstlineno}):
            yield Site(method.__code__.co_filename, row, method.__name__)
