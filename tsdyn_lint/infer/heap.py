"""What a call finds and what it leaves, kept apart from the identity of any object.

A summary is the content of everything that the arguments reach, before the call and after it. Where a later call finds
the same content before, its objects get the content after, and new ones take the place of those that the first made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tsdyn_lint.infer.values import (
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Flag,
    Func,
    Instance,
    Mapping,
    Method,
    ModuleRef,
    Outside,
    Partial,
    Scalar,
    Seq,
    SliceValue,
    SuperRef,
    Tensor,
    Unknown,
    Value,
)

Section = tuple[Any, ...]
"""One object's content. Each value in it is an int, the number of an object; None, unknown; or a leaf's content."""
_LARGE = 2_000
"""More objects than this are not worth comparing."""


class Opaque(Exception):
    """A value whose meaning is bound to this call: a closure, a read that events watch, a guess about a parameter."""


@dataclass(frozen=True)
class Summary:
    """What a call left: the objects of its arguments that it changed, those it made, and what it returned."""

    changed: tuple[tuple[int, Section], ...]
    made: tuple[Section, ...]
    result: Any
    modules: tuple[tuple[int, bool, bool], ...]
    """The module objects among those made that later constructor calls find again: number, `open`, `rest`."""
    depth: int
    """Calls inside of each other that the walk needed."""


class Heap:
    """Objects by number, and the content of each."""

    def __init__(self, shared: dict[int, Value], leaves: dict[int, tuple[Value, Any]]) -> None:
        self.objects: list[Any] = []
        self.sections: list[Section] = []
        self._numbers: dict[int, int] = {}
        self._shared = shared
        """Values of module and class level: the same object wherever they are met."""
        self._leaves = leaves
        """Tokens of leaves, each with its leaf so that nothing else gets its identity: most are met again and again."""

    def take(self, roots: Iterable[Value | None], by_content: bool = True) -> tuple[Any, ...]:
        """The roots as tokens, and everything they reach as numbered objects. Raises Opaque."""
        shared, self._shared = self._shared, {} if by_content else self._shared
        tokens = tuple([None if root is None else self._token(root) for root in roots])
        while len(self.sections) < len(self.objects):
            if len(self.objects) > _LARGE:
                raise Opaque
            self.sections.append(self._section(self.objects[len(self.sections)]))
        self._shared = shared
        return tokens

    def after(self) -> tuple[tuple[int, Section], ...]:
        """The sections of the objects taken so far that are no longer what they were."""
        changed = []
        for number, before in enumerate(self.sections):
            now = self._section(self.objects[number])
            if now != before:
                changed.append((number, now))
        return tuple(changed)

    def number(self, value: Value) -> int | None:
        """The number that an object has."""
        return self._numbers.get(id(value))

    def _token(self, value: Value) -> Any:
        known = self._leaves.get(id(value))
        if known is not None:
            return known[1]
        if value is UNKNOWN:
            return None
        leaf = LEAVES.get(type(value))
        if leaf is not None:
            if value.src and not (len(value.src) == 1 and next(iter(value.src)).kind == "data-size"):
                raise Opaque
            token = leaf(value)
            self._leaves[id(value)] = value, token
            return token
        number = self._numbers.get(id(value))
        if number is None:
            if id(value) in self._shared:
                return (None, value)
            number = self._numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return number

    def _section(self, value: Any) -> Section:
        if value.src:
            raise Opaque
        kind, token = type(value), self._token
        if kind is Instance:
            attrs, given = value.attrs, value.kwargs
            return (
                kind, value.cls, value.outside, value.is_module, value.complete, value.owner, tuple(attrs),
                tuple([token(v) for v in attrs.values()]), tuple([token(v) for v in value.args]), tuple(given),
                tuple([token(v) for v in given.values()]),
            )  # fmt: skip
        if kind is Seq:
            items = None if value.items is None else tuple([token(v) for v in value.items])
            return (kind, value.kind, value.owner, value.name, value.data_sized, value.cls, value.fields, items,
                    token(value.elem))  # fmt: skip
        if kind is Mapping:
            rest = value.rest
            return (kind, value.owner, value.name, tuple([(type(k), k) for k in value.items]),
                    tuple([token(v) for v in value.items.values()]), rest is None,
                    None if rest is None else token(rest))  # fmt: skip
        if kind is Tensor:
            if value.hypothesis is not None or value.literal is not None:
                raise Opaque
            return (kind, value.dtype, value.rank, value.origin, value.numpy, value.data_sized, value.intermediate,
                    value.fixed)  # fmt: skip
        if kind is Either:
            return (kind, tuple([token(v) for v in value.options]))
        if kind is Method:
            return (kind, value.name, token(value.receiver))
        if kind is Func:
            if value.env is not None or value.defaults is not None:
                raise Opaque
            return (kind, value.function, value.bare, value.self is None,
                    None if value.self is None else token(value.self))  # fmt: skip
        if kind is SuperRef:
            return (kind, value.cls, token(value.self))
        if kind is SliceValue:
            return (kind, tuple([token(v) for v in value.parts]))
        if kind is Partial:
            return (kind, token(value.func), tuple([token(v) for v in value.args]), tuple(value.kwargs),
                    tuple([token(v) for v in value.kwargs.values()]))  # fmt: skip
        raise Opaque


LEAVES: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Const: lambda v: (Const, type(v.value), v.value, v.soft, v.src),
    Scalar: lambda v: (Scalar, v.type, v.origin, v.src),
    Unknown: lambda v: (Unknown, v.src, v.given),
    Outside: lambda v: (Outside, v.dotted, v.src),
    ClassRef: lambda v: (ClassRef, v.cls, v.src),
    ModuleRef: lambda v: (ModuleRef, v.module, v.src),
    Flag: lambda v: (Flag, v.may, v.sure, v.src),
}


def recall(summary: Summary, objects: Sequence[Any]) -> tuple[Value, list[Instance]]:
    """Does to the objects of a call's arguments what the summary says; its result, and the objects made, in order."""
    made = [section[0].__new__(section[0]) for section in summary.made]
    everything = [*objects, *made]
    for value, section in zip(made, summary.made, strict=True):
        fill(value, section, everything)
    for number, section in summary.changed:
        fill(everything[number], section, everything)
    return _value(summary.result, everything), everything


