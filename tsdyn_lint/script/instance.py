"""A class and its constructor arguments -> the instance that `torch.jit.script` would be given.

A small interpreter of `__init__` and what it calls: literals, loops over known ranges, containers of modules, helpers.
What it does not know it says so (`Unk`, `open`, `maybe`), and the checker then claims nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import libcst as cst

from tsdyn_lint.infer.constructions import Construction
from tsdyn_lint.resolve import Class, Function, Program
from tsdyn_lint.script import types as t
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.init_calls import InitCalls
from tsdyn_lint.script.init_expressions import AUTOGRAD
from tsdyn_lint.script.init_frames import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_STEPS,
    Frame,
    Jump,
    Raised,
    Return,
    TooMuch,
)
from tsdyn_lint.script.init_operators import BINARY
from tsdyn_lint.script.pyvalues import (
    Cls,
    Const,
    Ext,
    Inst,
    Lam,
    Map,
    Obj,
    Py,
    Seq,
    Unk,
    join,
    static_type,
)


class Builder(InitCalls):
    """Makes instances. One per program; `made` keeps every instance of a project class, by class."""

    def __init__(self, program: Program, data: ScriptData) -> None:
        super().__init__(program, data)
        self.made: dict[Class, list[Inst]] = {}
        self.closures: list[dict[str, Py]] = []
        """Scopes that functions were defined in: they hold those, which hold them."""
        self.defaults: set[Inst] = set()
        self._cache: dict[Any, Inst] = {}
        self._building: list[Class] = []

    # --- instances

    def entry(self, cls: Class, made: Construction | None = None) -> Inst:
        """The instance that a call makes; without one, that with defaults where the constructor has them, unknown
        values elsewhere.
        """
        self._steps = 0
        self._depth = self._unsure = 0
        if made is not None:
            with suppress(TooMuch, Raised):
                return self.construct(cls, [], dict(self._given(cls, made)), complete=False)
        inst = self.construct(cls, [], {}, complete=False)
        self.defaults.add(inst)
        return inst

    def _given(self, cls: Class, made: Construction) -> Iterator[tuple[str, Py]]:
        """The arguments that the call says by itself, under the names of the constructor's parameters."""
        init = self.method(cls, "__init__")
        parameters = init.node.params.params[1:] if isinstance(init, Function) else ()
        by_place = zip((parameter.name.value for parameter in parameters), made.args, strict=False)
        for name, argument in (*by_place, *made.keywords):
            if argument is not None:
                yield name, self.eval(cls.module.tree.expression(argument), Frame(None, cls.module))

    def construct(self, cls: Class, args: list[Py], kwargs: dict[str, Py], complete: bool = True) -> Inst:
        key = self._key(cls, args, kwargs, complete)
        if key is not None and key in self._cache:
            return self._cache[key]
        inst = Inst(cls)
        for base in self.program.outside_bases(cls):
            if base.startswith("torch.nn.") and base not in ("torch.nn.Module", "torch.nn.modules.module.Module"):
                inst.external = base
            elif base not in (
                "torch.nn.Module",
                "torch.nn.modules.Module",
                "torch.nn.modules.module.Module",
                "abc.ABC",
                "object",
                "torch.nn.modules.Module",
                "typing.Generic",
            ):
                inst.open = not base.startswith(("typing.", "abc.", "builtins."))
        if self._building.count(cls) > 1 or len(self._building) > MAX_DEPTH:
            inst.open = True
            return inst
        if inst.container:
            inst.children = {}
        self._building.append(cls)
        try:
            init = self.method(cls, "__init__")
            if isinstance(init, Function):
                self.call_function(init, args, kwargs, inst, soft=not complete, missing_ok=True)
            elif inst.external:
                self._external_init(inst, args, kwargs)
        except (TooMuch, Raised):
            inst.open = True  # it raises on what is known of its arguments: others get further
        finally:
            self._building.pop()
        if key is not None:
            self._cache[key] = inst
        self.made.setdefault(cls, []).append(inst)
        return inst

    def _key(self, cls: Class, args: list[Py], kwargs: dict[str, Py], complete: bool) -> Any:
        parts: list[Any] = [cls, complete, self._unsure > 0]
        for name, value in [*enumerate(args), *sorted(kwargs.items())]:
            if not isinstance(value, Const) or isinstance(value.value, (list, dict)):
                if isinstance(value, Unk):
                    parts.append((name, "?", value.type))
                    continue
                if isinstance(value, Ext):
                    parts.append((name, value.dotted))
                    continue
                if isinstance(value, Cls):
                    parts.append((name, value.cls))
                    continue
                return None
            parts.append((name, type(value.value), value.value, value.soft))
        return tuple(parts)

    # --- calls

    def call_function(
        self,
        function: Function,
        args: list[Py],
        kwargs: dict[str, Py],
        bound: Py | None = None,
        soft: bool = False,
        missing_ok: bool = False,
    ) -> Py:
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise TooMuch
            node = function.node
            if isinstance(node, cst.Lambda):
                return Unk()
            frame = Frame(function, function.module, bound if isinstance(bound, Inst) else None)
            if bound is not None and not function.is_static:
                args = [bound, *args]
            self._bind(frame, node.params, args, dict(kwargs), soft)
            statements = function.body
            try:
                self.block(statements, frame)
            except Return as done:
                return done.value
            return Const(None)
        finally:
            self._depth -= 1

    def _bind(self, frame: Frame, params: cst.Parameters, args: list[Py], kwargs: dict[str, Py], soft: bool) -> None:
        positional = [*params.posonly_params, *params.params]
        rest = list(args)
        for param in [*positional, *params.kwonly_params]:
            name = param.name.value
            if rest and param in positional:
                frame.locals[name] = rest.pop(0)
            elif name in kwargs:
                frame.locals[name] = kwargs.pop(name)
            elif param.default is not None:
                value = self.eval(param.default, frame)
                if soft and isinstance(value, Const):
                    value = Const(value.value, True)
                frame.locals[name] = value
            else:
                frame.locals[name] = Unk(self._annotated(param, frame))
        if isinstance(params.star_arg, cst.Param):
            known = not soft and not any(isinstance(a, Unk) for a in rest)
            frame.locals[params.star_arg.name.value] = Seq("tuple", rest if known or rest else None)
        if params.star_kwarg is not None:
            frame.locals[params.star_kwarg.name.value] = Map(dict(kwargs) if not soft else None)

    def _annotated(self, param: cst.Param, frame: Frame) -> t.Type:
        if param.annotation is not None:
            node = param.annotation.annotation
            if isinstance(node, cst.Name):
                return {"int": t.INT, "float": t.FLOAT, "bool": t.BOOL, "str": t.STR}.get(node.value, t.UNKNOWN)
        return t.UNKNOWN

    # --- statements

    def block(self, statements: Sequence[cst.CSTNode], frame: Frame) -> None:
        for statement in statements:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise TooMuch
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement, frame)

    def _line(self, node: cst.SimpleStatementLine, frame: Frame) -> None:
        self.block(node.body, frame)

    def _expr(self, node: cst.Expr, frame: Frame) -> None:
        if isinstance(node.value, cst.Call):
            self.eval(node.value, frame)

    def _assign(self, node: cst.Assign, frame: Frame) -> None:
        value = self.eval(node.value, frame)
        for target in node.targets:
            self.store(target.target, value, frame)

    def _ann_assign(self, node: cst.AnnAssign, frame: Frame) -> None:
        if node.value is None:
            return
        target = node.target
        value = self.eval(node.value, frame)
        if isinstance(value, Unk) and value.type is t.UNKNOWN and isinstance(node.annotation.annotation, cst.Name):
            value = Unk(
                {"int": t.INT, "float": t.FLOAT, "bool": t.BOOL, "str": t.STR}.get(
                    node.annotation.annotation.value, t.UNKNOWN
                )
            )
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            owner = frame.locals.get(target.value.value)
            if isinstance(owner, Inst):
                owner.annotated[target.attr.value] = node.annotation.annotation
        self.store(target, value, frame)

    def _aug_assign(self, node: cst.AugAssign, frame: Frame) -> None:
        old = self.eval(node.target, frame)
        right = self.eval(node.value, frame)
        if isinstance(old, Seq) and isinstance(right, Seq) and isinstance(node.operator, cst.AddAssign):
            if old.items is None or right.items is None or self._unsure:
                old.items = None
                old.elem = Unk()
            else:
                self.store(node.target, Seq(old.kind, old.items + right.items), frame)
            return
        result: Py = Unk(static_type(old) if static_type(old) is static_type(right) else t.UNKNOWN)
        if isinstance(old, Const) and isinstance(right, Const):
            name = type(node.operator).__name__.replace("Assign", "")
            fold = BINARY.get(getattr(cst, name, type(None)))
            if fold is not None:
                result = self._fold(fold, old, right)
        self.store(node.target, result, frame)

    def store(self, target: cst.CSTNode, value: Py, frame: Frame) -> None:
        if isinstance(target, cst.Name):
            frame.locals[target.value] = value
        elif isinstance(target, cst.Attribute):
            self.set_attribute(self.eval(target.value, frame), target.attr.value, value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            items = value.items if isinstance(value, Seq) else None
            if items is not None and len(items) == len(target.elements):
                for element, item in zip(target.elements, items, strict=False):
                    self.store(element.value, item, frame)
            else:
                for element in target.elements:
                    self.store(element.value, Unk(), frame)
        elif isinstance(target, cst.Subscript):
            owner = self.eval(target.value, frame)
            index = self._index(target, frame)
            if isinstance(owner, Map):
                if owner.items is not None and isinstance(index, Const) and not self._unsure:
                    owner.items[index.value] = value
                else:
                    owner.items = None
            elif isinstance(owner, Seq):
                if (
                    owner.items is not None
                    and isinstance(index, Const)
                    and type(index.value) is int
                    and -len(owner.items) <= index.value < len(owner.items)
                ):
                    owner.items[index.value] = value if not self._unsure else Unk()
                else:
                    owner.items = None
                    owner.elem = Unk()
            elif isinstance(owner, Inst) and owner.children is not None:
                if isinstance(index, Const) and not self._unsure:
                    owner.children[str(index.value)] = value
                else:
                    owner.children = None

    def _return(self, node: cst.Return, frame: Frame) -> None:
        raise Return(self.eval(node.value, frame) if node.value is not None else Const(None))

    def _jump(self, node: cst.CSTNode, frame: Frame) -> None:
        raise Jump(isinstance(node, cst.Continue))

    def _raise(self, node: cst.Raise, frame: Frame) -> None:
        raise Raised

    def _if(self, node: cst.If, frame: Frame) -> None:
        test = self.truth(self.eval(node.test, frame))
        orelse = node.orelse
        other: Sequence[cst.CSTNode] = (
            () if orelse is None else orelse.body.body if isinstance(orelse, cst.Else) else (orelse,)
        )
        if test is not None:
            self.block(node.body.body if test else other, frame)
            return
        self._both(node.body.body, other, frame)

    def _both(self, first: Sequence[cst.CSTNode], second: Sequence[cst.CSTNode], frame: Frame) -> None:
        """Runs two paths of which one is taken, and joins what they leave."""
        inst = frame.self_value
        before_locals = dict(frame.locals)
        before_attrs = dict(inst.attrs) if inst else {}
        before_maybe = set(inst.maybe) if inst else set()
        ends: list[tuple[dict[str, Py], dict[str, Py], set[str]]] = []
        returned: list[Py] = []
        self._unsure += 1
        try:
            for path in (first, second):
                frame.locals = dict(before_locals)
                if inst:
                    inst.attrs, inst.maybe = dict(before_attrs), set(before_maybe)
                try:
                    self.block(path, frame)
                    ends.append((frame.locals, inst.attrs if inst else {}, inst.maybe if inst else set()))
                except Return as done:
                    returned.append(done.value)
                    if inst and isinstance(done.value, Const):
                        ends.append((frame.locals, inst.attrs, inst.maybe))
                except Jump:  # where it jumps to is not followed: what it leaves is joined here
                    ends.append((frame.locals, inst.attrs if inst else {}, inst.maybe if inst else set()))
                except Raised:
                    pass
        finally:
            self._unsure -= 1
        if not ends:
            if returned:
                value = returned[0]
                for other in returned[1:]:
                    value = join(value, other)
                raise Return(value)
            raise Raised
        if returned and not (inst and isinstance(returned[0], Const)):
            # one path returned a value: what the rest returns is joined by claiming nothing
            frame.locals, attrs = ends[0][0], ends[0][1]
            if inst:
                inst.attrs, inst.maybe = attrs, ends[0][2]
            return
        if len(ends) == 1:
            frame.locals = ends[0][0]
            if inst:
                inst.attrs, inst.maybe = ends[0][1], ends[0][2]
            return
        (la, aa, ma), (lb, ab, mb) = ends
        frame.locals = {k: join(la[k], lb[k]) if k in la and k in lb else Unk() for k in {**la, **lb}}
        if inst:
            inst.maybe = ma | mb | (aa.keys() ^ ab.keys())
            inst.rivals.append((aa.keys() - ab.keys(), ab.keys() - aa.keys()))
            inst.attrs = {k: join(aa[k], ab[k]) if k in aa and k in ab else (aa.get(k) or ab[k]) for k in {**aa, **ab}}
            inst.signature = None

    def _for(self, node: cst.For, frame: Frame) -> None:
        items = self.iterate(self.eval(node.iter, frame))
        if items is None or len(items) > MAX_ITEMS:
            self.store(node.target, Unk(t.INT if self._is_range(node.iter) else t.UNKNOWN), frame)
            self._both(node.body.body, (), frame)
            return
        for item in items:
            self.store(node.target, item, frame)
            try:
                self.block(node.body.body, frame)
            except Jump as jump:
                if not jump.again:
                    break

    def _while(self, node: cst.While, frame: Frame) -> None:
        self._both(node.body.body, (), frame)

    def _with(self, node: cst.With, frame: Frame) -> None:
        self.block(node.body.body, frame)

    def _try(self, node: cst.Try, frame: Frame) -> None:
        self.block(node.body.body, frame)

    def _def(self, node: cst.FunctionDef, frame: Frame) -> None:
        frame.locals[node.name.value] = Lam(node, frame.locals)
        self.closures.append(frame.locals)

    def _class(self, node: cst.ClassDef, frame: Frame) -> None:
        bases = [frame.module.dotted(base.value) for base in node.bases]
        made: Py = Obj("torch.autograd.Function") if any(base in AUTOGRAD for base in bases) else Unk()
        frame.locals[node.name.value] = made


_STATEMENTS: dict[type, Callable[[Builder, Any, Frame], None]] = {
    cst.SimpleStatementLine: Builder._line,
    cst.Expr: Builder._expr,
    cst.Assign: Builder._assign,
    cst.AnnAssign: Builder._ann_assign,
    cst.AugAssign: Builder._aug_assign,
    cst.Return: Builder._return,
    cst.If: Builder._if,
    cst.For: Builder._for,
    cst.While: Builder._while,
    cst.With: Builder._with,
    cst.Try: Builder._try,
    cst.FunctionDef: Builder._def,
    cst.ClassDef: Builder._class,
    cst.Break: Builder._jump,
    cst.Continue: Builder._jump,
    cst.Raise: Builder._raise,
}
