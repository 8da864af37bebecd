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
from tsdyn_lint.syntax import first_row

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
        end, column = _last_part(syntax)
        inside = False
        for row in range(end, first_row(syntax.body[0])):
            code, sign, comment = self._from(row, column if row == end else 0).partition("#")
            inside = inside or ":" in code
            found = _TYPE_COMMENT.match(sign + comment) if inside else None
            if found:
                return found[1]
        return None

    def _from(self, row: int, column: int) -> str:
        """A row from a column in bytes on."""
        return self._lines[row - 1].encode()[column:].decode()

    def _range(self, node: cst.CSTNode) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows from 1, columns from 0 and in bytes, as `ast` has them."""
        syntax, kind = self._origins[node], type(node)
        # as libcst has them: a parameter without its annotation, a tuple and a generator without their parentheses
        if kind is cst.Param or kind is cst.Name and type(syntax) in _NAMED:
            return self._named(syntax)
        first, last = syntax, syntax
        if kind is cst.Tuple and type(syntax) is ast.Tuple and syntax.elts:
            first, last = syntax.elts[0], syntax.elts[-1]
        elif kind is cst.GeneratorExp:
            loop = syntax.generators[-1]
            first, last = syntax.elt, [loop.iter, *loop.ifs][-1]
        row, column = first.lineno, first.col_offset
        if kind in _SIGNED:
            sign = self._lines[row - 1].encode().rfind(_SIGNED[kind], 0, column)
            column = column if sign < 0 else sign
        return (row, column), (last.end_lineno, last.end_col_offset)

    def _named(self, syntax: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where the name stands in the attribute, definition, parameter or argument that it is part of.

        As it is written: `ast` has another form of some letters.
        """
        if isinstance(syntax, ast.Attribute):
            row, end = syntax.end_lineno or 1, syntax.end_col_offset or 0
            written = _NAME_AT_END.search(self._lines[row - 1].encode()[:end].decode())
            return (row, end - len(written[0].encode()) if written else end), (row, end)
        row, column = syntax.lineno, syntax.col_offset
        while True:
            found = _NAME.match(self._from(row, column))
            if found is None:
                return (row, column), (row, column)
            if found[2] != "\\":
                start = column + len(found[1].encode())
                return (row, start), (row, start + len(found[2].encode()))
            row, column = row + 1, 0  # a definition that goes on after a backslash

    def _location(self, row: int, column: int) -> Location:
        line = self._lines[row - 1]
        return Location(row, 1 + (column if line.isascii() else len(line.encode()[:column].decode())))


_NAME = re.compile(r"((?:(?:async|def|class)\b|\s)*)(\w+|\\)")
_NAME_AT_END = re.compile(r"\w+$")
_SIGNED = {cst.StarredDictElement: b"**", cst.FormattedStringExpression: b"{"}
"""Kinds of nodes that begin with a sign which `ast` does not place, in the row of what follows it."""
_NAMED = frozenset({ast.Attribute, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.keyword})


def _last_part(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    """Where the last of the parameters and of what they return ends, or where the function begins."""
    given = node.args
    listed = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    parts: list[Any] = [*listed, *given.defaults, *given.kw_defaults, node.returns]
    ends = [(part.end_lineno, part.end_col_offset) for part in parts if part is not None]
    return max([(node.lineno, node.col_offset), *ends])


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
