"""Where captures begin: the forward of each module class, and functions that the file compiles, scripts, traces or
exports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.captures import captures, dotted_ast, inputs_of
from tsdyn_lint.infer.constructions import READING, Construction, constructions
from tsdyn_lint.infer.differing import differing_attributes
from tsdyn_lint.infer.events import ALL_ENGINES, CERTAIN, LIKELY, POSSIBLE, Event, Hypothesis, Use
from tsdyn_lint.infer.frames import Env, Frame
from tsdyn_lint.infer.instances import is_dataclass
from tsdyn_lint.infer.library_calls import LibraryCalls
from tsdyn_lint.infer.recall import Args
from tsdyn_lint.infer.refine import is_soft_none
from tsdyn_lint.infer.values import (
    GIVEN,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Func,
    Instance,
    Mapping,
    Scalar,
    Seq,
    Tensor,
    Unknown,
    Value,
    either,
    options,
)
from tsdyn_lint.infer.walk import GUESS, OutOfBudget, _level
from tsdyn_lint.nodes import children
from tsdyn_lint.parse import ParseFailure
from tsdyn_lint.resolve import Assigned, Class, Function, Module, Program
from tsdyn_lint.resolve.symbols import dotted_name
from tsdyn_lint.torchdata.load import TorchData
from tsdyn_lint.usage import SCRIPT_IF_TRACING

_SCRIPTED = SCRIPT_IF_TRACING | {"torch.jit.script"}
_IGNORED = frozenset({"torch.jit.ignore", "torch.jit.unused"})


class Walk(LibraryCalls):
    """The whole walk: every class of this chain adds one kind of syntax or library."""

    def is_evaluated(self, module: Module) -> bool:
        """Whether a file has models that `from_pretrained` leaves in eval mode."""
        return any(
            self.program.has_member(cls, "from_pretrained")
            or any(base.endswith(".PreTrainedModel") for base in self.program.outside_bases(cls))
            for cls in module.classes
        )

    def in_mode(self, evaluated: bool) -> None:
        """Choose what `self.training` is: in eval mode a test of it rules its branch out unless somebody trains the
        model.
        """
        if evaluated != isinstance(self.training, Const):
            self.training = Const(False, True) if evaluated else Scalar("bool", "training")
            self.forget_calls()


def walk(
    program: Program, torch: TorchData, wanted: Callable[[str], bool], fail: Callable[[Module, str, Exception], None]
) -> list[Event]:
    """Events of everything that captures reach from the entry points of the linted modules.

    `fail` hears of an error of ours: it costs that entry point, and no other. What cannot be read costs its file.
    """
    walker = Walk(program, torch, wanted)
    for module in program.linted:
        try:
            starts = list(entries(program, module))
            evaluated = walker.is_evaluated(module)
        except ParseFailure as failure:
            fail(module, module.name, failure)
            continue
        for entry in starts:
            walker.in_mode(evaluated or (entry.made is not None and entry.made.evaluated))
            try:
                entry.run(walker)
            except OutOfBudget:
                pass
            except Exception as error:
                fail(module, entry.name, error)
            walker.start_afresh()
        walker.leave(module)
    for write in walker.writes:
        if "state" in write.facts:
            write.facts["reads"] = walker.read_kinds(*write.facts["state"])
    events = [*walker.events.values(), *_kept_sizes(walker)]
    walker.release()
    return events


def _kept_sizes(walker: Walk) -> Iterator[Event]:
    """Reads of a size that an earlier call left on `self`."""
    for write in walker.writes:
        if write.facts.get("sized") and write.facts["read_before"] and write.facts["reads"]:
            read = walker.tracked[write.facts["state"]]
            if read is not None:
                use = Use("write", write.node, write.function)
                yield replace(
                    read,
                    kind="kept-size",
                    facts={"owner": write.facts["owner"]},
                    uses=[use],
                    confidence=write.confidence,
                )


@dataclass(frozen=True)
class Entry:
    """A function that a capture starts at; `cls` for the forward of a module, `made` for the call that makes it where
    the file captures that instance.
    """

    function: Function
    cls: Class | None
    confidence: int = CERTAIN
    engines: frozenset[Engine] = ALL_ENGINES
    made: Construction | None = None

    @property
    def name(self) -> str:
        owner = self.cls.qualname if self.cls is not None else ""
        return ".".join(
            p
            for p in (
                self.function.module.name if self.cls is None else self.cls.module.name,
                owner,
                self.function.name if self.cls else self.function.qualname,
            )
            if p
        )

    def run(self, walker: Walk) -> None:
        module = self.cls.module if self.cls is not None else self.function.module
        level = _level(module, self.cls)
        frame = Frame(level, Env(module), (), self.name, self.confidence, self.engines)
        with walker.inside(frame):
            self_value: Value | None = None
            if self.cls is not None:
                self_value = self.build(walker)
            captured = self.cls.name if self.cls is not None else self.function.name
            inputs = inputs_of(module, captured)
            args = forward_arguments(walker, self.function, self_value is not None, self.confidence < CERTAIN, inputs)
            self.call(walker, self_value, args)
            states = (write for write in walker.writes if "state" in write.facts)
            writes = [write for write in states if write.facts["state"] not in walker.tracked]
            proved = with_proved(args)
            if proved is not args or writes:
                # a second call finds what the first one wrote, now watching what is read of it, and knows from the
                # start which arguments turned out to be tensors
                walker.tracked.update({write.facts["state"]: None for write in writes})
                if all(write.facts["owner"] == "self" for write in writes):
                    walker.changed(GUESS | walker.written)
                else:
                    walker.forget_calls()
                for (_, name), (owner, value) in walker.filled.items():
                    owner.attrs[name] = value
                self.call(walker, self_value, proved)
            self.compare_instances(walker)

    def compare_instances(self, walker: Walk) -> None:
        """Tell the first read of each attribute by which the instances of the class fail each other's guards."""
        if self.cls is None or self.function.cls is not self.cls:
            return
        differing = differing_attributes(self.cls)
        if not differing:
            return
        statements = self.function.body
        with walker.inside(Frame(self.function, Env(self.function.module), (), self.name)):
            for node in _reads_of_self(statements):
                kind = differing.pop(node.attr.value, "")
                if kind:
                    walker.emit("differing-attribute", node, type=kind)

    def call(self, walker: Walk, self_value: Value | None, args: Args) -> None:
        """One call of the entry, with the hooks that its constructor put on it."""
        walker.rebuilt.clear()
        walker.filled.clear()
        walker.written = 0
        if not isinstance(self_value, Instance):
            walker.call_function(Func(self.function, self_value), args, None)
            return
        walker.run_hooks(self_value, "<pre-hooks>", args, UNKNOWN, None)
        result = walker.call_function(Func(self.function, self_value), args, None)
        walker.run_hooks(self_value, "<hooks>", args, result, None)

    def build(self, walker: Walk) -> Value:
        assert self.cls is not None
        init = walker.program.class_member(self.cls, "__init__")
        given = self.given(walker, self.cls.module)
        args = constructor_arguments(walker, init, self.cls, given) if isinstance(init, Function) else Args()
        with walker.quietly():
            return walker.sharing.shared(walker.instantiate(self.cls, args, None))

    def given(self, walker: Walk, module: Module) -> Args:
        """What the constructor is called with, as far as its call says; anything where that is not known."""
        if self.made is None:
            return Args(rest=UNKNOWN, open=True)
        with walker.inside(Frame(_level(module, None), Env(module))), walker.quietly():

            def value(argument: ast.expr | None) -> Value:
                found = UNKNOWN if argument is None else walker.expr(module.tree.expression(argument))
                return found if _says_all(found, walker.program) else UNKNOWN

            return Args([value(one) for one in self.made.args], {name: value(one) for name, one in self.made.keywords})


