"""Calls: methods and functions of the program, modules, torch's functions against their schemas, Python's builtins."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import libcst as cst

from tsdyn_lint.resolve import Class, Function
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused, is_plain_dataclass
from tsdyn_lint.script.compiler import CERTAIN, LIKELY, POSSIBLE, Compiled
from tsdyn_lint.script.data import choose, parsed
from tsdyn_lint.script.emitter import LEGACY, as_value
from tsdyn_lint.script.pyvalues import Cls, Const, Ext, Fn, Inst, Lam, Obj, Rec
from tsdyn_lint.script.sugar import MISSING, REFUSED, UNKNOWN, V

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
        "torch.jit.script_if_tracing",
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch.compile",
    }
)
_TYPING = frozenset(
    {"typing", "enum", "dataclasses", "abc", "contextlib", "types", "warnings", "math", "cmath", "numbers"}
)
_SKIPPED = frozenset(
    {"torch.jit.ignore", "torch.jit.unused", "torch._jit_internal.ignore", "torch._jit_internal.unused"}
)


def call(body: Body, node: cst.Call, hint: t.Type) -> V:
    func = node.func
    if isinstance(func, cst.Name) and body.find(func.value) is None:
        handler = _BUILTINS.get(func.value)
        if handler is not None and func.value not in body.function.module.symbols:
            return handler(body, node)
        if func.value == "super":
            return V(word="super")
    if isinstance(func, cst.Attribute) and _is_super(func.value):
        _arguments(body, node)
        return body.fail("super", node, name=func.attr.value)
    callee = body.expr(func)
    if callee.type is t.UNKNOWN:
        _arguments(body, node)
        return REFUSED if callee.word == "refused" else UNKNOWN
    if callee.word == "method":
        return _method(body, node, callee, hint)
    args, keywords, complete = _arguments(body, node)
    return call_value(body, node, callee, args, keywords, complete, hint)


def _is_super(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def _arguments(body: Body, node: cst.Call) -> tuple[list[V], dict[str, V], bool]:
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


def _argument(body: Body, value: V, node: cst.CSTNode) -> t.Type:
    """The type of an argument of an operator: an empty list fits any list there."""
    if value.word == "empty" and value.type is not None and value.type.kind == "List":
        return t.List(t.UNKNOWN)
    return body.type_of(value, node)


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
        return _construct(body, node, py.cls, args, keywords, complete)
    if isinstance(py, Rec):
        return _record(body, node, py.type, frozenset(), args, keywords, complete)
    if isinstance(py, Ext):
        return _external(body, node, py.dotted, callee, args, keywords, complete)
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


# --- functions of the program


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
    compiler.stack.append((body.function, node, body.piece))
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
        value = _blamed(mismatch, args, keywords)
        confidence = LIKELY if (value.soft if value is not None else False) else CERTAIN
        if mismatch.argument in untyped and mismatch.found is not None:
            body.fail(
                "untyped-parameter",
                node,
                confidence,
                (function, mismatch.argument, body.place),
                name=mismatch.argument,
                callee=function.name,
                type=_show(mismatch.found),
            )
        else:
            body.fail("arguments", node, confidence, callee=function.name, why=mismatch.why)
        return UNKNOWN
    for arg in schema.args[len(args) :]:
        if arg.name in compiled.none_defaults and arg.name not in keywords:
            body.fail("none-omitted", node, name=arg.name, callee=function.name)
            return UNKNOWN
    for arg, value in zip(schema.args, args, strict=False):
        if value.type is t.TENSOR and arg.type in (t.INT, t.FLOAT) and arg.name not in untyped:
            body.fail("implicit-scalar", node, POSSIBLE, name=arg.name, type=str(arg.type))
    return V(schema.result)


def _show(kind: t.Type) -> str:
    return f"module {kind.extra.name}" if kind.kind == "Module" else str(kind)


def _blamed(mismatch: s.Mismatch, args: list[V], keywords: dict[str, V]) -> V | None:
    if 0 <= mismatch.index < len(args):
        return args[mismatch.index]
    return keywords.get(mismatch.argument)


# --- modules


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
    return _match_torch(body, node, parsed(tuple(texts)), args, keywords, inst.name)


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


def _record(
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
        positional = [_argument(body, a, node) for a in args]
        named = {k: _argument(body, v, node) for k, v in keywords.items()}
        fitted = partial(choose, (schema,))
        result = fitted(positional, named)
        if isinstance(result, s.Mismatch):
            value = _blamed(result, args, keywords)
            soft = value is not None and value.soft
            _misfit(body, node, name, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(kind)


def _construct(body: Body, node: cst.Call, cls: Class, args: list[V], keywords: dict[str, V], complete: bool) -> V:
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
            return _record(body, node, kind, defaults, args, keywords, complete)
        return UNKNOWN
    if not outside and not body.compiler.program.mro(cls)[1:]:
        for name, method in cls.methods.items():  # a script class: all of its methods are compiled
            if name not in ("__repr__", "__str__") and not method.decorator_names & _SKIPPED:
                body.compiler.compile(method, None)
    return UNKNOWN


# --- torch and other names outside of the program


def _external(
    body: Body, node: cst.Call, dotted: str, callee: V, args: list[V], keywords: dict[str, V], complete: bool
) -> V:
    head, _, tail = dotted.rpartition(".")
    data = body.data
    if callee.word == "module-method":
        return body.fail("module-method", node, name=tail)
    if callee.word == "container-view" and callee.owner is not None and isinstance(callee.owner.py, Inst):
        return _container_view(body, callee.owner.py, tail)
    if callee.word in ("module-view", "container-view"):
        return UNKNOWN
    if head == "builtins":
        return _python_builtin(body, node, tail)
    if dotted in _TORCH_SPECIAL:
        return _TORCH_SPECIAL[dotted](body, node, args, keywords)
    operator = data.names.get(dotted)
    if operator is not None:
        return _operator(body, node, dotted, operator, args, keywords, complete)
    texts = data.functions.get(dotted)
    if texts is not None:
        if texts[0].startswith("!"):
            if _after_refusal(args, keywords):
                return REFUSED
            return body.fail("uncompilable-function", node, name=dotted, why=texts[0][1:])
        if not complete:
            return UNKNOWN
        return _match_torch(body, node, parsed(tuple(texts)), args, keywords, dotted)
    if dotted.startswith("torch.nested."):
        return body.fail(
            "uncompilable-function",
            node,
            name=dotted,
            why="nested tensors are made by Python code that does not compile",
        )
    if dotted.startswith("torch."):
        return _torch_class(body, node, dotted, args, keywords, complete)
    root = dotted.partition(".")[0]
    if root in ("numpy", "scipy") or root in sys.stdlib_module_names and root not in _TYPING:
        return REFUSED if _after_refusal(args, keywords) else body.fail("foreign-call", node, name=dotted)
    return UNKNOWN


def _container_view(body: Body, container: Inst, name: str) -> V:
    """`keys()`, `values()` and `items()` of a ModuleDict: what the compiler unrolls."""
    if container.container != "ModuleDict" or container.children is None:
        return UNKNOWN
    keys = [V(t.STR, const=key) for key in container.children]
    values = body.compiler.children(container)
    if name == "items":
        return V(items=[_row([k, v]) for k, v in zip(keys, values, strict=True)], word="items")
    return V(items=keys if name == "keys" else values, word=name) if name in ("keys", "values") else UNKNOWN


def _after_refusal(args: list[V], keywords: dict[str, V]) -> bool:
    """Whether an argument was refused before: then the call is a consequence."""
    return any(v.word == "refused" for v in [*args, *keywords.values()])


def _typed_constructor(
    body: Body, node: cst.Call, name: str, args: list[V], keywords: dict[str, V], complete: bool
) -> V:
    """`torch.FloatTensor` and its kin, of sizes or of data; a tensor it takes for a number."""
    kinds = [body.type_of(a, node) for a in args]
    if not complete or t.UNKNOWN in kinds:
        return V(t.TENSOR)
    sizes = all(kind is t.INT for kind in kinds)
    if keywords.keys() - {"device"} or len(kinds) > 1 and not sizes or kinds == [t.STR]:
        return body.fail("legacy-constructor", node, name=name)
    if kinds == [t.TENSOR]:
        return body.fail("tensor-of-tensor", node, LIKELY, name=name, what="a tensor")
    return V(t.TENSOR)


def _torch_class(body: Body, node: cst.Call, dotted: str, args: list[V], keywords: dict[str, V], complete: bool) -> V:
    head, _, tail = dotted.rpartition(".")
    if tail in LEGACY and head in ("torch", "torch.cuda"):
        name = dotted.removeprefix("torch.")
        if head == "torch.cuda" or tail in ("Tensor", "BFloat16Tensor"):
            return body.fail("legacy-constructor", node, name=name)
        return _typed_constructor(body, node, name, args, keywords, complete)
    if tail == "Variable" and head.startswith("torch.autograd"):
        return body.fail("variable", node)
    if head.startswith("torch.nn") and tail[:1].isupper():
        if tail in ("Parameter", "Buffer"):
            return body.fail("parameter-in-forward", node, name=tail)
        if tail in body.data.modules or "modules" in head:
            return body.fail("module-in-forward", node, name=tail)
        return UNKNOWN
    if head == "torch" and tail not in ("device", "Size", "jit"):
        if tail in (
            "finfo",
            "iinfo",
            "is_tensor",
            "set_default_dtype",
            "get_default_dtype",
            "is_storage",
            "typename",
            "compile",
        ):
            return body.fail("uncompilable-function", node, name=dotted, why=f"Unknown builtin op: aten::{tail}")
    if tail == "Size" and head == "torch":
        return body.fail("uncompilable-function", node, name=dotted, why="torch.Size is no TorchScript type")
    if dotted.startswith(("torch.distributions.", "torch.optim.")):
        return body.fail("uncompilable-function", node, name=dotted, why="a Python object")
    return UNKNOWN


def _operator(
    body: Body, node: cst.Call, dotted: str, operator: str, args: list[V], keywords: dict[str, V], complete: bool
) -> V:
    data = body.data
    if not data.overloads(operator):
        if operator in data.operators or not operator.startswith("aten::"):
            return UNKNOWN
        if _after_refusal(args, keywords):
            return REFUSED
        return body.fail("uncompilable-function", node, name=dotted, why=f"Unknown builtin op: {operator}")
    if not complete:
        return UNKNOWN
    return _check_operator(body, node, operator, dotted, args, keywords)


def _check_operator(body: Body, node: cst.Call, operator: str, shown: str, args: list[V], keywords: dict[str, V]) -> V:
    positional = [_argument(body, a, node) for a in args]
    named = {k: _argument(body, v, node) for k, v in keywords.items()}
    fitted = partial(body.data.call, operator)
    result = fitted(positional, named)
    if isinstance(result, s.Mismatch):
        soft = any(v.soft for v in [*args, *keywords.values()])
        return _misfit(body, node, shown, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(result)


def _misfit(
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
    types = ", ".join([*map(_show, positional), *(f"{k}: {_show(v)}" for k, v in named.items())])
    return body.fail("schema", node, LIKELY if soft else CERTAIN, name=shown, why=mismatch.why, types=types)


def _match_torch(
    body: Body, node: cst.CSTNode, schemas: tuple[s.Schema, ...], args: list[V], keywords: dict[str, V], shown: str
) -> V:
    positional = [_argument(body, a, node) for a in args]
    named = {k: _argument(body, v, node) for k, v in keywords.items()}
    chosen = schemas
    if len(schemas) == 2 and any(a.name == "return_indices" for a in schemas[0].args):
        chosen = _dispatch(schemas, args, keywords)
        if not chosen:
            return UNKNOWN
    if shown.endswith((".unique", ".unique_consecutive")):
        return UNKNOWN  # its flags choose among five
    result = choose(chosen, positional, named)
    if isinstance(result, s.Mismatch):
        value = _blamed(result, args, keywords)
        soft = value.soft if value is not None else any(v.soft for v in [*args, *keywords.values()])
        fitted = partial(choose, chosen)
        return _misfit(body, node, shown, result, [*args, *keywords.values()], positional, named, fitted, soft)
    return V(result)


def _dispatch(schemas: tuple[s.Schema, ...], args: list[V], keywords: dict[str, V]) -> tuple[s.Schema, ...]:
    """`return_indices` chooses between two functions when it is a literal."""
    names = [a.name for a in schemas[0].args]
    at = names.index("return_indices")
    value = args[at] if at < len(args) else keywords.get("return_indices")
    if value is None:
        return schemas[1:]
    return () if not isinstance(value.const, bool) else schemas[:1] if value.const else schemas[1:]


# --- methods of values


def _method(body: Body, node: cst.Call, callee: V, hint: t.Type) -> V:
    name = str(callee.const)
    owner = callee.owner
    assert owner is not None and owner.type is not None
    if name == "tolist" and owner.type is t.TENSOR:
        _arguments(body, node)
        if hint is t.UNKNOWN:
            return body.fail("tolist", node)
        return V(hint)
    args, keywords, complete = _arguments(body, node)
    if not complete:
        return UNKNOWN
    if owner.type is t.TENSOR:
        if name in body.data.extra_methods and not body.data.has_operator(name):
            for value in [*args, *keywords.values()]:
                body.type_of(value, node)
            return V(t.TENSOR)
        return _check_operator(body, node, f"aten::{name}", f"Tensor.{name}", [owner, *args], keywords)
    if owner.type.kind in ("List", "Dict"):
        return _container_method(body, node, owner, name, args, keywords)
    if owner.type is t.STR:
        if name == "format":
            if keywords:
                body.fail("schema", node, name="str.format", why="it takes no keywords", types=", ".join(keywords))
            return V(t.STR)
        return _check_operator(body, node, f"aten::{name}", f"str.{name}", [owner, *args], keywords)
    return UNKNOWN


def _container_method(body: Body, node: cst.Call, owner: V, name: str, args: list[V], keywords: dict[str, V]) -> V:
    kind = owner.type
    assert kind is not None
    if name in ("append", "insert") and args and kind.kind == "List":
        given = body.type_of(args[-1], node)
        if not t.is_subtype(given, kind.args[0]) and not t.has_unknown(given):
            confidence = LIKELY if args[-1].soft or owner.soft else CERTAIN
            return body.misfit(owner, node, confidence, _show(given))
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
        return _misfit(body, node, shown, result, [owner, *args, *keywords.values()], positional, named, fitted, soft)
    return V(result)


# --- Python's builtins


def _range(body: Body, node: cst.Call) -> V:
    args, _, _ = _arguments(body, node)
    for number, value in enumerate(args):
        kind = body.type_of(value, node)
        if kind not in (t.INT, t.UNKNOWN, t.BOOL):
            confidence = LIKELY if value.soft else CERTAIN
            if kind.kind == "Optional":
                body.unrefined(value, node, kind, "range")
                break
            body.misread(value, "range", node, confidence, type=_show(kind), position=str(number))
            break
    return V(elem=V(t.INT), word="range")


def _zip(body: Body, node: cst.Call) -> V:
    args, _, complete = _arguments(body, node)
    if not complete:
        return V(elem=UNKNOWN, word="zip")
    static = [body.static_items(a) for a in args]
    if any(x is not None for x in static):
        if all(x is not None for x in static):
            rows = zip(*(x for x in static if x is not None), strict=False)
            return V(items=[_row(list(r)) for r in rows], word="zip")
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
        return V(items=[_row(list(r)) for r in zip(*columns, strict=False)], word="zip")
    if any(isinstance(a.py, Inst) for a in args):
        return V(elem=UNKNOWN, word="zip")
    elements = [body.element(a, node) for a in args]
    return V(elem=_row(elements), word="zip")


def _row(values: list[V]) -> V:
    if all(v.type is not None for v in values):
        return V(t.Tuple(v.type for v in values if v.type is not None), items=values)
    return V(None, items=values)


def _enumerate(body: Body, node: cst.Call) -> V:
    args, _, _ = _arguments(body, node)
    if not args:
        return UNKNOWN
    items = body.static_items(args[0])
    if items is not None:
        return V(items=[_row([V(t.INT), item]) for item in items], word="enumerate")
    if isinstance(args[0].py, Inst):
        return V(elem=UNKNOWN, word="enumerate")
    return V(elem=_row([V(t.INT), body.element(args[0], node)]), word="enumerate")


def _print(body: Body, node: cst.Call) -> V:
    _, keywords, _ = _arguments(body, node)
    if keywords:
        body.fail("print-keyword", node)
    return V(t.NONE)


def _len(body: Body, node: cst.Call) -> V:
    args, _, _ = _arguments(body, node)
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
    args, _, _ = _arguments(body, node)
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
    args, _, _ = _arguments(body, node)
    if not args:
        return V(t.Tuple(()))
    value = args[0]
    if value.items is not None:
        return _row(value.items)
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
    args, keywords, _ = _arguments(body, node)
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
    args, _, _ = _arguments(body, node)
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
        args, keywords, complete = _arguments(body, node)
        if not complete or keywords:
            return UNKNOWN
        kinds = tuple(body.type_of(a, node) for a in args)
        if t.UNKNOWN in kinds:
            return V(_RESULTS.get(word, t.UNKNOWN))
        key = f"{word}()" if len(kinds) == 1 else f"{word}(,)"
        if word == "sum" and len(kinds) == 2 and kinds[0].kind == "List":
            return body.fail("builtin-arguments", node, name=word, types=", ".join(map(_show, kinds)))
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
            return body.fail("builtin-arguments", node, confidence, name=word, types=", ".join(map(_show, kinds)))
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
    _arguments(body, node)
    return UNKNOWN


def _refused(word: str) -> Callable[[Body, cst.Call], V]:
    def handler(body: Body, node: cst.Call) -> V:
        return body.fail("python-builtin", node, name=word)

    return handler


def _python_class(word: str) -> Callable[[Body, cst.Call], V]:
    """A class of Python's: given tensors it compiles to a call that should give a tensor, and fails where it runs."""

    def handler(body: Body, node: cst.Call) -> V:
        args, _, _ = _arguments(body, node)
        if any(a.type is t.UNKNOWN for a in args):
            return UNKNOWN
        if not args or any(a.type is not t.TENSOR for a in args):
            return body.fail("python-builtin", node, name=word)
        return V(t.TENSOR) if body.raising else body.fail("python-class", node, name=word)

    return handler


