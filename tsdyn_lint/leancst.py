"""Imports libcst with node classes that are made, and whose nodes are made and looked up, more cheaply.

Each of its 170 frozen dataclasses is given a `repr`, a comparison and a guard against assignment in generated code:
the first two are thrown away, as nodes have others, and the third has each field of a new node set by a call. Without
them the import takes 60 percent of the time, a parse 90. Nodes do what they did, but can be assigned to.
"""

from __future__ import annotations

import dataclasses
import sys
from importlib import import_module
from typing import Any


def load() -> None:
    """Imports libcst so, if nobody has imported it yet."""
    if "libcst" in sys.modules:
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
        import_module("libcst")
    finally:
        dataclasses.dataclass = plain
