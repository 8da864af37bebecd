"""Calls of names outside of the program: torch's functions and classes, NumPy, the standard library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from tsdyn_lint.script import types as t
from tsdyn_lint.script.builtin_calls import python_builtin
from tsdyn_lint.script.call_schemas import after_refusal, check_operator, match_torch
from tsdyn_lint.script.data import parsed
from tsdyn_lint.script.emitter import LEGACY, row
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Inst
from tsdyn_lint.script.sugar import REFUSED, UNKNOWN, V

if TYPE_CHECKING:
    from tsdyn_lint.script.body import Body

_TYPING = frozenset(
    {"typing", "enum", "dataclasses", "abc", "contextlib", "types", "warnings", "math", "cmath", "numbers"}
)

_OF_CUDA = frozenset(
    f"torch.cuda.{name}" for name in ("synchronize", "current_device", "device_count", "set_device", "device_index")
)
"""Functions that stand for operators where torch is built with CUDA, and have none to stand for elsewhere."""


def external_call(
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
        return python_builtin(body, node, tail)
    if dotted in _TORCH_SPECIAL:
        return _TORCH_SPECIAL[dotted](body, node, args, keywords)
    operator = data.names.get(dotted)
    if operator is not None:
        return _operator(body, node, dotted, operator, args, keywords, complete)
    if dotted in _OF_CUDA:
        body.fail("uncompilable-function", node, POSSIBLE, name=dotted, why="only a torch built with CUDA has it")
        return UNKNOWN
    texts = data.functions.get(dotted)
    if texts is not None:
        if texts[0].startswith("!"):
            if after_refusal(args, keywords):
                return REFUSED
            return body.fail("uncompilable-function", node, name=dotted, why=texts[0][1:])
        if not complete:
            return UNKNOWN
        return match_torch(body, node, parsed(tuple(texts)), args, keywords, dotted)
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
        return REFUSED if after_refusal(args, keywords) else body.fail("foreign-call", node, name=dotted)
    return UNKNOWN


def _container_view(body: Body, container: Inst, name: str) -> V:
    """`keys()`, `values()` and `items()` of a ModuleDict: what the compiler unrolls."""
    if container.container != "ModuleDict" or container.children is None:
        return UNKNOWN
    keys = [V(t.STR, const=key) for key in container.children]
    values = body.compiler.children(container)
    if name == "items":
        return V(items=[row([k, v]) for k, v in zip(keys, values, strict=True)], word="items")
    return V(items=keys if name == "keys" else values, word=name) if name in ("keys", "values") else UNKNOWN


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
    if head == "torch" and body.data.has_operator(tail):  # a class that an operator stands for, such as `torch.Size`
        return check_operator(body, node, f"aten::{tail}", dotted, args, keywords) if complete else UNKNOWN
    if head == "torch":
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
        if after_refusal(args, keywords):
            return REFUSED
        return body.fail("uncompilable-function", node, name=dotted, why=f"Unknown builtin op: {operator}")
    if not complete:
        return UNKNOWN
    return check_operator(body, node, operator, dotted, args, keywords)


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
