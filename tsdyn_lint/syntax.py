"""What several steps ask of `ast` trees, and of the rows of a text as `ast` counts them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def rows_of(text: str) -> Sequence[str]:
    """The rows of a text with their ends."""
    return _LINE.findall(text)


def first_row(node: ast.stmt) -> int:
    """The row that a statement begins at, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """The node and all below it but for contexts (`Load`, `Store`), in the order of `ast.walk`, which takes more than
    twice the time.
    """
    found = [tree]
    for node in found:
        kind = type(node)
        if kind is ast.Name or kind is ast.Constant:  # half of all, with nothing below but a context
            continue
        values = node.__dict__
        for name in node._fields:
            value = values.get(name)
            if isinstance(value, list):
                found.extend([one for one in value if isinstance(one, ast.AST)])
            elif isinstance(value, ast.AST) and name != "ctx":
                found.append(value)
    return found
