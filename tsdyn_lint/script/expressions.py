"""Expressions: names, literals, comprehensions, attributes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import libcst as cst

from tsdyn_lint.nodes import literal
from tsdyn_lint.script import types as t
from tsdyn_lint.script.conditions import Conditions
from tsdyn_lint.script.emitter import as_value
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Cls, Const, Ext, Fn, Inst, Lam, Map, Mod, Obj, Seq, Ten, Unk
from tsdyn_lint.script.subscripts import Subscripts
from tsdyn_lint.script.sugar import MISSING, REFUSED, UNKNOWN, V

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


class Expressions(Conditions, Subscripts):
    """The part of `Body` that gives expressions their values."""

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
                self.forgive(name)
                return REFUSED
            if found.word == "empty" or found.type is not None and found.type.kind in ("Optional", "NoneType"):
                return replace(found, origin=name)
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
                    return self.fail("undefined-name", node, once=(self.place, name), name=name)
                return V(py=value, word="builtin")
            head, _, tail = value.dotted.rpartition(".")
            if head == "math" and tail in _MATH:
                return V(py=Const(0.0), word="global")
            return V(py=value, word="global" if head == "torch" and tail in self.data.dtypes else "", origin=name)
        if isinstance(value, (Const, Seq, Map, Ten)):
            return V(py=value, word="global", origin=name)
        if isinstance(value, Obj):
            return UNKNOWN if value.name == "method" else V(py=value, word="global", origin=name)
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
        if (inst, name) in self.compiler.spoiled:
            return REFUSED
        found = self.compiler.attribute(inst, name)
        if isinstance(found, tuple):
            cause, facts = found
            confidence = POSSIBLE if cause == "maybe-attribute" else CERTAIN
            return self.fail(cause, node, confidence, (self.place, inst.name, name), **facts)
        if isinstance(found.py, Fn) and found.py.function.is_property and found.type is None:
            function = found.py.function
            if function.decorator_names & {"torch.jit.ignore", "torch.jit.unused"}:
                return UNKNOWN
            return self.call_function(function, [], {}, node, inst)
        if found.type is t.NONE or found.type is not None and found.type.kind == "Optional":
            return replace(found, origin=self.source(node), owner=V(py=inst))
        return found

    def _member(self, owner: V, kind: t.Type, name: str, node: cst.CSTNode) -> V:
        if kind is t.UNKNOWN:
            return REFUSED if owner.word == "refused" else UNKNOWN
        if kind is t.TENSOR:
            found = self.data.properties.get(name)
            if found is not None:
                return V(found)
            if name in self.data.absent:
                return self.fail("tensor-attribute", node, name=name)
            if not (self.data.has_operator(name) or name in self.data.extra_methods):
                return self.misread(owner, "tensor-attribute", node, name=name)
            return V(word="method", const=name, owner=owner)
        if kind.kind == "Tuple" and kind.extra is not None:
            fields = kind.extra[1]
            if name in fields:
                return V(kind.args[fields.index(name)])
            return self.fail("value-attribute", node, name=name, type=str(kind))
        if kind.kind == "Optional" or kind is t.NONE:
            if t.has_unknown(kind):
                return UNKNOWN
            return self.unrefined(owner, node, kind, "." + name)
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
