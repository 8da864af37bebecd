"""Nodes of one file -> where they stand in its text."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from tsdyn_lint.findings import Location
from tsdyn_lint.source import NEWLINE

_TYPE_COMMENT = re.compile(r"#[# ]*type:( \(.*)")


class Places(ABC):
    """Where the nodes of a tree stand."""

    @abstractmethod
    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        """Start and end of a node of this tree, in the file's rows and columns (end exclusive)."""

    @abstractmethod
    def text(self, node: cst.CSTNode) -> str:
        """The code of a node of this tree."""

    @abstractmethod
    def type_comment(self, function: cst.FunctionDef) -> str | None:
        """What follows `# type:` under the header of a function of this tree."""


class MadePlaces(Places):
    """A tree made of what `ast` read: `origins` has the syntax that its nodes were made from."""

    def __init__(self, lines: Sequence[str], origins: Mapping[cst.CSTNode, Any]) -> None:
        self._lines, self._origins = lines, origins

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        start, end = self._range(node)
        return self._location(*start), self._location(*end)

    def text(self, node: cst.CSTNode) -> str:
        (first, start), (last, end) = self._range(node)
        rows = [line.encode() for line in self._lines[first - 1 : last]]
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][start:]
        return b"".join(rows).decode()

    def type_comment(self, function: cst.FunctionDef) -> str | None:
        syntax = self._origins[function]
        first = first_row(syntax.body[0])
        for row in range(_header_end(syntax), first):
            found = _TYPE_COMMENT.search(self._lines[row - 1])
            if found:
                return found[1]
        return None

    def _range(self, node: cst.CSTNode) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows from 1, columns from 0 and in bytes, as `ast` has them."""
        syntax = self._origins[node]
        start, end = (syntax.lineno, syntax.col_offset), (syntax.end_lineno, syntax.end_col_offset)
        if type(node) is cst.Name and type(syntax) in _NAMED:
            return self._named(node.value, syntax)
        if type(node) is cst.Param:  # as libcst has it, without the annotation
            return self._named(node.name.value, syntax)
        return start, end

    def _named(self, name: str, syntax: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where a name stands in the attribute, definition, parameter or argument that it is part of."""
        size = len(name.encode())
        if isinstance(syntax, ast.Attribute):
            row, column = syntax.end_lineno or 1, (syntax.end_col_offset or 0) - size
        else:
            row, column = syntax.lineno, syntax.col_offset
            if not isinstance(syntax, (ast.arg, ast.keyword)):
                found = re.compile(rf"\b{re.escape(name)}\b".encode()).search(self._lines[row - 1].encode(), column + 4)
                column = found.start() if found else column
        return (row, column), (row, column + size)

    def _location(self, row: int, column: int) -> Location:
        line = self._lines[row - 1]
        return Location(row, 1 + (column if line.isascii() else len(line.encode()[:column].decode())))


_NAMED = frozenset({ast.Attribute, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.keyword})


def first_row(node: ast.stmt) -> int:
    """The row that a statement begins at, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _header_end(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The last row of the parameters and what they return, or that of `def`."""
    given = node.args
    listed = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    parts: list[Any] = [*listed, *given.defaults, *given.kw_defaults, node.returns]
    last: int = max(node.lineno, *(part.end_lineno for part in parts if part is not None), 1)
    return last


class PrintedPlaces(Places):
    """A tree that libcst parsed."""

    def __init__(self, tree: cst.Module) -> None:
        self._tree = tree

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        start, end = map(self._printed.location, self._printed.found[node])
        return Location(*start), Location(*end)

    def text(self, node: cst.CSTNode) -> str:
        return self._tree.code_for_node(node)

    def type_comment(self, function: cst.FunctionDef) -> str | None:
        if not isinstance(function.body, cst.IndentedBlock):
            return None
        lines = [function.body.header.comment]
        lines += [line.comment for line in getattr(function.body.body[0], "leading_lines", ())]
        found = [_TYPE_COMMENT.match(comment.value) for comment in lines if comment is not None]
        return next((one[1] for one in found if one), None)

    @cached_property
    def _printed(self) -> _Printer:
        return _Printer(self._tree)


class _Printer(CodegenState):
    """Prints a tree and notes the tokens that each node begins and ends at: libcst's own provider of positions works
    out row and column of all of them, and a few are asked for.
    """

    def __init__(self, tree: cst.Module) -> None:
        super().__init__(default_indent=tree.default_indent, default_newline=tree.default_newline)
        self.found: dict[cst.CSTNode, tuple[int, int]] = {}
        self._starts: list[int] = []
        tree._codegen(self)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if node not in self.found:
            self.found[node] = (start, len(self.tokens))

    def record_syntactic_position(  # type: ignore[override]  # any context manager will do
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> AbstractContextManager[None]:
        return _Syntactic(self, node, start_node, end_node)

    @cached_property
    def _offsets(self) -> Sequence[int]:
        """Where each token begins in the text, and the last one ends."""
        return [0, *accumulate(map(len, self.tokens))]

    @cached_property
    def _rows(self) -> Sequence[int]:
        """Where each row begins in the text."""
        return [0, *(found.end() for found in NEWLINE.finditer("".join(self.tokens)))]

    def location(self, token: int) -> tuple[int, int]:
        """Row and column of a token, both 1-based."""
        offset = self._offsets[token]
        row = bisect_right(self._rows, offset)
        return row, offset - self._rows[row - 1] + 1


class _Syntactic(AbstractContextManager[None]):
    """The part of a node without the white space that it owns."""

    __slots__ = ("end_node", "node", "places", "start", "start_node")

    def __init__(
        self, places: _Printer, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.places, self.node, self.start_node, self.end_node = places, node, start_node, end_node

    def __enter__(self) -> None:
        self.start = len(self.places.tokens)

    def __exit__(self, *_: object) -> None:
        found = self.places.found
        start = self.start if self.start_node is None else found[self.start_node][0]
        end = len(self.places.tokens) if self.end_node is None else found[self.end_node][1]
        found[self.node] = (start, end)
