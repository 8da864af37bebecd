"""Imports a target's module as the project itself would, and finds names in it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any


class BuildError(Exception):
    """A target that cannot be built; `toml` is what to write in the configuration so that it can."""

    def __init__(self, message: str, toml: str = "") -> None:
        super().__init__(message)
        self.toml = toml


class NotATarget(Exception):
    """What was found is neither a module class nor a function of tensors: nothing to report."""


def import_file(file: str, root: str, dotted: str) -> ModuleType:
    """The module of a file, by its dotted name from `root`; under a name of its own where that name is taken."""
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        module = importlib.import_module(dotted)
        if os.path.realpath(getattr(module, "__file__", None) or "") == os.path.realpath(file):
            return module
    except ModuleNotFoundError as error:
        if error.name is None or not dotted.startswith(error.name):
            raise
    name = "tsdyn_target_" + dotted.replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BuildError(f"{file}: not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def named(place: str, module: ModuleType) -> Any:
    """What `package.module:name` means; a bare name is looked up in the target's own module."""
    dotted, _, qualname = place.rpartition(":")
    return attribute(importlib.import_module(dotted) if dotted else module, qualname)


def attribute(module: ModuleType, qualname: str) -> Any:
    """A name below a module; raises BuildError where there is none."""
    found: Any = module
    for part in qualname.split("."):
        if not hasattr(found, part):
            raise BuildError(f"{module.__name__} has no {qualname}")
        found = getattr(found, part)
    return found
