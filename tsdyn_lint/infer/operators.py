"""Operators, comparisons and tests: where tensors among numbers become branches, and sizes stay sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer import shapes
from tsdyn_lint.infer.events import ALL_ENGINES, CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.infer.refine import Refinement, is_none
from tsdyn_lint.infer.values import (
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Flag,
    Mapping,
    Method,
    Outside,
    Scalar,
    Seq,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    join,
    options,
    shared_hypothesis,
    sources,
    unknown,
    worse,
)

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul, "Divide": operator.truediv,
    "FloorDivide": operator.floordiv, "Modulo": operator.mod, "BitAnd": operator.and_, "BitOr": operator.or_,
    "Equal": operator.eq, "NotEqual": operator.ne, "LessThan": operator.lt, "LessThanEqual": operator.le,
    "GreaterThan": operator.gt, "GreaterThanEqual": operator.ge,
}  # fmt: skip
_COMPARE = {"Equal", "NotEqual", "LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual"}
_DTYPE_RANK = {"bool": 0, "int": 1, "float": 2}


class Operators(Refinement):
    """`binary`, `compare` and `condition`: the value of an operator, and the events of what it decides."""

    def unary(self, node: cst.UnaryOperation) -> Value:
        value = self.expr(node.expression)
        kind = type(node.operator)
        if kind is cst.Not:
            return self.negated(value, node, "not")
        if isinstance(value, Const):
            try:
                if kind is cst.Minus:
                    return Const(-value.value, value.soft, value.src)
                if kind is cst.BitInvert:
                    return Const(~value.value, value.soft, value.src)
            except TypeError:
                return UNKNOWN
        tensor = self.tensor(value)
        if tensor is not None:
            return derived(tensor, tensor.dtype)
        return value

    def negated(self, value: Value, node: cst.CSTNode, form: str, **facts: Any) -> Value:
        flag = self.flag(value)
        if flag is not None:
            return Flag(ALL_ENGINES - flag.sure, ALL_ENGINES - flag.may)
        self.test(value, node, form, **facts)
        known, hard = self.truth(value)
        if known is not None:
            return Const(not known, not hard, sources(value))
        worst = [v for v in options(value) if isinstance(v, Scalar)]
        return Scalar("bool", worst[0].origin if worst else "data" if self.tensor(value) else "unknown", sources(value))

    def boolean(self, node: cst.BooleanOperation) -> Value:
        return self.condition(node, "value")

    def condition(self, node: cst.BaseExpression, form: str, **facts: Any) -> Value:
        """A value that decides something; `and`, `or` and `not` decide in parts.

        With `form` "value" only the parts are tested.
        """
        asserts = form == "assert"
        if type(node) is cst.UnaryOperation and type(node.operator) is cst.Not and form != "value":
            dropped = {"raises_only": asserts or facts.get("raises_only", False), "noted": facts.get("noted", False)}
            inner = self.condition(node.expression, "value", **dropped)
            return self.negated(inner, node, form if asserts else "not", **{**facts, "plain": False})
        if type(node) is cst.BooleanOperation:
            conjunction = type(node.operator) is cst.And
            if not conjunction and isinstance(node.right, (cst.Dict, cst.List, cst.Tuple)):
                return self.or_default(node)
            if asserts:
                facts = {**facts, "plain": False}
            first = form if asserts else "and" if conjunction else "or"
            reached = self.frame.engines
            self.frame.engines = reached - self.overruled(node)
            left = self.condition(node.left, first, **facts)
            self.frame.engines = reached
            known, hard = self.truth(left)
            if known is not None and hard and known != conjunction:
                return left
            before = dict(self.frame.env.vars)
            doubt = None
            if known is None and not self.tensor(left) and not (isinstance(left, Scalar) and left.origin == "data"):
                doubt = LIKELY
            elif known is not None and known != conjunction:
                doubt = POSSIBLE
            engines = None
            flag = self.flag(left)
            if flag is not None:
                engines = self.frame.engines & flag.may if conjunction else self.frame.engines - flag.sure
                if not engines:
                    return flag
            with self.under(doubt, engines):
                self.refine(node.left, conjunction)
                right = self.condition(node.right, form, **facts)
            self.frame.env.vars = before
            if flag is not None:
                return self.flags_met(flag, right, conjunction)
            later = self.flag(right)
            if later is not None and (known is None or not hard):
                return self.flags_met(later, left if known is None else UNKNOWN, conjunction)
            if known is not None and hard:
                return right
            if form == "value":
                if known is not None and isinstance(left, Const) and isinstance(right, (Const, Scalar)):
                    if isinstance(left.value, bool) and known != conjunction:
                        return Const(left.value, True, sources(left, right))  # the default decides, and is not lost
                return join(left, right)
            right_known, _ = self.truth(right)
            if known is not None and known != conjunction:
                return Const(not conjunction, True, sources(left, right))
            if right_known is not None and right_known != conjunction:
                return right
            if known is not None and right_known is not None:
                return Const(conjunction, True, sources(left, right))
            return join(left, right)
        if type(node) is cst.Comparison and (asserts or facts.get("raises_only")):
            value = self.comparison(node, raises_only=True, noted=facts.get("noted", False))
        else:
            value = self.expr(node)
        if form != "value":
            self.test(value, node, form, **facts)
        return value

    def overruled(self, node: cst.BooleanOperation) -> frozenset[Engine]:
        """The captures for which the left side decides nothing, as in `x and not torch.jit.is_tracing()`.

        Only a trace: others stumble over what cannot be a bool while they capture, whatever comes of it.
        """
        last = node.right.expression if isinstance(node.right, cst.UnaryOperation) else node.right
        if not isinstance(last, cst.Call) or last.args:
            return frozenset()
        flag = self.flag(self.quiet(node.right))
        if flag is None:
            return frozenset()
        decided = ALL_ENGINES - flag.may if isinstance(node.operator, cst.And) else flag.sure
        return decided & {Engine.TRACE}

    def or_default(self, node: cst.BooleanOperation) -> Value:
        """`cache or {}`: what stands before it is such a container or nothing, whatever an annotation said."""
        left, right = self.expr(node.left), self.expr(node.right)
        self.contradict(left)
        given = [o for o in options(left) if not isinstance(o, (Tensor, Unknown)) and not is_none(o)]
        if len(given) == len(options(left)):
            return either([*given, right])
        if isinstance(right, Mapping):
            return either([*given, Mapping(right.items, UNKNOWN, "argument")])
        return either([*given, Seq(right.kind, None, UNKNOWN, "argument")]) if isinstance(right, Seq) else UNKNOWN

    def flags_met(self, flag: Flag, beside: Value, conjunction: bool) -> Value:
        """`flag and beside` or `flag or beside`, in either order, the flag being one that depends on the capture."""
        other = self.flag(beside)
        if other is not None:
            if conjunction:
                return Flag(flag.may & other.may, flag.sure & other.sure, flag.src)
            return Flag(flag.may | other.may, flag.sure | other.sure, flag.src)
        known = self.truth(beside)[0]
        if known is not None:
            return flag if known == conjunction else beside
        if conjunction:
            return Flag(flag.may, frozenset(), flag.src)
        return Flag(ALL_ENGINES, flag.sure, flag.src)

    def binary_operation(self, node: cst.BinaryOperation) -> Value:
        return self.binary(type(node.operator).__name__, self.expr(node.left), self.expr(node.right), node)

    def binary(self, op: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
        self.needs_value(left, node)
        self.needs_value(right, node)
        if isinstance(left, Const) and isinstance(right, Const):
            fold = _FOLD.get(op)
            if op == "Modulo" and isinstance(left.value, (str, bytes)):
                return Scalar("str", "constant", left.src | right.src)
            if fold is not None and not (
                op == "Multiply" and (isinstance(left.value, (str, bytes)) or isinstance(right.value, (str, bytes)))
            ):
                try:
                    return Const(fold(left.value, right.value), left.soft or right.soft, left.src | right.src)
                except Exception:
                    return unknown(left, right)
            return Scalar("number", "constant", sources(left, right))
        a, b = self.tensor(left), self.tensor(right)
        if (
            op == "Modulo"
            and any(isinstance(v, Const) and isinstance(v.value, str) for v in options(left))
            or isinstance(left, Scalar)
            and left.type == "str"
            and op == "Modulo"
        ):
            for part in right.items or () if isinstance(right, Seq) else (right,):
                self.formats(part, node, "percent")
            self.use(right, "format", node)
            return Scalar("str", "unknown", sources(left, right))
        if a is not None or b is not None:
            return self.tensor_binary(op, left, right, a, b, node)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Seq):
                return self.sequence_binary(op, one, other, node, left is one)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            return join(left, right)
        if isinstance(left, Either) or isinstance(right, Either):
            return either(self.binary(op, x, y, node) for x in options(left) for y in options(right))
        if isinstance(left, (Scalar, Const)) and isinstance(right, (Scalar, Const)):
            return _scalar_result(op, left, right)
        for one in (left, right):
            if isinstance(one, Scalar) and one.origin == "size":
                return Scalar("number", "size", sources(left, right))
        return unknown(left, right)

    def tensor_binary(
        self, op: str, left: Value, right: Value, a: Tensor | None, b: Tensor | None, node: cst.CSTNode
    ) -> Value:
        for value, tensor in ((left, a), (right, b)):
            if tensor is None:
                self.use(value, "arith", node)
        firm = a if a is not None and (b is None or a.hypothesis is None) else b
        assert firm is not None
        other = b if firm is a else a
        dtype: str | None
        if op == "Divide":
            dtype = "float"
        elif op in ("BitAnd", "BitOr", "BitXor") and other is not None:
            dtype = firm.dtype if firm.dtype == other.dtype else None
        elif other is not None:
            ranks = [_DTYPE_RANK.get(t.dtype or "") for t in (firm, other)]
            dtype = None if None in ranks else firm.dtype if (ranks[0] or 0) >= (ranks[1] or 0) else other.dtype
            if "float" in (firm.dtype, other.dtype):
                dtype = "float"
        else:
            kind = _number_type(left if b is firm else right)
            masks = kind == "bool" or not kind and op in ("BitAnd", "BitOr", "BitXor")
            dtype = "float" if kind == "float" else "int" if firm.dtype == "bool" and not masks else firm.dtype
        result = derived(firm, dtype)
        if other is not None:
            result.rank = None if firm.rank is None or other.rank is None else max(firm.rank, other.rank)
            result.fixed = shapes.broadcast_fixed(firm, other)
            if other.origin != firm.origin:
                result.origin = (
                    "data"
                    if "data" in (other.origin, firm.origin) or "random" not in (other.origin, firm.origin)
                    else "random"
                )
            result.data_sized = firm.data_sized or other.data_sized
            result.numpy = firm.numpy and other.numpy
            result.hypothesis = shared_hypothesis(firm, other)
        else:
            rest = [v for v in options(left if b is firm else right) if not isinstance(v, (Const, Scalar))]
            if not rest:
                result.rank, result.fixed = firm.rank, firm.fixed
            if any(isinstance(v, Unknown) for v in rest) and firm.origin == "constant":
                result.origin = "data"
        return result

    def formats(self, value: Value, node: cst.CSTNode, form: str) -> None:
        """A tensor made into text: alone, or inside a container whose text shows it."""
        tensor = self.tensor(value)
        if tensor is not None:
            self.emit("format", node, tensor, self.mixed(value) if value is not tensor else CERTAIN, form=form)

    def sequence_binary(self, op: str, seq: Seq, other: Value, node: cst.CSTNode, first: bool) -> Value:
        if op == "Add" and isinstance(other, Seq):
            items = None
            if seq.items is not None and other.items is not None:
                items = [*seq.items, *other.items] if first else [*other.items, *seq.items]
            kind = seq.kind if seq.kind != "size" else "tuple"
            return Seq(
                kind,
                items,
                either([element(seq), element(other)]) if items is None else UNKNOWN,
                src=sources(seq, other),
            )
        if op == "Multiply":
            if (
                seq.items is not None
                and isinstance(other, Const)
                and isinstance(other.value, int)
                and 0 <= other.value * len(seq.items) <= 16
            ):
                return Seq(seq.kind, seq.items * other.value, UNKNOWN, src=sources(seq))
            return Seq(seq.kind, None, element(seq), src=sources(seq, other))
        if op == "Add":
            return Seq(seq.kind, None, join(element(seq), UNKNOWN))
        return UNKNOWN

    def comparison(self, node: cst.Comparison, **facts: Any) -> Value:
        left = self.expr(node.left)
        results = []
        left_node: cst.BaseExpression = node.left
        for part in node.comparisons:
            right = self.expr(part.comparator)
            result = self.compare(type(part.operator).__name__, left, right, node, left_node, part.comparator)
            if len(node.comparisons) > 1 and part is not node.comparisons[-1]:
                self.test(result, node, "chain", **facts)
            results.append(result)
            left, left_node = right, part.comparator
        return results[0] if len(results) == 1 else either(results)

    def compare(
        self, op: str, left: Value, right: Value, node: cst.CSTNode, left_node: cst.CSTNode, right_node: cst.CSTNode
    ) -> Value:
        if op in ("Is", "IsNot"):
            return self.identity(left, right, op == "Is")
        if op in ("In", "NotIn"):
            return self.membership(left, right, node, op == "In")
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return Const(_FOLD[op](left.value, right.value), left.soft or right.soft, left.src | right.src)
            except Exception:
                return unknown(left, right)
        a, b = self.tensor(left), self.tensor(right)
        for mine, other in ((left, right), (right, left)):
            plain = any(
                isinstance(o, Const) and isinstance(o.value, (str, bool)) or isinstance(o, (Seq, Mapping))
                for o in options(other)
            )
            if plain and self.doubtful(mine):
                self.contradict(mine)
                a = None if mine is left else a
                b = None if mine is right else b
        if a is not None or b is not None:
            if any(
                isinstance(o, Const) and (o.value is None or isinstance(o.value, str)) for o in (left, right)
            ) and op in ("Equal", "NotEqual"):
                return Const(op == "NotEqual")
            result = self.tensor_binary(op, left, right, a, b, node)
            if isinstance(result, Tensor):
                result.dtype = "bool"
            return result
        if isinstance(left, Either) or isinstance(right, Either):
            soft = [v for v in options(left) if isinstance(v, Const) and v.soft]
            if soft and isinstance(right, Const):
                try:
                    return Const(_FOLD[op](soft[0].value, right.value), True, sources(left, right))
                except Exception:
                    return unknown(left, right)
            return either(
                self.compare(op, x, y, node, left_node, right_node) for x in options(left) for y in options(right)
            )
        if isinstance(left, Seq) or isinstance(right, Seq):
            return self.compare_sequences(op, left, right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Outside) and isinstance(other, (Outside, Scalar)):
                if isinstance(other, Outside) and other.dotted == one.dotted:
                    return Const(op == "Equal")
                return self.compare_dtype(one, other, op)
        if isinstance(left, (Scalar, Const)) and isinstance(right, (Scalar, Const)):
            result = _scalar_result(op, left, right)
            return Scalar("bool", result.origin, result.src) if isinstance(result, Scalar) else result
        src = sources(left, right)
        for one in (left, right):
            if isinstance(one, Scalar) and one.origin != "unknown":
                return Scalar("bool", one.origin, src)
        return Scalar("bool", "unknown", src)

    def compare_dtype(self, constant: Outside, other: Value, op: str) -> Value:
        """`x.dtype == torch.float16`: half precision is the exception, so that side is kept quiet."""
        if constant.dotted in ("torch.float16", "torch.half", "torch.bfloat16", "torch.uint8", "torch.complex64"):
            return Const(op != "Equal", True)
        return Scalar("bool", "meta")

    def compare_sequences(self, op: str, left: Value, right: Value) -> Value:
        src = sources(left, right)
        for one in (left, right):
            inner = element(one) if isinstance(one, Seq) and one.items != [] else UNKNOWN
            for value in options(inner) if isinstance(one, Seq) else ():
                if isinstance(value, Scalar) and value.origin in ("size", "data"):
                    return Scalar("bool", value.origin, src)
        if isinstance(left, Seq) and isinstance(right, Seq) and left.items is not None and right.items is not None:
            known = constants([*left.items, *right.items])
            if known is not None and op in ("Equal", "NotEqual"):
                same = len(left.items) == len(right.items) and known[: len(left.items)] == known[len(left.items) :]
                return Const(
                    same == (op == "Equal"),
                    any(isinstance(v, Const) and v.soft for v in (*left.items, *right.items)),
                    src,
                )
        return Scalar("bool", "unknown", src)

    def identity(self, left: Value, right: Value, positive: bool) -> Value:
        """`is` and `is not`: known for None where the value is."""
        for value, other in ((left, right), (right, left)):
            if isinstance(other, Const) and other.value is None:
                if isinstance(value, Const):
                    return Const((value.value is None) == positive, value.soft, value.src)
                if isinstance(value, Either):
                    soft = [v for v in value.options if isinstance(v, Const) and v.soft]
                    if soft:
                        return Const((soft[0].value is None) == positive, True, sources(value))
                    return Scalar("bool", "unknown")
                if isinstance(value, (Unknown, Scalar)) and not (isinstance(value, Scalar) and value.type != "other"):
                    return Scalar("bool", "unknown", value.src)
                if isinstance(value, Method) and isinstance(value.receiver, (Unknown, Outside, Method)):
                    return Scalar("bool", "unknown")
                if isinstance(value, Outside) and not value.dotted.startswith(("torch.", "numpy.", "builtins.")):
                    return Scalar("bool", "unknown")
                return Const(
                    not positive,
                    isinstance(value, Tensor) and value.hypothesis is not None and not value.hypothesis.confirmed,
                )
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(_identical(left.value, right.value) == positive, left.soft or right.soft)
        if isinstance(left, Outside) and isinstance(right, Outside):
            return Const((left.dotted == right.dotted) == positive)
        if isinstance(left, ClassRef) and isinstance(right, ClassRef):
            return Const((left.cls is right.cls) == positive)
        return Scalar("bool", "unknown", sources(left, right))

    def membership(self, left: Value, right: Value, node: cst.CSTNode, positive: bool) -> Value:
        src = sources(left, right)
        tensor = self.tensor(right)
        name = isinstance(left, Const) and isinstance(left.value, str)
        if tensor is not None and (name or not isinstance(left, (Scalar, Const)) and self.doubtful(right)):
            self.contradict(right)
            return Scalar("bool", "unknown", src)
        if tensor is not None:
            self.emit(
                "branch",
                node,
                tensor,
                self.mixed(right) if right is not tensor else CERTAIN,
                form="in",
                test_kind="tensor",
                origin=tensor.origin,
                numpy=tensor.numpy,
            )
            return Scalar("bool", "data", src)
        inside = self.tensor(left)
        if (
            inside is not None
            and isinstance(right, Seq)
            and right.kind in ("list", "tuple", "range")
            and (right.items is None or right.items)
        ):
            if right.items and all(isinstance(o, Const) and isinstance(o.value, str) for o in right.items):
                self.contradict(left)  # `mode in ("a", "b")`: no tensor, whatever an annotation said
                return Scalar("bool", "unknown", src)
            self.emit("branch", node, inside, form="in", test_kind="tensor", origin=inside.origin, numpy=inside.numpy)
            return Scalar("bool", "data", src)
        if isinstance(right, Mapping):
            if isinstance(left, Const) and right.rest is None and right.owner == "local":
                return Const((left.value in right.items) == positive, True, src)
            return Scalar("bool", "unknown", src)
        if isinstance(left, Const) and isinstance(right, Seq) and right.items is not None:
            known = constants(right.items)
            if known is not None:
                return Const((left.value in known) == positive, left.soft or right.owner != "local", src)
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return Const((left.value in right.value) == positive, left.soft or right.soft, src)
            except TypeError:
                return unknown(left, right)
        origins = [v.origin for v in (left, right) if isinstance(v, Scalar) and v.origin in ("data", "size", "state")]
        if isinstance(right, Seq) and isinstance(left, (Const, Scalar)):
            inner = element(right) if right.items != [] else UNKNOWN
            origins += [v.origin for v in options(inner) if isinstance(v, Scalar) and v.origin in ("data", "size")]
        return Scalar("bool", origins[0] if origins else "unknown", src)


def derived(tensor: Tensor, dtype: str | None, rank: int | None = None, origin: str | None = None) -> Tensor:
    """A tensor computed from another one."""
    hypothesis = tensor.hypothesis
    if hypothesis is not None and hypothesis.confirmed:
        hypothesis = None
    return Tensor(dtype, rank, origin or tensor.origin, tensor.numpy, tensor.data_sized, hypothesis)


def _number_type(value: Value) -> str:
    """The type of a Python number; empty where it is not known to be one."""
    if isinstance(value, Scalar):
        return value.type
    return type(value.value).__name__ if isinstance(value, Const) else ""


def _identical(left: object, right: object) -> bool:
    """Whether two constants are one object: CPython keeps one of equal texts and small numbers of a file."""
    return left is right or type(left) is type(right) and isinstance(left, (str, int)) and left == right


def _scalar_result(op: str, left: Value, right: Value) -> Value:
    """A Python number from two: the less constant origin, float where one is or where `/` makes it one."""
    types, origins = [], []
    for value in (left, right):
        if isinstance(value, Const):
            types.append(type(value.value).__name__)
            origins.append("constant" if not value.soft else "unknown")
        else:
            assert isinstance(value, Scalar)
            types.append(value.type)
            origins.append(value.origin)
    origin = worse(origins[0], origins[1])
    if op in _COMPARE:
        kind = "bool"
    elif "str" in types:
        kind = "str"
    elif op == "Divide" or "float" in types:
        kind = "float"
    elif types[0] in ("int", "bool") and types[1] in ("int", "bool"):
        kind = "int"
    else:
        kind = "number"
    return Scalar(kind, origin, sources(left, right))


def constants(values: Sequence[Value]) -> list[Any] | None:
    """The plain values of constants, None if some value is none."""
    known = [v.value for v in values if isinstance(v, Const)]
    return known if len(known) == len(values) else None
