"""`draft_export`: all data-dependent failures in one run, where `export` stops at the first."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.export

from tsdyn_lint.verify.observe import Draft, DraftFailure, Site
from tsdyn_lint.verify.probes.dynamo import clean, uncompiled
from tsdyn_lint.verify.probes.export import Wrapped
from tsdyn_lint.verify.probes.places import Project, fault
from tsdyn_lint.verify.probes.subject import Subject, quiet, seed


def draft_export() -> Callable[..., Any] | None:
    """The function, public since 2.9 and private before; None where there is none."""
    for name in ("torch.export", "torch.export._draft_export"):
        try:
            found: Callable[..., Any] | None = getattr(importlib.import_module(name), "draft_export", None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def probe(subject: Subject) -> Draft:
    """It runs with real tensors, and still raises on errors that are not about data."""
    export = draft_export()
    if export is None:
        return Draft(False, unavailable="this torch has no draft_export")
    if subject.exported:
        return Draft(True)
    function = uncompiled(subject.fresh())
    module = function if isinstance(function, torch.nn.Module) else Wrapped(function)
    call = subject.example.copy()
    seed(0)
    try:
        with clean(), quiet():
            program = export(module, call.args, call.kwargs or None)
    except Exception as error:
        return Draft(False, error=fault(error, subject.project))
    report = getattr(program, "_report", None)
    failures = tuple(_failure(item, report, subject.project) for item in getattr(report, "failures", ()))
    return Draft(not failures, failures)


def _failure(item: Any, report: Any, project: Project) -> DraftFailure:
    data = getattr(item, "data", {}) or {}
    names = {**interned(), **getattr(report, "str_to_filename", {})}
    frames = data.get("user_stack") or data.get("stack") or ()
    stack = tuple(
        Site(_name(names, f["filename"]), int(f["line"]), str(f.get("name", "")))
        for f in frames
        if isinstance(f, dict) and "filename" in f and "line" in f
    )
    kind = getattr(item, "failure_type", "")
    return DraftFailure(str(getattr(kind, "name", kind)), str(data.get("expr", "")), project.last(stack))


def interned() -> dict[Any, str]:
    """The numbers that torch's structured log gave to file names in this process.

    A report knows only names first seen during its own run; an earlier probe has usually seen them all.
    """
    table = getattr(getattr(torch._logging, "structured", None), "INTERN_TABLE", None) or {}
    return {number: name for name, number in table.items()}


def _name(names: dict[Any, str], key: Any) -> str:
    return str(names.get(key, key))
