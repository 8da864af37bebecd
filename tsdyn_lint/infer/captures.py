"""The calls and decorators of a file that capture something: what, with which engines, on which inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.resolve import Module
from tsdyn_lint.syntax import nodes_of
from tsdyn_lint.usage import CAPTURES, dotted

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_MOST_INSTANCES = 8
"""Of a class in one file: each is walked by itself, and a file of tests may capture many that differ little."""
_EXAMPLES = frozenset({"args", "example_inputs"})


@dataclass(frozen=True)
class Capture:
    """A call or decorator that captures something: which engines, and the plain name of what is captured.

    `inputs`: how many example inputs a trace or an export is given, where that can be counted; `made`: the calls that
    make what is captured, or what the file keeps under that name.
    """

    engines: frozenset[Engine]
    name: str
    inputs: int = 0
    made: tuple[ast.Call, ...] = ()


_FOUND: WeakKeyDictionary[Module, list[Capture]] = WeakKeyDictionary()


def captures(module: Module) -> list[Capture]:
    """The capture calls and decorators of a file, wherever they stand; looked for once."""
    found = _FOUND.get(module)
    if found is None:
        found = _FOUND[module] = _captures(module)
    return found


def inputs_of(module: Module, name: str) -> int:
    """The most example inputs that the file captures a function or a class of that name with."""
    return max((one.inputs for one in captures(module) if one.name == name or any(_makes(name, one))), default=0)


@dataclass(frozen=True)
class Construction:
    """A call that makes what is captured, and for which engines; `local` are the names that functions around it bind,
    which only a run knows.
    """

    call: ast.Call
    engines: frozenset[Engine]
    local: frozenset[str]


def constructions(module: Module, name: str) -> list[Construction]:
    """The calls that make a file's captured instances of a class, those that are alike once. An engine that captures
    none of them may be given any.
    """
    calls: dict[str, ast.Call] = {}
    engines: dict[str, frozenset[Engine]] = {}
    for capture in captures(module):
        for call in _makes(name, capture):
            text = ast.dump(call)
            if isinstance(call.func, ast.Name) and (text in calls or len(calls) < _MOST_INSTANCES):
                calls[text] = call
                engines[text] = engines.get(text, frozenset()) | capture.engines
    others = frozenset(Engine).difference(*engines.values())
    nodes = module.tree.nodes if calls else []
    return [Construction(call, engines[text] | others, _bound_around(call, nodes)) for text, call in calls.items()]


def _bound_around(call: ast.Call, nodes: Iterable[ast.AST]) -> frozenset[str]:
    around = [
        node
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *_COMPREHENSIONS))
        and (node.lineno, node.col_offset) <= (call.lineno, call.col_offset)
        and (call.end_lineno, call.end_col_offset) <= (node.end_lineno, node.end_col_offset)
    ]
    inside = [node for scope in around for node in nodes_of(scope)]
    stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(stored | {node.arg for node in inside if isinstance(node, ast.arg)})


def _makes(name: str, capture: Capture) -> Iterator[ast.Call]:
    return (call for call in capture.made if _plain_name(call.func) == name)


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
                maker = _maker(target)
                name = _plain_name(maker or target)
                found.append(Capture(engines, name, count, (maker,) if maker else tuple(made.get(name, ()))))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                engines = CAPTURES.get(dotted_ast(called, module))
                if engines:
                    found.append(Capture(engines, node.name))
    return found


def _makers(nodes: Iterable[ast.AST]) -> dict[str, list[ast.Call]]:
    """Variables, wherever in the file, and the calls that make them: `Net(4)` for `net = Net(4).eval()`."""
    made: dict[str, list[ast.Call]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and (maker := _maker(node.value)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    made.setdefault(target.id, []).append(maker)
    return made


def _maker(node: ast.expr | None) -> ast.Call | None:
    """The first call of a chain: of `Net(4).eval().cuda()` that of `Net`; None where it begins with none."""
    if not isinstance(node, ast.Call):
        return None
    while isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node


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
