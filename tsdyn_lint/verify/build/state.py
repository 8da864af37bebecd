"""Module-level state of the project, kept and put back, so that one probe's counters do not reach the next."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from tsdyn_lint.verify.probes.places import Project

PLAIN = (int, float, str, bool, bytes, type(None))
CONTAINERS = (list, dict, set)


def keeper(project: Project) -> Callable[[], None]:
    """Remember plain values and containers of the project's modules and classes now; call the result to restore."""
    kept = [(owner, name, value, _copied(value)) for owner, name, value in _state(project)]

    def restore() -> None:
        for owner, name, value, original in kept:
            if isinstance(value, CONTAINERS):
                _refill(value, original)
            elif owner is None or vars(owner).get(name) is value:
                continue
            if owner is not None:
                setattr(owner, name, value)

    return restore


def _state(project: Project) -> Iterator[tuple[Any, str, Any]]:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and project.has(getattr(module, "__file__", None) or ""):
            yield from _of(module, module.__name__, classes=True)


def _of(owner: Any, module: str, classes: bool) -> Iterator[tuple[Any, str, Any]]:
    for name, value in list(vars(owner).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, (*PLAIN, *CONTAINERS)):
            yield owner, name, value
        elif isinstance(value, FunctionType) and value.__module__ == module:
            for default in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
                if isinstance(default, CONTAINERS):
                    yield None, name, default
        elif classes and isinstance(value, type) and value.__module__ == module:
            yield from _of(value, module, classes=False)


def _copied(value: Any) -> Any:
    try:
        return copy.copy(value) if isinstance(value, CONTAINERS) else value
    except Exception:  # a container class of its own kind may refuse
        return value


def _refill(value: Any, original: Any) -> None:
    if value == original if not _has_tensors(original) else len(value) == len(original):
        return
    if isinstance(value, list):
        value[:] = original
    else:
        value.clear()
        value.update(original)


def _has_tensors(container: Any) -> bool:
    values = container.values() if isinstance(container, dict) else container
    return any(hasattr(value, "shape") for value in values)
