"""Conditions: what the compiler folds, and what it knows of a variable where one holds."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tsdyn_lint.resolve import Class
from tsdyn_lint.script import types as t
from tsdyn_lint.script.emitter import LEGACY, Refine
from tsdyn_lint.script.operators import Operators
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Cls, Fn, Inst
from tsdyn_lint.script.sugar import MISSING, V

_NO: Refine = []


class Conditions(Operators):
    """The part of `Body` that decides branches."""

    def _comparison(self, node: cst.Comparison) -> V:
        found = self._none_test(node) if len(node.comparisons) == 1 else None
        if found is not None:
            return V(t.BOOL, const=found[0] if found[0] is not None else MISSING)
        return self._plain_comparison(node)

    def _boolean(self, node: cst.BooleanOperation) -> V:
        truth, _, _ = self.condition(node)
        return V(t.BOOL, const=truth if truth is not None else MISSING)

    def _ifexp(self, node: cst.IfExp) -> V:
        truth, then_refine, else_refine = self.condition(node.test)
        if truth is not None:
            self.scopes.append({})
            self.apply(then_refine if truth else else_refine)
            value = self.expr(node.body if truth else node.orelse)
            self.scopes.pop()
            return value
        self.scopes.append({})
        self.apply(then_refine)
        a = self.expr(node.body)
        ta = self.type_of(a, node.body)
        self.scopes.pop()
        self.scopes.append({})
        self.apply(else_refine)
        b = self.expr(node.orelse)
        tb = self.type_of(b, node.orelse)
        self.scopes.pop()
        joined = t.unify(ta, tb)
        if joined is None:
            return self.fail(
                "ternary-types", node, LIKELY if a.soft or b.soft else CERTAIN, then=str(ta), other=str(tb)
            )
        return V(joined, soft=a.soft or b.soft)

    def apply(self, refine: Refine) -> None:
        for name, kind in refine:
            known = self.find(name)
            if known is not None:
                self.scopes[-1][name] = V(kind, soft=known.soft)

    def condition(self, node: cst.CSTNode, loop: bool = False) -> tuple[bool | None, Refine, Refine]:
        """(truth if the compiler folds it, what holds where it is true, what holds where it is false)."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            truth, yes, no = self.condition(node.expression)
            return (None if truth is None else not truth), no, yes
        if isinstance(node, cst.BooleanOperation):
            return self._logical(node)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            found = self._none_test(node)
            if found is not None:
                return found
        if isinstance(node, cst.Call):
            found = self._type_test(node)
            if found is not None:
                return found
        value = self.expr(node) if not isinstance(node, cst.Comparison) else self._plain_comparison(node)
        if isinstance(value.const, bool):
            return value.const, _NO, _NO
        self.boolean(value, node)
        if isinstance(node, cst.Name) and value.type is not None and value.type.kind == "Optional":
            return None, [(node.value, t.strip_none(value.type))], _NO  # what `is not None` would say
        return None, _NO, _NO

    def _logical(self, node: cst.BooleanOperation) -> tuple[bool | None, Refine, Refine]:
        is_and = isinstance(node.operator, cst.And)
        truth, yes, no = self.condition(node.left)
        self.scopes.append({})
        self.apply(yes if is_and else no)
        # compiled even where the left side decides
        truth_right, yes_right, no_right = self.condition(node.right)
        self.scopes.pop()
        if truth is not None and truth != is_and:
            return truth, yes, no
        if truth is not None:
            return truth_right, [*yes, *yes_right], [*no, *no_right]
        if is_and:
            return (False if truth_right is False else None), [*yes, *yes_right], _NO
        return (True if truth_right is True else None), _NO, [*no, *no_right]

    def _none_test(self, node: cst.Comparison) -> tuple[bool | None, Refine, Refine] | None:
        target = node.comparisons[0]
        if not isinstance(target.operator, (cst.Is, cst.IsNot)):
            return None
        subject, other = node.left, target.comparator
        if isinstance(subject, cst.Name) and subject.value == "None":
            subject, other = other, subject
        if not (isinstance(other, cst.Name) and other.value == "None"):
            return None
        value = self.expr(subject)
        positive = isinstance(target.operator, cst.Is)
        if value.type is t.UNKNOWN:
            self.undecided = True
            refine = [(subject.value, t.UNKNOWN)] if isinstance(subject, cst.Name) else _NO
            return None, refine, refine
        if value.type is t.NONE:
            return positive, _NO, _NO
        kind = value.type
        if kind is None:
            self.type_of(value, subject)  # a module compares with None, a function does not
            return None if value.word == "global" else not positive, _NO, _NO
        if not t.accepts_none(kind) or kind is t.ANY:
            if isinstance(subject, cst.Name) and subject.value in self.none_parameters and len(self.scopes) == 1:
                self.fail("none-default", node, CERTAIN if self.compiler.called else POSSIBLE, name=subject.value)
            return (not positive if kind is not t.ANY else None), _NO, _NO
        some: Refine = [(subject.value, t.strip_none(kind))] if isinstance(subject, cst.Name) else _NO
        none: Refine = [(subject.value, t.NONE)] if isinstance(subject, cst.Name) else _NO
        return None, none if positive else some, some if positive else none

    def _type_test(self, node: cst.Call) -> tuple[bool | None, Refine, Refine] | None:
        """`isinstance`, `hasattr`, `is_scripting()`: the tests that the compiler answers itself."""
        func = node.func
        if (
            isinstance(func, cst.Name)
            and func.value == "isinstance"
            and self.find("isinstance") is None
            and len(node.args) == 2
        ):
            return self._isinstance(node)
        if (
            isinstance(func, cst.Name)
            and func.value == "hasattr"
            and self.find("hasattr") is None
            and len(node.args) == 2
        ):
            return self._hasattr(node)
        dotted = self.function.module.dotted(func)
        if dotted in ("torch.jit.is_scripting", "torch._jit_internal.is_scripting"):
            return True, _NO, _NO
        if dotted in ("torch.jit.is_tracing", "torch.compiler.is_compiling", "torch._dynamo.is_compiling"):
            return (False if dotted != "torch.jit.is_tracing" else None), _NO, _NO
        return None

    def _isinstance(self, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        value = self.expr(node.args[0].value)
        wanted = node.args[1].value
        options = [e.value for e in wanted.elements] if isinstance(wanted, cst.Tuple) else [wanted]
        kinds: list[t.Type] = []
        modules: list[Class | str] = []
        for option in options:
            if isinstance(option, cst.Call):
                self.fail("annotation", node, reason="isinstance takes type names", name="isinstance")
                return None, _NO, _NO
            module = self._module_class(option)
            if module is not None:
                modules.append(module)
                continue
            kind = self._tested_type(option, node)
            if kind is None:
                text = self.source(option)
                self.undecided = True
                self.fail("annotation", node, reason=f"unknown type name '{text}'", name="isinstance")
                return None, _NO, _NO
            kinds.append(kind)
        unseen = [m for m in modules if not self.compiler.module_types(m)]
        if unseen:
            return self._no_module_type(unseen[0], node)
        if isinstance(value.py, Inst):
            return self._module_isinstance(value.py, modules)
        return self._value_isinstance(value, node, kinds)

    def _module_class(self, option: cst.BaseExpression) -> Class | str | None:
        """The module class that an option of `isinstance` names: of the program, or torch's by its dotted name."""
        if isinstance(option, cst.Name) and self.find(option.value) is not None:
            return None
        found = self.compiler.program.resolve(option, self.function.module)
        if isinstance(found, Class):
            return found if self.compiler.program.is_nn_module(found) else None
        dotted = self.function.module.dotted(option) or ""
        plain = dotted.rpartition(".")[2] in ("Parameter", "Buffer", "UninitializedParameter")
        return dotted if dotted.startswith("torch.nn.") and not plain else None

    def _no_module_type(self, cls: Class | str, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        """A module class is a type name once an instance of just that class was compiled, and unknown before."""
        name = cls if isinstance(cls, str) else cls.name
        self.undecided = True
        if not self.compiler.may_hold(cls):
            self.fail("annotation", node, LIKELY, reason=f"unknown type name '{name}'", name="isinstance")
        return None, _NO, _NO

    def _value_isinstance(self, value: V, node: cst.Call, kinds: list[t.Type]) -> tuple[bool | None, Refine, Refine]:
        actual = value.type
        if actual is None or actual is t.UNKNOWN or t.UNKNOWN in kinds:
            self.undecided = True
            return None, _NO, _NO
        parts = (
            actual.args
            if actual.kind == "Union"
            else (actual.args[0], t.NONE)
            if actual.kind == "Optional"
            else (actual,)
        )
        if actual is t.ANY:
            refine = (
                [(node.args[0].value.value, kinds[0])]
                if isinstance(node.args[0].value, cst.Name) and len(kinds) == 1
                else _NO
            )
            return None, refine, _NO
        fits = [self._instance_of(p, kinds) for p in parts]
        if all(fits):
            return True, _NO, _NO
        if not any(fits):
            return False, _NO, _NO
        if isinstance(node.args[0].value, cst.Name):
            name = node.args[0].value.value
            yes = t.Union(p for p, f in zip(parts, fits, strict=False) if f)
            no = t.Union(p for p, f in zip(parts, fits, strict=False) if not f)
            return None, [(name, yes)], [(name, no)]
        return None, _NO, _NO

    def _instance_of(self, kind: t.Type, wanted: list[t.Type]) -> bool:
        for one in wanted:
            if one.kind == "AnyList" and kind.kind == "List":
                return True
            if one.kind == "AnyTuple" and kind.kind == "Tuple":
                return True
            if t.is_subtype(kind, one):
                return True
        return False

    def _tested_type(self, node: cst.BaseExpression, call: cst.Call) -> t.Type | None:
        dotted = self.function.module.dotted(node)
        if dotted in ("list", "tuple"):
            return {"list": t.Type("AnyList"), "tuple": t.Type("AnyTuple")}[dotted]
        if dotted in ("torch.autograd.Variable", "torch.autograd.variable.Variable"):
            return t.Type("Class", (), "Variable")  # no value has this type
        if dotted in ("torch.Tensor", "torch.nn.Parameter"):
            return t.TENSOR if dotted != "torch.nn.Parameter" else t.UNKNOWN
        if dotted in ("int", "float", "bool", "str", "complex"):
            return {"int": t.INT, "float": t.FLOAT, "bool": t.BOOL, "str": t.STR, "complex": t.COMPLEX}[dotted]
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        if isinstance(root, cst.Name) and self.find(root.value) is not None:
            return None  # only names from outside of the function are looked up as types
        if isinstance(self.compiler.program.resolve(node, self.function.module), Class):
            return t.UNKNOWN
        name = dotted or ""
        if name.startswith("torch.") and name.rpartition(".")[2] in LEGACY:
            return t.TENSOR
        if name.startswith(("numpy.", "collections.", "typing.", "numbers.", "torch.Size")) or name in (
            "dict",
            "set",
            "frozenset",
            "type",
            "range",
            "slice",
            "bytes",
            "object",
            "dict_keys",
        ):
            self.fail("annotation", call, reason=f"unknown type name '{name}' in isinstance", name="isinstance")
        return t.UNKNOWN

    def _module_isinstance(self, inst: Inst, options: Sequence[Class | str]) -> tuple[bool | None, Refine, Refine]:
        """A module against classes: by the type that the first instance of each class got, bases aside."""
        for option in options:
            types = self.compiler.module_types(option)
            if inst in types:
                if len(types) > 1:
                    self.undecided = True
                    return None, _NO, _NO
                return True, _NO, _NO
        return False, _NO, _NO

    def _hasattr(self, node: cst.Call) -> tuple[bool | None, Refine, Refine]:
        owner = self.expr(node.args[0].value)
        name_node = node.args[1].value
        if owner.type is t.TENSOR:
            self.fail("hasattr", node, type="Tensor")
            return None, _NO, _NO
        if not isinstance(name_node, cst.SimpleString):
            return None, _NO, _NO
        name = str(name_node.evaluated_value)
        inst = owner.py
        if isinstance(inst, Inst):
            if name in inst.maybe or (inst.open and name not in inst.attrs):
                self.undecided = True
                return None, _NO, _NO
            return not isinstance(self.compiler.attribute(inst, name), tuple), _NO, _NO
        return None, _NO, _NO

    def boolean(self, value: V, node: cst.CSTNode) -> None:
        """A value used as a condition must convert to bool."""
        if value.type is None and not isinstance(value.py, Inst):
            if value.word == "global" or isinstance(value.py, (Fn, Cls)):
                self.type_of(value, node)
            return
        kind = self.type_of(value, node)
        if kind in (t.BOOL, t.TENSOR, t.INT, t.FLOAT, t.UNKNOWN, t.NUMBER):
            return
        if kind.kind in ("Optional", "NoneType", "Module", "Union", "Tuple") or kind in (t.COMPLEX, t.DEVICE):
            if t.has_unknown(kind) and kind.kind != "Optional":
                return
            if kind.kind == "Optional" and kind.args[0] is t.UNKNOWN:
                return
            if kind is t.NONE:
                self.spoil(value)
            self.fail("condition", node, LIKELY if value.soft else CERTAIN, type=self._short(kind))
