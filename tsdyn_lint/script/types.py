"""TorchScript's types: interned, printed as torch prints them, with its subtype, conversion and unification rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_interned: dict[tuple[Any, ...], Type] = {}
_of_program: dict[tuple[Any, ...], Type] = {}
"""Those that hold a class of the program that is checked."""


class Type:
    """One type. `kind` names the constructor, `args` its element types, `extra` what tells nominal types apart."""

    __slots__ = ("kind", "args", "extra", "nominal")
    kind: str
    args: tuple[Type, ...]
    extra: Any
    nominal: bool

    def __new__(cls, kind: str, args: tuple[Type, ...] = (), extra: Any = None) -> Type:
        nominal = kind in ("Class", "Enum", "Interface", "Module") or any(a.nominal for a in args)
        table = _of_program if nominal else _interned
        key = (kind, args, extra)
        found = None if kind == "Module" else table.get(key)
        if found is None:
            found = object.__new__(cls)
            found.kind, found.args, found.extra, found.nominal = kind, args, extra, nominal
            if kind != "Module":  # these hold instances, and each is its own
                table[key] = found
        return found

    def __str__(self) -> str:
        kind = self.kind
        if kind == "Optional":
            return f"Optional[{self.args[0]}]"
        if kind in ("List", "Dict", "Tuple", "Union", "Future", "RRef"):
            if self.extra is not None:
                return str(self.extra[0])
            return f"{kind}[{', '.join(map(str, self.args)) or '()'}]"
        if kind in ("Class", "Enum", "Module", "Var", "Interface"):
            return str(getattr(self.extra, "name", self.extra))
        return kind

    def __repr__(self) -> str:
        return f"<{self}>"


def forget() -> None:
    """Lets go of the types that hold classes of a program, when that has been checked."""
    _of_program.clear()


TENSOR = Type("Tensor")
INT = Type("int")
FLOAT = Type("float")
BOOL = Type("bool")
STR = Type("str")
COMPLEX = Type("complex")
NUMBER = Type("number")
DEVICE = Type("Device")
GENERATOR = Type("Generator")
STREAM = Type("Stream")
NONE = Type("NoneType")
ANY = Type("Any")
STORAGE = Type("Storage")
UNKNOWN = Type("?")
"""A type that the analysis does not know: fits everywhere, and nothing is claimed about it."""
NOTHING = Type("unavailable")
"""No value at all: what a never-returning path gives."""

NUMERIC = frozenset({INT, FLOAT, COMPLEX, NUMBER})


def List(element: Type) -> Type:
    return Type("List", (element,))


def Dict(key: Type, value: Type) -> Type:
    return Type("Dict", (key, value))


def Tuple(elements: Iterable[Type], name: str | None = None, fields: tuple[str, ...] = ()) -> Type:
    """A tuple; `name` and `fields` make it a NamedTuple."""
    return Type("Tuple", tuple(elements), (name, fields) if name else None)


def Optional(inner: Type) -> Type:
    if inner in (NONE, ANY, UNKNOWN) or inner.kind == "Optional":
        return inner
    if inner.kind == "Union":
        return Union((*inner.args, NONE))
    return Type("Optional", (inner,))


def Union(members: Iterable[Type]) -> Type:
    """A union in torch's normal form: flat, no duplicates; one member and None is an Optional."""
    flat: list[Type] = []
    for member in members:
        parts = (
            member.args
            if member.kind == "Union"
            else (member.args[0], NONE)
            if member.kind == "Optional"
            else (member,)
        )
        for part in parts:
            if part is UNKNOWN:
                return UNKNOWN
            if part not in flat:
                flat.append(part)
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and NONE in flat:
        return Type("Optional", (flat[0] if flat[1] is NONE else flat[1],))
    if set(flat) == {INT, FLOAT, COMPLEX}:
        return NUMBER
    return Type("Union", tuple(sorted(flat, key=str)))


def has_unknown(kind: Type) -> bool:
    return kind is UNKNOWN or any(has_unknown(a) for a in kind.args)


def accepts_none(kind: Type) -> bool:
    return kind in (NONE, ANY, UNKNOWN) or kind.kind == "Optional" or (kind.kind == "Union" and NONE in kind.args)


