"""TorchScript as a road to run without Python: the saved file, its load time, scripted and traced calls."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from tsdyn_lint.verify.figures import TorchScript
from tsdyn_lint.verify.measure.clock import FEWEST_ROUNDS, Step, level, rounds
from tsdyn_lint.verify.measure.rig import Rig, bound, rig
from tsdyn_lint.verify.measure.toolchain import Unavailable
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import Call, Subject, quiet
from tsdyn_lint.verify.probes.trace import as_traced, traced


def probe(subject: Subject) -> TorchScript:
    """Both captures in the same rounds, those that run; the file is the scripted module's, else the traced one's."""
    made = rig(subject)
    with made.conditions():
        call = as_traced(made.instance, subject.example)
        captures = {
            "script": _captured("script", lambda: torch.jit.script(made.instance), subject.example),
            "trace": _captured("trace", lambda: traced(made.instance, subject.example.copy()), call),
        }
        works = {name: found for name, found in captures.items() if not isinstance(found, str)}
        if not works:
            raise Unavailable("; ".join(f"{name}: {why}" for name, why in captures.items()))
        times = rounds(lambda: {name: step for name, (_, step) in works.items()}, made.clock, FEWEST_ROUNDS)
    size, load = _saved(next(iter(works.values()))[0], made)
    spent = {name: level(found) for name, found in times.items()}
    return TorchScript(size, load, spent.get("script"), spent.get("trace"))


def _captured(capture: str, make: Callable[[], Any], call: Call) -> tuple[Any, Step] | str:
    """The module and its call, which has run; or why there is none."""
    if missing := lacking(capture):
        return missing
    try:
        module = make()
        step = bound(module, call)
        step()
    except Exception as error:
        return shorten(f"{type(error).__name__}: {error}", 200)
    return module, step


def _saved(captured: Any, made: Rig) -> tuple[float, float]:
    """Megabytes of the file, and seconds to load it."""
    descriptor, name = tempfile.mkstemp(suffix=".pt", dir=made.subject.folder)
    os.close(descriptor)
    try:
        with quiet():
            torch.jit.save(captured, name)
            size = os.path.getsize(name)
            begin = time.perf_counter()
            torch.jit.load(name, map_location=made.device)
            return size / (1 << 20), time.perf_counter() - begin
    finally:
        os.unlink(name)
