"""The Python sources and stubs of a torch folder -> signatures of its public functions, methods and attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Signature:
    """One overload of a function: positional parameter names, keyword-only ones, its return annotation."""

    name: str
    params: tuple[str, ...]
    keywords: tuple[str, ...]
    returns: ast.expr | None
    annotations: tuple[str, ...]
    is_property: bool = False


def read(path: Path) -> ast.Module:
    """The parsed file; an empty module where this torch has no such file."""
    return ast.parse(path.read_text("utf-8")) if path.is_file() else ast.Module([], [])


def functions(body: list[ast.stmt], *, method: bool = False) -> Iterator[Signature]:
    """Functions defined in `body`, under `if` and `try` too, in order; `method` drops `self`."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _signature(node, method)
        elif isinstance(node, (ast.If, ast.Try)):
            yield from functions(node.body, method=method)
            yield from functions(node.orelse, method=method)


def classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """Classes defined in `body`, under `if` too."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
        elif isinstance(node, ast.If):
            yield from classes(node.body)
            yield from classes(node.orelse)


def attributes(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Annotated attributes of a class."""
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation


def return_types(torch_dir: Path) -> dict[str, tuple[str, ...]]:
    """Field names of each `torch.return_types` class."""
    return {
        cls.name: tuple(s.name for s in functions(cls.body, method=True) if s.is_property)
        for cls in classes(read(torch_dir / "return_types.pyi").body)
    }


def dispatches(tree: ast.Module) -> dict[str, tuple[str, int, str, str]]:
    """`f = boolean_dispatch(arg_name=, arg_index=, if_true=, if_false=)`: name -> (argument, its index, if true,
    if false)."""
    found: dict[str, tuple[str, int, str, str]] = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        call, target = node.value, node.targets[0]
        if ast.unparse(call.func) == "boolean_dispatch" and isinstance(target, ast.Name):
            words = {k.arg: k.value for k in call.keywords}
            index = words["arg_index"]
            if isinstance(index, ast.Constant) and isinstance(index.value, int):
                found[target.id] = (
                    str(ast.literal_eval(words["arg_name"])), index.value,
                    ast.unparse(words["if_true"]), ast.unparse(words["if_false"]),
                )  # fmt: skip
    return found


def aliases(tree: ast.Module) -> dict[str, str]:
    """`f = _add_docstr(a.b, "...")` and `f = a.b` at module level: name -> `a.b`."""
    found: dict[str, str] = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        value = node.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "_add_docstr" and value.args:
            value = value.args[0]
        if isinstance(value, ast.Attribute):
            found[node.targets[0].id] = ast.unparse(value)
    return found


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Signature:
    args = node.args
    decorators = {ast.unparse(d) for d in node.decorator_list}
    positional = [*args.posonlyargs, *args.args]
    if method and positional and "staticmethod" not in decorators:
        positional = positional[1:]
    return Signature(
        name=node.name,
        params=tuple(a.arg for a in positional),
        keywords=tuple(a.arg for a in args.kwonlyargs),
        returns=node.returns,
        annotations=tuple(ast.unparse(a.annotation) if a.annotation else "" for a in positional),
        is_property="property" in decorators,
    )
