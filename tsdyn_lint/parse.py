"""Text -> trees: a skeleton of the file, and each definition and function body parsed only when something reaches it.

libcst costs about 50 ms per thousand lines, the standard `ast` about 6. So `ast` says where the definitions are: the
skeleton (imports, small assignments) is parsed at once with the definitions blanked out, a class or function of the
module level becomes a libcst tree when its name is looked up, and a body when an entry point reaches it. `ast` never
decides what is reported. A file that only a newer Python can parse falls back to one whole libcst parse.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path

import libcst as cst
from libcst._nodes.internal import CodegenState

from tsdyn_lint.findings import Location
from tsdyn_lint.source import NEWLINE

_MARK = "__tsdyn_left_out_"
_LONG = 3
"""Assignments and calls of more rows than this are worth leaving out."""
_DEEP = 800
"""Expressions nested deeper than this are not read: libcst's time for a chain grows with the square of its length."""
_TOO_DEEP = "the code is nested too deeply to be read"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class ParseFailure(Exception):
    """The text is not Python that libcst can read; `row` and `column` are 1-based. `path` is that of a part."""

    def __init__(self, message: str, row: int = 1, column: int = 1, path: Path | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column, self.path = message, row, column, path


@contextmanager
def unchecked() -> Iterator[None]:
    """libcst checks every node, for those who make their own; on what its parser made that is a fifth of the time.

    White space within a line is two nodes in five, nearly all of them alike: trees share them, as nobody asks where
    one stands.
    """
    check, space = cst.CSTNode.__post_init__, cst.SimpleWhitespace
    cst.CSTNode.__post_init__ = lambda self: None  # type: ignore[method-assign]
    cst.SimpleWhitespace = lru_cache(maxsize=4096)(space)  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        cst.CSTNode.__post_init__, cst.SimpleWhitespace = check, space  # type: ignore[method-assign,misc]


class _Places(CodegenState):
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
        self, places: _Places, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.places, self.node, self.start_node, self.end_node = places, node, start_node, end_node

    def __enter__(self) -> None:
        self.start = len(self.places.tokens)

    def __exit__(self, *_: object) -> None:
        found = self.places.found
        start = self.start if self.start_node is None else found[self.start_node][0]
        end = len(self.places.tokens) if self.end_node is None else found[self.end_node][1]
        found[self.node] = (start, end)


@dataclass
class Piece:
    """One libcst tree and where it sits in the file: `rows[n - 1]` is the file's row of the tree's row n."""

    tree: cst.Module
    rows: Sequence[int]

    @cached_property
    def _places(self) -> _Places:
        return _Places(self.tree)

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        """Start and end of a node of this tree, in the file's rows and columns (end exclusive)."""
        start, end = map(self._places.location, self._places.found[node])
        return Location(self.rows[start[0] - 1], start[1]), Location(self.rows[end[0] - 1], end[1])


@dataclass(frozen=True)
class Segment:
    """Rows of the file that a tree leaves out, 1-based and inclusive. `names`: what a deferred statement binds."""

    first: int
    last: int
    indent: str
    names: tuple[str, ...] = ()
    kind: str = "body"
    syntax: ast.stmt | None = None
    """The statement as `ast` has it; of a body, the function around it."""


class Tree:
    """A parsed file: its `skeleton`, `definition(row)` for a statement left out of it or of a class, and
    `body(def_node, piece)`.
    """

    def __init__(self, text: str, path: Path) -> None:
        """Raises ParseFailure."""
        self.text = text
        self.path = path
        self.lines: Sequence[str] = _LINE.findall(text)
        self._bodies: dict[int, Segment] = {}
        self._inside: dict[int, list[Segment]] = {}
        """What the tree of a deferred statement leaves out in turn."""
        self._pieces: dict[int, Piece] = {}
        self.deferred: dict[int, Segment] = {}
        """Statements of the module level that the skeleton stands in for, by their first row."""
        self.methods: dict[int, Segment] = {}
        """Functions that the tree of the class around them leaves out."""
        self.syntax: ast.Module | None = _ast(text)
        if self.syntax is not None:
            self.deferred = {s.first: s for s in _deferrable(self.syntax.body, self.lines)}
            for segment in self.deferred.values():
                if isinstance(segment.syntax, ast.ClassDef):
                    inside = list(_methods(segment.syntax.body, self.lines))
                    self.methods.update((s.first, s) for s in inside)
                else:
                    inside = list(_bodies(segment.syntax, self.lines))
                    self._bodies.update((s.first, s) for s in inside)
                self._inside[segment.first] = inside
        self.skeleton = self._parsed(self.deferred.values(), 1, len(self.lines))

    def _parsed(self, left_out: Iterable[Segment], first: int, last: int, indented: bool = False) -> Piece:
        """The tree of rows `first` to `last` with a mark in the place of each segment. Raises ParseFailure."""
        # a wrapper keeps indented code legal, so that columns stay those of the file
        kept, rows, row = (["if 1:\n"], [first - 1], first) if indented else ([], [], first)
        for segment in left_out:
            kept += self.lines[row - 1 : segment.first - 1]
            kept.append(f"{segment.indent}{_MARK}{segment.first}{_newline(self.lines[segment.first - 1])}")
            rows += range(row, segment.first + 1)
            row = segment.last + 1
        kept += self.lines[row - 1 : last]
        rows += range(row, last + 2)
        try:
            return Piece(_libcst("".join(kept)), rows)
        except ParseFailure as failure:
            at = min(max(failure.row, 1), len(rows))
            raise ParseFailure(failure.message, rows[at - 1], failure.column, self.path) from None

    def definition(self, row: int) -> tuple[cst.CSTNode, Piece]:
        """The statement left out at a row: a class without its methods, a function without its body, a whole method.

        Raises ParseFailure.
        """
        segment = self.deferred.get(row) or self.methods[row]
        piece = self._piece(segment, self._inside.get(row, ()))
        statement = piece.tree.body[0]
        if segment.indent and isinstance(statement, cst.If):
            return statement.body.body[0], piece
        return statement, piece

    def body(self, function: cst.FunctionDef, home: Piece) -> tuple[Sequence[cst.CSTNode], Piece]:
        """The statements of a function whose header is in `home`, and the tree that they are in."""
        segment = self._left_out(function)
        if segment is None:
            return function.body.body, home
        piece = self._piece(segment, ())
        wrapper = piece.tree.body[0]
        assert isinstance(wrapper, cst.If)
        return wrapper.body.body, piece

    def syntax_of(self, function: cst.FunctionDef) -> ast.stmt | None:
        """A function as `ast` has it, which is enough to see whether its body is worth parsing."""
        segment = self._left_out(function)
        if segment is not None:
            return segment.syntax
        syntax = _ast(textwrap.dedent(self.skeleton.tree.code_for_node(function)))
        return syntax.body[0] if syntax is not None else None

    def _left_out(self, function: cst.FunctionDef) -> Segment | None:
        statements = function.body.body
        row = marked_row(statements[0]) if len(statements) == 1 else None
        return None if row is None else self._bodies.get(row)

    def _piece(self, segment: Segment, left_out: Iterable[Segment]) -> Piece:
        piece = self._pieces.get(segment.first)
        if piece is None:
            for deep in _deep_in([segment.syntax] if segment.syntax else (), self.lines, segment.kind != "class"):
                raise ParseFailure(_TOO_DEEP, deep.lineno, deep.col_offset + 1, self.path)
            piece = self._parsed(left_out, segment.first, segment.last, bool(segment.indent))
            self._pieces[segment.first] = piece
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
    except (RecursionError, MemoryError):
        raise ParseFailure(_TOO_DEEP) from None
    except SyntaxError as error:
        if error.msg.startswith("too many"):  # libcst has no such limit, and overflows the stack
            raise ParseFailure(_TOO_DEEP, error.lineno or 1, error.offset or 1) from None
        return None
    except ValueError:
        return None


def _libcst(code: str) -> cst.Module:
    try:
        return cst.parse_module(code)
    except cst.ParserSyntaxError as error:
        raise ParseFailure(error.message.split("\n")[0], error.raw_line, error.raw_column + 1) from None
    except RecursionError:
        raise ParseFailure(_TOO_DEEP) from None


def _deep_in(statements: Iterable[ast.stmt], lines: Sequence[str], with_functions: bool) -> Iterator[ast.stmt]:
    """The statements with an expression too deep for libcst, those in blocks too."""
    for node in statements:
        if with_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if _is_deep(node, lines):
                yield node
            for block in _blocks(node):
                yield from _deep_in(block, lines, with_functions)


def _is_deep(node: ast.stmt, lines: Sequence[str]) -> bool:
    """Whether an expression of the statement, outside of the blocks in it, is too deep for libcst."""
    block = next(filter(None, _blocks(node)), None)
    last = max(node.lineno, block[0].lineno - 1) if block else node.end_lineno or node.lineno
    if sum(map(len, lines[node.lineno - 1 : last])) < _DEEP:
        return False
    level: list[ast.AST] = [node]
    for _ in range(_DEEP):
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer) if not isinstance(inner, ast.stmt)]
    return bool(level)


