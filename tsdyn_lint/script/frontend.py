"""What the compiler's frontend refuses before it looks at types, wherever it stands in a compiled function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

STATEMENTS: dict[type, str] = {
    cst.Try: "try blocks",
    cst.TryStar: "try blocks",
    cst.Import: "import statements",
    cst.ImportFrom: "import statements",
    cst.Global: "global variables",
    cst.Nonlocal: "nonlocal variables",
    cst.FunctionDef: "function definitions",
    cst.ClassDef: "class definitions",
    cst.Match: "match statements",
}
EXPRESSIONS: dict[type, str] = {
    cst.Lambda: "lambda expressions",
    cst.NamedExpr: "assignment expressions (`:=`)",
    cst.Set: "sets",
    cst.SetComp: "set comprehensions",
    cst.Yield: "yield",
    cst.Await: "await",
}
AUGMENTED = (
    cst.AddAssign,
    cst.SubtractAssign,
    cst.MultiplyAssign,
    cst.DivideAssign,
    cst.ModuloAssign,
    cst.BitOrAssign,
    cst.BitAndAssign,
    cst.BitXorAssign,
    cst.LeftShiftAssign,
    cst.RightShiftAssign,
    cst.PowerAssign,
)
_LEAVES = (cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.BaseParenthesizableWhitespace)


def refusals(statements: Sequence[cst.CSTNode]) -> Iterator[tuple[str, cst.CSTNode, str]]:
    """(cause, node, what) for each construct in the statements that the frontend has no node for."""
    todo: list[cst.CSTNode] = list(reversed(statements))
    while todo:
        node = todo.pop()
        kind = type(node)
        what = STATEMENTS.get(kind)
        if what is not None:
            yield "statement", node, what
            continue
        what = EXPRESSIONS.get(kind)
        if what is not None:
            yield "expression", node, what
            continue
        special = _SPECIAL.get(kind)
        if special is not None:
            yield from special(node)
        for name in _FIELDS.get(kind, ()):
            value = getattr(node, name)
            if value is None:
                continue
            if isinstance(value, (list, tuple)):
                todo.extend(reversed(value))
            else:
                todo.append(value)


def _comprehension(node: cst.ListComp | cst.GeneratorExp | cst.DictComp) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if node.for_in.inner_for_in is not None:
        yield "expression", node, "comprehensions with two `for`"
    elif node.for_in.ifs:
        yield "expression", node, "comprehensions with `if`"


def _fstring(node: cst.FormattedStringExpression) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if node.format_spec is not None:
        yield "expression", node, "format specifications in f-strings"
    elif node.conversion is not None:
        yield "expression", node, "conversions (`!r`) in f-strings"


def _loop(node: cst.For | cst.While) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if node.orelse is not None:
        yield "statement", node, "`else` on loops"


def _async(node: cst.For | cst.With) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if node.asynchronous is not None:
        yield "statement", node, "async statements"


def _for(node: cst.For) -> Iterator[tuple[str, cst.CSTNode, str]]:
    yield from _loop(node)
    yield from _async(node)


def _dict_expansion(node: cst.StarredDictElement) -> Iterator[tuple[str, cst.CSTNode, str]]:
    yield "expression", node, "`**` in dict literals"


def _augmented(node: cst.AugAssign) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if not isinstance(node.operator, AUGMENTED):
        yield "augmented", node, type(node.operator).__name__


def _declaration(node: cst.AnnAssign) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if node.value is None:
        yield "statement", node, "annotations without a value"


def _bytes(node: cst.SimpleString) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if "b" in node.prefix:
        yield "expression", node, "bytes"


def _unary(node: cst.UnaryOperation) -> Iterator[tuple[str, cst.CSTNode, str]]:
    if isinstance(node.operator, cst.Plus):
        yield "expression", node, "the unary `+`"


_SPECIAL: dict[type, Callable[[Any], Iterator[tuple[str, cst.CSTNode, str]]]] = {
    cst.ListComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _comprehension,
    cst.FormattedStringExpression: _fstring,
    cst.While: _loop,
    cst.For: _for,
    cst.With: _async,
    cst.StarredDictElement: _dict_expansion,
    cst.AugAssign: _augmented,
    cst.AnnAssign: _declaration,
    cst.UnaryOperation: _unary,
    cst.SimpleString: _bytes,
}
_FIELDS: dict[type, tuple[str, ...]] = {
    cst.SimpleStatementLine: ("body",),
    cst.SimpleStatementSuite: ("body",),
    cst.IndentedBlock: ("body",),
    cst.Expr: ("value",),
    cst.Assign: ("targets", "value"),
    cst.AssignTarget: ("target",),
    cst.AnnAssign: ("target", "value"),
    cst.AugAssign: ("target", "value"),
    cst.Return: ("value",),
    cst.If: ("test", "body", "orelse"),
    cst.Else: ("body",),
    cst.For: ("iter", "body", "orelse"),
    cst.While: ("test", "body", "orelse"),
    cst.With: ("items", "body"),
    cst.WithItem: ("item",),
    cst.Raise: ("exc",),
    cst.Assert: ("test", "msg"),
    cst.Del: ("target",),
    cst.Call: ("func", "args"),
    cst.Arg: ("value",),
    cst.Attribute: ("value",),
    cst.Subscript: ("value", "slice"),
    cst.SubscriptElement: ("slice",),
    cst.Index: ("value",),
    cst.Slice: ("lower", "upper", "step"),
    cst.BinaryOperation: ("left", "right"),
    cst.BooleanOperation: ("left", "right"),
    cst.UnaryOperation: ("expression",),
    cst.Comparison: ("left", "comparisons"),
    cst.ComparisonTarget: ("comparator",),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Tuple: ("elements",),
    cst.List: ("elements",),
    cst.Element: ("value",),
    cst.StarredElement: ("value",),
    cst.Dict: ("elements",),
    cst.DictElement: ("key", "value"),
    cst.StarredDictElement: ("value",),
    cst.ListComp: ("elt", "for_in"),
    cst.GeneratorExp: ("elt", "for_in"),
    cst.DictComp: ("key", "value", "for_in"),
    cst.CompFor: ("iter", "inner_for_in", "ifs"),
    cst.CompIf: ("test",),
    cst.FormattedString: ("parts",),
    cst.FormattedStringExpression: ("expression",),
    cst.ConcatenatedString: ("left", "right"),
}
