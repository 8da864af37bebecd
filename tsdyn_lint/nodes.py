"""`ast` trees -> libcst's nodes without their white space, and which syntax each was made from.

libcst's own parser keeps every blank and parenthesis as an object of its own, and takes ten times as long as `ast`.
An analysis reads neither. A node made here has the fields that say what the code does (`FIELDS`), the others are unset;
what it is made from knows its place in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import libcst as cst

from tsdyn_lint import leancst

leancst.load()  # whoever imported libcst: nodes are made by setting their fields

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
    if text[0] in "\"'" and "\\" not in text:
        quotes = 3 if text[:3] in ('"""', "'''") else 1
        return text[quotes:-quotes]
    return int(text) if text.isdecimal() else ast.literal_eval(text)


class UnknownSyntax(Exception):
    """`ast` has a kind of node that this module has no libcst node for."""


_new: Any = object.__new__
_ASYNC = cst.Asynchronous()
_NO_STAR = cst.MaybeSentinel.DEFAULT
_OPERATORS: dict[type[ast.AST], cst.CSTNode] = {
    ast.Add: cst.Add(),
    ast.And: cst.And(),
    ast.BitAnd: cst.BitAnd(),
    ast.BitOr: cst.BitOr(),
    ast.BitXor: cst.BitXor(),
    ast.Div: cst.Divide(),
    ast.Eq: cst.Equal(),
    ast.FloorDiv: cst.FloorDivide(),
    ast.Gt: cst.GreaterThan(),
    ast.GtE: cst.GreaterThanEqual(),
    ast.In: cst.In(),
    ast.Invert: cst.BitInvert(),
    ast.Is: cst.Is(),
    ast.IsNot: cst.IsNot(),
    ast.LShift: cst.LeftShift(),
    ast.Lt: cst.LessThan(),
    ast.LtE: cst.LessThanEqual(),
    ast.MatMult: cst.MatrixMultiply(),
    ast.Mod: cst.Modulo(),
    ast.Mult: cst.Multiply(),
    ast.Not: cst.Not(),
    ast.NotEq: cst.NotEqual(),
    ast.NotIn: cst.NotIn(),
    ast.Or: cst.Or(),
    ast.Pow: cst.Power(),
    ast.RShift: cst.RightShift(),
    ast.Sub: cst.Subtract(),
    ast.UAdd: cst.Plus(),
    ast.USub: cst.Minus(),
}
_AUGMENTED: dict[type[ast.AST], cst.CSTNode] = {
    ast.Add: cst.AddAssign(),
    ast.BitAnd: cst.BitAndAssign(),
    ast.BitOr: cst.BitOrAssign(),
    ast.BitXor: cst.BitXorAssign(),
    ast.Div: cst.DivideAssign(),
    ast.FloorDiv: cst.FloorDivideAssign(),
    ast.LShift: cst.LeftShiftAssign(),
    ast.MatMult: cst.MatrixMultiplyAssign(),
    ast.Mod: cst.ModuloAssign(),
    ast.Mult: cst.MultiplyAssign(),
    ast.Pow: cst.PowerAssign(),
    ast.RShift: cst.RightShiftAssign(),
    ast.Sub: cst.SubtractAssign(),
}


