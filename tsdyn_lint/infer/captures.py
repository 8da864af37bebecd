"""The calls and decorators of a file that capture something: what, with which engines, on which inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.resolve import Module
from tsdyn_lint.usage import CAPTURES, may_capture

_EXAMPLES = frozenset({"args", "example_inputs"})


@dataclass(frozen=True)
class Capture:
    """A call or decorator that captures something: which engines, and the plain name of what is captured.

    `inputs`: how many example inputs a trace or an export is given, where that can be counted.
    """

    engines: frozenset[Engine]
    name: str
    row: int
    fullgraph: bool = False
    inputs: int = 0


_FOUND: WeakKeyDictionary[Module, list[Capture]] = WeakKeyDictionary()


def captures(module: Module) -> list[Capture]:
    """The capture calls and decorators of a file, wherever they stand; looked for once."""
    found = _FOUND.get(module)
    if found is None:
        found = _FOUND[module] = _captures(module)
    return found


def inputs_of(module: Module, name: str) -> int:
    """The most example inputs that the file captures a function or a class of that name with."""
    counted = [capture for capture in captures(module) if capture.inputs]
    if not counted:
        return 0
    assert module.tree.syntax is not None
    names = {name} | {
        target.id
        for node in ast.walk(module.tree.syntax)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _plain_name(node.value.func) == name
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return max((capture.inputs for capture in counted if capture.name in names), default=0)


def _captures(module: Module) -> list[Capture]:
    syntax = module.tree.syntax
    if syntax is None or not may_capture(module.tree.text.encode()):
        return []
    functions: dict[str, ast.FunctionDef | ast.Lambda] = {
        **{n.name: n for n in syntax.body if isinstance(n, ast.FunctionDef)},
        **{
            target.id: n.value
            for n in syntax.body
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Lambda)
            for target in n.targets
            if isinstance(target, ast.Name)
        },
    }
    found = []
    for node in ast.walk(syntax):
        if isinstance(node, ast.Call):
            engines = CAPTURES.get(dotted_ast(node.func, module))
            if engines:
                target = node.args[0] if node.args else None
                example = node.args[1] if len(node.args) > 1 else None
                for keyword in node.keywords:
                    example = keyword.value if keyword.arg in _EXAMPLES else example
                count = _inputs(example, functions) if engines & {Engine.TRACE, Engine.EXPORT} else 0
                found.append(Capture(engines, _plain_name(target), node.lineno, _is_full(node), count))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                engines = CAPTURES.get(dotted_ast(called, module))
                if engines:
                    found.append(Capture(engines, node.name, node.lineno, _is_full(decorator)))
    return found


def _is_full(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(
        k.arg == "fullgraph" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords
    )


def _inputs(example: ast.expr | None, functions: Mapping[str, ast.FunctionDef | ast.Lambda]) -> int:
    """How many values a tuple of example inputs holds: a literal, or one that a function of the file returns."""
    if isinstance(example, (ast.Tuple, ast.List)):
        return len(example.elts)
    if isinstance(example, ast.Call) and isinstance(example.func, ast.Name):
        maker = functions.get(example.func.id)
        if isinstance(maker, ast.Lambda):
            return _inputs(maker.body, {})
        if maker is not None and isinstance(maker.body[-1], ast.Return):
            return _inputs(maker.body[-1].value, {})
    return 0


def dotted_ast(node: ast.expr, module: Module) -> str:
    """The absolute dotted name of an attribute chain; empty for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    head = module.symbols.imported(node.id) or node.id
    return ".".join([head, *reversed(parts)])


def _plain_name(node: ast.expr | None) -> str:
    """The last name of what is captured: of `model.generate` the method's."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return _plain_name(node.func)
    return ""
