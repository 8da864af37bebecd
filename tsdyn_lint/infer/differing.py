"""A class whose instances are compiled one by one -> the attributes in which those instances differ.

Dynamo compiles code, and the instances of a class share theirs. A guard on an integer or a text of one instance fails
for the next one, which holds another, and the limit of recompiles is counted for all of them together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.captures import captures, dotted_ast
from tsdyn_lint.resolve import Class, Module
from tsdyn_lint.syntax import COMPREHENSIONS, nodes_of
from tsdyn_lint.usage import CAPTURES

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def differing_attributes(cls: Class) -> dict[str, str]:
    """Attributes that hold another value in each of the instances that are compiled one by one: name -> "int", "str".

    These are arguments of the constructor that a loop of the same file counts or names: `[Block(i) for i in range(n)]`.
    Other numbers and truth values cost little: Dynamo makes the first dynamic, and there are but two of the second.
    """
    module, syntax = cls.module, cls.module.tree.syntax
    constructor = cls.methods.syntax("__init__") if "__init__" in cls.methods else None
    if syntax is None or not isinstance(constructor, _FUNCTIONS):
        return {}
    if not any(Engine.DYNAMO in capture.engines for capture in captures(module)):
        return {}
    forward = cls.methods.syntax("forward") if "forward" in cls.methods else None
    decorated = isinstance(forward, _FUNCTIONS) and any(_compiles(node, module) for node in forward.decorator_list)
    parameters = [one.arg for one in (*constructor.args.posonlyargs, *constructor.args.args)][1:]
    varied: dict[str, str] = {}
    for made in _made_in_loops(module, syntax):
        if made.name == cls.name and (decorated or made.compiled):
            given = [*zip(parameters, made.positional, strict=False), *made.keywords]
            varied.update((name, kind) for name, kind in given if name and kind)
    return {
        target.attr: varied[node.value.id]
        for node in nodes_of(constructor)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Name)
        and node.value.id in varied
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }


@dataclass(frozen=True)
class _Made:
    """A call of a plain name in a loop: the type of each argument that is another one at each turn, else empty."""

    name: str
    compiled: bool
    positional: tuple[str, ...]
    keywords: tuple[tuple[str | None, str], ...]


_MADE: WeakKeyDictionary[Module, list[_Made]] = WeakKeyDictionary()


def _made_in_loops(module: Module, syntax: ast.Module) -> list[_Made]:
    """The calls in loops of a file that give another argument at each turn; looked for once."""
    found = _MADE.get(module)
    if found is None:
        found = _MADE[module] = []
        for call, scope in _calls(syntax, _Scope(module, _constants(syntax.body))):
            if scope.looped and isinstance(call.func, ast.Name):
                positional = tuple(_varying(value, scope) for value in call.args)
                keywords = tuple((one.arg, _varying(one.value, scope)) for one in call.keywords)
                if any(positional) or any(kind for _, kind in keywords):
                    found.append(_Made(call.func.id, scope.compiled, positional, keywords))
    return found


@dataclass(frozen=True)
class _Scope:
    """What holds around an expression: names of constants, names that a loop changes with the type that they hold, and
    whether a call compiles what the expression makes.
    """

    module: Module
    constants: Mapping[str, ast.expr]
    looped: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False


def _calls(node: ast.AST, scope: _Scope) -> Iterator[tuple[ast.Call, _Scope]]:
    """Every call below, with what holds around it."""
    inner = replace(scope, compiled=False)
    if isinstance(node, ast.Call):
        yield node, scope
        inner = replace(scope, compiled=_compiles(node, scope.module))
    elif isinstance(node, _FUNCTIONS):
        inner = replace(inner, constants={**scope.constants, **dict(_defaults(node.args, scope))}, looped={})
    elif isinstance(node, ast.For):
        inner = replace(inner, looped={**scope.looped, **dict(_changed(node.target, node.iter, scope))})
    elif isinstance(node, COMPREHENSIONS):
        for part in node.generators:
            inner = replace(inner, looped={**inner.looped, **dict(_changed(part.target, part.iter, scope))})
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, inner)


def _compiles(node: ast.expr, module: Module) -> bool:
    """Whether an expression compiles what it is given: `torch.compile` itself, or a call of it."""
    called = node.func if isinstance(node, ast.Call) else node
    return Engine.DYNAMO in CAPTURES.get(dotted_ast(called, module), ())


def _constants(body: list[ast.stmt]) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _defaults(arguments: ast.arguments, scope: _Scope) -> Iterator[tuple[str, ast.expr]]:
    """Parameters with what they hold where nothing else is given."""
    named = [*arguments.posonlyargs, *arguments.args]
    for parameter, value in zip(reversed(named), reversed(arguments.defaults), strict=False):
        yield parameter.arg, scope.constants.get(value.id, value) if isinstance(value, ast.Name) else value


def _changed(target: ast.expr, iterable: ast.expr, scope: _Scope) -> Iterator[tuple[str, str]]:
    """The names of a loop's target that are sure to hold another integer or text at each turn, with that type."""
    if isinstance(iterable, ast.Name):
        iterable = scope.constants.get(iterable.id, iterable)
    if isinstance(iterable, ast.Call):
        called = iterable.func.id if isinstance(iterable.func, ast.Name) else ""
        if called == "range" and isinstance(target, ast.Name):
            yield target.id, "int"
        elif called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2 and iterable.args:
            if isinstance(target.elts[0], ast.Name):
                yield target.elts[0].id, "int"
            yield from _changed(target.elts[1], iterable.args[0], scope)
        elif called == "zip" and isinstance(target, ast.Tuple):
            for part, one in zip(target.elts, iterable.args, strict=False):
                yield from _changed(part, one, scope)
    elif isinstance(iterable, (ast.Tuple, ast.List, ast.Set)) and isinstance(target, ast.Name):
        held = [one.value for one in iterable.elts if isinstance(one, ast.Constant)]
        types = {type(one) for one in held}
        if len(held) == len(iterable.elts) == len(set(held)) > 1 and types in ({int}, {str}):
            yield target.id, types.pop().__name__


def _varying(value: ast.expr, scope: _Scope) -> str:
    """The type of an argument that is another integer or text at each turn: `i`, `i + 1`, `f"layer{i}"`; else empty."""
    if isinstance(value, ast.Name):
        return scope.looped.get(value.id, "")
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub, ast.Mult)):
        for part, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(other, ast.Constant) and type(other.value) is int and other.value:
                return _varying(part, scope)
    if isinstance(value, ast.JoinedStr):
        parts = (part.value for part in value.values if isinstance(part, ast.FormattedValue))
        return "str" if any(_varying(part, scope) for part in parts) else ""
    return ""
