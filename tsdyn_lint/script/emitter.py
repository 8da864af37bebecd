"""What the parts of the checker of a body share: problems, descriptions, names, and what can be iterated."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.parse import Piece
from tsdyn_lint.resolve import Function
from tsdyn_lint.script import types as t
from tsdyn_lint.script.compiler import CERTAIN, LIKELY, Compiler
from tsdyn_lint.script.pyvalues import Cls, Const, Ext, Fn, Inst, Map, Obj, Seq
from tsdyn_lint.script.sugar import REFUSED, UNKNOWN, V

LEGACY = frozenset(
    f"{kind}Tensor"
    for kind in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Char", "Bool", "BFloat16")
)
Refine = list[tuple[str, t.Type]]


class Emitter(ABC):
    """One function as it is compiled: its variables, and the values that its parts exchange."""

    def __init__(self, compiler: Compiler, function: Function, inst: Inst | None, piece: Piece) -> None:
        self.compiler, self.function, self.inst, self.piece = compiler, function, inst, piece
        self.data = compiler.data
        self.scopes: list[dict[str, V]] = [{}]
        self.annotated: dict[str, t.Type] = {}
        self.none_parameters: set[str] = set()
        self.undecided = False
        """Whether the condition just read is one that the compiler folds, by a type that is not known here."""

    # --- problems and descriptions

    def fail(self, cause: str, node: cst.CSTNode, confidence: int = CERTAIN, **facts: Any) -> V:
        self.compiler.report(cause, node, self.piece, self.function, confidence, **facts)
        return REFUSED

    def source(self, node: cst.CSTNode) -> str:
        text = _text(node, self.piece)
        return text if len(text) <= 60 else text[:57] + "..."

    def describe(self, value: V) -> str:
        if value.type is not None:
            return str(value.type)
        py = value.py
        if isinstance(py, Inst):
            return f"module {py.name}"
        if isinstance(py, Fn):
            return f"function {py.function.name}"
        if isinstance(py, Cls):
            return f"class {py.cls.name}"
        if isinstance(py, Ext):
            return py.dotted.removeprefix("builtins.")
        if isinstance(py, Obj):
            return py.name
        if isinstance(py, Const):
            return type(py.value).__name__
        if isinstance(py, Seq):
            return py.kind
        if isinstance(py, Map):
            return "dict"
        return value.word or "value"

    def type_of(self, value: V, node: cst.CSTNode) -> t.Type:
        """The value's type; what is no value is reported."""
        if value.type is not None:
            return value.type
        py = value.py
        if isinstance(py, Inst):
            return self.compiler.module_type(py)
        if value.items is not None and not value.word:
            kinds = [self.type_of(i, node) for i in value.items]
            return t.UNKNOWN if any(k is t.UNKNOWN for k in kinds) else t.Tuple(kinds)
        if value.word in ("range", "zip", "enumerate"):
            if value.word == "range":
                self.fail("not-a-value", node, what="range")
            return t.UNKNOWN
        if value.word == "global":
            self.fail("global", node, name=self.source(node), type=self.describe(value))
            return t.UNKNOWN
        if isinstance(py, Ext) and py.dotted.startswith("torch.") and py.dotted.rpartition(".")[2] in LEGACY:
            self.fail("not-a-value", node, what=py.dotted)
            return t.UNKNOWN
        if (
            isinstance(py, (Fn, Cls))
            or (isinstance(py, Ext) and self._known_function(py.dotted))
            or value.word == "method"
        ):
            self.fail(
                "not-a-value", node, what=self.describe(value) if value.word != "method" else f"method {value.const}"
            )
        return t.UNKNOWN

    def _known_function(self, dotted: str) -> bool:
        if dotted.startswith("builtins."):
            return hasattr(builtins, dotted[9:])
        return dotted in self.data.names or dotted in self.data.functions

    def find(self, name: str) -> V | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    @abstractmethod
    def expr(self, node: cst.CSTNode, hint: t.Type = t.UNKNOWN) -> V:
        """The value of an expression; `hint`: the type that is asked for."""

    @abstractmethod
    def condition(self, node: cst.CSTNode, loop: bool = False) -> tuple[bool | None, Refine, Refine]:
        """(truth if the compiler folds it, what holds where it is true, what holds where it is false)."""

    @abstractmethod
    def store(self, target: cst.CSTNode, value: V, node: cst.CSTNode) -> None:
        """Assigns to a target of any kind."""

    @abstractmethod
    def call_function(
        self, function: Function, args: list[V], keywords: dict[str, V], node: cst.CSTNode, inst: Inst | None
    ) -> V:
        """A call of a function of the program."""

    def _common(self, kinds: Sequence[t.Type]) -> t.Type:
        """The element type of a literal: what all unify to, else a union of them."""
        joined: t.Type | None = kinds[0]
        for kind in kinds[1:]:
            joined = t.unify(joined, kind) if joined is not None else None
        return t.Union(kinds) if joined is None else joined

    def one_type(self, values: Sequence[V], node: cst.CSTNode) -> None:
        """Reports elements that have no type in common."""
        kinds = [self.type_of(value, node) for value in values]
        joined: t.Type | None = kinds[0] if kinds else None
        for kind in kinds[1:]:
            joined = t.unify(joined, kind) if joined is not None else None
        if kinds and joined is None:
            self.fail(
                "mixed-container", node, what="elements", types=", ".join(sorted({self._short(k) for k in kinds}))
            )

    # --- iteration

    def static_items(self, value: V) -> list[V] | None:
        """The items of what the compiler unrolls: tuples, modules, and zip or enumerate over one of them."""
        if value.items is not None:
            return value.items
        py = value.py
        if (
            isinstance(py, Inst)
            and py.children is not None
            and py.container in ("ModuleList", "Sequential", "ParameterList", "ModuleDict")
        ):
            if py.container == "ModuleDict":
                return [V(t.STR, const=k) for k in py.children]
            return self.compiler.children(py)
        if value.type is not None and value.type.kind == "Tuple":
            return [V(a) for a in value.type.args]
        return None

    def element(self, value: V, node: cst.CSTNode) -> V:
        """What iterating gives each time, where the compiler emits a loop."""
        if value.elem is not None:
            return value.elem
        kind = value.type
        if kind is None:
            if isinstance(value.py, Inst):
                if value.py.container:
                    return UNKNOWN
                return self.fail("not-iterable", node, type=self.describe(value))
            if value.word == "global":
                self.type_of(value, node)
                return UNKNOWN
            return UNKNOWN
        if kind is t.UNKNOWN:
            return UNKNOWN
        if kind.kind == "List":
            return V(kind.args[0])
        if kind.kind == "Dict":
            return V(kind.args[0])
        if kind is t.TENSOR:
            return V(t.TENSOR)
        if kind is t.STR:
            return V(t.STR)
        if kind.kind in ("Class", "Any", "Var", "Future", "Module"):
            return UNKNOWN
        return self.fail("not-iterable", node, LIKELY if value.soft else CERTAIN, type=str(kind))

    def spread(self, value: V, node: cst.CSTNode) -> list[V] | None:
        """`*value` in a call or a literal; a list's length is not known to the compiler."""
        if value.items is not None:
            return value.items
        kind = value.type
        if value.word == "range" or isinstance(value.py, Inst):
            self.fail("unpack", node, what="not a tuple", type=self.describe(value), count="")
            return None
        if kind is None:
            return self.static_items(value)
        if kind.kind == "Tuple":
            return [V(a) for a in kind.args]
        if kind is t.UNKNOWN:
            return None
        if kind.kind == "List":
            self.fail("unsized", node, what="`*` on a list", type=str(kind))
        elif kind is t.TENSOR:
            self.fail("unpack", node, what="not a tuple", type=str(kind), count="")
        else:
            self.fail("unpack", node, what="not a tuple", type=str(kind), count="")
        return None

    def _short(self, kind: t.Type) -> str:
        return f"module {kind.extra.name}" if kind.kind == "Module" else str(kind)


def as_value(value: V) -> V:
    """A module as an element of a literal or a list: it has lost its methods, and calling it does not compile."""
    return V(py=value.py, word="sliced") if isinstance(value.py, Inst) else value


def _text(node: cst.CSTNode, piece: Piece) -> str:
    return " ".join(piece.tree.code_for_node(node).split())
