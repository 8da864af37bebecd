"""What `torch.jit.script` compiles for an entry point: functions once a signature, the instance and its submodules."""

from __future__ import annotations

from typing import Any

import libcst as cst

from tsdyn_lint.infer.constructions import Construction
from tsdyn_lint.resolve import Class, Function, Program
from tsdyn_lint.script import frontend
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused, is_plain_dataclass
from tsdyn_lint.script.attributes import Attributes, strings
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.decorators import Wrapping, replacement, wrapping
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import (
    CONST_TYPES,
    Const,
    Ext,
    Fn,
    Inst,
    Lam,
    Obj,
    Py,
    Seq,
    Unk,
    signature,
    static_type,
)
from tsdyn_lint.script.signatures import Compiled, is_static_forward, may_default
from tsdyn_lint.torchdata.load import TorchData

_IGNORED = (
    "torch.jit.ignore",
    "torch.jit.unused",
    "torch.jit._script_if_tracing",
    "torch._jit_internal.ignore",
    "torch._jit_internal.unused",
)


class Compiler(Attributes):
    """Checks entry points of one program against one torch version."""

    def __init__(self, program: Program, data: ScriptData, torch: TorchData) -> None:
        super().__init__(program, data, torch)
        self._compiled: dict[Any, Compiled] = {}
        self._wrappings: dict[Function, Wrapping | None] = {}
        self._checked: set[tuple[Inst, int]] = set()
        self.root: Inst | None = None
        """The instance that the entry point scripts."""
        self._types: dict[Class | str, list[Inst]] = {}
        self._module_types: dict[Any, t.Type] = {}
        self._script_classes: dict[Class, bool] = {}

    def check_function(self, function: Function) -> None:
        self.root = None
        self.compile(function, None)

    def check_class(self, cls: Class, made: Construction | None = None) -> None:
        """What scripting an instance of the class, made by such a call, compiles: forward, exported methods,
        properties.
        """
        self.root = self.builder.entry(cls, made)
        self._types.clear()
        self.check_instance(self.root)

    def module_type(self, inst: Inst) -> t.Type:
        """The type of a module used as a value: modules of equal structure share it."""
        return self._module_types.setdefault(signature(inst), t.Type("Module", (), inst))

    def module_types(self, cls: Class | str) -> list[Inst]:
        """The modules in the entry's tree of just that class, one a compiled type."""
        if not self._types and self.root is not None:
            self._collect_types(self.root, set())
        return self._types.get(cls if isinstance(cls, Class) else cls.rpartition(".")[2], [])

    def _collect_types(self, inst: Inst, seen: set[Inst]) -> None:
        seen.add(inst)
        self._types.setdefault(inst.cls or inst.name, []).append(inst)
        for value in [*inst.attrs.values(), *(inst.children or {}).values()]:
            if isinstance(value, Inst) and value not in seen:
                self._collect_types(value, seen)

    def may_hold(self, cls: Class | str) -> bool:
        """Whether a module of that class may sit where the entry's tree is not known; a base that the program only
        derives from is nowhere."""
        if self.root is None:
            return True
        if isinstance(cls, str):
            return cls.rpartition(".")[2] in self.data.modules and self._has_unknown_modules()
        if self._made(cls) and self.root.cls is not None and self._made(self.root.cls):
            return True  # somewhere the two may be parts of one module
        return self._has_unknown_modules() and (self._made(cls) or not self.program.has_subclasses(cls))

    def _made(self, cls: Class) -> bool:
        """Whether the program itself makes instances of the class."""
        return any(i not in self.builder.defaults for i in self.builder.made.get(cls, ()))

    def _has_unknown_modules(self) -> bool:
        self.module_types("")
        return any(
            inst.open
            or (inst.container and inst.children is None)
            or any(
                isinstance(v, Unk) and v.type is t.UNKNOWN
                for v in [*inst.attrs.values(), *(inst.children or {}).values()]
            )
            for insts in self._types.values()
            for inst in insts
        )

    def check_instance(self, inst: Inst) -> None:
        """The instance and its submodules: they become script modules whether forward reaches them or not."""
        if (inst, self.least) in self._checked:
            return
        self._checked.add((inst, self.least))
        if inst.cls is not None:
            self._check_annotations(inst, inst.cls)
            self._compile_methods(inst, inst.cls)
        self.check_hooks(inst)
        for value in [*inst.attrs.values(), *(inst.children or {}).values()]:
            if isinstance(value, Inst):
                self.check_instance(value)

    def _compile_methods(self, inst: Inst, cls: Class) -> None:
        seen: set[str] = set()
        for owner in self.program.mro(cls):
            if not isinstance(owner, Class):
                break
            for name in owner.methods:
                if name in seen:
                    continue
                seen.add(name)
                if name != "forward" and not getattr(owner.methods.syntax(name), "decorator_list", True):
                    continue
                method = owner.methods[name]
                names = method.decorator_names
                if name == "forward" or names & {"torch.jit.export"}:
                    self.compile(method, inst)
                elif "property" in names and not names & set(_IGNORED) and name not in self._unused_properties(cls):
                    self.compile(method, inst)

    def _check_annotations(self, inst: Inst, cls: Class) -> None:
        """Annotations in the class body are read as soon as the instance has the attribute; no module fits one."""
        owner = self.annotating(cls)
        if owner is None or not owner.methods:
            return
        function = owner.methods.get("forward") or next(iter(owner.methods.values()))
        ignored = strings(self.program.class_member(cls, "__jit_ignored_attributes__"))
        for name, annotation in self.class_annotations(cls).items():
            value = inst.attrs.get(name)
            if value is None or name in inst.maybe or name in self.constants(cls) or name in ignored:
                continue
            if isinstance(value, (Fn, Lam, Ext, Unk)):
                continue  # functions are added before annotations are read
            if isinstance(annotation, (cst.BooleanOperation, cst.Call, cst.IfExp)):
                continue  # Python has evaluated it
            try:
                kind = self.annotations.read(annotation, owner.module)
            except Refused as refusal:
                self.report("annotation", annotation, function, reason=refusal.reason, name=name)
                continue
            if isinstance(value, Inst) and kind is not t.UNKNOWN and kind.kind != "Interface":
                reason = f"it holds a module, which is no {kind}"
                self.report("annotation", annotation, function, reason=reason, name=name)
            elif isinstance(value, Const) and not value.soft:
                held = CONST_TYPES.get(type(value.value), t.UNKNOWN)
                if not may_default(held, kind):
                    reason = f"it holds a value of type {held}"
                    self.report("annotation", annotation, function, reason=reason, name=name)

    def check_hooks(self, inst: Inst) -> None:
        """Forward hooks are compiled too, with typed parameters; a lambda has no source that can be."""
        if inst.cls is None or inst.hooked:
            self._check_made(inst)
        for hook in inst.hooks:
            value = hook.value
            if isinstance(value, Lam):
                self.report("hook", hook.node, hook.function, what="a lambda")
            elif isinstance(value, Obj):
                self.report("hook", hook.node, hook.function, what=f"an object of {value.name}")
            elif isinstance(value, Fn) and isinstance(value.function.node, cst.FunctionDef):
                function = value.function
                params = function.node.params.params[1 if value.owner is not None else 0 :]
                if len(params) > 1 and params[1].annotation is None:
                    self.report(
                        "hook",
                        value.function.node.name,
                        function,
                        what=f"`{function.name}`, whose inputs are not annotated as a tuple",
                    )

    def _check_made(self, inst: Inst) -> None:
        """A module of torch's: an old-style hook around it, or an int where its compiled forward takes a float."""
        at = inst.made_at
        if at is None:
            return
        if inst.hooked:
            self.report("hooked-module", at.node, at.function, name=inst.name, hook=inst.hooked)
        entry = self.data.modules.get(inst.name, {}) if inst.external.startswith("torch.nn.") else {}
        for position, name in enumerate(entry.get("parameters", ())):
            value = inst.args.get(name, inst.args.get(position))
            misfit = _misfit(value, name, entry) if value is not None else None
            if misfit is not None:
                confidence = LIKELY if isinstance(value, Unk) or getattr(value, "soft", False) else CERTAIN
                facts = {"name": name, "cls": inst.name, "found": misfit[0], "wanted": misfit[1]}
                self.report("module-argument", at.node, at.function, confidence, **facts)

    def _unused_properties(self, cls: Class) -> frozenset[str]:
        slot = self.program.class_member(cls, "__jit_unused_properties__")
        return frozenset(strings(slot))

    def compile(self, function: Function, inst: Inst | None) -> Compiled:
        of = None if function.is_static and not is_static_forward(function) else inst
        key = (function, signature(of) if of is not None else None, self.least)
        found = self._compiled.get(key)
        if found is not None:
            return found
        replaced = replacement(self.program, function)
        if replaced is not None:
            compiled = self._compiled[key] = self._replaced(function, *replaced)
            return compiled
        compiled = self.header(function, inst)
        self._compiled[key] = compiled
        if compiled.refused or isinstance(function.node, cst.Lambda):
            compiled.done = True
            return compiled
        statements = function.body
        fatal = False
        for cause, node, what in frontend.refusals(statements):
            self.report(cause, node, function, what=what)
            fatal = True
        if not fatal:
            from tsdyn_lint.script.body import Body

            result = Body(self, compiled, inst).run(statements)
            compiled.schema = s.Schema(compiled.schema.args, result, compiled.schema.text)
            self._check_wrapping(function)
        else:
            if compiled.schema.result is t.NOTHING:
                compiled.schema = s.Schema(compiled.schema.args, t.UNKNOWN)
        compiled.done = True
        return compiled

    def wrapping(self, function: Function) -> Wrapping | None:
        if function not in self._wrappings:
            self._wrappings[function] = wrapping(self.program, function) if function.decorators else None
        return self._wrappings[function]

    def _check_wrapping(self, function: Function) -> None:
        """A wrapper is passed by in silence; where it hides names from the compiler, that was reported."""
        found = self.wrapping(function)
        if found is None or not found.drops or ("decorated-name", id(found.node)) in self.problems:
            return
        facts = {"name": function.name, "decorator": found.name}
        confidence = POSSIBLE if found.grad_mode else LIKELY
        self.report("dropped-decorator", found.node, function, confidence, **facts)

    def _replaced(self, function: Function, decorator: Function, nested: cst.FunctionDef) -> Compiled:
        """A function that a decorator replaces: the nested one is compiled, of which only the signature is judged."""
        star = nested.params.star_arg
        if isinstance(star, cst.Param) or nested.params.star_kwarg is not None:
            what = f"*{star.name.value}" if isinstance(star, cst.Param) else "**"
            self.report("variadic", nested.name, decorator, what=what, name=nested.name.value)
        elif function.cls is not None and isinstance(function.node, cst.FunctionDef):
            why = f"`{decorator.name}` puts a function in its place whose `self` is no module to it"
            name = function.node.name
            self.report("uncompilable-function", name, function, name=function.name, why=why)
        return Compiled(function, s.Schema((), t.UNKNOWN), done=True, refused=True)

    def scripts_as_class(self, cls: Class) -> bool:
        """Whether torch could make a script class of a plain Python class: all its methods compile."""
        found = self._script_classes.get(cls)
        if found is None:
            self._script_classes[cls] = True
            found = not self.program.mro(cls)[1:] or self.program.mro(cls)[1:] == ("object",)
            found = found and not is_plain_dataclass(cls)
            problems, self.problems = self.problems, {}
            try:
                for name, method in cls.methods.items():
                    if name not in ("__repr__", "__str__"):
                        self.compile(method, None)
                found = found and all(p.confidence < LIKELY for p in self.problems.values())
            finally:
                self.problems = problems
            self._script_classes[cls] = found
        return found


def _misfit(value: Py, name: str, entry: dict[str, Any]) -> tuple[str, str] | None:
    """(what it is, what the compiler takes) for a constructor argument of torch's that Python takes and it does not."""
    if name in entry.get("floats", ()) and static_type(value) is t.INT:
        return "an int", "a float; write it with a point"
    if isinstance(value, Obj) and value.name.startswith("numpy") and entry["constants"].get(name) == "int":
        return "a NumPy number", "an int; write int(...)"
    if name in entry.get("sizes", ()) and isinstance(value, Seq):
        if any(isinstance(i, Const) and i.value is None for i in value.items or ()):
            return "a tuple with None", "ints alone"
    return None
