"""Operators, comparisons and conditions of a constructor, folded where their operands are known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.init_frames import MAX_ITEMS, Frame, Interpreter
from tsdyn_lint.script.pyvalues import (
    Cls,
    Const,
    Ext,
    Fn,
    Inst,
    Lam,
    Map,
    Obj,
    Py,
    Seq,
    Ten,
    Unk,
    join,
    static_type,
)

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.GreaterThan: operator.gt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThanEqual: operator.ge,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
}


class InitOperators(Interpreter):
    """Operators on what the interpreter knows of values."""

    def _unary(self, node: cst.UnaryOperation, frame: Frame) -> Py:
        value = self.eval(node.expression, frame)
        if isinstance(node.operator, cst.Not):
            truth = self.truth(value)
            return Unk(t.BOOL) if truth is None else Const(not truth, getattr(value, "soft", False))
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return Const(-value.value, value.soft)
            return value
        return Ten() if isinstance(value, Ten) else Unk(static_type(value))

    def _binary(self, node: cst.BinaryOperation, frame: Frame) -> Py:
        left, right = self.eval(node.left, frame), self.eval(node.right, frame)
        if isinstance(left, Const) and isinstance(right, Const):
            fold = BINARY.get(type(node.operator))
            if fold is None and isinstance(node.operator, cst.Power):
                small = isinstance(right.value, (int, float)) and abs(right.value) < 64
                fold = operator.pow if small else None
            return self._fold(fold, left, right)
        if isinstance(node.operator, cst.Modulo) and isinstance(left, Const) and isinstance(left.value, str):
            if isinstance(right, Seq) and right.items is not None and all(isinstance(i, Const) for i in right.items):
                return self._fold(
                    operator.mod, left, Const(tuple(i.value for i in right.items if isinstance(i, Const)))
                )
            return Unk(t.STR)
        if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(node.operator, cst.Add):
            if left.items is not None and right.items is not None:
                return Seq(left.kind, left.items + right.items)
            return Seq(left.kind, None, Unk())
        if isinstance(left, Seq) and isinstance(node.operator, cst.Multiply):
            if (
                left.items is not None
                and isinstance(right, Const)
                and isinstance(right.value, int)
                and len(left.items) * right.value <= MAX_ITEMS
            ):
                return Seq(left.kind, left.items * right.value)
            return Seq(left.kind, None, left.items[0] if left.items else Unk())
        if isinstance(left, Ten) or isinstance(right, Ten):
            return Ten()
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Obj) and one.name.startswith("numpy.int") and static_type(other) is t.INT:
                return Unk(t.FLOAT) if isinstance(node.operator, cst.Divide) else one
        a, b = static_type(left), static_type(right)
        if a in (t.INT, t.FLOAT) and b in (t.INT, t.FLOAT):
            if isinstance(node.operator, cst.Divide):
                return Unk(t.FLOAT)
            if isinstance(node.operator, cst.Power):
                return Unk(t.UNKNOWN if a is b is t.INT else t.FLOAT)
            return Unk(t.FLOAT if t.FLOAT in (a, b) else t.INT)
        if isinstance(node.operator, cst.FloorDivide) and b is t.INT:
            return Unk(t.UNKNOWN)
        return Unk()

    def _fold(self, fold: Callable[[Any, Any], Any] | None, left: Const, right: Const) -> Py:
        if fold is None:
            return Unk()
        try:
            value = fold(left.value, right.value)
        except Exception:
            return Unk()
        if isinstance(value, (str, tuple)) and len(value) > 10_000:
            return Unk()
        return Const(value, left.soft or right.soft)

    def _compare(self, node: cst.Comparison, frame: Frame) -> Py:
        left = self.eval(node.left, frame)
        outcome: bool | None = True
        soft = False
        for target in node.comparisons:
            right = self.eval(target.comparator, frame)
            one = self._compare_one(left, target.operator, right)
            soft = soft or getattr(left, "soft", False) or getattr(right, "soft", False)
            if one is False:
                return Const(False, soft)
            if one is None:
                outcome = None
            left = right
        return Unk(t.BOOL) if outcome is None else Const(True, soft)

    def _compare_one(self, left: Py, op: cst.BaseCompOp, right: Py) -> bool | None:
        if isinstance(op, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
            none_left = isinstance(left, Const) and left.value is None
            none_right = isinstance(right, Const) and right.value is None
            if none_left or none_right:
                other = right if none_left else left
                if isinstance(other, Unk) and other.type is t.UNKNOWN:
                    return None
                equal = none_left and none_right
                return equal == isinstance(op, (cst.Is, cst.Equal))
        if isinstance(left, Const) and isinstance(right, Const):
            if isinstance(op, (cst.Is, cst.IsNot)) and not isinstance(left.value, bool):
                op = cst.Equal() if isinstance(op, cst.Is) else cst.NotEqual()
            fold = _COMPARE.get(type(op))
            if fold is not None:
                try:
                    return bool(fold(left.value, right.value))
                except Exception:
                    return None
            if isinstance(right.value, str) and isinstance(left.value, str):
                return (left.value in right.value) == isinstance(op, cst.In)
        if isinstance(op, (cst.In, cst.NotIn)) and isinstance(left, Const):
            keys: list[Any] | None = None
            if isinstance(right, Seq) and right.items is not None and all(isinstance(i, Const) for i in right.items):
                keys = [i.value for i in right.items if isinstance(i, Const)]
            elif isinstance(right, Map) and right.items is not None:
                keys = list(right.items)
            if keys is not None:
                return bool(left.value in keys) == isinstance(op, cst.In)
        if isinstance(op, (cst.Is, cst.Equal, cst.IsNot, cst.NotEqual)):
            a, b = _identity(left), _identity(right)
            if a is not None and b is not None:
                return bool(a == b) == isinstance(op, (cst.Is, cst.Equal))
        return None

    def _boolean(self, node: cst.BooleanOperation, frame: Frame) -> Py:
        left = self.eval(node.left, frame)
        truth = self.truth(left)
        is_and = isinstance(node.operator, cst.And)
        if truth is not None:
            return self.eval(node.right, frame) if truth == is_and else left
        right = self.eval(node.right, frame)
        if self.truth(right) is (not is_and) and static_type(left) is t.BOOL:
            return right
        return join(left, right)

    def _ifexp(self, node: cst.IfExp, frame: Frame) -> Py:
        truth = self.truth(self.eval(node.test, frame))
        if truth is not None:
            return self.eval(node.body if truth else node.orelse, frame)
        self._unsure += 1
        try:
            return join(self.eval(node.body, frame), self.eval(node.orelse, frame))
        finally:
            self._unsure -= 1

    def truth(self, value: Py) -> bool | None:
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, (Seq, Map)):
            return None if value.items is None else bool(value.items)
        if isinstance(value, (Fn, Lam, Ext, Cls, Obj)):
            return None if isinstance(value, Ext) else True
        if isinstance(value, Inst):
            return (
                True
                if not value.container
                else None
                if value.children is None
                else bool(value.children) or value.container == "Sequential"
            )
        return None


def _identity(value: Py) -> Any:
    if isinstance(value, Ext):
        return ("ext", value.dotted.rpartition(".")[2])
    if isinstance(value, Cls):
        return ("cls", value.cls.name)
    if isinstance(value, Fn):
        return ("fn", value.function.name)
    return None