def _says_all(value: Value, program: Program) -> bool:
    """Whether a value that a constructor is given says more than its default, and its class does not say otherwise."""
    if isinstance(value, Instance):
        return value.is_layer or value.cls is not None and _is_plain(value.cls, program)
    return isinstance(value, (Const, Func))


_MAGIC = frozenset("__new__ __setattr__ __getattr__ __getattribute__ __post_init__".split())


def _is_plain(cls: Class, program: Program) -> bool:
    """Whether an instance of a class is what its constructor, or the fields of a data class, say."""
    if not program.is_nn_module(cls) and not is_dataclass(cls):
        return False
    init = program.class_member(cls, "__init__")
    if isinstance(init, Function) and init.decorators:
        return False
    return not any(isinstance(program.class_member(cls, name), Function) for name in (*READING, *_MAGIC))


def entries(program: Program, module: Module) -> Iterator[Entry]:
    """The entry points of one file."""
    named = captures(module)
    any_class = False
    for cls in module.classes:
        if not program.is_nn_module(cls):
            continue
        forward = program.class_member(cls, "forward")
        if not isinstance(forward, Function):
            continue
        any_class = True
        if _is_abstract(cls) and program.has_subclasses(cls):
            continue
        if forward.decorator_names & _IGNORED:
            continue
        known = named and cls.qualname == cls.name and _is_plain(cls, program)
        for made in constructions(module, cls.name) if known else [None]:
            yield Entry(forward, cls) if made is None else Entry(forward, cls, engines=made.engines, made=made)
    any_function = False
    for name in sorted({c.name for c in named}):
        function = module.symbols.get(name)
        if isinstance(function, Function):
            any_function = True
            scripted = bool(function.decorator_names & _SCRIPTED)
            yield Entry(function, None, CERTAIN, frozenset({Engine.SCRIPT}) if scripted else ALL_ENGINES)
            continue
        # `torch.compile(model.generate)`, or a decorated method
        asked = frozenset[Engine]().union(*(capture.engines for capture in named if capture.name == name))
        for cls in module.classes:
            method = cls.methods.get(name)
            if method is not None and not (name == "forward" and program.is_nn_module(cls)):
                any_function = True
                yield Entry(method, cls, engines=asked)
    if not any_class and not any_function and not named:
        program.loose.add(module.path)
        loose = program.root(module.path) == module.path.parent
        for function in module.functions:
            if _tensor_parameters(function):
                # in a package, what captures reach is found from the modules that call it; the rest loads and trains,
                # unless it says that it makes tensors of tensors
                yield Entry(function, None, LIKELY if loose or _maps_tensors(function) else POSSIBLE)


