"""Imports libcst with node classes that are made, and whose nodes are made, looked up and told apart, more cheaply.

Each of its 170 frozen dataclasses is given a `repr`, a comparison and a guard against assignment in generated code:
the first two are thrown away, as nodes have others, and the third has each field of a new node set by a call. Without
them the import takes 60 percent of the time, a parse 90. Nodes do what they did, but can be assigned to.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta
from collections.abc import Iterator
from importlib import import_module
from typing import Any


class _ByInheritance(ABCMeta):
    """No other class is registered as a node, and to look for one takes `isinstance` two thirds of its time."""

    __instancecheck__ = type.__instancecheck__


def load() -> None:
    """Imports libcst so. If somebody has imported it before, its nodes can be assigned to from now on, no more."""
    if "libcst" in sys.modules:
        for cls in _with_heirs(import_module("libcst").CSTNode):
            for guard in ("__setattr__", "__delattr__"):
                if guard in vars(cls):
                    delattr(cls, guard)
        return
    plain: Any = dataclasses.dataclass

    def lean(cls: Any = None, /, **options: Any) -> Any:
        if cls is None:
            return lambda cls: lean(cls, **options)
        own = vars(cls)
        if cls.__module__.startswith("libcst._nodes.") and "__eq__" in own and "__hash__" in own and "__repr__" in own:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # the same, without a call of a Python function
            options |= {"eq": False, "repr": False, "frozen": False}
        return plain(cls, **options)

    dataclasses.dataclass = lean
    try:
        nodes = import_module("libcst").CSTNode
    finally:
        dataclasses.dataclass = plain
    for cls in _with_heirs(nodes):
        cls.__class__ = _ByInheritance


def _with_heirs(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for heir in cls.__subclasses__():
        yield from _with_heirs(heir)