def _python_builtin(body: Body, node: cst.Call, name: str) -> V:
    import builtins

    value = getattr(builtins, name, None)
    if isinstance(value, type) and issubclass(value, BaseException):
        return UNKNOWN
    return body.fail("python-builtin", node, name=name)


_BUILTINS: dict[str, Callable[[Body, cst.Call], V]] = {
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


# --- torch names that the compiler treats itself


def _unchecked(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    return UNKNOWN


def _annotate(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    try:
        return V(body.compiler.annotations.read(node.args[0].value, body.function.module))
    except Exception:
        return UNKNOWN


def _tensor(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    if args and args[0].type is t.TENSOR:
        body.fail("tensor-of-tensor", node, POSSIBLE, name="tensor", what="a tensor")
    elif args and args[0].type is t.List(t.TENSOR):
        body.fail("tensor-of-tensor", node, CERTAIN, name="tensor", what="a list of tensors")
    for value in [*args, *keywords.values()]:
        body.type_of(value, node)
    return V(t.TENSOR)


def _device(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    return V(t.DEVICE)


def _ordered_dict(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    if not args:
        return V(t.Dict(t.STR, t.TENSOR), word="empty")
    return UNKNOWN


def _bool(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    return V(t.BOOL)


def _assert(body: Body, node: cst.Call, args: list[V], keywords: dict[str, V]) -> V:
    return V(t.NONE)


_TORCH_SPECIAL: dict[str, Callable[[Body, cst.Call, list[V], dict[str, V]], V]] = {
    "torch.jit.annotate": _annotate,
    "torch.tensor": _tensor,
    "torch.device": _device,
    "collections.OrderedDict": _ordered_dict,
    "torch.jit.is_tracing": _bool,
    "torch.jit.is_scripting": _bool,
    "torch.jit.isinstance": _bool,
    "torch.jit.fork": _unchecked,
    "torch.jit.wait": _unchecked,
    "torch._assert": _assert,
    "torch.jit._unwrap_optional": _unchecked,
    "warnings.warn": _assert,
    "torch._check": _assert,
    "collections.namedtuple": _unchecked,
}
__all__ = ["Any", "call", "call_function", "call_module"]
