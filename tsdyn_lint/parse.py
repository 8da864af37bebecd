"""Text -> trees: a skeleton of the file without function bodies, each body parsed only when something reaches it.

libcst costs about 50 ms per thousand lines, the standard `ast` about 6. So `ast` says where the function bodies are,
the skeleton (headers, classes, module level) is parsed by libcst with the bodies blanked out, and a body becomes a
libcst tree the first time an entry point reaches it. `ast` never decides what is reported. A file that only a newer
Python can parse falls back to one whole libcst parse.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst._position import CodeRange
from libcst.metadata.position_provider import PositionProvidingCodegenState

from tsdyn_lint.findings import Location

_MARK = "__tsdyn_body_"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class ParseFailure(Exception):
    """The text is not Python that libcst can read; `row` and `column` are 1-based."""

    def __init__(self, message: str, row: int, column: int) -> None:
        super().__init__(message)
        self.message, self.row, self.column = message, row, column


@dataclass
class Piece:
    """One libcst tree and where it sits in the file: file row = row in the tree + `row_offset`."""

    tree: cst.Module
    row_offset: int
    _ranges: dict[cst.CSTNode, CodeRange] = field(default_factory=dict)
    _located: bool = False

    @property
    def _computed(self) -> dict[cst.CSTNode, CodeRange]:
        # libcst's codegen state records positions in its provider's table of this name
        return self._ranges

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        """Start and end of a node of this tree, in the file's rows and columns (end exclusive)."""
        if not self._located:
            state = PositionProvidingCodegenState(
                default_indent=self.tree.default_indent,
                default_newline=self.tree.default_newline,
                provider=self,  # type: ignore[arg-type]
            )
            self.tree._codegen(state)
            self._located = True
        found = self._ranges[node]
        return (
            Location(found.start.line + self.row_offset, found.start.column + 1),
            Location(found.end.line + self.row_offset, found.end.column + 1),
        )


@dataclass(frozen=True)
class _Body:
    """Rows of a function body that the skeleton leaves out, 1-based and inclusive."""

    first: int
    last: int
    indent: str


class Tree:
    """A parsed file: `skeleton` (a Piece) and `body(def_node)`."""

    def __init__(self, text: str) -> None:
        """Raises ParseFailure."""
        self.text = text
        self.lines: Sequence[str] = _LINE.findall(text)
        self._bodies: dict[int, _Body] = {}
        self._pieces: dict[int, Piece] = {}
        self.syntax: ast.Module | None = _ast(text)
        kept = text
        if self.syntax is not None:
            self._bodies = {b.first: b for b in _bodies(self.syntax.body, self.lines)}
            kept = self._without_bodies()
        self.skeleton = Piece(_libcst(kept, text), 0)

    def _without_bodies(self) -> str:
        lines = list(self.lines)
        for body in self._bodies.values():
            lines[body.first - 1] = f"{body.indent}{_MARK}{body.first}{_newline(lines[body.first - 1])}"
            for row in range(body.first, body.last):
                lines[row] = _newline(lines[row])
        return "".join(lines)

    def body(self, function: cst.FunctionDef) -> tuple[Sequence[cst.BaseStatement | cst.BaseSmallStatement], Piece]:
        """The statements of a function of the skeleton, and the tree that they belong to.

        A function nested in a body has its statements in that body's own tree.
        """
        statements = function.body.body
        row = _marked_row(statements[0]) if len(statements) == 1 else None
        if row is None or row not in self._bodies:
            return statements, self.skeleton
        piece = self._piece(self._bodies[row])
        wrapper = piece.tree.body[0]
        assert isinstance(wrapper, cst.If)
        return wrapper.body.body, piece

    def _piece(self, body: _Body) -> Piece:
        piece = self._pieces.get(body.first)
        if piece is None:
            # the wrapper keeps the body's own indentation legal, so columns stay those of the file
            code = "if 1:\n" + "".join(self.lines[body.first - 1 : body.last])
            piece = self._pieces[body.first] = Piece(_libcst(code, code), body.first - 2)
        return piece


def _marked_row(line: cst.CSTNode) -> int | None:
    """The row in the mark that stands for a body left out of the skeleton."""
    if isinstance(line, cst.SimpleStatementLine):
        statement = line.body[0]
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Name):
            name = statement.value.value
            if name.startswith(_MARK):
                return int(name[len(_MARK) :])
    return None


def _newline(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _ast(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our business
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _libcst(code: str, text: str) -> cst.Module:
    try:
        return cst.parse_module(code)
    except cst.ParserSyntaxError as error:
        raise ParseFailure(error.message.split("\n")[0], error.raw_line, error.raw_column + 1) from None
    except RecursionError:
        raise ParseFailure("the code is nested too deeply to be read", 1, 1) from None


def _bodies(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[_Body]:
    """Bodies of the functions at module and class level; nested functions go with the body around them."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            decorators = getattr(first, "decorator_list", [])
            row = min([first.lineno, *(d.lineno for d in decorators)])
            indent = lines[row - 1][: len(lines[row - 1]) - len(lines[row - 1].lstrip())]
            header_ends = node.returns.end_lineno if node.returns else node.lineno
            before = lines[row - 1].encode()[: first.col_offset] if row == first.lineno else b""
            if row > (header_ends or 0) and not before.strip() and row > node.lineno and node.end_lineno:
                yield _Body(row, node.end_lineno, indent)
        else:
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                if isinstance(inner, list):
                    yield from _bodies(inner, lines)
            for handler in getattr(node, "handlers", []):
                yield from _bodies(handler.body, lines)
