"""What `torch.jit.script` compiles for an entry point: functions once a signature, instances' attributes, problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import libcst as cst

from tsdyn_lint.parse import Piece
from tsdyn_lint.resolve import Assigned, Class, Function, Module, Program
from tsdyn_lint.script import frontend
from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Annotations, Refused, is_plain_dataclass
from tsdyn_lint.script.data import ScriptData
from tsdyn_lint.script.decorators import Wrapping, replacement, wrapping
from tsdyn_lint.script.init_frames import Frame
from tsdyn_lint.script.instance import Builder
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
    signature,
    static_type,
)
from tsdyn_lint.script.sugar import MISSING, V
from tsdyn_lint.torchdata.load import TorchData

CERTAIN, LIKELY, POSSIBLE = 3, 2, 1
Step: TypeAlias = tuple[Function, cst.CSTNode, Piece]
"""A call on the way: the calling function, the call and the piece of source it stands in."""
_IGNORED = (
    "torch.jit.ignore",
    "torch.jit.unused",
    "torch.jit._script_if_tracing",
    "torch._jit_internal.ignore",
    "torch._jit_internal.unused",
)
_NOT_COMPILED = frozenset(
    {"functools.lru_cache", "functools.cache", "functools.singledispatch", "contextlib.contextmanager"}
)


@dataclass(eq=False)
class Problem:
    """One thing that the compiler refuses, or that it compiles to something else than Python does.

    `cause` and `facts` choose the rule and fill its message. `stack`: (function, call node, its piece) on the way here.
    """

    cause: str
    node: cst.CSTNode
    piece: Piece
    function: Function
    facts: dict[str, Any]
    confidence: int
    stack: tuple[Step, ...]
    entry: str
    lacking: list[Inst] = field(default_factory=list)
    """The instances that lack the attribute, where that is the problem."""
    again: dict[cst.CSTNode, tuple[Piece, Function]] = field(default_factory=dict)
    """Other places that meet the same cause."""

    def meet(
        self, node: cst.CSTNode, piece: Piece, function: Function, stack: Sequence[Step], entry: str, confidence: int
    ) -> None:
        """The same cause elsewhere: told of at the first of its surest places."""
        if confidence > self.confidence:
            self.confidence = confidence
            if node is not self.node:
                self.again[self.node] = (self.piece, self.function)
                self.again.pop(node, None)
                self.node, self.piece, self.function = node, piece, function
                self.stack, self.entry = tuple(stack), entry
        elif node is not self.node:
            self.again[node] = (piece, function)


@dataclass(eq=False)
class Compiled:
    """A compiled function: what a call must fit, and whether its own header is refused."""

    function: Function
    schema: s.Schema
    untyped: frozenset[str] = frozenset()
    """Parameters without an annotation."""
    misread: set[str] = field(default_factory=set)
    """Those of them that the header or the body showed to be no tensors: what calls pass for them is a consequence."""
    none_defaults: frozenset[str] = frozenset()
    """Parameters of type Tensor whose default is None."""
    done: bool = False
    refused: bool = False
    returns_conversions: dict[str, Any] = field(default_factory=dict)


class Compiler:
    """Checks entry points of one program against one torch version."""

    def __init__(self, program: Program, data: ScriptData, torch: TorchData) -> None:
        self.program, self.data, self.torch = program, data, torch
        self.builder = Builder(program, data)
        self.annotations = Annotations(program)
        self.problems: dict[tuple[str, object], Problem] = {}
        self._compiled: dict[Any, Compiled] = {}
        self._wrappings: dict[Function, Wrapping | None] = {}
        self.stack: list[Step] = []
        self.entry = ""
        self._checked: set[tuple[Inst, int]] = set()
        self.root: Inst | None = None
        """The instance that the entry point scripts."""
        self._types: dict[Class | str, list[Inst]] = {}
        self._module_types: dict[Any, t.Type] = {}
        self._script_classes: dict[Class, bool] = {}
        self.spoiled: set[tuple[Inst, str]] = set()
        """Attributes whose type a write contradicts, which was reported: what is read from them is a consequence."""
        self.called = False
        """Whether the file itself scripts the entry point."""
        self.least = CERTAIN
        self._annotated: dict[Class, dict[str, cst.BaseExpression]] = {}
        self._constants: dict[Class, frozenset[str]] = {}

    # --- problems

    def report(
        self,
        cause: str,
        node: cst.CSTNode,
        piece: Piece,
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
            problem = Problem(cause, node, piece, function, facts, confidence, tuple(self.stack), self.entry)
            self.problems[key] = problem
        else:
            problem.meet(node, piece, function, self.stack, self.entry, confidence)
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

    # --- entries

    def check_function(self, function: Function) -> None:
        self.root = None
        self.compile(function, None)

    def check_class(self, cls: Class) -> None:
        """What scripting an instance of the class compiles: forward, exported methods, properties."""
        self.root = self.builder.entry(cls)
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

    def check_hooks(self, inst: Inst) -> None:
        """Forward hooks are compiled too, with typed parameters; a lambda has no source that can be."""
        if inst.cls is None or inst.hooked:
            self._check_made(inst)
        for hook in inst.hooks:
            value = hook.value
            if isinstance(value, Lam):
                self.report("hook", hook.node, hook.function.body[1], hook.function, what="a lambda")
            elif isinstance(value, Obj):
                self.report("hook", hook.node, hook.function.body[1], hook.function, what=f"an object of {value.name}")
            elif isinstance(value, Fn) and isinstance(value.function.node, cst.FunctionDef):
                function = value.function
                params = function.node.params.params[1 if value.owner is not None else 0 :]
                if len(params) > 1 and params[1].annotation is None:
                    self.report(
                        "hook",
                        value.function.node.name,
                        function.header_piece,
                        function,
                        what=f"`{function.name}`, whose inputs are not annotated as a tuple",
                    )

    def _check_made(self, inst: Inst) -> None:
        """A module of torch's: an old-style hook around it, or an int where its compiled forward takes a float."""
        at = inst.made_at
        if at is None:
            return
        piece = at.function.body[1]
        if inst.hooked:
            self.report("hooked-module", at.node, piece, at.function, name=inst.name, hook=inst.hooked)
        entry = self.data.modules.get(inst.name, {}) if inst.external.startswith("torch.nn.") else {}
        for position, name in enumerate(entry.get("parameters", ())):
            value = inst.args.get(name, inst.args.get(position))
            misfit = _misfit(value, name, entry) if value is not None else None
            if misfit is not None:
                confidence = LIKELY if isinstance(value, Unk) or getattr(value, "soft", False) else CERTAIN
                facts = {"name": name, "cls": inst.name, "found": misfit[0], "wanted": misfit[1]}
                self.report("module-argument", at.node, piece, at.function, confidence, **facts)

    def _unused_properties(self, cls: Class) -> frozenset[str]:
        slot = self.program.class_member(cls, "__jit_unused_properties__")
        return frozenset(_strings(slot))

    # --- functions

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
        compiled = self._header(function, inst)
        self._compiled[key] = compiled
        if compiled.refused or isinstance(function.node, cst.Lambda):
            compiled.done = True
            return compiled
        statements, piece = function.body
        fatal = False
        for cause, node, what in frontend.refusals(statements):
            self.report(cause, node, piece, function, what=what)
            fatal = True
        if not fatal:
            from tsdyn_lint.script.body import Body

            result = Body(self, compiled, inst, piece).run(statements)
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
        self.report("dropped-decorator", found.node, function.header_piece, function, confidence, **facts)

    def _replaced(self, function: Function, decorator: Function, nested: cst.FunctionDef) -> Compiled:
        """A function that a decorator replaces: the nested one is compiled, of which only the signature is judged."""
        star = nested.params.star_arg
        if isinstance(star, cst.Param) or nested.params.star_kwarg is not None:
            what = f"*{star.name.value}" if isinstance(star, cst.Param) else "**"
            self.report("variadic", nested.name, decorator.body[1], decorator, what=what, name=nested.name.value)
        elif function.cls is not None and isinstance(function.node, cst.FunctionDef):
            why = f"`{decorator.name}` puts a function in its place whose `self` is no module to it"
            name, piece = function.node.name, function.header_piece
            self.report("uncompilable-function", name, piece, function, name=function.name, why=why)
        return Compiled(function, s.Schema((), t.UNKNOWN), done=True, refused=True)

    def declared(self, function: Function) -> Compiled | None:
        """The signature of a function that is not compiled; None where its header says too little."""
        problems, self.problems = self.problems, {}
        try:
            found = self._header(function, None)
        finally:
            self.problems = problems
        return None if found.refused else found

    def _header(self, function: Function, inst: Inst | None) -> Compiled:
        node = function.node
        params = node.params
        piece = function.header_piece
        at: cst.CSTNode
        refused = False
        keyword_defaults = any(p.default is not None for p in params.kwonly_params)
        if params.posonly_params:
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("variadic", at, piece, function, what="positional-only parameters (`/`)", name=function.name)
            refused = True
        if isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None or keyword_defaults:
            what = (
                f"*{params.star_arg.name.value}"
                if isinstance(params.star_arg, cst.Param)
                else f"**{params.star_kwarg.name.value}"
                if params.star_kwarg is not None
                else "keyword-only parameters with defaults"
            )
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("variadic", at, piece, function, what=what, name=function.name)
            refused = True
        args: list[s.Arg] = []
        untyped: set[str] = set()
        none_defaults: set[str] = set()
        misread: set[str] = set()
        positional = [*params.posonly_params, *params.params]
        bound = function.cls is not None and not function.is_static or is_static_forward(function)
        if is_static_forward(function) and not positional:
            at = node.name if isinstance(node, cst.FunctionDef) else node
            self.report("uncompilable-function", at, piece, function, name=function.name, why="it takes no module")
            refused = True
        comment = self._comment_types(
            function, len(positional) + len(params.kwonly_params) - (bound and bool(positional))
        )
        for number, param in enumerate([*positional, *params.kwonly_params]):
            if number == 0 and bound and positional:
                continue
            name = param.name.value
            kind = t.TENSOR
            if param.annotation is not None:
                try:
                    kind = self.annotations.read(param.annotation.annotation, function.module)
                except Refused as refusal:
                    self.report("annotation", param, piece, function, reason=refusal.reason, name=name)
                    kind = t.UNKNOWN
                    refused = True
                self._check_default(param, kind, function, piece)
            elif comment is not None:
                kind = comment[0][len(args)]
            else:
                untyped.add(name)
                default = self._check_untyped_default(param, function, piece)
                if default is not None:
                    kind = default
                    misread.add(name)
            if kind is t.TENSOR and isinstance(param.default, cst.Name) and param.default.value == "None":
                none_defaults.add(name)
            args.append(s.Arg(name, kind, 0, param.default is not None, number >= len(positional)))
        result = t.NOTHING
        if isinstance(node, cst.FunctionDef) and node.returns is not None:
            try:
                result = self.annotations.read(node.returns.annotation, function.module)
                if result.kind == "list":
                    raise Refused(f"`{result}` without the types it holds", node.returns.annotation)
            except Refused as refusal:
                self.report(
                    "annotation", node.returns.annotation, piece, function, reason=refusal.reason, name="return"
                )
                result = t.UNKNOWN
                refused = True
        elif comment is not None:
            result = comment[1]
        if any(d in _NOT_COMPILED for d in function.decorator_names):
            result = t.UNKNOWN
        schema = s.Schema(tuple(args), t.UNKNOWN if refused else result)
        return Compiled(function, schema, frozenset(untyped), misread, frozenset(none_defaults), refused=refused)

    def _comment_types(self, function: Function, count: int) -> tuple[list[t.Type], t.Type] | None:
        """The types of `count` parameters and of the result in a `# type: (Tensor) -> Tensor` comment."""
        text = _type_comment(function)
        if text is None:
            return None
        at = function.node.name if isinstance(function.node, cst.FunctionDef) else function.node
        unread = [t.UNKNOWN] * count, t.UNKNOWN
        given, _, result = text.partition("->")
        try:
            tuple_, returned = cst.parse_expression(f"({given.strip()[1:-1]},)"), cst.parse_expression(result.strip())
        except cst.ParserSyntaxError:
            return unread
        if not isinstance(tuple_, cst.Tuple) or any(isinstance(e.value, cst.Ellipsis) for e in tuple_.elements):
            return unread
        try:
            kinds = [self.annotations.read(e.value, function.module) for e in tuple_.elements]
            if len(kinds) != count:
                raise Refused(f"{len(kinds)} types for {count} parameters", at)
            return kinds, self.annotations.read(returned, function.module)
        except Refused as refusal:
            reason, piece = refusal.reason, function.header_piece
            self.report("annotation", at, piece, function, reason=reason, name="the type comment")
            return unread

    def _check_default(self, param: cst.Param, wanted: t.Type, function: Function, piece: Piece) -> None:
        """The default of an annotated parameter."""
        kind = self._default_type(param.default, function.module) if param.default is not None else None
        name = param.name.value
        if kind is not None and kind.kind in ("List", "Dict"):
            self.report("mutable-default", param, piece, function, name=name, type=kind.kind.lower())
        elif kind is not None and not _may_default(kind, wanted):
            self.report("default-type", param, piece, function, name=name, type=str(kind), wanted=str(wanted))

    def _check_untyped_default(self, param: cst.Param, function: Function, piece: Piece) -> t.Type | None:
        """The type that the default tells of, where torch refuses it for a parameter without an annotation."""
        default = param.default
        kind = None if default is None else self._default_type(default, function.module)
        if kind is None or kind is t.TENSOR or kind is t.NONE:
            return None
        self.report("default", param, piece, function, name=param.name.value, type=str(kind))
        return kind if kind in CONST_TYPES.values() else t.UNKNOWN

    def _default_type(self, node: cst.BaseExpression, module: Module) -> t.Type | None:
        """The type of a default value where it is plain to see."""
        value = self.builder.eval(node, Frame(None, module))
        if isinstance(value, Const):
            return CONST_TYPES.get(type(value.value))
        if isinstance(value, Seq):
            return t.Type("Tuple" if value.kind == "tuple" else "List")
        if isinstance(value, Map):
            return t.Type("Dict")
        if isinstance(value, (Fn, Lam)):
            return t.Type("function")
        if isinstance(value, Cls):
            return t.Type("class")
        if isinstance(value, Ext) and value.dotted.startswith(("math.", "numpy.")):
            return t.FLOAT if isinstance(getattr(math, value.dotted.rpartition(".")[2], None), float) else None
        if isinstance(value, Ext) and value.dotted.removeprefix("torch.") in self.data.dtypes:
            return t.Type("dtype")
        if isinstance(value, Ext) and value.dotted.startswith(("torch.nn.", "typing.")):
            return t.Type("function" if value.dotted.startswith("torch.nn.functional.") else "class")
        if isinstance(node, cst.Subscript) and self.annotations.dotted(node.value, module)[0].startswith("typing."):
            return t.Type("type")
        return None

    # --- attributes of instances

    def class_annotations(self, cls: Class) -> dict[str, cst.BaseExpression]:
        """Annotated names as the instance's `__annotations__` has them: those of the nearest class that has any."""
        owner = self._annotating(cls)
        return {} if owner is None else self._annotated[owner]

    def _annotating(self, cls: Class) -> Class | None:
        for owner in self.program.mro(cls):
            if not isinstance(owner, Class):
                return None
            if owner not in self._annotated:
                slots = owner.assigned.items()
                self._annotated[owner] = {k: slot.annotation for k, slot in slots if slot.annotation is not None}
            if self._annotated[owner]:
                return owner
        return None

    def _check_annotations(self, inst: Inst, cls: Class) -> None:
        """Annotations in the class body are read as soon as the instance has the attribute; no module fits one."""
        owner = self._annotating(cls)
        if owner is None or not owner.methods:
            return
        function = owner.methods.get("forward") or next(iter(owner.methods.values()))
        ignored = _strings(self.program.class_member(cls, "__jit_ignored_attributes__"))
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
                self.report("annotation", annotation, owner.piece, function, reason=refusal.reason, name=name)
                continue
            if isinstance(value, Inst) and kind is not t.UNKNOWN and kind.kind != "Interface":
                reason = f"it holds a module, which is no {kind}"
                self.report("annotation", annotation, owner.piece, function, reason=reason, name=name)
            elif isinstance(value, Const) and not value.soft:
                held = CONST_TYPES.get(type(value.value), t.UNKNOWN)
                if not _may_default(held, kind):
                    reason = f"it holds a value of type {held}"
                    self.report("annotation", annotation, owner.piece, function, reason=reason, name=name)

    def constants(self, cls: Class) -> frozenset[str]:
        """Names in `__constants__` or annotated Final."""
        found = self._constants.get(cls)
        if found is None:
            names = set(_strings(self.program.class_member(cls, "__constants__")))
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


