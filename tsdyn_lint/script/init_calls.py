"""Calls in a constructor: functions and classes of the program, `super()`, and methods of the values it knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from tsdyn_lint.infer.values import hashable
from tsdyn_lint.resolve import Class, Function
from tsdyn_lint.script import types as t
from tsdyn_lint.script.init_expressions import AUTOGRAD
from tsdyn_lint.script.init_frames import (
    Frame,
    Raised,
)
from tsdyn_lint.script.init_library import InitLibrary
from tsdyn_lint.script.pyvalues import (
    Cls,
    Const,
    Ext,
    Fn,
    Hook,
    Inst,
    Lam,
    Map,
    Obj,
    Py,
    Seq,
    Ten,
    Unk,
)

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


class InitCalls(InitLibrary):
    """What calls give, and what they do to instances and containers."""

    def eval(self, node: cst.CSTNode, frame: Frame) -> Py:
        handler = _EXPRESSIONS.get(type(node))
        return handler(self, node, frame) if handler is not None else Unk()

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
            except Raised:
                return Unk()
        if isinstance(callee, Ext):
            return self._external_call(callee.dotted, args, kwargs, complete)
        if isinstance(callee, Obj) and callee.name in AUTOGRAD:
            return callee
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
                and hashable(args[0].value)
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


_EXPRESSIONS: dict[type, Callable[[InitCalls, Any, Frame], Py]] = {
    cst.Name: InitCalls._name,
    cst.Attribute: InitCalls._attribute,
    cst.Integer: InitCalls._literal,
    cst.Float: InitCalls._literal,
    cst.Imaginary: InitCalls._literal,
    cst.SimpleString: InitCalls._literal,
    cst.ConcatenatedString: InitCalls._concat,
    cst.FormattedString: InitCalls._fstring,
    cst.UnaryOperation: InitCalls._unary,
    cst.BinaryOperation: InitCalls._binary,
    cst.Comparison: InitCalls._compare,
    cst.BooleanOperation: InitCalls._boolean,
    cst.IfExp: InitCalls._ifexp,
    cst.Tuple: InitCalls._sequence,
    cst.List: InitCalls._sequence,
    cst.Set: InitCalls._sequence,
    cst.Dict: InitCalls._dict,
    cst.ListComp: InitCalls._comprehension,
    cst.GeneratorExp: InitCalls._comprehension,
    cst.SetComp: InitCalls._comprehension,
    cst.DictComp: InitCalls._dict_comp,
    cst.Subscript: InitCalls._subscript,
    cst.Call: InitCalls._call,
    cst.Lambda: lambda self, node, frame: Lam(node),
}