def _value(token: Any, objects: Sequence[Any] | dict[int, Any]) -> Value:
    if token is None:
        return UNKNOWN
    if type(token) is int:
        found: Value = objects[token]
        return found
    kind = token[0]
    if kind is Const:
        return Const(*token[2:])
    if kind is None:
        shared: Value = token[1]
        return shared
    made: Value = kind(*token[1:])
    return made


def fill(value: Any, section: Section, objects: Sequence[Any] | dict[int, Any]) -> None:
    """Gives an object the content of a section."""
    kind = section[0]

    def values(tokens: Iterable[Any]) -> list[Value]:
        return [_value(token, objects) for token in tokens]

    if kind is Instance:
        _, cls, outside, is_module, complete, owner, names, held, args, given, kwargs = section
        attrs = dict(zip(names, values(held), strict=True))
        value.__init__(cls, outside, attrs, is_module, complete, owner, tuple(values(args)),
                       dict(zip(given, values(kwargs), strict=True)))  # fmt: skip
    elif kind is Seq:
        _, name, owner, title, data_sized, cls, fields, items, elem = section
        value.__init__(name, None if items is None else values(items), _value(elem, objects), owner, title, data_sized,
                       cls=cls, fields=fields)  # fmt: skip
    elif kind is Mapping:
        _, owner, name, keys, items, closed, rest = section
        table = {k: v for (_, k), v in zip(keys, values(items), strict=True)}
        value.__init__(table, None if closed else _value(rest, objects), owner, name)
    elif kind is Tensor:
        _, dtype, rank, origin, numpy, data_sized, intermediate, fixed = section
        value.__init__(dtype, rank, origin, numpy, data_sized, intermediate=intermediate, fixed=fixed)
    elif kind is Either or kind is SliceValue:
        value.__init__(tuple(values(section[1])))
    elif kind is Method:
        value.__init__(_value(section[2], objects), section[1])
    elif kind is Func:
        _, function, bare, free, bound = section
        value.__init__(function, None if free else _value(bound, objects), bare=bare)
    elif kind is SuperRef:
        value.__init__(section[1], _value(section[2], objects))
    else:
        _, func, args, names, kwargs = section
        value.__init__(_value(func, objects), tuple(values(args)), dict(zip(names, values(kwargs), strict=True)))
