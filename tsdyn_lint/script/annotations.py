"""Annotation expressions -> TorchScript types, in every spelling torch accepts; others are refused."""

from __future__ import annotations

import typing
from typing import Any

import libcst as cst

from tsdyn_lint.infer.instances import is_dataclass
from tsdyn_lint.parse import parsed_expression
from tsdyn_lint.resolve import Assigned, Class, Module, Program
from tsdyn_lint.resolve.symbols import dotted_name
from tsdyn_lint.script import types as t

_PLAIN = {
    "int": t.INT,
    "float": t.FLOAT,
    "bool": t.BOOL,
    "str": t.STR,
    "complex": t.COMPLEX,
    "None": t.NONE,
    "torch.Tensor": t.TENSOR,
    "torch.device": t.DEVICE,
    "torch.dtype": t.INT,
    "torch.layout": t.INT,
    "torch.memory_format": t.INT,
    "torch.Generator": t.GENERATOR,
    "torch.Stream": t.STREAM,
    "typing.Any": t.ANY,
    "torch.types.Number": t.NUMBER,
    "numbers.Number": t.NUMBER,
    "torch.nn.Parameter": t.TENSOR,
    "torch.nn.parameter.Parameter": t.TENSOR,
    "torch.qscheme": t.INT,
    "torch.FloatTensor": t.TENSOR,
    "torch.LongTensor": t.TENSOR,
    "torch.BoolTensor": t.TENSOR,
    "torch.IntTensor": t.TENSOR,
    "torch.HalfTensor": t.TENSOR,
    "torch.DoubleTensor": t.TENSOR,
    "torch.ByteTensor": t.TENSOR,
    "torch.autograd.Variable": t.TENSOR,
}
_GENERIC = {
    "list": "List",
    "typing.List": "List",
    "dict": "Dict",
    "typing.Dict": "Dict",
    "tuple": "Tuple",
    "typing.Tuple": "Tuple",
    "typing.Optional": "Optional",
    "typing.Union": "Union",
    "torch.jit.Final": "Final",
    "typing.Final": "Final",
    "typing_extensions.Final": "Final",
    "torch.jit.Future": "Future",
    "torch.futures.Future": "Future",
}
_NO_TYPES = frozenset({"typing.TypeVar", "typing.NewType", "typing.ParamSpec", "typing_extensions.TypeVar"})
_REFUSED_PREFIX = ("numpy.", "collections.", "typing.", "torch.nn.", "numbers.", "typing_extensions.", "jaxtyping.")


class Refused(Exception):
    """TorchScript has no such type; the text is what it says."""

    def __init__(self, reason: str, node: cst.CSTNode) -> None:
        super().__init__(reason)
        self.reason, self.node = reason, node


def is_interface(cls: Class) -> bool:
    """Whether the class only declares methods for TorchScript's types."""
    return any(cls.module.dotted(d.decorator) == "torch.jit.interface" for d in cls.node.decorators)


def is_plain_dataclass(cls: Class) -> bool:
    """Whether the methods that a decorator made have no source, and nothing compiled the class before."""
    return is_dataclass(cls) and not any(
        cls.module.dotted(d.decorator) == "torch.jit.script" for d in cls.node.decorators
    )


