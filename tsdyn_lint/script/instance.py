"""A class and its constructor arguments -> the instance that `torch.jit.script` would be given.

A small interpreter of `__init__` and what it calls: literals, loops over known ranges, containers of modules, helpers.
What it does not know it says so (`Unk`, `open`, `maybe`), and the checker then claims nothing.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.resolve import Assigned, Class, Function, Imported, Module, Program
from tsdyn_lint.script import types as t
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.pyvalues import (
    CONTAINERS,
    NUMPY_NUMBER,
    Cls,
    Const,
    Ext,
    Fn,
    Hook,
    Inst,
    Lam,
    Map,
    Mod,
    Obj,
    Py,
    Seq,
    Ten,
    Unk,
    join,
    literal,
    static_type,
)

MAX_DEPTH = 14
MAX_STEPS = 30_000
MAX_ITEMS = 64
_HOOKING = {"weight_norm": "WeightNorm", "spectral_norm": "SpectralNorm", "remove_weight_norm": ""}
_ARRAYS = frozenset(
    {
        "array",
        "asarray",
        "zeros",
        "ones",
        "arange",
        "linspace",
        "eye",
        "stack",
        "concatenate",
        "full",
        "empty",
        "hanning",
        "tile",
    }
)
_NUMPY_INTS = frozenset({"int8", "int16", "int32", "int64", "uint8", "intp", "bool_"})
_NUMPY_SUMS = frozenset({"prod", "sum", "max", "min", "amax", "amin"})
_NUMPY_FLOATS = frozenset({"sqrt", "floor", "ceil", "log", "log2", "log10", "exp", "sin", "cos", "power", "round"})
_PASS = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "float",
        "half",
        "double",
        "eval",
        "train",
        "requires_grad_",
        "apply",
        "type",
        "contiguous",
        "bfloat16",
        "clone",
        "detach",
    }
)

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.GreaterThan: operator.gt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThanEqual: operator.ge,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
}


class _Return(Exception):
    def __init__(self, value: Py) -> None:
        self.value = value


class _Jump(Exception):
    """`break` or `continue`."""

    def __init__(self, again: bool) -> None:
        self.again = again


class _Raised(Exception):
    """The path ends in `raise`."""


class TooMuch(Exception):
    """The constructor does more than the analysis is ready to follow."""


class Frame:
    """One call: its locals, the function (for names and `super`), and the instance under construction."""

    __slots__ = ("locals", "function", "module", "self_value")

    def __init__(self, function: Function | None, module: Module, self_value: Inst | None = None) -> None:
        self.locals: dict[str, Py] = {}
        self.function, self.module, self.self_value = function, module, self_value


class Builder:
    """Makes instances. One per program; `made` keeps every instance of a project class, by class."""

    def __init__(self, program: Program, data: ScriptData) -> None:
        self.program, self.data, self.returns_tensor = program, data, data.returns_tensor
        self.made: dict[Class, list[Inst]] = {}
        self.defaults: set[Inst] = set()
        self._cache: dict[Any, Inst] = {}
        self._building: list[Class] = []
        self._globals: dict[tuple[str, str], Py] = {}
        self._depth = 0
        self._steps = 0
        self._unsure = 0
        self._at: Hook | None = None

    # --- instances

    def entry(self, cls: Class) -> Inst:
        """The instance with defaults where the constructor has them, unknown values elsewhere."""
        self._steps = 0
        self._depth = self._unsure = 0
        inst = self.construct(cls, [], {}, complete=False)
        self.defaults.add(inst)
        return inst

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
        except (TooMuch, _Raised):
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

    def method(self, cls: Class, name: str, after: Class | None = None) -> Function | str | None:
        """A method by the class hierarchy; a dotted name where an outside base has the next say."""
        line = self.program.mro(cls)
        if after is not None:
            line = line[line.index(after) + 1 :] if after in line else ()
        for owner in line:
            if isinstance(owner, str):
                if owner not in ("object", "abc.ABC", "torch.nn.Module") and not owner.startswith("typing."):
                    return f"{owner}.{name}"
                continue
            if name in owner.methods:
                return owner.methods[name]
        return None

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
            statements, _ = function.body
            try:
                self.block(statements, frame)
            except _Return as done:
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
            fold = _BINARY.get(getattr(cst, name, type(None)))
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

    def set_attribute(self, owner: Py, name: str, value: Py) -> None:
        if isinstance(owner, Inst):
            owner.attrs[name] = value
            owner.maybe.discard(name)
            owner.signature = None
        elif isinstance(owner, Obj):
            owner.attrs[name] = value

    def _return(self, node: cst.Return, frame: Frame) -> None:
        raise _Return(self.eval(node.value, frame) if node.value is not None else Const(None))

    def _jump(self, node: cst.CSTNode, frame: Frame) -> None:
        raise _Jump(isinstance(node, cst.Continue))

    def _raise(self, node: cst.Raise, frame: Frame) -> None:
        raise _Raised

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
                except _Return as done:
                    returned.append(done.value)
                    if inst and isinstance(done.value, Const):
                        ends.append((frame.locals, inst.attrs, inst.maybe))
                except _Jump:  # where it jumps to is not followed: what it leaves is joined here
                    ends.append((frame.locals, inst.attrs if inst else {}, inst.maybe if inst else set()))
                except _Raised:
                    pass
        finally:
            self._unsure -= 1
        if not ends:
            if returned:
                value = returned[0]
                for other in returned[1:]:
                    value = join(value, other)
                raise _Return(value)
            raise _Raised
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
            except _Jump as jump:
                if not jump.again:
                    break

    def _is_range(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range"

    def _while(self, node: cst.While, frame: Frame) -> None:
        self._both(node.body.body, (), frame)

    def _with(self, node: cst.With, frame: Frame) -> None:
        self.block(node.body.body, frame)

    def _try(self, node: cst.Try, frame: Frame) -> None:
        self.block(node.body.body, frame)

    def _def(self, node: cst.FunctionDef, frame: Frame) -> None:
        frame.locals[node.name.value] = Lam(node, frame.locals)

    def _class(self, node: cst.ClassDef, frame: Frame) -> None:
        frame.locals[node.name.value] = Unk()

    # --- expressions

    def eval(self, node: cst.CSTNode, frame: Frame) -> Py:
        handler = _EXPRESSIONS.get(type(node))
        return handler(self, node, frame) if handler is not None else Unk()

    def _name(self, node: cst.Name, frame: Frame) -> Py:
        name = node.value
        if name in frame.locals:
            return frame.locals[name]
        if name in _CONSTANTS:
            return Const(_CONSTANTS[name])
        return self.global_value(frame.module, name)

    def global_value(self, module: Module, name: str) -> Py:
        key = (module.name, name)
        if key not in self._globals:
            self._globals[key] = Unk()  # while it is being worked out
            self._globals[key] = self._definition(self.program.lookup(module, name), module, name)
        return self._globals[key]

    def _definition(self, found: Any, module: Module, name: str) -> Py:
        if isinstance(found, str):
            return Ext(found)
        if isinstance(found, Class):
            return Cls(found)
        if isinstance(found, Function):
            return Fn(found)
        if isinstance(found, Module):
            return Mod(found)
        if isinstance(found, Assigned):
            if len(found.values) == 1:
                # a module-level constant; evaluated where it is written
                value = self.eval(found.values[0], Frame(None, module))
                made = found.values[0]
                if isinstance(value, Unk) and isinstance(made, cst.Call):
                    outside = module.dotted(made.func) or ""
                    if (
                        outside.partition(".")[0] in sys.stdlib_module_names
                        and "." in outside
                        and not outside.startswith(("collections.", "typing.", "math.", "enum."))
                    ):
                        return Obj(outside.rpartition(".")[2])
                return value
            return Unk()
        return Ext(f"builtins.{name}") if found is None else Unk()

    def _attribute(self, node: cst.Attribute, frame: Frame) -> Py:
        return self.attribute(self.eval(node.value, frame), node.attr.value)

    def attribute(self, owner: Py, name: str) -> Py:
        if isinstance(owner, Inst):
            if name in owner.maybe:
                return Unk()
            if name in owner.attrs:
                return owner.attrs[name]
            if name == "training":
                return Const(True, True)
            if owner.cls is not None:
                found = self.program.class_member(owner.cls, name)
                if isinstance(found, Function):
                    if found.is_property:
                        return self.call_function(found, [], {}, owner)
                    return Fn(found, owner)
                if isinstance(found, Assigned) and len(found.values) == 1:
                    return self.eval(found.values[0], Frame(None, owner.cls.module))
            if owner.cls is None and not owner.container:
                value = owner.args.get(name)
                if isinstance(value, Const):
                    return value
                if name in ("weight", "bias"):
                    return Ten("parameter")
            return Unk()
        if isinstance(owner, Ext):
            return Ext(f"{owner.dotted}.{name}")
        if isinstance(owner, Mod):
            return self.global_value(owner.module, name)
        if isinstance(owner, Obj):
            return owner.attrs.get(name, Unk())
        if isinstance(owner, Cls):
            found = self.program.class_member(owner.cls, name)
            if isinstance(found, Function):
                return Fn(found)
            if isinstance(found, Assigned) and len(found.values) == 1:
                return self.eval(found.values[0], Frame(None, owner.cls.module))
        if isinstance(owner, Ten) and name in ("data", "grad", "T"):
            return Ten()
        return Unk()

    def _literal(self, node: Any, frame: Frame) -> Py:
        try:
            return Const(literal(node.value))
        except Exception:
            return Unk()

    def _concat(self, node: cst.ConcatenatedString, frame: Frame) -> Py:
        value = node.evaluated_value
        return Const(value) if isinstance(value, str) else Unk(t.STR)

    def _fstring(self, node: cst.FormattedString, frame: Frame) -> Py:
        text = ""
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                text += part.value
            elif isinstance(part, cst.FormattedStringExpression):
                value = self.eval(part.expression, frame)
                if not isinstance(value, Const) or part.format_spec is not None:
                    return Unk(t.STR)
                text += str(value.value)
        return Const(text)

    def _unary(self, node: cst.UnaryOperation, frame: Frame) -> Py:
        value = self.eval(node.expression, frame)
        if isinstance(node.operator, cst.Not):
            truth = self.truth(value)
            return Unk(t.BOOL) if truth is None else Const(not truth, getattr(value, "soft", False))
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return Const(-value.value, value.soft)
            return value
        return Ten() if isinstance(value, Ten) else Unk(static_type(value))

    def _binary(self, node: cst.BinaryOperation, frame: Frame) -> Py:
        left, right = self.eval(node.left, frame), self.eval(node.right, frame)
        if isinstance(left, Const) and isinstance(right, Const):
            fold = _BINARY.get(type(node.operator))
            if fold is None and isinstance(node.operator, cst.Power):
                small = isinstance(right.value, (int, float)) and abs(right.value) < 64
                fold = operator.pow if small else None
            return self._fold(fold, left, right)
        if isinstance(node.operator, cst.Modulo) and isinstance(left, Const) and isinstance(left.value, str):
            if isinstance(right, Seq) and right.items is not None and all(isinstance(i, Const) for i in right.items):
                return self._fold(
                    operator.mod, left, Const(tuple(i.value for i in right.items if isinstance(i, Const)))
                )
            return Unk(t.STR)
        if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(node.operator, cst.Add):
            if left.items is not None and right.items is not None:
                return Seq(left.kind, left.items + right.items)
            return Seq(left.kind, None, Unk())
        if isinstance(left, Seq) and isinstance(node.operator, cst.Multiply):
            if (
                left.items is not None
                and isinstance(right, Const)
                and isinstance(right.value, int)
                and len(left.items) * right.value <= MAX_ITEMS
            ):
                return Seq(left.kind, left.items * right.value)
            return Seq(left.kind, None, left.items[0] if left.items else Unk())
        if isinstance(left, Ten) or isinstance(right, Ten):
            return Ten()
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Obj) and one.name.startswith("numpy.int") and static_type(other) is t.INT:
                return Unk(t.FLOAT) if isinstance(node.operator, cst.Divide) else one
        a, b = static_type(left), static_type(right)
        if a in (t.INT, t.FLOAT) and b in (t.INT, t.FLOAT):
            if isinstance(node.operator, cst.Divide):
                return Unk(t.FLOAT)
            if isinstance(node.operator, cst.Power):
                return Unk(t.UNKNOWN if a is b is t.INT else t.FLOAT)
            return Unk(t.FLOAT if t.FLOAT in (a, b) else t.INT)
        if isinstance(node.operator, cst.FloorDivide) and b is t.INT:
            return Unk(t.UNKNOWN)
        return Unk()

    def _fold(self, fold: Callable[[Any, Any], Any] | None, left: Const, right: Const) -> Py:
        if fold is None:
            return Unk()
        try:
            value = fold(left.value, right.value)
        except Exception:
            return Unk()
        if isinstance(value, (str, tuple)) and len(value) > 10_000:
            return Unk()
        return Const(value, left.soft or right.soft)

    def _compare(self, node: cst.Comparison, frame: Frame) -> Py:
        left = self.eval(node.left, frame)
        outcome: bool | None = True
        soft = False
        for target in node.comparisons:
            right = self.eval(target.comparator, frame)
            one = self._compare_one(left, target.operator, right)
            soft = soft or getattr(left, "soft", False) or getattr(right, "soft", False)
            if one is False:
                return Const(False, soft)
            if one is None:
                outcome = None
            left = right
        return Unk(t.BOOL) if outcome is None else Const(True, soft)

    def _compare_one(self, left: Py, op: cst.BaseCompOp, right: Py) -> bool | None:
        if isinstance(op, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
            none_left = isinstance(left, Const) and left.value is None
            none_right = isinstance(right, Const) and right.value is None
            if none_left or none_right:
                other = right if none_left else left
                if isinstance(other, Unk) and other.type is t.UNKNOWN:
                    return None
                equal = none_left and none_right
                return equal == isinstance(op, (cst.Is, cst.Equal))
        if isinstance(left, Const) and isinstance(right, Const):
            if isinstance(op, (cst.Is, cst.IsNot)) and not isinstance(left.value, bool):
                op = cst.Equal() if isinstance(op, cst.Is) else cst.NotEqual()
            fold = _COMPARE.get(type(op))
            if fold is not None:
                try:
                    return bool(fold(left.value, right.value))
                except Exception:
                    return None
            if isinstance(right.value, str) and isinstance(left.value, str):
                return (left.value in right.value) == isinstance(op, cst.In)
        if isinstance(op, (cst.In, cst.NotIn)) and isinstance(left, Const):
            keys: list[Any] | None = None
            if isinstance(right, Seq) and right.items is not None and all(isinstance(i, Const) for i in right.items):
                keys = [i.value for i in right.items if isinstance(i, Const)]
            elif isinstance(right, Map) and right.items is not None:
                keys = list(right.items)
            if keys is not None:
                return bool(left.value in keys) == isinstance(op, cst.In)
        if isinstance(op, (cst.Is, cst.Equal, cst.IsNot, cst.NotEqual)):
            a, b = _identity(left), _identity(right)
            if a is not None and b is not None:
                return bool(a == b) == isinstance(op, (cst.Is, cst.Equal))
        return None

    def _boolean(self, node: cst.BooleanOperation, frame: Frame) -> Py:
        left = self.eval(node.left, frame)
        truth = self.truth(left)
        is_and = isinstance(node.operator, cst.And)
        if truth is not None:
            return self.eval(node.right, frame) if truth == is_and else left
        right = self.eval(node.right, frame)
        if self.truth(right) is (not is_and) and static_type(left) is t.BOOL:
            return right
        return join(left, right)

    def _ifexp(self, node: cst.IfExp, frame: Frame) -> Py:
        truth = self.truth(self.eval(node.test, frame))
        if truth is not None:
            return self.eval(node.body if truth else node.orelse, frame)
        self._unsure += 1
        try:
            return join(self.eval(node.body, frame), self.eval(node.orelse, frame))
        finally:
            self._unsure -= 1

    def truth(self, value: Py) -> bool | None:
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, (Seq, Map)):
            return None if value.items is None else bool(value.items)
        if isinstance(value, (Fn, Lam, Ext, Cls, Obj)):
            return None if isinstance(value, Ext) else True
        if isinstance(value, Inst):
            return (
                True
                if not value.container
                else None
                if value.children is None
                else bool(value.children) or value.container == "Sequential"
            )
        return None

    def _sequence(self, node: Any, frame: Frame) -> Py:
        kind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        items: list[Py] | None = []
        for element in node.elements:
            value = self.eval(element.value, frame)
            if isinstance(element, cst.StarredElement):
                inner = self.iterate(value)
                items = None if inner is None or items is None else items + inner
            elif items is not None:
                items.append(value)
        return Seq(kind, items, Unk() if items is None else None)

    def _dict(self, node: cst.Dict, frame: Frame) -> Py:
        items: dict[Any, Py] | None = {}
        for element in node.elements:
            value = self.eval(element.value, frame)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key, frame)
                if isinstance(key, Const) and items is not None and _hashable(key.value):
                    items[key.value] = value
                else:
                    items = None
            else:
                items = (
                    {**items, **value.items}
                    if items is not None and isinstance(value, Map) and value.items is not None
                    else None
                )
        return Map(items)

    def _comprehension(self, node: Any, frame: Frame) -> Py:
        outer = dict(frame.locals)
        try:
            values = self._generate(node.elt, node.for_in, frame)
        finally:
            frame.locals = outer
        kind = "set" if isinstance(node, cst.SetComp) else "list"
        return Seq(kind, values, None if values is not None else Unk())

    def _generate(self, element: cst.CSTNode, loop: cst.CompFor, frame: Frame) -> list[Py] | None:
        items = self.iterate(self.eval(loop.iter, frame))
        if items is None or len(items) > MAX_ITEMS:
            self.store(loop.target, Unk(t.INT if self._is_range(loop.iter) else t.UNKNOWN), frame)
            self._unsure += 1
            try:
                self.eval(element, frame)
            finally:
                self._unsure -= 1
            return None
        found: list[Py] = []
        for item in items:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise TooMuch
            self.store(loop.target, item, frame)
            keep: bool | None = True
            for condition in loop.ifs:
                truth = self.truth(self.eval(condition.test, frame))
                if truth is None:
                    return None
                keep = keep and truth
            if not keep:
                continue
            if loop.inner_for_in is not None:
                inner = self._generate(element, loop.inner_for_in, frame)
                if inner is None:
                    return None
                found += inner
            else:
                found.append(self.eval(element, frame))
        return found

    def _dict_comp(self, node: cst.DictComp, frame: Frame) -> Py:
        items = self.iterate(self.eval(node.for_in.iter, frame))
        if items is None or len(items) > MAX_ITEMS or node.for_in.ifs or node.for_in.inner_for_in:
            return Map(None)
        outer = dict(frame.locals)
        found: dict[Any, Py] | None = {}
        for item in items:
            self.store(node.for_in.target, item, frame)
            key, value = self.eval(node.key, frame), self.eval(node.value, frame)
            if isinstance(key, Const) and found is not None and _hashable(key.value):
                found[key.value] = value
            else:
                found = None
        frame.locals = outer
        return Map(found)

    def _index(self, node: cst.Subscript, frame: Frame) -> Py:
        if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            return self.eval(node.slice[0].slice.value, frame)
        return Unk()

    def _subscript(self, node: cst.Subscript, frame: Frame) -> Py:
        owner = self.eval(node.value, frame)
        if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Slice):
            return self._slice(owner, node.slice[0].slice, frame)
        index = self._index(node, frame)
        if isinstance(owner, Seq):
            if owner.items is not None and isinstance(index, Const) and type(index.value) is int:
                return owner.items[index.value] if -len(owner.items) <= index.value < len(owner.items) else Unk()
            if owner.items and all(static_type(i) is static_type(owner.items[0]) for i in owner.items):
                return Unk(static_type(owner.items[0]))
            return Unk()
        if isinstance(owner, Map) and owner.items is not None and isinstance(index, Const) and _hashable(index.value):
            return owner.items.get(index.value, Unk())
        if isinstance(owner, Inst) and owner.children is not None and isinstance(index, Const):
            values = list(owner.children.values())
            if type(index.value) is int and -len(values) <= index.value < len(values):
                return values[index.value]
            return owner.children.get(str(index.value), Unk())
        if isinstance(owner, Const) and isinstance(owner.value, (str, tuple)) and isinstance(index, Const):
            return self._fold(operator.getitem, owner, index)
        return Ten() if isinstance(owner, Ten) else Unk()

    def _slice(self, owner: Py, node: cst.Slice, frame: Frame) -> Py:
        bounds: list[Any] = []
        for part in (node.lower, node.upper, node.step):
            value = self.eval(part, frame) if part is not None else Const(None)
            if not isinstance(value, Const):
                return (
                    Seq(owner.kind, None, Unk())
                    if isinstance(owner, Seq)
                    else Ten()
                    if isinstance(owner, Ten)
                    else Unk()
                )
            bounds.append(value.value)
        try:
            if isinstance(owner, Seq) and owner.items is not None:
                return Seq(owner.kind, owner.items[slice(*bounds)])
            if isinstance(owner, Const) and isinstance(owner.value, str):
                return Const(owner.value[slice(*bounds)], owner.soft)
            if isinstance(owner, Inst) and owner.children is not None and owner.cls is None:
                part_children = dict(enumerate(list(owner.children.values())[slice(*bounds)]))
                return Inst(None, owner.external, children={str(k): v for k, v in part_children.items()})
        except Exception:
            return Unk()
        return Ten() if isinstance(owner, Ten) else Unk()

    def iterate(self, value: Py) -> list[Py] | None:
        """The items of an iterable, or None where they are not known."""
        if isinstance(value, Seq):
            return list(value.items) if value.items is not None else None
        if isinstance(value, Map):
            return [Const(k) for k in value.items] if value.items is not None else None
        if isinstance(value, Const) and isinstance(value.value, str):
            return [Const(c) for c in value.value[:MAX_ITEMS]]
        if isinstance(value, Inst) and value.children is not None:
            return (
                [Const(k) for k in value.children] if value.container == "ModuleDict" else list(value.children.values())
            )
        return None

    # --- call expressions

    def _call(self, node: cst.Call, frame: Frame) -> Py:
        func = node.func
        if isinstance(func, cst.Attribute) and self._is_super(func.value):
            return self._super_call(node, func, frame)
        callee: Py
        owner: Py | None = None
        if isinstance(func, cst.Attribute):
            owner = self.eval(func.value, frame)
            done = self._method_call(node, owner, func.attr.value, frame)
            if done is not None:
                return done
            callee = self.attribute(owner, func.attr.value)
        else:
            callee = self.eval(func, frame)
        args, kwargs, complete = self._arguments(node, frame)
        self._at = Hook(callee, node, frame.function) if frame.function is not None else None
        return self.call(callee, args, kwargs, complete, frame)

    def _arguments(self, node: cst.Call, frame: Frame) -> tuple[list[Py], dict[str, Py], bool]:
        args: list[Py] = []
        kwargs: dict[str, Py] = {}
        complete = True
        for arg in node.args:
            value = self.eval(arg.value, frame)
            if arg.star == "*":
                items = self.iterate(value)
                if items is None:
                    complete = False
                else:
                    args += items
            elif arg.star == "**":
                if isinstance(value, Map) and value.items is not None:
                    kwargs.update({str(k): v for k, v in value.items.items()})
                else:
                    complete = False
            elif arg.keyword is not None:
                kwargs[arg.keyword.value] = value
            else:
                args.append(value)
        return args, kwargs, complete

    def call(self, callee: Py, args: list[Py], kwargs: dict[str, Py], complete: bool, frame: Frame) -> Py:
        if isinstance(callee, Cls):
            if self.program.is_nn_module(callee.cls):
                if not complete:
                    inst = self.construct(callee.cls, [*args, *()], kwargs, complete=False)
                    return inst
                return self.construct(callee.cls, args, kwargs)
            return self._plain_object(callee.cls, args, kwargs)
        if isinstance(callee, Fn):
            function = callee.function
            if function.decorator_names - {"staticmethod", "classmethod", "torch.no_grad", "functools.wraps"}:
                return Unk()
            bound: Py | None = callee.owner
            if function.is_class_method and function.cls is not None:
                bound = Cls(function.cls)
            try:
                return self.call_function(function, args, kwargs, bound, soft=not complete)
            except _Raised:
                return Unk()
        if isinstance(callee, Ext):
            return self._external_call(callee.dotted, args, kwargs, complete)
        if isinstance(callee, Inst):
            return Unk()
        return Unk()

    def _plain_object(self, cls: Class, args: list[Py], kwargs: dict[str, Py]) -> Py:
        outside = self.program.outside_bases(cls)
        if any(b.startswith(("typing.NamedTuple", "enum.", "torch.autograd")) for b in outside):
            return Unk()
        return Obj(cls.name, cls)

    def _is_super(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"

    def _super_call(self, node: cst.Call, func: cst.Attribute, frame: Frame) -> Py:
        inst = frame.self_value
        function = frame.function
        args, kwargs, complete = self._arguments(node, frame)
        if inst is None or inst.cls is None or function is None or function.cls is None:
            return Unk()
        after = function.cls
        assert isinstance(func.value, cst.Call)
        if func.value.args and isinstance(func.value.args[0].value, cst.Name):
            named = self.global_value(frame.module, func.value.args[0].value.value)
            if isinstance(named, Cls):
                after = named.cls
        return self._inherited(inst, func.attr.value, after, args, kwargs, complete)

    def _inherited(
        self, inst: Inst, name: str, after: Class, args: list[Py], kwargs: dict[str, Py], complete: bool
    ) -> Py:
        assert inst.cls is not None
        found = self.method(inst.cls, name, after)
        if isinstance(found, Function):
            return self.call_function(found, args, kwargs, inst, soft=not complete)
        if isinstance(found, str) and name == "__init__":
            self._external_init(inst, args, kwargs)
        elif name in ("add_module", "register_buffer", "register_parameter", "__setattr__"):
            return self._register(inst, name, args, kwargs)
        return Unk()

    def _external_init(self, inst: Inst, args: list[Py], kwargs: dict[str, Py]) -> None:
        """`torch.nn.X.__init__` on a subclass."""
        made = self._torch_module(inst.external, args, kwargs)
        inst.children = made.children if made.container else inst.children
        inst.args = made.args

    def _register(self, inst: Inst, name: str, args: list[Py], kwargs: dict[str, Py]) -> Py:
        key = args[0] if args else kwargs.get("name", Unk())
        value: Py = args[1] if len(args) > 1 else kwargs.get("module", kwargs.get("tensor", kwargs.get("param", Unk())))
        if not isinstance(key, Const) or not isinstance(key.value, str):
            if inst.children is not None and name == "add_module":
                inst.children = None
            inst.open = True
            return Const(None)
        if name == "register_buffer" and not isinstance(value, Const):
            value = Ten("buffer")
        if name == "register_parameter" and not isinstance(value, Const):
            value = Ten("parameter")
        if inst.children is not None and name == "add_module":
            inst.children[key.value] = value
        self.set_attribute(inst, key.value, value)
        return Const(None)

    def _method_call(self, node: cst.Call, owner: Py, name: str, frame: Frame) -> Py | None:
        """Methods of values that the builder models itself; None for everything else."""
        if isinstance(owner, Inst):
            if name in ("add_module", "register_buffer", "register_parameter", "register_module"):
                args, kwargs, _ = self._arguments(node, frame)
                return self._register(owner, "add_module" if name == "register_module" else name, args, kwargs)
            if name in _PASS and (owner.cls is None or self.program.class_member(owner.cls, name) is None):
                return owner
            if owner.children is not None and name in ("append", "extend", "insert", "update"):
                args, _, _ = self._arguments(node, frame)
                self._grow(owner, name, args)
                return Const(None)
            if owner.children is not None and name in ("values", "keys", "items", "children", "modules"):
                return self._container_view(owner, name)
            if name in ("register_forward_hook", "register_forward_pre_hook"):
                args, _, _ = self._arguments(node, frame)
                if args and frame.function is not None:
                    owner.hooks.append(Hook(args[0], node, frame.function))
                return Obj("RemovableHandle")
            return None
        if isinstance(owner, Seq):
            return self._list_method(node, owner, name, frame)
        if isinstance(owner, Map):
            return self._dict_method(node, owner, name, frame)
        if isinstance(owner, Const) and isinstance(owner.value, str):
            args, kwargs, complete = self._arguments(node, frame)
            if complete and name in _STRING_METHODS and all(isinstance(a, Const) for a in [*args, *kwargs.values()]):
                try:
                    value = getattr(owner.value, name)(
                        *(a.value for a in args if isinstance(a, Const)),
                        **{k: v.value for k, v in kwargs.items() if isinstance(v, Const)},
                    )
                except Exception:
                    return Unk()
                return Seq("list", [Const(v) for v in value]) if isinstance(value, list) else Const(value, owner.soft)
            return Unk(t.STR)
        if isinstance(owner, Ten):
            for arg in node.args:
                self.eval(arg.value, frame)
            if name in ("item",):
                return Unk(t.NUMBER)
            if name in ("size", "dim", "numel", "tolist", "numpy"):
                return Obj("numpy.ndarray") if name == "numpy" else Unk()
            return Ten()
        if isinstance(owner, Cls) and name == "__init__":
            args, kwargs, complete = self._arguments(node, frame)
            if args and isinstance(args[0], Inst):
                init = self.method(owner.cls, "__init__")
                if isinstance(init, Function):
                    return self.call_function(init, args[1:], kwargs, args[0], soft=not complete)
                return Const(None)
        if isinstance(owner, Ext) and name == "__init__":
            args, kwargs, complete = self._arguments(node, frame)
            if args and isinstance(args[0], Inst):
                if owner.dotted != "torch.nn.Module":
                    self._external_init(args[0], args[1:], kwargs)
                return Const(None)
        return None

    def _grow(self, owner: Inst, name: str, args: list[Py]) -> None:
        assert owner.children is not None
        if self._unsure:
            owner.children = None
            return
        if name == "append" and args:
            owner.children[str(len(owner.children))] = args[0]
        elif name == "extend" and args:
            items = self.iterate(args[0])
            if items is None:
                owner.children = None
                return
            for item in items:
                owner.children[str(len(owner.children))] = item
        elif name == "update" and args and isinstance(args[0], Map) and args[0].items is not None:
            owner.children.update({str(k): v for k, v in args[0].items.items()})
        else:
            owner.children = None

    def _container_view(self, owner: Inst, name: str) -> Py:
        assert owner.children is not None
        if name == "keys":
            return Seq("list", [Const(k) for k in owner.children])
        if name == "items":
            return Seq("list", [Seq("tuple", [Const(k), v]) for k, v in owner.children.items()])
        if name == "modules":
            return Seq("list", None, Unk())
        return Seq("list", list(owner.children.values()))

    def _list_method(self, node: cst.Call, owner: Seq, name: str, frame: Frame) -> Py | None:
        args, kwargs, complete = self._arguments(node, frame)
        if name in ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort"):
            if owner.items is None or self._unsure or not complete:
                owner.items, owner.elem = None, Unk()
                return Unk() if name == "pop" else Const(None)
            if name == "append" and args:
                owner.items.append(args[0])
            elif name == "extend" and args:
                more = self.iterate(args[0])
                if more is None:
                    owner.items, owner.elem = None, Unk()
                else:
                    owner.items.extend(more)
            elif name == "insert" and len(args) == 2 and isinstance(args[0], Const) and isinstance(args[0].value, int):
                owner.items.insert(args[0].value, args[1])
            elif name == "pop":
                at = args[0].value if args and isinstance(args[0], Const) else -1
                return (
                    owner.items.pop(at)
                    if owner.items and isinstance(at, int) and -len(owner.items) <= at < len(owner.items)
                    else Unk()
                )
            elif name == "reverse":
                owner.items.reverse()
            elif name == "clear":
                owner.items.clear()
            else:
                owner.items, owner.elem = None, Unk()
            return Const(None)
        if name == "copy":
            return Seq(owner.kind, list(owner.items) if owner.items is not None else None, owner.elem)
        if name in ("index", "count"):
            return Unk(t.INT)
        return Unk()

    def _dict_method(self, node: cst.Call, owner: Map, name: str, frame: Frame) -> Py | None:
        args, kwargs, complete = self._arguments(node, frame)
        if name in ("get", "pop", "setdefault"):
            if (
                owner.items is not None
                and args
                and isinstance(args[0], Const)
                and _hashable(args[0].value)
                and not self._unsure
            ):
                default = args[1] if len(args) > 1 else Const(None)
                if name == "pop":
                    return owner.items.pop(args[0].value, default)
                return (
                    owner.items.setdefault(args[0].value, default)
                    if name == "setdefault"
                    else owner.items.get(args[0].value, default)
                )
            return Unk()
        if name == "update":
            other = args[0] if args else Map(dict(kwargs))
            if owner.items is not None and isinstance(other, Map) and other.items is not None and not self._unsure:
                owner.items.update(other.items)
            else:
                owner.items = None
            return Const(None)
        if owner.items is None:
            return Seq("list", None, Unk())
        if name == "items":
            return Seq("list", [Seq("tuple", [Const(k), v]) for k, v in owner.items.items()])
        if name == "keys":
            return Seq("list", [Const(k) for k in owner.items])
        if name == "values":
            return Seq("list", list(owner.items.values()))
        if name == "copy":
            return Map(dict(owner.items))
        return Unk()

    # --- names outside of the program

    def _external_call(self, dotted: str, args: list[Py], kwargs: dict[str, Py], complete: bool) -> Py:
        head, _, tail = dotted.rpartition(".")
        if head == "builtins":
            return self._builtin(tail, args, kwargs, complete)
        if dotted.startswith("torch.nn."):
            if head.startswith("torch.nn.utils") and args and isinstance(args[0], Inst):
                return self._hook(head, tail, args[0])
            if tail in ("Parameter", "Buffer") or dotted.endswith((".parameter.Parameter", "UninitializedParameter")):
                return Ten("parameter" if tail == "Parameter" else "buffer")
            if tail[:1].isupper():
                return self._torch_module(dotted, args, kwargs, complete)
            if head.startswith("torch.nn.init") and args:
                return args[0]
            return Ten() if self.returns_tensor(dotted) else Unk()
        if dotted in ("copy.deepcopy", "copy.copy", "torch.jit.script", "torch.compile") and args:
            return args[0]
        if dotted == "collections.OrderedDict":
            return self._ordered(args, kwargs)
        if dotted == "collections.namedtuple":
            return Unk()
        if dotted == "functools.partial":
            return Obj("functools.partial")
        if head == "math" and args and all(isinstance(a, Const) for a in args):
            return self._math(tail, [a.value for a in args if isinstance(a, Const)])
        if head == "math":
            return Unk(t.INT if tail in ("ceil", "floor", "gcd", "factorial") else t.FLOAT)
        if head == "numpy":
            return _numpy(tail, args)
        if dotted.startswith("torch.optim."):
            return Obj(dotted)
        if dotted.startswith("torch.") and self.returns_tensor(dotted):
            return Ten()
        if head == "itertools":
            return Seq("list", None, Unk())
        return Unk()

    def _hook(self, head: str, tail: str, inst: Inst) -> Py:
        if tail not in ("weight_norm", "spectral_norm", "orthogonal"):
            return inst
        hooked = Inst(inst.cls, inst.external, inst.attrs, inst.maybe, inst.open, inst.children, args=inst.args)
        hooked.made_at = self._at
        if "parametriz" not in head and tail in _HOOKING:
            hooked.hooked = _HOOKING[tail]
        elif tail != "weight_norm":
            hooked.hooked = "parametrization"
        return hooked

    def _torch_module(self, dotted: str, args: list[Py], kwargs: dict[str, Py], complete: bool = True) -> Inst:
        tail = dotted.rpartition(".")[2]
        inst = Inst(None, dotted)
        inst.args = {**dict(enumerate(args)), **kwargs}
        inst.made_at = self._at
        if tail not in CONTAINERS:
            self._learn(inst)
            return inst
        children: dict[str, Py] | None = {}
        first = args[0] if args else next(iter(kwargs.values()), None)
        if tail in ("ModuleDict", "ParameterDict"):
            if first is None:
                children = {}
            elif isinstance(first, Map):
                children = None if first.items is None else {str(k): v for k, v in first.items.items()}
            else:
                pairs = self.iterate(first)
                children = self._pairs(pairs)
        elif tail == "Sequential":
            if len(args) == 1 and isinstance(first, Map):
                children = None if first.items is None else {str(k): v for k, v in first.items.items()}
            elif len(args) == 1 and isinstance(first, Unk):
                children = None if not complete else {"0": first}
            else:
                children = {str(i): a for i, a in enumerate(args)} if complete else None
        elif first is not None:
            items = self.iterate(first)
            children = None if items is None else {str(i): v for i, v in enumerate(items)}
        elif not complete:
            children = None
        if tail.startswith("Parameter") and children is not None:
            children = {k: Ten("parameter") for k in children}
        inst.children = children
        return inst

    def _learn(self, inst: Inst) -> None:
        """What is given to a parameter of a torch module that takes ints only is an int, wherever else it goes."""
        entry = self.data.modules.get(inst.name, {})
        names = entry.get("ints", ())
        for position, name in enumerate(entry.get("parameters", ()) if names else ()):
            value = inst.args.get(name, inst.args.get(position))
            if name in names and isinstance(value, Unk) and value.type is t.UNKNOWN:
                value.type = t.INT

    def _pairs(self, pairs: list[Py] | None) -> dict[str, Py] | None:
        if pairs is None:
            return None
        found: dict[str, Py] = {}
        for pair in pairs:
            if not (
                isinstance(pair, Seq)
                and pair.items is not None
                and len(pair.items) == 2
                and isinstance(pair.items[0], Const)
            ):
                return None
            found[str(pair.items[0].value)] = pair.items[1]
        return found

    def _ordered(self, args: list[Py], kwargs: dict[str, Py]) -> Py:
        if not args:
            return Map(dict(kwargs))
        if isinstance(args[0], Map):
            return Map(None if args[0].items is None else dict(args[0].items))
        return Map(self._pairs(self.iterate(args[0])))

    def _math(self, name: str, values: list[Any]) -> Py:
        import math

        function = getattr(math, name, None)
        try:
            return Const(function(*values)) if callable(function) else Unk(t.FLOAT)
        except Exception:
            return Unk(t.FLOAT)

    def _builtin(self, name: str, args: list[Py], kwargs: dict[str, Py], complete: bool) -> Py:
        constants = [a.value for a in args if isinstance(a, Const)]
        first = args[0] if args else None
        if name == "range":
            if len(constants) == len(args) and args and all(type(c) is int for c in constants):
                numbers = range(*constants)
                return (
                    Seq("range", [Const(i) for i in numbers])
                    if len(numbers) <= MAX_ITEMS
                    else Seq("range", None, Unk(t.INT))
                )
            return Seq("range", None, Unk(t.INT))
        if name in ("list", "tuple", "reversed", "sorted", "set"):
            kind = name if name in ("tuple", "set") else "list"
            if first is None:
                return Seq(kind, [])
            items = self.iterate(first)
            if name == "sorted" or items is None:
                return Seq(kind, None, Unk())
            return Seq(kind, items[::-1] if name == "reversed" else items)
        if name == "dict":
            if first is None:
                return Map(dict(kwargs)) if complete else Map(None)
            if isinstance(first, Map):
                return Map({**first.items, **kwargs} if first.items is not None else None)
            return Map(self._pairs(self.iterate(first)))
        if name == "zip":
            columns = [self.iterate(a) for a in args]
            if all(c is not None for c in columns):
                return Seq(
                    "list",
                    [Seq("tuple", list(row)) for row in zip(*(c for c in columns if c is not None), strict=False)],
                )
            return Seq("list", None, Unk())
        if name == "enumerate":
            items = self.iterate(first) if first is not None else None
            start = args[1].value if len(args) > 1 and isinstance(args[1], Const) else 0
            return (
                Seq("list", None, Unk())
                if items is None
                else Seq("list", [Seq("tuple", [Const(i), v]) for i, v in enumerate(items, start)])
            )
        if name == "len":
            items = self.iterate(first) if first is not None else None
            return Const(len(items)) if items is not None else Unk(t.INT)
        if name == "getattr" and len(args) >= 2 and first is not None:
            if isinstance(args[1], Const) and isinstance(args[1].value, str):
                return self.attribute(first, args[1].value)
            return Unk()
        if name == "setattr" and len(args) == 3 and isinstance(first, Inst):
            if isinstance(args[1], Const) and isinstance(args[1].value, str):
                self.set_attribute(first, args[1].value, args[2])
            else:
                first.open = True
            return Const(None)
        if name == "hasattr" and len(args) == 2 and isinstance(first, Inst) and isinstance(args[1], Const):
            if args[1].value in first.attrs:
                return Const(True)
            return Unk(t.BOOL)
        if name == "isinstance":
            return self._isinstance(args)
        if name == "callable" and first is not None:
            if isinstance(first, (Fn, Lam, Ext, Cls, Inst)):
                return Const(True)
            return Const(False) if isinstance(first, Const) else Unk(t.BOOL)
        if name in ("int", "float", "bool", "str", "max", "min", "abs", "sum", "round", "pow", "divmod", "any", "all"):
            return self._numeric(name, args, constants)
        if name == "type" and isinstance(first, Inst) and first.cls is not None:
            return Cls(first.cls)
        if name == "super":
            return Unk()
        if name in ("print",):
            return Const(None)
        return Unk()

    def _numeric(self, name: str, args: list[Py], constants: list[Any]) -> Py:
        import builtins

        values: list[Any] = constants
        if len(args) == 1 and isinstance(args[0], Seq) and args[0].items is not None:
            inner = [i.value for i in args[0].items if isinstance(i, Const)]
            if len(inner) == len(args[0].items):
                values = [inner]
        if len(values) == len(args) and args:
            try:
                soft = any(a.soft for a in args if isinstance(a, Const))
                return Const(getattr(builtins, name)(*values), soft)
            except Exception:
                return Unk()
        if name in ("int", "float", "bool", "str"):
            return Unk({"int": t.INT, "float": t.FLOAT, "bool": t.BOOL, "str": t.STR}[name])
        types = {static_type(a) for a in args}
        return Unk(types.pop() if len(types) == 1 and name in ("max", "min") else t.UNKNOWN)

    def _isinstance(self, args: list[Py]) -> Py:
        if len(args) != 2:
            return Unk(t.BOOL)
        value, wanted = args
        names: set[str] = set()
        for one in wanted.items or [] if isinstance(wanted, Seq) else [wanted]:
            if isinstance(one, Ext):
                names.add(one.dotted.rpartition(".")[2])
            elif isinstance(one, Cls):
                names.add(one.cls.name)
            else:
                return Unk(t.BOOL)
        kind: set[str] = set()
        if isinstance(value, Const):
            kind = {c.__name__ for c in type(value.value).__mro__}
        elif isinstance(value, (Seq, Map)):
            kind = (
                {value.kind, "Iterable", "Sequence"} if isinstance(value, Seq) else {"dict", "OrderedDict", "Mapping"}
            )
        elif isinstance(value, Inst):
            if value.cls is not None:
                kind = {
                    b.name if isinstance(b, Class) else b.rpartition(".")[2] for b in self.program.mro(value.cls)
                } | {"Module"}
            else:
                kind = {value.name, "Module"}
        elif isinstance(value, Fn):
            kind = {"function", "Callable"}
        else:
            known = {t.INT: "int", t.FLOAT: "float", t.BOOL: "bool", t.STR: "str"}.get(static_type(value))
            if known is None:
                return Unk(t.BOOL)
            kind = {known} | ({"int"} if known == "bool" else set())
        return Const(bool(kind & names), getattr(value, "soft", False))


def _numpy(name: str, args: list[Py]) -> Py:
    """What NumPy makes: an array, or a number of its own; a float64 is a float, an int64 is no int."""
    if name in _ARRAYS:
        return Obj("numpy.ndarray")
    first = args[0] if args else None
    if name in _NUMPY_INTS or (name.startswith("float") and name not in ("float64", "float_", "floating")):
        return Obj(f"numpy.{name}")
    kind = static_type(first) if first is not None else t.UNKNOWN
    if name in _NUMPY_SUMS and kind.kind in ("List", "Tuple") and set(kind.args) == {t.INT}:
        return Obj("numpy.int64")
    if name == "prod":
        return Obj(NUMPY_NUMBER)
    if name == "float64" or (name in _NUMPY_FLOATS and kind in (t.INT, t.FLOAT)):
        return Unk(t.FLOAT)
    return Unk()


def _identity(value: Py) -> Any:
    if isinstance(value, Ext):
        return ("ext", value.dotted.rpartition(".")[2])
    if isinstance(value, Cls):
        return ("cls", value.cls.name)
    if isinstance(value, Fn):
        return ("fn", value.function.name)
    return None


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


_CONSTANTS = {"True": True, "False": False, "None": None}
_STRING_METHODS = frozenset(
    {
        "format",
        "lower",
        "upper",
        "split",
        "join",
        "startswith",
        "endswith",
        "strip",
        "replace",
        "rsplit",
        "capitalize",
        "isdigit",
        "lstrip",
        "rstrip",
        "count",
        "find",
        "title",
    }
)
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
_EXPRESSIONS: dict[type, Callable[[Builder, Any, Frame], Py]] = {
    cst.Name: Builder._name,
    cst.Attribute: Builder._attribute,
    cst.Integer: Builder._literal,
    cst.Float: Builder._literal,
    cst.Imaginary: Builder._literal,
    cst.SimpleString: Builder._literal,
    cst.ConcatenatedString: Builder._concat,
    cst.FormattedString: Builder._fstring,
    cst.UnaryOperation: Builder._unary,
    cst.BinaryOperation: Builder._binary,
    cst.Comparison: Builder._compare,
    cst.BooleanOperation: Builder._boolean,
    cst.IfExp: Builder._ifexp,
    cst.Tuple: Builder._sequence,
    cst.List: Builder._sequence,
    cst.Set: Builder._sequence,
    cst.Dict: Builder._dict,
    cst.ListComp: Builder._comprehension,
    cst.GeneratorExp: Builder._comprehension,
    cst.SetComp: Builder._comprehension,
    cst.DictComp: Builder._dict_comp,
    cst.Subscript: Builder._subscript,
    cst.Call: Builder._call,
    cst.Lambda: lambda self, node, frame: Lam(node),
}
__all__ = ["Builder", "Frame", "Imported", "TooMuch"]


def values_of(items: Iterable[Py]) -> list[Any]:
    return [i.value for i in items if isinstance(i, Const)]
