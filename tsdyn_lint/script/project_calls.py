"""Calls of what the program defines: functions, methods, modules, NamedTuples and other classes."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import libcst as cst

from tsdyn_lint.resolve import Class, Function
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused, is_plain_dataclass
from tsdyn_lint.script.call_schemas import argument_type, blamed, match_torch, misfit, show
from tsdyn_lint.script.data import choose, parsed
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Const, Inst
from tsdyn_lint.script.signatures import Compiled
from tsdyn_lint.script.sugar import UNKNOWN, V
from tsdyn_lint.usage import SCRIPT_IF_TRACING

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body

_WRAPPING = frozenset(
    {
        "torch.no_grad",
        "torch.enable_grad",
        "torch.inference_mode",
        "torch.jit.export",
        "staticmethod",
        "classmethod",
        "property",
        "torch.jit.script",
        "torch.cuda.amp.autocast",
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.custom_fwd",
        "torch.amp.custom_fwd",
        "abc.abstractmethod",
        *SCRIPT_IF_TRACING,
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch.compile",
    }
)

_SKIPPED = frozenset(
    {"torch.jit.ignore", "torch.jit.unused", "torch._jit_internal.ignore", "torch._jit_internal.unused"}
)


def call_function(
    body: Body, function: Function, args: list[V], keywords: dict[str, V], node: cst.CSTNode, inst: Inst | None
) -> V:
    names = function.decorator_names
    if names & _SKIPPED:
        return _skipped(body, function, args, keywords, node)
    if function.cls is not None and _is_overloaded(function):
        return UNKNOWN
    if names & {"functools.lru_cache", "functools.cache"}:
        if inst is None:
            return _skipped(body, function, args, keywords, node)  # a Python object that is called, never compiled
        return body.fail("uncompilable-function", node, name=function.name, why="its cache is a C object")
    if isinstance(function.node, cst.Lambda):
        return UNKNOWN
    if names - _WRAPPING and body.compiler.wrapping(function) is None:
        return UNKNOWN
    compiler = body.compiler
    compiler.stack.append((body.function, node))
    try:
        if len(compiler.stack) > 40:
            return UNKNOWN
        compiled = compiler.compile(function, inst)
    finally:
        compiler.stack.pop()
    if not compiled.done:
        return body.fail("recursive", node, name=function.name)
    if compiled.refused:
        return UNKNOWN
    return _match_function(body, compiled, function, args, keywords, node)


def _is_overloaded(function: Function) -> bool:
    """Whether definitions of the same name before a method's are its overloads."""
    assert function.cls is not None
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr == "_overload_method"
        for hidden in function.cls.methods.hidden(function.name)
        for decorator in getattr(hidden, "decorator_list", ())
    )


def _skipped(body: Body, function: Function, args: list[V], keywords: dict[str, V], node: cst.CSTNode) -> V:
    """A call of an ignored or unused function: it has a signature, without its defaults, and no body."""
    result = _annotated_result(body, function)
    compiled = body.compiler.declared(function)
    if compiled is not None:
        bare = s.Schema(tuple(replace(a, has_default=False) for a in compiled.schema.args), result.type or t.UNKNOWN)
        _match_function(body, replace(compiled, schema=bare, none_defaults=frozenset()), function, args, keywords, node)
    return result


def _annotated_result(body: Body, function: Function) -> V:
    node = function.node
    if isinstance(node, cst.FunctionDef) and node.returns is not None:
        try:
            return V(body.compiler.annotations.read(node.returns.annotation, function.module))
        except Exception:
            return UNKNOWN
    return UNKNOWN


def _match_function(
    body: Body,
    compiled: Compiled,
    function: Function,
    args: list[V],
    keywords: dict[str, V],
    node: cst.CSTNode,
) -> V:
    schema, untyped = compiled.schema, compiled.untyped
    names = [arg.name for arg in schema.args]

    def given(name: str, value: V) -> t.Type:
        return t.UNKNOWN if name in compiled.misread else body.type_of(value, node)

    positional = [given(names[i] if i < len(names) else "", a) for i, a in enumerate(args)]
    named = {k: given(k, v) for k, v in keywords.items()}
    try:
        s.match(schema, positional, named, True)
    except s.Mismatch as mismatch:
        value = blamed(mismatch, args, keywords)
        confidence = LIKELY if (value.soft if value is not None else False) else CERTAIN
        if mismatch.argument in untyped and mismatch.found is not None:
            body.fail(
                "untyped-parameter",
                node,
                confidence,
                (function, mismatch.argument, body.place),
                name=mismatch.argument,
                callee=function.name,
                type=show(mismatch.found),
            )
        else:
            body.fail("arguments", node, confidence, callee=function.name, why=mismatch.why)
        return UNKNOWN
    for arg in schema.args[len(args) :]:
        if arg.name in compiled.none_defaults and arg.name not in keywords:
            once = (function, arg.name, body.place)
            body.fail("none-omitted", node, once=once, name=arg.name, callee=function.name)
            return UNKNOWN
    for arg, value in zip(schema.args, args, strict=False):
        if value.type is t.TENSOR and arg.type in (t.INT, t.FLOAT) and arg.name not in untyped:
            body.fail("implicit-scalar", node, POSSIBLE, name=arg.name, type=str(arg.type))
    return V(schema.result)


