"""Subscripts, read and written: lists, dicts, tuples, tensors, containers of modules."""

from __future__ import annotations

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.emitter import Emitter, as_value
from tsdyn_lint.script.problems import CERTAIN, LIKELY
from tsdyn_lint.script.pyvalues import Inst
from tsdyn_lint.script.sugar import REFUSED, UNKNOWN, V


class Subscripts(Emitter):
    """The part of `Body` that checks indices."""

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
            return REFUSED if owner.word == "refused" else UNKNOWN
        if kind is t.TENSOR:
            self._tensor_index(owner, node)
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
                return self.unrefined(owner, node, kind, "[...]")
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
            return self.unrefined(owner, node, kind, "[...]")
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

    def _tensor_index(self, owner: V, node: cst.Subscript) -> None:
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
                confidence = LIKELY if value.soft else CERTAIN
                if kind is t.STR:
                    self.misread(owner, "tensor-index", value_node, confidence, type=str(kind))
                    return
                self.fail("tensor-index", value_node, confidence, type=str(kind))

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
            self.type_of(owner, node.value)
            return REFUSED
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
                    return self._unindexed(py, node)
                bounds.append(value.const)
            return V(None, items=[as_value(c) for c in self.compiler.children(py)[slice(*bounds)]])
        if not isinstance(first, cst.Index):
            return UNKNOWN
        index = self.expr(first.value)
        if py.container in ("ModuleDict", "ParameterDict"):
            if not isinstance(index.const, str):
                return self._unindexed(py, node)
            if py.children is None:
                return UNKNOWN
            return self.compiler.child(py, index.const) if index.const in py.children else self._unindexed(py, node)
        if not isinstance(index.const, int) or isinstance(index.const, bool):
            if index.type is t.UNKNOWN and not isinstance(first.value, (cst.Name, cst.BinaryOperation, cst.Subscript)):
                return UNKNOWN
            return self._unindexed(py, node)
        if py.children is None:
            return UNKNOWN
        children = self.compiler.children(py)
        return children[index.const] if -len(children) <= index.const < len(children) else UNKNOWN

    def _unindexed(self, container: Inst, node: cst.Subscript) -> V:
        name = self.source(node.value)
        return self.fail("container-index", node, once=(self.function, name), name=name, kind=container.container)

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
            self._tensor_index(owner, target)
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
                self.misfit(owner, node, LIKELY if value.soft or owner.soft else CERTAIN, str(given))
        elif kind.kind == "Dict":
            if not t.same(index, kind.args[0]):
                self.misfit(owner, node, CERTAIN, f"key {index}")
            elif not t.converts(given, kind.args[1], True) and not augmented:
                self.misfit(owner, node, LIKELY if value.soft else CERTAIN, str(given))
        elif kind.kind == "Tuple":
            self.fail("tuple-store", node, type=str(kind))
