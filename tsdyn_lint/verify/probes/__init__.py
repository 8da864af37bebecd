"""One module for each thing torch is asked. A probe takes a `Subject` and returns a dataclass of `..observe`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

PROBES = {
    "eager": "eager:probe",
    "dynamo": "dynamo:probe",
    "script": "script:probe",
    "trace": "trace:probe",
    "export": "export:probe",
    "export_strict": "export:probe_strict",
    "draft": "draft:probe",
    "recompile": "recompile:probe",
}
"""Name -> module and function, in the order they run: cheap and telling ones first."""


MEASURES = {
    name: f"..measure.{module}:probe"
    for name, module in {
        "compiling": "compiling", "speed": "speed", "guards": "guards", "graphs": "graphs", "kernels": "kernels",
        "memory": "memory", "training": "training", "torchscript": "torchscript", "sweep": "sweep", "lifts": "lifts",
        "cuda": "gpu", "onnx": "onnx", "aot": "aot",
    }.items()
}  # fmt: skip
"""Those of the measure stage, where the first fills the caches that the others find things in."""


def load(name: str) -> Callable[[Any], Any]:
    """The probe of that name; imports its module, and with it torch."""
    module, _, function = {**PROBES, **MEASURES}[name].partition(":")
    place = module if module.startswith(".") else f".{module}"
    probe: Callable[[Any], Any] = getattr(import_module(place, __name__), function)
    return probe
