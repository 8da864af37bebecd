"""The checker's values: a first-class value has a TorchScript type; modules, functions and iterables have none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tsdyn_lint.script import types as t
from tsdyn_lint.script.pyvalues import Py


class _Missing:
    def __repr__(self) -> str:
        return "-"


MISSING = _Missing()


@dataclass(slots=True)
class V:
    """`type` is None for what is no first-class value; then `py` says what it is.

    `const`: the literal, where the compiler sees one. `items`: the values of a tuple or a known-length iterable.
    `elem`: what an iterable of unknown length yields. `word`: `range`, `zip`, `enumerate`, or a builtin's name.
    `error`: (cause, facts) to report when the name is read. `owner`: the receiver of a method. `soft`: rests on
    a default. `origin`: the variable or attribute that it was read from, where that may matter.
    """

    type: t.Type | None = None
    py: Py | None = None
    const: Any = MISSING
    items: list[V] | None = None
    elem: V | None = None
    word: str = ""
    error: tuple[str, dict[str, Any]] | None = None
    owner: V | None = None
    soft: bool = False
    origin: str = ""


UNKNOWN = V(t.UNKNOWN)
REFUSED = V(t.UNKNOWN, word="refused")
"""The value of an expression that was reported: nothing more is said about what is made of it."""


def variable(value: V) -> V:
    """The value once it is stored: the compiler sees no literal in what it loads back, but for None."""
    if value.items is not None:
        value = replace(value, items=[variable(item) for item in value.items])
    return replace(value, const=MISSING) if value.const is not MISSING and value.type is not t.NONE else value
