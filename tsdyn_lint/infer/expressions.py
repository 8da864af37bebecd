"""Expressions -> values, with the events of reads, comparisons, indexing and formatting on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.containers import Containers
from tsdyn_lint.infer.events import ALL_ENGINES, POSSIBLE
from tsdyn_lint.infer.refine import path_of
from tsdyn_lint.infer.values import (
    FALSE,
    INT,
    NOTHING,
    STR,
    TRUE,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Func,
    Instance,
    Mapping,
    Method,
    ModuleRef,
    Outside,
    Scalar,
    Seq,
    SliceValue,
    SuperRef,
    Tensor,
    Unknown,
    Value,
    either,
    join,
    sources,
)
from tsdyn_lint.infer.walk import BUDGET, OutOfBudget
from tsdyn_lint.nodes import literal
from tsdyn_lint.resolve import Function

_BUILTIN_CONSTANTS = {"True": TRUE, "False": FALSE, "None": NOTHING, "__debug__": TRUE}


@lru_cache(maxsize=4096)
def _string(text: str) -> Value:
    try:
        return Const(literal(text))
    except (SyntaxError, ValueError):
        return STR


@lru_cache(maxsize=4096)
def _integer(text: str) -> Value:
    try:
        return Const(int(text.replace("_", ""), 0))
    except ValueError:
        return INT


@lru_cache(maxsize=4096)
def _builtin(name: str) -> Outside:
    return Outside(f"builtins.{name}")


_ABOUT = {
    **dict.fromkeys("shape size numel dtype device type is_cuda element_size stride".split(), "shape"),
    **dict.fromkeys("dim ndim new new_tensor".split(), "type"),
    **dict.fromkeys("new_zeros new_ones new_empty new_full".split(), "made"),
}
"""Attributes and methods of a tensor that read none of its values, and what they take of it."""


class Expressions(Containers):
    """`expr` evaluates; calls are in the classes that build on this one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._handlers: dict[type, Callable[[Any], Value]] = {
            kind: getattr(self, name) for kind, name in _HANDLERS.items()
        }

    def expr(self, node: cst.CSTNode) -> Value:
        self.steps += 1
        if self.steps > BUDGET:
            raise OutOfBudget
        handler = self._handlers.get(type(node))
        return UNKNOWN if handler is None else handler(node)

    # --- names and constants

    def name(self, node: cst.Name) -> Value:
        env = self.frame.env
        value = env.vars.get(node.value) if env.read is None else None  # most are found at once
        if value is None or env.globals_:
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
        return _builtin(name) if value is None else value

    def dotted_value(self, dotted: str) -> Value:
        """What an absolute dotted name stands for."""
        found = self.program.find(dotted, self.frame.function.module)
        if isinstance(found, str):
            return Outside(found)
        return self.definition_value(found, self.frame.function.module, dotted.rpartition(".")[2])

    def integer(self, node: cst.Integer) -> Value:
        return _integer(node.value)

    def float_(self, node: cst.Float) -> Value:
        return Const(float(node.value.replace("_", "")))

    def imaginary(self, node: cst.Imaginary) -> Value:
        return Scalar("number", "constant")

    def string(self, node: cst.SimpleString) -> Value:
        return _string(node.value)

    def concatenated(self, node: cst.ConcatenatedString) -> Value:
        left, right = self.expr(node.left), self.expr(node.right)
        if isinstance(left, Const) and isinstance(right, Const) and type(left.value) is type(right.value):
            return Const(left.value + right.value)
        return STR

    def formatted(self, node: cst.FormattedString) -> Value:
        src: frozenset[Any] = frozenset()
        for part in node.parts:
            if type(part) is cst.FormattedStringExpression:
                value = self.expr(part.expression)
                self.formats(value, part.expression, "f-string")
                self.use(value, "format", node)
                src |= sources(value)
                for inner in part.format_spec or ():
                    if isinstance(inner, cst.FormattedStringExpression):
                        self.expr(inner.expression)
        return Scalar("str", "unknown", src)

    # --- attributes

    def attribute(self, node: cst.Attribute) -> Value:
        env = self.frame.env
        path = path_of(node) if env.refined or env.read is not None else ""
        if path:
            if env.read is not None:
                env.read.add(path)
            known = env.vars.get(path)
            if known is not None:
                self.touch(node.attr.value)
                if self.tracked and path not in self.frame.rebuilt:
                    with self.quietly():
                        owner = self.expr(node.value)
                    return self.track(id(owner), node.attr.value, known, node)
                return known
        part, self.part = self.part, node.value
        owner = self.expr(node.value)
        self.part = part
        if type(owner) is Tensor:
            if type(node.value) is cst.BinaryOperation:
                self.hint_operands(node.value)
            elif type(node.value) is cst.Attribute and node.attr.value in _ABOUT:
                self.data_read_for(node.value, _ABOUT[node.attr.value])
        return self.get(owner, node.attr.value, node)

    def type_asked(self, node: cst.CSTNode) -> None:
        """`self.window.device`, `x.data.type()`: no value is looked at."""
        self.data_read_for(node, "type")
        self.only_asked(node)

    def data_read_for(self, node: cst.CSTNode, use: str) -> None:
        """Tell a read of `x.data` that it is for the tensor's type, rank or shape, and not for its values."""
        if type(node) is cst.Attribute and node.attr.value == "data":
            event = self.event_at("tensor-attr", node, "data")
            if event is not None:
                event.facts["use"] = use

    def hint_operands(self, node: cst.BinaryOperation) -> None:
        """`(a + b).mean()`: one of them is a tensor, so where nothing more is known of either each may be it."""
        operands = [self.quiet(node.left), self.quiet(node.right)]
        tensors = [operand for operand in operands if isinstance(operand, Tensor)]
        if all(tensor.hypothesis is not None and not tensor.hypothesis.confirmed for tensor in tensors):
            for tensor in tensors:
                self.hint(tensor)

    def get(self, owner: Value, name: str, node: cst.CSTNode) -> Value:
        """`owner.name`."""
        # by type, the most common first: this is asked more often than anything but the values of names
        if type(owner) is Instance:
            return self.instance_attribute(owner, name, node)
        if type(owner) is Outside:
            return self.outside_attribute(owner.dotted, name)
        if type(owner) is Tensor:
            return self.tensor_attribute(owner, name, node)
        self.needs_value(owner, node)
        if isinstance(owner, Either):
            found = [self.get(o, name, node) for o in owner.options if not (isinstance(o, Const) and o.value is None)]
            return either(found) if found else UNKNOWN
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
                engines = frame.engines & flag.may if side else frame.engines - flag.sure
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
        if (
            flag is not None
            and len(found) == 2
            and Engine.DYNAMO in frame.engines & (flag.sure | ALL_ENGINES - flag.may)
        ):
            return found[0 if Engine.DYNAMO in flag.sure else 1]
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
        function = Function("<lambda>", node, self.frame.function.module, None, self.frame.function)
        self.closures.append(self.frame.env)
        return Func(function, None, self.frame.env)

    def walrus(self, node: cst.NamedExpr) -> Value:
        value = self.expr(node.value)
        self.bind(node.target, value)
        return value

    def yielded(self, node: cst.Yield) -> Value:
        value = node.value
        if type(value) is cst.From:
            self.frame.yields.append(self.iterate(self.expr(value.item), node, "loop"))
        else:
            self.frame.yields.append(NOTHING if value is None else self.expr(value))
        return UNKNOWN

    def awaited(self, node: cst.Await) -> Value:
        return self.expr(node.expression)

    def ellipsis(self, _: cst.Ellipsis) -> Value:
        return Const(...)

    def call(self, node: cst.Call) -> Value:
        raise NotImplementedError


_HANDLERS = {
    cst.Name: "name",
    cst.Integer: "integer",
    cst.Float: "float_",
    cst.Imaginary: "imaginary",
    cst.SimpleString: "string",
    cst.ConcatenatedString: "concatenated",
    cst.FormattedString: "formatted",
    cst.Attribute: "attribute",
    cst.UnaryOperation: "unary",
    cst.BooleanOperation: "boolean",
    cst.BinaryOperation: "binary_operation",
    cst.Comparison: "comparison",
    cst.List: "list_",
    cst.Tuple: "list_",
    cst.Set: "list_",
    cst.Dict: "dict_",
    cst.ListComp: "comprehension",
    cst.SetComp: "comprehension",
    cst.DictComp: "comprehension",
    cst.GeneratorExp: "comprehension",
    cst.Subscript: "subscript",
    cst.IfExp: "conditional",
    cst.Lambda: "lambda_",
    cst.NamedExpr: "walrus",
    cst.Yield: "yielded",
    cst.Await: "awaited",
    cst.Call: "call",
    cst.Ellipsis: "ellipsis",
}
