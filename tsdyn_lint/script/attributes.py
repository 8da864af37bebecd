"""An instance's attributes -> their types as the compiler sees them, or why they have none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.nodes import children
from tsdyn_lint.resolve import Assigned, Class, Function, Program
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.init_frames import Frame
from tsdyn_lint.script.pyvalues import (
    CONST_TYPES,
    NUMPY_NUMBER,
    Cls,
    Const,
    Ext,
    Fn,
    Inst,
    Lam,
    Map,
    Mod,
    Obj,
    Py,
    Seq,
    Ten,
    Unk,
)
from tsdyn_lint.script.signatures import Signatures
from tsdyn_lint.script.sugar import MISSING, V
from tsdyn_lint.torchdata.load import TorchData


class Attributes(Signatures, ABC):
    """The part of `Compiler` that types attributes."""

    def __init__(self, program: Program, data: ScriptData, torch: TorchData) -> None:
        super().__init__(program, data, torch)
        self.spoiled: set[tuple[Inst, str]] = set()
        """Attributes whose type a write contradicts, which was reported: what is read from them is a consequence."""
        self._annotated: dict[Class, dict[str, cst.BaseExpression]] = {}
        self._constants: dict[Class, frozenset[str]] = {}

    @abstractmethod
    def scripts_as_class(self, cls: Class) -> bool:
        """Whether torch could make a script class of a plain Python class: all its methods compile."""

    def class_annotations(self, cls: Class) -> dict[str, cst.BaseExpression]:
        """Annotated names as the instance's `__annotations__` has them: those of the nearest class that has any."""
        owner = self.annotating(cls)
        return {} if owner is None else self._annotated[owner]

    def annotating(self, cls: Class) -> Class | None:
        for owner in self.program.mro(cls):
            if not isinstance(owner, Class):
                return None
            if owner not in self._annotated:
                slots = owner.assigned.items()
                self._annotated[owner] = {k: slot.annotation for k, slot in slots if slot.annotation is not None}
            if self._annotated[owner]:
                return owner
        return None

    def constants(self, cls: Class) -> frozenset[str]:
        """Names in `__constants__` or annotated Final."""
        found = self._constants.get(cls)
        if found is None:
            names = set(strings(self.program.class_member(cls, "__constants__")))
            for name, annotation in self.class_annotations(cls).items():
                text = annotation.value if isinstance(annotation, cst.Subscript) else annotation
                dotted = cls.module.dotted(text)
                if dotted is not None and dotted.endswith("Final"):
                    names.add(name)
            found = self._constants[cls] = frozenset(names)
        return found

    def attribute(self, inst: Inst, name: str) -> V | tuple[str, dict[str, Any]]:
        """An attribute as the compiler sees it, or (cause, facts) of why it does not."""
        if name in inst.maybe:
            return ("maybe-attribute", {"name": name, "cls": inst.name, "inst": inst})
        if name == "training":
            return V(t.BOOL)
        if name.startswith("__") and not name.endswith("__"):
            # Python mangles the name on the instance, and the compiler does not
            return ("missing-attribute", {"name": name, "cls": inst.name, "why": "a private name"})
        if name in inst.attrs:
            return self._instance_attribute(inst, name, inst.attrs[name])
        if inst.children is not None and name in inst.children:
            return self.child(inst, name)
        if inst.cls is not None:
            member = self.program.class_member(inst.cls, name)
            if isinstance(member, Function):
                if name.startswith("__") and not name.endswith("__"):
                    return ("missing-attribute", {"name": name, "cls": inst.name, "why": "a private method"})
                return V(py=Fn(member, inst))
            if isinstance(member, Assigned):
                return self._class_attribute(inst, name, member)
            if isinstance(member, Class):
                return V(py=Cls(member))
        if inst.container or inst.external:
            return self._external_attribute(inst, name)
        if inst.open:
            return V(t.UNKNOWN)
        return self._module_method(inst, name)

    def _instance_attribute(self, inst: Inst, name: str, value: Py) -> V | tuple[str, dict[str, Any]]:
        constant = inst.cls is not None and name in self.constants(inst.cls)
        annotation = self.class_annotations(inst.cls).get(name) if inst.cls is not None else None
        if annotation is not None and not constant and not isinstance(value, Inst) and inst.cls is not None:
            try:
                kind = self.annotations.read(annotation, inst.cls.module)
            except Refused:
                kind = t.UNKNOWN
            if kind is not t.UNKNOWN:
                return V(kind)
        if isinstance(value, Const):
            kind = CONST_TYPES.get(type(value.value), t.UNKNOWN)
            literal = value.value if value.value is None or (constant and not value.soft) else MISSING
            if constant and value.soft and isinstance(value.value, bool):
                return V(kind, py=value, const=value.value, soft=True)
            return V(kind, const=literal, soft=value.soft)
        found = self._of(inst, name, value)
        return found.error or found

    def child(self, inst: Inst, name: str) -> V:
        """What a container holds under a name; what has no type is refused where it is read."""
        assert inst.children is not None
        return self._of(inst, name, inst.children[name])

    def children(self, inst: Inst) -> list[V]:
        """The modules that iterating a container gives: a None in it is none of them."""
        found = [self.child(inst, name) for name in inst.children or ()]
        return [value for value in found if value.type is not t.NONE]

    def _of(self, inst: Inst, name: str, value: Py) -> V:
        found = self.value(value)
        if found.error is not None:
            cause, facts = found.error
            found.error = (cause, {**facts, "name": name, "cls": inst.name})
        return found

    def value(self, value: Py) -> V:
        """A Python value as an attribute: its type, or an error that says why it has none."""
        if isinstance(value, Unk):
            return V(value.type)
        if isinstance(value, Const):
            return V(
                CONST_TYPES.get(type(value.value), t.UNKNOWN),
                const=None if value.value is None else MISSING,
                soft=value.soft,
            )
        if isinstance(value, Ten):
            return V(t.TENSOR)
        if isinstance(value, Inst):
            return V(py=value)
        if isinstance(value, Mod) or isinstance(value, Ext) and self.data.is_module(value.dotted):
            return V(t.UNKNOWN, error=("untypable-attribute", {"what": "a Python module"}))
        if isinstance(value, (Fn, Ext)):
            return V(py=value)
        if isinstance(value, (Seq, Map)):
            kind = self.infer(value)
            if isinstance(kind, str):
                return V(t.UNKNOWN, error=("untypable-attribute", {"what": kind}))
            return V(kind)
        if isinstance(value, Lam) and isinstance(value.node, cst.FunctionDef) and not _captures_data(value):
            return V(t.UNKNOWN)
        if isinstance(value, Lam):
            return V(
                t.UNKNOWN,
                error=(
                    "untypable-attribute",
                    {
                        "what": "a function that keeps values of the function around it"
                        if isinstance(value.node, cst.FunctionDef)
                        else "a lambda"
                    },
                ),
            )
        if isinstance(value, Cls):
            return V(t.UNKNOWN, error=("untypable-attribute", {"what": f"the class {value.cls.name}"}))
        if isinstance(value, Obj):
            if value.name == NUMPY_NUMBER:
                return V(t.UNKNOWN)
            if value.cls is not None and self.scripts_as_class(value.cls):
                return V(py=value)
            return V(t.UNKNOWN, error=("untypable-attribute", {"what": f"an object of {value.name}"}))
        return V(t.UNKNOWN)

    def infer(self, value: Py) -> t.Type | str:
        """The type torch infers for a Python object, or what it is if torch finds none."""
        if isinstance(value, Seq):
            if value.items is None:
                return t.UNKNOWN
            kinds = [self.infer(i) for i in value.items]
            for kind, item in zip(kinds, value.items, strict=False):
                if isinstance(kind, str):
                    inside = (
                        "modules"
                        if isinstance(item, Inst)
                        else "functions"
                        if isinstance(item, (Fn, Lam, Ext))
                        else kind
                    )
                    return f"a {value.kind} of {inside}"
            types = [k for k in kinds if not isinstance(k, str)]
            if value.kind == "tuple":
                return t.Tuple(types)
            if value.kind != "list":
                return f"a {value.kind}"
            if not types:
                return "an empty list"
            if any(x is t.UNKNOWN for x in types):
                return t.UNKNOWN
            joined: t.Type | None = types[0]
            for other in types[1:]:
                joined = t.unify(joined, other) if joined is not None else None
            return "a list of different types" if joined is None else t.List(joined)
        if isinstance(value, Map):
            if value.items is None:
                return t.UNKNOWN
            if not value.items:
                return "an empty dict"
            types_or = [self.infer(v) for v in value.items.values()]
            for kind, item in zip(types_or, value.items.values(), strict=False):
                if isinstance(kind, str):
                    return f"a dict of {'modules' if isinstance(item, Inst) else kind}"
            flat = [k for k in types_or if not isinstance(k, str)]
            if any(x is t.UNKNOWN for x in flat):
                return t.UNKNOWN
            keys = {CONST_TYPES.get(type(k), t.UNKNOWN) for k in value.items}
            if len(set(flat)) > 1 or len(keys) > 1:
                return "a dict of different types"
            return t.Dict(keys.pop(), flat[0])
        if isinstance(value, Const):
            return CONST_TYPES.get(type(value.value), t.UNKNOWN)
        if isinstance(value, Ten):
            return t.TENSOR
        if isinstance(value, Unk):
            return value.type
        if isinstance(value, Inst):
            return "a module"
        if isinstance(value, Lam):
            return "a lambda"
        if isinstance(value, Fn):
            return "a function"
        if isinstance(value, Cls):
            return "a class"
        if isinstance(value, Obj):
            return t.UNKNOWN if value.name == NUMPY_NUMBER else f"an object of {value.name}"
        if isinstance(value, Ext):
            if value.dotted.startswith("torch.") and value.dotted.rpartition(".")[2] in self.data.dtypes:
                return t.INT
            if self.data.is_function(value.dotted):
                return "a function"
        return t.UNKNOWN

    def _class_attribute(self, inst: Inst, name: str, member: Assigned) -> V | tuple[str, dict[str, Any]]:
        assert inst.cls is not None
        made = member.values[0] if len(member.values) == 1 else None
        if isinstance(made, (cst.Name, cst.Attribute)):
            value = self.builder.eval(made, Frame(None, member.module))
            if isinstance(value, Fn) or isinstance(value, Ext) and self.data.is_function(value.dotted):
                return ("class-function", {"name": name, "cls": inst.name})
            if isinstance(value, Ext) and not self.data.is_module(value.dotted):
                return V(py=value) if value.dotted.startswith("torch.nn.") else V(t.UNKNOWN)
        if isinstance(made, cst.Call) and inst.cls.module.dotted(made.func) == "staticmethod" and made.args:
            value = self.builder.eval(made.args[0].value, Frame(None, member.module))
            found = self._of(inst, name, value) if isinstance(value, (Fn, Ext, Lam)) else V(t.UNKNOWN)
            return found.error or found
        if name in self.constants(inst.cls):
            value = self.builder.attribute(inst, name)
            if isinstance(value, Const):
                return V(CONST_TYPES.get(type(value.value), t.UNKNOWN), const=value.value)
            return V(t.UNKNOWN)
        if not member.values:
            return ("missing-attribute", {"name": name, "cls": inst.name, "why": "declared, never set", "inst": inst})
        return ("class-attribute", {"name": name, "cls": inst.name})

    def _external_attribute(self, inst: Inst, name: str) -> V | tuple[str, dict[str, Any]]:
        if inst.container and name in _CONTAINER_METHODS:
            word = "module-method" if inst.container == "ParameterDict" else "container-view"
            return V(py=Ext(f"torch.nn.{inst.container}.{name}"), word=word, owner=V(py=inst))
        entry = (
            self.data.modules.get(inst.external.rpartition(".")[2]) if inst.external.startswith("torch.nn.") else None
        )
        if not entry:
            return V(t.UNKNOWN) if not inst.container else self._module_method(inst, name)
        kind = entry.get("attributes", {}).get(name)
        if kind is not None:
            found = s.read_type(kind)
            return V(
                found
                if found in (t.TENSOR, t.BOOL) and name not in ("bias", "weight")
                else t.UNKNOWN
                if found is not t.TENSOR
                else found
            )
        constant = entry.get("constants", {}).get(name)
        if constant is not None:
            return V({"int": t.INT, "bool": t.BOOL, "str": t.STR}.get(constant, t.UNKNOWN))
        if name == "forward":
            return V(py=inst)
        if name in entry.get("methods", ()) or name in entry.get("modules", ()):
            return V(t.UNKNOWN)
        if inst.open or inst.hooked:
            return V(t.UNKNOWN)
        if not entry.get("forward"):
            return V(t.UNKNOWN) if not inst.container else self._module_method(inst, name)
        return self._module_method(inst, name)

    def _module_method(self, inst: Inst, name: str) -> V | tuple[str, dict[str, Any]]:
        """Methods that every module inherits, and names that nothing defines."""
        if name in ("named_modules", "modules", "children", "named_children", "named_buffers", "buffers"):
            return V(py=Ext(f"torch.nn.Module.{name}"), word="module-view")
        if name in _MODULE_METHODS:
            return V(py=Ext(f"torch.nn.Module.{name}"), word="module-method")
        if inst.open or (inst.container and inst.children is None):
            return V(t.UNKNOWN)
        return ("missing-attribute", {"name": name, "cls": inst.name, "why": "", "inst": inst})


