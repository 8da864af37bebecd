"""Python values as `__init__` leaves them on an instance: the little that TorchScript's view of a module depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import libcst as cst

from tsdyn_lint.resolve import Class, Function, Module
from tsdyn_lint.script import types as t


@dataclass(eq=False, slots=True)
class Unk:
    """An unknown value; `type` where an annotation tells its TorchScript type."""

    type: t.Type = t.UNKNOWN


@dataclass(eq=False, slots=True)
class Const:
    """A literal. `soft`: it comes from a default, so callers may pass another of its type."""

    value: Any
    soft: bool = False


@dataclass(eq=False, slots=True)
class Ten:
    """A tensor; `role` is parameter, buffer or empty."""

    role: str = ""


@dataclass(eq=False, slots=True)
class Seq:
    """A list or tuple (or set, range); `items` is None where the length is not known, `elem` then is any of them."""

    kind: str
    items: list[Py] | None
    elem: Py | None = None


@dataclass(eq=False, slots=True)
class Map:
    """A dict with constant keys; `items` is None where they are not known."""

    items: dict[Any, Py] | None
    elem: Py | None = None


@dataclass(eq=False, slots=True)
class Fn:
    """A function of the program, a lambda, or one made by a call; `owner` binds a method."""

    function: Function
    owner: Inst | None = None


@dataclass(eq=False, slots=True)
class Lam:
    """A lambda or a function defined inside another; `around`: the names that the latter can take from outside."""

    node: cst.CSTNode
    around: dict[str, Py] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Ext:
    """A name outside of the program."""

    dotted: str


@dataclass(eq=False, slots=True)
class Mod:
    """A module of the program."""

    module: Module


@dataclass(eq=False, slots=True)
class Cls:
    cls: Class


@dataclass(eq=False, slots=True)
class Rec:
    """A class made by a call of `collections.namedtuple`; its fields are Tensors."""

    type: t.Type


@dataclass(eq=False, slots=True)
class Obj:
    """An object that TorchScript has no type for; `name` is its Python class."""

    name: str
    cls: Class | None = None
    attrs: dict[str, Py] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Hook:
    """A call that made or changed a module, with the function it stands in; for a forward hook, the hook's value."""

    value: Py
    node: cst.CSTNode
    function: Function


@dataclass(eq=False, slots=True)
class Inst:
    """An `nn.Module`: of a class of the program, or of one of torch's (`external`, a dotted name).

    `children`: name -> value for containers, None where unknown. `maybe`: attributes set on some paths only.
    `rivals`: attributes of which a constructor's `if` sets the one set or the other, never both.
    `open`: attributes that were not seen may exist. `hooked`: why it cannot be scripted as an object.
    """

    cls: Class | None
    external: str = ""
    attrs: dict[str, Py] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)
    open: bool = False
    children: dict[str, Py] | None = None
    hooked: str = ""
    hooks: list[Hook] = field(default_factory=list)
    made_at: Hook | None = None
    args: dict[Any, Py] = field(default_factory=dict)
    annotated: dict[str, cst.BaseExpression] = field(default_factory=dict)
    rivals: list[tuple[set[str], set[str]]] = field(default_factory=list)
    signature: Any = None

    @property
    def name(self) -> str:
        return self.cls.name if self.cls is not None else self.external.rpartition(".")[2]

    @property
    def container(self) -> str:
        """`Sequential`, `ModuleList`, `ModuleDict`, `ParameterList`, `ParameterDict` or empty."""
        tail = self.external.rpartition(".")[2]
        return tail if tail in CONTAINERS else ""


NUMPY_NUMBER = "numpy number"
"""The name of an object that is an int64 or a float64, and it is not known which."""
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})

Py: TypeAlias = Unk | Const | Ten | Seq | Map | Fn | Lam | Ext | Mod | Cls | Rec | Obj | Inst


def same(a: Py, b: Py) -> bool:
    if a is b:
        return True
    if isinstance(a, Const) and isinstance(b, Const):
        return type(a.value) is type(b.value) and bool(a.value == b.value)
    if isinstance(a, Ten) and isinstance(b, Ten):
        return a.role == b.role
    if isinstance(a, Ext) and isinstance(b, Ext):
        return a.dotted == b.dotted
    return False


def join(a: Py, b: Py) -> Py:
    """What is known where two paths meet."""
    if same(a, b):
        return a
    if (
        isinstance(a, Inst)
        and isinstance(b, Inst)
        and a.cls is b.cls
        and a.external == b.external
        and signature(a) == signature(b)
    ):
        return a
    ta, tb = static_type(a), static_type(b)
    return Unk(ta if ta is tb else t.UNKNOWN)


def static_type(value: Py) -> t.Type:
    """The value's TorchScript type where it has a plain one, else unknown."""
    if isinstance(value, Unk):
        return value.type
    if isinstance(value, Ten):
        return t.TENSOR
    if isinstance(value, Const):
        return CONST_TYPES.get(type(value.value), t.UNKNOWN)
    if isinstance(value, Seq) and value.items and value.kind in ("list", "tuple"):
        parts = [static_type(i) for i in value.items]
        if value.kind == "tuple":
            return t.Tuple(parts)
        if all(p is parts[0] for p in parts):
            return t.List(parts[0])
    return t.UNKNOWN


CONST_TYPES = {int: t.INT, float: t.FLOAT, bool: t.BOOL, str: t.STR, complex: t.COMPLEX, type(None): t.NONE}


def signature(value: Py, depth: int = 0) -> Any:
    """What the check of a value can depend on: equal signatures are checked once."""
    if isinstance(value, Inst):
        if value.signature is None:
            value.signature = ("...",)  # a cycle
            parts = (
                value.cls,
                value.external,
                value.open,
                value.hooked,
                tuple((k, k in value.maybe, signature(v, depth + 1)) for k, v in sorted(value.attrs.items())),
                None
                if value.children is None
                else tuple((k, signature(v, depth + 1)) for k, v in value.children.items()),
            )
            value.signature = hash(parts)
        return value.signature
    if isinstance(value, Const):
        small = value.value if isinstance(value.value, (bool, str, type(None))) else None
        return (type(value.value).__name__, small)
    if isinstance(value, Seq):
        if value.items is None:
            return (value.kind, "?")
        return (value.kind, tuple(signature(i, depth + 1) for i in value.items[:64]))
    if isinstance(value, Map):
        return ("dict", None if value.items is None else tuple((str(k), signature(v)) for k, v in value.items.items()))
    if isinstance(value, Unk):
        return ("?", value.type)
    if isinstance(value, Ten):
        return "T"
    if isinstance(value, Fn):
        return ("fn", value.function)
    if isinstance(value, Ext):
        return value.dotted
    if isinstance(value, Cls):
        return value.cls
    return type(value).__name__
