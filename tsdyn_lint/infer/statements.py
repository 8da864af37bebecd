"""Statements: what they bind, where control goes, and the events of branches, loops, `with` and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer import contexts
from tsdyn_lint.infer.defaults import side as side_of_defaults
from tsdyn_lint.infer.events import LIKELY, POSSIBLE
from tsdyn_lint.infer.expressions import Expressions
from tsdyn_lint.infer.frames import Loop, joined
from tsdyn_lint.infer.refine import is_none, is_soft_none, path_of
from tsdyn_lint.infer.values import (
    NOTHING,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Flag,
    Func,
    Instance,
    Mapping,
    Outside,
    Scalar,
    Seq,
    Tensor,
    Value,
    either,
    element,
    hashable,
    join,
    key,
    options,
)
from tsdyn_lint.infer.walk import BUDGET, OutOfBudget
from tsdyn_lint.nodes import children
from tsdyn_lint.resolve import Function, checks_only, only_raises
from tsdyn_lint.resolve.symbols import imported_names

_UNROLL = 24


class Statements(Expressions):
    """`block` walks statements and says whether control comes out at the end."""

    def block(self, statements: Sequence[cst.CSTNode]) -> bool:
        for statement in statements:
            self.steps += 1
            if type(statement) is cst.SimpleStatementLine and len(statement.body) == 1:  # nearly all of them
                statement = statement.body[0]
                self.steps += 1
            if self.steps > BUDGET:
                raise OutOfBudget
            handler = _HANDLERS.get(type(statement))
            if handler is not None and not handler(self, statement):
                return False
        return True

    def suite(self, node: cst.BaseSuite) -> bool:
        return self.block(node.body)

    def line(self, node: cst.SimpleStatementLine) -> bool:
        return self.block(node.body)

    # --- simple statements

    def expression(self, node: cst.Expr) -> bool:
        value = self.expr(node.value)
        return not (type(value) is Outside and value.dotted == "<never returns>")

    def assign(self, node: cst.Assign) -> bool:
        attributes = [one.target for one in node.targets if type(one.target) is cst.Attribute]
        before = {target.attr.value: self.reads_of(target.attr.value) for target in attributes} if self.tracked else {}
        value = self.expr(node.value)
        for one in node.targets:
            if type(one.target) is not cst.Attribute:
                self.bind(one.target, value)
            elif not _moved(node.value, one.target):
                self.assign_attribute(one.target, value, before)
        return True

    def assign_attribute(self, target: cst.Attribute, value: Value, before: dict[str, set[cst.CSTNode]]) -> None:
        """`before`: the places that had read state of that name before the value was worked out."""
        name = target.attr.value
        updates = bool(self.tracked) and self.only_updates(name, before.get(name, set()))
        self.bind_attribute(target, value, False)
        self.note_rebuilt(target, not updates)
        if self.tracked:
            write = self.event_at("write", target)
            if write is not None:
                write.facts["read_before"] = updates or bool(before[name] - self.elsewhere)

    def note_rebuilt(self, target: cst.Attribute, afresh: bool) -> None:
        """Whether an attribute now holds something made in this call alone."""
        path = path_of(target)
        if not path:
            return
        (self.frame.rebuilt.add if afresh else self.frame.rebuilt.discard)(path)
        if afresh and self.tracked:
            with self.quietly():
                owner = self.expr(target.value)
            self.rebuilt.add((id(owner), target.attr.value))

    def reads_of(self, name: str) -> set[cst.CSTNode]:
        """The places that have read watched state of that name so far."""
        found: set[cst.CSTNode] = set()
        for event in self.reads.get(name, ()):
            found |= event.facts["nodes"]
        return found

    def all_reads(self) -> set[cst.CSTNode]:
        """The places that have read any watched state so far."""
        if self.places is None:
            self.places = set().union(*map(self.reads_of, self.reads))
        return self.places

    def only_updates(self, name: str, before: set[cst.CSTNode]) -> bool:
        """Reads of state in its own update (`self.k = cat(self.k, x)`) are no reads that reach an output.

        Says whether there were any.
        """
        found = False
        for event in self.reads.get(name, ()):
            found = found or not event.facts["nodes"] <= before
            event.facts["nodes"] &= before
            self.places = None
        return found

    def annotated_assign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            self.bind(node.target, self.expr(node.value))
        return True

    def augmented(self, node: cst.AugAssign) -> bool:
        target = node.target
        name = target.attr.value if type(target) is cst.Attribute else target.value if type(target) is cst.Name else ""
        read_before = self.reads_of(name)
        before = self.expr(target)
        self.only_updates(name, read_before)
        if type(target) is cst.Attribute:
            self.note_rebuilt(target, False)
        value = self.expr(node.value)
        operator = type(node.operator).__name__.replace("Assign", "")
        if type(target) is cst.Subscript and self.tensor(self.expr(target.value)) is not None:
            # x[mask] += 1 reads through the mask as well: `before` has said so
            held = self.tensor(before)
            if held is not None and held.data_sized:
                self.mask_store(held, target)
            self.inplace_operand(before, value, node)
            return True
        if isinstance(before, Seq) and before.kind in ("list", "deque") and operator == "Add":
            self.mutate(before, "extend", node, [value])
            return True
        if self.tensor(before) is not None and self.tensor(value) is None or self.tensor(before) is not None:
            self.inplace_operand(before, value, node)
            result = before if self.tensor(before) is before else self.binary(operator, before, value, node)
        else:
            result = self.binary(operator, before, value, node)
        self.bind(target, result, augmented=True)
        return True

    def inplace_operand(self, before: Value, value: Value, node: cst.CSTNode) -> None:
        """`t += v` on a tensor."""
        self.use(value, "arith", node)
        tensor = self.tensor(before)
        if tensor is not None and self.tensor(value) is not None:
            self.accumulated(tensor, node)

    def delete(self, node: cst.Del) -> bool:
        targets = node.target.elements if isinstance(node.target, (cst.Tuple, cst.List)) else [node.target]
        for item in targets:
            target = item.value if type(item) is cst.Element else item
            if type(target) is cst.Name:
                self.frame.env.vars.pop(target.value, None)
            elif type(target) is cst.Subscript:
                owner = self.expr(target.value)
                if isinstance(owner, (Seq, Mapping)):
                    self.mutate(owner, "delete", node, [])
        return True

    def asserted(self, node: cst.Assert) -> bool:
        message = (
            "none"
            if node.msg is None
            else "literal"
            if isinstance(node.msg, (cst.SimpleString, cst.ConcatenatedString))
            else "computed"
        )
        self.condition(node.test, "assert", message=message, plain=True)
        if node.msg is not None:
            with self.under(POSSIBLE):
                self.expr(node.msg)
        self.refine(node.test, True)
        if type(node.test) is cst.Comparison and type(node.test.comparisons[0].operator) in (cst.Is, cst.IsNot):
            self.only_asked(node.test.left)
        return True

    def raised(self, node: cst.Raise) -> bool:
        if node.exc is not None:
            with self.under(POSSIBLE):
                self.expr(node.exc)
        return False

    def returned(self, node: cst.Return) -> bool:
        value = self.expr(node.value) if node.value is not None else NOTHING
        self.use(value, "return", node)
        if not self.frame.stack and any(_is_dict(o, value) for o in options(value)):
            self.emit("return", node, None, form="dict")
        frame = self.frame
        apart = Engine.DYNAMO in frame.entered and Engine.DYNAMO not in frame.engines
        (frame.aside if apart else frame.returns).append(value)
        return False

    def broken(self, node: cst.Break) -> bool:
        if self.frame.loops:
            self.frame.loops[-1].breaks.append(dict(self.frame.env.vars))
        return False

    def continued(self, node: cst.Continue) -> bool:
        if self.frame.loops:
            self.frame.loops[-1].continues.append(dict(self.frame.env.vars))
        return False

    def global_names(self, node: cst.Global) -> bool:
        self.frame.env.globals_.update(item.name.value for item in node.names)
        return True

    def imported(self, node: cst.Import | cst.ImportFrom) -> bool:
        for name, dotted in imported_names(node, self.frame.function.module):
            self.frame.env.assign(name, self.dotted_value(dotted))
        return True

    # --- definitions

    def function(self, node: cst.FunctionDef) -> bool:
        function = Function(node.name.value, node, self.frame.function.module, None, self.frame.function)
        value: Value = Func(function, None, self.frame.env)
        self.closures.append(self.frame.env)
        for decorator in reversed(node.decorators):
            name = self.expr(decorator.decorator)
            if isinstance(name, Outside) and name.dotted.startswith(contexts.DISABLERS):
                value = Outside("torch.compiler.<disabled>")
        self.frame.env.assign(node.name.value, value)
        return True

    def klass(self, node: cst.ClassDef) -> bool:
        self.frame.env.assign(node.name.value, UNKNOWN)
        return True

    # --- binding

    def bind(self, target: cst.CSTNode, value: Value, augmented: bool = False) -> None:
        if type(target) is cst.Name:
            name = target.value
            env = self.frame.env
            if name in env.globals_:
                self.emit(
                    "write",
                    target,
                    None,
                    owner="global",
                    name=name,
                    form="augment" if augmented else "assign",
                    value=_describe(value),
                    state=(id(env.module), name),
                )
                module_name = (id(self.frame.function.module), name)
                known = self._module_values.get(module_name)
                self._module_values[module_name] = _stateful(value if known is None else join(known, value))
                env.vars.pop(name, None)
            else:
                env.assign(name, value)
        elif type(target) is cst.Attribute:
            self.bind_attribute(target, value, augmented)
        elif type(target) is cst.Subscript:
            self.bind_item(target, value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self.unpack(target.elements, value, target)
        elif type(target) is cst.StarredElement:
            self.bind(target.value, Seq("list", None, UNKNOWN))

    def unpack(self, elements: Sequence[cst.BaseElement], value: Value, node: cst.CSTNode) -> None:
        count = len(elements)
        star = next((i for i, e in enumerate(elements) if type(e) is cst.StarredElement), None)
        parts: list[Value] | None = None
        for option in options(value):
            if isinstance(option, Seq) and option.items is not None:
                items = option.items
                if star is None and len(items) == count:
                    parts = items if parts is None else [join(a, b) for a, b in zip(parts, items, strict=False)]
                elif star is not None and len(items) >= count - 1:
                    tail = count - 1 - star
                    middle = items[star : len(items) - tail]
                    parts = [*items[:star], Seq("list", list(middle), either(middle)), *items[len(items) - tail :]]
        if parts is None:
            each = self.iterate(value, node, "unpack")
            parts = [each if i != star else Seq("list", None, each) for i in range(count)]
        for element_node, part in zip(elements, parts, strict=False):
            self.bind(
                element_node.value
                if star is None or type(element_node) is not cst.StarredElement
                else element_node.value,
                part,
            )

    def bind_attribute(self, target: cst.Attribute, value: Value, augmented: bool) -> None:
        owner = self.expr(target.value)
        name = target.attr.value
        path = path_of(target)
        env = self.frame.env
        for option in options(owner):
            if isinstance(option, Tensor):
                self.emit(
                    "tensor-attr",
                    target,
                    option,
                    name=name,
                    mode="write",
                    value=_describe(value),
                    origin=option.origin,
                    intermediate=option.intermediate,
                )
            elif isinstance(option, Instance):
                self.write_attribute(option, name, value, target, augmented)
            elif isinstance(option, (ClassRef, Outside)):
                dotted = option.dotted if isinstance(option, Outside) else option.cls.name
                self.emit(
                    "write",
                    target,
                    None,
                    owner="global",
                    name=f"{dotted}.{name}",
                    form="augment" if augmented else "assign",
                    value=_describe(value),
                )
        if path:
            (env.assign if not self.frame.uncertain or path in env.vars else env.hold)(path, value)

    def write_attribute(self, owner: Instance, name: str, value: Value, node: cst.CSTNode, augmented: bool) -> None:
        self.writes_to(name)
        before = owner.attrs.get(name)
        if isinstance(value, (Seq, Mapping)) and value.owner == "local" and owner.is_module and value.name == "":
            if self.muted:
                value.owner, value.name = "self", name
        if self.muted and owner.complete and owner.is_module and (before is None or key(before) != key(value)):
            self.changed(self.bit(name))  # modules made alike are one object, which earlier calls met without this
        if self.muted or owner.owner == "call" or owner.owner == "local" and not owner.is_module:
            owner.attrs[name] = value if before is None or not self.frame.uncertain else join(before, value)
            return
        facts: dict[str, Any] = {}
        held = None if before is None else self.tensor(before)
        if held is not None:
            facts["before"] = held.origin
        made = self.tensor(value)
        facts["varies"] = made is not None and made.origin in ("data", "random")
        facts["built"] = made is not None and made.origin == "constant"
        facts["read_before"], facts["sized"] = True, _sized(value)
        self.emit(
            "write", node, None, owner="self" if owner.is_module or owner.owner == "self" else owner.owner, name=name,
            form="augment" if augmented else "assign", value=_describe(value),
            had=_describe(before) if before is not None else "nothing",
            state=(id(owner), name), **facts,
        )  # fmt: skip
        state = _stateful(value)
        if isinstance(before, Const) and before.value is None and isinstance(state, Tensor) and not self.weak:
            self.filled[id(owner), name] = owner, state
        else:
            self.filled.pop((id(owner), name), None)
        owner.attrs[name] = (
            state
            if before is None
            else join(before if not isinstance(before, Const) else Const(before.value, True, before.src), state)
        )

    def bind_item(self, target: cst.Subscript, value: Value) -> None:
        owner = self.expr(target.value)
        index = self.index(target)
        for option in options(owner):
            if isinstance(option, Tensor):
                self.store(option, index, value, target)
            elif isinstance(option, Mapping):
                self.use(index, "index", target)
                if isinstance(index, Const) and not self.frame.uncertain and hashable(index.value):
                    option.items[index.value] = value
                elif isinstance(index, Const) and hashable(index.value):
                    old = option.items.get(index.value)
                    option.items[index.value] = value if old is None else join(old, value)
                else:
                    option.rest = value if option.rest is None else join(option.rest, value)
                self.mutated(option, "setitem", target, value)
            elif isinstance(option, Seq):
                if (
                    option.items is not None
                    and isinstance(index, Const)
                    and isinstance(index.value, int)
                    and -len(option.items) <= index.value < len(option.items)
                ):
                    at = index.value
                    option.items[at] = value if not self.frame.uncertain else join(option.items[at], value)
                elif option.items is not None:
                    option.items = [join(v, value) for v in option.items]
                option.elem = value if option.elem is UNKNOWN else join(option.elem, value)
                self.mutated(option, "setitem", target, value)

    # --- branches

    def if_(self, node: cst.If) -> bool:
        known = self._checks.get(id(node))
        if known is None:
            raises_only = checks_only(node) or self.frame.function.is_a_check
            known = self._checks[id(node)] = raises_only, raises_only and not only_raises(node)
        raises_only, noted = known
        value = self.condition(node.test, "if", raises_only=raises_only, noted=noted)
        return self.branch(value, node.test, lambda: self.suite(node.body), lambda: self.otherwise(node.orelse))

    def otherwise(self, node: cst.Else | cst.If | None) -> bool:
        if node is None:
            return True
        return self.if_(node) if type(node) is cst.If else self.suite(node.body)

    def branch(self, value: Value, test: cst.BaseExpression, then: Any, other: Any) -> bool:
        """Walk both sides of a test as far as its value allows, and join what they leave."""
        frame = self.frame
        flag = self.flag(value)
        if flag is not None:
            return self.by_engine(flag, test, then, other)
        known, hard = self.truth(value)
        asked, unasked = frame.asked, side_of_defaults(test, frame.given) if frame.given else None
        asking = asked or frame.stack[-1] if unasked is not None else None
        if known is not None and hard:
            self.refine(test, known)
            frame.asked = asking if unasked is (not known) else asked
            arrives = bool(then() if known else other())
            frame.asked = asked
            return arrives
        before = dict(frame.env.vars)
        data = self.tensor(value) is not None
        doubt = None if known is not None or data else LIKELY
        left: dict[bool, dict[str, Value]] = {}
        alive: dict[bool, bool] = {}
        sides, elsewhere = frame.sides, self.elsewhere
        both = ((True, then), (False, other))
        for side, walk in reversed(both) if known is False else both:  # the likelier first: its calls serve the other
            frame.env.vars = dict(before)
            read = self.all_reads() if self.tracked else set()
            confidence = POSSIBLE if known is not None and side != known else doubt
            frame.sides = sides if side is known else (*sides, (test, side))
            frame.asked = asking if unasked is (not side) else asked
            with self.under(confidence, weak=True):
                self.refine(test, side)
                alive[side] = walk()
            left[side] = frame.env.vars
            if self.tracked:
                self.elsewhere = elsewhere | self.all_reads() - read
        frame.sides, frame.asked, self.elsewhere = sides, asked, elsewhere
        if known is not None and all(alive.values()):
            ends = [_as_given(left[known], left[not known], before)]  # the side of the default decides what follows
        else:
            ends = [left[side] for side in (True, False) if alive[side]]
        frame.env.vars = joined(ends) or before
        return any(alive.values())

    def by_engine(self, flag: Flag, test: cst.BaseExpression, then: Any, other: Any) -> bool:
        """Walk each side for the captures that reach it."""
        frame = self.frame
        before = dict(frame.env.vars)
        ends: list[tuple[frozenset[Engine], dict[str, Value]]] = []
        sides = ((True, frame.engines & flag.may, then), (False, frame.engines - flag.sure, other))
        for side, engines, walk in sides:
            if not engines:
                continue
            frame.env.vars = dict(before)
            with self.under(engines=engines, weak=flag.may != flag.sure):
                self.refine(test, side)
                if walk():
                    ends.append((engines, frame.env.vars))
        if len(ends) == 2:
            self.set_elsewhere(*ends)
        # no variable says which capture it belongs to: what follows has the values that Dynamo sees
        followed = [end for end in ends if Engine.DYNAMO in end[0]] or ends
        frame.env.vars = joined(variables for _, variables in followed) or before
        if ends:  # `if torch.compiler.is_compiling(): return ...` leaves the rest to the other captures
            frame.engines = frozenset[Engine]().union(*(engines for engines, _ in ends))
        return bool(ends)

    def set_elsewhere(
        self, first: tuple[frozenset[Engine], dict[str, Value]], second: tuple[frozenset[Engine], dict[str, Value]]
    ) -> None:
        """Mark the defaults of None that one side replaces, where the other side's captures do without it."""
        for (these, given), (others, left) in ((first, second), (second, first)):
            without = others - these
            for name in left.keys() & given.keys() if without else ():
                defaults = [value for value in options(left[name]) if is_soft_none(value)]
                if defaults and not any(is_none(value) for value in options(given[name])):
                    rest = [value for value in options(left[name]) if not is_soft_none(value)]
                    left[name] = either([self.unset(name, without), *rest])

    # --- loops

    def for_(self, node: cst.For) -> bool:
        iterable = self.expr(node.iter)
        self.loop_over(iterable, node.iter)
        items = self.loop_items(iterable, node.iter)
        self.loop(
            node.body,
            [lambda v=v: self.bind(node.target, v) for v in items],
            node.orelse,
            known=_sure(iterable),
            repeats=_layers(iterable),
        )
        return True

    def loop_items(self, iterable: Value, node: cst.CSTNode) -> list[Value]:
        """The values that the loop variable takes, one per walk of the body."""
        if isinstance(iterable, Seq) and iterable.items is not None and 0 < len(iterable.items) <= _UNROLL:
            distinct: list[Value] = []
            for item in iterable.items:
                if not any(item is d for d in distinct):
                    distinct.append(item)
            if all(isinstance(v, (Const, Scalar)) for v in distinct) and len(distinct) > 3:
                return [either(distinct)]
            return distinct
        return [self.iterate(iterable, node, "loop")]

    def loop(
        self,
        body: cst.BaseSuite,
        binders: Sequence[Any],
        orelse: cst.Else | None,
        known: bool,
        repeats: bool = False,
        test: Any = None,
    ) -> None:
        frame = self.frame
        before = dict(frame.env.vars)
        state = Loop()
        frame.loops.append(state)
        repeated, frame.repeated = frame.repeated, frame.repeated or repeats
        ends = [] if known and binders else [before]
        walks = list(binders) if len(binders) > 1 else [*binders, *binders]
        env = frame.env
        outer = env.before, env.read
        env.before, env.read = before, set()
        with self.under(None if known else LIKELY, block="loop", weak=True):
            for number, binder in enumerate(walks):
                binder()
                if test is not None:
                    test()
                alive = self.suite(body)
                if alive:
                    state.continues.append(frame.env.vars)
                after = joined(state.continues)
                if after is None:
                    break
                if len(binders) <= 1 and number == 0:
                    if not any(before.get(name) is not after[name] for name in env.read & after.keys()):
                        frame.env.vars = dict(after)
                        break
                    frame.env.vars = joined([before, after]) or dict(after)
                else:
                    frame.env.vars = dict(after)
        read = env.read
        env.before, env.read = outer
        if env.read is not None:
            env.read |= read
        frame.loops.pop()
        frame.repeated = repeated
        last = joined(state.continues)
        if last is not None:
            ends.append(last)
        ends += state.breaks
        frame.env.vars = joined(ends) or before
        if orelse is not None:
            self.suite(orelse.body)

    def while_(self, node: cst.While) -> bool:
        with self.under(block="loop"):
            value = self.condition(node.test, "while")
        known, hard = self.truth(value)
        if known is False and hard:
            return self.suite(node.orelse.body) if node.orelse is not None else True
        endless = known is True and hard
        self.refine(node.test, True)
        self.loop(
            node.body,
            [lambda: None],
            node.orelse,
            known=endless,
            test=lambda: self.condition(node.test, "while") if not endless else None,
        )
        return True

    # --- try and with

    def try_(self, node: cst.Try | cst.TryStar) -> bool:
        frame = self.frame
        before = dict(frame.env.vars)
        fallback = any(_imports_inside(s) for s in node.body.body)
        with self.under(block="try", weak=bool(node.handlers)):
            alive = self.suite(node.body)
            if alive and node.orelse is not None:
                alive = self.suite(node.orelse.body)
        ends = [frame.env.vars] if alive else []
        if node.handlers and not fallback:
            middle = joined([before, frame.env.vars]) or before
            for handler in node.handlers:
                frame.env.vars = dict(middle)
                if handler.name is not None and type(handler.name.name) is cst.Name:
                    frame.env.vars[handler.name.name.value] = UNKNOWN
                with self.under(POSSIBLE, block="try", weak=True):
                    if self.suite(handler.body):
                        ends.append(frame.env.vars)
        frame.env.vars = joined(ends) or before
        if node.finalbody is not None:
            with self.under(block="try"):
                if not self.suite(node.finalbody.body):
                    return False
        return bool(ends)

    def with_(self, node: cst.With) -> bool:
        blocks = 0
        saved = self.frame.blocks
        suppresses = False
        for item in node.items:
            value = self.expr(item.item)
            kind = self.context_kind(value)
            if kind != "supported":
                target = contexts.describe(value)
                if kind == "refused" and target != "contextlib.ExitStack":
                    self.emit("with", item.item, None, target=target)
                self.frame.blocks = (*self.frame.blocks, "with")
                blocks += 1
            if "suppress" in contexts.describe(value):
                suppresses = True
            if item.asname is not None:
                self.bind(item.asname.name, self.entered(value, item.item))
        alive = self.suite(node.body)
        self.frame.blocks = saved
        return alive or suppresses

    def mask_store(self, mask: Tensor, node: cst.CSTNode) -> None:
        raise NotImplementedError

    def context_kind(self, value: Value) -> str:
        raise NotImplementedError

    def entered(self, value: Value, node: cst.CSTNode) -> Value:
        raise NotImplementedError

    def match(self, node: cst.Match) -> bool:
        self.expr(node.subject)
        frame = self.frame
        before = dict(frame.env.vars)
        ends = [before]
        alive_any = True
        for case in node.cases:
            frame.env.vars = dict(before)
            for name in _captured(case.pattern):
                frame.env.vars[name] = UNKNOWN
            with self.under(LIKELY, weak=True):
                if self.suite(case.body):
                    ends.append(frame.env.vars)
        frame.env.vars = joined(ends) or before
        return alive_any