class Annotations:
    """Reads annotations of one program's modules."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._reading: set[Class] = set()

    def read(self, node: cst.BaseExpression, module: Module) -> t.Type:
        """Raises Refused."""
        if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
            return self._string(node, module)
        if isinstance(node, cst.Name) and node.value == "None":
            return t.NONE
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return t.Union([self.read(node.left, module), self.read(node.right, module)])
        if isinstance(node, cst.Subscript):
            return self._subscript(node, module)
        if isinstance(node, cst.Ellipsis):
            raise Refused("`...` in an annotation", node)
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self._named(node, module)
        raise Refused("an expression that is no type", node)

    def _string(self, node: Any, module: Module) -> t.Type:
        try:
            text = node.evaluated_value
            inner = parsed_expression(text)
        except Exception:
            return t.UNKNOWN
        return self.read(inner, module)

    def dotted(self, node: cst.BaseExpression, module: Module) -> tuple[str, Any]:
        found = self.program.resolve(node, module)
        if isinstance(found, str):
            return found, None
        if found is None:
            if isinstance(node, cst.Name):
                return self._starred(node.value, module), None
            return "", None
        return "", found

    def _starred(self, name: str, module: Module) -> str:
        """A name that a star import from outside of the program may bind."""
        for star in module.stars:
            if star == "typing" and name in typing.__all__:
                return f"typing.{name}"
        return name

    def _named(self, node: cst.BaseExpression, module: Module) -> t.Type:
        dotted, symbol = self.dotted(node, module)
        if isinstance(symbol, Class):
            return self.of_class(symbol, node)
        if isinstance(symbol, Assigned):
            value = symbol.values[0] if len(symbol.values) == 1 else None
            if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.BinaryOperation)):
                return self.read(value, symbol.module)
            if isinstance(value, cst.Call) and self.dotted(value.func, symbol.module)[0] in _NO_TYPES:
                raise Refused(f"unknown type name '{dotted_name(node)}'", node)
            return t.UNKNOWN
        if not dotted:
            return t.UNKNOWN
        plain = _PLAIN.get(dotted)
        if plain is not None:
            return plain
        generic = _GENERIC.get(dotted)
        if dotted in ("list", "tuple"):
            return t.Type(dotted)  # read, and fit for little
        if generic in ("List", "Dict", "Tuple", "Optional"):
            raise Refused(f"`{dotted.rpartition('.')[2]}` without the types it holds", node)
        if dotted == "torch.Size":
            raise Refused("torch.Size: write List[int]", node)
        if dotted in ("set", "frozenset", "object", "bytes", "type", "slice", "callable", "range"):
            raise Refused(f"unknown type name '{dotted}'", node)
        if dotted.startswith(_REFUSED_PREFIX):
            raise Refused(f"unknown type name '{dotted}'", node)
        return t.UNKNOWN

    def of_class(self, cls: Class, node: cst.BaseExpression) -> t.Type:
        outside = self.program.outside_bases(cls)
        if is_interface(cls):
            return t.Type("Interface", (), cls)
        if self.program.is_nn_module(cls):
            raise Refused(f"an nn.Module ('{cls.name}') is no TorchScript type", node)
        if is_plain_dataclass(cls):
            raise Refused(f"'{cls.name}' is a dataclass, whose methods have no source to compile", node)
        if any(b in ("typing.NamedTuple", "collections.namedtuple") for b in outside):
            if cls in self._reading:
                raise Refused(f"'{cls.name}', which holds itself", node)
            fields, kinds = [], []
            self._reading.add(cls)
            try:
                for name, slot in cls.assigned.items():
                    if slot.annotation is not None:
                        fields.append(name)
                        kinds.append(self.read(slot.annotation, cls.module))
            finally:
                self._reading.discard(cls)
            return t.Tuple(kinds, cls.name, tuple(fields))
        return t.UNKNOWN

    def _subscript(self, node: cst.Subscript, module: Module) -> t.Type:
        dotted, _ = self.dotted(node.value, module)
        kind = _GENERIC.get(dotted)
        parts = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
        if kind is None:
            if dotted.startswith("typing.") or dotted.startswith(("collections.", "typing_extensions.", "jaxtyping.")):
                raise Refused(f"unknown type constructor {dotted.rpartition('.')[2]}", node)
            if dotted in ("set", "frozenset", "type"):
                raise Refused(f"unknown type constructor {dotted}", node)
            return t.UNKNOWN
        if len(parts) == 1 and isinstance(parts[0], cst.Tuple):
            parts = [e.value for e in parts[0].elements]
        if kind == "Tuple" and any(isinstance(p, cst.Ellipsis) for p in parts):
            raise Refused("a tuple of any length (`...`)", node)
        kinds = [self.read(p, module) for p in parts]
        if kind != "Final" and any(k.kind in ("list", "tuple") for k in kinds):
            raise Refused("`list` or `tuple` without the types it holds", node)
        if kind == "List" and kinds:
            return t.List(kinds[0])
        if kind == "Dict" and len(kinds) == 2:
            if kinds[0] not in (t.STR, t.INT, t.FLOAT, t.BOOL, t.COMPLEX, t.TENSOR, t.UNKNOWN, t.DEVICE):
                raise Refused(f"a dict with keys of type {kinds[0]}", node)
            return t.Dict(kinds[0], kinds[1])
        if kind == "Tuple":
            return t.Tuple(kinds)
        if kind == "Optional" and kinds:
            return t.Optional(kinds[0])
        if kind == "Union":
            return t.Union(kinds)
        if kind == "Future" and kinds:
            return t.Type("Future", (kinds[0],))
        return kinds[0] if kinds else t.UNKNOWN
