"""`torch.jit.trace`: raises, warns, or silently bakes in what the example had."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tsdyn_lint.verify.observe import Site, Trace, Warned
from tsdyn_lint.verify.probes.agreement import agreement, never
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.coverage import Coverage
from tsdyn_lint.verify.probes.dynamo import uncompiled
from tsdyn_lint.verify.probes.places import fault, shorten
from tsdyn_lint.verify.probes.script import unoptimised
from tsdyn_lint.verify.probes.subject import Call, Subject, seed


def probe(subject: Subject) -> Trace:
    """Trace without torch's own check (it compares on the same input only), then compare on other calls."""
    if missing := lacking("trace"):
        return Trace(False, unavailable=missing)
    function = uncompiled(subject.fresh())
    coverage = Coverage(subject.project)
    seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with coverage:
                captured = traced(function, subject.example.copy())
        except Exception as error:
            return Trace(False, fault(error, subject.project), _warned(caught, subject), lines=coverage.lines)
    with unoptimised():
        answers = agreement(subject).answers(adapted(captured, function), never)
    return Trace(True, None, _warned(caught, subject), answers, coverage.lines)


def traced(function: Callable[..., Any], call: Call) -> Callable[..., Any]:
    """The function or module, traced on that call."""
    call = as_traced(function, call)
    tracer: Any = torch.jit.trace
    captured: Callable[..., Any]
    if call.kwargs:
        captured = tracer(function, example_kwarg_inputs=call.kwargs, check_trace=False)
    else:
        captured = tracer(function, call.args, check_trace=False)
    return captured


def adapted(captured: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Calls it as it was traced: keyword arguments turned into positional ones where there are no gaps."""

    def run(*args: Any, **kwargs: Any) -> Any:
        call = as_traced(function, Call(args, kwargs))
        return captured(*call.args, **call.kwargs)

    return run


def as_traced(function: Callable[..., Any], call: Call) -> Call:
    """The same call as a trace takes it: all by position, else all by name."""
    found = positional(function, call)
    return Call((), named(function, found), call.label, call.kind) if found.kwargs else found


def positional(function: Callable[..., Any], call: Call) -> Call:
    """The same call with as many arguments by position as the signature allows; a trace takes no others."""
    signature = _signature(function)
    if signature is None or not call.kwargs:
        return call
    bound = signature.bind(*call.args, **call.kwargs)
    return Call(tuple(bound.args), dict(bound.kwargs), call.label, call.kind)


def named(function: Callable[..., Any], call: Call) -> dict[str, Any]:
    """All arguments by name, for a signature with keyword-only parameters or gaps."""
    signature = _signature(function)
    return dict(signature.bind(*call.args, **call.kwargs).arguments) if signature else dict(call.kwargs)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    target = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def _warned(caught: list[warnings.WarningMessage], subject: Subject) -> tuple[Warned, ...]:
    found: dict[Site, Warned] = {}
    kind: type[Warning] = torch.jit._trace.TracerWarning
    for item in caught:
        if issubclass(item.category, kind) and subject.project.has(item.filename):
            site = Site(item.filename, item.lineno)
            found.setdefault(site, Warned(site, shorten(str(item.message), 400)))
    return tuple(found.values())
