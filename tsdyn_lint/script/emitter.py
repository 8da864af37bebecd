"""What the parts of the checker of a body share: problems, descriptions, names, and what can be iterated."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.resolve import Class, Function
from tsdyn_lint.script import types as t
from tsdyn_lint.script.compiler import Compiler
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Cls, Const, Ext, Fn, Inst, Map, Obj, Seq
from tsdyn_lint.script.signatures import Compiled, is_static_forward
from tsdyn_lint.script.sugar import REFUSED, UNKNOWN, V

LEGACY = frozenset(
    f"{kind}Tensor"
    for kind in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Char", "Bool", "BFloat16")
)
Refine = list[tuple[str, t.Type]]


class Emitter(ABC):
    """One function as it is compiled: its variables, and the values that its parts exchange."""

    def __init__(self, compiler: Compiler, compiled: Compiled, inst: Inst | None) -> None:
        self.compiler, self.compiled, self.inst = compiler, compiled, inst
        self.function = compiled.function
        self.data = compiler.data
        self.scopes: list[dict[str, V]] = [{}]
        self.annotated: dict[str, t.Type] = {}
        self.none_parameters: set[str] = set()
        self.raising = False
        """Whether what is read is the message of an error."""
        self.undecided = False
        """Whether the condition just read is one that the compiler folds, by a type that is not known here."""

    # --- problems and descriptions

    def fail(self, cause: str, node: cst.CSTNode, confidence: int = CERTAIN, once: object = None, **facts: Any) -> V:
        if is_static_forward(self.function):
            facts["module"] = self.function.node.params.params[0].name.value
            self.compiled.refused = True  # its callers, who pass it no module, do nothing wrong
        self.compiler.report(cause, node, self.function, confidence, once, **facts)
        return REFUSED

    @property
    def place(self) -> Class | Function:
        """The class, or the function outside of one, whose author mends what stands here."""
        return self.function.cls or self.function

    def misread(self, value: V, cause: str, node: cst.CSTNode, confidence: int = CERTAIN, **facts: Any) -> V:
        """A use that shows a parameter without an annotation to be no tensor, though it is taken for one."""
        if value.origin in self.compiled.untyped and value.type is t.TENSOR:
            facts["untyped"] = value.origin
            self.compiled.misread.add(value.origin)
            self.forgive(value.origin)
        return self.fail(cause, node, confidence, **facts)

    def unrefined(self, value: V, node: cst.CSTNode, kind: t.Type, op: str, soft: bool | None = None) -> V:
        """A value that may be None, used as if it were not: where it is read again, the cause is the same."""
        confidence = LIKELY if (value.soft if soft is None else soft) else CERTAIN
        once = (self.function, value.origin) if value.origin else None
        if kind is t.NONE and value.origin:
            self.spoil(value)
        return self.fail("optional", node, confidence, once, type=str(kind), op=op)

    def misfit(self, owner: V, node: cst.CSTNode, confidence: int, found: str) -> V:
        """An element of another type than its container's. One that began as an empty literal then has none: what
        else is put into it, or taken out, is a consequence."""
        if owner.word == "empty" and owner.origin:
            self.forgive(owner.origin)
        return self.fail(
            "element-type", node, confidence, type=str(owner.type), found=found, empty=owner.word == "empty"
        )

    def spoil(self, value: V) -> None:
        """A variable or attribute that is None, and was used as something else, has no type from here on."""
        if value.owner is None:
            self.forgive(value.origin)
        elif isinstance(value.owner.py, Inst):
            self.spoil_attribute(value.owner.py, value.origin.rpartition(".")[2])

    def spoil_attribute(self, inst: Inst, name: str) -> None:
        if self.compiler.least > POSSIBLE:
            self.compiler.spoiled.add((inst, name))

    def forgive(self, name: str) -> None:
        """A variable whose type was reported has none from here on: what is made of it is a consequence."""
        if self.compiler.least > POSSIBLE:
            self.replace(name, REFUSED)

    def replace(self, name: str, value: V) -> None:
        for scope in self.scopes:
            if name in scope:
                scope[name] = value

    def source(self, node: cst.CSTNode) -> str:
        text = _text(node, self.function)
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
                self._no_value("range", node)
            return t.UNKNOWN
        if value.word == "global":
            name = value.origin or self.source(node)
            self.fail("global", node, once=(self.place, name), name=name, type=self.describe(value))
            return t.UNKNOWN
        if isinstance(py, Ext) and py.dotted.startswith("torch.") and py.dotted.rpartition(".")[2] in LEGACY:
            self._no_value(py.dotted, node)
        elif value.word == "method":
            self._no_value(f"method {value.const}", node)
        elif isinstance(py, (Fn, Cls)) or isinstance(py, Ext) and self._known_function(py.dotted):
            self._no_value(self.describe(value), node)
        return t.UNKNOWN

    def _no_value(self, what: str, node: cst.CSTNode) -> None:
        self.fail("not-a-value", node, once=(self.function, what), what=what)

    def _known_function(self, dotted: str) -> bool:
        if dotted.startswith("builtins."):
            return hasattr(builtins, dotted[9:])
        return self.data.is_function(dotted)

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


def row(values: list[V]) -> V:
    if all(v.type is not None for v in values):
        return V(t.Tuple(v.type for v in values if v.type is not None), items=values)
    return V(None, items=values)


def _text(node: cst.CSTNode, function: Function) -> str:
    return " ".join(function.module.tree.places.text(node).split())
