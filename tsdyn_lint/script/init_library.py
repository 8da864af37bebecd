"""Names outside of the program, as a constructor calls them: torch's modules, Python's builtins, NumPy."""

from __future__ import annotations

from typing import Any

from tsdyn_lint.resolve import Class
from tsdyn_lint.script import types as t
from tsdyn_lint.script.init_expressions import InitExpressions
from tsdyn_lint.script.init_frames import (
    MAX_ITEMS,
)
from tsdyn_lint.script.pyvalues import (
    CONTAINERS,
    NUMPY_NUMBER,
    Cls,
    Const,
    Ext,
    Fn,
    Inst,
    Lam,
    Map,
    Obj,
    Py,
    Seq,
    Ten,
    Unk,
    static_type,
)

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


class InitLibrary(InitExpressions):
    """What calls of known libraries give."""

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
        if dotted == "torch.Size" and len(args) == 1:
            return Seq("tuple", self.iterate(args[0]))
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
            if name == "pow" and not all(isinstance(v, (int, float)) and abs(v) < 64 for v in values):
                return Unk(t.UNKNOWN)
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