class Maker:
    """Makes nodes of one file. `origins` has the syntax of each node made, but for operators, blocks and `else`; names
    that `ast` has as text (of attributes, definitions, keywords) have the syntax that they are part of.
    """

    def __init__(self) -> None:
        self.origins: dict[cst.CSTNode, Any] = {}
        self.bodies: dict[cst.CSTNode, Sequence[ast.stmt]] = {}
        """What functions have as body that were made without one."""
        self.set_aside: Callable[[ast.stmt], Any] | None = None
        """Gives what is to stand for a statement that is made later, None where it is to be made now."""

    # --- statements

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
            made = _new(cst.SimpleStatementLine)
            made.body = [small] = [_known(_SMALL, node)(self, node)]
            self.origins[small] = node
        self.origins[made] = node
        return made

    def block(self, nodes: Iterable[ast.stmt]) -> Any:
        made = _new(cst.IndentedBlock)
        made.body = [self.statement(node) for node in nodes]
        return made

    def _else(self, nodes: Sequence[ast.stmt], kind: type[cst.CSTNode] = cst.Else) -> Any:
        if not nodes:
            return None
        made = _new(kind)
        made.body = self.block(nodes)
        self.origins[made] = nodes[0]
        return made

    def _expr(self, node: ast.Expr) -> Any:
        made = _new(cst.Expr)
        made.value = self.expression(node.value)
        return made

    def _assign(self, node: ast.Assign) -> Any:
        made = _new(cst.Assign)
        made.targets = targets = []
        for one in node.targets:
            target = _new(cst.AssignTarget)
            target.target = self.expression(one)
            self.origins[target] = one
            targets.append(target)
        made.value = self.expression(node.value)
        return made

    def _ann_assign(self, node: ast.AnnAssign) -> Any:
        made = _new(cst.AnnAssign)
        made.target = self.expression(node.target)
        made.annotation = self._annotation(node.annotation)
        made.value = self._optional(node.value)
        return made

    def _aug_assign(self, node: ast.AugAssign) -> Any:
        made = _new(cst.AugAssign)
        made.target = self.expression(node.target)
        made.operator = _AUGMENTED[type(node.op)]
        made.value = self.expression(node.value)
        return made

    def _return(self, node: ast.Return) -> Any:
        made = _new(cst.Return)
        made.value = self._optional(node.value)
        return made

    def _raise(self, node: ast.Raise) -> Any:
        made = _new(cst.Raise)
        made.exc = self._optional(node.exc)
        made.cause = None if node.cause is None else self._from(node.cause)
        return made

    def _from(self, node: ast.expr) -> Any:
        made = _new(cst.From)
        made.item = self.expression(node)
        self.origins[made] = node
        return made

    def _assert(self, node: ast.Assert) -> Any:
        made = _new(cst.Assert)
        made.test = self.expression(node.test)
        made.msg = self._optional(node.msg)
        return made

    def _delete(self, node: ast.Delete) -> Any:
        made = _new(cst.Del)
        if len(node.targets) == 1:
            made.target = self.expression(node.targets[0])
        else:
            made.target = _new(cst.Tuple)
            made.target.elements = self._elements(node.targets)
            self.origins[made.target] = node
        return made

    def _names(self, node: ast.Global | ast.Nonlocal) -> Any:
        made = _new(cst.Global if type(node) is ast.Global else cst.Nonlocal)
        made.names = []
        for name in node.names:
            item = _new(cst.NameItem)
            item.name = self._named(name, node)
            self.origins[item] = node
            made.names.append(item)
        return made

    def _import(self, node: ast.Import) -> Any:
        made = _new(cst.Import)
        made.names = self._aliases(node.names)
        return made

    def _import_from(self, node: ast.ImportFrom) -> Any:
        made = _new(cst.ImportFrom)
        made.module = None if node.module is None else self._dotted(node.module, node)
        made.names = _STAR if node.names[0].name == "*" else self._aliases(node.names)
        made.relative = [_DOT] * node.level
        return made

    def _aliases(self, nodes: Iterable[ast.alias]) -> list[Any]:
        found = []
        for node in nodes:
            made = _new(cst.ImportAlias)
            made.name = self._dotted(node.name, node)
            made.asname = self._as(None if node.asname is None else self._named(node.asname, node), node)
            self.origins[made] = node
            found.append(made)
        return found

    def _dotted(self, text: str, node: ast.AST) -> Any:
        first, *rest = text.split(".")
        made = self._named(first, node)
        for name in rest:
            around = _new(cst.Attribute)
            around.value, around.attr = made, self._named(name, node)
            self.origins[around] = node
            made = around
        return made

    def _as(self, name: Any, node: ast.AST) -> Any:
        if name is None:
            return None
        made = _new(cst.AsName)
        made.name = name
        self.origins[made] = node
        return made

    def _pass(self, _: ast.AST) -> Any:
        return _new(cst.Pass)

    def _break(self, _: ast.AST) -> Any:
        return _new(cst.Break)

    def _continue(self, _: ast.AST) -> Any:
        return _new(cst.Continue)

    def _type_alias(self, node: Any) -> Any:
        made = _new(cst.TypeAlias)
        made.name, made.value, made.type_parameters = self.expression(node.name), self.expression(node.value), None
        return made

    def _if(self, node: ast.If) -> Any:
        first = made = _new(cst.If)
        while True:
            made.test = self.expression(node.test)
            made.body = self.block(node.body)
            rest = node.orelse
            if len(rest) != 1 or type(rest[0]) is not ast.If:
                made.orelse = self._else(rest)
                return first
            node = rest[0]
            made.orelse = made = _new(cst.If)
            self.origins[made] = node

    def _for(self, node: ast.For | ast.AsyncFor) -> Any:
        made = _new(cst.For)
        made.asynchronous = _ASYNC if type(node) is ast.AsyncFor else None
        made.target = self.expression(node.target)
        made.iter = self.expression(node.iter)
        made.body = self.block(node.body)
        made.orelse = self._else(node.orelse)
        return made

    def _while(self, node: ast.While) -> Any:
        made = _new(cst.While)
        made.test = self.expression(node.test)
        made.body = self.block(node.body)
        made.orelse = self._else(node.orelse)
        return made

    def _with(self, node: ast.With | ast.AsyncWith) -> Any:
        made = _new(cst.With)
        made.asynchronous = _ASYNC if type(node) is ast.AsyncWith else None
        made.items = []
        for one in node.items:
            item = _new(cst.WithItem)
            item.item = self.expression(one.context_expr)
            item.asname = self._as(self._optional(one.optional_vars), one.context_expr)
            self.origins[item] = one.context_expr
            made.items.append(item)
        made.body = self.block(node.body)
        return made

    def _try(self, node: Any) -> Any:
        starred = type(node) is not ast.Try
        made = _new(cst.TryStar if starred else cst.Try)
        made.body = self.block(node.body)
        made.handlers = []
        for one in node.handlers:
            handler = _new(cst.ExceptStarHandler if starred else cst.ExceptHandler)
            handler.type = self._optional(one.type)
            handler.name = self._as(None if one.name is None else self._named(one.name, one), one)
            handler.body = self.block(one.body)
            self.origins[handler] = one
            made.handlers.append(handler)
        made.orelse = self._else(node.orelse)
        made.finalbody = self._else(node.finalbody, cst.Finally)
        return made

    def _match(self, node: ast.Match) -> Any:
        made = _new(cst.Match)
        made.subject = self.expression(node.subject)
        made.cases = []
        for one in node.cases:
            case = _new(cst.MatchCase)
            case.pattern = self._pattern(one.pattern)
            case.guard = self._optional(one.guard)
            case.body = self.block(one.body)
            self.origins[case] = one.pattern
            made.cases.append(case)
        return made

    def _pattern(self, node: ast.pattern) -> Any:
        made: Any
        match node:
            case ast.MatchValue():
                made = _new(cst.MatchValue)
                made.value = self.expression(node.value)
            case ast.MatchSingleton():
                made = _new(cst.MatchSingleton)
                made.value = self._named(repr(node.value), node)
            case ast.MatchSequence():
                made = _new(cst.MatchList)
                made.patterns = [self._pattern_element(one) for one in node.patterns]
            case ast.MatchMapping():
                made = _new(cst.MatchMapping)
                made.elements = []
                for key, pattern in zip(node.keys, node.patterns, strict=True):
                    element = _new(cst.MatchMappingElement)
                    element.key, element.pattern = self.expression(key), self._pattern(pattern)
                    self.origins[element] = key
                    made.elements.append(element)
                made.rest = None if node.rest is None else self._named(node.rest, node)
            case ast.MatchClass():
                made = _new(cst.MatchClass)
                made.cls = self.expression(node.cls)
                made.patterns = [self._pattern_element(one) for one in node.patterns]
                made.kwds = []
                for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
                    element = _new(cst.MatchKeywordElement)
                    element.key, element.pattern = self._named(name, pattern), self._pattern(pattern)
                    self.origins[element] = pattern
                    made.kwds.append(element)
            case ast.MatchStar():
                made = _new(cst.MatchStar)
                made.name = None if node.name is None else self._named(node.name, node)
            case ast.MatchAs():
                made = _new(cst.MatchAs)
                made.pattern = None if node.pattern is None else self._pattern(node.pattern)
                made.name = None if node.name is None else self._named(node.name, node)
            case ast.MatchOr():
                made = _new(cst.MatchOr)
                made.patterns = []
                for one in node.patterns:
                    element = _new(cst.MatchOrElement)
                    element.pattern = self._pattern(one)
                    self.origins[element] = one
                    made.patterns.append(element)
            case _:
                raise UnknownSyntax(type(node).__name__)
        self.origins[made] = node
        return made

    def _pattern_element(self, node: ast.pattern) -> Any:
        made = self._pattern(node)
        if type(node) is ast.MatchStar:
            return made
        around = _new(cst.MatchSequenceElement)
        around.value = made
        self.origins[around] = node
        return around

    # --- definitions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, whole: bool = True) -> Any:
        """A function, its body left in `bodies` if it is not to be made `whole`. Raises UnknownSyntax."""
        made = _new(cst.FunctionDef)
        made.decorators = self._decorators(node.decorator_list)
        made.asynchronous = _ASYNC if type(node) is ast.AsyncFunctionDef else None
        made.name = self._named(node.name, node)
        made.type_parameters = None
        made.params = self._parameters(node.args)
        made.returns = None if node.returns is None else self._annotation(node.returns)
        made.body = self.block(node.body if whole else ())
        if not whole:
            self.bodies[made] = node.body
        self.origins[made] = node
        return made

    def klass(self, node: ast.ClassDef) -> Any:
        """Raises UnknownSyntax."""
        made = _new(cst.ClassDef)
        made.decorators = self._decorators(node.decorator_list)
        made.name = self._named(node.name, node)
        made.type_parameters = None
        made.bases = [self._argument(one) for one in node.bases]
        made.keywords = [self._keyword(one) for one in node.keywords]
        made.body = self.block(node.body)
        self.origins[made] = node
        return made

    def _decorators(self, nodes: Iterable[ast.expr]) -> list[Any]:
        found = []
        for node in nodes:
            made = _new(cst.Decorator)
            made.decorator = self.expression(node)
            self.origins[made] = node
            found.append(made)
        return found

    def _parameters(self, node: ast.arguments) -> Any:
        made = _new(cst.Parameters)
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
        made = _new(cst.Param)
        made.name = self._named(node.arg, node)
        made.annotation = None if node.annotation is None else self._annotation(node.annotation)
        made.default = None if default is None else self.expression(default)
        made.star = star
        self.origins[made] = node
        return made

    def _annotation(self, node: ast.expr) -> Any:
        made = _new(cst.Annotation)
        made.annotation = self.expression(node)
        self.origins[made] = node
        return made

    def _named(self, text: str, node: ast.AST) -> Any:
        """A name that `ast` has as text."""
        made = _new(cst.Name)
        made.value = text
        self.origins[made] = node
        return made

    # --- expressions

    def expression(self, node: ast.expr) -> Any:
        """Raises UnknownSyntax."""
        if type(node) is ast.Name:
            made = _new(cst.Name)
            made.value = node.id
        else:
            made = _known(_EXPRESSIONS, node)(self, node)
        self.origins[made] = node
        return made

    def _optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self.expression(node)

    def _constant(self, node: ast.Constant) -> Any:
        value: Any = node.value
        kind = type(value)
        if kind is str or kind is bytes:
            made = _new(cst.SimpleString)
            made.value = repr(value)
            return made
        if value is None or kind is bool:
            made = _new(cst.Name)
            made.value = repr(value)
            return made
        if value is ...:
            return _new(cst.Ellipsis)
        if kind is int:
            made = _new(cst.Integer)
            made.value = repr(value) if value.bit_length() < 1000 else hex(value)
            return made
        made = _new(cst.Float if kind is float else cst.Imaginary)
        made.value = repr(value).replace("inf", "1e999")
        return made

    def _attribute(self, node: ast.Attribute) -> Any:
        made = _new(cst.Attribute)
        made.value = self.expression(node.value)
        made.attr = name = _new(cst.Name)
        name.value = node.attr
        self.origins[name] = node
        return made

    def _call(self, node: ast.Call) -> Any:
        made = _new(cst.Call)
        made.func = self.expression(node.func)
        made.args = args = [self._argument(one) for one in node.args]
        if node.keywords:
            args += [self._keyword(one) for one in node.keywords]
            if node.args and _start(node.args[-1]) > _start(node.keywords[0].value):
                args.sort(key=lambda arg: _start(self.origins[arg]))
        return made

    def _argument(self, node: ast.expr) -> Any:
        made = _new(cst.Arg)
        made.keyword = None
        if type(node) is ast.Starred:
            made.star, made.value = "*", self.expression(node.value)
        else:
            made.star, made.value = "", self.expression(node)
        self.origins[made] = node
        return made

    def _keyword(self, node: ast.keyword) -> Any:
        made = _new(cst.Arg)
        if node.arg is None:
            made.star, made.keyword = "**", None
        else:
            made.star, made.keyword = "", self._named(node.arg, node)
        made.value = self.expression(node.value)
        self.origins[made] = node
        return made

    def _subscript(self, node: ast.Subscript) -> Any:
        made = _new(cst.Subscript)
        made.value = self.expression(node.value)
        index = node.slice
        parts = [index]
        if type(index) is ast.Tuple and index.elts and (len(index.elts) > 1 or type(index.elts[0]) in _IN_BRACKETS):
            parts = index.elts
        made.slice = [self._subscript_element(one) for one in parts]
        return made

    def _subscript_element(self, node: ast.expr) -> Any:
        made = _new(cst.SubscriptElement)
        if type(node) is ast.Slice:
            part = _new(cst.Slice)
            part.lower = self._optional(node.lower)
            part.upper = self._optional(node.upper)
            part.step = self._optional(node.step)
        else:
            part = _new(cst.Index)
            part.star = None
            if type(node) is ast.Starred:
                part.star, part.value = "*", self.expression(node.value)
            else:
                part.value = self.expression(node)
        made.slice = part
        self.origins[part] = self.origins[made] = node
        return made

    def _binary(self, node: ast.BinOp) -> Any:
        made = _new(cst.BinaryOperation)
        made.left = self.expression(node.left)
        made.operator = _OPERATORS[type(node.op)]
        made.right = self.expression(node.right)
        return made

    def _boolean(self, node: ast.BoolOp) -> Any:
        operator = _OPERATORS[type(node.op)]
        first, *rest = node.values
        made = self.expression(first)
        for one in rest:
            around = _new(cst.BooleanOperation)
            around.left, around.operator, around.right = made, operator, self.expression(one)
            self.origins[around] = _Between(first, one)
            made = around
        return made

    def _unary(self, node: ast.UnaryOp) -> Any:
        made = _new(cst.UnaryOperation)
        made.operator = _OPERATORS[type(node.op)]
        made.expression = self.expression(node.operand)
        return made

    def _compare(self, node: ast.Compare) -> Any:
        made = _new(cst.Comparison)
        made.left = self.expression(node.left)
        made.comparisons = []
        for operator, one in zip(node.ops, node.comparators, strict=True):
            target = _new(cst.ComparisonTarget)
            target.operator, target.comparator = _OPERATORS[type(operator)], self.expression(one)
            self.origins[target] = one
            made.comparisons.append(target)
        return made

    def _if_exp(self, node: ast.IfExp) -> Any:
        made = _new(cst.IfExp)
        made.body = self.expression(node.body)
        made.test = self.expression(node.test)
        made.orelse = self.expression(node.orelse)
        return made

    def _lambda(self, node: ast.Lambda) -> Any:
        made = _new(cst.Lambda)
        made.params = self._parameters(node.args)
        made.body = self.expression(node.body)
        return made

    def _named_expr(self, node: ast.NamedExpr) -> Any:
        made = _new(cst.NamedExpr)
        made.target = self.expression(node.target)
        made.value = self.expression(node.value)
        return made

    def _await(self, node: ast.Await) -> Any:
        made = _new(cst.Await)
        made.expression = self.expression(node.value)
        return made

    def _yield(self, node: ast.Yield) -> Any:
        made = _new(cst.Yield)
        made.value = self._optional(node.value)
        return made

    def _yield_from(self, node: ast.YieldFrom) -> Any:
        made = _new(cst.Yield)
        made.value = self._from(node.value)
        return made

    def _elements(self, nodes: Iterable[ast.expr]) -> list[Any]:
        found = []
        for node in nodes:
            if type(node) is ast.Starred:
                made = _new(cst.StarredElement)
                made.value = self.expression(node.value)
            else:
                made = _new(cst.Element)
                made.value = self.expression(node)
            self.origins[made] = node
            found.append(made)
        return found

    def _tuple(self, node: ast.Tuple) -> Any:
        made = _new(cst.Tuple)
        made.elements = self._elements(node.elts)
        return made

    def _list(self, node: ast.List) -> Any:
        made = _new(cst.List)
        made.elements = self._elements(node.elts)
        return made

    def _set(self, node: ast.Set) -> Any:
        made = _new(cst.Set)
        made.elements = self._elements(node.elts)
        return made

    def _starred(self, node: ast.Starred) -> Any:
        made = _new(cst.StarredElement)
        made.value = self.expression(node.value)
        return made

    def _dict(self, node: ast.Dict) -> Any:
        made = _new(cst.Dict)
        made.elements = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                element = _new(cst.StarredDictElement)
            else:
                element = _new(cst.DictElement)
                element.key = self.expression(key)
            element.value = self.expression(value)
            self.origins[element] = value if key is None else key
            made.elements.append(element)
        return made

    def _comprehension(self, node: Any) -> Any:
        made = _new(_COMPREHENSIONS[type(node)])
        if type(node) is ast.DictComp:
            made.key, made.value = self.expression(node.key), self.expression(node.value)
        else:
            made.elt = self.expression(node.elt)
        inner = None
        for one in reversed(node.generators):
            loop = _new(cst.CompFor)
            loop.asynchronous = _ASYNC if one.is_async else None
            loop.target = self.expression(one.target)
            loop.iter = self.expression(one.iter)
            loop.ifs = []
            for test in one.ifs:
                condition = _new(cst.CompIf)
                condition.test = self.expression(test)
                self.origins[condition] = test
                loop.ifs.append(condition)
            loop.inner_for_in = inner
            self.origins[loop] = one.target
            inner = loop
        made.for_in = inner
        return made

    def _formatted(self, node: Any) -> Any:
        made = _new(cst.FormattedString if type(node) is ast.JoinedStr else cst.TemplatedString)
        made.parts = self._parts(node)
        return made

    def _parts(self, node: Any) -> list[Any]:
        found = []
        for one in node.values:
            if type(one) is ast.Constant:
                part = _new(cst.FormattedStringText)
                part.value = one.value
            else:
                part = _new(cst.FormattedStringExpression)
                part.expression = self.expression(one.value)
                part.conversion = None if one.conversion == -1 else chr(one.conversion)
                part.format_spec = None if one.format_spec is None else self._parts(one.format_spec)
                one = one.value  # before Python 3.12 the part stands where its string does
            self.origins[part] = one
            found.append(part)
        return found


