"""How a function uses its parameters, read off its source: indexed, iterated, called, compared, unpacked."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

LOOPS = {"len", "enumerate", "list", "tuple", "sum", "zip", "iter", "reversed"}
WHOLE = ("Conv", "Linear", "Embedding", "BatchNorm", "LayerNorm", "LSTM", "GRU", "Parameter", "zeros", "ones", "randn")


@dataclass
class Use:
    """What is done with one name."""

    attributes: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    compared: list[Any] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    """`called`, `iterated`, `indexed`, `whole` (must be an int), `fraction`, `vocabulary`."""
    dims: set[int] = field(default_factory=set)
    """Numbers of dimensions that unpacking, permuting and the like ask for."""
    parts: int = 0
    """How many names it is unpacked into."""


def syntax_of(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The function's tree, None where its source cannot be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    node = tree.body[0] if tree.body else None
    return node if isinstance(node, ast.FunctionDef) else None


def uses_in(function: Callable[..., Any]) -> defaultdict[str, Use]:
    """Name -> use, for every name of the function."""
    found: defaultdict[str, Use] = defaultdict(Use)
    tree = syntax_of(function)
    for node in ast.walk(tree) if tree else ():
        _note(node, found)
    return found


def _note(node: ast.AST, found: defaultdict[str, Use]) -> None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found[node.value.id].attributes.add(node.attr)
    elif isinstance(node, ast.Call):
        _note_call(node, found)
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        use = found[node.value.id]
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            use.keys.append(node.slice.value)
        elif isinstance(node.slice, ast.Tuple):
            use.dims.add(len([e for e in node.slice.elts if not _is_none(e)]))
        else:
            use.marks.add("indexed")
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Name):
        found[node.iter.id].marks.add("iterated")
    elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
        for comparator in node.comparators:
            found[node.left.id].compared += _constants(comparator)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        _note_unpacking(node.targets[0], node.value, found)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, Ellipsis)


def _constants(node: ast.expr) -> list[Any]:
    if isinstance(node, ast.Constant):
        return [] if isinstance(node.value, bool) or node.value is None else [node.value]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [element.value for element in node.elts if isinstance(element, ast.Constant)]
    return []


def _note_unpacking(target: ast.Tuple, value: ast.expr, found: defaultdict[str, Use]) -> None:
    """`a, b = x` and `b, c, h, w = x.size()` or `x.shape`."""
    count = len(target.elts)
    if isinstance(value, ast.Name):
        found[value.id].parts = max(found[value.id].parts, count)
        return
    if isinstance(value, ast.Call) and not value.args:
        value = value.func
    if isinstance(value, ast.Attribute) and value.attr in ("size", "shape") and isinstance(value.value, ast.Name):
        found[value.value.id].dims.add(count)


def _note_call(node: ast.Call, found: defaultdict[str, Use]) -> None:
    name = ast.unparse(node.func)
    short = name.rpartition(".")[2]
    names = [arg.id for arg in node.args if isinstance(arg, ast.Name)]
    if isinstance(node.func, ast.Name):
        found[node.func.id].marks.add("called")
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        _note_method(found[owner.id], short, node.args)
    for used in names:
        use = found[used]
        if name in LOOPS:
            use.marks.add("iterated")
        if name == "range" or short.startswith(WHOLE):
            use.marks.add("whole")
        if short.startswith("Dropout"):
            use.marks.add("fraction")
        if short in ("bmm", "baddbmm"):
            use.dims.add(3)
    if short == "Embedding" and names:
        found[names[0]].marks.add("vocabulary")


def _note_method(use: Use, method: str, args: list[ast.expr]) -> None:
    numbers = [n for n in map(_number, args) if n is not None]
    if method == "permute" and len(args) > 1:
        use.dims.add(len(args))
    elif method in ("transpose", "size", "flatten", "sum", "mean", "unsqueeze", "squeeze", "softmax", "max", "narrow"):
        if numbers and max(numbers) >= 1:
            use.dims.add(max(numbers) + 1 - (method == "unsqueeze"))


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def calls_of(function: Callable[..., Any]) -> Iterator[tuple[str, int, str]]:
    """`self.conv(x)` in a method: attribute path after `self`, position of the argument, its name; in source order."""
    tree = syntax_of(function)
    if tree is None or not tree.args.args:
        return
    own = tree.args.args[0].arg
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            path = ast.unparse(node.func)
            if path.startswith(own + "."):
                for position, arg in enumerate(node.args):
                    if isinstance(arg, ast.Name):
                        yield path[len(own) + 1 :], position, arg.id
