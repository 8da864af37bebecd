"""Text -> a tree of nodes: a skeleton of the file, and each definition and body made when something reaches it.

`ast` reads the text, in a tenth of the time that libcst takes, and what it read is made into libcst's nodes (`made`)
as they are asked for: imports and small assignments at once, a class or function of the module level when its name is
looked up, a body when an entry point reaches it. A file that only a newer Python can parse is read by libcst whole.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import libcst as cst

from tsdyn_lint.made import Maker, UnknownSyntax
from tsdyn_lint.outline import Statement, Summary, statements_of, summary_of
from tsdyn_lint.places import MadePlaces, Places, PrintedPlaces
from tsdyn_lint.syntax import nodes_of, rows_of
from tsdyn_lint.usage import may_capture

_LONG = 3
"""Assignments and calls of more rows than this are worth leaving out."""
_DEEP = 800
"""Expressions nested deeper than this are not read: trees are walked recursively."""
_TOO_DEEP = "the code is nested too deeply to be read"


class ParseFailure(Exception):
    """The text is not Python that can be read; `row` and `column` are 1-based. `path` is that of a part."""

    def __init__(self, message: str, row: int = 1, column: int = 1, path: Path | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column, self.path = message, row, column, path


@dataclass(frozen=True, eq=False)
class Deferred:
    """Stands for a statement that is made when it is asked for. `names` are those that it binds."""

    names: tuple[str, ...]
    kind: str
    syntax: ast.stmt


class Tree:
    """A parsed file: its `statements`, with a `Deferred` in the place of each that waits, `definition(deferred)`, and
    `body(function)`.
    """

    def __init__(self, text: str, path: Path) -> None:
        """Raises ParseFailure."""
        self.text = text
        self.path = path
        self.lines: Sequence[str] = rows_of(text)
        self.deferred: list[Deferred] = []
        """What is left out of the module level."""
        self.syntax: ast.Module | None = None
        refused: SyntaxError | None = None
        try:
            self.syntax = _ast(text)
        except SyntaxError as error:
            refused = error
        self.places: Places
        self._maker = Maker()
        self._definitions: dict[Deferred, Any] = {}
        self._bodies: dict[cst.CSTNode, Sequence[cst.CSTNode]] = {}
        if self.syntax is None:
            tree = _libcst(text, refused)
            self.places = PrintedPlaces(tree)
            self.statements: Sequence[Any] = tree.body
        else:
            self.places = MadePlaces(self.lines, self._maker.origins)
            self.statements = self._made(partial(self._maker.statements, self.syntax.body), self._outside)

    @cached_property
    def outline(self) -> list[Statement]:
        """The statements of the module level; none where only libcst could read the file."""
        return [] if self.syntax is None else statements_of(self.syntax, self.lines)

    @cached_property
    def summary(self) -> Summary:
        return summary_of(self.outline)

    @cached_property
    def may_capture(self) -> bool:
        """Whether its text has what a capture needs."""
        return may_capture(self.text.encode())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that `ast` read."""
        return [] if self.syntax is None else nodes_of(self.syntax)

    def definition(self, deferred: Deferred) -> Any:
        """The node of a statement that was left out: a class without its functions, a function without its body.

        Raises ParseFailure.
        """
        found = self._definitions.get(deferred)
        if found is None:
            syntax = deferred.syntax
            self._check_depth([syntax], not isinstance(syntax, ast.ClassDef))
            if isinstance(syntax, (ast.FunctionDef, ast.AsyncFunctionDef)):
                make: Callable[[], Any] = partial(self._maker.function, syntax, whole=False)
            else:
                make = partial(self._maker.statement, syntax)
            inside = self._inside if isinstance(syntax, ast.ClassDef) else None
            found = self._definitions[deferred] = self._made(make, inside)
        return found

    def expression(self, syntax: ast.expr) -> Any:
        """The node of an expression, wherever in the file it stands. Raises ParseFailure."""
        return self._made(partial(self._maker.expression, syntax))

    def body(self, function: cst.FunctionDef) -> Sequence[cst.CSTNode]:
        """The statements of a function. Raises ParseFailure."""
        syntax = self._maker.bodies.get(function)
        if syntax is None:
            return function.body.body
        found = self._bodies.get(function)
        if found is None:
            found = self._bodies[function] = self._made(partial(self._maker.statements, syntax))
        return found

    def syntax_of(self, function: cst.FunctionDef) -> ast.stmt | None:
        """A function as `ast` has it, which is enough to see whether its body is worth making."""
        if self.syntax is not None:
            found: ast.stmt = self._maker.origins[function]
            return found
        try:
            syntax = _ast(textwrap.dedent(self.places.text(function)))
        except SyntaxError:
            return None
        return syntax.body[0] if syntax is not None else None

    def _made(self, make: Callable[[], Any], set_aside: Callable[[ast.stmt], Deferred | None] | None = None) -> Any:
        self._maker.set_aside = set_aside
        try:
            return make()
        except UnknownSyntax as problem:
            raise ParseFailure(f"{problem} is unknown to this version of tsdyn-lint", path=self.path) from None
        except RecursionError:
            raise ParseFailure(_TOO_DEEP, path=self.path) from None
        finally:
            self._maker.set_aside = None

    def _outside(self, node: ast.stmt) -> Deferred | None:
        """What stands for a statement of the module level that can wait: a definition, a long assignment; long calls
        are never needed.
        """
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            deferred = Deferred((node.name,), "class" if isinstance(node, ast.ClassDef) else "function", node)
        else:
            deep = _is_deep(node, self.lines)
            long = (node.end_lineno or node.lineno) - node.lineno >= _LONG
            names = _assigned(node)
            if names and (long or deep):
                deferred = Deferred(names, "assignment", node)
            elif deep or long and isinstance(node, ast.Expr):
                deferred = Deferred((), "expression", node)
            else:
                return None
        self.deferred.append(deferred)
        return deferred

    def _inside(self, node: ast.stmt) -> Deferred | None:
        """What stands for a function of a class, or of a class in it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return Deferred((node.name,), "method", node)
        return None

    def _check_depth(self, statements: Iterable[ast.stmt], with_functions: bool) -> None:
        for deep in _deep_in(statements, self.lines, with_functions):
            raise ParseFailure(_TOO_DEEP, deep.lineno, deep.col_offset + 1, self.path)


def _assigned(node: ast.stmt) -> tuple[str, ...]:
    """The names that an assignment binds, if it binds nothing else."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return ()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = tuple(target.id for target in targets if isinstance(target, ast.Name))
    return names if len(names) == len(targets) else ()


