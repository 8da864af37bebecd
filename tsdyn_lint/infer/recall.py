"""Calls without events that are walked once for equal arguments: what one did is done again to the objects at hand."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tsdyn_lint.infer.heap import Heap, Opaque, Summary, recall
from tsdyn_lint.infer.statements import Statements
from tsdyn_lint.infer.values import Instance, Scalar, Value, key
from tsdyn_lint.resolve import Class, Function

DEPTH = 28
"""Calls inside of each other that are followed."""
_FEW_STEPS = 60
"""A walk of fewer steps costs less than to compare what it starts from."""
_OFTEN = 3
_NEVER = Summary((), (), None, (), 0)


@dataclass(slots=True)
class Args:
    """Arguments of a call.

    `rest`: an element of a starred value of unknown length; `open`: keywords of unknown names.
    """

    pos: list[Value] = field(default_factory=list)
    kw: dict[str, Value] = field(default_factory=dict)
    rest: Value | None = None
    open: bool = False

    def get(self, index: int, name: str = "") -> Value | None:
        """The argument at a position or under a name; None if it is not given."""
        if index < len(self.pos):
            return self.pos[index]
        return self.kw.get(name) if name else None

    def all(self) -> list[Value]:
        return [*self.pos, *self.kw.values(), *([self.rest] if self.rest is not None else [])]

    def after(self, *first: Value) -> Args:
        """The same call with other leading arguments before these."""
        return Args([*first, *self.pos], self.kw, self.rest, self.open)


class Recall(Statements):
    """`once` walks, or does again what an equal walk did."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.training: Value = Scalar("bool", "training")
        """What `self.training` of a module is."""
        self._active: list[Any] = []
        """The calls in progress."""
        self._instances: dict[Any, Instance] = {}
        """Objects that constructor calls made, by `instance_key`."""
        self._leaves: dict[int, tuple[Value, Any]] = {}
        self._summaries: dict[Any, Summary | None] = {}
        self._short: dict[Class | Function, int] = {}
        """How often in a row a walk cost less than to recall it would."""
        self._deepest = 0
        self._relies_on = DEPTH
        """The outermost call in progress that was a reason not to follow another one."""

    def start_afresh(self) -> None:
        """Ready for the next entry point, also after an error in the middle of the last one."""
        self.steps = self.muted = self._deepest = 0
        self._relies_on = DEPTH
        self._active.clear()
        self._instances.clear()

    def once(self, what: tuple[Any, ...], args: Args, level: int, walk: Callable[[], Value]) -> Value:
        """The result of a walk without events. `level`: the number of calls in progress that have no part in it."""
        if self._short.get(what[0], 0) >= _OFTEN:
            return walk()
        heap = Heap(self._shared, self._leaves)
        try:
            tokens = heap.take([*args.pos, *args.kw.values(), args.rest])
            at = (what, type(self.training), tokens, tuple(heap.sections))
            known = self._summaries.get(at, _NEVER)
        except (Opaque, TypeError):
            return walk()
        if known is _NEVER:
            return self._first(what[0], at, heap, level, walk)
        if known is None or len(self._active) + known.depth >= DEPTH:
            return walk()
        result, objects = recall(known, heap.objects)
        for number, is_open, rest in known.modules:
            made = objects[number]
            self._instances[instance_key(made.cls, Args(list(made.args), made.kwargs), is_open, rest)] = made
        self._deepest = max(self._deepest, len(self._active) + known.depth)
        return result

    def _first(self, what: Class | Function, at: Hashable, heap: Heap, level: int, walk: Callable[[], Value]) -> Value:
        """The walk, and the summary of it where it does not rest on the calls around it."""
        deepest, relied, steps, instances = self._deepest, self._relies_on, self.steps, len(self._instances)
        self._deepest, self._relies_on = len(self._active), DEPTH
        result = walk()
        if self.steps - steps < _FEW_STEPS:
            self._short[what] = self._short.get(what, 0) + 1
        else:
            self._short[what] = 0
            if self._relies_on >= level:
                self._summaries[at] = self._summary(heap, result, instances)
        self._deepest, self._relies_on = max(deepest, self._deepest), min(relied, self._relies_on)
        return result

    def _summary(self, heap: Heap, result: Value, instances: int) -> Summary | None:
        """What a walk did that began with these objects and this many instances; None where that cannot be told."""
        given = len(heap.objects)
        try:
            changed = heap.after()
            (token,) = heap.take([result], by_content=False)
        except Opaque:
            return None
        modules = []
        for memo, instance in reversed([*islice(reversed(self._instances.items()), len(self._instances) - instances)]):
            number = heap.number(instance)
            if number is not None:
                modules.append((number, memo[3], memo[4]))
        return Summary(changed, tuple(heap.sections[given:]), token, tuple(modules), self._deepest - len(self._active))


def instance_key(cls: Class | None, args: Args, is_open: bool, rest: bool) -> Hashable:
    """What the attributes of a new object may depend on: constructor calls with equal keys make one object."""
    return id(cls), tuple(key(v) for v in args.pos), tuple((k, key(v)) for k, v in args.kw.items()), is_open, rest