def call_module(body: Body, node: cst.CSTNode, inst: Inst, args: list[V], keywords: dict[str, V], complete: bool) -> V:
    if inst.cls is not None:
        forward = body.compiler.builder.method(inst.cls, "forward")
        if isinstance(forward, Function):
            if not complete:
                return UNKNOWN
            if body.compiler.program.class_member(inst.cls, "__call__") is not None:
                body.fail("call-override", node, name=inst.name)
            return body.call_function(forward, args, keywords, node, inst)
        if forward is None and not inst.external and not inst.open:
            return body.fail("not-callable", node, name=inst.name, type="a module without a forward")
    if inst.hooked:
        return UNKNOWN
    if inst.container == "Sequential":
        return _sequential(body, node, inst, args, keywords, complete)
    if inst.container:
        return body.fail("not-callable", node, name=inst.name, type=inst.container)
    entry = body.data.modules.get(inst.external.rpartition(".")[2]) if inst.external.startswith("torch.nn.") else None
    if inst.name == "DataParallel":
        return body.fail("torch-module", node, name=inst.name, why="its forward takes *inputs and **kwargs")
    if not entry:
        return UNKNOWN
    if "error" in entry:
        return body.fail("torch-module", node, name=inst.name, why=entry["error"])
    texts = entry.get("forward")
    if not texts or not complete or _flag(inst, entry, "return_indices"):
        return UNKNOWN
    return match_torch(body, node, parsed(tuple(texts)), args, keywords, inst.name)


def _flag(inst: Inst, entry: dict[str, Any], name: str) -> bool:
    """Whether a module was made with a flag that may be set."""
    names = entry.get("parameters", ())
    value = inst.args.get(name, inst.args.get(names.index(name)) if name in names else None)
    return value is not None and not (isinstance(value, Const) and not value.value)


def _sequential(body: Body, node: cst.CSTNode, inst: Inst, args: list[V], keywords: dict[str, V], complete: bool) -> V:
    if inst.children is None or not complete or keywords:
        return UNKNOWN
    if len(args) != 1:
        return body.fail(
            "arguments", node, callee=inst.name, why=f"Sequential.forward takes one input but {len(args)} were given"
        )
    value = args[0]
    for child in inst.children.values():
        if isinstance(child, Inst):
            value = call_module(body, node, child, [value], {}, True)
        elif isinstance(child, Const) and child.value is None and not child.soft:
            return body.fail("not-callable", node, name=inst.name, type="NoneType")
        else:
            value = UNKNOWN
    return value


def make_record(
    body: Body,
    node: cst.Call,
    kind: t.Type,
    defaults: Collection[str],
    args: list[V],
    keywords: dict[str, V],
    complete: bool,
) -> V:
    """A NamedTuple that is made: its fields are the parameters."""
    name, fields = kind.extra
    if complete:
        parameters = [s.Arg(f, k, 0, f in defaults, False) for f, k in zip(fields, kind.args, strict=True)]
        schema = s.Schema(tuple(parameters), kind)
        positional = [argument_type(body, a, node) for a in args]
        named = {k: argument_type(body, v, node) for k, v in keywords.items()}
        fitted = partial(choose, (schema,))
        result = fitted(positional, named)
        if isinstance(result, s.Mismatch):
            value = blamed(result, args, keywords)
            soft = value is not None and value.soft
            misfit(body, node, name, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(kind)


def construct(body: Body, node: cst.Call, cls: Class, args: list[V], keywords: dict[str, V], complete: bool) -> V:
    program = body.compiler.program
    outside = program.outside_bases(cls)
    if program.is_nn_module(cls):
        return body.fail("module-in-forward", node, name=cls.name)
    if is_plain_dataclass(cls):
        why = "the methods of a dataclass have no source"
        return body.fail("uncompilable-function", node, name=cls.name, why=why)
    if any(b.startswith("enum.") for b in outside):
        return body.fail("not-callable", node, name=cls.name, type="an Enum class")
    if any(b.startswith("typing.NamedTuple") for b in outside):
        if any(b == "typing.NamedTuple" for b in outside):
            try:
                kind = body.compiler.annotations.of_class(cls, node)
            except Refused:
                return UNKNOWN
            defaults = {name for name, slot in cls.assigned.items() if slot.values}
            return make_record(body, node, kind, defaults, args, keywords, complete)
        return UNKNOWN
    if not outside and not body.compiler.program.mro(cls)[1:]:
        for name, method in cls.methods.items():  # a script class: all of its methods are compiled
            if name not in ("__repr__", "__str__") and not method.decorator_names & _SKIPPED:
                body.compiler.compile(method, None)
    return UNKNOWN
