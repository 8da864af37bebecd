"""Expressions of a constructor -> what is known of their values."""

from __future__ import annotations

import operator
import sys
from typing import Any

import libcst as cst

from tsdyn_lint.infer.values import hashable
from tsdyn_lint.nodes import literal
from tsdyn_lint.resolve import Assigned, Class, Function, Module
from tsdyn_lint.script import types as t
from tsdyn_lint.script.init_frames import (
    MAX_ITEMS,
    MAX_STEPS,
    Frame,
    TooMuch,
)
from tsdyn_lint.script.init_operators import InitOperators
from tsdyn_lint.script.pyvalues import (
    Cls,
    Const,
    Ext,
    Fn,
    Inst,
    Map,
    Mod,
    Obj,
    Py,
    Rec,
    Seq,
    Ten,
    Unk,
    static_type,
)

AUTOGRAD = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_CONSTANTS = {"True": True, "False": False, "None": None}


class InitExpressions(InitOperators):
    """Names, literals, displays, comprehensions, subscripts."""

    def _name(self, node: cst.Name, frame: Frame) -> Py:
        name = node.value
        if name in frame.locals:
            return frame.locals[name]
        if name in _CONSTANTS:
            return Const(_CONSTANTS[name])
        return self.global_value(frame.module, name)

    def global_value(self, module: Module, name: str) -> Py:
        key = (module.name, name)
        if key not in self._globals:
            self._globals[key] = Unk()  # while it is being worked out
            self._globals[key] = self._definition(self.program.lookup(module, name), module, name)
        return self._globals[key]

    def _definition(self, found: Any, module: Module, name: str) -> Py:
        if isinstance(found, str):
            return Ext(found)
        if isinstance(found, Class):
            return Cls(found)
        if isinstance(found, Function):
            return Fn(found)
        if isinstance(found, Module):
            return Mod(found)
        if isinstance(found, Assigned):
            if len(found.values) == 1:
                # a module-level constant; evaluated where it is written
                value = self.eval(found.values[0], Frame(None, module))
                made = found.values[0]
                if isinstance(value, Unk) and isinstance(made, cst.Call):
                    outside = module.dotted(made.func) or ""
                    if outside == "collections.namedtuple":
                        return _record(made)
                    if (
                        outside.partition(".")[0] in sys.stdlib_module_names
                        and "." in outside
                        and not outside.startswith(("collections.", "typing.", "math.", "enum."))
                    ):
                        return Obj(outside.rpartition(".")[2])
                return value
            return Unk()
        return Ext(f"builtins.{name}") if found is None else Unk()

    def _attribute(self, node: cst.Attribute, frame: Frame) -> Py:
        return self.attribute(self.eval(node.value, frame), node.attr.value)

    def attribute(self, owner: Py, name: str) -> Py:
        if isinstance(owner, Inst):
            if name in owner.maybe:
                return Unk()
            if name in owner.attrs:
                return owner.attrs[name]
            if name == "training":
                return Const(True, True)
            if owner.cls is not None:
                found = self.program.class_member(owner.cls, name)
                if isinstance(found, Function):
                    if found.is_property:
                        return self.call_function(found, [], {}, owner)
                    return Fn(found, owner)
                if isinstance(found, Assigned) and len(found.values) == 1:
                    return self.eval(found.values[0], Frame(None, owner.cls.module))
            if owner.cls is None and not owner.container:
                value = owner.args.get(name)
                if isinstance(value, Const):
                    return value
                if name in ("weight", "bias"):
                    return Ten("parameter")
            return Unk()
        if isinstance(owner, Ext):
            return Ext(f"{owner.dotted}.{name}")
        if isinstance(owner, Mod):
            inside = self.program.member(owner.module, name)
            return Mod(inside) if isinstance(inside, Module) else self.global_value(owner.module, name)
        if isinstance(owner, Obj):
            if owner.name in AUTOGRAD and name == "apply":
                return Obj("method")
            return owner.attrs.get(name, Unk())
        if isinstance(owner, Cls):
            found = self.program.class_member(owner.cls, name)
            if name == "apply" and any(b in AUTOGRAD for b in self.program.outside_bases(owner.cls)):
                return Obj("method")
            if isinstance(found, Function):
                return Fn(found)
            if isinstance(found, Assigned) and len(found.values) == 1:
                return self.eval(found.values[0], Frame(None, owner.cls.module))
        if isinstance(owner, Ten) and name in ("data", "grad", "T"):
            return Ten()
        return Unk()

    def _literal(self, node: Any, frame: Frame) -> Py:
        try:
            return Const(literal(node.value))
        except Exception:
            return Unk()

    def _concat(self, node: cst.ConcatenatedString, frame: Frame) -> Py:
        value = node.evaluated_value
        return Const(value) if isinstance(value, str) else Unk(t.STR)

    def _fstring(self, node: cst.FormattedString, frame: Frame) -> Py:
        text = ""
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                text += part.value
            elif isinstance(part, cst.FormattedStringExpression):
                value = self.eval(part.expression, frame)
                if not isinstance(value, Const) or part.format_spec is not None:
                    return Unk(t.STR)
                text += str(value.value)
        return Const(text)

    def _sequence(self, node: Any, frame: Frame) -> Py:
        kind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        items: list[Py] | None = []
        for element in node.elements:
            value = self.eval(element.value, frame)
            if isinstance(element, cst.StarredElement):
                inner = self.iterate(value)
                items = None if inner is None or items is None else items + inner
            elif items is not None:
                items.append(value)
        return Seq(kind, items, Unk() if items is None else None)

    def _dict(self, node: cst.Dict, frame: Frame) -> Py:
        items: dict[Any, Py] | None = {}
        for element in node.elements:
            value = self.eval(element.value, frame)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key, frame)
                if isinstance(key, Const) and items is not None and hashable(key.value):
                    items[key.value] = value
                else:
                    items = None
            else:
                items = (
                    {**items, **value.items}
                    if items is not None and isinstance(value, Map) and value.items is not None
                    else None
                )
        return Map(items)

    def _comprehension(self, node: Any, frame: Frame) -> Py:
        outer = dict(frame.locals)
        try:
            values = self._generate(node.elt, node.for_in, frame)
        finally:
            frame.locals = outer
        kind = "set" if isinstance(node, cst.SetComp) else "list"
        return Seq(kind, values, None if values is not None else Unk())

    def _generate(self, element: cst.CSTNode, loop: cst.CompFor, frame: Frame) -> list[Py] | None:
        items = self.iterate(self.eval(loop.iter, frame))
        if items is None or len(items) > MAX_ITEMS:
            self.store(loop.target, Unk(t.INT if self._is_range(loop.iter) else t.UNKNOWN), frame)
            self._unsure += 1
            try:
                self.eval(element, frame)
            finally:
                self._unsure -= 1
            return None
        found: list[Py] = []
        for item in items:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise TooMuch
            self.store(loop.target, item, frame)
            keep: bool | None = True
            for condition in loop.ifs:
                truth = self.truth(self.eval(condition.test, frame))
                if truth is None:
                    return None
                keep = keep and truth
            if not keep:
                continue
            if loop.inner_for_in is not None:
                inner = self._generate(element, loop.inner_for_in, frame)
                if inner is None:
                    return None
                found += inner
            else:
                found.append(self.eval(element, frame))
        return found

    def _dict_comp(self, node: cst.DictComp, frame: Frame) -> Py:
        items = self.iterate(self.eval(node.for_in.iter, frame))
        if items is None or len(items) > MAX_ITEMS or node.for_in.ifs or node.for_in.inner_for_in:
            return Map(None)
        outer = dict(frame.locals)
        found: dict[Any, Py] | None = {}
        for item in items:
            self.store(node.for_in.target, item, frame)
            key, value = self.eval(node.key, frame), self.eval(node.value, frame)
            if isinstance(key, Const) and found is not None and hashable(key.value):
                found[key.value] = value
            else:
                found = None
        frame.locals = outer
        return Map(found)

    def _index(self, node: cst.Subscript, frame: Frame) -> Py:
        if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            return self.eval(node.slice[0].slice.value, frame)
        return Unk()

    def _subscript(self, node: cst.Subscript, frame: Frame) -> Py:
        owner = self.eval(node.value, frame)
        if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Slice):
            return self._slice(owner, node.slice[0].slice, frame)
        index = self._index(node, frame)
        if isinstance(owner, Seq):
            if owner.items is not None and isinstance(index, Const) and type(index.value) is int:
                return owner.items[index.value] if -len(owner.items) <= index.value < len(owner.items) else Unk()
            if owner.items and all(static_type(i) is static_type(owner.items[0]) for i in owner.items):
                return Unk(static_type(owner.items[0]))
            return Unk()
        if isinstance(owner, Map) and owner.items is not None and isinstance(index, Const) and hashable(index.value):
            return owner.items.get(index.value, Unk())
        if isinstance(owner, Inst) and owner.children is not None and isinstance(index, Const):
            values = list(owner.children.values())
            if type(index.value) is int and -len(values) <= index.value < len(values):
                return values[index.value]
            return owner.children.get(str(index.value), Unk())
        if isinstance(owner, Const) and isinstance(owner.value, (str, tuple)) and isinstance(index, Const):
            return self._fold(operator.getitem, owner, index)
        return Ten() if isinstance(owner, Ten) else Unk()

    def _slice(self, owner: Py, node: cst.Slice, frame: Frame) -> Py:
        bounds: list[Any] = []
        for part in (node.lower, node.upper, node.step):
            value = self.eval(part, frame) if part is not None else Const(None)
            if not isinstance(value, Const):
                return (
                    Seq(owner.kind, None, Unk())
                    if isinstance(owner, Seq)
                    else Ten()
                    if isinstance(owner, Ten)
                    else Unk()
                )
            bounds.append(value.value)
        try:
            if isinstance(owner, Seq) and owner.items is not None:
                return Seq(owner.kind, owner.items[slice(*bounds)])
            if isinstance(owner, Const) and isinstance(owner.value, str):
                return Const(owner.value[slice(*bounds)], owner.soft)
            if isinstance(owner, Inst) and owner.children is not None and owner.cls is None:
                part_children = dict(enumerate(list(owner.children.values())[slice(*bounds)]))
                return Inst(None, owner.external, children={str(k): v for k, v in part_children.items()})
        except Exception:
            return Unk()
        return Ten() if isinstance(owner, Ten) else Unk()

    def iterate(self, value: Py) -> list[Py] | None:
        """The items of an iterable, or None where they are not known."""
        if isinstance(value, Seq):
            return list(value.items) if value.items is not None else None
        if isinstance(value, Map):
            return [Const(k) for k in value.items] if value.items is not None else None
        if isinstance(value, Const) and isinstance(value.value, str):
            return [Const(c) for c in value.value[:MAX_ITEMS]]
        if isinstance(value, Inst) and value.children is not None:
            return (
                [Const(k) for k in value.children] if value.container == "ModuleDict" else list(value.children.values())
            )
        return None

    def set_attribute(self, owner: Py, name: str, value: Py) -> None:
        if isinstance(owner, Inst):
            owner.attrs[name] = value
            owner.maybe.discard(name)
            owner.signature = None
        elif isinstance(owner, Obj):
            owner.attrs[name] = value

    def _is_range(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range"


def _record(made: cst.Call) -> Py:
    """What `namedtuple("P", "a b")` makes, where its fields are written out and have no defaults."""
    match [arg.value for arg in made.args]:
        case [cst.SimpleString() as name, cst.SimpleString() as spaced]:
            fields = str(spaced.evaluated_value).replace(",", " ").split()
        case [cst.SimpleString() as name, cst.List(elements) | cst.Tuple(elements)]:
            texts = [e.value for e in elements if isinstance(e.value, cst.SimpleString)]
            if len(texts) < len(elements):
                return Unk()
            fields = [str(text.evaluated_value) for text in texts]
        case _:
            return Unk()
    return Rec(t.Tuple([t.TENSOR] * len(fields), str(name.evaluated_value), tuple(fields)))
