"""Displays, comprehensions, iteration and subscripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tsdyn_lint.infer import shapes
from tsdyn_lint.infer.events import POSSIBLE, Event
from tsdyn_lint.infer.frames import Env
from tsdyn_lint.infer.operators import Operators, constants, derived
from tsdyn_lint.infer.values import (
    NONE,
    NOTHING,
    STR,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Instance,
    Mapping,
    Outside,
    Scalar,
    Seq,
    SliceValue,
    Tensor,
    Unknown,
    Value,
    either,
    element,
    hashable,
    join,
    options,
    sources,
    unknown,
)


class Containers(Operators):
    """`iterate` gives what a loop over a value binds, `item` what a subscript of it gives."""

    def list_(self, node: cst.List | cst.Tuple | cst.Set) -> Value:
        kind = {cst.List: "list", cst.Tuple: "tuple", cst.Set: "set"}[type(node)]
        items: list[Value] | None = []
        rest: list[Value] = []
        for part in node.elements:
            value = self.expr(part.value)
            if type(part) is cst.StarredElement:
                if isinstance(value, Seq) and value.items is not None and items is not None:
                    items += value.items
                else:
                    rest += [self.iterate(value, part.value, "unpack"), *(items or ())]
                    items = None
            elif items is not None:
                items.append(value)
            else:
                rest.append(value)
        if items is not None and len(items) > 64:
            rest, items = [either(items)], None
        src = sources(*(items or rest))
        return Seq(kind, items, UNKNOWN if items is not None else either(rest), src=src)

    def dict_(self, node: cst.Dict) -> Value:
        table = Mapping({})
        for part in node.elements:
            value = self.expr(part.value)
            if isinstance(part, cst.StarredDictElement):
                for option in options(value):
                    if isinstance(option, Mapping):
                        table.items.update(option.items)
                        if option.rest is not None:
                            table.rest = option.rest if table.rest is None else join(table.rest, option.rest)
                    else:
                        table.rest = UNKNOWN
                continue
            assert isinstance(part, cst.DictElement)
            name = self.expr(part.key)
            if isinstance(name, Const) and hashable(name.value):
                table.items[name.value] = value
            else:
                table.rest = value if table.rest is None else join(table.rest, value)
        return table

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> Value:
        frame = self.frame
        outer = frame.env
        frame.env = Env(outer.module, outer)
        frame.env.globals_ = outer.globals_
        apart, frame.apart = frame.apart, type(node) is not cst.GeneratorExp
        results: list[Value] = []
        keys: list[Value] = []
        known = [True]

        def body() -> None:
            if isinstance(node, cst.DictComp):
                keys.append(self.expr(node.key))
                results.append(self.expr(node.value))
            else:
                results.append(self.expr(node.elt))

        try:
            with self.under(weak=True):
                sized = self.generate(node.for_in, body, known)
        finally:
            frame.env, frame.apart = outer, apart
        if isinstance(node, cst.DictComp):
            table = Mapping({})
            for k, v in zip(keys, results, strict=False):
                if known[0] and isinstance(k, Const) and hashable(k.value):
                    table.items[k.value] = v
                else:
                    table.rest = v if table.rest is None else join(table.rest, v)
            return table
        kind = {cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "gen"}[type(node)]
        if known[0]:
            return Seq(kind, results, UNKNOWN, src=sources(*results))
        return Seq(kind, None, either(results), data_sized=sized, src=sources(*results))

    def generate(self, part: cst.CompFor, body: Callable[[], None], known: list[bool]) -> bool:
        """Walk `for .. in .. if ..` of a comprehension; returns whether its length depends on data."""
        iterable = self.expr(part.iter)
        self.loop_over(iterable, part.iter)
        exact = isinstance(iterable, Seq) and iterable.items is not None and len(iterable.items) <= 16 and not part.ifs
        if not exact:
            known[0] = False
        sized = False
        values = (
            iterable.items
            if exact and isinstance(iterable, Seq) and iterable.items is not None
            else [self.iterate(iterable, part.iter, "loop")]
        )
        repeated = self.frame.repeated
        if isinstance(iterable, Seq) and iterable.of_modules:
            self.frame.repeated = True
        for value in values:
            self.bind(part.target, value)
            doubt = None
            for test in part.ifs:
                result = self.condition(test.test, "comprehension")
                sized |= self.tensor(result) is not None
                if self.truth(result)[0] is False:
                    doubt = POSSIBLE
                self.refine(test.test, True)
            with self.under(doubt):
                if part.inner_for_in is not None:
                    sized |= self.generate(part.inner_for_in, body, known)
                else:
                    body()
        self.frame.repeated = repeated
        return (
            sized
            or (isinstance(iterable, Seq) and iterable.data_sized)
            or (isinstance(iterable, Tensor) and iterable.data_sized)
        )

    def bind(self, target: cst.CSTNode, value: Value, augmented: bool = False) -> None:
        raise NotImplementedError

    def iterate(self, value: Value, node: cst.CSTNode, why: str) -> Value:
        """What one step of iterating over the value gives."""
        if isinstance(value, Either):
            return either(
                self.iterate(o, node, why) for o in value.options if not (isinstance(o, Const) and o.value is None)
            )
        if isinstance(value, Seq):
            each = element(value)
            if value.kind == "range" and isinstance(each, Scalar) and each.origin == "size":
                return Scalar("int", "constant", each.src)  # how many there are is a size, each of them is none
            return each
        if isinstance(value, Tensor):
            if why == "unpack":
                self.emit("loop", node, value, sub="unpack", over="tensor", form="unpack", data_sized=value.data_sized)
            rank = value.rank - 1 if value.rank else None
            return derived(value, value.dtype, rank=rank)
        if isinstance(value, Mapping):
            return (
                Scalar("str", "constant") if value.items and all(isinstance(k, str) for k in value.items) else UNKNOWN
            )
        if isinstance(value, Const) and isinstance(value.value, str):
            return STR
        if isinstance(value, Scalar) and value.type == "str":
            return STR
        if isinstance(value, Instance):
            return self.iterate_instance(value, node)
        return unknown(value)

    def iterate_instance(self, value: Instance, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def loop_over(self, iterable: Value, node: cst.CSTNode) -> frozenset[Event]:
        """Events of what a loop runs over, of which those over a tensor are given back; tells the reads behind its
        length.
        """
        loops: frozenset[Event] = NONE
        for option in options(iterable):
            if isinstance(option, Tensor):
                if option.hypothesis is not None and not option.hypothesis.confirmed and not option.intermediate:
                    continue
                if shapes.first_size_varies(option) and option.origin != "random":
                    event = self.emit("loop", node, option, over="tensor", form="iterate", data_sized=option.data_sized)
                    loops |= NONE if event is None else {event}
            elif isinstance(option, Seq):
                if option.src and option.items is None:
                    self.use(option, "loop", node)
                if option.name == "<rows>" and option.items is None:
                    self.emit("loop", node, None, over="tensor", form="iterate", data_sized=False)
                elif option.kind == "range" and isinstance(option.elem, Scalar) and option.elem.origin == "size":
                    self.emit("loop", node, None, over="size", form="range", data_sized=False)
                elif option.data_sized:
                    # the read that gave the length is the cause, and is reported itself
                    read = any(event.kind == "scalar" for event in option.src)
                    self.emit("loop", node, None, over="data", form="iterate", data_sized=True, reported=read)
        return loops

    # --- subscripts

    def subscript(self, node: cst.Subscript) -> Value:
        owner = self.expr(node.value)
        if isinstance(owner, (Outside, ClassRef)):
            return owner  # a generic alias
        index = self.index(node)
        return self.item(owner, index, node)

    def index(self, node: cst.Subscript) -> Value:
        parts = [self.index_part(e.slice) for e in node.slice]
        if len(parts) == 1 and type(node.slice[0].comma) is not cst.Comma:
            return parts[0]
        return Seq("tuple", parts, UNKNOWN, src=sources(*parts))

    def index_part(self, part: cst.BaseSlice) -> Value:
        if type(part) is cst.Index:
            return self.expr(part.value)
        if type(part) is cst.Slice:
            bounds = tuple(NOTHING if b is None else self.expr(b) for b in (part.lower, part.upper, part.step))
            return SliceValue(bounds, sources(*bounds))
        return UNKNOWN

    def item(self, owner: Value, index: Value, node: cst.CSTNode) -> Value:
        """`owner[index]`."""
        self.needs_value(owner, node)
        if isinstance(owner, Either):
            found = [self.item(o, index, node) for o in owner.options if not (isinstance(o, Const) and o.value is None)]
            return either(found) if found else UNKNOWN
        if isinstance(owner, Tensor):
            if isinstance(index, Const) and isinstance(index.value, str):  # no tensor has names
                self.contradict(owner)
                if owner.hypothesis is not None:
                    owner.hypothesis.mapping = True
                return UNKNOWN
            return self.read(owner, index, node)
        self.use(index, "index", node)
        if isinstance(owner, Seq):
            return self.sequence_item(owner, index, node)
        if isinstance(owner, Mapping):
            self.lookup_by(index, node)
            if isinstance(index, Const) and hashable(index.value):
                if index.value in owner.items:
                    return owner.items[index.value]
                return UNKNOWN if owner.rest is None else owner.rest
            values = [*owner.items.values(), *([owner.rest] if owner.rest is not None else [])]
            return either(values) if values else UNKNOWN
        if isinstance(owner, Instance):
            return self.instance_item(owner, index, node)
        if (
            isinstance(owner, Scalar)
            and owner.type == "str"
            or isinstance(owner, Const)
            and isinstance(owner.value, str)
        ):
            return STR
        if isinstance(owner, Unknown) and isinstance(index, Tensor) and index.dtype == "bool":
            if not self.doubtful(index):  # no container but a tensor takes a mask
                return self.read(Tensor(src=owner.src), index, node)
        return unknown(owner)

    def lookup_by(self, index: Value, node: cst.CSTNode) -> None:
        """A dict looked up by a size needs its number: Dynamo guards on it, a trace finds no such key."""
        if any(isinstance(o, Scalar) and o.origin == "size" for o in options(index)):
            self.emit("size", node, None, sub="dict-key", spelling="dict-key")

    def sequence_item(self, owner: Seq, index: Value, node: cst.CSTNode) -> Value:
        if isinstance(index, SliceValue):
            bounds = constants(index.parts)
            if owner.items is not None and bounds is not None:
                try:
                    return Seq(owner.kind, owner.items[slice(*bounds)], UNKNOWN, src=owner.src)
                except TypeError:
                    return UNKNOWN
            data = any(isinstance(p, Scalar) and p.origin == "data" for p in index.parts)
            return Seq(owner.kind, None, element(owner), data_sized=data, src=sources(owner, index))
        if owner.kind in ("modulelist", "sequential"):
            self.use(index, "module", node)
        tensor = self.tensor(index)
        if tensor is not None and owner.kind in ("list", "tuple", "modulelist", "sequential"):
            self.emit(
                "scalar",
                node,
                tensor,
                sub="index",
                spelling="index",
                origin=tensor.origin,
                container=owner.kind,
                numpy=tensor.numpy,
            )
        found = element(owner)
        if isinstance(index, Const) and isinstance(index.value, int):
            first = index.value == 0
            if owner.items is not None:
                if not -len(owner.items) <= index.value < len(owner.items):
                    return UNKNOWN
                found, first = owner.items[index.value], index.value in (0, -len(owner.items))
            if owner.kind == "size" and not first and isinstance(found, Scalar) and found.origin == "data":
                # what depends on data is how many there are
                return Scalar("int", "size", frozenset(event for event in found.src if event.kind != "data-size"))
        return found

    def read(self, owner: Tensor, index: Value, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def store(self, owner: Tensor, index: Value, value: Value, node: cst.CSTNode) -> None:
        raise NotImplementedError

    def instance_item(self, owner: Instance, index: Value, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def mutate(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, values: Sequence[Value]) -> None:
        raise NotImplementedError

    def mutated(self, owner: Seq | Mapping, how: str, node: cst.CSTNode, value: Value) -> None:
        raise NotImplementedError
