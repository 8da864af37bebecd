"""Calls of Python's builtins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.call_schemas import arguments, show
from tsdyn_lint.script.emitter import as_value, row
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Inst
from tsdyn_lint.script.sugar import MISSING, UNKNOWN, V

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body


def _range(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    for number, value in enumerate(args):
        kind = body.type_of(value, node)
        if kind not in (t.INT, t.UNKNOWN, t.BOOL):
            confidence = LIKELY if value.soft else CERTAIN
            if kind.kind == "Optional":
                body.unrefined(value, node, kind, "range")
                break
            body.misread(value, "range", node, confidence, type=show(kind), position=str(number))
            break
    return V(elem=V(t.INT), word="range")


def _zip(body: Body, node: cst.Call) -> V:
    args, _, complete = arguments(body, node)
    if not complete:
        return V(elem=UNKNOWN, word="zip")
    static = [body.static_items(a) for a in args]
    if any(x is not None for x in static):
        if all(x is not None for x in static):
            rows = zip(*(x for x in static if x is not None), strict=False)
            return V(items=[row(list(r)) for r in rows], word="zip")
        for value, items in zip(args, static, strict=False):
            unsized = (
                value.type is not None and value.type.kind in ("List", "Dict", "Tensor", "str") or value.word == "range"
            )
            if items is None and unsized and any(isinstance(a.py, Inst) or a.items for a in args):
                return body.fail("unsized-zip", node, type=str(value.type) if value.type is not None else value.word)
        lengths = [x for x in static if x is not None]
        columns = [
            x if x is not None else [body.element(a, node)] * len(lengths[0])
            for x, a in zip(static, args, strict=False)
        ]
        return V(items=[row(list(r)) for r in zip(*columns, strict=False)], word="zip")
    if any(isinstance(a.py, Inst) for a in args):
        return V(elem=UNKNOWN, word="zip")
    elements = [body.element(a, node) for a in args]
    return V(elem=row(elements), word="zip")


def _enumerate(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    if not args:
        return UNKNOWN
    items = body.static_items(args[0])
    if items is not None:
        return V(items=[row([V(t.INT), item]) for item in items], word="enumerate")
    if isinstance(args[0].py, Inst):
        return V(elem=UNKNOWN, word="enumerate")
    return V(elem=row([V(t.INT), body.element(args[0], node)]), word="enumerate")


def _print(body: Body, node: cst.Call) -> V:
    _, keywords, _ = arguments(body, node)
    if keywords:
        body.fail("print-keyword", node)
    return V(t.NONE)


def _len(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    if args and args[0].items is not None:
        return V(t.INT, const=MISSING)
    if args and isinstance(args[0].py, Inst):
        if args[0].py.container.startswith("Parameter"):
            return body.fail("python-builtin", node, name=f"len` of a `{args[0].py.container}")
        return V(t.INT)
    if args:
        kind = body.type_of(args[0], node)
        if kind in (t.INT, t.FLOAT, t.BOOL, t.NONE, t.NUMBER) or (kind.kind == "Optional" and not t.has_unknown(kind)):
            confidence = LIKELY if args[0].soft else CERTAIN
            if kind.kind == "Optional" or kind is t.NONE:
                body.unrefined(args[0], node, kind, "len")
            else:
                why = f"a value of type '{kind}' has no length"
                body.fail("schema", node, confidence, name="len", why=why, types=str(kind))
    return V(t.INT)


def _list(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    if not args:
        return V(t.List(t.TENSOR), word="empty")
    value = args[0]
    if isinstance(value.py, Inst):
        items = body.static_items(value)
        if items is None:
            return UNKNOWN
        body.one_type(items, node)
        return V(None, items=[as_value(i) for i in items])
    items = value.items
    if items is not None:
        if any(isinstance(i.py, Inst) for i in items):
            body.one_type(items, node)
            return V(None, items=[as_value(i) for i in items])
        kinds = [body.type_of(i, node) for i in items]
        if any(k is t.UNKNOWN for k in kinds) or not kinds:
            return UNKNOWN
        return V(t.List(body._common(kinds)))
    element = body.element(value, node)
    if element.type is None:
        kind = body.type_of(element, node)
        return UNKNOWN if kind is t.UNKNOWN else V(t.List(kind))
    return V(t.List(element.type)) if element.type is not t.UNKNOWN else UNKNOWN


def _tuple(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    if not args:
        return V(t.Tuple(()))
    value = args[0]
    if value.items is not None:
        return row(value.items)
    if value.type is not None and value.type.kind == "Tuple":
        return value
    if value.word == "range":
        return body.fail("not-a-value", node, what="range")
    if value.type is not None and value.type.kind == "List":
        return body.fail("unsized", node, LIKELY if value.soft else CERTAIN, what="tuple()", type=str(value.type))
    if value.type is t.TENSOR:
        return body.fail("unpack", node, what="not a tuple", type="Tensor", count="")
    return UNKNOWN


def _dict(body: Body, node: cst.Call) -> V:
    args, keywords, _ = arguments(body, node)
    if not args and not keywords:
        return V(t.Dict(t.STR, t.TENSOR), word="empty")
    if keywords and not args:
        kinds = [body.type_of(v, node) for v in keywords.values()]
        return V(t.Dict(t.STR, body._common(kinds)))
    return UNKNOWN


def _isinstance(body: Body, node: cst.Call) -> V:
    truth, _, _ = body.condition(node)
    return V(t.BOOL, const=truth if truth is not None else MISSING)


def _getattr(body: Body, node: cst.Call) -> V:
    args, _, _ = arguments(body, node)
    if len(node.args) < 2:
        return UNKNOWN
    name = node.args[1].value
    if not isinstance(name, cst.SimpleString):
        return body.fail("getattr", node, name=body.source(name))
    owner = args[0]
    text = str(name.evaluated_value)
    if len(args) > 2 and isinstance(owner.py, Inst):
        found = body.compiler.attribute(owner.py, text)
        return args[2] if isinstance(found, tuple) else found
    return body.attribute(owner, text, node)


def _table(word: str) -> Callable[[Body, cst.Call], V]:
    """A builtin whose results torch was asked about type by type."""

    def handler(body: Body, node: cst.Call) -> V:
        args, keywords, complete = arguments(body, node)
        if not complete or keywords:
            return UNKNOWN
        kinds = tuple(body.type_of(a, node) for a in args)
        if t.UNKNOWN in kinds:
            return V(_RESULTS.get(word, t.UNKNOWN))
        key = f"{word}()" if len(kinds) == 1 else f"{word}(,)"
        if word == "sum" and len(kinds) == 2 and kinds[0].kind == "List":
            return body.fail("builtin-arguments", node, name=word, types=", ".join(map(show, kinds)))
        if len(kinds) > 2 or not kinds:
            return UNKNOWN
        if len(kinds) == 2 and word not in ("min", "max", "pow", "divmod", "round"):
            return UNKNOWN
        found = body.data.expression(key, kinds)
        soft = any(a.soft for a in args)
        if found is None:
            for value, kind in zip(args, kinds, strict=True):
                if kind.kind == "Optional" or kind is t.NONE:
                    return body.unrefined(value, node, kind, word, soft)
            confidence = LIKELY if soft else CERTAIN
            return body.fail("builtin-arguments", node, confidence, name=word, types=", ".join(map(show, kinds)))
        if found is False:
            return V(_RESULTS.get(word, t.UNKNOWN))
        if word in ("min", "max") and kinds == (t.TENSOR, t.TENSOR):
            body.fail("min-max", node, POSSIBLE, name=word)
        return V(found, soft=soft)  # type: ignore[arg-type]

    return handler


_RESULTS = {
    "int": t.INT,
    "float": t.FLOAT,
    "bool": t.BOOL,
    "str": t.STR,
    "len": t.INT,
    "ord": t.INT,
    "chr": t.STR,
    "hex": t.STR,
}


def _any(body: Body, node: cst.Call) -> V:
    arguments(body, node)
    return UNKNOWN


def _refused(word: str) -> Callable[[Body, cst.Call], V]:
    def handler(body: Body, node: cst.Call) -> V:
        return body.fail("python-builtin", node, name=word)

    return handler


def _python_class(word: str) -> Callable[[Body, cst.Call], V]:
    """A class of Python's: given tensors it compiles to a call that should give a tensor, and fails where it runs."""

    def handler(body: Body, node: cst.Call) -> V:
        args, _, _ = arguments(body, node)
        if any(a.type is t.UNKNOWN for a in args):
            return UNKNOWN
        if not args or any(a.type is not t.TENSOR for a in args):
            return body.fail("python-builtin", node, name=word)
        return V(t.TENSOR) if body.raising else body.fail("python-class", node, name=word)

    return handler


