"""Calls: arguments to parameters, functions walked with the caller's values (once per kind of arguments), objects
called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer import contexts
from tsdyn_lint.infer.defaults import given
from tsdyn_lint.infer.events import LIKELY, POSSIBLE, Hypothesis, Step
from tsdyn_lint.infer.frames import Env, Frame
from tsdyn_lint.infer.recall import DEPTH, Args, Recall
from tsdyn_lint.infer.values import (
    NOTHING,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Func,
    Instance,
    Mapping,
    Method,
    Outside,
    Partial,
    Seq,
    SuperRef,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    join,
    key,
    options,
    unknown,
)
from tsdyn_lint.infer.walk import ANY, GUESS, Notes
from tsdyn_lint.nodes import children
from tsdyn_lint.resolve import Class, Function, Module
from tsdyn_lint.usage import SCRIPT_IF_TRACING

_SAME = 3
"""Walks of one function inside of each other."""
_SAME_QUIET = 1
"""As many without events of a local function that returns nothing: deeper ones do again what the first did."""
_DYNAMO = frozenset({Engine.DYNAMO, Engine.RECOMPILE})
_TRACE = frozenset({Engine.TRACE})


@dataclass(slots=True)
class _Answer:
    """What a finished call gave, as sure as it was then. `changes`: how many were known when it last held.

    `site`: the only call that it answers, where its events say what the arguments of that call turn on.
    `held`: what its key tells apart by identity, which is kept so that nothing else gets the same.
    """

    confidence: int
    result: Value
    notes: Notes
    changes: int
    site: tuple[cst.CSTNode | None, ...] | None
    held: object


class Calls(Recall):
    """`call` evaluates a call expression, `invoke` calls a value."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memo: dict[Module, dict[Any, _Answer]] = defaultdict(dict)
        """What finished calls gave, by the file of the function called."""
        self._changes: list[int] = []
        """Names of attributes that no longer hold what finished calls found, as they became known."""
        self._touches: dict[Class | Function, int] = {}
        """What any walk of a function or constructor without events touched: recalling one touches no less."""
        self._decorated: dict[Function, Func | None] = {}
        self._wrappers: dict[Function, bool] = {}
        """Decorators, and whether what they return calls what they are given."""
        self._constants: dict[cst.Param, Const] = {}
        """Defaults that are the same in any call."""
        self._returns_nothing: dict[cst.CSTNode, bool] = {}
        self._entered: set[Function] = set()
        """Decorated functions whose own body was walked."""

    def forget_calls(self) -> None:
        """Walk every function anew when it is next called."""
        self._memo.clear()

    def leave(self, module: Module) -> None:
        """Forget the calls of a file's own functions, which other files hardly make: what they gave is large."""
        self._memo.pop(module, None)
        self._leaves.clear()

    def changed(self, touched: int) -> None:
        """Walk the functions anew that touched any of this."""
        self._changes.append(ANY | touched)

    def answer(self, key: Hashable, module: Module) -> _Answer | None:
        """What an equal call of a file's function gave, if it did not touch what has changed since."""
        known = self._memo[module].get(key)
        if known is None:
            return None
        for changes in self._changes[known.changes :]:
            if changes & known.notes.touched:
                del self._memo[module][key]
                return None
        known.changes = len(self._changes)
        return known

    def site(self, node: cst.CSTNode | None) -> tuple[cst.CSTNode | None, ...]:
        """The calls that events of the one at `node` can be asked for by."""
        asked = self.frame.asked
        return node, None if asked is None else asked.node

    def call(self, node: cst.Call) -> Value:
        if type(node.func) is cst.Name and node.func.value == "super" and self.frame.env.find("super") is None:
            return self.super_of(node)
        self.part = node.func
        func = self.expr(node.func)
        return self.invoke(func, self.arguments(node), node)

    def arguments(self, node: cst.Call) -> Args:
        args = Args()
        for arg in node.args:
            value = self.expr(arg.value)
            if arg.star == "*":
                if isinstance(value, Seq) and value.items is not None and args.rest is None:
                    args.pos += value.items
                else:
                    each = self.iterate(value, arg.value, "unpack")
                    args.rest = each if args.rest is None else join(args.rest, each)
            elif arg.star == "**":
                args.open = True
                for option in options(value):
                    if isinstance(option, Mapping):
                        args.kw.update({k: v for k, v in option.items.items() if isinstance(k, str)})
                        args.open = option.rest is not None or option.owner != "local"
            elif arg.keyword is not None:
                args.kw[arg.keyword.value] = value
            else:
                args.pos.append(value)
        return args

    def super_of(self, node: cst.Call) -> Value:
        frame = self.frame
        env: Env | None = frame.env
        function: Function | None = frame.function
        while function is not None and function.cls is None:
            function = function.outer
        cls = function.cls if function is not None else None
        if node.args:
            named = self.expr(node.args[0].value)
            cls = named.cls if isinstance(named, ClassRef) else cls
        self_value = frame.self_value
        while self_value is None and env is not None:
            self_value = env.vars.get("self")
            env = env.outer
        if cls is None or self_value is None:
            return UNKNOWN
        return SuperRef(cls, self_value)

    # --- by the kind of what is called

    def invoke(self, func: Value, args: Args, node: cst.CSTNode) -> Value:
        if type(func) is Func:
            return self.call_function(func, args, node)
        if type(func) is Outside:
            return self.outside_call(func.dotted, args, node)
        if type(func) is Method:
            return self.method_call(func, args, node)
        if type(func) is Instance:
            return self.call_instance(func, args, node)
        if isinstance(func, ClassRef):
            return self.instantiate(func.cls, args, node)
        if isinstance(func, Partial):
            merged = Args([*func.args, *args.pos], {**func.kwargs, **args.kw}, args.rest, args.open)
            return self.invoke(func.func, merged, node)
        if isinstance(func, Seq) and func.kind == "sequential":
            return self.call_sequential(func, args, node)
        if isinstance(func, Either):
            calls = [o for o in func.options if not (isinstance(o, Const) and o.value is None)]
            soft = [o for o in func.options if isinstance(o, Const) and o.soft]
            with self.under(POSSIBLE if soft else LIKELY if len(calls) > 1 else None):
                return either([self.invoke(o, args, node) for o in calls])
        for value in args.all():
            self.use(value, "arg", node)
        return unknown(func, *args.all())

    def call_sequential(self, func: Seq, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0, "input") or UNKNOWN
        saved, self.frame.repeated = self.frame.repeated, True
        if func.items is not None:
            for layer in func.items:
                value = self.invoke(layer, Args([value]), node)
        else:
            layer = element(func)
            value = (
                join(value, self.invoke(layer, Args([value]), node))
                if not isinstance(value, Tensor)
                else self.invoke(layer, Args([value]), node)
            )
        self.frame.repeated = saved
        return value

    # --- functions of the program

    def call_function(self, func: Func, args: Args, node: cst.CSTNode | None) -> Value:
        function = func.function
        if func.self is not None:
            args = args.after(func.self)
        if function.decorators and not func.bare:
            wrapper = self.decorated(function)
            if wrapper is not None:
                result = self.call_function(wrapper, args, node)
                if function in self._entered:
                    return result
        engines, muted = self.frame.engines, 0
        if function.decorators:
            engines, muted = self.marked(function, node)
        if not engines:
            return UNKNOWN
        memo_key = (
            id(function.node), id(func.env) if func.env is not None else 0, engines, bool(self.muted or muted),
            tuple(map(key, args.pos)), tuple([(k, key(v)) for k, v in args.kw.items()]) if args.kw else (),
            None if args.rest is None else key(args.rest), args.open,
        )  # fmt: skip
        known = self.answer(memo_key, function.module)
        if known is not None and known.confidence >= self.frame.confidence and known.site in (None, self.site(node)):
            self.notes.add(known.notes)
            if self.frame.repeated:
                for event in known.notes.told:
                    event.repeated = True
            return known.result
        if len(self._active) >= DEPTH:
            self._relies_on = 0
            return UNKNOWN
        if memo_key in self._active:
            self._relies_on = min(self._relies_on, self._active.index(memo_key))
            return UNKNOWN
        same = [level for level, k in enumerate(self._active) if k[0] == memo_key[0]]
        quiet = same and self.muted and func.env is not None and self.returns_nothing(function)
        most = _SAME_QUIET if quiet else _SAME
        if len(same) >= most:
            self._relies_on = min(self._relies_on, same[-most])
            return UNKNOWN
        self._active.append(memo_key)
        self._deepest = max(self._deepest, len(self._active))
        self.muted += muted
        outer, self.notes = self.notes, Notes(GUESS if any(map(_is_guess, args.all())) else 0)
        try:
            if self.muted and func.env is None and not _is_module(args.get(0)):
                what = (function, func.bare, engines, len(args.pos), tuple(args.kw), args.open)
                result = self.once(
                    what, args, len(self._active) - 1, lambda: self.walk_function(func, args, node, engines)
                )
            else:
                result = self.walk_function(func, args, node, engines)
        finally:
            self.muted -= muted
            self._active.pop()
            notes, self.notes = self.notes, outer
            outer.add(notes)
        site = self.site(node)
        self._memo[function.module][memo_key] = _Answer(
            *(self.frame.confidence, result, notes, len(self._changes)),
            None if notes.askers.isdisjoint(site) else site,
            (args, func.env),
        )
        return result

    def once(self, what: tuple[Any, ...], args: Args, level: int, walk: Callable[[], Value]) -> Value:
        result = super().once(what, args, level, walk)
        self.notes.touched |= self._touches.get(what[0], 0)
        self._touches[what[0]] = self.notes.touched
        return result

    def returns_nothing(self, function: Function) -> bool:
        """Whether no statement of a function gives its caller a value."""
        known = self._returns_nothing.get(function.node)
        if known is None:
            known = self._returns_nothing[function.node] = type(function.node) is cst.FunctionDef and not any(
                type(node) is cst.Return and node.value is not None or type(node) is cst.Yield
                for node in _own_nodes(function.body)
            )
        return known

    def marked(self, function: Function, node: cst.CSTNode | None) -> tuple[frozenset[Engine], int]:
        """The captures that decorators of torch let into the function, and 1 where its body is not looked at."""
        names = function.decorator_names
        engines, muted = self.frame.engines, 0
        if any(n.startswith(contexts.DISABLERS) for n in names):
            if node is not None:
                self.emit("call", node, None, target="torch.compiler.<disabled>", function=function.qualname)
            engines = engines - _DYNAMO
        if "torch.compile" in names and node is not None:
            self.emit("call", node, None, sub="compiled", target="torch.compile.<compiled>", function=function.qualname)
            engines = engines - _TRACE
        if "torch.library.custom_op" in names and node is not None:
            if not any(f"{function.name}.register_fake" in line for line in function.module.tree.lines):
                self.emit("call", node, None, target="torch.library.<custom op without fake>", function=function.name)
            engines = engines & frozenset({Engine.SCRIPT})
        if names & {
            "torch.jit.script",
            "torch.jit._overload_method",
            "numba.jit",
            "numba.njit",
        }:
            muted = 1
        if names & SCRIPT_IF_TRACING:
            engines = engines - _TRACE  # Dynamo and export look into the function itself
        if "torch.compiler.allow_in_graph" in names or "torch._dynamo.allow_in_graph" in names:
            muted = 1
        return engines, muted

    def decorated(self, function: Function) -> Func | None:
        """The function that decorators of the program put in the place of this one; None where none does."""
        if function in self._decorated:
            return self._decorated[function]
        self._decorated[function] = None  # a decorator that uses what it decorates ends here
        value: Value = Func(function, bare=True)
        level = Frame(function, Env(function.module))
        with self.inside(level), self.quietly():
            for decorator in reversed(function.decorators):
                named = self.expr(decorator.func if type(decorator) is cst.Call else decorator)
                if isinstance(named, Func) and self.wraps(named.function):
                    applied = self.expr(decorator) if type(decorator) is cst.Call else named
                    value = self.invoke(applied, Args([value]), decorator)
        found = value if isinstance(value, Func) and not value.bare else None
        self._decorated[function] = found
        return found

    def wraps(self, decorator: Function) -> bool:
        known = self._wrappers.get(decorator)
        if known is None:
            known = self._wrappers[decorator] = _wraps(decorator)
        return known

    def walk_function(self, func: Func, args: Args, node: cst.CSTNode | None, engines: frozenset[Engine]) -> Value:
        """One walk of a function's body with these arguments; returns the join of what it returns."""
        function, caller = func.function, self.frame
        stack = caller.stack
        if node is not None and not self.muted:
            stack = (*stack, Step(caller.function, node, caller.block, caller.sides))
        if func.bare:
            self._entered.add(function)
        env = Env(function.module, func.env)
        body = function.body
        frame = Frame(function, env, stack, caller.entry, caller.confidence, engines, repeated=caller.repeated)
        frame.entered, frame.asked = engines, caller.asked
        if stack and not _hands_on(node):
            frame.given = given(function.node.params, args.pos, args.kw)
        with self.inside(frame):
            self.bind_parameters(func, args, env)
            if args.pos and function.cls is not None and not function.is_static:
                frame.self_value = args.pos[0]
            if type(function.node) is cst.Lambda:
                return self.expr(function.node.body)
            alive = self.block(body)
            if frame.yields:
                return self.generator_value(function, frame)
            if alive:
                frame.returns.append(NOTHING)
            returned = frame.returns or frame.aside
            return either(returned) if returned else Outside("<never returns>")

    def generator_value(self, function: Function, frame: Frame) -> Value:
        if any(n.endswith(("contextmanager",)) for n in function.decorator_names):
            return Instance(None, "contextlib.<user>", {"entered": either(frame.yields)})
        return Seq("gen", None, either(frame.yields))

    def bind_parameters(self, func: Func, args: Args, env: Env) -> None:
        """Parameters from arguments, then defaults; what is given neither way is what its annotation says."""
        function = func.function
        parameters = function.node.params
        positional = [*parameters.posonly_params, *parameters.params]
        used: set[str] = set()
        for index, parameter in enumerate(positional):
            name = parameter.name.value
            value: Value | None = None
            if index < len(args.pos):
                value = args.pos[index]
            elif name in args.kw:
                value = args.kw[name]
                used.add(name)
            elif args.rest is not None:
                value = self.starred(parameter, args.rest, func)
            env.vars[name] = self.parameter(parameter, value, func, args)
        for parameter in parameters.kwonly_params:
            name = parameter.name.value
            used.add(name)
            env.vars[name] = self.parameter(parameter, args.kw.get(name), func, args)
        star = parameters.star_arg
        if type(star) is cst.Param:
            extra = args.pos[len(positional) :]
            if args.rest is not None:
                env.vars[star.name.value] = Seq("tuple", None, either([*extra, args.rest]))
            else:
                env.vars[star.name.value] = Seq("tuple", list(extra), UNKNOWN)
        if parameters.star_kwarg is not None:
            rest: dict[Hashable, Value] = {
                k: v for k, v in args.kw.items() if k not in used and k not in {p.name.value for p in positional}
            }
            env.vars[parameters.star_kwarg.name.value] = Mapping(rest, UNKNOWN if args.open else None)

    def starred(self, parameter: cst.Param, value: Value, func: Func) -> Value | None:
        """What a parameter gets from `*args` of unknown length: nothing that contradicts its default or annotation."""
        if parameter.default is not None and not (
            type(parameter.default) is cst.Name and parameter.default.value == "None"
        ):
            return None
        known: Value = UNKNOWN
        if parameter.annotation is not None:
            known = self.annotated(parameter.annotation.annotation, func.function.module)
            if not isinstance(known, Unknown):
                value = known
        if isinstance(value, Tensor):  # one of several that nothing tells apart: each is a guess of its own
            value = Tensor(hypothesis=Hypothesis(parameter.name.value), intermediate=False)
        return value if parameter.default is None else join(Const(None, True), value)

    def parameter(self, parameter: cst.Param, value: Value | None, func: Func, args: Args) -> Value:
        function = func.function
        if value is None and func.defaults is not None:
            value = func.defaults.get(parameter.name.value)
        if value is None and parameter.default is not None:
            value = self._constants.get(parameter)
            if value is None:
                value = self.default(parameter, func)
            if isinstance(value, (Seq, Mapping)):
                value.owner, value.name = "default", parameter.name.value
            if args.open or args.rest is not None:
                value = Const(value.value, True) if isinstance(value, Const) else value
        if value is None or isinstance(value, Unknown):
            known: Value = UNKNOWN
            if parameter.annotation is not None:
                known = self.annotated(parameter.annotation.annotation, function.module)
            if value is not None and value.src and not isinstance(known, Unknown):
                return value
            return known if value is None or not isinstance(known, Unknown) else value
        return value

    def default(self, parameter: cst.Param, func: Func) -> Value:
        """What stands in the header of a function for a parameter that is not given."""
        function, node = func.function, parameter.default
        assert node is not None
        with self.inside(Frame(function, Env(function.module, func.env))), self.quietly():
            value = self.expr(node)
        if type(value) is Const and (type(node) in _LITERALS or type(node) is cst.Name and node.value in _CONSTANTS):
            self._constants[parameter] = value
        return value

    # --- super

    def super_attribute(self, owner: SuperRef, name: str, node: cst.CSTNode) -> Value:
        start = owner.self
        cls = start.cls if isinstance(start, Instance) and start.cls is not None else owner.cls
        member = self.program.class_member(cls, name, after=owner.cls)
        if isinstance(member, Function):
            if member.is_property:
                return self.call_function(Func(member, owner.self), Args(), node)
            return Func(member, None if member.is_static else owner.self)
        if member is not None:
            return self.definition_value(member, cls.module, name)
        return Method(owner.self, name)

    # --- left to the classes that know the library

    def outside_call(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def method_call(self, method: Method, args: Args, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def call_instance(self, owner: Instance, args: Args, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def instantiate(self, cls: Class, args: Args, node: cst.CSTNode | None) -> Value:
        raise NotImplementedError


_LITERALS = frozenset({cst.Integer, cst.Float, cst.SimpleString})
_CONSTANTS = frozenset({"None", "True", "False"})


def _is_guess(value: Value) -> bool:
    if type(value) is Tensor:
        return value.hypothesis is not None
    return type(value) is Either and any(map(_is_guess, value.options))


def _is_module(value: Value | None) -> bool:
    return isinstance(value, Instance) and value.is_module


def _own_nodes(body: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """The nodes of a body, without those of functions and classes in it."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        if type(node) is not cst.FunctionDef and type(node) is not cst.ClassDef and type(node) is not cst.Lambda:
            todo += children(node)


def _wraps(decorator: Function) -> bool:
    """Whether a function has a nested one that calls what it was given, as a decorator's wrapper does."""
    todo = [(node, frozenset[str](), _parameter_names(decorator.node)) for node in decorator.body]
    while todo:
        node, outer, own = todo.pop()
        if type(node) is cst.Call and type(node.func) is cst.Name and node.func.value in outer:
            return True
        if type(node) is cst.FunctionDef:
            outer, own = outer | own, _parameter_names(node)
        todo += [(child, outer, own) for child in children(node)]
    return False


def _parameter_names(node: cst.FunctionDef | cst.Lambda) -> frozenset[str]:
    return frozenset(p.name.value for p in (*node.params.posonly_params, *node.params.params))


def _hands_on(node: cst.CSTNode | None) -> bool:
    """Whether a call passes on what its own function was called with: it is not the one that chose the arguments."""
    return isinstance(node, cst.Call) and any(argument.star for argument in node.args)
