"""Rows of a file by statement and by function: torch blames a row, a finding names a row, both mean a statement."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path


class Statements:
    """Spans of one file's text. Rows are 1-based; a compound statement spans its header only."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _tables(self) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int, str]], set[int]]:
        spans: dict[int, tuple[int, int]] = {}
        functions: dict[int, tuple[int, int, str]] = {}
        starts: set[int] = set()

        def visit(node: ast.AST, name: str) -> None:
            for child in ast.iter_child_nodes(node):
                inner = name
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    inner = f"{name}.{child.name}".lstrip(".")
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    above = min((d.lineno for d in child.decorator_list), default=child.lineno)
                    for row in range(above, (child.end_lineno or child.lineno) + 1):
                        functions[row] = (child.lineno, child.end_lineno or child.lineno, inner)
                if isinstance(child, ast.stmt):
                    first, last = child.lineno, _header_end(child)
                    for row in range(first, last + 1):
                        spans[row] = (first, last)
                    if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                        starts.add(first)
                visit(child, inner)

        try:
            visit(ast.parse(self._text), "")
        except (SyntaxError, ValueError):
            return {}, {}, set()
        return spans, functions, starts

    def lines(self, first: int, last: int) -> list[str]:
        """The text of some rows."""
        return self._text.splitlines()[first - 1 : last]

    def columns(self, row: int) -> tuple[int, int]:
        """The column at which the code of a row begins, and the one past it."""
        text = next(iter(self.lines(row, row)), "")
        first = len(text) - len(text.lstrip()) + 1
        return first, max(len(text.rstrip()), first) + 1

    def span(self, row: int) -> tuple[int, int]:
        """First and last row of the statement at that row; the row itself where there is none."""
        return self._tables[0].get(row, (row, row))

    def same(self, one: int, other: int) -> bool:
        """Whether two rows are of one statement."""
        return one == other or self.span(one) == self.span(other)

    def function(self, row: int) -> tuple[int, int, str] | None:
        """First row, last row and qualified name of the innermost function around a row; a decorator's is the function
        below it.
        """
        return self._tables[1].get(row)

    def share(self, rows: set[int], functions: set[tuple[int, int, str]]) -> tuple[int, int]:
        """How many statements of these functions ran, and how many there are, docstrings and headers aside."""
        inside = [row for row in self._tables[2] if any(first < row <= last for first, last, _ in functions)]
        ran = [row for row in inside if any(r in rows for r in range(row, self.span(row)[1] + 1))]
        return len(ran), len(inside)


def text_of(filename: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        return Path(filename).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _header_end(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return max(node.lineno, min(body[0].lineno - 1, node.end_lineno or node.lineno))
    return node.end_lineno or node.lineno
