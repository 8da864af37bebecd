"""A call -> its value: which kind of callee it has decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.builtin_calls import BUILTINS
from tsdyn_lint.script.call_schemas import arguments
from tsdyn_lint.script.library_calls import external_call
from tsdyn_lint.script.method_calls import method_call
from tsdyn_lint.script.problems import CERTAIN, LIKELY
from tsdyn_lint.script.project_calls import call_module, construct, make_record
from tsdyn_lint.script.pyvalues import Cls, Ext, Fn, Inst, Lam, Obj, Rec
from tsdyn_lint.script.sugar import REFUSED, UNKNOWN, V

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body


def call(body: Body, node: cst.Call, hint: t.Type) -> V:
    func = node.func
    if isinstance(func, cst.Name) and body.find(func.value) is None:
        handler = BUILTINS.get(func.value)
        if handler is not None and func.value not in body.function.module.symbols:
            return handler(body, node)
        if func.value == "super":
            return V(word="super")
    if isinstance(func, cst.Attribute) and _is_super(func.value):
        arguments(body, node)
        return body.fail("super", node, name=func.attr.value)
    callee = body.expr(func)
    if callee.type is t.UNKNOWN:
        arguments(body, node)
        return REFUSED if callee.word == "refused" else UNKNOWN
    if callee.word == "method":
        return method_call(body, node, callee, hint)
    args, keywords, complete = arguments(body, node)
    return call_value(body, node, callee, args, keywords, complete, hint)


def _is_super(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def call_value(
    body: Body,
    node: cst.Call,
    callee: V,
    args: list[V],
    keywords: dict[str, V],
    complete: bool,
    hint: t.Type = t.UNKNOWN,
) -> V:
    py = callee.py
    if isinstance(py, Inst):
        if callee.word == "sliced":
            return body.fail("sliced-module", node, name=body.source(node.func))
        return call_module(body, node, py, args, keywords, complete)
    if isinstance(py, Fn):
        owner = py.owner
        if owner is None and py.function.cls is not None and not py.function.is_static:
            # `Base.forward(self, x)`, or a function of a class that is no module
            if args and isinstance(args[0].py, Inst):
                return body.fail("super", node, name=py.function.name)
            return UNKNOWN
        if not complete:
            body.compiler.compile(py.function, owner)
            return UNKNOWN
        return body.call_function(py.function, args, keywords, node, owner)
    if isinstance(py, Cls):
        return construct(body, node, py.cls, args, keywords, complete)
    if isinstance(py, Rec):
        return make_record(body, node, py.type, frozenset(), args, keywords, complete)
    if isinstance(py, Ext):
        return external_call(body, node, py.dotted, callee, args, keywords, complete)
    if isinstance(py, Obj) and py.cls is not None:
        if any(isinstance(a.py, Inst) for a in args):
            what = f"an object of {py.name}, which is given a module"
            return body.fail("not-callable", node, name=body.source(node.func), type=what)
        return UNKNOWN
    if callee.word == "lambda" and isinstance(py, Lam) and isinstance(py.node, cst.Lambda):
        return body.fail("uncompilable-function", node, name=body.source(node.func), why="a lambda has no `def`")
    if callee.word == "lambda":
        if callee.error is not None:
            body.fail("uncompilable-function", node, name=body.source(node.func), why="it keeps values around it")
        return UNKNOWN
    if callee.word == "global" or py is not None:
        return UNKNOWN if callee.word != "global" else V(body.type_of(callee, node.func), word="refused")
    if callee.type is not None and callee.type is not t.UNKNOWN:
        if callee.type.kind == "Module":
            name = body.source(node.func)
            return body.fail("sliced-module", node, once=(body.function, name), name=name)
        if callee.type.kind in ("Class", "Any", "Interface"):
            return UNKNOWN
        if callee.soft and callee.type is t.NONE:
            return UNKNOWN  # a module to be passed in
        confidence = LIKELY if callee.soft else CERTAIN
        if callee.type is t.NONE:
            body.spoil(callee)
        return body.misread(
            callee, "not-callable", node, confidence, name=body.source(node.func), type=str(callee.type)
        )
    return UNKNOWN
