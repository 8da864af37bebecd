"""Calls out of the program: torch's classes and switches, the standard library, NumPy; and methods of any value."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import cast

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer import contexts
from tsdyn_lint.infer.builtin_calls import BuiltinCalls
from tsdyn_lint.infer.events import CERTAIN, LIKELY, POSSIBLE, Event, Step
from tsdyn_lint.infer.frames import Env, Frame
from tsdyn_lint.infer.instances import has_parameters, holds_rnn
from tsdyn_lint.infer.operators import derived
from tsdyn_lint.infer.recall import Args
from tsdyn_lint.infer.tensors import _flat
from tsdyn_lint.infer.values import (
    BOOL,
    CONTAINERS,
    INT,
    NOTHING,
    STR,
    UNKNOWN,
    ClassRef,
    Const,
    Flag,
    Func,
    Instance,
    Mapping,
    Method,
    Outside,
    Partial,
    Scalar,
    Seq,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    options,
    sources,
    unknown,
)
from tsdyn_lint.infer.walk import ANY
from tsdyn_lint.resolve import Function

_ALIASES = {
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.autograd.variable.Variable": "torch.autograd.Variable",
    "torch.functional.F": "torch.nn.functional",
    "torch.nn.modules.utils": "torch.nn.modules.utils",
    "torch.nn.Buffer": "torch.nn.Buffer",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
}
_COMPILING = {
    "torch.compiler.is_compiling": frozenset({Engine.DYNAMO, Engine.RECOMPILE, Engine.EXPORT}),
    "torch.compiler.is_dynamo_compiling": frozenset({Engine.DYNAMO, Engine.RECOMPILE}),
    "torch._dynamo.is_compiling": frozenset({Engine.DYNAMO, Engine.RECOMPILE}),
    "torch._dynamo.external_utils.is_compiling": frozenset({Engine.DYNAMO, Engine.RECOMPILE}),
    "torch.compiler.is_exporting": frozenset({Engine.EXPORT}),
    "torch.jit.is_tracing": frozenset({Engine.TRACE}),
    "torch._C._get_tracing_state": frozenset({Engine.TRACE}),
    "torch.jit.is_scripting": frozenset({Engine.SCRIPT}),
}  # fmt: skip
_CONSTANTS = {
    "math.pi": 3.141592653589793, "math.e": 2.718281828459045, "math.inf": float("inf"),
    "math.nan": float("nan"), "math.tau": 6.283185307179586,
    "numpy.pi": 3.141592653589793, "numpy.inf": float("inf"), "numpy.nan": float("nan"),
    "torch.pi": 3.141592653589793, "torch.inf": float("inf"),
    "numpy.newaxis": None, "sys.maxsize": 9223372036854775807, "typing.TYPE_CHECKING": False,
}  # fmt: skip
_TENSOR_ONLY_METHODS = frozenset({"item", "tolist"})
_LOGGER_METHODS = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "warning_once", "info_once"}
)
_RANDOM_MODULES = ("random.", "numpy.random.", "secrets.", "uuid.")
_CLOCKS = ("time.", "datetime.")


_NUMPY_MAKERS = frozenset("array arange zeros ones linspace asarray eye full empty identity".split())
_NUMPY_SEVERAL = frozenset("meshgrid split array_split hsplit vsplit histogram nonzero where unravel_index ix_".split())
_NUMPY_SIZED = frozenset("unique argwhere nonzero flatnonzero".split())
_NUMPY_REDUCTIONS = frozenset(
    "prod sum max min mean argmax argmin std var median any all amax amin ptp count_nonzero".split()
)


@lru_cache(maxsize=4096)
def _outside(dotted: str) -> Value:
    if dotted in _CONSTANTS:
        return Const(_CONSTANTS[dotted])
    if dotted.rpartition(".")[0].startswith("sys.version"):
        return Scalar("other", "constant")
    return Outside(_ALIASES.get(dotted, dotted))


class LibraryCalls(BuiltinCalls):
    """The last layer of the walk: names outside of the program."""

    def outside_attribute(self, dotted: str, name: str) -> Value:
        return _outside(f"{dotted}.{name}")

    def outside_call(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        head = dotted.partition(".")[0]
        if head == "builtins":
            return self.builtin_call(dotted[9:], args, node)
        if head == "torch":
            return self.torch_name(dotted, args, node)
        handler = getattr(self, f"lib_{head}", None)
        if handler is not None:
            result = handler(dotted, args, node)
            if result is not None:
                return cast(Value, result)
        return self.unknown_call(dotted, args, node)

    def unknown_call(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        """A function nobody described: only its name and what goes in are known."""
        origin = "random" if dotted.startswith(_RANDOM_MODULES) else "clock" if dotted.startswith(_CLOCKS) else ""
        src: frozenset[Event] = frozenset()
        for value in args.all():
            self.use(value, "arg", node)
        if self.wanted(dotted):
            event = self.emit(
                "call",
                node,
                None,
                sub=dotted,
                target=dotted,
                tensor=any(self.tensor(v) is not None for v in _flat(args.all(), 1)),
                args=len(args.pos),
                keywords=tuple(args.kw),
            )
            if event is not None:
                src = frozenset([event])
        if dotted == "<never returns>" or dotted in ("sys.exit", "os._exit"):
            return Outside("<never returns>")
        if origin:
            kind = (
                "int"
                if dotted.rpartition(".")[2] in ("randint", "randrange", "getrandbits")
                else "float"
                if origin == "random"
                and dotted.rpartition(".")[2] in ("random", "uniform", "gauss", "time", "perf_counter")
                else "number"
            )
            return Scalar(kind, origin, src)
        short = dotted.rpartition(".")[2]
        if short[:1].isupper() and "." in dotted:
            return Instance(
                None,
                dotted,
                is_module=short.endswith(("Module", "Layer")),
                args=tuple(args.pos),
                kwargs=dict(args.kw),
                src=src,
            )
        if contexts.kind(dotted) != "unknown":
            return Instance(None, dotted, src=src)
        return Unknown(src | sources(*args.all())) if src or sources(*args.all()) else UNKNOWN

    # --- torch

    def torch_name(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        dotted = _ALIASES.get(dotted, dotted)
        if dotted in _COMPILING:
            return Flag(_COMPILING[dotted], _COMPILING[dotted])
        short = dotted.rpartition(".")[2]
        if dotted in CONTAINERS:
            return self.container(dotted, args, node)
        if dotted in ("torch.nn.Parameter", "torch.nn.Buffer"):
            if dotted == "torch.nn.Parameter":
                self.emit("construct", node, None, target=dotted, name="nn.Parameter", parameters=True)
            given = self.tensor(args.get(0) or UNKNOWN)
            return Tensor(
                given.dtype if given else None,
                given.rank if given else None,
                "parameter" if dotted == "torch.nn.Parameter" else "buffer",
                intermediate=False,
            )
        if (
            dotted.startswith("torch.nn.")
            and short[:1].isupper()
            and dotted.count(".") <= 4
            and not dotted.startswith(("torch.nn.utils.", "torch.nn.functional.", "torch.nn.init."))
        ):
            parameters = has_parameters(dotted)
            if not self.muted:
                self.emit("construct", node, None, target=dotted, name=f"nn.{short}", parameters=parameters)
            return Instance(
                None,
                f"torch.nn.{short}" if dotted.startswith("torch.nn.modules.") else dotted,
                is_module=True,
                args=tuple(args.pos),
                kwargs=dict(args.kw),
            )
        if dotted == "torch.is_tensor":
            return self.isinstance_(Args([args.get(0) or UNKNOWN, Outside("torch.Tensor")]), node)
        if dotted in (
            "torch.compile",
            "torch.jit.script",
            "torch.jit.trace",
            "torch.jit.ignore",
            "torch.jit.unused",
            "torch.jit.export",
            "torch.compiler.allow_in_graph",
            "torch.fx.wrap",
        ):
            first = args.get(0)
            if dotted in ("torch.jit.script", "torch.jit.trace"):
                self.emit("call", node, None, sub=dotted, target=dotted)
                if isinstance(first, Instance) and first.is_module:
                    return Instance(None, "torch.jit.ScriptModule", is_module=True, args=(first,))
            return first if first is not None else UNKNOWN
        if dotted.startswith("torch.optim.") and short[:1].isupper():
            return Instance(None, dotted)
        if dotted in ("torch.jit.isinstance", "torch.jit.fork", "torch.jit.wait"):
            self.emit("call", node, None, sub=dotted, target=dotted)
            if dotted == "torch.jit.isinstance":
                return BOOL
            if dotted == "torch.jit.wait" or not args.pos:
                return args.get(0) or UNKNOWN
            return self.invoke(args.pos[0], Args(args.pos[1:], args.kw, args.rest, args.open), node)
        if dotted.startswith(contexts.DISABLERS) or dotted == "torch.compiler.<disabled>":
            if dotted == "torch.compiler.<disabled>":
                self.emit("call", node, None, sub=dotted, target=dotted, function="")
                return UNKNOWN
            first = args.get(0)
            return (
                Outside("torch.compiler.<disabled>")
                if first is not None and isinstance(first, (Func, Instance))
                else UNKNOWN
            )
        if dotted in ("torch.utils.checkpoint.checkpoint",):
            rest = Args(
                args.pos[1:],
                {k: v for k, v in args.kw.items() if k not in ("use_reentrant", "preserve_rng_state", "context_fn")},
                args.rest,
                args.open,
            )
            return self.invoke(args.pos[0], rest, node) if args.pos else UNKNOWN
        if dotted in ("torch.utils.checkpoint.checkpoint_sequential",):
            return Tensor()
        if dotted in ("torch.jit.annotate", "torch.jit._unwrap_optional"):
            return args.pos[-1] if args.pos else UNKNOWN
        if dotted in ("torch.vmap", "torch.func.vmap", "torch.func.grad", "torch.func.jacrev"):
            return UNKNOWN
        if dotted in ("torch.cond", "torch.ops.higher_order.cond"):
            operands = args.get(3, "operands")
            inner = Args(list(operands.items)) if isinstance(operands, Seq) and operands.items is not None else Args()
            found = [self.invoke(f, inner, node) for f in args.pos[1:3]]
            return either(found) if found else UNKNOWN
        if dotted in (
            "torch._check",
            "torch._check_is_size",
            "torch._check_value",
            "torch._check_index",
            "torch._check_type",
        ):
            self.use(args.get(0) or UNKNOWN, "check", node)
            return NOTHING
        if dotted.startswith("torch.return_types."):
            return args.get(0) or UNKNOWN
        if dotted in ("torch.Size",):
            given_size = args.get(0)
            return given_size if isinstance(given_size, Seq) else Seq("size", None, INT)
        if dotted in ("torch.device", "torch.dtype", "torch.finfo", "torch.iinfo"):
            return Instance(None, dotted) if dotted == "torch.device" else Scalar("other", "meta")
        if dotted in (
            "torch.is_grad_enabled",
            "torch.is_autocast_enabled",
            "torch.is_floating_point",
            "torch.is_complex",
            "torch.cuda.is_available",
            "torch.onnx.is_in_onnx_export",
            "torch.backends.mps.is_available",
            "torch.distributed.is_initialized",
            "torch.distributed.is_available",
        ):
            if self.wanted(dotted):
                self.emit("call", node, None, sub=dotted, target=dotted)
            return Const(False, True) if dotted == "torch.onnx.is_in_onnx_export" else Scalar("bool", "meta")
        if dotted in ("torch._assert",):
            self.test(args.get(0) or UNKNOWN, node, "torch-assert")
            return NOTHING
        if dotted == "torch.nn.utils.rnn.pack_padded_sequence":
            for value in args.all():
                self.use(value, "arg", node)
            self.emit("call", node, None, sub=dotted, target=dotted)
            return Instance(None, "torch.nn.utils.rnn.PackedSequence")
        if dotted == "torch.nn.utils.rnn.pad_packed_sequence":
            given_sequence = args.get(0, "sequence")
            packed_here = isinstance(given_sequence, Instance) and given_sequence.outside.endswith("PackedSequence")
            if not packed_here:  # else the graph has ended at the packing
                self.emit("call", node, None, sub=dotted, target=dotted)
            return Seq("tuple", [Tensor(), Tensor("int")], UNKNOWN)
        if contexts.kind(dotted) != "unknown":
            if self.wanted(dotted):
                self.emit("call", node, None, sub=dotted, target=dotted)
            return Instance(None, dotted, args=tuple(args.pos))
        if short == "apply" and dotted.startswith("torch.autograd."):
            return Tensor()
        return self.torch_call(dotted, args, node)

    def container(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        """`nn.ModuleList`, `nn.Sequential`, `nn.ModuleDict` and the parameter containers, with what they hold."""
        if dotted == "torch.nn.Sequential":
            if len(args.pos) == 1 and isinstance(args.pos[0], Mapping) and not args.rest:
                table = args.pos[0]
                if table.rest is None:
                    return Seq("sequential", list(table.items.values()), UNKNOWN)
                return Seq("sequential", None, either([*table.items.values(), table.rest]))
            if args.rest is not None:
                return Seq("sequential", None, either([*args.pos, args.rest]))
            return Seq("sequential", list(args.pos), UNKNOWN)
        if dotted.endswith("Dict"):
            first = args.get(0)
            if isinstance(first, Mapping):
                return Mapping(dict(first.items), first.rest)
            return Mapping({}, None if first is None else UNKNOWN)
        first = args.get(0)
        kind = "modulelist" if dotted.endswith("ModuleList") else "list"
        if first is None:
            return Seq(kind, [], UNKNOWN)
        if isinstance(first, Seq):
            return Seq(kind, list(first.items) if first.items is not None else None, first.elem)
        return Seq(kind, None, self.iterate(first, node, "loop"))

    # --- standard library

    def lib_math(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        name = dotted[5:]
        values = args.pos
        src = sources(*values)
        for value in values:
            for option in options(value):
                if isinstance(option, Tensor):
                    event = self.emit(
                        "scalar",
                        node,
                        option,
                        self.mixed(value) if option is not value else CERTAIN,
                        sub="math",
                        spelling="math",
                        function=dotted,
                        origin=option.origin,
                        numpy=option.numpy,
                        dtype=option.dtype or "",
                    )
                    src = src | ({event} if event is not None else frozenset())
                    return Scalar("float", "data", src)
        kind = (
            "int"
            if name in ("floor", "ceil", "gcd", "isqrt", "comb", "prod", "trunc", "lcm")
            else "bool"
            if name.startswith("is")
            else "float"
        )
        if values and all(isinstance(v, Const) for v in values):
            import math

            try:
                return Const(
                    getattr(math, name)(*[v.value for v in values if isinstance(v, Const)]),
                    any(v.soft for v in values if isinstance(v, Const)),
                    src,
                )
            except Exception:
                return Scalar(kind, "constant", src)
        flat = _flat(list(values))
        for value in values:
            self.use(value, "math", node)
        if any(isinstance(v, Scalar) and v.origin == "size" for v in flat):
            if name == "prod":  # of traced sizes is one itself; the others ask for a number
                return Scalar(kind, "size", src)
            return Scalar(kind, "size", self.converted(src, "math", node, function=dotted))
        origins = [v.origin for v in flat if isinstance(v, Scalar)]
        origin = (
            "data"
            if "data" in origins
            else "constant"
            if all(isinstance(v, (Const, Scalar)) for v in flat)
            else "unknown"
        )
        return Scalar(kind, origin, src)

    def lib_functools(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        if dotted in ("functools.partial", "functools.partialmethod") and args.pos:
            return Partial(args.pos[0], tuple(args.pos[1:]), dict(args.kw))
        if dotted == "functools.reduce" and len(args.pos) >= 2:
            each = self.iterate(args.pos[1], node, "loop")
            return self.invoke(args.pos[0], Args([args.pos[2] if len(args.pos) > 2 else each, each]), node)
        if dotted in ("functools.wraps", "functools.lru_cache", "functools.cache"):
            return args.get(0) if type(args.get(0)) is Func else UNKNOWN
        return None

    def lib_itertools(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        name = dotted[10:]
        each = [self.iterate(v, node, "loop") for v in args.pos]
        if name in ("chain", "chain.from_iterable"):
            lists = [v.items for v in args.pos if isinstance(v, Seq) and v.items is not None]
            if name == "chain" and len(lists) == len(args.pos):
                return Seq("gen", [item for items in lists for item in items], UNKNOWN)
            return Seq("gen", None, either(each) if name == "chain" else self.iterate(either(each), node, "loop"))
        if name in ("product", "zip_longest", "combinations", "permutations"):
            return Seq(
                "gen",
                None,
                Seq("tuple", each if name in ("product", "zip_longest") else None, either(each) if each else UNKNOWN),
            )
        if name in ("repeat", "cycle", "islice", "accumulate", "takewhile", "count"):
            return Seq("gen", None, args.pos[0] if name == "repeat" and args.pos else each[0] if each else INT)
        return None

    def lib_operator(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        table = {
            "add": "Add",
            "mul": "Multiply",
            "sub": "Subtract",
            "truediv": "Divide",
            "floordiv": "FloorDivide",
            "and_": "BitAnd",
            "or_": "BitOr",
        }
        name = dotted[9:]
        if name in table and len(args.pos) == 2:
            return self.binary(table[name], args.pos[0], args.pos[1], node)
        if name == "getitem" and len(args.pos) == 2:
            return self.item(args.pos[0], args.pos[1], node)
        return None

    def lib_copy(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        value = args.get(0) or UNKNOWN
        kinds = {type(v) for v in options(value)}
        what = (
            "tensor"
            if Tensor in kinds
            else "module"
            if any(isinstance(v, Instance) and v.is_module for v in options(value))
            else "list"
            if Seq in kinds
            else "dict"
            if Mapping in kinds
            else "unknown"
            if Unknown in kinds
            else "object"
        )
        holds = any(isinstance(v, Tensor) for v in _flat([value]))
        self.emit("call", node, value, sub=dotted, target=dotted, argument=what, holds_tensor=holds)
        self.notes.touched |= ANY
        return either(_copied(v) for v in options(value))

    def lib_collections(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        name = dotted.rpartition(".")[2]
        if name in ("OrderedDict", "Counter", "ChainMap"):
            return self.dict_call(args, node)
        if name == "defaultdict":
            return Mapping(
                {},
                self.invoke(args.pos[0], Args(), node)
                if args.pos and isinstance(args.pos[0], (Outside, Func))
                else UNKNOWN,
            )
        if name == "deque":
            return self.collected("deque", Args(args.pos[:1]), node)
        if name == "namedtuple":
            return Outside("collections.<namedtuple>")
        if name == "<namedtuple>":
            return Seq("tuple", [*args.pos, *args.kw.values()], UNKNOWN)
        return None

    def lib_importlib(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        first = args.get(0)
        if dotted == "importlib.util.find_spec" and isinstance(first, Const) and first.value == "torch":
            return Instance(None, "importlib.machinery.ModuleSpec")  # the code is judged as it runs with torch
        return None

    def lib_typing(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        if dotted == "typing.cast" and len(args.pos) == 2:
            return args.pos[1]
        return None

    def lib_contextlib(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        if self.wanted(dotted):
            self.emit("call", node, None, sub=dotted, target=dotted)
        return Instance(None, dotted, args=tuple(args.pos))

    def lib_logging(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        name = dotted.rpartition(".")[2]
        if name == "getLogger":
            return Instance(None, "logging.Logger")
        for value in args.all():
            self.use(value, "print", node)
        if name in _LOGGER_METHODS:
            self.emit("call", node, None, sub=dotted, target=dotted)
        return NOTHING

    def lib_warnings(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        for value in args.all():
            self.use(value, "print", node)
        if dotted == "warnings.warn" or self.wanted(dotted):
            self.emit("call", node, None, sub=dotted, target=dotted)
        return Instance(None, dotted) if dotted.endswith("catch_warnings") else NOTHING

    def lib_numpy(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        if dotted.startswith("numpy.random."):
            return self.numpy_random(dotted, args, node)
        name = dotted.rpartition(".")[2]
        flat = _flat(list(args.pos))
        tensors = [v for v in flat if isinstance(v, Tensor)]
        src = sources(*args.pos)
        sized = any(isinstance(v, Scalar) and v.origin == "size" for v in flat)
        firm = [t for t in tensors if t.hypothesis is None or t.hypothesis.confirmed]
        whole = any(isinstance(v, Seq) for value in args.pos for v in options(value))
        picks = (name in _NUMPY_SIZED or name == "where" and len(args.pos) == 1) and bool(tensors or whole)
        if sized:
            event = self.emit("size", node, None, sub="numpy", spelling="numpy", function=dotted)
            src = src | ({event} if event is not None else frozenset())
            self.emit("call", node, None, sub=dotted, target=dotted, argument="size")
        elif firm:
            self.emit("call", node, firm[0], sub=dotted, target=dotted, argument="array" if firm[0].numpy else "tensor")
        elif self.wanted(dotted) and args.pos and not picks:
            self.emit("call", node, None, sub=dotted, target=dotted, argument="other")
        for value in args.all():
            self.use(value, "arith", node)
        if picks:
            origin = tensors[0].origin if tensors else "constant"
            on = tensors[0] if tensors else None
            self.emit("dynshape", node, on, op=name, target=dotted, spelling="function", origin=origin)
        elif name in ("arange", "linspace") and tensors:
            self.emit("datasize", node, tensors[0], target=dotted, form="argument", origin=tensors[0].origin)
        return self.numpy_result(name, args, flat, tensors, sized, whole, src)

    def numpy_result(
        self, name: str, args: Args, flat: list[Value], tensors: list[Tensor], sized: bool, whole: bool,
        src: frozenset[Event],
    ) -> Value:  # fmt: skip
        """An array where one goes in or is made; a number where only numbers go in."""
        constant = all(isinstance(v, Const) or isinstance(v, Scalar) and v.origin == "constant" for v in flat)
        known = constant or sized or all(isinstance(v, (Const, Scalar)) for v in flat)
        origins = [t.origin for t in tensors] or ["constant" if constant else "data"]
        origin = "data" if "data" in origins else origins[0]
        if name in _NUMPY_MAKERS:
            dtype = "float" if name in ("zeros", "ones", "linspace") else None
            varies = tensors or sized or any(isinstance(v, Scalar) and v.origin == "data" for v in flat)
            return Tensor(dtype, None, origin if varies else "constant", True, src=src)
        if name in _NUMPY_SEVERAL and (name != "where" or len(args.pos) == 1) and (tensors or whole):
            return Seq("list", None, Tensor(None, None, origin, True), src=src)
        if name in ("shape", "size", "ndim", "dtype", "isscalar", "issubdtype", "finfo", "iinfo"):
            return Scalar("other", "meta")
        if tensors or whole and known:
            full = name in _NUMPY_REDUCTIONS and len(args.pos) == 1 and not {"axis", "keepdims"} & set(args.kw)
            outside = self.muted and full or self.torch.dynamo_call(f"numpy.{name}") == "refuse"
            if outside and not tensors and name not in _NUMPY_SIZED:
                return Scalar("number", origin, src)  # made outside of the graph: a constant for what follows
            sized_by_data = name in _NUMPY_SIZED or any(t.data_sized for t in tensors) and not full
            # the rank of a number is only claimed where int() of it is folded: not for np.prod((2, 3))
            return Tensor(None, 0 if full and tensors else None, origin, True, sized_by_data, src=src)
        if args.pos and constant and not self.muted and self.torch.dynamo_call(f"numpy.{name}") == "trace":
            # Dynamo makes a 0-dim tensor even of `np.lcm(4, 6)`, so that a branch on it breaks
            return Tensor(None, 0, "constant", True, src=src)
        if args.pos and known:
            return Scalar("number", "size" if sized else "constant" if constant else "unknown", src)
        return unknown(*args.all())

    def numpy_random(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        """Draws: with a shape they are arrays that Dynamo traces, without one a number it has to read."""
        name = dotted.rpartition(".")[2]
        scalars = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "sample": 0, "uniform": 2, "normal": 2}
        most = 2 if name == "randint" else scalars.get(name)
        if most is None:
            return None
        sized = len(args.pos) > most or "size" in args.kw or args.rest is not None
        event = self.emit("call", node, None, sub=dotted, target=dotted, args=len(args.pos), keywords=tuple(args.kw))
        src = frozenset([event]) if event is not None else frozenset()
        if sized:
            return Tensor("int" if name == "randint" else "float", None, "random", True, src=src)
        return Scalar("int" if name == "randint" else "float", "random", src)

    def lib_einops(self, dotted: str, args: Args, node: cst.CSTNode) -> Value | None:
        if dotted.rpartition(".")[2] in ("rearrange", "repeat", "reduce", "einsum"):
            first = args.get(0) or UNKNOWN
            self.confirm(first)
            tensor = self.tensor(first)
            return derived(tensor, tensor.dtype) if tensor is not None else Tensor()
        return None

    # --- methods of any value

    def method_call(self, method: Method, args: Args, node: cst.CSTNode) -> Value:
        owner, name = method.receiver, method.name
        if isinstance(owner, Tensor):
            return self.tensor_method(owner, name, args, node)
        if (
            isinstance(owner, (Seq, Mapping))
            or isinstance(owner, Const)
            or isinstance(owner, Scalar)
            and owner.type == "str"
        ):
            if (
                isinstance(owner, Scalar)
                and owner.origin == "data"
                or isinstance(owner, Const)
                and not isinstance(owner.value, (str, bytes))
            ):
                return unknown(owner)
            return self.container_method(owner, name, args, node)
        if isinstance(owner, Instance):
            return self.object_method(owner, name, args, node)
        if isinstance(owner, ClassRef):
            return self.class_method(owner, name, args, node)
        if isinstance(owner, Scalar):
            if name in ("item", "is_integer", "bit_length"):
                return owner
            return unknown(owner, *args.all())
        if isinstance(owner, Func) and name == "apply":
            return UNKNOWN
        for value in args.all():
            self.use(value, "arg", node)
        if isinstance(owner, (Unknown, Method, Outside)):
            return self.unknown_method(owner, name, args, node)
        return unknown(owner, *args.all())

    def unknown_method(self, owner: Value, name: str, args: Args, node: cst.CSTNode) -> Value:
        """A method of a value of unknown kind: some names belong to tensors alone."""
        if name in _TENSOR_ONLY_METHODS and not args.pos and not args.kw:
            event = self.emit(
                "scalar",
                node,
                None,
                LIKELY if name == "item" and _looks_like_tensor(owner) else POSSIBLE,
                spelling=name,
                origin="unknown",
                numpy=False,
                dtype="",
            )
            src = frozenset([event]) if event is not None else frozenset()
            return (
                Scalar("number", "data", src)
                if name == "item"
                else Seq("list", None, Scalar("number", "data", src), src=src)
            )
        if name in _LOGGER_METHODS and _is_logger_name(node):
            for value in args.all():
                self.use(value, "print", node)
            self.emit("call", node, None, LIKELY, sub="logger", target=f"logging.Logger.{name}")
            return NOTHING
        if name == "size" and len(args.pos) <= 1:
            return Scalar("int", "unknown") if args.pos else Seq("size", None, Scalar("int", "unknown"))
        if name in ("dim", "numel"):
            return INT
        return unknown(owner, *args.all())

    def object_method(self, owner: Instance, name: str, args: Args, node: cst.CSTNode) -> Value:
        if owner.outside == "logging.Logger":
            for value in args.all():
                self.use(value, "print", node)
            if name in _LOGGER_METHODS:
                self.emit("call", node, None, sub="logger", target=f"logging.Logger.{name}")
            return NOTHING if name != "isEnabledFor" else BOOL
        if owner.is_module:
            return self.module_method(owner, name, args, node)
        target = f"{owner.outside}.{name}" if owner.outside else ""
        for value in args.all():
            self.use(value, "arg", node)
        if owner.outside == "torch.Generator" and name in ("manual_seed", "set_state", "seed"):
            return owner
        if target == "contextlib.ExitStack.enter_context":
            # the `with` itself is traced, what enters through it is not
            self.emit("with", node, None, target="contextlib.ExitStack")
            return self.entered(args.get(0) or UNKNOWN, node)
        if target and self.wanted(target):
            self.emit("method", node, None, sub=target, target=target)
        if name in ("item",) and not args.pos and owner.cls is None:
            return self.unknown_method(owner, name, args, node)
        return unknown(owner, *args.all())

    def module_method(self, owner: Instance, name: str, args: Args, node: cst.CSTNode) -> Value:
        """Methods of nn.Module itself."""
        first = args.get(0)
        if name in ("register_buffer", "register_parameter", "add_module", "register_module") and isinstance(
            first, Const
        ):
            value = (
                args.get(
                    1, "tensor" if name == "register_buffer" else "param" if name == "register_parameter" else "module"
                )
                or NOTHING
            )
            if not self.muted:
                self.emit(
                    "write",
                    node,
                    None,
                    sub=name,
                    owner="self",
                    name=str(first.value),
                    form=name,
                    value="tensor",
                    had="nothing" if first.value not in owner.attrs else "tensor",
                )
            tensor = self.tensor(value)
            if tensor is not None and name != "add_module":
                tensor = Tensor(
                    tensor.dtype,
                    tensor.rank,
                    "buffer" if name == "register_buffer" else "parameter",
                    intermediate=False,
                )
                value = (
                    tensor
                    if isinstance(value, Tensor)
                    else either([tensor, *[v for v in options(value) if not isinstance(v, Tensor)]])
                )
            elif name == "register_buffer" and isinstance(value, Unknown):
                value = Tensor(None, None, "buffer", intermediate=False)
            self.writes_to(str(first.value))
            owner.attrs[str(first.value)] = value
            return NOTHING
        if name in ("add_module", "register_buffer"):
            value = args.get(1) or UNKNOWN
            known = owner.attrs.get("*")
            owner.attrs["*"] = value if known is None else either([known, value])
            return NOTHING
        if name in ("eval", "train"):
            mode = name == "train" and not (isinstance(first, Const) and first.value is False)
            if self.muted:
                owner.attrs["training"] = Const(mode, mode)
            return owner
        if name in (
            "to",
            "cuda",
            "cpu",
            "half",
            "float",
            "double",
            "requires_grad_",
            "apply",
            "share_memory",
            "bfloat16",
            "type",
            "to_empty",
        ):
            return owner
        if (
            name in ("parameters", "named_parameters", "zero_grad", "children", "modules")
            and not self.muted
            and holds_rnn(owner)
        ):
            with self.under(block="" if name == "zero_grad" else "rnn"):
                self.emit("rnn", node, None, target="torch.nn.RNN", cls="RNN")
        if name in ("parameters", "buffers"):
            return Seq("gen", None, Tensor(origin="parameter", intermediate=False))
        if name in ("named_parameters", "named_buffers"):
            return Seq("gen", None, Seq("tuple", [STR, Tensor(origin="parameter", intermediate=False)], UNKNOWN))
        if name in ("children", "modules", "values"):
            return Seq("modulelist", None, self._any_child(owner))
        if name in ("named_children", "named_modules", "items"):
            return Seq("modulelist", None, Seq("tuple", [STR, self._any_child(owner)], UNKNOWN))
        if name.startswith("register_") and name.endswith("_hook"):
            return self.register_hook(owner, name, args, node)
        if name == "flatten_parameters":
            self.meets_rnn(owner, node)
            return NOTHING
        if name == "forward" and (owner.cls is None or owner.outside not in ("torch.nn.Module", "")):
            return self.call_builtin_module(owner, args, node) if owner.outside.startswith("torch.nn.") else UNKNOWN
        if name == "__call__":
            return self.call_instance(owner, args, node)
        if name in ("_modules", "__dict__", "state_dict"):
            if name == "state_dict" and self.wanted("torch.nn.Module.state_dict"):
                self.emit("method", node, None, sub=name, target="torch.nn.Module.state_dict")
            return UNKNOWN
        target = f"{owner.outside or 'torch.nn.Module'}.{name}"
        if self.wanted(target):
            self.emit("method", node, None, sub=target, target=target)
        for value in args.all():
            self.use(value, "arg", node)
        return unknown(*args.all())

    def register_hook(self, owner: Instance, name: str, args: Args, node: cst.CSTNode) -> Value:
        """Hooks that a constructor registers run with each later call of the module; in a forward they break."""
        target = f"{owner.outside or 'torch.nn.Module'}.{name}"
        self.emit("method", node, None, sub=target, target=target)
        if "backward" in name:
            owner.attrs["<backward-hooks>"] = NOTHING
        elif args.pos and name in ("register_forward_hook", "register_forward_pre_hook"):
            kind = "<hooks>" if name == "register_forward_hook" else "<pre-hooks>"
            known = owner.attrs.get(kind)
            held = known.items if isinstance(known, Seq) and known.items is not None else []
            takes = "with_kwargs" in args.kw
            if not takes and args.pos[0] not in held:
                owner.attrs[kind] = Seq("tuple", [*held, args.pos[0]], UNKNOWN)
        return Instance(None, "torch.utils.hooks.RemovableHandle")

    def _any_child(self, owner: Instance) -> Value:
        found: list[Value] = []
        self.notes.touched |= ANY
        for value in owner.attrs.values():
            if isinstance(value, Instance) and value.is_module:
                found.append(value)
            elif isinstance(value, Seq) and value.of_modules:
                found.append(element(value))
        return either(found[:5]) if found else UNKNOWN

    def class_method(self, owner: ClassRef, name: str, args: Args, node: cst.CSTNode) -> Value:
        if name == "apply" and any(b.startswith("torch.autograd.") for b in self.program.outside_bases(owner.cls)):
            for value in args.all():
                self.use(value, "arith", node)
            return self.autograd_function(owner, args, node)
        return unknown(*args.all())

    def autograd_function(self, owner: ClassRef, args: Args, node: cst.CSTNode) -> Value:
        """`Function.apply`: Dynamo and export trace its forward, Dynamo its backward too where gradients are asked for;
        a trace records the call as one node that runs the Python again.
        """
        forward, backward = (owner.cls.methods.get(n) for n in ("forward", "backward"))
        result: Value = UNKNOWN
        engines = self.frame.engines - {Engine.TRACE, Engine.SCRIPT}
        if forward is not None:
            given = args if "setup_context" in owner.cls.methods else args.after(UNKNOWN)
            with self.under(engines=engines):
                result = self.call_function(Func(forward), given, node)
        if backward is not None and self.tensor(result) is not None:
            with self.under(LIKELY, engines & {Engine.DYNAMO}):
                ended = self.call_function(Func(backward), Args([UNKNOWN, Tensor()]), node)
                if isinstance(ended, Outside):
                    self.backward_raises(backward, args, node)
        return result if isinstance(result, (Tensor, Seq)) else Tensor()

    def backward_raises(self, backward: Function, args: Args, node: cst.CSTNode) -> None:
        """A backward that only raises is traced as soon as an argument asks for gradients, as parameters do."""
        body = backward.body
        lines = [line for line in body if isinstance(line, cst.SimpleStatementLine)]
        ends = [small for line in lines for small in line.body if isinstance(small, cst.Raise)]
        given = [t for value in args.all() if (t := self.tensor(value)) is not None]
        learned = any(t.origin == "parameter" and not t.intermediate for t in given)
        if not ends or not learned:
            return
        caller = self.frame
        stack = (*caller.stack, Step(caller.function, node))
        frame = Frame(backward, Env(backward.module), stack, caller.entry, caller.confidence, caller.engines)
        with self.inside(frame):
            self.emit("call", ends[0], None, target="torch.autograd.<backward that raises>")

    # --- context managers

    def context_kind(self, value: Value) -> str:
        if isinstance(value, Instance) and value.cls is not None:
            return "user"
        dotted = contexts.describe(value)
        if isinstance(value, Instance) and dotted == "contextlib.<user>":
            return "user"
        if not dotted:
            return "supported" if isinstance(value, Const) else "unknown"
        return contexts.kind(dotted)

    def entered(self, value: Value, node: cst.CSTNode) -> Value:
        if isinstance(value, Instance):
            if value.outside == "contextlib.<user>":
                return value.attrs.get("entered", UNKNOWN)
            if value.cls is not None or value.outside == "contextlib.ExitStack":
                return value
            if value.outside in ("contextlib.nullcontext",) and value.args:
                return value.args[0]
        return UNKNOWN


def _copied(value: Value) -> Value:
    """A copy of a container or plain object, so that what is written to it leaves the original alone."""
    if isinstance(value, Instance) and not value.is_module:
        return replace(value, attrs=dict(value.attrs), owner="local")
    if isinstance(value, Seq):
        return replace(value, items=None if value.items is None else list(value.items), owner="local", name="")
    if isinstance(value, Mapping):
        return replace(value, items=dict(value.items), owner="local", name="")
    return value


def _looks_like_tensor(owner: Value) -> bool:
    """`x.loss.item()`, `f(x).item()`: `.item()` of something that is no plain unknown name of a dict."""
    return not (isinstance(owner, Method) and owner.name in ("items", "values", "keys"))


def _is_logger_name(node: cst.CSTNode) -> bool:
    """Whether the receiver of a call is named like a logger."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    owner = node.func.value
    name = owner.value if isinstance(owner, cst.Name) else owner.attr.value if isinstance(owner, cst.Attribute) else ""
    return name.lower().strip("_") in ("logger", "log", "logging", "eval_logger", "rank_zero_logger")