def parsed_expression(text: str) -> Any:
    """The node of an expression that stands alone, as an annotation in quotes does. Raises ParseFailure."""
    try:
        with _unwarned():
            return Maker().expression(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, UnknownSyntax) as problem:
        raise ParseFailure(str(problem)) from None


@contextmanager
def _unwarned() -> Iterator[None]:
    """Invalid escapes in the user's strings are not our business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _ast(text: str) -> ast.Module | None:
    """What `ast` reads, None where it cannot say what hinders it. Raises SyntaxError, and ParseFailure where no other
    parser would come further.
    """
    try:
        with _unwarned():
            return ast.parse(text)
    except (RecursionError, MemoryError):
        raise ParseFailure(_TOO_DEEP) from None
    except SyntaxError as error:
        if error.msg.startswith("too many"):  # libcst has no such limit, and overflows the stack
            raise ParseFailure(_TOO_DEEP, error.lineno or 1, error.offset or 1) from None
        raise
    except ValueError:
        return None


def _libcst(code: str, refused: SyntaxError | None) -> cst.Module:
    """What libcst reads of what the interpreter refused, which knows better what is wrong where neither can read it.

    Raises ParseFailure.
    """
    try:
        return cst.parse_module(code)
    except cst.ParserSyntaxError as error:
        if refused is not None:
            raise ParseFailure(refused.msg, refused.lineno or 1, refused.offset or 1) from None
        raise ParseFailure(error.message.split("\n")[0], error.raw_line, error.raw_column + 1) from None
    except RecursionError:
        raise ParseFailure(_TOO_DEEP) from None


def _deep_in(statements: Iterable[ast.stmt], lines: Sequence[str], with_functions: bool) -> Iterator[ast.stmt]:
    """The statements with an expression that is nested too deeply, those in blocks too."""
    for node in statements:
        if type(node) in _SIMPLE:
            if _is_long(node.lineno, node.end_lineno or 0, lines) and _is_deep(node, lines):
                yield node
        elif with_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if _is_deep(node, lines):
                yield node
            for block in _blocks(node):
                yield from _deep_in(block, lines, with_functions)


_SIMPLE = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr, ast.Raise, ast.Assert, ast.Pass})
"""Statements without blocks: nearly all of them."""


def _is_long(first: int, last: int, lines: Sequence[str]) -> bool:
    """Whether rows have room for an expression that is nested too deeply."""
    return sum(map(len, lines[first - 1 : last])) >= _DEEP


def _is_deep(node: ast.stmt, lines: Sequence[str]) -> bool:
    """Whether an expression of the statement, outside of the blocks in it, is nested too deeply."""
    block = next(filter(None, _blocks(node)), None)
    last = max(node.lineno, block[0].lineno - 1) if block else node.end_lineno or node.lineno
    if not _is_long(node.lineno, last, lines):
        return False
    level: list[ast.AST] = [node]
    depth = 0
    while level and depth < _DEEP:
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer) if not isinstance(inner, ast.stmt)]
        depth += 1
    return bool(level)


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