def _type_comment(function: Function) -> str | None:
    """What follows `# type:` under the header."""
    node = function.node
    if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
        return None
    lines = [node.body.header.comment]
    for first in (node.body.body[:1], function.body[0][:1]):
        lines += [line.comment for statement in first for line in getattr(statement, "leading_lines", ())]
    for comment in lines:
        if comment is not None and comment.value.lstrip("# ").startswith("type: ("):
            return comment.value.partition("type:")[2]
    return None


def is_static_forward(function: Function) -> bool:
    """Whether it is compiled as a method all the same: its first parameter is the module."""
    return function.is_static and function.name == "forward"


_DEFAULTS = {
    t.INT: {t.INT, t.BOOL},
    t.BOOL: {t.INT, t.BOOL},
    t.FLOAT: {t.FLOAT, t.INT, t.BOOL},
    t.STR: {t.STR},
    t.TENSOR: {t.NONE},
}
"""What Python constants an annotation takes as the default: more than a call does."""


def _may_default(kind: t.Type, wanted: t.Type) -> bool:
    """Whether a default of that type passes; containers and types not known here are not judged."""
    if kind not in (t.INT, t.BOOL, t.FLOAT, t.STR, t.NONE):
        return True
    if wanted.kind in ("Optional", "Union"):
        return (kind is t.NONE and t.accepts_none(wanted)) or any(_may_default(kind, part) for part in wanted.args)
    if wanted.kind in ("List", "Dict", "Tuple", "list", "tuple") and wanted.extra is None:
        return False
    allowed = _DEFAULTS.get(wanted)
    return allowed is None or kind in allowed


def _names_read(node: cst.CSTNode) -> set[str]:
    """All names under a node but attributes' and keywords'."""
    if isinstance(node, cst.Name):
        return {node.value}
    parts = [node.value] if isinstance(node, (cst.Attribute, cst.Arg)) else node.children
    return set().union(*map(_names_read, parts))


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


def _has_rival(inst: Inst, name: str, read: set[str]) -> bool:
    """Whether compiled code also reads an attribute that is never set where this one is."""
    return any(name in one and other & read or name in other and one & read for one, other in inst.rivals)


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


def _strings(slot: Any) -> Sequence[str]:
    """The string literals of a class-level list, tuple or set."""
    found: list[str] = []
    if isinstance(slot, Assigned):
        for value in slot.values:
            if isinstance(value, (cst.List, cst.Tuple, cst.Set)):
                for element in value.elements:
                    if isinstance(element.value, cst.SimpleString):
                        found.append(str(element.value.evaluated_value))
    return found