class _Between:
    """From the start of one expression to the end of another: the inner part of `a and b and c`, flat in `ast`."""

    __slots__ = ("col_offset", "end_col_offset", "end_lineno", "lineno")

    def __init__(self, first: ast.expr, last: ast.expr) -> None:
        self.lineno, self.col_offset = first.lineno, first.col_offset
        self.end_lineno, self.end_col_offset = last.end_lineno, last.end_col_offset


def _known(makers: Mapping[type[ast.AST], Any], node: ast.AST) -> Any:
    try:
        return makers[type(node)]
    except KeyError:
        raise UnknownSyntax(type(node).__name__) from None


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


_IN_BRACKETS = (ast.Slice, ast.Starred)
"""What makes the part before a single comma an element of the brackets, and no tuple."""
_STAR = cst.ImportStar()
_DOT = cst.Dot()
_BARE_STAR = cst.ParamStar()
_COMPREHENSIONS: dict[type[ast.AST], type[cst.CSTNode]] = {
    ast.ListComp: cst.ListComp,
    ast.SetComp: cst.SetComp,
    ast.DictComp: cst.DictComp,
    ast.GeneratorExp: cst.GeneratorExp,
}
_SMALL: dict[type[ast.AST], Any] = {
    ast.AnnAssign: Maker._ann_assign,
    ast.Assert: Maker._assert,
    ast.Assign: Maker._assign,
    ast.AugAssign: Maker._aug_assign,
    ast.Break: Maker._break,
    ast.Continue: Maker._continue,
    ast.Delete: Maker._delete,
    ast.Expr: Maker._expr,
    ast.Global: Maker._names,
    ast.Import: Maker._import,
    ast.ImportFrom: Maker._import_from,
    ast.Nonlocal: Maker._names,
    ast.Pass: Maker._pass,
    ast.Raise: Maker._raise,
    ast.Return: Maker._return,
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
_EXPRESSIONS: dict[type[ast.AST], Any] = {
    ast.Attribute: Maker._attribute,
    ast.Await: Maker._await,
    ast.BinOp: Maker._binary,
    ast.BoolOp: Maker._boolean,
    ast.Call: Maker._call,
    ast.Compare: Maker._compare,
    ast.Constant: Maker._constant,
    ast.Dict: Maker._dict,
    ast.DictComp: Maker._comprehension,
    ast.GeneratorExp: Maker._comprehension,
    ast.IfExp: Maker._if_exp,
    ast.JoinedStr: Maker._formatted,
    ast.Lambda: Maker._lambda,
    ast.List: Maker._list,
    ast.ListComp: Maker._comprehension,
    ast.NamedExpr: Maker._named_expr,
    ast.Set: Maker._set,
    ast.SetComp: Maker._comprehension,
    ast.Starred: Maker._starred,
    ast.Subscript: Maker._subscript,
    ast.Tuple: Maker._tuple,
    ast.UnaryOp: Maker._unary,
    ast.Yield: Maker._yield,
    ast.YieldFrom: Maker._yield_from,
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _COMPOUND[ast.TryStar] = Maker._try
if hasattr(ast, "TypeAlias"):  # Python 3.12
    _SMALL[ast.TypeAlias] = Maker._type_alias
if hasattr(ast, "TemplateStr"):  # Python 3.14
    _EXPRESSIONS[ast.TemplateStr] = Maker._formatted