def _is_abstract(cls: Class) -> bool:
    """Whether some method of the class is only a place for subclasses to fill."""
    for name in cls.methods:
        method = cls.methods.syntax(name)
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if any(dotted_ast(d, cls.module).endswith("abstractmethod") for d in method.decorator_list):
            return True
        last = method.body[-1] if len(method.body) <= 2 else None
        if isinstance(last, ast.Raise):
            raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                return True
    return False


def _reads_of_self(nodes: Iterable[cst.CSTNode]) -> Iterator[cst.Attribute]:
    """Where attributes of `self` are read, in the order of the source."""
    for node in nodes:
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self":
            yield node
        elif not isinstance(node, cst.AssignTarget):
            yield from _reads_of_self(children(node))


_TENSOR_USES = frozenset(
    {
        "shape",
        "size",
        "view",
        "sum",
        "mean",
        "unsqueeze",
        "squeeze",
        "permute",
        "transpose",
        "dim",
        "reshape",
        "device",
        "item",
        "float",
        "long",
    }
)


_NOT_ON_TENSORS = (
    "torch.hub.", "torch.utils.", "torch.cuda.", "torch.distributed.", "torch.onnx.", "torch.jit.", "torch.optim.",
    "torch.load", "torch.save", "torch.device", "torch.manual_seed", "torch.compile", "torch.backends.",
    "torch.library.",
)  # fmt: skip


_MADE_OF_NUMBERS = frozenset(
    "zeros ones empty full arange range tensor eye linspace rand randn randint randperm Tensor Size Generator".split()
)


def _may_be_tensor(annotation: cst.BaseExpression) -> bool:
    """Whether an annotation leaves room for a tensor, in any spelling."""
    return _names_tensor(annotation) or dotted_name(annotation) in ("Any", "typing.Any")


def _names_tensor(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Name, cst.SimpleString)):
        return "Tensor" in node.value
    return any(map(_names_tensor, children(node)))


def _maps_tensors(function: Function) -> bool:
    """Whether a public function takes a tensor first and returns tensors, by its annotations."""
    node = function.node
    if type(node) is not cst.FunctionDef or function.name.startswith("_"):
        return False
    annotations = [p.annotation for p in (*node.params.posonly_params, *node.params.params)][:1] + [node.returns]
    return all(a is not None and _names_tensor(a.annotation) for a in annotations)


def _tensor_parameters(function: Function) -> frozenset[str]:
    """Parameters of the function that are used as only a tensor can be."""
    found: set[str] = set()
    parameters = (*function.node.params.params, *function.node.params.posonly_params)
    names = {p.name.value for p in parameters if p.annotation is None or _may_be_tensor(p.annotation.annotation)}
    for node in function.nodes:
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in names and node.attr in _TENSOR_USES:
                found.add(node.value.id)
        elif isinstance(node, ast.Call):
            dotted = dotted_ast(node.func, function.module)
            made = dotted.rpartition(".")[2] in _MADE_OF_NUMBERS
            if dotted.startswith("torch.") and not made and not dotted.startswith(_NOT_ON_TENSORS):
                given = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
                given += [k.value for k in node.keywords]
                found |= {a.id for a in given[:2] if isinstance(a, ast.Name)} & names
    return frozenset(found)


