"""What the interpreter of `__init__` runs in: frames, the ways out of a block, and what its parts ask of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod

import libcst as cst

from tsdyn_lint.resolve import Class, Function, Module, Program
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.pyvalues import (
    Hook,
    Inst,
    Py,
)

MAX_DEPTH = 14
MAX_STEPS = 30_000
MAX_ITEMS = 64


class Return(Exception):
    def __init__(self, value: Py) -> None:
        self.value = value


class Jump(Exception):
    """`break` or `continue`."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Raised(Exception):
    """The path ends in `raise`."""


class TooMuch(Exception):
    """The constructor does more than the analysis is ready to follow."""


class Frame:
    """One call: its locals, the function (for names and `super`), and the instance under construction."""

    __slots__ = ("locals", "function", "module", "self_value")

    def __init__(self, function: Function | None, module: Module, self_value: Inst | None = None) -> None:
        self.locals: dict[str, Py] = {}
        self.function, self.module, self.self_value = function, module, self_value


class Interpreter(ABC):
    """The state of a builder, and the steps that one part of it needs of another."""

    def __init__(self, program: Program, data: ScriptData) -> None:
        self.program, self.data, self.returns_tensor = program, data, data.returns_tensor
        self._globals: dict[tuple[str, str], Py] = {}
        self._depth = 0
        self._steps = 0
        self._unsure = 0
        self._at: Hook | None = None

    @abstractmethod
    def eval(self, node: cst.CSTNode, frame: Frame) -> Py:
        """The value of an expression."""

    @abstractmethod
    def store(self, target: cst.CSTNode, value: Py, frame: Frame) -> None:
        """Assigns to a target of any kind."""

    @abstractmethod
    def call_function(
        self,
        function: Function,
        args: list[Py],
        kwargs: dict[str, Py],
        bound: Py | None = None,
        soft: bool = False,
        missing_ok: bool = False,
    ) -> Py:
        """What a function of the program returns."""

    @abstractmethod
    def construct(self, cls: Class, args: list[Py], kwargs: dict[str, Py], complete: bool = True) -> Inst:
        """An instance of a module class of the program."""
