"""Expressions: names, operators, conditions with their refinements, containers, subscripts, attributes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.parse import Piece
from tsdyn_lint.resolve import Class, Function
from tsdyn_lint.script import types as t
from tsdyn_lint.script.compiler import CERTAIN, LIKELY, POSSIBLE, Compiler
from tsdyn_lint.script.pyvalues import Cls, Const, Ext, Fn, Inst, Lam, Map, Mod, Obj, Seq, Ten, Unk, literal
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
LEGACY = frozenset(
    f"{kind}Tensor"
    for kind in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Char", "Bool", "BFloat16")
)
Refine = list[tuple[str, t.Type]]
_NO: Refine = []
_BUILTIN_NAMES = frozenset(dir(builtins))
_LAYOUTS = frozenset(
    {
        "strided",
        "contiguous_format",
        "channels_last",
        "channels_last_3d",
        "preserve_format",
        "sparse_coo",
        "sparse_csr",
        "per_tensor_affine",
    }
)
_MATH = {name: t.FLOAT for name in dir(math) if isinstance(getattr(math, name), float)}


class Expressions:
    """The part of `Body` that gives expressions their values."""

    def __init__(self, compiler: Compiler, function: Function, inst: Inst | None, piece: Piece) -> None:
        self.compiler, self.function, self.inst, self.piece = compiler, function, inst, piece
        self.data = compiler.data
        self.scopes: list[dict[str, V]] = [{}]
        self.annotated: dict[str, t.Type] = {}
        self.none_parameters: set[str] = set()
        self.undecided = False
        """Whether the condition just read is one that the compiler folds, by a type that is not known here."""

    # --- problems and descriptions

    def fail(self, cause: str, node: cst.CSTNode, confidence: int = CERTAIN, **facts: Any) -> V:
        self.compiler.report(cause, node, self.piece, self.function, confidence, **facts)
        return REFUSED

    def source(self, node: cst.CSTNode) -> str:
        text = _text(node, self.piece)
        return text if len(text) <= 60 else text[:57] + "..."

    def describe(self, value: V) -> str:
        if value.type is not None:
            return str(value.type)
        py = value.py
        if isinstance(py, Inst):
            return f"module {py.name}"
        if isinstance(py, Fn):
            return f"function {py.function.name}"
        if isinstance(py, Cls):
            return f"class {py.cls.name}"
        if isinstance(py, Ext):
            return py.dotted.removeprefix("builtins.")
        if isinstance(py, Obj):
            return py.name
        if isinstance(py, Const):
            return type(py.value).__name__
        if isinstance(py, Seq):
            return py.kind
        if isinstance(py, Map):
            return "dict"
        return value.word or "value"

    def type_of(self, value: V, node: cst.CSTNode) -> t.Type:
        """The value's type; what is no value is reported."""
        if value.type is not None:
            return value.type
        py = value.py
        if isinstance(py, Inst):
            return self.compiler.module_type(py)
        if value.items is not None and not value.word:
            kinds = [self.type_of(i, node) for i in value.items]
            return t.UNKNOWN if any(k is t.UNKNOWN for k in kinds) else t.Tuple(kinds)
        if value.word in ("range", "zip", "enumerate"):
            if value.word == "range":
                self.fail("not-a-value", node, what="range")
            return t.UNKNOWN
        if value.word == "global":
            self.fail("global", node, name=self.source(node), type=self.describe(value))
            return t.UNKNOWN
        if isinstance(py, Ext) and py.dotted.startswith("torch.") and py.dotted.rpartition(".")[2] in LEGACY:
            self.fail("not-a-value", node, what=py.dotted)
            return t.UNKNOWN
        if (
            isinstance(py, (Fn, Cls))
            or (isinstance(py, Ext) and self._known_function(py.dotted))
            or value.word == "method"
        ):
            self.fail(
                "not-a-value", node, what=self.describe(value) if value.word != "method" else f"method {value.const}"
            )
        return t.UNKNOWN

    def _known_function(self, dotted: str) -> bool:
        if dotted.startswith("builtins."):
            return hasattr(builtins, dotted[9:])
        return dotted in self.data.names or dotted in self.data.functions

    # --- names

    def find(self, name: str) -> V | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def expr(self, node: cst.CSTNode, hint: t.Type = t.UNKNOWN) -> V:
        kind = type(node)
        if kind is cst.Name:
            return self._name(node)  # type: ignore[arg-type]
        if kind in (cst.List, cst.Dict, cst.ListComp, cst.DictComp, cst.Tuple, cst.Call):
            return _HINTED[kind](self, node, hint)
        handler = _HANDLERS.get(kind)
        return handler(self, node) if handler is not None else UNKNOWN

    def _name(self, node: cst.Name) -> V:
        name = node.value
        found = self.find(name)
        if found is not None:
            if found.error is not None:
                cause, facts = found.error
                facts = dict(facts)
                confidence = facts.pop("confidence", CERTAIN)
                # torch names the `if` that gives the name no type, or none at all
                self.fail(cause, facts.pop("at", node), confidence, **facts)
                return REFUSED
            return found
        if name == "None":
            return V(t.NONE, const=None)
        if name in ("True", "False"):
            return V(t.BOOL, const=name == "True")
        return self._global(node, name)

    def _global(self, node: cst.Name, name: str) -> V:
        module = self.function.module
        hidden = self.compiler.wrapping(self.function)
        if hidden is not None and not hidden.knows(name):
            self.compiler.report(
                "decorated-name",
                hidden.node,
                self.function.header_piece,
                self.function,
                name=name,
                decorator=hidden.name,
                callee=self.function.name,
            )
            return REFUSED
        value = self.compiler.builder.global_value(module, name)
        if isinstance(value, Ext):
            if value.dotted.startswith("builtins."):
                if name not in _BUILTIN_NAMES:
                    if module.stars or name.startswith("__"):
                        return UNKNOWN
                    return self.fail("undefined-name", node, name=name)
                return V(py=value, word="builtin")
            head, _, tail = value.dotted.rpartition(".")
            if head == "math" and tail in _MATH:
                return V(py=Const(0.0), word="global")
            return V(py=value, word="global" if head == "torch" and tail in self.data.dtypes else "")
        if isinstance(value, (Const, Seq, Map, Ten)):
            return V(py=value, word="global")
        if isinstance(value, Obj):
            return UNKNOWN if value.name == "method" else V(py=value, word="global")
        if isinstance(value, Lam):
            return V(py=value, word="lambda", error=self.compiler.value(value).error)
        if isinstance(value, Unk):
            return UNKNOWN
        return V(py=value)

    # --- literals

    def _integer(self, node: cst.Integer) -> V:
        return V(t.INT, const=literal(node.value))

    def _float(self, node: cst.Float) -> V:
        return V(t.FLOAT, const=literal(node.value))

    def _string(self, node: cst.SimpleString) -> V:
        return V(t.STR, const=literal(node.value))

    def _concatenated(self, node: cst.ConcatenatedString) -> V:
        return V(t.STR)

    def _imaginary(self, node: cst.Imaginary) -> V:
        return V(t.COMPLEX)

    def _formatted(self, node: cst.FormattedString) -> V:
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                value = self.expr(part.expression)
                self.type_of(value, part.expression)
        return V(t.STR)

    def _tuple(self, node: cst.Tuple, hint: t.Type) -> V:
        values: list[V] = []
        unknown = False
        for element in node.elements:
            value = self.expr(element.value)
            if isinstance(element, cst.StarredElement):
                parts = self.spread(value, element)
                if parts is None:
                    unknown = True
                else:
                    values += parts
            else:
                values.append(value)
        if unknown:
            return UNKNOWN
        if all(v.type is not None for v in values):
            soft = any(v.soft for v in values)
            return V(t.Tuple(v.type for v in values if v.type is not None), items=values, soft=soft)
        for value, element in zip(values, node.elements, strict=False):
            if value.type is None and not isinstance(value.py, Inst):
                self.type_of(value, element.value)
        values = [as_value(v) for v in values]
        return V(t.UNKNOWN if any(v.type is t.UNKNOWN for v in values) else None, items=values)

    def _list(self, node: cst.List, hint: t.Type) -> V:
        wanted = t.strip_none(hint)
        inner = wanted.args[0] if wanted.kind == "List" else t.UNKNOWN
        kinds: list[t.Type] = []
        soft = False
        for element in node.elements:
            value = self.expr(element.value, inner)
            soft = soft or value.soft
            if isinstance(element, cst.StarredElement):
                parts = self.spread(value, element)
                kinds += [t.UNKNOWN] if parts is None else [self.type_of(p, element.value) for p in parts]
            else:
                kinds.append(self.type_of(value, element.value))
        if not kinds:
            return V(
                wanted if wanted.kind == "List" else t.List(t.TENSOR), word="" if wanted.kind == "List" else "empty"
            )
        if inner is not t.UNKNOWN and all(t.converts(k, inner, False) for k in kinds):
            return V(wanted, soft=soft)
        return V(t.List(self._common(kinds)), soft=soft, const=MISSING)

    def _common(self, kinds: Sequence[t.Type]) -> t.Type:
        """The element type of a literal: what all unify to, else a union of them."""
        joined: t.Type | None = kinds[0]
        for kind in kinds[1:]:
            joined = t.unify(joined, kind) if joined is not None else None
        return t.Union(kinds) if joined is None else joined

    def one_type(self, values: Sequence[V], node: cst.CSTNode) -> None:
        """Reports elements that have no type in common."""
        kinds = [self.type_of(value, node) for value in values]
        joined: t.Type | None = kinds[0] if kinds else None
        for kind in kinds[1:]:
            joined = t.unify(joined, kind) if joined is not None else None
        if kinds and joined is None:
            self.fail(
                "mixed-container", node, what="elements", types=", ".join(sorted({self._short(k) for k in kinds}))
            )

    def _dict(self, node: cst.Dict, hint: t.Type) -> V:
        wanted = t.strip_none(hint)
        keys: list[t.Type] = []
        values: list[t.Type] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                keys.append(self.type_of(self.expr(element.key), element.key))
                inner = wanted.args[1] if wanted.kind == "Dict" else t.UNKNOWN
                values.append(self.type_of(self.expr(element.value, inner), element.value))
        if not keys:
            return V(
                wanted if wanted.kind == "Dict" else t.Dict(t.STR, t.TENSOR),
                word="" if wanted.kind == "Dict" else "empty",
            )
        if wanted.kind == "Dict" and all(t.converts(v, wanted.args[1], False) for v in values):
            return V(wanted)
        key = self._common(keys)
        if key.kind in ("Union", "Optional", "List", "Tuple"):
            return self.fail("mixed-container", node, what="keys", types=", ".join(sorted({str(k) for k in keys})))
        return V(t.Dict(key, self._common(values)))

    def _list_comp(self, node: cst.ListComp, hint: t.Type) -> V:
        wanted = t.strip_none(hint)
        inner = wanted.args[0] if wanted.kind == "List" else t.UNKNOWN
        loop = node.for_in
        iterable = self.expr(loop.iter)
        items = self.static_items(iterable)
        self.scopes.append({})
        try:
            if items is not None:
                kinds = []
                for item in items[:8]:
                    self._bind_target(loop.target, item, node)
                    kinds.append(self.type_of(self.expr(node.elt, inner), node.elt))
                if not kinds:
                    return V(t.List(t.TENSOR))
                first = kinds[0]
                for kind in kinds[1:]:
                    if t.unify(first, kind) is None:
                        return self.fail(
                            "mixed-container", node, what="elements", types=", ".join(sorted({str(k) for k in kinds}))
                        )
                return V(t.List(self._common(kinds)))
            self._bind_target(loop.target, self.element(iterable, loop.iter), node)
            return V(t.List(self.type_of(self.expr(node.elt, inner), node.elt)))
        finally:
            self.scopes.pop()

    def _generator(self, node: cst.GeneratorExp) -> V:
        return self._list_comp(node, t.UNKNOWN)  # type: ignore[arg-type]

    def _dict_comp(self, node: cst.DictComp, hint: t.Type) -> V:
        iterable = self.expr(node.for_in.iter)
        items = self.static_items(iterable)
        self.scopes.append({})
        try:
            element = items[0] if items else UNKNOWN if items is not None else self.element(iterable, node.for_in.iter)
            self._bind_target(node.for_in.target, element, node)
            key = self.type_of(self.expr(node.key), node.key)
            value = self.type_of(self.expr(node.value), node.value)
            return V(t.Dict(key, value))
        finally:
            self.scopes.pop()

    def _bind_target(self, target: cst.CSTNode, value: V, node: cst.CSTNode) -> None:
        """A comprehension's own variables."""
        if isinstance(target, cst.Name):
            self.scopes[-1][target.value] = value
        else:
            self.store(target, value, node)

    def store(self, target: cst.CSTNode, value: V, node: cst.CSTNode) -> None:
        raise NotImplementedError

    # --- iteration

    def static_items(self, value: V) -> list[V] | None:
        """The items of what the compiler unrolls: tuples, modules, and zip or enumerate over one of them."""
        if value.items is not None:
            return value.items
        py = value.py
        if (
            isinstance(py, Inst)
            and py.children is not None
            and py.container in ("ModuleList", "Sequential", "ParameterList", "ModuleDict")
        ):
            if py.container == "ModuleDict":
                return [V(t.STR, const=k) for k in py.children]
            return self.compiler.children(py)
        if value.type is not None and value.type.kind == "Tuple":
            return [V(a) for a in value.type.args]
        return None

    def element(self, value: V, node: cst.CSTNode) -> V:
        """What iterating gives each time, where the compiler emits a loop."""
        if value.elem is not None:
            return value.elem
        kind = value.type
        if kind is None:
            if isinstance(value.py, Inst):
                if value.py.container:
                    return UNKNOWN
                return self.fail("not-iterable", node, type=self.describe(value))
            if value.word == "global":
                self.type_of(value, node)
                return UNKNOWN
            return UNKNOWN
        if kind is t.UNKNOWN:
            return UNKNOWN
        if kind.kind == "List":
            return V(kind.args[0])
        if kind.kind == "Dict":
            return V(kind.args[0])
        if kind is t.TENSOR:
            return V(t.TENSOR)
        if kind is t.STR:
            return V(t.STR)
        if kind.kind in ("Class", "Any", "Var", "Future", "Module"):
            return UNKNOWN
        return self.fail("not-iterable", node, LIKELY if value.soft else CERTAIN, type=str(kind))

    def spread(self, value: V, node: cst.CSTNode) -> list[V] | None:
        """`*value` in a call or a literal; a list's length is not known to the compiler."""
        if value.items is not None:
            return value.items
        kind = value.type
        if value.word == "range" or isinstance(value.py, Inst):
            self.fail("unpack", node, what="not a tuple", type=self.describe(value), count="")
            return None
        if kind is None:
            return self.static_items(value)
        if kind.kind == "Tuple":
            return [V(a) for a in kind.args]
        if kind is t.UNKNOWN:
            return None
        if kind.kind == "List":
            self.fail("unsized", node, what="`*` on a list", type=str(kind))
        elif kind is t.TENSOR:
            self.fail("unpack", node, what="not a tuple", type=str(kind), count="")
        else:
            self.fail("unpack", node, what="not a tuple", type=str(kind), count="")
        return None

    # --- operators

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
            if a is t.TENSOR or b is t.TENSOR:
                other = b if a is t.TENSOR else a
                return (
                    V(t.TENSOR)
                    if other is t.UNKNOWN and op not in ("*", "+") and op not in ("in", "is", "is not")
                    else UNKNOWN
                )
            return UNKNOWN
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
            return self._overloaded(op, a, b, node, soft)
        return V(result, soft=soft)  # type: ignore[arg-type]

    def _operator_problem(self, op: str, left: V, right: V, a: t.Type, b: t.Type, node: cst.CSTNode, soft: bool) -> V:
        confidence = LIKELY if soft else CERTAIN
        for kind, _value in ((a, left), (b, right)):
            if kind.kind == "Optional" or kind is t.NONE:
                return self.fail("optional", node, confidence, type=str(kind), op=op)
        return self.fail("operator", node, confidence, op=op, left=str(a), right=str(b))

    def _overloaded(self, op: str, a: t.Type, b: t.Type, node: cst.CSTNode, soft: bool) -> V:
        """Types that the generator did not try with every operator."""
        compares = op in ("==", "!=", "is", "is not", "in")
        for kind in (a, b):
            if kind.kind == "Union" and not t.NUMERIC.issuperset(kind.args) and not compares:
                return self.fail(
                    "operator", node, LIKELY if soft else CERTAIN, op=op, left=self._short(a), right=self._short(b)
                )
            if kind.kind == "Optional" and not t.has_unknown(kind) and not compares:
                return self.fail("optional", node, LIKELY if soft else CERTAIN, type=str(kind), op=op)
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

    def _operands(self, op: str, a: t.Type, b: t.Type, node: cst.CSTNode, soft: bool) -> V:
        confidence = LIKELY if soft else CERTAIN
        return self.fail("operator", node, confidence, op=op, left=self._short(a), right=self._short(b))

    def _short(self, kind: t.Type) -> str:
        return f"module {kind.extra.name}" if kind.kind == "Module" else str(kind)

    def _comparison(self, node: cst.Comparison) -> V:
        found = self._none_test(node) if len(node.comparisons) == 1 else None
        if found is not None:
            return V(t.BOOL, const=found[0] if found[0] is not None else MISSING)
        return self._plain_comparison(node)

    def _compare(
        self, operator: cst.BaseCompOp, left: V, right: V, ln: cst.CSTNode, rn: cst.CSTNode, node: cst.CSTNode
    ) -> V:
        op = _OPERATORS[type(operator)]
        if op in ("is", "is not"):
            for value, part in ((left, ln), (right, rn)):
                if isinstance(value.py, (Cls, Ext, Fn)) and value.type is None:
                    self.type_of(value, part)
            return V(t.BOOL)
        if op == "in" and isinstance(right.py, Inst):
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

    def _boolean(self, node: cst.BooleanOperation) -> V:
        truth, _, _ = self.condition(node)
        return V(t.BOOL, const=truth if truth is not None else MISSING)

    def _ifexp(self, node: cst.IfExp) -> V:
        truth, then_refine, else_refine = self.condition(node.test)
        if truth is not None:
            self.scopes.append({})
            self.apply(then_refine if truth else else_refine)
            value = self.expr(node.body if truth else node.orelse)
            self.scopes.pop()
            return value
        self.scopes.append({})
        self.apply(then_refine)
        a = self.expr(node.body)
        ta = self.type_of(a, node.body)
        self.scopes.pop()
        self.scopes.append({})
        self.apply(else_refine)
        b = self.expr(node.orelse)
        tb = self.type_of(b, node.orelse)
        self.scopes.pop()
        joined = t.unify(ta, tb)
        if joined is None:
            return self.fail(
                "ternary-types", node, LIKELY if a.soft or b.soft else CERTAIN, then=str(ta), other=str(tb)
            )
        return V(joined, soft=a.soft or b.soft)

    # --- conditions

    def apply(self, refine: Refine) -> None:
        for name, kind in refine:
            known = self.find(name)
            if known is not None:
                self.scopes[-1][name] = V(kind, soft=known.soft)

    def condition(self, node: cst.CSTNode, loop: bool = False) -> tuple[bool | None, Refine, Refine]:
        """(truth if the compiler folds it, what holds where it is true, what holds where it is false)."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            truth, yes, no = self.condition(node.expression)
            return (None if truth is None else not truth), no, yes
        if isinstance(node, cst.BooleanOperation):
            return self._logical(node)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            found = self._none_test(node)
            if found is not None:
                return found
        if isinstance(node, cst.Call):
            found = self._type_test(node)
            if found is not None:
                return found
        value = self.expr(node) if not isinstance(node, cst.Comparison) else self._plain_comparison(node)
        if isinstance(value.const, bool):
            return value.const, _NO, _NO
        self.boolean(value, node)
        return None, _NO, _NO

    def _plain_comparison(self, node: cst.Comparison) -> V:
        left = self.expr(node.left)
        result = UNKNOWN
        for target in node.comparisons:
            right = self.expr(target.comparator)
            result = self._compare(target.operator, left, right, node.left, target.comparator, node)
            left = right
        return result

    def _logical(self, node: cst.BooleanOperation) -> tuple[bool | None, Refine, Refine]:
        is_and = isinstance(node.operator, cst.And)
        truth, yes, no = self.condition(node.left)
        self.scopes.append({})
        self.apply(yes if is_and else no)
        # compiled even where the left side decides
        truth_right, yes_right, no_right = self.condition(node.right)
        self.scopes.pop()
        if truth is not None and truth != is_and:
            return truth, yes, no
        if truth is not None:
            return truth_right, [*yes, *yes_right], [*no, *no_right]
        if is_and:
            return (False if truth_right is False else None), [*yes, *yes_right], _NO
        return (True if truth_right is True else None), _NO, [*no, *no_right]

    def _none_test(self, node: cst.Comparison) -> tuple[bool | None, Refine, Refine] | None:
        target = node.comparisons[0]
        if not isinstance(target.operator, (cst.Is, cst.IsNot)):
            return None
        subject, other = node.left, target.comparator
        if isinstance(subject, cst.Name) and subject.value == "None":
            subject, other = other, subject
        if not (isinstance(other, cst.Name) and other.value == "None"):
            return None
        value = self.expr(subject)
        positive = isinstance(target.operator, cst.Is)
        if value.type is t.UNKNOWN:
            self.undecided = True
            refine = [(subject.value, t.UNKNOWN)] if isinstance(subject, cst.Name) else _NO
            return None, refine, refine
        if value.type is t.NONE:
            return positive, _NO, _NO
        kind = value.type
        if kind is None:
            self.type_of(value, subject)  # a module compares with None, a function does not
            return None if value.word == "global" else not positive, _NO, _NO
        if not t.accepts_none(kind) or kind is t.ANY:
            if isinstance(subject, cst.Name) and subject.value in self.none_parameters and len(self.scopes) == 1:
                self.fail("none-default", node, CERTAIN if self.compiler.called else POSSIBLE, name=subject.value)
            return (not positive if kind is not t.ANY else None), _NO, _NO
        some: Refine = [(subject.value, t.strip_none(kind))] if isinstance(subject, cst.Name) else _NO
        none: Refine = [(subject.value, t.NONE)] if isinstance(subject, cst.Name) else _NO
        return None, none if positive else some, some if positive else none

    def _type_test(self, node: cst.Call) -> tuple[bool | None, Refine, Refine] | None:
        """`isinstance`, `hasattr`, `is_scripting()`: the tests that the compiler answers itself."""
        func = node.func
        if (
            isinstance(func, cst.Name)
            and func.value == "isinstance"
            and self.find("isinstance") is None
            and len(node.args) == 2
        ):
            return self._isinstance(node)
        if (
            isinstance(func, cst.Name)
            and func.value == "hasattr"
            and self.find("hasattr") is None
            and len(node.args) == 2
        ):
            return self._hasattr(node)
        dotted = self.function.module.dotted(func)
        if dotted in ("torch.jit.is_scripting", "torch._jit_internal.is_scripting"):
            return True, _NO, _NO
        if dotted in ("torch.jit.is_tracing", "torch.compiler.is_compiling", "torch._dynamo.is_compiling"):
            return (False if dotted != "torch.jit.is_tracing" else None), _NO, _NO
        return None

    def _isinstance(self, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        value = self.expr(node.args[0].value)
        wanted = node.args[1].value
        options = [e.value for e in wanted.elements] if isinstance(wanted, cst.Tuple) else [wanted]
        kinds: list[t.Type] = []
        modules: list[Class | str] = []
        for option in options:
            if isinstance(option, cst.Call):
                self.fail("annotation", node, reason="isinstance takes type names", name="isinstance")
                return None, _NO, _NO
            module = self._module_class(option)
            if module is not None:
                modules.append(module)
                continue
            kind = self._tested_type(option, node)
            if kind is None:
                text = self.source(option)
                self.undecided = True
                self.fail("annotation", node, reason=f"unknown type name '{text}'", name="isinstance")
                return None, _NO, _NO
            kinds.append(kind)
        unseen = [m for m in modules if not self.compiler.module_types(m)]
        if unseen:
            return self._no_module_type(unseen[0], node)
        if isinstance(value.py, Inst):
            return self._module_isinstance(value.py, modules)
        return self._value_isinstance(value, node, kinds)

    def _module_class(self, option: cst.BaseExpression) -> Class | str | None:
        """The module class that an option of `isinstance` names: of the program, or torch's by its dotted name."""
        if isinstance(option, cst.Name) and self.find(option.value) is not None:
            return None
        found = self.compiler.program.resolve(option, self.function.module)
        if isinstance(found, Class):
            return found if self.compiler.program.is_nn_module(found) else None
        dotted = self.function.module.dotted(option) or ""
        plain = dotted.rpartition(".")[2] in ("Parameter", "Buffer", "UninitializedParameter")
        return dotted if dotted.startswith("torch.nn.") and not plain else None

    def _no_module_type(self, cls: Class | str, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        """A module class is a type name once an instance of just that class was compiled, and unknown before."""
        name = cls if isinstance(cls, str) else cls.name
        self.undecided = True
        if not self.compiler.may_hold(cls):
            self.fail("annotation", node, LIKELY, reason=f"unknown type name '{name}'", name="isinstance")
        return None, _NO, _NO

    def _value_isinstance(self, value: V, node: cst.Call, kinds: list[t.Type]) -> tuple[bool | None, Refine, Refine]:
        actual = value.type
        if actual is None or actual is t.UNKNOWN or t.UNKNOWN in kinds:
            self.undecided = True
            return None, _NO, _NO
        parts = (
            actual.args
            if actual.kind == "Union"
            else (actual.args[0], t.NONE)
            if actual.kind == "Optional"
            else (actual,)
        )
        if actual is t.ANY:
            refine = (
                [(node.args[0].value.value, kinds[0])]
                if isinstance(node.args[0].value, cst.Name) and len(kinds) == 1
                else _NO
            )
            return None, refine, _NO
        fits = [self._instance_of(p, kinds) for p in parts]
        if all(fits):
            return True, _NO, _NO
        if not any(fits):
            return False, _NO, _NO
        if isinstance(node.args[0].value, cst.Name):
            name = node.args[0].value.value
            yes = t.Union(p for p, f in zip(parts, fits, strict=False) if f)
            no = t.Union(p for p, f in zip(parts, fits, strict=False) if not f)
            return None, [(name, yes)], [(name, no)]
        return None, _NO, _NO

    def _instance_of(self, kind: t.Type, wanted: list[t.Type]) -> bool:
        for one in wanted:
            if one.kind == "AnyList" and kind.kind == "List":
                return True
            if one.kind == "AnyTuple" and kind.kind == "Tuple":
                return True
            if one.kind == "AnyDict" and kind.kind == "Dict":
                return True
            if t.is_subtype(kind, one):
                return True
        return False

    def _tested_type(self, node: cst.BaseExpression, call: cst.Call) -> t.Type | None:
        dotted = self.function.module.dotted(node)
        if dotted in ("list", "tuple", "dict"):
            return {"list": t.Type("AnyList"), "tuple": t.Type("AnyTuple"), "dict": t.Type("AnyDict")}[dotted]
        if dotted in ("torch.autograd.Variable", "torch.autograd.variable.Variable"):
            return t.Type("Class", (), "Variable")  # no value has this type
        if dotted in ("torch.Tensor", "torch.nn.Parameter"):
            return t.TENSOR if dotted != "torch.nn.Parameter" else t.UNKNOWN
        if dotted in ("int", "float", "bool", "str", "complex"):
            return {"int": t.INT, "float": t.FLOAT, "bool": t.BOOL, "str": t.STR, "complex": t.COMPLEX}[dotted]
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        if isinstance(root, cst.Name) and self.find(root.value) is not None:
            return None  # only names from outside of the function are looked up as types
        if isinstance(self.compiler.program.resolve(node, self.function.module), Class):
            return t.UNKNOWN
        name = dotted or ""
        if name.startswith("torch.") and name.rpartition(".")[2] in LEGACY:
            return t.TENSOR
        if name.startswith(("numpy.", "collections.", "typing.", "numbers.", "torch.Size")) or name in (
            "set",
            "frozenset",
            "type",
            "range",
            "slice",
            "bytes",
            "object",
            "dict_keys",
        ):
            self.fail("annotation", call, reason=f"unknown type name '{name}' in isinstance", name="isinstance")
        return t.UNKNOWN

    def _module_isinstance(self, inst: Inst, options: Sequence[Class | str]) -> tuple[bool | None, Refine, Refine]:
        """A module against classes: by the type that the first instance of each class got, bases aside."""
        for option in options:
            types = self.compiler.module_types(option)
            if inst in types:
                if len(types) > 1:
                    self.undecided = True
                    return None, _NO, _NO
                return True, _NO, _NO
        return False, _NO, _NO

    def _hasattr(self, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        owner = self.expr(node.args[0].value)
        name_node = node.args[1].value
        if owner.type is t.TENSOR:
            self.fail("hasattr", node, type="Tensor")
            return None, _NO, _NO
        if not isinstance(name_node, cst.SimpleString):
            return None, _NO, _NO
        name = str(name_node.evaluated_value)
        inst = owner.py
        if isinstance(inst, Inst):
            if name in inst.maybe or (inst.open and name not in inst.attrs):
                self.undecided = True
                return None, _NO, _NO
            return not isinstance(self.compiler.attribute(inst, name), tuple), _NO, _NO
        return None, _NO, _NO

    def boolean(self, value: V, node: cst.CSTNode) -> None:
        """A value used as a condition must convert to bool."""
        if value.type is None and not isinstance(value.py, Inst):
            if value.word == "global" or isinstance(value.py, (Fn, Cls)):
                self.type_of(value, node)
            return
        kind = self.type_of(value, node)
        if kind in (t.BOOL, t.TENSOR, t.INT, t.FLOAT, t.UNKNOWN, t.NUMBER):
            return
        if kind.kind in ("Optional", "NoneType", "Module", "Union", "Tuple") or kind in (t.COMPLEX, t.DEVICE):
            if t.has_unknown(kind) and kind.kind != "Optional":
                return
            if kind.kind == "Optional" and kind.args[0] is t.UNKNOWN:
                return
            self.fail("condition", node, LIKELY if value.soft else CERTAIN, type=self._short(kind))

    # --- attributes

    def _attribute(self, node: cst.Attribute) -> V:
        owner = self.expr(node.value)
        return self.attribute(owner, node.attr.value, node)

    def attribute(self, owner: V, name: str, node: cst.CSTNode) -> V:
        kind = owner.type
        if kind is not None:
            return self._member(owner, kind, name, node)
        py = owner.py
        if isinstance(py, Inst):
            return self._module_attribute(py, name, node)
        if isinstance(py, Obj) and owner.word != "global":
            return UNKNOWN
        if owner.word == "global":
            if isinstance(py, (Seq, Map, Obj, Const, Ten)):
                return self.fail(
                    "global-attribute",
                    node,
                    name=self.source(node),
                    type=self.describe(owner) if not isinstance(py, Ten) else "Tensor",
                )
            return UNKNOWN
        if isinstance(py, Ext):
            return self._external(py.dotted, name, node)
        if isinstance(py, Mod):
            value = self.compiler.builder.attribute(py, name)
            if isinstance(value, Const):
                return self.compiler.value(value)
            if isinstance(value, (Seq, Map)):
                return V(py=value, word="global")
            return V(py=value) if not isinstance(value, (Unk, Ten)) else UNKNOWN
        if isinstance(py, Cls):
            value = self.compiler.builder.attribute(py, name)
            if isinstance(value, Fn):
                return V(py=value)
            if name == "apply" and "script" in self.compiler.torch.verdicts("torch.autograd.Function.apply"):
                if any(b.endswith("autograd.Function") for b in self.compiler.program.outside_bases(py.cls)):
                    return self.fail("autograd-function", node, name=self.source(node))
            enum = any(b.startswith("enum.") for b in self.compiler.program.outside_bases(py.cls))
            if isinstance(value, (Const, Seq, Map, Ten)) and not enum:
                return V(py=value, word="global")
            return UNKNOWN
        return UNKNOWN

    def _external(self, dotted: str, name: str, node: cst.CSTNode) -> V:
        full = f"{dotted}.{name}"
        if dotted == "torch":
            if name in self.data.dtypes or name in _LAYOUTS:
                return V(t.INT)
            if name in ("pi", "inf", "nan", "e"):
                return V(t.FLOAT)
        if dotted in ("math", "numpy", "cmath") and name in ("pi", "e", "inf", "nan", "tau", "euler_gamma"):
            return V(t.FLOAT)
        return V(py=Ext(full))

    def _module_attribute(self, inst: Inst, name: str, node: cst.CSTNode) -> V:
        found = self.compiler.attribute(inst, name)
        if isinstance(found, tuple):
            cause, facts = found
            if cause == "maybe-attribute":
                return self.fail(cause, node, POSSIBLE, **facts)
            return self.fail(cause, node, **facts)
        if isinstance(found.py, Fn) and found.py.function.is_property and found.type is None:
            function = found.py.function
            if function.decorator_names & {"torch.jit.ignore", "torch.jit.unused"}:
                return UNKNOWN
            return self.call_function(function, [], {}, node, inst)
        return found

    def call_function(
        self, function: Function, args: list[V], keywords: dict[str, V], node: cst.CSTNode, inst: Inst | None
    ) -> V:
        raise NotImplementedError

    def _member(self, owner: V, kind: t.Type, name: str, node: cst.CSTNode) -> V:
        if kind is t.UNKNOWN:
            return UNKNOWN
        if kind is t.TENSOR:
            found = self.data.properties.get(name)
            if found is not None:
                return V(found)
            if name in self.data.absent or not (self.data.has_operator(name) or name in self.data.extra_methods):
                return self.fail("tensor-attribute", node, name=name)
            return V(word="method", const=name, owner=owner)
        if kind.kind == "Tuple" and kind.extra is not None:
            fields = kind.extra[1]
            if name in fields:
                return V(kind.args[fields.index(name)])
            return UNKNOWN
        if kind.kind == "Optional" or kind is t.NONE:
            if t.has_unknown(kind):
                return UNKNOWN
            return self.fail("optional", node, LIKELY if owner.soft else CERTAIN, type=str(kind), op="." + name)
        if kind.kind in ("List", "Dict") or kind in (t.STR, t.INT, t.FLOAT, t.BOOL, t.NUMBER):
            if kind.kind not in ("List", "Dict") and kind is not t.STR:
                known = False
            else:
                known = self.data.has_operator(name)
            if known:
                return V(word="method", const=name, owner=owner)
            if name in ("real", "imag"):
                return UNKNOWN
            return self.fail("value-attribute", node, LIKELY if owner.soft else CERTAIN, name=name, type=str(kind))
        if kind.kind in ("Tuple", "list", "tuple") and not t.has_unknown(kind):
            return self.fail("value-attribute", node, LIKELY if owner.soft else CERTAIN, name=name, type=str(kind))
        if kind is t.DEVICE:
            return V({"type": t.STR, "index": t.Optional(t.INT)}.get(name, t.UNKNOWN))
        return UNKNOWN

    # --- subscripts

    def _subscript(self, node: cst.Subscript) -> V:
        owner = self.expr(node.value)
        return self.subscript(owner, node)

    def subscript(self, owner: V, node: cst.Subscript) -> V:
        first = node.slice[0].slice
        single = len(node.slice) == 1
        kind = owner.type
        if kind is None:
            return self._module_subscript(owner, node)
        if kind is t.UNKNOWN and owner.items is None:
            self._indices(node)
            return UNKNOWN
        if kind is t.TENSOR:
            self._tensor_index(node)
            return V(t.TENSOR)
        if isinstance(first, cst.Slice):
            for part in (first.lower, first.upper, first.step):
                if part is not None:
                    self._slice_bound(part)
            if kind.kind == "List" or kind is t.STR:
                return V(kind)
            if kind.kind == "Tuple":
                return self._tuple_slice(kind, first, owner)
            if kind.kind == "Optional" and not t.has_unknown(kind):
                return self.fail("optional", node, LIKELY if owner.soft else CERTAIN, type=str(kind), op="[...]")
            return UNKNOWN
        if not single or not isinstance(first, cst.Index):
            return UNKNOWN
        index = self.expr(first.value)
        index_type = self.type_of(index, first.value)
        if kind.kind == "List":
            if index_type not in (t.INT, t.UNKNOWN) and not t.converts(index_type, t.INT, True):
                self.fail("index", node, type=str(kind), index=str(index_type))
            return V(kind.args[0])
        if kind.kind == "Dict":
            if index_type is not t.UNKNOWN and not t.same(index_type, kind.args[0]):
                self.fail("index", node, type=str(kind), index=str(index_type))
            return V(kind.args[1])
        if kind.kind == "Tuple":
            if isinstance(index.const, int) and -len(kind.args) <= index.const < len(kind.args):
                if owner.items is not None:
                    return owner.items[index.const]
                return V(kind.args[index.const])
            if kind.args and all(a is kind.args[0] for a in kind.args):
                return V(kind.args[0])
            if isinstance(index.const, int):
                return UNKNOWN
            return UNKNOWN if t.has_unknown(kind) else self.fail("tuple-index", node, type=str(kind))
        if kind is t.STR:
            return V(t.STR)
        if kind.kind == "Optional" or kind is t.NONE:
            if t.has_unknown(kind):
                return UNKNOWN
            return self.fail("optional", node, LIKELY if owner.soft else CERTAIN, type=str(kind), op="[...]")
        if kind in (t.INT, t.FLOAT, t.BOOL, t.NUMBER) or kind.kind in ("list", "tuple"):
            return self.fail("subscript", node, LIKELY if owner.soft else CERTAIN, type=str(kind))
        return UNKNOWN

    def _slice_bound(self, node: cst.BaseExpression) -> None:
        value = self.expr(node)
        kind = self.type_of(value, node)
        if (
            kind is not t.NONE
            and kind is not t.UNKNOWN
            and not t.converts(kind, t.INT, True)
            and kind is not t.Optional(t.INT)
            and kind is not t.BOOL
        ):
            self.fail("slice-bound", node, LIKELY if value.soft else CERTAIN, type=str(kind))

    def _tuple_slice(self, kind: t.Type, part: cst.Slice, owner: V) -> V:
        bounds: list[int | None] = []
        for node in (part.lower, part.upper, part.step):
            if node is None:
                bounds.append(None)
                continue
            value = self.expr(node)
            if not isinstance(value.const, int):
                return UNKNOWN if value.type is not t.INT else self.fail("tuple-index", node, type=str(kind))
            bounds.append(value.const)
        try:
            return V(t.Tuple(kind.args[slice(*bounds)]))
        except ValueError:
            return UNKNOWN

    def _indices(self, node: cst.Subscript) -> None:
        for element in node.slice:
            if isinstance(element.slice, cst.Index):
                self.expr(element.slice.value)
            elif isinstance(element.slice, cst.Slice):
                for part in (element.slice.lower, element.slice.upper, element.slice.step):
                    if part is not None:
                        self.expr(part)

    def _tensor_index(self, node: cst.Subscript) -> None:
        parts = [e.slice for e in node.slice]
        if len(parts) == 1 and isinstance(parts[0], cst.Index) and isinstance(parts[0].value, cst.Tuple):
            values = [e.value for e in parts[0].value.elements]
        else:
            values = []
            for part in parts:
                if isinstance(part, cst.Slice):
                    for bound in (part.lower, part.upper, part.step):
                        if bound is not None:
                            self._slice_bound(bound)
                elif isinstance(part, cst.Index):
                    values.append(part.value)
        for value_node in values:
            if isinstance(value_node, (cst.Ellipsis, cst.Integer)):
                continue
            value = self.expr(value_node)
            kind = self.type_of(value, value_node)
            if kind in (t.NUMBER, t.FLOAT, t.STR, t.BOOL) or kind.kind in ("Optional", "Dict", "Tuple"):
                if kind.kind == "Optional" and (t.has_unknown(kind) or kind is t.Optional(t.TENSOR)):
                    continue
                self.fail("tensor-index", value_node, LIKELY if value.soft else CERTAIN, type=str(kind))

    def _module_subscript(self, owner: V, node: cst.Subscript) -> V:
        py = owner.py
        first = node.slice[0].slice
        if owner.items is not None:
            if isinstance(first, cst.Index):
                index = self.expr(first.value)
                if isinstance(index.const, int) and -len(owner.items) <= index.const < len(owner.items):
                    return owner.items[index.const]
            return UNKNOWN
        if owner.word == "global":
            return self.fail("global", node.value, name=self.source(node.value), type=self.describe(owner))
        if not isinstance(py, Inst):
            return UNKNOWN
        if not py.container:
            return UNKNOWN if py.open or py.external else self.fail("subscript", node, type=f"module {py.name}")
        if isinstance(first, cst.Slice):
            if py.children is None:
                return UNKNOWN
            bounds: list[int | None] = []
            for part in (first.lower, first.upper, first.step):
                value = self.expr(part) if part is not None else V(const=None)
                if value.const is not None and not isinstance(value.const, int):
                    return self.fail("container-index", node, name=self.source(node.value), kind=py.container)
                bounds.append(value.const)
            return V(None, items=[as_value(c) for c in self.compiler.children(py)[slice(*bounds)]])
        if not isinstance(first, cst.Index):
            return UNKNOWN
        index = self.expr(first.value)
        if py.container in ("ModuleDict", "ParameterDict"):
            if not isinstance(index.const, str):
                return self.fail("container-index", node, name=self.source(node.value), kind=py.container)
            if py.children is None:
                return UNKNOWN
            return (
                self.compiler.child(py, index.const)
                if index.const in py.children
                else self.fail("container-index", node, name=self.source(node.value), kind=py.container)
            )
        if not isinstance(index.const, int) or isinstance(index.const, bool):
            if index.type is t.UNKNOWN and not isinstance(first.value, (cst.Name, cst.BinaryOperation, cst.Subscript)):
                return UNKNOWN
            return self.fail("container-index", node, name=self.source(node.value), kind=py.container)
        if py.children is None:
            return UNKNOWN
        children = self.compiler.children(py)
        return children[index.const] if -len(children) <= index.const < len(children) else UNKNOWN

    def subscript_store(
        self, target: cst.Subscript, owner: V, value: V, node: cst.CSTNode, augmented: bool = False
    ) -> None:
        kind = owner.type
        if kind is None:
            if owner.word == "global":
                self.type_of(owner, target.value)
            elif isinstance(owner.py, Inst) and owner.py.container:
                self.fail("container-write", node, name=self.source(target.value))
            return
        if kind is t.TENSOR:
            self._tensor_index(target)
            given = self.type_of(value, node)
            if given.kind in ("List", "Tuple", "Dict", "Optional") or given in (t.STR, t.NONE):
                if not t.has_unknown(given):
                    self.fail("tensor-store", node, LIKELY if value.soft else CERTAIN, type=str(given))
            return
        first = target.slice[0].slice
        if not isinstance(first, cst.Index):
            if kind.kind == "List":
                self.fail("slice-store", node)
            return
        index = self.type_of(self.expr(first.value), first.value)
        given = self.type_of(value, node)
        if kind.kind == "List":
            if not t.converts(given, kind.args[0], True) and not augmented:
                self.fail(
                    "element-type",
                    node,
                    LIKELY if value.soft or owner.soft else CERTAIN,
                    type=str(kind),
                    found=str(given),
                    empty=owner.word == "empty",
                )
        elif kind.kind == "Dict":
            if not t.same(index, kind.args[0]):
                self.fail("element-type", node, type=str(kind), found=f"key {index}", empty=owner.word == "empty")
            elif not t.converts(given, kind.args[1], True) and not augmented:
                self.fail(
                    "element-type",
                    node,
                    LIKELY if value.soft else CERTAIN,
                    type=str(kind),
                    found=str(given),
                    empty=owner.word == "empty",
                )
        elif kind.kind == "Tuple":
            self.fail("tuple-store", node, type=str(kind))


def as_value(value: V) -> V:
    """A module as an element of a literal or a list: it has lost its methods, and calling it does not compile."""
    return V(py=value.py, word="sliced") if isinstance(value.py, Inst) else value


def _text(node: cst.CSTNode, piece: Piece) -> str:
    return " ".join(piece.tree.code_for_node(node).split())


def _call(self: Expressions, node: cst.Call, hint: t.Type) -> V:
    from tsdyn_lint.script.calls import call

    return call(self, node, hint)  # type: ignore[arg-type]


_HANDLERS: dict[type, Callable[[Expressions, Any], V]] = {
    cst.Integer: Expressions._integer,
    cst.Float: Expressions._float,
    cst.SimpleString: Expressions._string,
    cst.ConcatenatedString: Expressions._concatenated,
    cst.Imaginary: Expressions._imaginary,
    cst.FormattedString: Expressions._formatted,
    cst.UnaryOperation: Expressions._unary,
    cst.BinaryOperation: Expressions._binary,
    cst.Comparison: Expressions._comparison,
    cst.BooleanOperation: Expressions._boolean,
    cst.IfExp: Expressions._ifexp,
    cst.Attribute: Expressions._attribute,
    cst.Subscript: Expressions._subscript,
    cst.GeneratorExp: Expressions._generator,
}
_HINTED: dict[type, Callable[[Expressions, Any, t.Type], V]] = {
    cst.List: Expressions._list,
    cst.Dict: Expressions._dict,
    cst.ListComp: Expressions._list_comp,
    cst.DictComp: Expressions._dict_comp,
    cst.Tuple: Expressions._tuple,
    cst.Call: _call,
}