def python_builtin(body: Body, node: cst.Call, name: str) -> V:
    import builtins

    value = getattr(builtins, name, None)
    if isinstance(value, type) and issubclass(value, BaseException):
        return UNKNOWN
    return body.fail("python-builtin", node, name=name)


BUILTINS: dict[str, Callable[[Body, cst.Call], V]] = {
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "print": _print,
    "len": _len,
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "isinstance": _isinstance,
    "hasattr": _isinstance,
    "getattr": _getattr,
    "slice": _any,
    **{
        w: _table(w)
        for w in (
            "int",
            "float",
            "bool",
            "str",
            "complex",
            "abs",
            "min",
            "max",
            "sum",
            "any",
            "all",
            "round",
            "sorted",
            "ord",
            "chr",
            "hex",
            "oct",
            "bin",
            "pow",
            "divmod",
            "hash",
            "id",
        )
    },
    **{
        w: _refused(w)
        for w in (
            "next",
            "iter",
            "open",
            "setattr",
            "delattr",
            "callable",
            "eval",
            "exec",
            "vars",
            "dir",
            "repr",
            "format",
            "issubclass",
            "input",
            "globals",
            "locals",
            "breakpoint",
        )
    },
    **{
        w: _python_class(w)
        for w in (
            "type",
            "reversed",
            "map",
            "filter",
            "set",
            "frozenset",
            "memoryview",
            "bytes",
            "bytearray",
            "object",
        )
    },
}
