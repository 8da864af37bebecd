"""Decorators that wrap a function -> how `torch.jit.script` compiles it: its own source, with the wrapper's names."""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from tsdyn_lint.resolve import Function, Program

_GRAD_MODES = frozenset(
    f"{home}.{name}"
    for home in ("torch", "torch.autograd", "torch.autograd.grad_mode")
    for name in ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled")
)
_AUTOCASTS = frozenset(
    {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.cuda.amp.autocast"}
)
_CUSTOM_FORWARDS = frozenset({"torch.amp.custom_fwd", "torch.cuda.amp.custom_fwd"})
_GRAD_MODE_NAMES = frozenset({"functools", "inspect", "sys", "warnings"})
"""What the module of torch's grad modes has of its own; `F` it has too, as a type variable."""
_AUTOCAST_NAMES = frozenset({"collections", "functools", "warnings", "torch", "np"})


@dataclass(frozen=True)
class Wrapping:
    """A decorator made with `functools.wraps`. `knows`: whether a global name is found where the wrapper is written.

    `drops`: compiled without the wrapper, the function gives something else; a grad mode changes no values.
    """

    node: cst.BaseExpression
    name: str
    knows: Callable[[str], bool]
    drops: bool
    grad_mode: bool = False


def wrapping(program: Program, function: Function) -> Wrapping | None:
    """The outermost wrapper around a function, whose globals its source is compiled with."""
    for decorator in function.decorators:
        called = decorator.func if isinstance(decorator, cst.Call) else decorator
        dotted = function.module.dotted(called) or ""
        if dotted in _GRAD_MODES:
            return Wrapping(decorator, dotted, _has(_GRAD_MODE_NAMES), not dotted.endswith("enable_grad"), True)
        if dotted in _AUTOCASTS or dotted in _CUSTOM_FORWARDS:
            return Wrapping(decorator, dotted, _has(_AUTOCAST_NAMES), dotted in _AUTOCASTS)
        made = program.resolve(called, function.module)
        if isinstance(made, Function):
            for nested in _nested(made):
                if any(_is_wraps(d, made) for d in nested.decorators):
                    return Wrapping(decorator, made.name, _defines(program, made), not _passes_on(nested))
    return None


def replacement(program: Program, function: Function) -> tuple[Function, cst.FunctionDef] | None:
    """A decorator of the program and the nested function that it returns instead, without `functools.wraps`."""
    for decorator in function.decorators:
        plain = not isinstance(decorator, cst.Call)
        made = program.resolve(decorator, function.module) if plain else None
        if not isinstance(made, Function):
            continue
        returned = {
            small.value.value
            for statement in made.body
            if isinstance(statement, cst.SimpleStatementLine)
            for small in statement.body
            if isinstance(small, cst.Return) and isinstance(small.value, cst.Name)
        }
        for nested in made.body:
            if isinstance(nested, cst.FunctionDef) and nested.name.value in returned and not nested.decorators:
                return made, nested
    return None


def _nested(function: Function) -> Iterator[cst.FunctionDef]:
    todo: list[cst.CSTNode] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, cst.FunctionDef):
            yield node
            todo += node.body.body


def _passes_on(wrapper: cst.FunctionDef) -> bool:
    """Whether all that a wrapper does is to return what a call gives."""
    match [s for s in wrapper.body.body if not _is_docstring(s)]:
        case [cst.SimpleStatementLine(body=[cst.Return(value=cst.Call())])]:
            return True
    return False


def _is_docstring(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def _is_wraps(decorator: cst.Decorator, made: Function) -> bool:
    node = decorator.decorator
    return isinstance(node, cst.Call) and made.module.dotted(node.func) == "functools.wraps"


def _has(names: frozenset[str]) -> Callable[[str], bool]:
    return lambda name: name in names or _everywhere(name)


def _defines(program: Program, made: Function) -> Callable[[str], bool]:
    return lambda name: bool(made.module.stars) or _everywhere(name) or program.lookup(made.module, name) is not None


def _everywhere(name: str) -> bool:
    return hasattr(builtins, name) or hasattr(typing, name)
