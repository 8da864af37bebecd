"""What a test says about names and attribute paths on the side it leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from tsdyn_lint.infer.values import (
    UNKNOWN,
    Const,
    Either,
    Method,
    Outside,
    Seq,
    Tensor,
    Unknown,
    Value,
    options,
)
from tsdyn_lint.infer.walk import Core
from tsdyn_lint.nodes import literal


class Refinement(Core):
    """`refine` narrows the variables of the frame by a test that came out one way."""

    def refine(self, test: cst.BaseExpression, truth: bool) -> None:
        """Narrow what a test says about names and attribute paths, given that it came out as `truth`."""
        if type(test) is cst.UnaryOperation and type(test.operator) is cst.Not:
            self.refine(test.expression, not truth)
        elif type(test) is cst.BooleanOperation:
            conjunction = type(test.operator) is cst.And
            if conjunction == truth:
                self.refine(test.left, truth)
                self.refine(test.right, truth)
        elif type(test) is cst.Comparison and len(test.comparisons) == 1:
            part = test.comparisons[0]
            if type(part.comparator) is cst.Name and part.comparator.value == "None":
                kind = type(part.operator).__name__
                if kind in ("Is", "Equal"):
                    self.narrow(test.left, lambda v: is_none(v) is not (not truth))
                elif kind in ("IsNot", "NotEqual"):
                    self.narrow(test.left, lambda v: is_none(v) is not truth)
            elif type(part.comparator) is cst.Integer and type(part.operator) is (cst.Equal if truth else cst.NotEqual):
                self.narrow_rank(test.left, literal(part.comparator.value))
        elif (
            type(test) is cst.Call
            and len(test.args) == 2
            and type(test.func) is cst.Name
            and test.func.value == "isinstance"
        ):
            wanted = self.quiet(test.args[1].value)
            self.narrow(
                test.args[0].value,
                lambda v: self.is_instance(v, wanted) is not (not truth),
                self.instance_of(wanted) if truth else None,
            )
        elif type(test) is cst.Call and len(test.args) == 1:
            called = self.quiet(test.func)
            if isinstance(called, Outside) and called.dotted in ("torch.is_tensor", "torch.overrides.is_tensor_like"):
                self.narrow(
                    test.args[0].value,
                    lambda v: (isinstance(v, Tensor) or isinstance(v, Unknown) and None) is not (not truth),
                    Tensor() if truth else None,
                )
        elif type(test) in (cst.Name, cst.Attribute):
            self.narrow(test, lambda v: self.truth(v)[0] is not (not truth))

    def narrow(self, node: cst.BaseExpression, keep: Callable[[Value], object], instead: Value | None = None) -> None:
        path = path_of(node)
        if not path:
            return
        value = self.quiet(node)
        kept = [v for v in options(value) if keep(v) is not False]
        if isinstance(value, Either) and kept and len(kept) < len(value.options):
            result = kept[0] if len(kept) == 1 else Either(tuple(kept))
            self.frame.env.hold(path, result)
        elif not kept and isinstance(value, Const) and value.soft:
            self.frame.env.hold(path, UNKNOWN if instead is None else instead)
        elif not kept and isinstance(value, Tensor) and not value.intermediate:
            # an argument that was only taken for a tensor
            self.frame.env.hold(path, UNKNOWN if instead is None else instead)
        elif instead is not None and (isinstance(value, Unknown) or isinstance(instead, Tensor) and _only_told(value)):
            self.frame.env.hold(path, instead)

    def narrow_rank(self, asked: cst.BaseExpression, rank: int) -> None:
        """`x.dim()`, `x.ndim` or `len(x.shape)` is `rank` on this side."""
        node = _ranked(asked)
        if type(node) is cst.Attribute and node.attr.value == "data":
            node = node.value
        if type(node) is not cst.Name:
            return
        value = self.quiet(node)
        if isinstance(value, Tensor) and value.rank is None:
            self.frame.env.hold(node.value, replace(value, rank=rank))

    def is_instance(self, value: Value, wanted: Value) -> bool | None:
        raise NotImplementedError

    def instance_of(self, wanted: Value) -> Value | None:
        raise NotImplementedError


def _ranked(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an expression gives the number of dimensions of."""
    if type(node) is cst.Attribute and node.attr.value == "ndim":
        return node.value
    if type(node) is not cst.Call:
        return None
    if type(node.func) is cst.Attribute and not node.args:
        return node.func.value if node.func.attr.value in ("dim", "ndimension") else None
    if type(node.func) is cst.Name and node.func.value == "len" and len(node.args) == 1:
        shape = node.args[0].value
        if type(shape) is cst.Attribute and shape.attr.value == "shape":
            return shape.value
        if type(shape) is cst.Call and type(shape.func) is cst.Attribute and not shape.args:
            return shape.func.value if shape.func.attr.value == "size" else None
    return None


def _only_told(value: Value) -> bool:
    """Whether only an annotation says that the value is a list or a tuple."""
    return isinstance(value, Seq) and value.owner == "argument"


def is_none(value: Value) -> bool | None:
    if isinstance(value, Const):
        return value.value is None
    return None if isinstance(value, (Unknown, Method)) else False


def is_soft_none(value: Value) -> bool:
    """Whether it is a default of None."""
    return isinstance(value, Const) and value.value is None and value.soft


def path_of(node: cst.CSTNode) -> str:
    """`self.a.b` for an attribute chain on a name; empty for anything else."""
    # by type: libcst's classes are abstract ones, whose isinstance is slow where the answer is no
    if type(node) is cst.Name:
        return node.value
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if parts and type(node) is cst.Name else ""
