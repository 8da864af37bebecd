"""Expressions -> values, with the events of reads, comparisons, indexing and formatting on the way."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.infer.frames import Env, Frame
from tsdyn_lint.infer.values import (
    BOOL,
    CONSTANT_INT,
    FALSE,
    FLOAT,
    INT,
    NOTHING,
    STR,
    TRUE,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Flag,
    Func,
    Instance,
    Mapping,
    Method,
    ModuleRef,
    Outside,
    Partial,
    Scalar,
    Seq,
    SliceValue,
    SuperRef,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    join,
    options,
    sources,
    unknown,
)
from tsdyn_lint.infer.walk import Core
from tsdyn_lint.resolve import Function

SIZE = Scalar("int", "size")
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul, "Divide": operator.truediv,
    "FloorDivide": operator.floordiv, "Modulo": operator.mod, "BitAnd": operator.and_, "BitOr": operator.or_,
    "Equal": operator.eq, "NotEqual": operator.ne, "LessThan": operator.lt, "LessThanEqual": operator.le,
    "GreaterThan": operator.gt, "GreaterThanEqual": operator.ge,
}  # fmt: skip
_COMPARE = {"Equal", "NotEqual", "LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual"}
_DTYPE_RANK = {"bool": 0, "int": 1, "float": 2}
_BUILTIN_CONSTANTS = {"True": TRUE, "False": FALSE, "None": NOTHING, "__debug__": TRUE}


class Expressions(Core):
    """`expr` evaluates; calls are in the classes that build on this one."""

    def expr(self, node: cst.CSTNode) -> Value:
        self.tick()
        handler = _HANDLERS.get(type(node))
        return UNKNOWN if handler is None else handler(self, node)

    # --- names and constants

    def name(self, node: cst.Name) -> Value:
        value = self.variable(node.value)
        if (
            self.tracked
            and (id(self.frame.env.module), node.value) in self.tracked
            and self.frame.env.find(node.value) is None
        ):
            return self.track(id(self.frame.env.module), node.value, value, node)
        return value

    def variable(self, name: str) -> Value:
        env = self.frame.env
        value = env.find(name) if name not in env.globals_ else None
        if value is None:
            value = _BUILTIN_CONSTANTS.get(name)
        if value is None:
            value = self.module_value(env.module, name)
        return Outside(f"builtins.{name}") if value is None else value

    def dotted_value(self, dotted: str) -> Value:
        """What an absolute dotted name stands for."""
        found = self.program.find(dotted, self.frame.function.module)
        if isinstance(found, str):
            return Outside(found)
        return self.definition_value(found, self.frame.function.module, dotted.rpartition(".")[2])

    def integer(self, node: cst.Integer) -> Value:
        try:
            return Const(int(node.value.replace("_", ""), 0))
        except ValueError:
            return INT

    def float_(self, node: cst.Float) -> Value:
        return Const(float(node.value.replace("_", "")))

    def imaginary(self, node: cst.Imaginary) -> Value:
        return Scalar("number", "constant")

    def string(self, node: cst.SimpleString | cst.ConcatenatedString) -> Value:
        if isinstance(node, cst.SimpleString) and node.value[0] in "\"'" and "\\" not in node.value:
            quotes = 3 if node.value[:3] in ('"""', "'''") else 1
            return Const(node.value[quotes:-quotes])
        try:
            text = node.evaluated_value
        except Exception:
            return STR
        return STR if text is None else Const(text)

    def concatenated(self, node: cst.ConcatenatedString) -> Value:
        self.expr(node.left)
        self.expr(node.right)
        return self.string(node)

    def formatted(self, node: cst.FormattedString) -> Value:
        src: frozenset[Any] = frozenset()
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                value = self.expr(part.expression)
                self.formats(value, part.expression, "f-string")
                self.use(value, "format", node)
                src |= sources(value)
                for inner in part.format_spec or ():
                    if isinstance(inner, cst.FormattedStringExpression):
                        self.expr(inner.expression)
        return Scalar("str", "unknown", src)

    def formats(self, value: Value, node: cst.CSTNode, form: str) -> None:
        """A tensor made into text: alone, or inside a container whose text shows it."""
        tensor = self.tensor(value)
        if tensor is not None:
            self.emit("format", node, tensor, self.mixed(value) if value is not tensor else CERTAIN, form=form)

    # --- attributes

    def attribute(self, node: cst.Attribute) -> Value:
        path = _path(node)
        if path:
            known = self.frame.env.vars.get(path)
            if known is not None:
                if self.tracked and path not in self.frame.rebuilt:
                    with self.quietly():
                        owner = self.expr(node.value)
                    return self.track(id(owner), node.attr.value, known, node)
                return known
        return self.get(self.expr(node.value), node.attr.value, node)

    def get(self, owner: Value, name: str, node: cst.CSTNode) -> Value:
        """`owner.name`."""
        if isinstance(owner, Either):
            found = [self.get(o, name, node) for o in owner.options if not (isinstance(o, Const) and o.value is None)]
            return either(found) if found else UNKNOWN
        if isinstance(owner, Outside):
            return self.outside_attribute(owner.dotted, name)
        if isinstance(owner, Tensor):
            return self.tensor_attribute(owner, name, node)
        if isinstance(owner, Instance):
            return self.instance_attribute(owner, name, node)
        if isinstance(owner, ModuleRef):
            value = self.module_value(owner.module, name)
            if value is not None:
                return value
            found_member = self.program.member(owner.module, name)
            return UNKNOWN if found_member is None else self.definition_value(found_member, owner.module, name)
        if isinstance(owner, ClassRef):
            return self.class_attribute(owner, name, node)
        if isinstance(owner, SuperRef):
            return self.super_attribute(owner, name, node)
        if isinstance(owner, Seq):
            if (owner.cls is not None or owner.fields) and owner.items is not None:
                fields = owner.fields if owner.cls is None else self.fields(owner.cls)
                if name in fields and fields.index(name) < len(owner.items):
                    return owner.items[fields.index(name)]
            return Method(owner, name, owner.src)
        if isinstance(owner, (Mapping, SliceValue)):
            return Method(owner, name, owner.src)
        if isinstance(owner, Const):
            return Method(owner, name) if isinstance(owner.value, (str, bytes, int, float)) else UNKNOWN
        if isinstance(owner, Scalar):
            if owner.type == "str":
                return Method(owner, name, owner.src)
            if owner.type == "other":
                return Scalar("other", owner.origin, owner.src)
            return Method(owner, name, owner.src)
        if isinstance(owner, Func):
            return Method(owner, name)
        if isinstance(owner, Method):
            return Method(owner, name)
        return Method(owner, name, owner.src)

    def outside_attribute(self, dotted: str, name: str) -> Value:
        raise NotImplementedError

    def tensor_attribute(self, owner: Tensor, name: str, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def instance_attribute(self, owner: Instance, name: str, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def class_attribute(self, owner: ClassRef, name: str, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def super_attribute(self, owner: SuperRef, name: str, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def fields(self, cls: Any) -> list[str]:
        raise NotImplementedError

    # --- operators

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
            return Flag(frozenset(Engine) - flag.engines)
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
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not) and form != "value":
            inner = self.expr(node.expression)
            return self.negated(inner, node, form if asserts else "not", **{**facts, "plain": False})
        if isinstance(node, cst.BooleanOperation):
            conjunction = isinstance(node.operator, cst.And)
            if asserts:
                facts = {**facts, "plain": False}
            left = self.condition(node.left, form if asserts else "and" if conjunction else "or", **facts)
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
                engines = self.frame.engines & flag.engines if conjunction else self.frame.engines - flag.engines
                if not engines:
                    return flag
            with self.under(doubt, engines):
                self.refine(node.left, conjunction)
                right = self.condition(node.right, form, **facts)
            self.frame.env.vars = before
            if flag is not None:
                return self.flags_met(flag, right, conjunction)
            if known is not None and hard:
                return right
            if form == "value":
                return join(left, right)
            right_known, _ = self.truth(right)
            if known is not None and known != conjunction:
                return Const(not conjunction, True, sources(left, right))
            if right_known is not None and right_known != conjunction:
                return right
            if known is not None and right_known is not None:
                return Const(conjunction, True, sources(left, right))
            return join(left, right)
        value = self.expr(node)
        if form != "value":
            self.test(value, node, form, **facts)
        return value

    def flags_met(self, left: Flag, right: Value, conjunction: bool) -> Value:
        """`left and right` or `left or right`, the left side being one that depends on the capture."""
        other = self.flag(right)
        if other is not None:
            return Flag(left.engines & other.engines if conjunction else left.engines | other.engines, left.src)
        known = self.truth(right)[0]
        if known is not None and known != conjunction:
            return right
        return left

    def binary_operation(self, node: cst.BinaryOperation) -> Value:
        return self.binary(type(node.operator).__name__, self.expr(node.left), self.expr(node.right), node)

    def binary(self, op: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
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
        if a is not None and b is not None:
            if a.hypothesis is None or a.hypothesis.confirmed:
                pass
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
            plain = left if b is firm else right
            is_float = (
                isinstance(plain, Const)
                and isinstance(plain.value, float)
                or isinstance(plain, Scalar)
                and plain.type == "float"
            )
            dtype = "float" if is_float else "int" if firm.dtype == "bool" else firm.dtype
        result = derived(firm, dtype)
        if other is not None:
            result.rank = (
                max(a.rank, b.rank)
                if a is not None and b is not None and a.rank is not None and b.rank is not None
                else None
            )
            if other.origin != firm.origin:
                result.origin = (
                    "data"
                    if "data" in (other.origin, firm.origin) or "random" not in (other.origin, firm.origin)
                    else "random"
                )
            result.data_sized = firm.data_sized or other.data_sized
            result.numpy = firm.numpy and other.numpy
            if firm.hypothesis is not other.hypothesis:
                result.hypothesis = None
        else:
            rest = [v for v in options(left if b is firm else right) if not isinstance(v, (Const, Scalar))]
            if any(isinstance(v, Unknown) for v in rest) and firm.origin == "constant":
                result.origin = "data"
        return result

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

    def comparison(self, node: cst.Comparison) -> Value:
        left = self.expr(node.left)
        results = []
        left_node: cst.BaseExpression = node.left
        for part in node.comparisons:
            right = self.expr(part.comparator)
            result = self.compare(type(part.operator).__name__, left, right, node, left_node, part.comparator)
            if len(node.comparisons) > 1 and part is not node.comparisons[-1]:
                self.test(result, node, "chain")
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
            known = _constants([*left.items, *right.items])
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
            return Const((left.value is right.value) == positive, left.soft or right.soft)
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
            self.emit("branch", node, inside, form="in", test_kind="tensor", origin=inside.origin, numpy=inside.numpy)
            return Scalar("bool", "data", src)
        if isinstance(right, Mapping):
            if isinstance(left, Const) and right.rest is None and right.owner == "local":
                return Const((left.value in right.items) == positive, True, src)
            return Scalar("bool", "unknown", src)
        if isinstance(left, Const) and isinstance(right, Seq) and right.items is not None:
            known = _constants(right.items)
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

    # --- containers

    def list_(self, node: cst.List | cst.Tuple | cst.Set) -> Value:
        kind = {cst.List: "list", cst.Tuple: "tuple", cst.Set: "set"}[type(node)]
        items: list[Value] | None = []
        rest: list[Value] = []
        for part in node.elements:
            value = self.expr(part.value)
            if isinstance(part, cst.StarredElement):
                if isinstance(value, Seq) and value.items is not None and items is not None:
                    items += value.items
                else:
                    rest += [self.iterate(value, part.value, "unpack"), *(items or ())]
                    items = None
            elif items is not None:
                items.append(value)
            else:
                rest.append(value)
        if items is not None and len(items) > 64:
            rest, items = [either(items)], None
        src = sources(*(items or rest))
        return Seq(kind, items, UNKNOWN if items is not None else either(rest), src=src)

    def dict_(self, node: cst.Dict) -> Value:
        table = Mapping({})
        for part in node.elements:
            value = self.expr(part.value)
            if isinstance(part, cst.StarredDictElement):
                for option in options(value):
                    if isinstance(option, Mapping):
                        table.items.update(option.items)
                        if option.rest is not None:
                            table.rest = option.rest if table.rest is None else join(table.rest, option.rest)
                    else:
                        table.rest = UNKNOWN
                continue
            assert isinstance(part, cst.DictElement)
            name = self.expr(part.key)
            if isinstance(name, Const) and _hashable(name.value):
                table.items[name.value] = value
            else:
                table.rest = value if table.rest is None else join(table.rest, value)
        return table

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> Value:
        frame = self.frame
        outer = frame.env
        frame.env = Env(outer.module, outer)
        frame.env.globals_ = outer.globals_
        results: list[Value] = []
        keys: list[Value] = []
        known = [True]

        def body() -> None:
            if isinstance(node, cst.DictComp):
                keys.append(self.expr(node.key))
                results.append(self.expr(node.value))
            else:
                results.append(self.expr(node.elt))

        try:
            with self.under(weak=True):
                sized = self.generate(node.for_in, body, known)
        finally:
            frame.env = outer
        if isinstance(node, cst.DictComp):
            table = Mapping({})
            for k, v in zip(keys, results, strict=False):
                if known[0] and isinstance(k, Const) and _hashable(k.value):
                    table.items[k.value] = v
                else:
                    table.rest = v if table.rest is None else join(table.rest, v)
            return table
        kind = {cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "gen"}[type(node)]
        if known[0]:
            return Seq(kind, results, UNKNOWN, src=sources(*results))
        return Seq(kind, None, either(results), data_sized=sized, src=sources(*results))

    def generate(self, part: cst.CompFor, body: Callable[[], None], known: list[bool]) -> bool:
        """Walk `for .. in .. if ..` of a comprehension; returns whether its length depends on data."""
        iterable = self.expr(part.iter)
        self.loop_over(iterable, part.iter)
        exact = isinstance(iterable, Seq) and iterable.items is not None and len(iterable.items) <= 16 and not part.ifs
        if not exact:
            known[0] = False
        sized = False
        values = (
            iterable.items
            if exact and isinstance(iterable, Seq) and iterable.items is not None
            else [self.iterate(iterable, part.iter, "loop")]
        )
        repeated = self.frame.repeated
        if isinstance(iterable, Seq) and iterable.kind in ("modulelist", "sequential"):
            self.frame.repeated = True
        for value in values:
            self.bind(part.target, value)
            doubt = None
            for test in part.ifs:
                result = self.condition(test.test, "comprehension")
                sized |= self.tensor(result) is not None
                if self.truth(result)[0] is False:
                    doubt = POSSIBLE
                self.refine(test.test, True)
            with self.under(doubt):
                if part.inner_for_in is not None:
                    sized |= self.generate(part.inner_for_in, body, known)
                else:
                    body()
        self.frame.repeated = repeated
        return (
            sized
            or (isinstance(iterable, Seq) and iterable.data_sized)
            or (isinstance(iterable, Tensor) and iterable.data_sized)
        )

    def bind(self, target: cst.CSTNode, value: Value, augmented: bool = False) -> None:
        raise NotImplementedError

    def iterate(self, value: Value, node: cst.CSTNode, why: str) -> Value:
        """What one step of iterating over the value gives."""
        if isinstance(value, Either):
            return either(
                self.iterate(o, node, why) for o in value.options if not (isinstance(o, Const) and o.value is None)
            )
        if isinstance(value, Seq):
            return element(value)
        if isinstance(value, Tensor):
            if why == "unpack":
                self.emit("loop", node, value, sub="unpack", over="tensor", form="unpack", data_sized=value.data_sized)
            rank = value.rank - 1 if value.rank else None
            return derived(value, value.dtype, rank=rank)
        if isinstance(value, Mapping):
            return (
                Scalar("str", "constant") if value.items and all(isinstance(k, str) for k in value.items) else UNKNOWN
            )
        if isinstance(value, Const) and isinstance(value.value, str):
            return STR
        if isinstance(value, Scalar) and value.type == "str":
            return STR
        if isinstance(value, Instance):
            return self.iterate_instance(value, node)
        return unknown(value)

    def iterate_instance(self, value: Instance, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def loop_over(self, iterable: Value, node: cst.CSTNode) -> None:
        """Events of what a loop runs over; tells the reads behind its length."""
        for option in options(iterable):
            if isinstance(option, Tensor):
                if option.hypothesis is not None and not option.hypothesis.confirmed and not option.intermediate:
                    continue
                if option.data_sized or option.origin not in ("constant", "parameter", "buffer", "random"):
                    self.emit("loop", node, option, over="tensor", form="iterate", data_sized=option.data_sized)
            elif isinstance(option, Seq):
                if option.src:
                    self.use(option, "loop", node)
                if option.name == "<rows>" and option.items is None:
                    self.emit("loop", node, None, over="tensor", form="iterate", data_sized=False)
                elif option.kind == "range" and isinstance(option.elem, Scalar) and option.elem.origin == "size":
                    self.emit("loop", node, None, over="size", form="range", data_sized=False)
                elif option.data_sized:
                    # the read that gave the length is the cause, and is reported itself
                    read = any(event.kind == "scalar" for event in option.src)
                    self.emit("loop", node, None, over="data", form="iterate", data_sized=True, reported=read)

    # --- subscripts

    def subscript(self, node: cst.Subscript) -> Value:
        owner = self.expr(node.value)
        if isinstance(owner, (Outside, ClassRef)):
            return owner  # a generic alias
        index = self.index(node)
        return self.item(owner, index, node)

    def index(self, node: cst.Subscript) -> Value:
        parts = [self.index_part(e.slice) for e in node.slice]
        if len(parts) == 1 and not isinstance(node.slice[0].comma, cst.Comma):
            return parts[0]
        return Seq("tuple", parts, UNKNOWN, src=sources(*parts))

    def index_part(self, part: cst.BaseSlice) -> Value:
        if isinstance(part, cst.Index):
            return self.expr(part.value)
        if isinstance(part, cst.Slice):
            bounds = tuple(NOTHING if b is None else self.expr(b) for b in (part.lower, part.upper, part.step))
            return SliceValue(bounds, sources(*bounds))
        return UNKNOWN

    def item(self, owner: Value, index: Value, node: cst.CSTNode) -> Value:
        """`owner[index]`."""
        if isinstance(owner, Either):
            found = [self.item(o, index, node) for o in owner.options if not (isinstance(o, Const) and o.value is None)]
            return either(found) if found else UNKNOWN
        if isinstance(owner, Tensor):
            if isinstance(index, Const) and isinstance(index.value, str):  # no tensor has names
                self.contradict(owner)
                if owner.hypothesis is not None:
                    owner.hypothesis.mapping = True
                return UNKNOWN
            return self.read(owner, index, node)
        self.use(index, "index", node)
        if isinstance(owner, Seq):
            return self.sequence_item(owner, index, node)
        if isinstance(owner, Mapping):
            self.lookup_by(index, node)
            if isinstance(index, Const) and _hashable(index.value):
                if index.value in owner.items:
                    return owner.items[index.value]
                return UNKNOWN if owner.rest is None else owner.rest
            values = [*owner.items.values(), *([owner.rest] if owner.rest is not None else [])]
            return either(values) if values else UNKNOWN
        if isinstance(owner, Instance):
            return self.instance_item(owner, index, node)
        if (
            isinstance(owner, Scalar)
            and owner.type == "str"
            or isinstance(owner, Const)
            and isinstance(owner.value, str)
        ):
            return STR
        return unknown(owner)

    def lookup_by(self, index: Value, node: cst.CSTNode) -> None:
        """A dict looked up by a size needs its number: Dynamo guards on it, a trace finds no such key."""
        if any(isinstance(o, Scalar) and o.origin == "size" for o in options(index)):
            self.emit("size", node, None, sub="dict-key", spelling="dict-key")

    def sequence_item(self, owner: Seq, index: Value, node: cst.CSTNode) -> Value:
        if isinstance(index, SliceValue):
            bounds = _constants(index.parts)
            if owner.items is not None and bounds is not None:
                try:
                    return Seq(owner.kind, owner.items[slice(*bounds)], UNKNOWN, src=owner.src)
                except TypeError:
                    return UNKNOWN
            data = any(isinstance(p, Scalar) and p.origin == "data" for p in index.parts)
            return Seq(owner.kind, None, element(owner), data_sized=data, src=sources(owner, index))
        tensor = self.tensor(index)
        if tensor is not None and owner.kind in ("list", "tuple", "modulelist", "sequential"):
            self.emit(
                "scalar",
                node,
                tensor,
                sub="index",
                spelling="index",
                origin=tensor.origin,
                container=owner.kind,
                numpy=tensor.numpy,
            )
        if owner.items is not None and isinstance(index, Const) and isinstance(index.value, int):
            if -len(owner.items) <= index.value < len(owner.items):
                return owner.items[index.value]
            return UNKNOWN
        return element(owner)

    def read(self, owner: Tensor, index: Value, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def store(self, owner: Tensor, index: Value, value: Value, node: cst.CSTNode) -> None:
        raise NotImplementedError

    def instance_item(self, owner: Instance, index: Value, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def mutate(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, values: Sequence[Value]) -> None:
        raise NotImplementedError

    def mutated(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, value: Value) -> None:
        raise NotImplementedError

    # --- the rest

    def conditional(self, node: cst.IfExp) -> Value:
        value = self.condition(node.test, "ternary")
        known, hard = self.truth(value)
        flag = self.flag(value)
        frame = self.frame
        before = dict(frame.env.vars)
        found: list[Value] = []
        sides: list[tuple[bool, cst.BaseExpression]] = [(True, node.body), (False, node.orelse)]
        for side, expression in sides:
            if known is not None and hard and side != known:
                continue
            engines = None
            if flag is not None:
                engines = frame.engines & flag.engines if side else frame.engines - flag.engines
                if not engines:
                    continue
            confidence = POSSIBLE if known is not None and side != known else None
            with self.under(confidence, engines):
                self.refine(node.test, side)
                found.append(self.expr(expression))
            frame.env.vars = dict(before)
        if known is not None and len(found) == 2:
            favoured = found[0 if known else 1]
            if isinstance(favoured, Const) and not favoured.soft:
                favoured = Const(favoured.value, True, favoured.src)
            return favoured if not isinstance(favoured, Const) else join(favoured, found[1 if known else 0])
        if flag is not None and len(found) == 2 and Engine.DYNAMO in frame.engines:
            return found[0 if Engine.DYNAMO in flag.engines else 1]
        result = either(found)
        self.use(value, "value", node)
        src = sources(value)
        if src and isinstance(result, (Const, Scalar, Unknown)) and not src <= result.src:
            if isinstance(result, Const):
                result = Const(result.value, True, result.src | src)
            elif isinstance(result, Scalar):
                result = Scalar(result.type, result.origin, result.src | src)
            else:
                result = Unknown(result.src | src)
        return result

    def lambda_(self, node: cst.Lambda) -> Value:
        function = Function("<lambda>", node, self.frame.function.module, self.frame.piece, None, self.frame.function)
        return Func(function, None, self.frame.env)

    def walrus(self, node: cst.NamedExpr) -> Value:
        value = self.expr(node.value)
        self.bind(node.target, value)
        return value

    def yielded(self, node: cst.Yield) -> Value:
        value = node.value
        if isinstance(value, cst.From):
            self.frame.yields.append(self.iterate(self.expr(value.item), node, "loop"))
        else:
            self.frame.yields.append(NOTHING if value is None else self.expr(value))
        return UNKNOWN

    def awaited(self, node: cst.Await) -> Value:
        return self.expr(node.expression)

    def call(self, node: cst.Call) -> Value:
        raise NotImplementedError

    # --- refinement

    def refine(self, test: cst.BaseExpression, truth: bool) -> None:
        """Narrow what a test says about names and attribute paths, given that it came out as `truth`."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            self.refine(test.expression, not truth)
        elif isinstance(test, cst.BooleanOperation):
            conjunction = isinstance(test.operator, cst.And)
            if conjunction == truth:
                self.refine(test.left, truth)
                self.refine(test.right, truth)
        elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            part = test.comparisons[0]
            if isinstance(part.comparator, cst.Name) and part.comparator.value == "None":
                kind = type(part.operator).__name__
                if kind in ("Is", "Equal"):
                    self.narrow(test.left, lambda v: _is_none(v) is not (not truth))
                elif kind in ("IsNot", "NotEqual"):
                    self.narrow(test.left, lambda v: _is_none(v) is not truth)
        elif (
            isinstance(test, cst.Call)
            and len(test.args) == 2
            and isinstance(test.func, cst.Name)
            and test.func.value == "isinstance"
        ):
            with self.quietly():
                wanted = self.expr(test.args[1].value)
            self.narrow(
                test.args[0].value,
                lambda v: self.is_instance(v, wanted) is not (not truth),
                self.instance_of(wanted) if truth else None,
            )
        elif isinstance(test, cst.Call) and len(test.args) == 1:
            with self.quietly():
                called = self.expr(test.func)
            if isinstance(called, Outside) and called.dotted in ("torch.is_tensor", "torch.overrides.is_tensor_like"):
                self.narrow(
                    test.args[0].value,
                    lambda v: (isinstance(v, Tensor) or isinstance(v, Unknown) and None) is not (not truth),
                    Tensor() if truth else None,
                )
        elif isinstance(test, (cst.Name, cst.Attribute)):
            self.narrow(test, lambda v: self.truth(v)[0] is not (not truth))

    def narrow(self, node: cst.BaseExpression, keep: Callable[[Value], object], instead: Value | None = None) -> None:
        path = _path(node)
        if not path:
            return
        if isinstance(node, cst.NamedExpr):
            return
        with self.quietly():
            value = self.expr(node)
        kept = [v for v in options(value) if keep(v) is not False]
        if isinstance(value, Either) and kept and len(kept) < len(value.options):
            result = kept[0] if len(kept) == 1 else Either(tuple(kept))
            self.frame.env.vars[path] = result
        elif not kept and isinstance(value, Const) and value.soft:
            self.frame.env.vars[path] = UNKNOWN if instead is None else instead
        elif not kept and instead is not None and isinstance(value, Tensor) and not value.intermediate:
            self.frame.env.vars[path] = instead  # an argument that was only taken for a tensor
        elif instead is not None and (isinstance(value, Unknown) or isinstance(instead, Tensor) and _only_told(value)):
            self.frame.env.vars[path] = instead

    def is_instance(self, value: Value, wanted: Value) -> bool | None:
        raise NotImplementedError

    def instance_of(self, wanted: Value) -> Value | None:
        raise NotImplementedError


def _only_told(value: Value) -> bool:
    """Whether only an annotation says that the value is a list or a tuple."""
    return isinstance(value, Seq) and value.owner == "argument"


def derived(tensor: Tensor, dtype: str | None, rank: int | None = None, origin: str | None = None) -> Tensor:
    """A tensor computed from another one."""
    hypothesis = tensor.hypothesis
    if hypothesis is not None and hypothesis.confirmed:
        hypothesis = None
    return Tensor(dtype, rank, origin or tensor.origin, tensor.numpy, tensor.data_sized, hypothesis)


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
    from tsdyn_lint.infer.values import _worse

    origin = _worse(origins[0], origins[1])
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


def _is_none(value: Value) -> bool | None:
    if isinstance(value, Const):
        return value.value is None
    return None if isinstance(value, (Unknown, Method)) else False


def _constants(values: Sequence[Value]) -> list[Any] | None:
    """The plain values of constants, None if some value is none."""
    known = [v.value for v in values if isinstance(v, Const)]
    return known if len(known) == len(values) else None


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _path(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        inner = _path(node.value)
        return f"{inner}.{node.attr.value}" if inner else ""
    return ""


_HANDLERS: dict[type, Any] = {
    cst.Name: Expressions.name,
    cst.Integer: Expressions.integer,
    cst.Float: Expressions.float_,
    cst.Imaginary: Expressions.imaginary,
    cst.SimpleString: Expressions.string,
    cst.ConcatenatedString: Expressions.concatenated,
    cst.FormattedString: Expressions.formatted,
    cst.Attribute: Expressions.attribute,
    cst.UnaryOperation: Expressions.unary,
    cst.BooleanOperation: Expressions.boolean,
    cst.BinaryOperation: Expressions.binary_operation,
    cst.Comparison: Expressions.comparison,
    cst.List: Expressions.list_,
    cst.Tuple: Expressions.list_,
    cst.Set: Expressions.list_,
    cst.Dict: Expressions.dict_,
    cst.ListComp: Expressions.comprehension,
    cst.SetComp: Expressions.comprehension,
    cst.DictComp: Expressions.comprehension,
    cst.GeneratorExp: Expressions.comprehension,
    cst.Subscript: Expressions.subscript,
    cst.IfExp: Expressions.conditional,
    cst.Lambda: Expressions.lambda_,
    cst.NamedExpr: Expressions.walrus,
    cst.Yield: Expressions.yielded,
    cst.Await: Expressions.awaited,
    cst.Call: lambda self, node: self.call(node),
    cst.Ellipsis: lambda self, node: Const(...),
}

__all__ = ["BOOL", "CONSTANT_INT", "FLOAT", "SIZE", "Expressions", "Frame", "Iterable", "Partial", "derived"]
