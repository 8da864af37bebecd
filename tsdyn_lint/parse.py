"""Text -> trees: a skeleton of the file, and each definition and function body parsed only when something reaches it.

libcst costs about 50 ms per thousand lines, the standard `ast` about 6. So `ast` says where the definitions are: the
skeleton (imports, small assignments) is parsed at once with the definitions blanked out, a class or function of the
module level becomes a libcst tree when its name is looked up, and a body when an entry point reaches it. `ast` never
decides what is reported. A file that only a newer Python can parse falls back to one whole libcst parse.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst._position import CodeRange
from libcst.metadata.position_provider import PositionProvidingCodegenState

from tsdyn_lint.findings import Location

_MARK = "__tsdyn_left_out_"
_LONG = 3
"""Assignments and calls of more rows than this are worth leaving out."""
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
class Segment:
    """Rows of the file that a tree leaves out, 1-based and inclusive. `names`: what a deferred statement binds."""

    first: int
    last: int
    indent: str
    names: tuple[str, ...] = ()
    kind: str = "body"


class Tree:
    """A parsed file: its `skeleton`, `definition(row)` for a statement left out of it, and `body(def_node, piece)`."""

    def __init__(self, text: str) -> None:
        """Raises ParseFailure."""
        self.text = text
        self.lines: Sequence[str] = _LINE.findall(text)
        self._bodies: dict[int, Segment] = {}
        self._pieces: dict[int, Piece] = {}
        self.deferred: dict[int, Segment] = {}
        """Statements of the module level that the skeleton stands in for, by their first row."""
        self.syntax: ast.Module | None = _ast(text)
        kept = text
        if self.syntax is not None:
            self._bodies = {b.first: b for b in _bodies(self.syntax.body, self.lines)}
            self.deferred = {s.first: s for s in _deferrable(self.syntax.body, self.lines)}
            kept = self._without(self.deferred.values(), 1, len(self.lines))
        self.skeleton = Piece(_libcst(kept, text), 0)

    def _without(self, left_out: Iterable[Segment], first: int, last: int) -> str:
        """Rows `first` to `last` with each segment in them replaced by a mark of its row."""
        lines = list(self.lines[first - 1 : last])
        for segment in left_out:
            at = segment.first - first
            lines[at] = f"{segment.indent}{_MARK}{segment.first}{_newline(lines[at])}"
            for row in range(at + 1, segment.last - first + 1):
                lines[row] = _newline(lines[row])
        return "".join(lines)

    def definition(self, row: int) -> tuple[cst.CSTNode, Piece]:
        """The statement left out at a row, its own function bodies still left out. Raises ParseFailure."""
        segment = self.deferred[row]
        inner = [b for b in self._bodies.values() if segment.first <= b.first and b.last <= segment.last]
        code = self._without(inner, segment.first, segment.last)
        piece = self._piece(row, code, segment)
        statement = piece.tree.body[0]
        if segment.indent and isinstance(statement, cst.If):
            return statement.body.body[0], piece
        return statement, piece

    def body(self, function: cst.FunctionDef, home: Piece) -> tuple[Sequence[cst.CSTNode], Piece]:
        """The statements of a function whose header is in `home`, and the tree that they are in."""
        statements = function.body.body
        row = marked_row(statements[0]) if len(statements) == 1 else None
        if row is None or row not in self._bodies:
            return statements, home
        segment = self._bodies[row]
        piece = self._piece(row, "".join(self.lines[segment.first - 1 : segment.last]), segment)
        wrapper = piece.tree.body[0]
        assert isinstance(wrapper, cst.If)
        return wrapper.body.body, piece

    def _piece(self, row: int, code: str, segment: Segment) -> Piece:
        piece = self._pieces.get(row)
        if piece is None:
            # a wrapper keeps indented code legal, so that columns stay those of the file
            text = f"if 1:\n{code}" if segment.indent else code
            offset = segment.first - (2 if segment.indent else 1)
            try:
                piece = Piece(_libcst(text, text), offset)
            except ParseFailure as failure:
                raise ParseFailure(failure.message, failure.row + offset, failure.column) from None
            self._pieces[row] = piece
        return piece


def marked_row(line: cst.CSTNode) -> int | None:
    """The row in the mark that stands for a statement or body left out."""
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


def _bodies(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Segment]:
    """Bodies of the functions at module and class level; nested functions go with the body around them."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            row = _first_row(node.body[0])
            header_ends = node.returns.end_lineno if node.returns else node.lineno
            if row > (header_ends or 0) and row > node.lineno and _alone(node.body[0], row, lines) and node.end_lineno:
                yield Segment(row, node.end_lineno, _indent(lines[row - 1]))
        else:
            for block in _blocks(node):
                yield from _bodies(block, lines)


def _deferrable(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Segment]:
    """Statements of the module level that can wait: definitions, long assignments; long calls are never needed."""
    for index, node in enumerate(statements):
        row, last = _first_row(node), node.end_lineno or node.lineno
        following = statements[index + 1] if index + 1 < len(statements) else None
        if not _alone(node, row, lines) or following is not None and _first_row(following) <= last:
            continue
        indent = _indent(lines[row - 1])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield Segment(row, last, indent, (node.name,), kind)
        elif last - row >= _LONG and isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = tuple(t.id for t in targets if isinstance(t, ast.Name))
            if len(names) == len(targets):
                yield Segment(row, last, indent, names, "assignment")
        elif last - row >= _LONG and isinstance(node, ast.Expr):
            yield Segment(row, last, indent, (), "expression")
        else:
            for block in _blocks(node):
                yield from _deferrable(block, lines)


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if isinstance(inner, list):
            yield inner
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _first_row(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _alone(node: ast.stmt, row: int, lines: Sequence[str]) -> bool:
    """Whether nothing but white space stands before a statement on its first row."""
    return row < node.lineno or not lines[row - 1].encode()[: node.col_offset].strip()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