def _is_dict(option: Value, value: Value) -> bool:
    """A dict, or a parameter that was used as one; not what only a test of its type in one branch says."""
    if isinstance(option, Mapping):
        return option is value or option.owner != "argument"
    return isinstance(option, Tensor) and option.hypothesis is not None and option.hypothesis.mapping


def _as_given(taken: dict[str, Value], other: dict[str, Value], before: dict[str, Value]) -> dict[str, Value]:
    """The variables after the side that defaults take. That an argument is None was true on that side alone: one that
    is given comes from the other.
    """
    narrowed = {
        name: join(value, other[name])
        for name, value in taken.items()
        if is_soft_none(value) and before.get(name) is not value and name in other
    }
    return {**taken, **narrowed} if narrowed else taken


def _moved(value: cst.BaseExpression, target: cst.Attribute) -> bool:
    """`self.mask = self.mask.to(x.device)`: the attribute keeps the value it had."""
    path = path_of(target)
    if not path:
        return False
    while type(value) is cst.Call and type(value.func) is cst.Attribute and value.func.attr.value in _MOVES:
        value = value.func.value
    return path_of(value) == path


_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "contiguous"})


def _describe(value: Value) -> str:
    """The kind of a value, for rules about writes."""
    kinds = {type(v) for v in options(value)}
    if Tensor in kinds:
        return "tensor"
    if kinds <= {Const, Scalar, Flag}:
        consts = [v for v in options(value) if isinstance(v, Const)]
        if len(consts) == len(options(value)):
            return "none" if all(c.value is None for c in consts) else "constant"
        return "scalar"
    if Seq in kinds or Mapping in kinds:
        return "container"
    return "unknown" if kinds == {type(UNKNOWN)} else "object"


