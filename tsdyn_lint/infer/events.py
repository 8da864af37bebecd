"""What the walk reports: one event per thing a capture may trip over, with the values and the call path that led
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Confidence, Engine
from tsdyn_lint.resolve import Function, Module

ALL_ENGINES = frozenset(Engine)
CERTAIN, LIKELY, POSSIBLE = 3, 2, 1
CONFIDENCE = {CERTAIN: Confidence.CERTAIN, LIKELY: Confidence.LIKELY, POSSIBLE: Confidence.POSSIBLE}


@dataclass(eq=False)
class Hypothesis:
    """An un-annotated parameter taken for a tensor: evidence elsewhere confirms or contradicts it.

    `parts`: those of the values that this one was made from, of which one tensor is enough.
    """

    name: str
    parts: frozenset[Hypothesis] = frozenset()
    proved: bool = False
    contradicted: bool = False
    hinted: bool = False
    """Used as numbers and tensors are, where a number needs no such use: `int(n)`, a length as a slice bound."""
    mapping: bool = False
    """Used as a dict."""
    doubted: bool = False
    """The walk made a choice that rested on it before there was any evidence."""

    @property
    def confirmed(self) -> bool:
        return self.proved or any(part.proved for part in self.parts)

    @property
    def refuted(self) -> bool:
        return self.contradicted or bool(self.parts) and all(part.contradicted for part in self.parts)

    @property
    def leaves(self) -> frozenset[Hypothesis]:
        """The parameters it is about."""
        return self.parts or frozenset([self])


Sides = tuple[tuple[cst.CSTNode, bool], ...]
"""The undecided tests around a place in its function, outermost first, each with the side that leads there."""


@dataclass(frozen=True)
class Step:
    """One call on the way from the entry point: the caller and the call expression in its tree.

    `skips`: what keeps Dynamo from resuming after a break in the callee, as in `Event.skips`.
    `sides`: the branches around the call, as in `Event.sides`.
    """

    caller: Function
    node: cst.CSTNode
    skips: str = ""
    sides: Sides = ()

    @property
    def module(self) -> Module:
        return self.caller.module

    @property
    def scope(self) -> str:
        return self.caller.qualname


@dataclass(frozen=True)
class Place:
    """Code of a function, and the branches of the function that lead there."""

    function: Function
    node: cst.CSTNode
    sides: Sides


@dataclass(eq=False)
class Use:
    """A later use of the value that an event read. `confidence`: that the code is reached which uses it."""

    kind: str
    node: cst.CSTNode
    function: Function
    confidence: int = CERTAIN


@dataclass(eq=False)
class Event:
    """`kind` and `facts` are what rules match; the walk may still add `uses` until it ends.

    `skips` says why Dynamo cannot resume after a break here and drops the whole frame: the statement it is in ("loop",
    "try", "with"), what it is about ("rnn", "script") or "".
    `sides` are the branches of its function that lead to the line.
    `asked` is the call in another file whose arguments turn the line on, which its defaults leave off.
    `apart`: it is in a comprehension, which up to Python 3.11 is a frame that Dynamo tries on its own.
    `engines` are the captures that reach the line (`torch.compiler.is_compiling()` and its like cut some off).
    """

    kind: str
    node: cst.CSTNode
    function: Function
    stack: tuple[Step, ...]
    entry: str
    facts: dict[str, Any] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    confidence: int = CERTAIN
    hypotheses: frozenset[Hypothesis] = frozenset()
    skips: str = ""
    repeated: bool = False
    engines: frozenset[Engine] = ALL_ENGINES
    sides: Sides = ()
    asked: Step | None = None
    apart: bool = False

    @property
    def module(self) -> Module:
        return self.function.module

    @property
    def scope(self) -> str:
        return self.function.qualname

    @property
    def use_kinds(self) -> frozenset[str]:
        return frozenset(u.kind for u in self.uses)

    @property
    def likely_uses(self) -> frozenset[str]:
        """The kinds of uses that the defaults do not rule out."""
        return frozenset(u.kind for u in self.uses if u.confidence >= LIKELY)

    @property
    def skipped(self) -> Iterator[Place]:
        """Where in their code the functions are given up that run without a graph if Dynamo breaks here."""
        if self.skips:
            yield Place(self.function, self.node, self.sides)
        yield from (Place(step.caller, step.node, step.sides) for step in self.stack if step.skips)

    @property
    def judged(self) -> int:
        """Confidence after the evidence for and against the parameters it rests on."""
        if any(h.refuted and not h.confirmed for h in self.hypotheses):
            return 0
        if any(not h.confirmed for h in self.hypotheses):
            hinted = all(h.confirmed or h.hinted or any(p.hinted for p in h.parts) for h in self.hypotheses)
            return min(self.confidence, LIKELY if hinted else POSSIBLE)
        return self.confidence
