"""Calls of methods of tensors, strings, lists and dicts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.call_schemas import arguments, check_operator, misfit, show
from tsdyn_lint.script.problems import CERTAIN, LIKELY
from tsdyn_lint.script.sugar import UNKNOWN, V

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body


def method_call(body: Body, node: cst.Call, callee: V, hint: t.Type) -> V:
    name = str(callee.const)
    owner = callee.owner
    assert owner is not None and owner.type is not None
    if name == "tolist" and owner.type is t.TENSOR:
        arguments(body, node)
        if hint is t.UNKNOWN:
            return body.fail("tolist", node)
        return V(hint)
    args, keywords, complete = arguments(body, node)
    if not complete:
        return UNKNOWN
    if owner.type is t.TENSOR:
        if name in body.data.extra_methods and not body.data.has_operator(name):
            for value in [*args, *keywords.values()]:
                body.type_of(value, node)
            return V(t.TENSOR)
        if not any(o.args and t.converts(t.TENSOR, o.args[0].type, True) for o in body.data.overloads(f"aten::{name}")):
            return body.misread(owner, "tensor-attribute", node, name=name)
        return check_operator(body, node, f"aten::{name}", f"Tensor.{name}", [owner, *args], keywords)
    if owner.type.kind in ("List", "Dict"):
        return _container_method(body, node, owner, name, args, keywords)
    if owner.type is t.STR:
        if name == "format":
            if keywords:
                body.fail("schema", node, name="str.format", why="it takes no keywords", types=", ".join(keywords))
            return V(t.STR)
        return check_operator(body, node, f"aten::{name}", f"str.{name}", [owner, *args], keywords)
    return UNKNOWN


def _container_method(body: Body, node: cst.Call, owner: V, name: str, args: list[V], keywords: dict[str, V]) -> V:
    kind = owner.type
    assert kind is not None
    if name in ("append", "insert") and args and kind.kind == "List":
        given = body.type_of(args[-1], node)
        if not t.is_subtype(given, kind.args[0]) and not t.has_unknown(given):
            confidence = LIKELY if args[-1].soft or owner.soft else CERTAIN
            return body.misfit(owner, node, confidence, show(given))
        return V(t.NONE)
    if kind.kind == "Dict" and name in ("keys", "values", "items"):
        element = {"keys": kind.args[0], "values": kind.args[1]}.get(name) or t.Tuple(kind.args)
        return V(t.List(element))
    if t.has_unknown(kind):
        return UNKNOWN
    if kind.kind == "Dict" and kind.args[0] not in (t.STR, t.INT, t.FLOAT, t.BOOL, t.COMPLEX, t.TENSOR):
        return UNKNOWN
    positional = [kind, *(body.type_of(a, node) for a in args)]
    named = {k: body.type_of(v, node) for k, v in keywords.items()}
    fitted = partial(body.data.call, f"aten::{name}")
    result = fitted(positional, named)
    if isinstance(result, s.Mismatch):
        soft = owner.soft or any(v.soft for v in args)
        if name == "extend" and len(positional) == 2 and positional[1].kind == "List":
            return body.misfit(owner, node, LIKELY if soft else CERTAIN, str(positional[1]))
        shown = f"{kind.kind.lower()}.{name}"
        return misfit(body, node, shown, result, [owner, *args, *keywords.values()], positional, named, fitted, soft)
    return V(result)
