"""Operators on values, as the compiler finds their overloads."""

from __future__ import annotations

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.emitter import Emitter
from tsdyn_lint.script.problems import CERTAIN, LIKELY
from tsdyn_lint.script.pyvalues import Cls, Ext, Fn, Inst
from tsdyn_lint.script.sugar import MISSING, REFUSED, UNKNOWN, V

_OPERATORS: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.GreaterThan: ">",
    cst.LessThanEqual: "<=",
    cst.GreaterThanEqual: ">=",
    cst.In: "in",
    cst.NotIn: "in",
    cst.Is: "is",
    cst.IsNot: "is not",
}


class Operators(Emitter):
    """The part of `Body` that checks operands."""

    def _unary(self, node: cst.UnaryOperation) -> V:
        if isinstance(node.operator, cst.Not):
            truth, _, _ = self.condition(node)
            return V(t.BOOL, const=truth if truth is not None else MISSING)
        value = self.expr(node.expression)
        kind = self.type_of(value, node.expression)
        if isinstance(node.operator, cst.Minus):
            const = (
                -value.const if isinstance(value.const, (int, float)) and not isinstance(value.const, bool) else MISSING
            )
            if kind in (t.INT, t.FLOAT, t.TENSOR, t.UNKNOWN):
                return V(kind, const=const, soft=value.soft)
            result = self.data.expression("-()", (kind,))
        else:
            result = self.data.expression("~()", (kind,))
        if result is None:
            return self.fail(
                "operator", node, op="-" if isinstance(node.operator, cst.Minus) else "~", left=str(kind), right=""
            )
        return UNKNOWN if result is False else V(result)  # type: ignore[arg-type]

    def _binary(self, node: cst.BinaryOperation) -> V:
        left, right = self.expr(node.left), self.expr(node.right)
        a, b = self.type_of(left, node.left), self.type_of(right, node.right)
        return self.binary(_OPERATORS[type(node.operator)], left, right, a, b, node)

    def binary(self, op: str, left: V, right: V, a: t.Type, b: t.Type, node: cst.CSTNode) -> V:
        soft = left.soft or right.soft
        if op == "%" and a is t.STR:
            return V(t.STR)
        if a is t.UNKNOWN or b is t.UNKNOWN:
            if t.TENSOR in (a, b) and op not in ("in", "is", "is not"):
                return V(t.TENSOR)
            return REFUSED if "refused" in (left.word, right.word) else UNKNOWN
        if a.kind == "Optional" and b.kind != "Optional" or b.kind == "Optional":
            pass
        if op == "+" and a.kind == b.kind == "Tuple":
            return V(t.Tuple((*a.args, *b.args)))
        if (
            op == "+"
            and a.kind == "List"
            and b.kind in ("List", "Tuple")
            or (op == "+" and b.kind == "List" and a.kind == "Tuple")
        ):
            element = a.args[0] if a.kind == "List" else b.args[0]
            other = b if a.kind == "List" else a
            fits = all(t.is_subtype(x, element) for x in other.args) if other.kind == "Tuple" else t.same(a, b)
            if t.has_unknown(element):
                return UNKNOWN
            return (
                V(t.List(element))
                if fits
                else self.fail("operator", node, LIKELY if soft else CERTAIN, op=op, left=str(a), right=str(b))
            )
        if op == "*" and "List" in (a.kind, b.kind) and (a is t.INT or b is t.INT):
            return V(a if a.kind == "List" else b)
        if op == "*" and "Tuple" in (a.kind, b.kind) and (a is t.INT or b is t.INT):
            tup = a if a.kind == "Tuple" else b
            if tup.args and all(x is tup.args[0] for x in tup.args):
                return V(t.List(tup.args[0]))
        result = self.data.expression(op, (a, b))
        if result is None:
            return self._operator_problem(op, left, right, a, b, node, soft)
        if result is False:
            return self._overloaded(op, left, right, a, b, node, soft)
        return V(result, soft=soft)  # type: ignore[arg-type]

    def _operator_problem(self, op: str, left: V, right: V, a: t.Type, b: t.Type, node: cst.CSTNode, soft: bool) -> V:
        for kind, value in ((a, left), (b, right)):
            if kind.kind == "Optional" or kind is t.NONE:
                return self.unrefined(value, node, kind, op, soft)
        texts = t.STR in (a, b) or op == "in" and b is t.List(t.STR)
        tensor = right if b is t.TENSOR else left
        confidence, facts = LIKELY if soft else CERTAIN, {"op": op, "left": str(a), "right": str(b)}
        if texts:
            return self.misread(tensor, "operator", node, confidence, **facts)
        return self.fail("operator", node, confidence, **facts)

    def _overloaded(self, op: str, left: V, right: V, a: t.Type, b: t.Type, node: cst.CSTNode, soft: bool) -> V:
        """Types that the generator did not try with every operator."""
        compares = op in ("==", "!=", "is", "is not", "in")
        for kind, value in ((a, left), (b, right)):
            if kind.kind == "Union" and not t.NUMERIC.issuperset(kind.args) and not compares:
                return self.fail(
                    "operator", node, LIKELY if soft else CERTAIN, op=op, left=self._short(a), right=self._short(b)
                )
            if kind.kind == "Optional" and not t.has_unknown(kind) and not compares:
                return self.unrefined(value, node, kind, op, soft)
            if kind.kind == "Module":
                return self.fail("operator", node, op=op, left=self._short(a), right=self._short(b))
        if op in ("==", "!=", "<", ">", "<=", ">=", "in"):
            return (
                V(t.TENSOR)
                if op in ("==", "!=", "<", ">", "<=", ">=") and t.TENSOR in (a, b)
                else V(t.BOOL)
                if op == "in"
                else UNKNOWN
            )
        if t.has_unknown(a) or t.has_unknown(b):
            return UNKNOWN
        numbers = (t.TENSOR, t.INT, t.FLOAT, t.BOOL, t.NUMBER)
        for one, other in ((a, b), (b, a)):
            if one in numbers and other.kind in ("Tuple", "Dict") and op != "*":
                return self.fail("operator", node, LIKELY if soft else CERTAIN, op=op, left=str(a), right=str(b))
            if one is t.TENSOR and other.kind in ("Tuple", "Dict"):
                return self.fail("operator", node, LIKELY if soft else CERTAIN, op=op, left=str(a), right=str(b))
        return UNKNOWN

    def _compare(
        self, operator: cst.BaseCompOp, left: V, right: V, ln: cst.CSTNode, rn: cst.CSTNode, node: cst.CSTNode
    ) -> V:
        op = _OPERATORS[type(operator)]
        if op in ("is", "is not"):
            for value, part in ((left, ln), (right, rn)):
                if isinstance(value.py, (Cls, Ext, Fn)) and value.type is None:
                    self.type_of(value, part)
            return V(t.BOOL)
        if "refused" in (left.word, right.word) or op == "in" and isinstance(right.py, Inst):
            return V(t.BOOL)
        a, b = self.type_of(left, ln), self.type_of(right, rn)
        if op == "in":
            if b.kind == "Tuple":
                b = t.List(b.args[0]) if b.args and all(x is b.args[0] for x in b.args) else t.UNKNOWN
            if a is t.UNKNOWN or b is t.UNKNOWN:
                return V(t.BOOL)
            if b.kind == "Dict":
                return (
                    V(t.BOOL) if t.same(a, b.args[0]) else self.fail("operator", node, op=op, left=str(a), right=str(b))
                )
        return self.binary(op, left, right, a, b, node)

    def _plain_comparison(self, node: cst.Comparison) -> V:
        left = self.expr(node.left)
        result = UNKNOWN
        for target in node.comparisons:
            right = self.expr(target.comparator)
            result = self._compare(target.operator, left, right, node.left, target.comparator, node)
            left = right
        return result