def _sized(value: Value) -> bool:
    """A size of an input, or a container of them."""
    if isinstance(value, Scalar):
        return value.origin == "size"
    if isinstance(value, Seq):
        return any(map(_sized, value.items if value.items is not None else [value.elem]))
    return isinstance(value, Either) and any(map(_sized, value.options))


def _stateful(value: Value) -> Value:
    """A value as the next call finds it: a number that calls rewrite is no constant."""
    if isinstance(value, Const):
        return Const(value.value, True, value.src)
    if isinstance(value, Scalar) and value.origin in ("unknown", "constant"):
        return Scalar(value.type, "state", value.src)
    return value


def _sure(iterable: Value) -> bool:
    """Whether the loop surely runs at least once."""
    if isinstance(iterable, Seq):
        return (
            bool(iterable.items)
            if iterable.items is not None
            else iterable.kind in ("modulelist", "sequential", "range")
        )
    return isinstance(iterable, Tensor)


def _layers(iterable: Value) -> bool:
    if isinstance(iterable, Seq) and iterable.of_modules:
        return True
    row = element(iterable) if isinstance(iterable, Seq) and iterable.items != [] else UNKNOWN
    return isinstance(row, Seq) and any(isinstance(v, Instance) and v.is_module for v in row.items or [])


def _imports_inside(node: cst.CSTNode) -> bool:
    return type(node) is cst.SimpleStatementLine and any(isinstance(s, (cst.Import, cst.ImportFrom)) for s in node.body)


def _captured(pattern: cst.CSTNode) -> list[str]:
    """Names that a match pattern binds."""
    names: list[str] = []
    todo = [pattern]
    while todo:
        node = todo.pop()
        if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            names.append(node.name.value)
        todo.extend(children(node))
    return names


_HANDLERS: dict[type, Any] = {
    cst.SimpleStatementLine: Statements.line,
    cst.Expr: Statements.expression,
    cst.Assign: Statements.assign,
    cst.AnnAssign: Statements.annotated_assign,
    cst.AugAssign: Statements.augmented,
    cst.Del: Statements.delete,
    cst.Assert: Statements.asserted,
    cst.Raise: Statements.raised,
    cst.Return: Statements.returned,
    cst.Break: Statements.broken,
    cst.Continue: Statements.continued,
    cst.Global: Statements.global_names,
    cst.Import: Statements.imported,
    cst.ImportFrom: Statements.imported,
    cst.FunctionDef: Statements.function,
    cst.ClassDef: Statements.klass,
    cst.If: Statements.if_,
    cst.For: Statements.for_,
    cst.While: Statements.while_,
    cst.Try: Statements.try_,
    cst.TryStar: Statements.try_,
    cst.With: Statements.with_,
    cst.Match: Statements.match,
}
