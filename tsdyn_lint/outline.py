"""A file's text -> its statements of the module level: what each binds, mentions and says. `ast` alone, no libcst."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from tsdyn_lint.syntax import first_row, rows_of

EVERYTHING = "*"
"""Stands for all names of a file: what `from m import *` binds, what a module that is handed on may be asked for."""
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_CLASS = re.compile(r"(?:^|[:;])[ \t]*class\b", re.MULTILINE)
_PLAIN = re.compile(r"(?:@|(?:class|def|from|import)\b)")

Summary = dict[str, list[str | int]]
"""Each name of a file with the digest of the statements that bind it, their first row and their last one."""


@dataclass(frozen=True)
class Statement:
    """One statement of the module level, rows counted from 1."""

    names: frozenset[str]
    first: int
    last: int
    text: str

    @cached_property
    def mentions(self) -> frozenset[str]:
        return frozenset(_IDENTIFIER.findall(self.text))

    @property
    def may_hold_class(self) -> bool:
        return _CLASS.search(self.text) is not None

    @property
    def is_plain(self) -> bool:
        """Whether it is a definition or an import, and so can change nothing but what its names stand for."""
        return _PLAIN.match(self.text) is not None


def outline(text: str) -> list[Statement] | None:
    """The statements of a text; None where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return list(_statements(tree.body, rows_of(text)))


def statements_of(syntax: ast.Module, lines: Sequence[str]) -> list[Statement]:
    """The statements of a file that was parsed."""
    return list(_statements(syntax.body, lines))


def summary_of(statements: Iterable[Statement]) -> Summary:
    """What is kept of a file, to tell later which of its names an edit changes."""
    by_name: dict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.names:
            by_name[name].append(statement)
    return {name: [_digest(name, own), own[0].first, own[-1].last] for name, own in by_name.items()}


def _digest(name: str, statements: Sequence[Statement]) -> str:
    """What the statements that bind a name say, and how far they stand apart: a name moves as a whole, or changes."""
    first = statements[0].first
    parts = [f"{one.first - first if name else 0} {one.text}" for one in statements]
    return blake2b("".join(parts).encode(), digest_size=8).hexdigest()


def classes_of(statements: Iterable[Statement]) -> frozenset[str]:
    """The names bound by statements that may hold classes."""
    return frozenset(name for one in statements if one.may_hold_class for name in one.names)


def dependents(statements: Iterable[Statement], names: frozenset[str]) -> frozenset[str]:
    """The names, and those bound by statements that mention them, directly or through others."""
    waiting = list(statements)
    found = set(names)
    while True:
        hit = [statement for statement in waiting if not found.isdisjoint(statement.mentions)]
        if not hit:
            return frozenset(found)
        waiting = [statement for statement in waiting if found.isdisjoint(statement.mentions)]
        found.update(name for statement in hit for name in statement.names)


def _statements(body: Iterable[ast.stmt], lines: Sequence[str]) -> Iterator[Statement]:
    for node in body:
        first = first_row(node)
        last = node.end_lineno or node.lineno
        yield Statement(frozenset(_bound([node])), first, last, "".join(lines[first - 1 : last]))


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The module-level names that statements bind; the empty one where they bind none."""
    any_name = False
    for name in _names(nodes):
        any_name = True
        yield name
    if not any_name:
        yield ""


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    todo = list(nodes)  # not by recursion, as a sum of thousands is as deep
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                yield node.id
        else:
            todo += ast.iter_child_nodes(node)
