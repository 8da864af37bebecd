"""`torch.export.export`, non-strict (the default: Python really runs) and strict (through Dynamo)."""

from __future__ import annotations

import contextlib

import torch
import torch.export

from tsdyn_lint.verify.observe import Export
from tsdyn_lint.verify.probes.agreement import agreement
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.coverage import Coverage
from tsdyn_lint.verify.probes.dynamo import clean, uncompiled
from tsdyn_lint.verify.probes.places import fault
from tsdyn_lint.verify.probes.subject import Call, Subject, quiet, seed

GUARD_WORDS = ("Guard failed", "expected input", "Expected input", "to be equal to", "must match", "constraint")


class Wrapped(torch.nn.Module):  # type: ignore[misc]
    """A function as a module, since only modules are exported."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)  # type: ignore[operator]


def as_module(function: object) -> torch.nn.Module:
    """What can be exported of it."""
    return function if isinstance(function, torch.nn.Module) else Wrapped(function)


def probe(subject: Subject) -> Export:
    """The default way. The exported program is then asked the other calls: a value it froze shows there."""
    return _export(subject, strict=False)


def probe_strict(subject: Subject) -> Export:
    """The way through Dynamo, without graph breaks. What it captures is what non-strict does: only errors differ."""
    return _export(subject, strict=True)


def _export(subject: Subject, strict: bool) -> Export:
    if missing := lacking("export_strict" if strict else "export"):
        return Export(False, strict, unavailable=missing)
    function = uncompiled(subject.fresh())
    module = as_module(function)
    call = subject.example.copy()
    coverage = Coverage(subject.project)
    seed(0)
    try:
        with clean(), quiet(), contextlib.nullcontext() if strict else coverage:
            program = torch.export.export(module, call.args, call.kwargs or None, strict=strict)
        runnable = program.module()
    except Exception as error:
        return Export(False, strict, fault(error, subject.project), lines=coverage.lines)
    subject.exported |= not strict
    answers = () if strict else agreement(subject).answers(runnable, is_refusal)
    return Export(True, strict, None, answers, coverage.lines)


def is_refusal(error: Exception, call: Call) -> bool:
    """An input of another size or type that the program's guards turn down is no failure: it was told static."""
    return call.sized or any(word in str(error) for word in GUARD_WORDS)
