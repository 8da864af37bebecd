"""How a test of parameters comes out where the caller leaves them to their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from tsdyn_lint.infer.values import Const, Value

_LITERALS = {"None": None, "True": True, "False": False}


def given(parameters: cst.Parameters, positional: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, object]:
    """The constant defaults of parameters for which a call passes something else."""
    ordered = [*parameters.posonly_params, *parameters.params]
    values = dict(zip((p.name.value for p in ordered), positional, strict=False)) | dict(keywords)
    defaults = {
        p.name.value: _LITERALS[p.default.value]
        for p in (*ordered, *parameters.kwonly_params)
        if type(p.default) is cst.Name and p.default.value in _LITERALS
    }
    return {name: default for name, default in defaults.items() if name in values and not _is(values[name], default)}


def _is(value: Value, default: object) -> bool:
    """Whether a value is that default all the same, handed on from the caller's own parameter."""
    return isinstance(value, Const) and value.soft and value.value is default


def side(test: cst.BaseExpression, defaults: Mapping[str, object]) -> bool | None:
    """The side of `test` that these defaults lead to; None where they do not decide."""
    if isinstance(test, cst.Name):
        return bool(defaults[test.value]) if test.value in defaults else None
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = side(test.expression, defaults)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        decides = isinstance(test.operator, cst.Or)
        sides = [side(test.left, defaults), side(test.right, defaults)]
        if decides in sides:
            return decides
        return None if None in sides else not decides
    if isinstance(test, cst.Comparison) and isinstance(test.left, cst.Name) and test.left.value in defaults:
        target = test.comparisons[0]
        if len(test.comparisons) == 1 and isinstance(target.comparator, cst.Name) and target.comparator.value == "None":
            if isinstance(target.operator, (cst.Is, cst.IsNot)):
                return (defaults[test.left.value] is None) is isinstance(target.operator, cst.Is)
    return None
