"""The fields of libcst's nodes that say what code does, and what is asked of nodes however they were made."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

import libcst as cst

FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.AnnAssign: ("target", "annotation", "value"),
    cst.Annotation: ("annotation",),
    cst.Arg: ("keyword", "value"),
    cst.AsName: ("name",),
    cst.Assert: ("test", "msg"),
    cst.Assign: ("targets", "value"),
    cst.AssignTarget: ("target",),
    cst.Attribute: ("value", "attr"),
    cst.AugAssign: ("target", "operator", "value"),
    cst.Await: ("expression",),
    cst.BinaryOperation: ("left", "operator", "right"),
    cst.BooleanOperation: ("left", "operator", "right"),
    cst.Call: ("func", "args"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.CompFor: ("target", "iter", "ifs", "inner_for_in"),
    cst.CompIf: ("test",),
    cst.Comparison: ("left", "comparisons"),
    cst.ComparisonTarget: ("operator", "comparator"),
    cst.ConcatenatedString: ("left", "right"),
    cst.Decorator: ("decorator",),
    cst.Del: ("target",),
    cst.Dict: ("elements",),
    cst.DictComp: ("key", "value", "for_in"),
    cst.DictElement: ("key", "value"),
    cst.Element: ("value",),
    cst.Else: ("body",),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.Expr: ("value",),
    cst.Finally: ("body",),
    cst.For: ("target", "iter", "body", "orelse"),
    cst.FormattedString: ("parts",),
    cst.FormattedStringExpression: ("expression", "format_spec"),
    cst.From: ("item",),
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.GeneratorExp: ("elt", "for_in"),
    cst.Global: ("names",),
    cst.If: ("test", "body", "orelse"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Import: ("names",),
    cst.ImportAlias: ("name", "asname"),
    cst.ImportFrom: ("module", "names"),
    cst.IndentedBlock: ("body",),
    cst.Index: ("value",),
    cst.Lambda: ("params", "body"),
    cst.List: ("elements",),
    cst.ListComp: ("elt", "for_in"),
    cst.Match: ("subject", "cases"),
    cst.MatchAs: ("pattern", "name"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.MatchClass: ("cls", "patterns", "kwds"),
    cst.MatchKeywordElement: ("key", "pattern"),
    cst.MatchList: ("patterns",),
    cst.MatchMapping: ("elements", "rest"),
    cst.MatchMappingElement: ("key", "pattern"),
    cst.MatchOr: ("patterns",),
    cst.MatchOrElement: ("pattern",),
    cst.MatchSequenceElement: ("value",),
    cst.MatchSingleton: ("value",),
    cst.MatchStar: ("name",),
    cst.MatchTuple: ("patterns",),
    cst.MatchValue: ("value",),
    cst.NameItem: ("name",),
    cst.NamedExpr: ("target", "value"),
    cst.Nonlocal: ("names",),
    cst.Param: ("name", "annotation", "default"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
    cst.Raise: ("exc", "cause"),
    cst.Return: ("value",),
    cst.Set: ("elements",),
    cst.SetComp: ("elt", "for_in"),
    cst.SimpleStatementLine: ("body",),
    cst.SimpleStatementSuite: ("body",),
    cst.Slice: ("lower", "upper", "step"),
    cst.StarredDictElement: ("value",),
    cst.StarredElement: ("value",),
    cst.Subscript: ("value", "slice"),
    cst.SubscriptElement: ("slice",),
    cst.Try: ("body", "handlers", "orelse", "finalbody"),
    cst.TryStar: ("body", "handlers", "orelse", "finalbody"),
    cst.Tuple: ("elements",),
    cst.UnaryOperation: ("operator", "expression"),
    cst.While: ("test", "body", "orelse"),
    cst.With: ("items", "body"),
    cst.WithItem: ("item", "asname"),
    cst.Yield: ("value",),
}
"""The fields of each kind of node that hold other nodes, in the order of the source; kinds without any are left out."""


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes right below one, however it was made, white space and punctuation aside."""
    found: list[cst.CSTNode] = []
    for name in FIELDS.get(type(node), ()):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += value
    return found


@lru_cache(maxsize=20_000)
def literal(text: str) -> Any:
    """The value of a literal's source: the same ones are met again on each walk. Raises SyntaxError and ValueError.

    libcst's own `evaluated_value` parses it anew each time, and each time leaves garbage that holds itself.
    """
    if text[0] in "\"'" and "\\" not in text and "\r" not in text:
        quotes = 3 if text[:3] in ('"""', "'''") else 1
        return text[quotes:-quotes]
    return int(text) if text.isdecimal() else ast.literal_eval(text)