def strip_none(kind: Type) -> Type:
    """The type that is left once a value is known not to be None."""
    if kind.kind == "Optional":
        return kind.args[0]
    if kind.kind == "Union":
        return Union(a for a in kind.args if a is not NONE)
    return kind


def is_subtype(sub: Type, sup: Type) -> bool:
    if sub is sup or sup in (UNKNOWN, ANY) or sub in (UNKNOWN, NOTHING):
        return True
    kind = sup.kind
    if kind == "Optional":
        inner = sup.args[0]
        return sub is NONE or is_subtype(sub.args[0] if sub.kind == "Optional" else sub, inner)
    if kind == "Union":
        members = sub.args if sub.kind == "Union" else (sub.args[0], NONE) if sub.kind == "Optional" else (sub,)
        return all(any(is_subtype(m, s) for s in sup.args) for m in members)
    if sup is NUMBER:
        return sub in (INT, FLOAT, COMPLEX)
    if kind in ("list", "tuple"):
        return sub.kind == kind.capitalize()
    if kind == "Interface":
        return True  # by its methods, which are not compared here
    if sub.kind != kind:
        return False
    if kind in ("List", "Dict", "Future", "RRef"):
        # containers are invariant
        return all(same(a, b) for a, b in zip(sub.args, sup.args, strict=False))
    if kind == "Tuple":
        if sup.extra is not None and sub.extra != sup.extra and not sup.extra[0].startswith("Tuple["):
            return False
        return len(sub.args) == len(sup.args) and all(
            is_subtype(a, b) for a, b in zip(sub.args, sup.args, strict=False)
        )
    if kind in ("Class", "Module"):
        base = getattr(sub.extra, "is_a", None)
        return bool(base and base(sup.extra))
    return False


def same(a: Type, b: Type) -> bool:
    """Equality that an unknown part does not spoil."""
    if a is b or a is UNKNOWN or b is UNKNOWN:
        return True
    return a.kind == b.kind and a.extra == b.extra and len(a.args) == len(b.args) and all(map(same, a.args, b.args))


def unify(a: Type, b: Type) -> Type | None:
    """The type both fit, as torch joins two branches without a type hint; None if there is none."""
    if a is b or b is NOTHING:
        return a
    if a is NOTHING:
        return b
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if is_subtype(a, b):
        return a if has_unknown(b) and not has_unknown(a) else b
    if is_subtype(b, a):
        return a
    if a is NONE:
        return Optional(b)
    if b is NONE:
        return Optional(a)
    if a.kind == "Optional" or b.kind == "Optional":
        inner = unify(strip_none(a), strip_none(b))
        return Optional(inner) if inner is not None and inner.kind != "Optional" else None
    if a.kind == b.kind == "Tuple" and len(a.args) == len(b.args):
        if a.args == b.args:
            return Tuple(a.args)
        parts = [unify(x, y) for x, y in zip(a.args, b.args, strict=False)]
        return None if any(p is None for p in parts) else Tuple(p for p in parts if p is not None)
    if a.kind == b.kind == "List" and has_unknown(a) | has_unknown(b):
        return a
    return None


def converts(value: Type, target: Type, implicit: bool) -> bool:
    """Whether a value of one type may be passed where another is asked for, as torch's `tryConvertToType` does it.

    `implicit` also allows a tensor for a number and a string for a device, which torch tries only in a second round.
    """
    if is_subtype(value, target):
        return True
    if target.kind == "Optional" and value.kind != "Optional":
        return converts(value, target.args[0], implicit)
    if value.kind == "Tuple":
        if target.kind == "List":
            return all(is_subtype(e, target.args[0]) for e in value.args)
        if target.kind == "Tuple" and len(value.args) == len(target.args) and target.extra is None:
            return all(converts(e, w, implicit) for e, w in zip(value.args, target.args, strict=True))
    if implicit:
        if value is TENSOR and target in (INT, FLOAT, COMPLEX, NUMBER):
            return True
        if value is NUMBER and target in (INT, FLOAT, COMPLEX):
            return True
        if value is STR and target is DEVICE:
            return True
    return False
