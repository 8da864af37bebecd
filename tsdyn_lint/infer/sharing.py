"""Objects of equal content are one object for all entry points, so that a call of it is walked for one of them only.

Each entry point has its object built anew, mostly of parts that the entry points before it have as well. A part gives
way to an earlier one where both looked alike when they were new, with everything that they hold. At most one part of an
object gives way to it: two parts stay two, and what is written to one is not seen in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from tsdyn_lint.infer.heap import LEAVES, Heap, Opaque, Section, fill
from tsdyn_lint.infer.values import UNKNOWN, Either, Instance, Mapping, Seq, Value

_V = TypeVar("_V", bound=Value)


@dataclass(frozen=True, slots=True)
class _Part:
    """An object when it was new. In its shape, `...` stands for each object that it holds."""

    value: Any
    shape: Section
    holds: list[Any]
    content: dict[str, Any]

    def renew(self) -> None:
        """Undo what calls have written since."""
        for name, held in self.content.items():
            setattr(self.value, name, _apart(held))


class Sharing(Heap):
    """The parts of all objects shared so far."""

    def __init__(self, shared: dict[int, Value], leaves: dict[int, tuple[Value, Any]]) -> None:
        super().__init__(shared, leaves)
        self._parts: dict[int, _Part] = {}
        self._alike: dict[Section, list[_Part]] = {}
        self._places: dict[int, Any] = {}
        """What each object of the root at hand gives way to, or itself."""
        self._given: set[int] = set()
        """The objects that take a place."""
        self._holds: list[Any] | None = None
        """Collects what an object holds whose shape is being taken."""

    def shared(self, root: _V) -> _V:
        """An object of the same content whose parts, and itself where possible, are those of earlier roots."""
        new: list[_Part] = []
        todo: list[Any] = [root]
        while todo:
            value = todo.pop()
            if id(value) in self._places:
                continue
            part = None if id(value) in self._parts else self._part(value)  # a part of earlier roots stays what it is
            if part is not None:
                if _has_class(value) and self._gives_way(part):
                    continue
                new.append(part)
                todo += reversed(part.holds)
            self._places[id(value)] = value
            self._given.add(id(value))
        for part in new:
            if any(self._places[id(one)] is not one for one in part.holds):
                fill(part.value, self._section(part.value), self._places)
            holds = [self._places[id(one)] for one in part.holds]
            settled = _Part(part.value, part.shape, holds, _content(part.value))
            self._parts[id(part.value)] = settled
            self._alike.setdefault(part.shape, []).append(settled)
        found: _V = self._places[id(root)]
        self._places.clear()
        self._given.clear()
        return found

    def _part(self, value: Any) -> _Part | None:
        self._holds = []
        try:
            shape = self._section(value)
            hash(shape)
            return _Part(value, shape, self._holds, _content(value))
        except (Opaque, TypeError):
            return None
        finally:
            self._holds = None

    def _token(self, value: Value) -> Any:
        if value is UNKNOWN or type(value) in LEAVES or id(value) in self._shared and not _has_class(value):
            return super()._token(value)
        if self._holds is None:
            return id(value)
        self._holds.append(value)
        return ...

    def _gives_way(self, part: _Part) -> bool:
        """Whether an earlier part takes the place of this one, and all that it holds the places of what this holds."""
        return any(self._matches(part, other) for other in self._alike.get(part.shape, ()))

    def _matches(self, part: _Part, other: _Part) -> bool:
        if id(other.value) in self._given:
            return False
        places = {id(part.value): other.value}
        given = {id(other.value)}
        compared: set[tuple[int, int]] = set()
        matched: list[_Part] = []
        todo = [(part, other)]
        while todo:
            mine, theirs = todo.pop()
            if mine.shape != theirs.shape:
                return False
            matched.append(theirs)
            for one, its in zip(mine.holds, theirs.holds, strict=True):
                if (id(one), id(its)) in compared:
                    continue
                compared.add((id(one), id(its)))
                if type(one) in _MUTABLE:
                    if id(one) in self._parts and one is not its:
                        return False
                    place = places.get(id(one)) or self._places.get(id(one))
                    if place is not None or id(its) in given or id(its) in self._given:
                        if place is not its:
                            return False
                        continue
                    places[id(one)] = its
                    given.add(id(its))
                if one is its:
                    continue
                held, known = self._part(one), self._parts.get(id(its))
                if held is None or known is None:
                    return False
                todo.append((held, known))
        for one in matched:
            one.renew()
        self._places.update(places)
        self._given |= given
        return True


_MUTABLE = frozenset({Instance, Seq, Mapping})
"""What writes can tell one object from an equal one by."""


def _has_class(value: Any) -> bool:
    """Whether a value is an object of the program: a lone list or layer equals too many others."""
    return type(value) is Instance and value.cls is not None


def _content(value: Any) -> dict[str, Any]:
    """What later writes can change of an object."""
    return {name: _apart(getattr(value, name)) for name in _WRITTEN.get(type(value), ())}


def _apart(held: Any) -> Any:
    return held.copy() if type(held) is dict or type(held) is list else held


_WRITTEN = {
    Instance: ("attrs", "owner", "complete"),
    Seq: ("items", "elem", "owner", "name", "data_sized"),
    Mapping: ("items", "rest", "owner", "name"),
    Either: ("options",),
}
