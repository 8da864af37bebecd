"""TorchScript as a road to run without Python: the saved file, its load time, scripted and traced calls."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from tsdyn_lint.verify.figures import TorchScript
from tsdyn_lint.verify.measure.clock import FEWEST_ROUNDS, rounds
from tsdyn_lint.verify.measure.rig import Rig, bound, rig
from tsdyn_lint.verify.measure.toolchain import Unavailable
from tsdyn_lint.verify.probes.available import lacking
from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import Subject, quiet
from tsdyn_lint.verify.probes.trace import adapted, traced


def probe(subject: Subject) -> TorchScript:
    """Both captures in the same rounds; the file is the scripted module's, else the traced one's."""
    made = rig(subject)
    scripted, why = _captured("script", lambda: torch.jit.script(made.instance))
    trace, other = _captured("trace", lambda: traced(made.instance, subject.example.copy()))
    if scripted is None and trace is None:
        raise Unavailable(f"script: {why}; trace: {other}")
    steps = {}
    with made.conditions():
        if scripted is not None:
            steps["script"] = bound(scripted, subject.example)
        if trace is not None:
            steps["trace"] = bound(adapted(trace, made.instance), subject.example)
        times = {name: statistics.median(found) for name, found in rounds(steps, made.clock, FEWEST_ROUNDS).items()}
    size, load = _saved(scripted if scripted is not None else trace, made)
    return TorchScript(size, load, times.get("script"), times.get("trace"))


def _captured(capture: str, make: Callable[[], Any]) -> tuple[Any, str]:
    if missing := lacking(capture):
        return None, missing
    try:
        with quiet():
            return make(), ""
    except Exception as error:
        return None, shorten(f"{type(error).__name__}: {error}", 200)


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
