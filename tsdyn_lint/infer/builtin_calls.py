"""Python's builtins, containers' methods and the parts of the standard library that models use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer import shapes
from tsdyn_lint.infer.events import CERTAIN, Event
from tsdyn_lint.infer.operators import derived
from tsdyn_lint.infer.recall import Args
from tsdyn_lint.infer.tensors import Tensors, _flat
from tsdyn_lint.infer.values import (
    BOOL,
    CONSTANT_INT,
    INT,
    NOTHING,
    STR,
    TRUE,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Flag,
    Instance,
    Mapping,
    Method,
    Outside,
    Scalar,
    Seq,
    SliceValue,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    join,
    options,
    sources,
    unknown,
)
from tsdyn_lint.infer.walk import ANY
from tsdyn_lint.nodes import children

_CONVERSIONS = frozenset({"int", "float", "math", "round", "min", "max"})


class BuiltinCalls(Tensors):
    """`builtin_call` for `builtins.*`, `container_method` for lists, dicts and strings."""

    def builtin_call(self, name: str, args: Args, node: cst.CSTNode) -> Value:
        handler = _BUILTINS.get(name)
        if handler is not None:
            return handler(self, args, node)
        for value in args.all():
            self.use(value, "arg", node)
        return self.plain(name, unknown(*args.all()), args, node)

    # --- conversions

    def convert(self, name: str, args: Args, node: cst.CSTNode) -> Value:
        """`int(v)`, `float(v)`, `bool(v)`."""
        value = args.get(0)
        flag = self.flag(value) if value is not None else None
        if flag is not None:
            return flag
        if value is None:
            return Const({"int": 0, "float": 0.0, "bool": False}[name])
        if isinstance(value, Const):
            try:
                return Const({"int": int, "float": float, "bool": bool}[name](value.value), value.soft, value.src)
            except (TypeError, ValueError):
                return unknown(value)
        found: list[Value] = []
        for option in options(value):
            if isinstance(option, Tensor) and option.numpy and option.origin == "constant" and option.rank == 0:
                found.append(Scalar(name, "constant", option.src))  # `int(np.ceil(7 / 2))` is folded
            elif isinstance(option, Tensor):
                sure = CERTAIN if option is value else self.mixed(value)
                if name == "int" and _plain_argument(node):
                    self.hint(option)
                event = self.emit(
                    "scalar",
                    node,
                    option,
                    sure,
                    sub=name,
                    spelling=name,
                    origin=option.origin,
                    numpy=option.numpy,
                    dtype=option.dtype or "",
                )
                src = frozenset([event]) if event is not None else option.src
                found.append(Scalar(name, "data" if option.origin != "constant" else "constant", src))
            elif isinstance(option, Scalar) and option.origin == "size":
                self.use(option, "convert", node)
                found.append(Scalar(name, "size", self.converted(option.src, name, node)))
            elif isinstance(option, Scalar):
                found.append(Scalar(name, option.origin, option.src))
            elif isinstance(option, Const):
                found.append(Scalar(name, "constant" if not option.soft else "unknown"))
            else:
                if name == "bool":
                    self.test(option, node, "bool")
                found.append(Scalar(name, "unknown", sources(option)))
        return either(found)

    def converted(self, src: frozenset[Event], spelling: str, node: cst.CSTNode, **facts: Any) -> frozenset[Event]:
        """The reads behind a size that is a plain number from here on, unless a part of the expression has made it one:
        `int(math.sqrt(n))` is told of once.
        """
        if any(one.kind == "size" and one.facts["spelling"] in _CONVERSIONS and _within(one.node, node) for one in src):
            return src
        event = self.emit("size", node, None, sub=spelling, spelling=spelling, **facts)
        return src if event is None else src | {event}

    def length(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0)
        if value is None:
            return INT
        found: list[Value] = []
        for option in options(value):
            if isinstance(option, Tensor):
                origin = "size" if shapes.first_size_varies(option) else "constant"
                event = self.emit("size", node, option, sub="len", spelling="len") if origin != "constant" else None
                src = option.src if event is None else option.src | {event}
                if self.doubtful(option) and not option.intermediate:
                    found.append(Scalar("int", "unknown", src))
                    continue
                size = self.data_size(option) if option.data_sized else Scalar("int", origin, src)
                found.append(replace(size, src=size.src | src))
            elif isinstance(option, Seq):
                if option.items is not None and option.owner in ("local", "argument"):
                    found.append(Const(len(option.items), option.kind != "tuple", sources(option)))
                else:
                    origin = (
                        "data"
                        if option.data_sized
                        else "state"
                        if option.owner in ("self", "global") and self._rewritten(option)
                        else "rank"
                        if option.kind == "size" and not _constant(option.elem)
                        else "constant"
                    )
                    found.append(Scalar("int", origin, option.src))
            elif isinstance(option, Mapping):
                found.append(Const(len(option.items), True) if option.rest is None else INT)
            elif isinstance(option, Const) and isinstance(option.value, (str, bytes)):
                found.append(Const(len(option.value), option.soft))
            elif isinstance(option, Instance) and option.cls is not None:
                found.append(Scalar("int", "constant"))
            else:
                found.append(Scalar("int", "unknown", sources(option)))
        return either(found)

    def _rewritten(self, option: Seq) -> bool:
        return any(write.facts.get("name") == option.name for write in self.writes)

    def range_(self, args: Args, node: cst.CSTNode) -> Value:
        origins, src = [], sources(*args.pos)
        for value in args.pos:
            for option in options(value):
                if isinstance(option, Tensor):
                    event = self.emit(
                        "scalar",
                        node,
                        option,
                        self.mixed(value) if option is not value else CERTAIN,
                        sub="range",
                        spelling="range",
                        origin=option.origin,
                        numpy=option.numpy,
                        dtype=option.dtype or "",
                    )
                    if event is not None:
                        src = src | {event}
                        self.use(Scalar("int", "data", frozenset([event])), "loop", node)
                    origins.append("data")
                elif isinstance(option, Scalar):
                    origins.append(option.origin)
            self.use(value, "loop", node)
        if (
            all(isinstance(v, Const) and isinstance(v.value, int) for v in args.pos)
            and args.pos
            and not any(isinstance(v, Const) and v.soft for v in args.pos)
        ):
            try:
                numbers = list(range(*(v.value for v in args.pos if isinstance(v, Const))))
            except (TypeError, ValueError):
                return Seq("range", None, INT)
            if len(numbers) <= 8:
                return Seq("range", [Const(n) for n in numbers], INT)
            return Seq("range", None, CONSTANT_INT)
        for origin in ("data", "size", "state", "random"):
            if origin in origins:
                return Seq("range", None, Scalar("int", origin, src), data_sized=origin == "data", src=src)
        return Seq("range", None, Scalar("int", "constant", src), src=src)

    def text(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0)
        if value is None:
            return Const("")
        self.formats(value, node, "str")
        self.use(value, "format", node)
        return (
            Const(str(value.value), value.soft)
            if isinstance(value, Const)
            else Scalar("str", "unknown", sources(value))
        )

    # --- questions about values

    def isinstance_(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) != 2:
            return BOOL
        value, wanted = args.pos
        if isinstance(node, cst.Call):
            self.data_read_for(node.args[0].value, "type")
        if isinstance(value, Either):
            answers = [self.is_instance(o, wanted) for o in value.options]
            soft = [a for o, a in zip(value.options, answers, strict=False) if isinstance(o, Const) and o.soft]
            if soft and soft[0] is not None:
                return Const(soft[0], True)
            if all(a is not None and a == answers[0] for a in answers):
                return Const(answers[0])
            return Scalar("bool", "unknown")
        answer = self.is_instance(value, wanted)
        if isinstance(value, Tensor) and answer is None and isinstance(wanted, Outside):
            if wanted.dotted.endswith("autograd.Variable"):  # of a tensor; Dynamo and TorchScript do not know that
                known = frozenset({Engine.TRACE, Engine.EXPORT})
                return Flag(known, known)
        if isinstance(value, Scalar) and value.origin == "size" and isinstance(wanted, Outside):
            if wanted.dotted == "torch.Tensor":  # what a size is while it is traced
                return Flag(frozenset({Engine.TRACE}), frozenset({Engine.TRACE}), value.src)
        if answer is None:
            return Scalar("bool", "unknown")
        return Const(answer, isinstance(value, Const) and value.soft)

    def hasattr_(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) == 2 and isinstance(args.pos[1], Const) and isinstance(args.pos[0], Instance):
            owner, name = args.pos[0], args.pos[1].value
            self.touch(name)
            if name in owner.attrs:
                return Const(True, True)
            if owner.cls is not None and self.program.class_member(owner.cls, name) is not None:
                return TRUE
            if owner.complete and owner.is_module:
                return Const(False, True)
        if (
            len(args.pos) == 2
            and isinstance(args.pos[0], Tensor)
            and isinstance(args.pos[1], Const)
            and not self.doubtful(args.pos[0])
        ):
            name = args.pos[1].value
            return Const(
                self.torch.returns(f"torch.Tensor.{name}") is not None
                or bool(self.torch.choices(f"torch.Tensor.{name}"))
                or name in ("shape", "dtype", "device"),
                True,
            )
        return Scalar("bool", "unknown")

    def getattr_(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) < 2:
            return UNKNOWN
        owner, name = args.pos[0], args.pos[1]
        default = args.get(2)
        if isinstance(name, Const) and isinstance(name.value, str):
            self.touch(name.value)
            missing = (
                isinstance(owner, Instance)
                and owner.complete
                and name.value not in owner.attrs
                and (owner.cls is None or self.program.class_member(owner.cls, name.value) is None)
            )
            if missing and default is not None:
                return Const(default.value, True) if isinstance(default, Const) else default
            found = self.get(owner, name.value, node)
            if isinstance(found, Method) and default is not None:
                return join(found, default) if not isinstance(default, Const) else unknown(found)
            return found
        if isinstance(owner, Instance) and owner.attrs:
            self.notes.touched |= ANY
            modules = [
                v
                for v in owner.attrs.values()
                if isinstance(v, Instance) and v.is_module or isinstance(v, Seq) and v.of_modules
            ]
            if modules:
                return either(modules[:5])
        return UNKNOWN

    def setattr_(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) == 3 and isinstance(args.pos[0], Instance):
            owner, name, value = args.pos
            assert isinstance(owner, Instance)
            if isinstance(name, Const) and isinstance(name.value, str):
                self.write_attribute(owner, name.value, value, node, False)
            else:
                known = owner.attrs.get("*")
                owner.attrs["*"] = value if known is None else join(known, value)
        return NOTHING

    def type_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0)
        if isinstance(value, Instance) and value.cls is not None:
            return ClassRef(value.cls)
        return Scalar("other", "meta")

    def truth_over(self, name: str, args: Args, node: cst.CSTNode) -> Value:
        """`any(..)` and `all(..)`: each element is tested."""
        value = args.get(0)
        for option in options(value) if value is not None else ():
            if isinstance(option, Seq):
                inner = option.items if option.items is not None else [option.elem]
                for item in inner:
                    self.test(item, node, name)
                origins = [v.origin for v in _flat(list(inner), 1) if isinstance(v, Scalar)]
                if any(isinstance(v, Tensor) for v in inner):
                    return Scalar("bool", "data")
                for origin in ("data", "size", "state"):
                    if origin in origins:
                        return Scalar("bool", origin, sources(*inner))
                if inner and all(isinstance(v, Const) for v in inner) and option.items is not None:
                    values = [bool(v.value) for v in inner if isinstance(v, Const)]
                    return Const(any(values) if name == "any" else all(values), True)
            elif isinstance(option, Tensor) and not self.doubtful(option):
                self.emit(
                    "branch", node, option, form=name, test_kind="tensor", origin=option.origin, numpy=option.numpy
                )
                return Scalar("bool", "data")
        return Scalar("bool", "unknown", sources(value) if value is not None else frozenset())

    # --- numbers

    def extreme(self, name: str, args: Args, node: cst.CSTNode) -> Value:
        """`min` and `max`."""
        values = args.pos
        if len(values) == 1 and "key" not in args.kw:
            only = values[0]
            if isinstance(only, Tensor):
                return derived(only, only.dtype)
            if isinstance(only, Seq):
                values = only.items if only.items is not None else [only.elem]
        if len(values) == 1 and "key" in args.kw:
            self.invoke(args.kw["key"], Args([self.iterate(values[0], node, "loop")]), node)
            return self.iterate(values[0], node, "loop")
        tensors = [t for v in values if (t := self.tensor(v)) is not None]
        if tensors:
            firm = [t for t in tensors if t.hypothesis is None or t.hypothesis.confirmed]
            if len(values) > 1 and firm:
                self.emit("builtin-extreme", node, firm[0], spelling=name, origin=firm[0].origin)
            return derived(tensors[0], tensors[0].dtype, tensors[0].rank)
        for value in values:
            self.use(value, "arith", node)
        flat = [o for v in values for o in options(v)]
        if any(isinstance(v, Scalar) and v.origin == "size" for v in flat) and len(values) > 0:
            return Scalar("int", "size", self.converted(sources(*values), name, node))
        if values and all(isinstance(v, Const) for v in values):
            try:
                pick = {"min": min, "max": max}[name]([v.value for v in values if isinstance(v, Const)])
                return Const(pick, any(v.soft for v in values if isinstance(v, Const)), sources(*values))
            except TypeError:
                return UNKNOWN
        return self._number(values)

    def _number(self, values: Sequence[Value]) -> Value:
        scalars = [o for v in values for o in options(v) if isinstance(o, Scalar)]
        result: Value = Scalar("number", "constant")
        for scalar in scalars:
            result = join(result, scalar)
        if any(isinstance(o, Unknown) for v in values for o in options(v)):
            return unknown(*values)
        return result

    def sum_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0)
        if isinstance(value, Seq):
            inner = value.items if value.items is not None else [value.elem]
            tensor = next((t for v in inner if (t := self.tensor(v)) is not None), None)
            if tensor is not None:
                return derived(tensor, tensor.dtype, tensor.rank)
            return self._number(inner) if inner else Const(0)
        if isinstance(value, Tensor):
            return derived(value, value.dtype)
        return unknown(*args.pos)

    def absolute(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        tensor = self.tensor(value)
        if tensor is not None:
            return derived(tensor, tensor.dtype, tensor.rank)
        if isinstance(value, Const):
            try:
                return Const(abs(value.value), value.soft, value.src)
            except TypeError:
                return UNKNOWN
        return value

    def divided(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) < 2:
            return UNKNOWN
        if any(isinstance(value, Scalar) and value.origin == "size" for value in args.pos):
            self.emit("size", node, None, sub="divmod", spelling="divmod")
        parts = [self.binary(operator, args.pos[0], args.pos[1], node) for operator in ("FloorDivide", "Modulo")]
        return Seq("tuple", list(parts), UNKNOWN)

    def round_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        tensor = self.tensor(value)
        if tensor is not None:
            return derived(tensor, tensor.dtype)
        if isinstance(value, Scalar) and value.origin == "size":
            return Scalar("int", "size", self.converted(value.src, "round", node))
        if isinstance(value, Const):
            try:
                return Const(round(value.value), value.soft, value.src)
            except (TypeError, ValueError):
                return UNKNOWN
        return value if isinstance(value, Scalar) else INT

    # --- iterables

    def zipped(self, args: Args, node: cst.CSTNode) -> Value:
        lists = [v.items if isinstance(v, Seq) else None for v in args.pos]
        if lists and all(x is not None for x in lists) and args.rest is None:
            rows = [Seq("tuple", list(row), UNKNOWN) for row in zip(*[x for x in lists if x is not None], strict=False)]
            return Seq("gen", list(rows), UNKNOWN, src=sources(*args.pos))
        counted = any(isinstance(v, Seq) and (v.items is not None or v.of_modules) for v in args.pos)
        for value in args.pos:
            if isinstance(value, Tensor) and not counted:  # else as many steps as there are modules
                self.loop_over(value, node)
        each = (
            Seq("tuple", [self.iterate(v, node, "loop") for v in args.pos], UNKNOWN)
            if args.rest is None
            else Seq("tuple", None, UNKNOWN)
        )
        kind = "modulelist" if any(isinstance(v, Seq) and v.of_modules for v in args.pos) else "gen"
        sized = any(isinstance(v, Seq) and v.data_sized for v in args.pos)
        return Seq(kind, None, each, data_sized=sized, src=sources(*args.pos))

    def enumerated(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        start = args.get(1, "start")
        first = start.value if isinstance(start, Const) and isinstance(start.value, int) else 0
        if isinstance(value, Seq) and value.items is not None:
            rows = [Seq("tuple", [Const(i), v], UNKNOWN) for i, v in enumerate(value.items, first)]
            kind = value.kind if value.of_modules else "gen"
            return Seq(kind, list(rows), UNKNOWN, src=value.src)
        counter = Scalar("int", "constant", self.loop_over(value, node))
        kind = value.kind if isinstance(value, Seq) and value.of_modules else "gen"
        return Seq(
            kind,
            None,
            Seq("tuple", [counter, self.iterate(value, node, "loop")], UNKNOWN),
            data_sized=isinstance(value, Seq) and value.data_sized,
            src=sources(value),
        )

    def reversed_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        if isinstance(value, Seq):
            items = list(reversed(value.items)) if value.items is not None else None
            return Seq(value.kind, items, value.elem, data_sized=value.data_sized, src=value.src)
        return Seq("gen", None, self.iterate(value, node, "loop"), src=sources(value))

    def sorted_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        each = self.iterate(value, node, "loop")
        compared = each
        if "key" in args.kw:
            compared = self.invoke(args.kw["key"], Args([each]), node)
        tensor = self.tensor(compared)
        if tensor is not None and not self.doubtful(compared):
            self.emit(
                "branch",
                node,
                tensor,
                self.mixed(compared) if compared is not tensor else CERTAIN,
                form="sorted",
                test_kind="tensor",
                origin=tensor.origin,
                numpy=tensor.numpy,
            )
            if tensor.numpy:
                origin = "constant" if tensor.origin == "constant" else "data"
                each = Scalar("number", origin)  # sorted outside of the graph: plain numbers for what follows
        return Seq("list", None, each, src=sources(value))

    def mapped(self, args: Args, node: cst.CSTNode) -> Value:
        if not args.pos:
            return UNKNOWN
        func, rest = args.pos[0], args.pos[1:]
        if len(rest) == 1 and isinstance(rest[0], Seq) and rest[0].items is not None and len(rest[0].items) <= 8:
            return Seq("gen", [self.invoke(func, Args([v]), node) for v in rest[0].items], UNKNOWN)
        return Seq(
            "gen",
            None,
            self.invoke(func, Args([self.iterate(v, node, "loop") for v in rest]), node),
            src=sources(*rest),
        )

    def filtered(self, args: Args, node: cst.CSTNode) -> Value:
        if len(args.pos) < 2:
            return UNKNOWN
        each = self.iterate(args.pos[1], node, "loop")
        if not isinstance(args.pos[0], Const):
            self.test(self.invoke(args.pos[0], Args([each]), node), node, "filter")
        return Seq("gen", None, each)

    def collected(self, kind: str, args: Args, node: cst.CSTNode) -> Value:
        """`list(..)`, `tuple(..)`, `set(..)`."""
        value = args.get(0)
        if value is None:
            return Seq(kind, [], UNKNOWN)
        if isinstance(value, Seq):
            items = list(value.items) if value.items is not None else None
            return Seq(
                kind if value.kind != "size" or kind == "list" else kind,
                items,
                value.elem,
                data_sized=value.data_sized,
                src=value.src,
            )
        self.loop_over(value, node)
        return Seq(kind, None, self.iterate(value, node, "loop"), src=sources(value))

    def dict_call(self, args: Args, node: cst.CSTNode) -> Value:
        table = Mapping(dict(args.kw.items()))
        for value in args.pos:
            for option in options(value):
                if isinstance(option, Mapping):
                    table.items.update(option.items)
                    table.rest = option.rest if table.rest is None else table.rest
                elif (
                    isinstance(option, Seq)
                    and option.items is not None
                    and all(
                        isinstance(r, Seq) and r.items and len(r.items) == 2 and isinstance(r.items[0], Const)
                        for r in option.items
                    )
                ):
                    for row in option.items:
                        assert isinstance(row, Seq) and row.items is not None and isinstance(row.items[0], Const)
                        table.items[row.items[0].value] = row.items[1]
                else:
                    each = element(option) if isinstance(option, Seq) else UNKNOWN
                    table.rest = (
                        each.items[1] if isinstance(each, Seq) and each.items and len(each.items) == 2 else UNKNOWN
                    )
        if args.open:
            table.rest = UNKNOWN
        return table

    def next_(self, args: Args, node: cst.CSTNode) -> Value:
        value = args.get(0) or UNKNOWN
        found = self.iterate(value, node, "loop")
        return join(found, args.pos[1]) if len(args.pos) > 1 else found

    def printed(self, args: Args, node: cst.CSTNode) -> Value:
        for value in args.all():
            self.use(value, "print", node)
        self.emit("call", node, None, sub="builtins.print", target="builtins.print")
        return NOTHING

    def plain(self, name: str, result: Value, args: Args, node: cst.CSTNode) -> Value:
        """A builtin that only matters to the rules that name it."""
        if self.wanted(f"builtins.{name}"):
            self.emit("call", node, None, sub=f"builtins.{name}", target=f"builtins.{name}")
        return result

    # --- container methods

    def container_method(self, owner: Value, name: str, args: Args, node: cst.CSTNode) -> Value:
        if isinstance(owner, Seq):
            return self.sequence_method(owner, name, args, node)
        if isinstance(owner, Mapping):
            return self.mapping_method(owner, name, args, node)
        if name in ("format", "join"):
            for value in _flat(args.all(), 1):
                self.formats(value, node, name)
                self.use(value, "format", node)
        if (
            isinstance(owner, Const)
            and isinstance(owner.value, str)
            and all(isinstance(v, Const) for v in args.pos)
            and not args.kw
            and name in ("lower", "upper", "strip", "startswith", "endswith", "replace", "split", "lstrip", "rstrip")
        ):
            try:
                found = getattr(owner.value, name)(*[v.value for v in args.pos if isinstance(v, Const)])
            except Exception:
                return STR
            if isinstance(found, list):
                return Seq("list", [Const(x, owner.soft) for x in found], UNKNOWN)
            return Const(found, owner.soft)
        if name in ("startswith", "endswith", "isdigit", "isalpha", "islower", "isupper", "isinstance"):
            return BOOL
        if name in ("split", "rsplit", "splitlines"):
            return Seq("list", None, STR)
        if name in ("find", "index", "count"):
            return INT
        return Scalar("str", "unknown", sources(owner, *args.all()))

    def sequence_method(self, owner: Seq, name: str, args: Args, node: cst.CSTNode) -> Value:
        first = args.get(0) or UNKNOWN
        if name in ("append", "extend", "insert", "add", "appendleft", "update", "extendleft"):
            value = args.pos[1] if name == "insert" and len(args.pos) > 1 else first
            self.mutate(owner, name, node, [value])
            return NOTHING
        if name in ("pop", "popleft", "remove", "clear", "sort", "reverse", "discard"):
            result = element(owner)
            if name == "pop" and owner.items and not self.frame.uncertain and isinstance(first, (Unknown, Const)):
                at = first.value if isinstance(first, Const) else -1
                if isinstance(at, int) and -len(owner.items) <= at < len(owner.items):
                    result = owner.items[at]
                    owner.items = [v for i, v in enumerate(owner.items) if i != at % len(owner.items)]
            elif name in ("pop", "popleft", "remove") and owner.items is not None:
                owner.elem, owner.items = element(owner), None
            elif name == "clear":
                owner.items = [] if not self.frame.uncertain else None
            if name == "sort":
                compared = element(owner)
                if "key" in args.kw:
                    compared = self.invoke(args.kw["key"], Args([compared]), node)
                tensor = self.tensor(compared)
                if tensor is not None:
                    self.emit(
                        "branch",
                        node,
                        tensor,
                        form="sorted",
                        test_kind="tensor",
                        origin=tensor.origin,
                        numpy=tensor.numpy,
                    )
            self.mutated(owner, name, node, UNKNOWN)
            return result if name in ("pop", "popleft") else NOTHING
        if name == "copy":
            return Seq(
                owner.kind,
                list(owner.items) if owner.items is not None else None,
                owner.elem,
                data_sized=owner.data_sized,
                src=owner.src,
            )
        if name in ("index", "count"):
            tensor = self.tensor(first)
            if tensor is not None and not self.doubtful(first):
                self.emit(
                    "branch", node, tensor, form="in", test_kind="tensor", origin=tensor.origin, numpy=tensor.numpy
                )
            return Scalar("int", "unknown")
        if name == "numel" and owner.kind == "size":
            if not any(isinstance(v, Scalar) and v.origin == "size" for v in [element(owner), *(owner.items or [])]):
                return Scalar("int", "constant", owner.src)
            event = self.emit("size", node, None, sub="numel", spelling="numel")
            return Scalar("int", "size", owner.src | ({event} if event is not None else frozenset()))
        if name == "_asdict":
            return UNKNOWN
        if owner.of_modules:
            if name in ("parameters", "named_parameters", "buffers"):
                return Seq("gen", None, Tensor(origin="parameter"))
            if name in ("children", "modules"):
                return Seq("modulelist", owner.items, owner.elem)
            if name in ("named_children", "named_modules", "items"):
                return Seq("modulelist", None, Seq("tuple", [STR, element(owner)], UNKNOWN))
            if name == "forward":
                return self.invoke(owner, args, node)
            if name in ("to", "cuda", "eval", "train", "half", "float", "apply", "requires_grad_", "cpu", "double"):
                return owner
            if name == "values":
                return owner
        return UNKNOWN

    def mapping_method(self, owner: Mapping, name: str, args: Args, node: cst.CSTNode) -> Value:
        values = [*owner.items.values(), *([owner.rest] if owner.rest is not None else [])]
        each = either(values) if values else UNKNOWN
        first = args.get(0) or UNKNOWN
        if name in ("items", "named_children"):
            if owner.rest is None and len(owner.items) <= 12:
                return Seq("gen", [Seq("tuple", [Const(k), v], UNKNOWN) for k, v in owner.items.items()], UNKNOWN)
            return Seq(
                "gen",
                None,
                Seq("tuple", [UNKNOWN if not all(isinstance(k, str) for k in owner.items) else STR, each], UNKNOWN),
            )
        if name in ("values", "children"):
            return Seq("gen", list(values) if owner.rest is None else None, each)
        if name == "keys":
            if owner.rest is None:
                return Seq("gen", [Const(k) for k in owner.items], UNKNOWN)
            return Seq("gen", None, UNKNOWN)
        if name in ("get", "pop", "setdefault"):
            if name != "get":
                self.mutated(owner, name, node, UNKNOWN)
            default = args.get(1)
            self.lookup_by(first, node)
            if isinstance(first, Const) and not isinstance(first.value, (list, dict)) and first.value in owner.items:
                return owner.items[first.value]
            if owner.rest is None and isinstance(first, Const):
                if name == "setdefault" and default is not None:
                    owner.items[first.value] = default
                if owner.owner == "local":
                    return default if default is not None else NOTHING
            if owner.rest is None:
                return join(each, default if default is not None else NOTHING) if values else UNKNOWN
            if (
                owner.owner == "local"
                and isinstance(owner.rest, Unknown)
                and isinstance(first, Const)
                and isinstance(default, Const)
            ):
                return Const(default.value, True, default.src)  # `**kwargs` that nobody is seen to fill
            return (
                unknown(each) if isinstance(each, Unknown) else join(each, default if default is not None else NOTHING)
            )
        if name == "update":
            for option in options(first):
                if isinstance(option, Mapping):
                    for k, v in option.items.items():
                        owner.items[k] = (
                            v if k not in owner.items or not self.frame.uncertain else join(owner.items[k], v)
                        )
                    if option.rest is not None:
                        owner.rest = option.rest
                else:
                    owner.rest = UNKNOWN
            owner.items.update(args.kw)
            self.mutated(owner, "update", node, first)
            return NOTHING
        if name in ("clear", "popitem"):
            self.mutated(owner, name, node, UNKNOWN)
            return UNKNOWN
        if name == "copy":
            return Mapping(dict(owner.items), owner.rest, src=owner.src)
        return UNKNOWN

    def mutate(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, values: Sequence[Value]) -> None:
        """A container changes in place: its content joins what it may now hold, and others who hold it are told."""
        assert isinstance(owner, Seq) or isinstance(owner, Mapping)
        if isinstance(owner, Seq) and values:
            value = values[0]
            if how in ("extend", "update", "extendleft"):
                if (
                    isinstance(value, Seq)
                    and value.items is not None
                    and owner.items is not None
                    and not self.frame.uncertain
                ):
                    owner.items = [*owner.items, *value.items]
                else:
                    owner.elem = either(
                        [
                            v
                            for v in (element(owner) if owner.items != [] else None, self.iterate(value, node, "loop"))
                            if v is not None
                        ]
                    )
                    owner.items = None
            elif owner.items is not None and not self.frame.uncertain and len(owner.items) < 32 and how != "insert":
                owner.items = [*owner.items, value]
            else:
                old = element(owner) if owner.items != [] else None
                owner.elem = value if old is None else join(old, value)
                owner.items = None
            if value.src:
                owner.src = owner.src | value.src
        self.mutated(owner, how, node, values[0] if values else UNKNOWN)

    def mutated(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, value: Value) -> None:
        if name := _attribute_of(node):
            self.writes_to(name)
        if owner.owner == "local" or self.muted:
            return
        changes_length = how in (
            "append",
            "extend",
            "insert",
            "add",
            "appendleft",
            "pop",
            "popleft",
            "remove",
            "clear",
            "update",
            "delete",
            "discard",
        )
        kind = "mapping" if isinstance(owner, Mapping) else owner.kind
        state = self.holder(owner)
        read = self.tracked.get(state)
        if read is not None:  # fetching the container to change it reads nothing
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                read.facts["nodes"].discard(node.func.value)
                self.places = None
            elif isinstance(node, cst.Subscript):
                read.facts["nodes"].discard(node.value)
                self.places = None
        made = self.tensor(value)
        lasts = how == "setitem" and made is not None and made.origin in ("parameter", "buffer")
        self.emit("write", node, None, sub=owner.name, owner=owner.owner, name=owner.name, form=how, container=kind,
                  resizes=changes_length, value="tensor" if made else "other", state=state, lasts=lasts)  # fmt: skip

    def holder(self, owner: Seq | Mapping) -> tuple[int, str]:
        """Whose state a shared container is."""
        if owner.owner == "self":
            self_value = self.frame.self_value
            return (id(self_value), owner.name)
        return (id(self.frame.env.module), owner.name)


def _attribute_of(change: cst.CSTNode) -> str:
    """The attribute that holds what is changed there: `self.x[0] = y`, `self.x.append(y)`, `self.x += y`; else ""."""
    held: cst.CSTNode | None = None
    if isinstance(change, cst.Subscript):
        held = change.value
    elif isinstance(change, cst.AugAssign):
        held = change.target
    elif isinstance(change, cst.Call) and isinstance(change.func, cst.Attribute):
        held = change.func.value
    return held.attr.value if isinstance(held, cst.Attribute) else ""


def _constant(value: Value) -> bool:
    return isinstance(value, Scalar) and value.origin == "constant"


def _within(inner: cst.CSTNode, node: cst.CSTNode) -> bool:
    return any(child is inner or _within(inner, child) for child in children(node))


def _plain_argument(node: cst.CSTNode) -> bool:
    """Whether a call converts a plain name, or one element that a variable picks: nobody writes `int(n)` or
    `int(labels[i])` for what is an int already.
    """
    if not (isinstance(node, cst.Call) and len(node.args) == 1):
        return False
    given = node.args[0].value
    if isinstance(given, cst.Subscript) and len(given.slice) == 1 and isinstance(given.slice[0].slice, cst.Index):
        return isinstance(given.value, cst.Name) and isinstance(given.slice[0].slice.value, cst.Name)
    return isinstance(given, cst.Name)


_BUILTINS: dict[str, Callable[[Any, Args, cst.CSTNode], Value]] = {
    "int": lambda w, a, n: w.convert("int", a, n),
    "float": lambda w, a, n: w.convert("float", a, n),
    "bool": lambda w, a, n: w.convert("bool", a, n),
    "len": BuiltinCalls.length,
    "range": BuiltinCalls.range_,
    "str": BuiltinCalls.text,
    "repr": BuiltinCalls.text,
    "format": BuiltinCalls.text,
    "isinstance": BuiltinCalls.isinstance_,
    "issubclass": lambda w, a, n: BOOL,
    "callable": lambda w, a, n: BOOL,
    "hasattr": BuiltinCalls.hasattr_,
    "getattr": BuiltinCalls.getattr_,
    "setattr": BuiltinCalls.setattr_,
    "type": BuiltinCalls.type_,
    "any": lambda w, a, n: w.truth_over("any", a, n),
    "all": lambda w, a, n: w.truth_over("all", a, n),
    "min": lambda w, a, n: w.extreme("min", a, n),
    "max": lambda w, a, n: w.extreme("max", a, n),
    "sum": BuiltinCalls.sum_,
    "abs": BuiltinCalls.absolute,
    "round": BuiltinCalls.round_,
    "zip": BuiltinCalls.zipped,
    "enumerate": BuiltinCalls.enumerated,
    "reversed": BuiltinCalls.reversed_,
    "sorted": BuiltinCalls.sorted_,
    "map": BuiltinCalls.mapped,
    "filter": BuiltinCalls.filtered,
    "list": lambda w, a, n: w.collected("list", a, n),
    "tuple": lambda w, a, n: w.collected("tuple", a, n),
    "set": lambda w, a, n: w.collected("set", a, n),
    "frozenset": lambda w, a, n: w.collected("set", a, n),
    "iter": lambda w, a, n: w.collected("gen", a, n),
    "dict": BuiltinCalls.dict_call,
    "next": BuiltinCalls.next_,
    "print": BuiltinCalls.printed,
    "id": lambda w, a, n: w.plain("id", INT, a, n),
    "open": lambda w, a, n: w.plain("open", Instance(None, "builtins.open"), a, n),
    "input": lambda w, a, n: w.plain("input", STR, a, n),
    "eval": lambda w, a, n: w.plain("eval", UNKNOWN, a, n),
    "exec": lambda w, a, n: w.plain("exec", NOTHING, a, n),
    "breakpoint": lambda w, a, n: w.plain("breakpoint", NOTHING, a, n),
    "vars": lambda w, a, n: UNKNOWN,
    "slice": lambda w, a, n: SliceValue(
        tuple([*a.pos, NOTHING, NOTHING, NOTHING][:3] if len(a.pos) != 1 else [NOTHING, a.pos[0], NOTHING])
    ),
    "pow": lambda w, a, n: w.binary("Power", a.pos[0], a.pos[1], n) if len(a.pos) > 1 else UNKNOWN,
    "divmod": BuiltinCalls.divided,
    "property": lambda w, a, n: UNKNOWN,
    "NotImplementedError": lambda w, a, n: Instance(None, "builtins.NotImplementedError"),
}
