"""A function's header -> what a call of it must fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import libcst as cst

from tsdyn_lint.parse import ParseFailure, parsed_expression
from tsdyn_lint.resolve import Function, Module
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused
from tsdyn_lint.script.init_frames import Frame
from tsdyn_lint.script.problems import Problems
from tsdyn_lint.script.pyvalues import CONST_TYPES, Cls, Const, Ext, Fn, Inst, Lam, Map, Seq

_NOT_COMPILED = frozenset(
    {"functools.lru_cache", "functools.cache", "functools.singledispatch", "contextlib.contextmanager"}
)


@dataclass(eq=False)
class Compiled:
    """A compiled function: what a call must fit, and whether its own header is refused."""

    function: Function
    schema: s.Schema
    untyped: frozenset[str] = frozenset()
    """Parameters without an annotation."""
    misread: set[str] = field(default_factory=set)
    """Those of them that the header or the body showed to be no tensors: what calls pass for them is a consequence."""
    none_defaults: frozenset[str] = frozenset()
    """Parameters of type Tensor whose default is None."""
    done: bool = False
    refused: bool = False


class Signatures(Problems):
    """The part of `Compiler` that reads headers."""

    def declared(self, function: Function) -> Compiled | None:
        """The signature of a function that is not compiled; None where its header says too little."""
        problems, self.problems = self.problems, {}
        try:
            found = self.header(function, None)
        finally:
            self.problems = problems
        return None if found.refused else found

    def header(self, function: Function, inst: Inst | None) -> Compiled:
        node = function.node
        params = node.params
        at: cst.CSTNode
        refused = False
        keyword_defaults = any(p.default is not None for p in params.kwonly_params)
        if params.posonly_params:
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("variadic", at, function, what="positional-only parameters (`/`)", name=function.name)
            refused = True
        if isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None or keyword_defaults:
            what = (
                f"*{params.star_arg.name.value}"
                if isinstance(params.star_arg, cst.Param)
                else f"**{params.star_kwarg.name.value}"
                if params.star_kwarg is not None
                else "keyword-only parameters with defaults"
            )
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("variadic", at, function, what=what, name=function.name)
            refused = True
        args: list[s.Arg] = []
        untyped: set[str] = set()
        none_defaults: set[str] = set()
        misread: set[str] = set()
        positional = [*params.posonly_params, *params.params]
        bound = function.cls is not None and not function.is_static or is_static_forward(function)
        if is_static_forward(function) and not positional:
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("uncompilable-function", at, function, name=function.name, why="it takes no module")
            refused = True
        comment = self._comment_types(
            function, len(positional) + len(params.kwonly_params) - (bound and bool(positional))
        )
        for number, param in enumerate([*positional, *params.kwonly_params]):
            if number == 0 and bound and positional:
                continue
            name = param.name.value
            kind = t.TENSOR
            if param.annotation is not None:
                try:
                    kind = self.annotations.read(param.annotation.annotation, function.module)
                except Refused as refusal:
                    self.report("annotation", param, function, reason=refusal.reason, name=name)
                    kind = t.UNKNOWN
                    refused = True
                self._check_default(param, kind, function)
            elif comment is not None:
                kind = comment[0][len(args)]
            else:
                untyped.add(name)
                default = self._check_untyped_default(param, function)
                if default is not None:
                    kind = default
                    misread.add(name)
            if kind is t.TENSOR and isinstance(param.default, cst.Name) and param.default.value == "None":
                none_defaults.add(name)
            args.append(s.Arg(name, kind, 0, param.default is not None, number >= len(positional)))
        result = t.NOTHING
        if isinstance(node, cst.FunctionDef) and node.returns is not None:
            try:
                result = self.annotations.read(node.returns.annotation, function.module)
                if result.kind == "list":
                    raise Refused(f"`{result}` without the types it holds", node.returns.annotation)
            except Refused as refusal:
                self.report("annotation", node.returns.annotation, function, reason=refusal.reason, name="return")
                result = t.UNKNOWN
                refused = True
        elif comment is not None:
            result = comment[1]
        if any(d in _NOT_COMPILED for d in function.decorator_names):
            result = t.UNKNOWN
        schema = s.Schema(tuple(args), t.UNKNOWN if refused else result)
        return Compiled(function, schema, frozenset(untyped), misread, frozenset(none_defaults), refused=refused)

    def _comment_types(self, function: Function, count: int) -> tuple[list[t.Type], t.Type] | None:
        """The types of `count` parameters and of the result in a `# type: (Tensor) -> Tensor` comment."""
        text = function.type_comment
        if text is None:
            return None
        at = function.node.name if isinstance(function.node, cst.FunctionDef) else function.node
        unread = [t.UNKNOWN] * count, t.UNKNOWN
        given, _, result = text.partition("->")
        try:
            tuple_, returned = parsed_expression(f"({given.strip()[1:-1]},)"), parsed_expression(result.strip())
        except ParseFailure:
            return unread
        if not isinstance(tuple_, cst.Tuple) or any(isinstance(e.value, cst.Ellipsis) for e in tuple_.elements):
            return unread
        try:
            kinds = [self.annotations.read(e.value, function.module) for e in tuple_.elements]
            if len(kinds) != count:
                raise Refused(f"{len(kinds)} types for {count} parameters", at)
            return kinds, self.annotations.read(returned, function.module)
        except Refused as refusal:
            reason = refusal.reason
            self.report("annotation", at, function, reason=reason, name="the type comment")
            return unread

    def _check_default(self, param: cst.Param, wanted: t.Type, function: Function) -> None:
        """The default of an annotated parameter."""
        kind = self._default_type(param.default, function.module) if param.default is not None else None
        name = param.name.value
        if kind is not None and kind.kind in ("List", "Dict"):
            self.report("mutable-default", param, function, name=name, type=kind.kind.lower())
        elif kind is not None and not may_default(kind, wanted):
            self.report("default-type", param, function, name=name, type=str(kind), wanted=str(wanted))

    def _check_untyped_default(self, param: cst.Param, function: Function) -> t.Type | None:
        """The type that the default tells of, where torch refuses it for a parameter without an annotation."""
        default = param.default
        kind = None if default is None else self._default_type(default, function.module)
        if kind is None or kind is t.TENSOR or kind is t.NONE:
            return None
        self.report("default", param, function, name=param.name.value, type=str(kind))
        return kind if kind in CONST_TYPES.values() else t.UNKNOWN

    def _default_type(self, node: cst.BaseExpression, module: Module) -> t.Type | None:
        """The type of a default value where it is plain to see."""
        value = self.builder.eval(node, Frame(None, module))
        if isinstance(value, Const):
            return CONST_TYPES.get(type(value.value))
        if isinstance(value, Seq):
            return t.Type("Tuple" if value.kind == "tuple" else "List")
        if isinstance(value, Map):
            return t.Type("Dict")
        if isinstance(value, (Fn, Lam)):
            return t.Type("function")
        if isinstance(value, Cls):
            return t.Type("class")
        if isinstance(value, Ext) and value.dotted.startswith(("math.", "numpy.")):
            return t.FLOAT if isinstance(getattr(math, value.dotted.rpartition(".")[2], None), float) else None
        if isinstance(value, Ext) and value.dotted.removeprefix("torch.") in self.data.dtypes:
            return t.Type("dtype")
        if isinstance(value, Ext) and value.dotted.startswith(("torch.nn.", "typing.")):
            return t.Type("function" if value.dotted.startswith("torch.nn.functional.") else "class")
        if isinstance(node, cst.Subscript) and self.annotations.dotted(node.value, module)[0].startswith("typing."):
            return t.Type("type")
        return None


def is_static_forward(function: Function) -> bool:
    """Whether it is compiled as a method all the same: its first parameter is the module."""
    return function.is_static and function.name == "forward"


_DEFAULTS = {
    t.INT: {t.INT, t.BOOL},
    t.BOOL: {t.INT, t.BOOL},
    t.FLOAT: {t.FLOAT, t.INT, t.BOOL},
    t.STR: {t.STR},
    t.TENSOR: {t.NONE},
}
"""What Python constants an annotation takes as the default: more than a call does."""


def may_default(kind: t.Type, wanted: t.Type) -> bool:
    """Whether a default of that type passes; containers and types not known here are not judged."""
    if kind not in (t.INT, t.BOOL, t.FLOAT, t.STR, t.NONE):
        return True
    if wanted.kind in ("Optional", "Union"):
        return (kind is t.NONE and t.accepts_none(wanted)) or any(may_default(kind, part) for part in wanted.args)
    if wanted.kind in ("List", "Dict", "Tuple", "list", "tuple") and wanted.extra is None:
        return False
    allowed = _DEFAULTS.get(wanted)
    return allowed is None or kind in allowed