def _counted(function: Function, parameter: cst.Param) -> bool:
    """Whether an un-annotated parameter goes into `arange`, where a number is as likely as a tensor."""
    if parameter.annotation is not None:
        return False
    for node in function.nodes:
        if isinstance(node, ast.Call) and dotted_ast(node.func, function.module) == "torch.arange":
            terms = [term for a in node.args for term in _terms(a)]
            if any(isinstance(term, ast.Name) and term.id == parameter.name.value for term in terms):
                return True
    return False


def _used_otherwise(function: Function, parameter: cst.Param) -> bool:
    """Whether an un-annotated parameter is used as no tensor is: backwards, as a dict or by a name."""
    if parameter.annotation is not None:
        return False
    name = parameter.name.value
    nodes = function.nodes
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    rebound = min((node.lineno for node in names if isinstance(node.ctx, ast.Store)), default=None)
    return any(
        isinstance(node, (ast.Attribute, ast.Subscript))
        and any(node.value is one for one in names)
        and (rebound is None or node.lineno <= rebound)
        and _is_no_tensors(node)
        for node in nodes
    )


def _is_a_size(function: Function, parameter: cst.Param) -> bool:
    """Whether an un-annotated parameter is a size that a view, a tiling or a padding is given."""
    if parameter.annotation is not None:
        return False
    nodes = function.nodes
    sizes = [size for node in nodes if isinstance(node, ast.Call) for size in _sizes(node)]
    return any(isinstance(size, ast.Name) and size.id == parameter.name.value for size in sizes)


