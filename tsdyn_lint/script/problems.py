"""What the compiler refuses -> problems: one for each cause, at the first of its surest places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import libcst as cst

from tsdyn_lint.resolve import Function, Program
from tsdyn_lint.script.annotations import Annotations
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.instance import Builder
from tsdyn_lint.script.pyvalues import Inst
from tsdyn_lint.torchdata.load import TorchData

CERTAIN, LIKELY, POSSIBLE = 3, 2, 1


Step: TypeAlias = tuple[Function, cst.CSTNode]
"""A call on the way: the calling function and the call."""


@dataclass(eq=False)
class Problem:
    """One thing that the compiler refuses, or that it compiles to something else than Python does.

    `cause` and `facts` choose the rule and fill its message. `stack`: (function, call node) on the way here.
    """

    cause: str
    node: cst.CSTNode
    function: Function
    facts: dict[str, Any]
    confidence: int
    stack: tuple[Step, ...]
    entry: str
    lacking: list[Inst] = field(default_factory=list)
    """The instances that lack the attribute, where that is the problem."""
    again: dict[cst.CSTNode, Function] = field(default_factory=dict)
    """Other places that meet the same cause."""

    def meet(self, node: cst.CSTNode, function: Function, stack: Sequence[Step], entry: str, confidence: int) -> None:
        """The same cause elsewhere: told of at the first of its surest places."""
        if confidence > self.confidence:
            self.confidence = confidence
            if node is not self.node:
                self.again[self.node] = self.function
                self.again.pop(node, None)
                self.node, self.function = node, function
                self.stack, self.entry = tuple(stack), entry
        elif node is not self.node:
            self.again[node] = function


class Problems:
    """The problems of one program, and the way to what is compiled now."""

    def __init__(self, program: Program, data: ScriptData, torch: TorchData) -> None:
        self.program, self.data, self.torch = program, data, torch
        self.builder = Builder(program, data)
        self.annotations = Annotations(program)
        self.problems: dict[tuple[str, object], Problem] = {}
        self.stack: list[Step] = []
        self.entry = ""
        self.called = False
        """Whether the file itself scripts the entry point."""
        self.least = CERTAIN

    def report(
        self,
        cause: str,
        node: cst.CSTNode,
        function: Function,
        confidence: int = CERTAIN,
        once: object = None,
        **facts: Any,
    ) -> None:
        """`once` names what causes the problem, where more than one line can meet it."""
        confidence = min(confidence, self.least)
        inst = facts.pop("inst", None)
        key = (cause, id(node) if once is None else once)
        problem = self.problems.get(key)
        if problem is None:
            problem = Problem(cause, node, function, facts, confidence, tuple(self.stack), self.entry)
            self.problems[key] = problem
        else:
            problem.meet(node, function, self.stack, self.entry, confidence)
        if inst is not None and self.least > POSSIBLE:
            problem.lacking.append(inst)

    def settled(self) -> list[Problem]:
        """The problems; an attribute that only instances made up here lack is just possible, one of two that the
        constructor never sets both is likely where both are compiled.
        """
        unsure: dict[Inst, set[str]] = {}
        for problem in self.problems.values():
            if problem.cause == "maybe-attribute":
                for inst in problem.lacking:
                    unsure.setdefault(inst, set()).add(problem.facts["name"])
        for problem in self.problems.values():
            name = problem.facts.get("name", "")
            if problem.cause == "maybe-attribute":
                if any(_has_rival(inst, name, unsure[inst]) for inst in problem.lacking):
                    problem.confidence = LIKELY
            elif problem.lacking and all(self._made_up(inst, name) for inst in problem.lacking):
                problem.confidence = POSSIBLE
        return list(self.problems.values())

    def _made_up(self, inst: Inst, name: str) -> bool:
        """Whether an instance without the attribute proves little: a base that subclasses complete, or one built with
        defaults where the program's own instances have it."""
        if inst.cls is None or inst not in self.builder.defaults:
            return False
        if self.program.has_subclasses(inst.cls):
            return True
        others = [i for i in self.builder.made.get(inst.cls, ()) if i not in self.builder.defaults]
        return bool(others) and all(name in i.attrs or i.open for i in others)


def _has_rival(inst: Inst, name: str, read: set[str]) -> bool:
    """Whether compiled code also reads an attribute that is never set where this one is."""
    return any(name in one and other & read or name in other and one & read for one, other in inst.rivals)
