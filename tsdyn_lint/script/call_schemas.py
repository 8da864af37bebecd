"""A call's arguments, and which of torch's schemas they fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.data import choose
from tsdyn_lint.script.problems import CERTAIN, LIKELY
from tsdyn_lint.script.sugar import UNKNOWN, V

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body


def arguments(body: Body, node: cst.Call) -> tuple[list[V], dict[str, V], bool]:
    """Positional and keyword values; not complete where a `*` could not be spread."""
    args: list[V] = []
    keywords: dict[str, V] = {}
    complete = True
    for arg in node.args:
        value = body.expr(arg.value)
        if arg.star == "*":
            parts = body.spread(value, arg)
            if parts is None:
                complete = False
            else:
                args += parts
        elif arg.star == "**":
            body.fail("keyword-expansion", arg)
            complete = False
        elif arg.keyword is not None:
            keywords[arg.keyword.value] = value
        else:
            args.append(value)
    return args, keywords, complete


def argument_type(body: Body, value: V, node: cst.CSTNode) -> t.Type:
    """The type of an argument of an operator: an empty list fits any list there."""
    if value.word == "empty" and value.type is not None and value.type.kind == "List":
        return t.List(t.UNKNOWN)
    return body.type_of(value, node)


def show(kind: t.Type) -> str:
    return f"module {kind.extra.name}" if kind.kind == "Module" else str(kind)


def check_operator(body: Body, node: cst.Call, operator: str, shown: str, args: list[V], keywords: dict[str, V]) -> V:
    positional = [argument_type(body, a, node) for a in args]
    named = {k: argument_type(body, v, node) for k, v in keywords.items()}
    fitted = partial(body.data.call, operator)
    result = fitted(positional, named)
    if isinstance(result, s.Mismatch):
        soft = any(v.soft for v in [*args, *keywords.values()])
        return misfit(body, node, shown, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(result)


def misfit(
    body: Body,
    node: cst.CSTNode,
    shown: str,
    mismatch: s.Mismatch,
    values: list[V],
    positional: list[t.Type],
    named: dict[str, t.Type],
    fitted: Callable[[list[t.Type], dict[str, t.Type]], t.Type | s.Mismatch],
    soft: bool,
) -> V:
    """A call that fits no overload; where it would without the None that a value may be, that is the cause."""
    for value in values:
        kind = value.type
        if kind is not None and kind.kind == "Optional" and not t.has_unknown(kind):
            some = fitted([t.strip_none(k) for k in positional], {k: t.strip_none(v) for k, v in named.items()})
            if not isinstance(some, s.Mismatch):
                return body.unrefined(value, node, kind, shown, soft)
            break
    types = ", ".join([*map(show, positional), *(f"{k}: {show(v)}" for k, v in named.items())])
    return body.fail("schema", node, LIKELY if soft else CERTAIN, name=shown, why=mismatch.why, types=types)


def match_torch(
    body: Body, node: cst.CSTNode, schemas: tuple[s.Schema, ...], args: list[V], keywords: dict[str, V], shown: str
) -> V:
    positional = [argument_type(body, a, node) for a in args]
    named = {k: argument_type(body, v, node) for k, v in keywords.items()}
    chosen = schemas
    if len(schemas) == 2 and any(a.name == "return_indices" for a in schemas[0].args):
        chosen = _dispatch(schemas, args, keywords)
        if not chosen:
            return UNKNOWN
    if shown.endswith((".unique", ".unique_consecutive")):
        return UNKNOWN  # its flags choose among five
    result = choose(chosen, positional, named)
    if isinstance(result, s.Mismatch):
        value = blamed(result, args, keywords)
        soft = value.soft if value is not None else any(v.soft for v in [*args, *keywords.values()])
        fitted = partial(choose, chosen)
        return misfit(body, node, shown, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(result)


def _dispatch(schemas: tuple[s.Schema, ...], args: list[V], keywords: dict[str, V]) -> tuple[s.Schema, ...]:
    """`return_indices` chooses between two functions when it is a literal."""
    names = [a.name for a in schemas[0].args]
    at = names.index("return_indices")
    value = args[at] if at < len(args) else keywords.get("return_indices")
    if value is None:
        return schemas[1:]
    return () if not isinstance(value.const, bool) else schemas[:1] if value.const else schemas[1:]


def blamed(mismatch: s.Mismatch, args: list[V], keywords: dict[str, V]) -> V | None:
    if 0 <= mismatch.index < len(args):
        return args[mismatch.index]
    return keywords.get(mismatch.argument)


def after_refusal(args: list[V], keywords: dict[str, V]) -> bool:
    """Whether an argument was refused before: then the call is a consequence."""
    return any(v.word == "refused" for v in [*args, *keywords.values()])