def _captures_data(made: Lam) -> bool:
    """Whether a nested function reads a value of the function around it: modules and functions can be kept, data not.

    `self` is data too: its attributes are read from the Python object.
    """
    assert isinstance(made.node, cst.FunctionDef)
    params = made.node.params
    own = {p.name.value for p in [*params.posonly_params, *params.params, *params.kwonly_params]}
    return any(
        isinstance(made.around.get(name), (Const, Ten, Seq, Map, Obj)) or name == "self"
        for name in _names_read(made.node.body) - own
        if name in made.around
    )


def _names_read(node: cst.CSTNode) -> set[str]:
    """All names under a node but attributes' and keywords'."""
    if isinstance(node, cst.Name):
        return {node.value}
    parts = [node.value] if isinstance(node, (cst.Attribute, cst.Arg)) else children(node)
    return set().union(*map(_names_read, parts))


_CONTAINER_METHODS = frozenset({"keys", "values", "items", "append", "extend", "insert", "__len__", "__contains__"})


_MODULE_METHODS = frozenset(
    {
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "zero_grad",
        "train",
        "eval",
        "cuda",
        "to",
        "cpu",
        "float",
        "half",
        "double",
        "apply",
        "add_module",
        "register_buffer",
        "register_parameter",
        "requires_grad_",
        "register_forward_hook",
        "get_submodule",
        "__call__",
        "type",
        "extra_repr",
        "share_memory",
        "get_parameter",
    }
)


def strings(slot: Any) -> Sequence[str]:
    """The string literals of a class-level list, tuple or set."""
    found: list[str] = []
    if isinstance(slot, Assigned):
        for value in slot.values:
            if isinstance(value, (cst.List, cst.Tuple, cst.Set)):
                for element in value.elements:
                    if isinstance(element.value, cst.SimpleString):
                        found.append(str(element.value.evaluated_value))
    return found
