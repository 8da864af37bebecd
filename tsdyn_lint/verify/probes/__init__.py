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


def load(name: str) -> Callable[[Any], Any]:
    """The probe of that name; imports its module, and with it torch."""
    module, _, function = PROBES[name].partition(":")
    probe: Callable[[Any], Any] = getattr(import_module(f"{__name__}.{module}"), function)
    return probe