def _sizes(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that are sizes: of a view, or in a tuple given to a tiling or a padding."""
    if not isinstance(call.func, ast.Attribute):
        return
    if call.func.attr in ("view", "reshape", "expand", "repeat") and len(call.args) > 1:
        yield from call.args
    if call.func.attr in ("tile", "pad") and len(call.args) > 1 and isinstance(call.args[1], ast.Tuple):
        yield from call.args[1].elts


def _is_no_tensors(use: ast.Attribute | ast.Subscript) -> bool:
    """Whether an attribute or an item is one that no tensor has."""
    if isinstance(use, ast.Attribute):
        return use.attr in ("items", "keys")
    if isinstance(use.slice, ast.Slice):
        return isinstance(use.slice.step, ast.UnaryOp)
    return isinstance(use.slice, ast.Constant) and isinstance(use.slice.value, str)


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """What an arithmetic expression is made of."""
    if isinstance(node, ast.BinOp):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def forward_arguments(
    walker: Walk, function: Function, is_method: bool, guessed: bool = False, inputs: int = 0
) -> Args:
    """What an entry point is called with: tensors, unless annotations, defaults or (later) uses say otherwise.

    `inputs` of them are known to be given.
    """
    parameters = function.node.params
    positional = [*parameters.posonly_params, *parameters.params]
    if is_method and not function.is_static:
        positional = positional[1:]
    args = Args()
    evident = _tensor_parameters(function) if guessed else frozenset()
    for index, parameter in enumerate(positional):
        first = index == 0 and (
            parameter.name.value in evident
            if guessed
            else not _counted(function, parameter) and not _used_otherwise(function, parameter)
        )
        value = entry_value(walker, parameter, function, first)
        if first and _is_a_size(function, parameter):
            value = Scalar("int", "unknown")
        args.pos.append(_without_default(value) if index < inputs else value)
    for parameter in parameters.kwonly_params:
        args.kw[parameter.name.value] = entry_value(walker, parameter, function, first=False)
    if isinstance(parameters.star_arg, cst.Param):
        args.rest = Tensor(intermediate=False)
    args.open = parameters.star_kwarg is not None
    return args


def with_proved(args: Args) -> Args:
    """The arguments with those for plain tensors that were doubted before a later use proved them; else the same."""

    guesses = [o for v in args.all() for o in options(v) if isinstance(o, Tensor) and o.hypothesis is not None]
    known: dict[int, Value] = {
        id(guess): replace(guess, hypothesis=None)
        for guess in guesses
        if guess.hypothesis is not None and guess.hypothesis.doubted and guess.hypothesis.confirmed
    }
    if not known:
        return args

    def settled(value: Value) -> Value:
        if isinstance(value, Either):
            return Either(tuple(known.get(id(option), option) for option in value.options))
        return known.get(id(value), value)

    return Args([settled(v) for v in args.pos], {k: settled(v) for k, v in args.kw.items()}, args.rest, args.open)


def entry_value(walker: Walk, parameter: cst.Param, function: Function, first: bool) -> Value:
    """The value of one parameter of an entry point."""
    name = parameter.name.value
    told = parameter.annotation.annotation if parameter.annotation is not None else function.documented.get(name)
    annotated = walker.annotated(told, function.module)
    guess: Value
    if told is not None:
        guess = _as_argument(annotated)
        if isinstance(annotated, Either) and any(isinstance(o, Scalar) for o in annotated.options):
            # `int | Tensor`: which one it is given, only its use can tell
            guess = Tensor(hypothesis=Hypothesis(name), intermediate=False) if walker.tensor(annotated) else guess
    elif first:
        guess = Tensor(intermediate=False)
    else:
        guess = Tensor(hypothesis=Hypothesis(name), intermediate=False)
    if parameter.default is None:
        return guess
    with walker.inside(Frame(function, Env(function.module))), walker.quietly():
        default = walker.expr(parameter.default)
    if isinstance(default, Const) and default.value is None:
        if first and told is None:
            return guess
        rest = tuple(
            v
            for v in (guess.options if isinstance(guess, Either) else (guess,))
            if not (isinstance(v, Const) and v.value is None)
        )
        if first and rest:
            return rest[0] if len(rest) == 1 else Either(rest)
        return Either((Const(None, True), *rest)) if rest else Const(None, True)
    if isinstance(default, Const):
        return Const(default.value, True)
    if isinstance(default, (Seq, Mapping)):
        default.owner, default.name = "default", name
        return default
    return default if not isinstance(default, Unknown) else guess


def _without_default(value: Value) -> Value:
    """The value of an argument that is given: not the None that its parameter has by default."""
    rest = [option for option in options(value) if not is_soft_none(option)]
    return either(rest) if rest else UNKNOWN


def _as_argument(value: Value) -> Value:
    """An annotated value, marked as an input rather than an intermediate."""
    if isinstance(value, Tensor):
        return Tensor(value.dtype, None, "data", value.numpy, intermediate=False)
    if isinstance(value, Either):
        return Either(tuple(_as_argument(v) for v in value.options))
    return value


def constructor_arguments(walker: Walk, init: Function, cls: Class, given: Args) -> Args:
    """The arguments of a constructor: those `given`; of others, defaults and annotations say what is likely."""
    parameters = init.node.params
    positional = [*parameters.posonly_params, *parameters.params][1:]
    args = Args()
    for index, parameter in enumerate(positional):
        value = given.get(index, parameter.name.value)
        args.pos.append(constructor_value(walker, parameter, init, cls, value))
    for parameter in parameters.kwonly_params:
        args.kw[parameter.name.value] = constructor_value(
            walker, parameter, init, cls, given.kw.get(parameter.name.value)
        )
    if isinstance(parameters.star_arg, cst.Param):
        args.pos += given.pos[len(positional) :]
        args.rest = given.rest
    if parameters.star_kwarg is not None:
        named = {parameter.name.value for parameter in (*positional, *parameters.kwonly_params)}
        args.kw.update({name: value for name, value in given.kw.items() if name not in named})
        args.open = given.open
    return args


def constructor_value(walker: Walk, parameter: cst.Param, init: Function, cls: Class, value: Value | None) -> Value:
    """What one parameter of a constructor holds: the value that it is given, if that is known."""
    if value is not None and not isinstance(value, Unknown):
        return value
    annotated: Value = GIVEN
    if parameter.annotation is not None:
        annotated = walker.annotated(parameter.annotation.annotation, init.module)
    # `config_class = XConfig` in the class says what its `config` argument is, closer than a base in an annotation
    named = walker.program.class_member(cls, f"{parameter.name.value}_class")
    if isinstance(named, Assigned):
        found = walker.class_constant(named, cls, f"{parameter.name.value}_class", "global")
        annotated = walker.example(found.cls) if isinstance(found, ClassRef) else annotated
    if parameter.default is None:
        return annotated
    with walker.inside(Frame(init, Env(init.module))), walker.quietly():
        default = walker.expr(parameter.default)
    return Const(default.value, True) if isinstance(default, Const) else default
