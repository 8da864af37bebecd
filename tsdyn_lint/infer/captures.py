"""The calls and decorators of a file that capture something: what, with which engines, on which inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.resolve import Module
from tsdyn_lint.usage import CAPTURES, dotted

_EXAMPLES = frozenset({"args", "example_inputs"})


@dataclass(frozen=True)
class Capture:
    """A call or decorator that captures something: which engines, and the plain name of what is captured.

    `inputs`: how many example inputs a trace or an export is given, where that can be counted; `made`: what the file
    calls to make what stands under that name; `target`: what a call is given to capture.
    """

    engines: frozenset[Engine]
    name: str
    inputs: int = 0
    made: frozenset[str] = frozenset()
    target: ast.expr | None = None


_FOUND: WeakKeyDictionary[Module, list[Capture]] = WeakKeyDictionary()


def captures(module: Module) -> list[Capture]:
    """The capture calls and decorators of a file, wherever they stand; looked for once."""
    found = _FOUND.get(module)
    if found is None:
        found = _FOUND[module] = _captures(module)
    return found


def inputs_of(module: Module, name: str) -> int:
    """The most example inputs that the file captures a function or a class of that name with."""
    return max((one.inputs for one in captures(module) if one.name == name or name in one.made), default=0)


def _captures(module: Module) -> list[Capture]:
    syntax = module.tree.syntax
    if syntax is None or not module.tree.may_capture:
        return []
    nodes = module.tree.nodes
    examples: dict[str, ast.FunctionDef | ast.expr] = {
        **{n.name: n for n in syntax.body if isinstance(n, ast.FunctionDef)},
        **{
            target.id: n.value
            for n in nodes
            if isinstance(n, ast.Assign) and isinstance(n.value, (ast.Lambda, ast.Tuple))
            for target in n.targets
            if isinstance(target, ast.Name)
        },
    }
    made = _makers(nodes)
    found = []
    for node in nodes:
        if isinstance(node, ast.Call):
            engines = CAPTURES.get(dotted_ast(node.func, module))
            if engines:
                target = node.args[0] if node.args else None
                example = node.args[1] if len(node.args) > 1 else None
                for keyword in node.keywords:
                    example = keyword.value if keyword.arg in _EXAMPLES else example
                count = _inputs(example, examples) if engines & {Engine.TRACE, Engine.EXPORT} else 0
                name = _plain_name(target)
                makers = frozenset(made.get(name, ()))
                found.append(Capture(engines, name, count, makers, target))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                engines = CAPTURES.get(dotted_ast(called, module))
                if engines:
                    found.append(Capture(engines, node.name))
    return found


def _makers(nodes: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Variables, wherever in the file, and the plain names of what is called to make them: `net = Net(4).eval()`."""
    made: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = node.value.func
            while isinstance(maker, ast.Attribute) and isinstance(maker.value, ast.Call):
                maker = maker.value.func
            for target in node.targets:
                if isinstance(target, ast.Name):
                    made.setdefault(target.id, set()).add(_plain_name(maker))
    return made


def _inputs(example: ast.expr | None, named: Mapping[str, ast.FunctionDef | ast.expr]) -> int:
    """How many values a tuple of example inputs holds: a literal, a variable's, or one that a function returns."""
    if isinstance(example, ast.Name) and isinstance(held := named.get(example.id), ast.Tuple):
        return len(held.elts)
    if isinstance(example, (ast.Tuple, ast.List)):
        return len(example.elts)
    if isinstance(example, ast.Call) and isinstance(example.func, ast.Name):
        maker = named.get(example.func.id)
        if isinstance(maker, ast.Lambda):
            return _inputs(maker.body, {})
        if isinstance(maker, ast.FunctionDef) and isinstance(maker.body[-1], ast.Return):
            return _inputs(maker.body[-1].value, {})
    return 0


def dotted_ast(node: ast.expr, module: Module) -> str:
    """The absolute dotted name of an attribute chain; empty for other expressions."""
    return dotted(node, module.symbols.imported)


def _plain_name(node: ast.expr | None) -> str:
    """The last name of what is captured: of `model.generate` the method's."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return _plain_name(node.func)
    return ""
