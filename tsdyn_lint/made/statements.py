"""Statements of `ast` -> those of libcst."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.made.expressions import known, new
from tsdyn_lint.made.patterns import Patterns
from tsdyn_lint.made.tokens import ASYNC, AUGMENTED


class Maker(Patterns):
    """Makes the nodes of one file."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[cst.CSTNode, Sequence[ast.stmt]] = {}
        """What functions have as body that were made without one."""
        self.set_aside: Callable[[ast.stmt], Any] | None = None
        """Gives what is to stand for a statement that is made later, None where it is to be made now."""

    def statements(self, nodes: Iterable[ast.stmt]) -> list[cst.CSTNode]:
        """Raises UnknownSyntax."""
        return [self.statement(node) for node in nodes]

    def statement(self, node: ast.stmt) -> Any:
        """Raises UnknownSyntax."""
        if self.set_aside is not None and (stand_in := self.set_aside(node)) is not None:
            return stand_in
        make = _COMPOUND.get(type(node))
        if make is not None:
            made = make(self, node)
        else:
            made = new(cst.SimpleStatementLine)
            made.body = [small] = [known(_SMALL, node)(self, node)]
            self.origins[small] = node
        self.origins[made] = node
        return made

    def block(self, nodes: Iterable[ast.stmt]) -> Any:
        made = new(cst.IndentedBlock)
        made.body = [self.statement(node) for node in nodes]
        return made

    def _else(self, nodes: Sequence[ast.stmt], kind: type[cst.CSTNode] = cst.Else) -> Any:
        if not nodes:
            return None
        made = new(kind)
        made.body = self.block(nodes)
        self.origins[made] = nodes[0]
        return made

    def _assign(self, node: ast.Assign) -> Any:
        made = new(cst.Assign)
        made.targets = targets = []
        for one in node.targets:
            target = new(cst.AssignTarget)
            target.target = self.expression(one)
            self.origins[target] = one
            targets.append(target)
        made.value = self.expression(node.value)
        return made

    def _ann_assign(self, node: ast.AnnAssign) -> Any:
        made = new(cst.AnnAssign)
        made.target = self.expression(node.target)
        made.annotation = self.annotation(node.annotation)
        made.value = self.optional(node.value)
        return made

    def _aug_assign(self, node: ast.AugAssign) -> Any:
        made = new(cst.AugAssign)
        made.target = self.expression(node.target)
        made.operator = AUGMENTED[type(node.op)]
        made.value = self.expression(node.value)
        return made

    def _raise(self, node: ast.Raise) -> Any:
        made = new(cst.Raise)
        made.exc = self.optional(node.exc)
        made.cause = None if node.cause is None else self.from_(node.cause)
        return made

    def _delete(self, node: ast.Delete) -> Any:
        made = new(cst.Del)
        if len(node.targets) == 1:
            made.target = self.expression(node.targets[0])
        else:
            made.target = new(cst.Tuple)
            made.target.elements = self._elements(node.targets)
            self.origins[made.target] = node
        return made

    def _names(self, node: ast.Global | ast.Nonlocal) -> Any:
        made = new(cst.Global if type(node) is ast.Global else cst.Nonlocal)
        made.names = []
        for name in node.names:
            item = new(cst.NameItem)
            item.name = self.named(name, node)
            self.origins[item] = node
            made.names.append(item)
        return made

    def _import(self, node: ast.Import) -> Any:
        made = new(cst.Import)
        made.names = self._aliases(node.names)
        return made

    def _import_from(self, node: ast.ImportFrom) -> Any:
        made = new(cst.ImportFrom)
        made.module = None if node.module is None else self._dotted(node.module, node)
        made.names = _STAR if node.names[0].name == "*" else self._aliases(node.names)
        made.relative = [_DOT] * node.level
        return made

    def _aliases(self, nodes: Iterable[ast.alias]) -> list[Any]:
        found = []
        for node in nodes:
            made = new(cst.ImportAlias)
            made.name = self._dotted(node.name, node)
            made.asname = self._as(None if node.asname is None else self.named(node.asname, node), node)
            self.origins[made] = node
            found.append(made)
        return found

    def _dotted(self, text: str, node: ast.AST) -> Any:
        first, *rest = text.split(".")
        made = self.named(first, node)
        for name in rest:
            around = new(cst.Attribute)
            around.value, around.attr = made, self.named(name, node)
            self.origins[around] = node
            made = around
        return made

    def _as(self, name: Any, node: ast.AST) -> Any:
        if name is None:
            return None
        made = new(cst.AsName)
        made.name = name
        self.origins[made] = node
        return made

    def _type_alias(self, node: Any) -> Any:
        made = new(cst.TypeAlias)
        made.name, made.value, made.type_parameters = self.expression(node.name), self.expression(node.value), None
        return made

    def _if(self, node: ast.If) -> Any:
        first = made = new(cst.If)
        while True:
            made.test = self.expression(node.test)
            made.body = self.block(node.body)
            rest = node.orelse
            if len(rest) != 1 or type(rest[0]) is not ast.If:
                made.orelse = self._else(rest)
                return first
            node = rest[0]
            made.orelse = made = new(cst.If)
            self.origins[made] = node

    def _for(self, node: ast.For | ast.AsyncFor) -> Any:
        made = new(cst.For)
        made.asynchronous = ASYNC if type(node) is ast.AsyncFor else None
        made.target = self.expression(node.target)
        made.iter = self.expression(node.iter)
        made.body = self.block(node.body)
        made.orelse = self._else(node.orelse)
        return made

    def _while(self, node: ast.While) -> Any:
        made = new(cst.While)
        made.test = self.expression(node.test)
        made.body = self.block(node.body)
        made.orelse = self._else(node.orelse)
        return made

    def _with(self, node: ast.With | ast.AsyncWith) -> Any:
        made = new(cst.With)
        made.asynchronous = ASYNC if type(node) is ast.AsyncWith else None
        made.items = []
        for one in node.items:
            item = new(cst.WithItem)
            item.item = self.expression(one.context_expr)
            item.asname = self._as(self.optional(one.optional_vars), one.context_expr)
            self.origins[item] = one.context_expr
            made.items.append(item)
        made.body = self.block(node.body)
        return made

    def _try(self, node: Any) -> Any:
        starred = type(node) is not ast.Try
        made = new(cst.TryStar if starred else cst.Try)
        made.body = self.block(node.body)
        made.handlers = []
        for one in node.handlers:
            handler = new(cst.ExceptStarHandler if starred else cst.ExceptHandler)
            handler.type = self.optional(one.type)
            handler.name = self._as(None if one.name is None else self.named(one.name, one), one)
            handler.body = self.block(one.body)
            self.origins[handler] = one
            made.handlers.append(handler)
        made.orelse = self._else(node.orelse)
        made.finalbody = self._else(node.finalbody, cst.Finally)
        return made

    def _match(self, node: ast.Match) -> Any:
        made = new(cst.Match)
        made.subject = self.expression(node.subject)
        made.cases = []
        for one in node.cases:
            case = new(cst.MatchCase)
            case.pattern = self.pattern(one.pattern)
            case.guard = self.optional(one.guard)
            case.body = self.block(one.body)
            self.origins[case] = one.pattern
            made.cases.append(case)
        return made

    # --- definitions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, whole: bool = True) -> Any:
        """A function, its body left in `bodies` if it is not to be made `whole`. Raises UnknownSyntax."""
        made = new(cst.FunctionDef)
        made.decorators = self._decorators(node.decorator_list)
        made.asynchronous = ASYNC if type(node) is ast.AsyncFunctionDef else None
        made.name = self.named(node.name, node)
        made.type_parameters = None
        made.params = self.parameters(node.args)
        made.returns = None if node.returns is None else self.annotation(node.returns)
        made.body = self.block(node.body if whole else ())
        if not whole:
            self.bodies[made] = node.body
        self.origins[made] = node
        return made

    def klass(self, node: ast.ClassDef) -> Any:
        """Raises UnknownSyntax."""
        made = new(cst.ClassDef)
        made.decorators = self._decorators(node.decorator_list)
        made.name = self.named(node.name, node)
        made.type_parameters = None
        made.bases = [self.argument(one) for one in node.bases]
        made.keywords = [self.keyword(one) for one in node.keywords]
        made.body = self.block(node.body)
        self.origins[made] = node
        return made

    def _decorators(self, nodes: Iterable[ast.expr]) -> list[Any]:
        found = []
        for node in nodes:
            made = new(cst.Decorator)
            made.decorator = self.expression(node)
            self.origins[made] = node
            found.append(made)
        return found