def _bodies(node: ast.stmt | None, lines: Sequence[str]) -> Iterator[Segment]:
    """The body of a function, where it can be left out."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        row = _first_row(node.body[0])
        header_ends = node.returns.end_lineno if node.returns else node.lineno
        if row > (header_ends or 0) and row > node.lineno and _alone(node.body[0], row, lines) and node.end_lineno:
            yield Segment(row, node.end_lineno, _indent(lines[row - 1]), syntax=node)


def _methods(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Segment]:
    """The functions of a class and of the classes in it; nested functions go with the body around them."""
    for node, row, last in _on_own_rows(statements, lines):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Segment(row, last, _indent(lines[row - 1]), (node.name,), "method", node)
        else:
            for block in _blocks(node):
                yield from _methods(block, lines)


def _on_own_rows(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[tuple[ast.stmt, int, int]]:
    """The statements that share no row with another one, with their first and last row."""
    for index, node in enumerate(statements):
        row, last = _first_row(node), node.end_lineno or node.lineno
        following = statements[index + 1] if index + 1 < len(statements) else None
        if _alone(node, row, lines) and (following is None or _first_row(following) > last):
            yield node, row, last


def _deferrable(statements: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Segment]:
    """Statements of the module level that can wait: definitions, long assignments; long calls are never needed."""
    for node, row, last in _on_own_rows(statements, lines):
        indent = _indent(lines[row - 1])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield Segment(row, last, indent, (node.name,), kind, node)
        elif (last - row >= _LONG or _is_deep(node, lines)) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = tuple(t.id for t in targets if isinstance(t, ast.Name))
            if len(names) == len(targets):
                yield Segment(row, last, indent, names, "assignment", node)
        elif last - row >= _LONG and isinstance(node, ast.Expr) or _is_deep(node, lines):
            yield Segment(row, last, indent, (), "expression")
        else:
            for block in _blocks(node):
                yield from _deferrable(block, lines)


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Lists of statements inside a compound one, in the order of their rows."""
    for inner in (
        getattr(node, "body", None),
        *(handler.body for handler in getattr(node, "handlers", ())),
        getattr(node, "orelse", None),
        getattr(node, "finalbody", None),
    ):
        if isinstance(inner, list):
            yield inner


def _first_row(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _alone(node: ast.stmt, row: int, lines: Sequence[str]) -> bool:
    """Whether nothing but white space stands before a statement on its first row."""
    return row < node.lineno or not lines[row - 1].encode()[: node.col_offset].strip()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
