"""Expressions of `ast` -> those of libcst."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import libcst as cst

from tsdyn_lint import leancst
from tsdyn_lint.made.tokens import ASYNC, OPERATORS

leancst.load()  # nodes are made by setting their fields, whoever imported libcst


class UnknownSyntax(Exception):
    """`ast` has a kind of node that nothing here makes a libcst node of."""


new: Any = object.__new__
"""A node with no field set."""


class Expressions:
    """`expression` makes one. `origins` has the syntax of each node made, but for operators, blocks and `else`; names
    that `ast` has as text (of attributes, definitions, keywords) have the syntax that they are part of.
    """

    def __init__(self) -> None:
        self.origins: dict[cst.CSTNode, Any] = {}

    def expression(self, node: ast.expr) -> Any:
        """Raises UnknownSyntax."""
        if type(node) is ast.Name:
            made = new(cst.Name)
            made.value = node.id
        else:
            made = known(_EXPRESSIONS, node)(self, node)
        self.origins[made] = node
        return made

    def plain(self, node: ast.AST) -> Any:
        """A node whose parts are expressions."""
        kind, fields = _PLAIN[type(node)]
        made = new(kind)
        for ours, theirs in fields:
            setattr(made, ours, self.optional(getattr(node, theirs)))
        return made

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Any:
        made = new(_SEQUENCES[type(node)])
        made.elements = self._elements(node.elts)
        return made

    def _constant(self, node: ast.Constant) -> Any:
        value: Any = node.value
        kind = type(value)
        if kind is str or kind is bytes:
            made = new(cst.SimpleString)
            made.value = repr(value)
            return made
        if value is None or kind is bool:
            made = new(cst.Name)
            made.value = repr(value)
            return made
        if value is ...:
            return new(cst.Ellipsis)
        if kind is int:
            made = new(cst.Integer)
            made.value = repr(value) if value.bit_length() < 1000 else hex(value)
            return made
        made = new(cst.Float if kind is float else cst.Imaginary)
        made.value = repr(value).replace("inf", "1e999")
        return made

    def _attribute(self, node: ast.Attribute) -> Any:
        made = new(cst.Attribute)
        made.value = self.expression(node.value)
        made.attr = name = new(cst.Name)
        name.value = node.attr
        self.origins[name] = node
        return made

    def _call(self, node: ast.Call) -> Any:
        made = new(cst.Call)
        made.func = self.expression(node.func)
        made.args = args = [self.argument(one) for one in node.args]
        if node.keywords:
            args += [self.keyword(one) for one in node.keywords]
            if node.args and _start(node.args[-1]) > _start(node.keywords[0].value):
                args.sort(key=lambda arg: _start(self.origins[arg]))
        return made

    def argument(self, node: ast.expr) -> Any:
        made = new(cst.Arg)
        made.keyword = None
        if type(node) is ast.Starred:
            made.star, made.value = "*", self.expression(node.value)
        else:
            made.star, made.value = "", self.expression(node)
        self.origins[made] = node
        return made

    def keyword(self, node: ast.keyword) -> Any:
        made = new(cst.Arg)
        if node.arg is None:
            made.star, made.keyword = "**", None
        else:
            made.star, made.keyword = "", self.named(node.arg, node)
        made.value = self.expression(node.value)
        self.origins[made] = node
        return made

    def _subscript(self, node: ast.Subscript) -> Any:
        made = new(cst.Subscript)
        made.value = self.expression(node.value)
        index = node.slice
        parts = index.elts if type(index) is ast.Tuple else []
        made.slice = [self._subscript_element(one) for one in parts or [index]]
        if len(parts) == 1:
            made.slice[0].comma = _COMMA
        return made

    def _subscript_element(self, node: ast.expr) -> Any:
        made = new(cst.SubscriptElement)
        made.comma = None
        if type(node) is ast.Slice:
            part = new(cst.Slice)
            part.lower = self.optional(node.lower)
            part.upper = self.optional(node.upper)
            part.step = self.optional(node.step)
        else:
            part = new(cst.Index)
            part.star = None
            if type(node) is ast.Starred:
                part.star, part.value = "*", self.expression(node.value)
            else:
                part.value = self.expression(node)
        made.slice = part
        self.origins[part] = self.origins[made] = node
        return made

    def _binary(self, node: ast.BinOp) -> Any:
        made = new(cst.BinaryOperation)
        made.left = self.expression(node.left)
        made.operator = OPERATORS[type(node.op)]
        made.right = self.expression(node.right)
        return made

    def _boolean(self, node: ast.BoolOp) -> Any:
        operator = OPERATORS[type(node.op)]
        first, *rest = node.values
        made = self.expression(first)
        for one in rest:
            around = new(cst.BooleanOperation)
            around.left, around.operator, around.right = made, operator, self.expression(one)
            self.origins[around] = _Between(first, one)
            made = around
        return made

    def _unary(self, node: ast.UnaryOp) -> Any:
        made = new(cst.UnaryOperation)
        made.operator = OPERATORS[type(node.op)]
        made.expression = self.expression(node.operand)
        return made

    def _compare(self, node: ast.Compare) -> Any:
        made = new(cst.Comparison)
        made.left = self.expression(node.left)
        made.comparisons = []
        for operator, one in zip(node.ops, node.comparators, strict=True):
            target = new(cst.ComparisonTarget)
            target.operator, target.comparator = OPERATORS[type(operator)], self.expression(one)
            self.origins[target] = one
            made.comparisons.append(target)
        return made

    def _lambda(self, node: ast.Lambda) -> Any:
        made = new(cst.Lambda)
        made.params = self.parameters(node.args)
        made.body = self.expression(node.body)
        return made

    def _elements(self, nodes: Iterable[ast.expr]) -> list[Any]:
        found = []
        for node in nodes:
            if type(node) is ast.Starred:
                made = new(cst.StarredElement)
                made.value = self.expression(node.value)
            else:
                made = new(cst.Element)
                made.value = self.expression(node)
            self.origins[made] = node
            found.append(made)
        return found

    def _dict(self, node: ast.Dict) -> Any:
        made = new(cst.Dict)
        made.elements = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                element = new(cst.StarredDictElement)
            else:
                element = new(cst.DictElement)
                element.key = self.expression(key)
            element.value = self.expression(value)
            self.origins[element] = value if key is None else key
            made.elements.append(element)
        return made

    def _comprehension(self, node: Any) -> Any:
        made = new(_COMPREHENSIONS[type(node)])
        if type(node) is ast.DictComp:
            made.key, made.value = self.expression(node.key), self.expression(node.value)
        else:
            made.elt = self.expression(node.elt)
        inner = None
        for one in reversed(node.generators):
            loop = new(cst.CompFor)
            loop.asynchronous = ASYNC if one.is_async else None
            loop.target = self.expression(one.target)
            loop.iter = self.expression(one.iter)
            loop.ifs = []
            for test in one.ifs:
                condition = new(cst.CompIf)
                condition.test = self.expression(test)
                self.origins[condition] = test
                loop.ifs.append(condition)
            loop.inner_for_in = inner
            self.origins[loop] = one.target
            inner = loop
        made.for_in = inner
        return made

    def _formatted(self, node: Any) -> Any:
        made = new(cst.FormattedString if type(node) is ast.JoinedStr else cst.TemplatedString)
        made.parts = self._parts(node)
        return made

    def _parts(self, node: Any) -> list[Any]:
        found = []
        for one in node.values:
            if type(one) is ast.Constant:
                part = new(cst.FormattedStringText)
                part.value = one.value
            else:
                part = new(cst.FormattedStringExpression)
                part.expression = self.expression(one.value)
                part.conversion = None if one.conversion == -1 else chr(one.conversion)
                part.format_spec = None if one.format_spec is None else self._parts(one.format_spec)
                one = one.value  # before Python 3.12 the part stands where its string does
            self.origins[part] = one
            found.append(part)
        return found

    def _yield_from(self, node: ast.YieldFrom) -> Any:
        made = new(cst.Yield)
        made.value = self.from_(node.value)
        return made

    def from_(self, node: ast.expr) -> Any:
        made = new(cst.From)
        made.item = self.expression(node)
        self.origins[made] = node
        return made

    def parameters(self, node: ast.arguments) -> Any:
        made = new(cst.Parameters)
        missing = len(node.posonlyargs) + len(node.args) - len(node.defaults)
        defaults = [None] * missing + node.defaults if missing else node.defaults
        first = len(node.posonlyargs)
        made.posonly_params = list(map(self._param, node.posonlyargs, defaults))
        made.params = list(map(self._param, node.args, defaults[first:]))
        made.star_arg = _NO_STAR
        if node.vararg is not None:
            made.star_arg = self._param(node.vararg, None, "*")
        elif node.kwonlyargs:
            made.star_arg = _BARE_STAR
        made.kwonly_params = list(map(self._param, node.kwonlyargs, node.kw_defaults))
        made.star_kwarg = None if node.kwarg is None else self._param(node.kwarg, None, "**")
        return made

    def _param(self, node: ast.arg, default: ast.expr | None, star: str = "") -> Any:
        made = new(cst.Param)
        made.name = self.named(node.arg, node)
        made.annotation = None if node.annotation is None else self.annotation(node.annotation)
        made.default = None if default is None else self.expression(default)
        made.star = star
        self.origins[made] = node
        return made

    def annotation(self, node: ast.expr) -> Any:
        made = new(cst.Annotation)
        made.annotation = self.expression(node)
        self.origins[made] = node
        return made

    def named(self, text: str, node: ast.AST) -> Any:
        """A name that `ast` has as text."""
        made = new(cst.Name)
        made.value = text
        self.origins[made] = node
        return made

    def optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self.expression(node)


class _Between:
    """From the start of one expression to the end of another: the inner part of `a and b and c`, flat in `ast`."""

    __slots__ = ("col_offset", "end_col_offset", "end_lineno", "lineno")

    def __init__(self, first: ast.expr, last: ast.expr) -> None:
        self.lineno, self.col_offset = first.lineno, first.col_offset
        self.end_lineno, self.end_col_offset = last.end_lineno, last.end_col_offset


def known(makers: Mapping[type[ast.AST], Any], node: ast.AST) -> Any:
    """What makes the node. Raises UnknownSyntax."""
    try:
        return makers[type(node)]
    except KeyError:
        raise UnknownSyntax(type(node).__name__) from None


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


_COMMA = cst.Comma()
"""Stands after the only part in brackets where that is a tuple of one."""
_NO_STAR = cst.MaybeSentinel.DEFAULT
_BARE_STAR = cst.ParamStar()
_PLAIN: dict[type[ast.AST], tuple[type[cst.CSTNode], tuple[tuple[str, str], ...]]] = {
    ast.Assert: (cst.Assert, (("test", "test"), ("msg", "msg"))),
    ast.Await: (cst.Await, (("expression", "value"),)),
    ast.Break: (cst.Break, ()),
    ast.Continue: (cst.Continue, ()),
    ast.Expr: (cst.Expr, (("value", "value"),)),
    ast.IfExp: (cst.IfExp, (("body", "body"), ("test", "test"), ("orelse", "orelse"))),
    ast.NamedExpr: (cst.NamedExpr, (("target", "target"), ("value", "value"))),
    ast.Pass: (cst.Pass, ()),
    ast.Return: (cst.Return, (("value", "value"),)),
    ast.Starred: (cst.StarredElement, (("value", "value"),)),
    ast.Yield: (cst.Yield, (("value", "value"),)),
}
"""What `plain` makes: libcst's kind, and its fields with those of `ast`."""
_SEQUENCES: dict[type[ast.AST], type[cst.CSTNode]] = {ast.List: cst.List, ast.Set: cst.Set, ast.Tuple: cst.Tuple}
_COMPREHENSIONS: dict[type[ast.AST], type[cst.CSTNode]] = {
    ast.ListComp: cst.ListComp,
    ast.SetComp: cst.SetComp,
    ast.DictComp: cst.DictComp,
    ast.GeneratorExp: cst.GeneratorExp,
}
_EXPRESSIONS: dict[type[ast.AST], Any] = {
    ast.Attribute: Expressions._attribute,
    ast.Await: Expressions.plain,
    ast.BinOp: Expressions._binary,
    ast.BoolOp: Expressions._boolean,
    ast.Call: Expressions._call,
    ast.Compare: Expressions._compare,
    ast.Constant: Expressions._constant,
    ast.Dict: Expressions._dict,
    ast.DictComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.IfExp: Expressions.plain,
    ast.JoinedStr: Expressions._formatted,
    ast.Lambda: Expressions._lambda,
    ast.List: Expressions._sequence,
    ast.ListComp: Expressions._comprehension,
    ast.NamedExpr: Expressions.plain,
    ast.Set: Expressions._sequence,
    ast.SetComp: Expressions._comprehension,
    ast.Starred: Expressions.plain,
    ast.Subscript: Expressions._subscript,
    ast.Tuple: Expressions._sequence,
    ast.UnaryOp: Expressions._unary,
    ast.Yield: Expressions.plain,
    ast.YieldFrom: Expressions._yield_from,
}
if hasattr(ast, "TemplateStr"):  # Python 3.14
    _EXPRESSIONS[ast.TemplateStr] = Expressions._formatted
