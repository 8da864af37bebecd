"""The walk's core: frames, events, truth of values, branches and refinement. Statements and expressions build on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import CERTAIN, LIKELY, POSSIBLE, Event, Hypothesis, Step, Use
from tsdyn_lint.infer.frames import Env, Frame
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
    Tensor,
    Unknown,
    Value,
    either,
    options,
    sources,
)
from tsdyn_lint.resolve import Assigned, Class, Function, Module, Program
from tsdyn_lint.torchdata.load import TorchData

_SCRIPT = frozenset({Engine.SCRIPT})
BUDGET = 400_000
"""Expressions and statements walked from one entry point before it is given up."""


ANY, GUESS, FIRST = 1, 2, 4
"""What a call touches: attributes of unknown names; guesses about arguments, which uses elsewhere prove or refute; and
from `FIRST` on a bit for each name.
"""


@dataclass(slots=True)
class Notes:
    """What a call did that others may have to do with.

    `touched`: names of attributes that it read or set, of whatever object, a bit for each. `told`: its events.
    `askers`: calls whose arguments turned any of these on.
    """

    touched: int = 0
    told: set[Event] = field(default_factory=set)
    askers: set[cst.CSTNode] = field(default_factory=set)

    def add(self, inner: Notes) -> None:
        self.touched |= inner.touched
        self.told |= inner.told
        self.askers |= inner.askers


class OutOfBudget(Exception):
    """An entry point costs more than it is worth; what it gave so far is kept."""


class Core:
    """State of one walk over a program. Later classes add statements, expressions and calls to it."""

    def __init__(self, program: Program, torch: TorchData, wanted: Callable[[str], bool]) -> None:
        self.program, self.torch = program, torch
        self._named = wanted
        self._wanted: dict[str, bool] = {}
        self.events: dict[Any, Event] = {}
        self.writes: list[Event] = []
        """Those of them that write state."""
        self.muted = 0
        self.weak = 0
        """Depth of branches and loops, in all frames, whose writes may not happen."""
        self.rebuilt: set[tuple[int, str]] = set()
        """Attributes, by owner and name, that this call of the entry has surely set on the way to the place being
        walked, before anything read them.
        """
        self.filled: dict[tuple[int, str], tuple[Instance, Value]] = {}
        """Attributes that were None, by owner and name, and the tensors that this call surely set them to."""
        self.steps = 0
        self._checks: dict[int, tuple[bool, bool]] = {}
        """Each `if` met: whether it does no more than check something, and whether a capture notes that."""
        self.frame: Frame = None  # type: ignore[assignment]  # set by `inside` before anything is walked
        self.part: cst.CSTNode | None = None
        """What is read to be called, or for an attribute of it: the larger expression tells what that breaks."""
        self._module_values: dict[tuple[int, str], Value] = {}
        self._shared: dict[int, Value] = {}
        """Values of module and class level by identity."""
        self.sized_mark: Event | None = None
        """The source of sizes that depend on data."""
        self.tracked: dict[tuple[int, str], Event | None] = {}
        """State that calls write: (owner, name) -> the event of its reads. An entry that writes is walked twice."""
        self.reads: dict[str, list[Event]] = {}
        """The events of `tracked` by the name of the state, whoever owns it."""
        self.places: set[cst.CSTNode] | None = None
        """The places of all `reads`, until one is added or taken back."""
        self.elsewhere: set[cst.CSTNode] = set()
        """Places that read watched state on the other side of a branch around the place being walked."""
        self.notes = Notes()
        """What is to be known of the call being walked when its answer is used again."""
        self.written = 0
        """Names of attributes that this call of the entry has set, or changed what they hold, a bit for each."""
        self._bits: dict[str, int] = {}
        self.closures: list[Env] = []
        """Scopes that functions were defined in: they hold those, which hold them."""

    def release(self) -> None:
        """Lets go of all it holds, some of which holds itself: to find that among the nodes takes longer."""
        for env in self.closures:
            env.vars.clear()
        vars(self).clear()

    def wanted(self, dotted: str) -> bool:
        """Whether calls of that name are worth an event: a rule names it, or Dynamo is known to refuse it."""
        known = self._wanted.get(dotted)
        if known is None:
            known = self._wanted[dotted] = self._named(dotted) or self.refused(dotted)
        return known

    def refused(self, dotted: str) -> bool:
        """Whether Dynamo of this torch breaks at every call of that name.

        Operators whose output or shape depends on data are left to the events that look at their arguments.
        """
        return self.torch.dynamo_call(dotted) in ("skip", "refuse") and not self.torch.tags(dotted)

    # --- events

    def emit(
        self,
        kind: str,
        node: cst.CSTNode,
        on: Value | None = None,
        confidence: int = CERTAIN,
        sub: str = "",
        **facts: Any,
    ) -> Event | None:
        """Record an event at `node`; `on` is the value it rests on, whose hypotheses it inherits."""
        if self.muted:
            return None
        frame = self.frame
        if "target" in facts and kind in ("call", "method"):
            facts["refused"] = self.refused(facts["target"])
        hypotheses = frozenset(h for h in map(_hypothesis, options(on)) if h) if on is not None else frozenset()
        confidence = min(confidence, frame.confidence)
        asked = None
        if frame.asked is not None and facts.get("refused"):
            self.notes.askers.add(frame.asked.node)
            if frame.asked.caller.module is not frame.function.module:
                asked = frame.asked
        key = _key(kind, node, sub, asked)
        known = self.events.get(key)
        if known is None:
            known = self.events[key] = Event(
                kind, node, frame.function, frame.stack, frame.entry, facts, [], confidence, hypotheses,
                frame.block, frame.repeated, frame.engines, frame.sides,
                asked, frame.apart,
            )  # fmt: skip
            if kind == "write":
                self.writes.append(known)
            self.notes.told.add(known)
            return known
        self.notes.told.add(known)
        if frame.engines <= _SCRIPT and not known.engines <= _SCRIPT:
            surer = False  # what TorchScript reaches says nothing of the other captures
        elif known.engines <= _SCRIPT and not frame.engines <= _SCRIPT:
            known.confidence, surer = 0, True
        else:
            surer = confidence > known.confidence or bool(known.hypotheses and not hypotheses)
        if surer:
            known.stack, known.entry, known.facts = frame.stack, frame.entry, {**known.facts, **facts}
            guessed = any(not h.confirmed for h in known.hypotheses)  # it was only as sure as what it rested on
            known.confidence = confidence if guessed else max(confidence, known.confidence)
            known.hypotheses, known.sides = hypotheses, frame.sides
        known.engines |= frame.engines
        known.repeated |= frame.repeated
        return known

    def event_at(self, kind: str, node: cst.CSTNode, sub: str = "") -> Event | None:
        """The event of that kind that was recorded at `node`."""
        return self.events.get(_key(kind, node, sub))

    def use(self, value: Value, kind: str, node: cst.CSTNode) -> None:
        """Tell the reads behind `value` that it is used in this way."""
        if self.muted or not value.src and type(value) is not Either:
            return
        for event in sources(value):
            if event.kind != "data-size":
                self.used(event, kind, node)

    def used(self, event: Event, kind: str, node: cst.CSTNode) -> None:
        frame = self.frame
        for use in event.uses:
            if use.kind == kind and use.node is node:
                use.confidence = max(use.confidence, frame.confidence)
                return
        event.uses.append(Use(kind, node, frame.function, frame.confidence))

    def accumulated(self, tensor: Tensor, node: cst.CSTNode) -> None:
        """A tensor changed in place by another: one made of Python values keeps the change between calls of a trace."""
        if tensor.literal is not None and not self.muted:
            self.used(tensor.literal, "accumulate", node)

    def track(self, owner: int, name: str, value: Value, node: cst.CSTNode) -> Value:
        """`value`, read from state that calls write: marked, so that its uses are seen."""
        key = (owner, name)
        if self.muted or key not in self.tracked or key in self.rebuilt:
            return value
        event = self.tracked[key]
        if event is None:
            frame = self.frame
            event = self.tracked[key] = Event(
                "state-read", node, frame.function, frame.stack, frame.entry, {"nodes": set()}
            )
            self.reads.setdefault(name, []).append(event)
        if node not in event.facts["nodes"]:
            event.facts["nodes"].add(node)
            self.places = None
        mark = frozenset([event])
        if isinstance(value, Const):
            return Const(value.value, True, value.src | mark)
        if isinstance(value, Scalar):
            return Scalar(value.type, value.origin, value.src | mark)
        if isinstance(value, Unknown):
            return Unknown(value.src | mark)
        event.facts["opaque"] = True
        return value

    def only_asked(self, node: cst.CSTNode) -> None:
        """What is asked about a piece of state (its type, whether it is there at all) is no read of its value."""
        if type(node) is cst.Attribute and node.attr.value == "data":
            node = node.value
        if type(node) is cst.Attribute:
            for event in self.reads.get(node.attr.value, ()):
                event.facts["nodes"].discard(node)
                self.places = None

    def read_kinds(self, owner: int, name: str) -> frozenset[str]:
        """How a piece of state is used by those who read it; "value" where it is more than a number."""
        event = self.tracked.get((owner, name))
        if event is None or not event.facts["nodes"]:
            return frozenset()
        return event.use_kinds | ({"value"} if event.facts.get("opaque") else frozenset())

    def unset(self, name: str, left: frozenset[Engine]) -> Const:
        """None, as a default that is replaced only in code that the captures `left` do not reach."""
        frame = self.frame
        mark = Event("unset", cst.Name(name), frame.function, frame.stack, frame.entry, {"name": name}, engines=left)
        return Const(None, True, frozenset([mark]))

    def needs_value(self, value: Value, node: cst.CSTNode) -> None:
        """Something done with `value` that cannot be done with None: the first of its kind is told."""
        if self.muted or type(value) is not Const and type(value) is not Either:
            return
        for option in options(value):
            if isinstance(option, Const) and option.value is None and option.src:
                for mark in option.src:
                    if mark.kind == "unset" and mark.engines & self.frame.engines and not mark.uses:
                        self.used(mark, "none", node)
                        with self.under(engines=self.frame.engines & mark.engines):
                            self.emit("unset-use", node, confidence=LIKELY, name=mark.facts["name"])

    # --- names

    def touch(self, name: str) -> None:
        """Notes that the call being walked reads or sets an attribute of that name."""
        self.notes.touched |= self._bits.get(name) or self.bit(name)

    def writes_to(self, name: str) -> None:
        """Notes that an attribute of that name is set, or what it holds changed."""
        self.touch(name)
        if not self.muted:
            self.written |= self.bit(name)

    def bit(self, name: str) -> int:
        """What stands for an attribute's name among those touched."""
        return self._bits.setdefault(name, FIRST << len(self._bits))

    def module_value(self, module: Module, name: str) -> Value | None:
        """The value of a module-level name; None if the module does not bind it."""
        key = (id(module), name)
        if key in self._module_values:
            return self._module_values[key]
        self._module_values[key] = UNKNOWN  # a cycle of assignments ends here
        found = self.program.lookup(module, name)
        value = None if found is None else self.definition_value(found, module, name)
        if value is None:
            del self._module_values[key]
        else:
            self._module_values[key] = self.share(value)
        return value

    def share(self, value: Value) -> Value:
        """Notes a value as one that all who meet it have in common."""
        for one in (value, *options(value)):
            self._shared[id(one)] = one
        return value

    def definition_value(self, found: Any, module: Module, name: str = "") -> Value:
        """A definition of the program as a value."""
        if isinstance(found, str):
            return Outside(found)
        if isinstance(found, Function):
            return Func(found)
        if isinstance(found, Class):
            return ClassRef(found)
        if isinstance(found, Module):
            return ModuleRef(found)
        if isinstance(found, Assigned):
            return self.assigned_value(found, found.module, name)
        return UNKNOWN

    def assigned_value(
        self, found: Assigned, module: Module, name: str, cls: Class | None = None, owner: str = "global"
    ) -> Value:
        """What a module-level or class-level assignment holds; mutable containers are marked as shared."""
        if not found.values:
            return self.annotated(found.annotation, module) if found.annotation is not None else UNKNOWN
        function = _level(module, cls)
        with self.inside(Frame(function, Env(module))), self.quietly():
            if cls is not None:
                for other, slot in cls.assigned.items():
                    if (
                        other != name
                        and slot is not found
                        and len(slot.values) == 1
                        and not isinstance(slot.values[0], cst.Call)
                    ):
                        self.frame.env.vars[other] = self.expr(slot.values[0])
            values = [self.expr(v) for v in found.values[:4]]
        for value in values:
            if isinstance(value, (Seq, Mapping)):
                value.owner, value.name = owner, name
            elif isinstance(value, Instance):
                value.owner = owner
        return either(values)

    def annotated(self, annotation: cst.CSTNode | None, module: Module) -> Value:
        raise NotImplementedError

    def expr(self, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def changed(self, touched: int) -> None:
        raise NotImplementedError

    # --- frames and certainty

    def inside(self, frame: Frame) -> AbstractContextManager[None]:
        """Walk in another frame."""
        return _Inside(self, frame)

    def quietly(self) -> AbstractContextManager[None]:
        """Walk without events."""
        return _Quietly(self)

    def quiet(self, node: cst.CSTNode) -> Value:
        """The value of an expression, without events."""
        self.muted += 1
        try:
            return self.expr(node)
        finally:
            self.muted -= 1

    def under(
        self,
        confidence: int | None = None,
        engines: frozenset[Engine] | None = None,
        block: str = "",
        weak: bool = False,
    ) -> AbstractContextManager[None]:
        """Walk a part that is reached only sometimes, by some captures, or in a block Dynamo cannot resume in."""
        return _Under(self, confidence, engines, block, weak)

    # --- truth

    def flag(self, value: Value) -> Flag | None:
        """The captures that a test is true in, where that is what it says: a flag, or one where paths met that
        else give False (`is_available() and is_compiling()`).
        """
        if type(value) is Flag:
            return value
        if type(value) is Either:
            flags = [v for v in value.options if isinstance(v, Flag)]
            rest = [v for v in value.options if not isinstance(v, Flag)]
            if flags and all(isinstance(v, Const) and not v.value for v in rest):
                may = frozenset[Engine]().union(*(f.may for f in flags))
                return Flag(may, frozenset[Engine]().union(*(f.sure for f in flags)), value.src)
        return None

    def truth(self, value: Value) -> tuple[bool | None, bool]:
        """Whether a value is true, and whether that is certain (a default is not)."""
        if type(value) is Const:
            return bool(value.value), not value.soft
        if isinstance(value, (Func, ClassRef, Method, Partial, ModuleRef)):
            return True, True
        if type(value) is Instance:
            if (
                value.cls is not None
                and not self.program.has_member(value.cls, "__len__")
                and not self.program.has_member(value.cls, "__bool__")
            ):
                return True, True
            return (True, True) if value.is_layer else (None, False)
        if type(value) is Seq and value.items is not None and value.owner == "local":
            return bool(value.items), value.kind == "tuple"
        if type(value) is Either:
            seen = [self.truth(v) for v in value.options]
            for option, (known, _) in zip(value.options, seen, strict=False):
                if isinstance(option, Const) and option.soft:
                    return known, False
            first = seen[0][0]
            if first is not None and all(known == first for known, _ in seen):
                return first, all(hard for _, hard in seen)
        return None, False

    def test(self, value: Value, node: cst.CSTNode, form: str, **facts: Any) -> None:
        """`value` decides a branch at `node`: a tensor breaks there, a number read from one is told of it."""
        for option in options(value):
            if type(option) is Tensor:
                if option.hypothesis is not None and not option.hypothesis.confirmed and not option.intermediate:
                    option.hypothesis.contradicted = True  # a bare `if argument:` is a flag or an optional
                    continue
                sure = CERTAIN if value is option else self.mixed(value)
                if any(isinstance(o, Const) and o.soft for o in options(value)):
                    sure = POSSIBLE  # the default decides (`if mask:` with None), and no tensor
                self.emit(
                    "branch",
                    node,
                    option,
                    sure,
                    form=form,
                    test_kind="tensor",
                    origin=option.origin,
                    numpy=option.numpy,
                    **facts,
                )
            elif type(option) is Scalar and option.origin in ("size", "rank", "grad", "data", "random", "state"):
                sized = any(event.kind == "data-size" for event in option.src)
                self.emit(
                    "branch", node, option, sub=option.origin, form=form, test_kind=option.origin, sized=sized, **facts
                )
        use = "raise" if facts.get("raises_only") else form if form in ("assert",) else "branch"
        self.use(value, use, node)

    def mixed(self, value: Value) -> int:
        """Confidence that a value is a tensor when only some of its alternatives are."""
        rest = [v for v in options(value) if not isinstance(v, Tensor)]
        if all(isinstance(v, Const) and v.value is None for v in rest):
            return CERTAIN
        if all(isinstance(v, (Const, Scalar)) for v in rest):
            return LIKELY
        return POSSIBLE

    # --- tensors among values

    def tensor(self, value: Value) -> Tensor | None:
        """The tensor that a value is or may be."""
        if type(value) is Tensor:
            return value
        if type(value) is Either:
            for option in value.options:
                if type(option) is Tensor:
                    return option
        return None

    def confirm(self, value: Value) -> None:
        """A use that only tensors have."""
        for option in options(value):
            if isinstance(option, Tensor) and option.hypothesis is not None:
                option.hypothesis.proved = True

    def hint(self, value: Value) -> None:
        """A use that points to a tensor without proving one."""
        for option in options(value):
            if isinstance(option, Tensor) and option.hypothesis is not None:
                option.hypothesis.hinted = True

    def contradict(self, value: Value) -> None:
        """A use that tensors do not have."""
        for option in options(value):
            if isinstance(option, Tensor) and option.hypothesis is not None:
                option.hypothesis.contradicted = True

    def doubtful(self, value: Value) -> bool:
        """Whether a value is taken for a tensor without any evidence so far."""
        guesses = [h for h in map(_hypothesis, options(value)) if h is not None and not h.confirmed]
        for guess in guesses:
            for leaf in guess.leaves:
                leaf.doubted = True
        return bool(guesses)


# Classes, as generators cost several times as much and these are entered more often than anything else.


class _Inside:
    __slots__ = ("before", "core", "frame")

    def __init__(self, core: Core, frame: Frame) -> None:
        self.core, self.frame = core, frame

    def __enter__(self) -> None:
        self.before, self.core.frame = self.core.frame, self.frame

    def __exit__(self, *_: object) -> None:
        self.core.frame = self.before


class _Quietly:
    __slots__ = ("core",)

    def __init__(self, core: Core) -> None:
        self.core = core

    def __enter__(self) -> None:
        self.core.muted += 1

    def __exit__(self, *_: object) -> None:
        self.core.muted -= 1


class _Under:
    __slots__ = ("block", "confidence", "core", "engines", "frame", "rebuilt", "saved", "weak")

    def __init__(
        self, core: Core, confidence: int | None, engines: frozenset[Engine] | None, block: str, weak: bool
    ) -> None:
        self.core, self.confidence, self.engines, self.block, self.weak = core, confidence, engines, block, weak

    def __enter__(self) -> None:
        self.frame = frame = self.core.frame
        self.saved = frame.confidence, frame.engines, frame.blocks, frame.uncertain
        if self.confidence is not None:
            frame.confidence = min(frame.confidence, self.confidence)
        if self.engines is not None:
            frame.engines = self.engines
        if self.block:
            frame.blocks = (*frame.blocks, self.block)
        if self.weak:
            frame.uncertain += 1
            self.core.weak += 1
            self.rebuilt, self.core.rebuilt = self.core.rebuilt, set(self.core.rebuilt)

    def __exit__(self, *_: object) -> None:
        frame = self.frame
        if self.weak:
            self.core.weak -= 1
            self.core.rebuilt = self.rebuilt
        frame.confidence, frame.engines, frame.blocks, frame.uncertain = self.saved


def _key(kind: str, node: cst.CSTNode, sub: str = "", asked: Step | None = None) -> tuple[str, str, int, int]:
    """What an event is one of its own by."""
    return kind, sub, id(node), id(asked.node) if asked is not None else 0


def _hypothesis(value: Value) -> Hypothesis | None:
    return value.hypothesis if isinstance(value, Tensor) else None


def _level(module: Module, cls: Class | None) -> Function:
    """A stand-in function for code at module or class level."""
    node = cst.Lambda(params=cst.Parameters(), body=cst.Name("None"))
    return Function(cls.qualname if cls else "<module>", node, module)