_STAR = cst.ImportStar()
_DOT = cst.Dot()
_SMALL: dict[type[ast.AST], Any] = {
    ast.AnnAssign: Maker._ann_assign,
    ast.Assert: Maker.plain,
    ast.Assign: Maker._assign,
    ast.AugAssign: Maker._aug_assign,
    ast.Break: Maker.plain,
    ast.Continue: Maker.plain,
    ast.Delete: Maker._delete,
    ast.Expr: Maker.plain,
    ast.Global: Maker._names,
    ast.Import: Maker._import,
    ast.ImportFrom: Maker._import_from,
    ast.Nonlocal: Maker._names,
    ast.Pass: Maker.plain,
    ast.Raise: Maker._raise,
    ast.Return: Maker.plain,
}
_COMPOUND: dict[type[ast.AST], Any] = {
    ast.AsyncFor: Maker._for,
    ast.AsyncFunctionDef: Maker.function,
    ast.AsyncWith: Maker._with,
    ast.ClassDef: Maker.klass,
    ast.For: Maker._for,
    ast.FunctionDef: Maker.function,
    ast.If: Maker._if,
    ast.Match: Maker._match,
    ast.Try: Maker._try,
    ast.While: Maker._while,
    ast.With: Maker._with,
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _COMPOUND[ast.TryStar] = Maker._try
if hasattr(ast, "TypeAlias"):  # Python 3.12
    _SMALL[ast.TypeAlias] = Maker._type_alias
