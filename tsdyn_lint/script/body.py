"""One function's statements, as the compiler emits them: scopes, branches, loops, assignments, returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from tsdyn_lint.resolve import Function
from tsdyn_lint.script import project_calls
from tsdyn_lint.script import types as t
from tsdyn_lint.script.annotations import Refused
from tsdyn_lint.script.compiler import Compiler
from tsdyn_lint.script.expressions import Expressions
from tsdyn_lint.script.problems import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.script.pyvalues import Ext, Inst, Seq
from tsdyn_lint.script.signatures import Compiled, is_static_forward
from tsdyn_lint.script.sugar import UNKNOWN, V, variable

_IN_PLACE = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.ModuloAssign: "%",
    cst.BitOrAssign: "|",
    cst.BitAndAssign: "&",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.PowerAssign: "**",
}
_CONTEXTS = frozenset(
    {
        "torch.no_grad",
        "torch.autograd.no_grad",
        "torch.autograd.profiler.record_function",
        "torch.profiler.record_function",
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.autocast",
        "torch.cpu.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.cuda.amp.autocast_mode.autocast",
        "torch.autograd.profiler.profile",
        "torch.jit.strict_fusion",
        "torch.cuda.stream",
        "torch.cuda.device",
        "torch.autograd.grad_mode.no_grad",
    }
)
_REFUSED_CONTEXTS = frozenset(
    {
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.inference_mode",
        "contextlib.nullcontext",
        "torch.device",
        "contextlib.suppress",
        "torch.autograd.enable_grad",
        "torch.autograd.set_grad_enabled",
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.random.fork_rng",
        "contextlib.ExitStack",
        "warnings.catch_warnings",
        "torch.nn.attention.sdpa_kernel",
        "torch.backends.cuda.sdp_kernel",
        "builtins.open",
        "threading.Lock",
        "torch.profiler.profile",
        "torch.autograd.grad_mode.enable_grad",
    }
)

Scope = dict[str, V]


class Body(Expressions):
    """Walks one function. `scopes[0]` are the function's own names; a branch, or a loop not unrolled, adds one."""

    def __init__(self, compiler: Compiler, compiled: Compiled, inst: Inst | None) -> None:
        super().__init__(compiler, compiled, inst)
        self.returned: t.Type = t.NOTHING
        self.declared: t.Type = t.NOTHING
        self.in_loop = 0
        self.unrolled = 0
        self.unsure = False

    def run(self, statements: Sequence[cst.CSTNode]) -> t.Type:
        """Checks the statements; the function's result type."""
        compiled = self.compiled
        self.declared = compiled.schema.result
        scope: Scope = {}
        node = self.function.node
        positional = [*node.params.posonly_params, *node.params.params]
        if positional and (not self.function.is_static or is_static_forward(self.function)):
            if self.inst is not None:
                scope[positional[0].name.value] = V(py=self.inst)
            elif self.function.cls is not None:
                scope[positional[0].name.value] = UNKNOWN
        defaults = {p.name.value: p.default for p in [*positional, *node.params.kwonly_params]}
        for arg in compiled.schema.args:
            if arg.name not in compiled.untyped:
                self.annotated[arg.name] = arg.type
            soft = defaults.get(arg.name) is not None
            scope[arg.name] = V(arg.type, soft=soft, origin=arg.name)
            default = defaults.get(arg.name)
            if arg.type is t.TENSOR and isinstance(default, cst.Name) and default.value == "None":
                self.none_parameters.add(arg.name)
        self.scopes = [scope]
        ended = self.block(statements)
        if not ended:
            self._fall_off()
        return (
            self.declared if self.declared is not t.NOTHING else t.NONE if self.returned is t.NOTHING else self.returned
        )

    def _fall_off(self) -> None:
        if self.declared is not t.NOTHING:
            if self.declared is not t.NONE and (self.returned is t.NOTHING or not t.accepts_none(self.declared)):
                node = self.function.node
                at = node.name if isinstance(node, cst.FunctionDef) else node
                self.compiler.report("fall-off", at, self.function, type=str(self.declared))
            return
        joined = t.unify(self.returned, t.NONE)
        self.returned = t.UNKNOWN if joined is None else joined

    # --- statements

    def block(self, statements: Sequence[cst.CSTNode]) -> bool:
        """Emits the statements; whether control cannot reach their end."""
        ended = False
        for statement in statements:
            kind = type(statement)
            if kind is cst.SimpleStatementLine:
                for small in statement.body:  # type: ignore[attr-defined]
                    handler = _STATEMENTS.get(type(small))
                    if handler is not None:
                        ended = bool(handler(self, small)) or ended
            else:
                handler = _STATEMENTS.get(kind)
                if handler is not None:
                    ended = bool(handler(self, statement)) or ended
            if ended:
                break
        return ended

    def _expr(self, node: cst.Expr) -> None:
        if isinstance(node.value, cst.Ellipsis):
            self.fail("statement", node, what="`...`")
        elif not isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
            self.expr(node.value)

    def _assign(self, node: cst.Assign) -> None:
        targets = node.targets
        if len(targets) == 1 and isinstance(targets[0].target, (cst.Tuple, cst.List)):
            self._unpack(targets[0].target, node.value, node)
            return
        hint = t.UNKNOWN
        if len(targets) == 1 and isinstance(targets[0].target, cst.Name):
            name = targets[0].target.value
            known = self._outer(name)
            hint = self.annotated.get(name) or (
                known.type if known is not None and known.type is not None else t.UNKNOWN
            )
        value = self.expr(node.value, hint)
        for target in targets:
            if isinstance(target.target, (cst.Tuple, cst.List)):
                self._spread(target.target, value, node)
            else:
                self.store(target.target, value, node)

    def _unpack(self, target: cst.Tuple | cst.List, value: cst.BaseExpression, node: cst.CSTNode) -> None:
        self._spread(target, self.expr(value), node)

    def _spread(self, target: cst.Tuple | cst.List, value: V, node: cst.CSTNode) -> None:
        elements = target.elements
        starred = [i for i, e in enumerate(elements) if isinstance(e, cst.StarredElement)]
        parts = self._parts(value, len(elements), bool(starred), node)
        if starred and parts is not None and len(parts) >= len(elements) - 1:
            at, extra = starred[0], len(parts) - len(elements) + 1
            rest = V(t.UNKNOWN)
            parts = [*parts[:at], rest, *parts[at + extra :]]
        if parts is not None and len(parts) != len(elements):
            more = len(parts) > len(elements)
            self.fail(
                "unpack",
                node,
                what="too many values" if more else "too few values",
                type=self.describe(value),
                count=str(len(elements)),
            )
            parts = None
        for number, element in enumerate(elements):
            part = parts[number] if parts is not None else V(t.UNKNOWN)
            if isinstance(element.value, (cst.Tuple, cst.List)):
                self._spread(element.value, part, node)
            else:
                self.store(element.value, part, node)

    def _parts(self, value: V, count: int, starred: bool, node: cst.CSTNode) -> list[V] | None:
        """The values that an unpacking gives, None where unknown (reported if it cannot be compiled)."""
        if value.items is not None:
            return value.items
        kind = value.type
        if kind is None:
            if isinstance(value.py, Inst):
                self.fail("unpack", node, what="not a tuple", type=self.describe(value), count=str(count))
            return None
        if kind is t.UNKNOWN:
            return None
        if kind.kind == "Tuple":
            return [V(a) for a in kind.args]
        if kind.kind == "List":
            if starred:
                self.fail("unsized", node, what="a starred target", type=str(kind))
                return None
            return [V(kind.args[0]) for _ in range(count)]
        self.fail("unpack", node, what="not a tuple", type=self.describe(value), count=str(count))
        return None

    def _ann_assign(self, node: cst.AnnAssign) -> None:
        hint: t.Type = t.UNKNOWN
        try:
            hint = self.compiler.annotations.read(node.annotation.annotation, self.function.module)
        except Refused as refusal:
            self.compiler.report(
                "annotation",
                node.annotation.annotation,
                self.function,
                reason=refusal.reason,
                name=self.source(node.target),
            )
        if isinstance(node.target, cst.Attribute):
            self.fail("statement", node, what="annotations of attributes outside of `__init__`")
        if node.value is None:
            return
        if hint.kind == "Interface" and isinstance(node.target, cst.Name):
            self.scopes[-1][node.target.value] = UNKNOWN  # also of a container of modules, indexed by a variable
            return
        value = self.expr(node.value, hint)
        given = self.type_of(value, node.value)
        if hint is not t.UNKNOWN and not t.converts(given, hint, True):
            self.fail("annotated-assign", node, name=self.source(node.target), type=str(hint), found=str(given))
        if isinstance(node.target, cst.Name):
            if self._outer(node.target.value) is not None:
                self.fail("redeclared", node, name=node.target.value)
            self.annotated[node.target.value] = hint
            self.scopes[-1][node.target.value] = V(hint, soft=value.soft) if hint is not t.UNKNOWN else variable(value)

    def _aug_assign(self, node: cst.AugAssign) -> None:
        op = _IN_PLACE.get(type(node.operator))
        target = node.target
        if isinstance(target, cst.Subscript):
            owner = self.expr(target.value)
            self.subscript_store(target, owner, self.expr(node.value), node, augmented=True)
            return
        old = self.expr(target)
        right = self.expr(node.value)
        if op is None:
            return
        old_type, right_type = self.type_of(old, target), self.type_of(right, node.value)
        if old_type is t.TENSOR:
            if right_type not in (t.TENSOR, t.UNKNOWN) and right_type not in t.NUMERIC and right_type is not t.BOOL:
                self.fail("operator", node, op=op + "=", left=str(old_type), right=str(right_type))
            result: V = V(t.TENSOR)
        elif old_type.kind == "List" and op == "+":
            if not t.converts(right_type, old_type, False):
                self.fail("operator", node, op="+=", left=str(old_type), right=str(right_type))
            return
        else:
            result = self.binary(op, old, right, old_type, right_type, node)
        self.store(target, result, node)

    def store(self, target: cst.CSTNode, value: V, node: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self._store_name(target.value, value, node)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._spread(target, value, node)
        elif isinstance(target, cst.Subscript):
            self.subscript_store(target, self.expr(target.value), value, node)
        elif isinstance(target, cst.Attribute):
            self._store_attribute(target, value, node)

    def _store_name(self, name: str, value: V, node: cst.CSTNode) -> None:
        outer = self._outer(name)
        if outer is not None and outer.error is None:
            outer_type, new_type = outer.type, value.type
            if outer_type is None:
                if outer.py is not None or outer.items is not None or outer.word:
                    old, new = self.describe(outer), self.describe(value)
                    self.fail("rebind", node, name=name, old=old, new=new, why="not first-class")
                    self.forgive(name)
                value = UNKNOWN
            elif new_type is None:
                if outer_type is not t.UNKNOWN:
                    self.fail(
                        "rebind", node, name=name, old=str(outer_type), new=self.describe(value), why="not first-class"
                    )
                    self.forgive(name)
                value = UNKNOWN
            elif not t.converts(new_type, outer_type, True):
                self.fail(
                    "rebind",
                    node,
                    CERTAIN if not (outer.soft or value.soft) else LIKELY,
                    name=name,
                    old=str(outer_type),
                    new=str(new_type),
                    why="",
                )
                self.forgive(name)
                value = UNKNOWN
            else:
                if new_type is t.TENSOR and outer_type in (t.INT, t.FLOAT, t.NUMBER):
                    # an int cannot be made of a tensor of floats; a float can, of a single element without grad
                    confidence = CERTAIN if outer_type is t.INT else POSSIBLE
                    self.fail("accumulator", node, confidence, name=name, type=str(outer_type))
                    self.forgive(name)  # Python's result is a tensor, and so is what the user means
                    value = UNKNOWN
                elif outer_type is not t.UNKNOWN and not t.is_subtype(new_type, outer_type):
                    value = V(outer_type, soft=value.soft)
        self.scopes[-1][name] = variable(value)

    def _outer(self, name: str) -> V | None:
        """The variable of that name in a scope around the innermost one, if that one does not hold it itself."""
        if name in self.scopes[-1]:
            for scope in self.scopes[:-1]:
                if name in scope:
                    return scope[name]
            return None
        for scope in reversed(self.scopes[:-1]):
            if name in scope:
                return scope[name]
        return None

    def _store_attribute(self, target: cst.Attribute, value: V, node: cst.CSTNode) -> None:
        owner = self.expr(target.value)
        name = target.attr.value
        if owner.type is t.TENSOR:
            self.fail("tensor-attribute-write", node, name=name)
            return
        if isinstance(owner.py, Ext) and owner.type is None:
            self.fail("global-attribute", node, name=self.source(target), type="module")
            return
        if not isinstance(owner.py, Inst):
            return
        inst = owner.py
        if value.type is None and not isinstance(value.py, Inst):
            value = UNKNOWN
        if name in inst.attrs or name in inst.maybe:
            known = V(t.UNKNOWN) if (inst, name) in self.compiler.spoiled else self.compiler.attribute(inst, name)
            if isinstance(known, tuple):
                cause, facts = known
                if cause == "untypable-attribute":
                    self.fail(cause, node, once=(self.place, inst.name, name), **facts)
                return
            if known.type is not None and value.type is not None:
                if not t.converts(value.type, known.type, True):
                    confidence = LIKELY if known.soft or value.soft else CERTAIN
                    self.spoil_attribute(inst, name)
                    old, new = str(known.type), str(value.type)
                    self.fail("attribute-type", node, confidence, name=name, old=old, new=new, cls=inst.name)
                elif value.type is t.TENSOR and known.type in (t.INT, t.FLOAT):
                    self.fail("accumulator", node, POSSIBLE, name=f"self.{name}", type=str(known.type))
            elif (
                known.py is not None
                and isinstance(known.py, Inst)
                and value.type is not None
                and value.type is not t.UNKNOWN
            ):
                self.spoil_attribute(inst, name)
                self.fail("attribute-type", node, name=name, old="a module", new=str(value.type), cls=inst.name)
            return
        if inst.open or inst.external:
            return
        if inst.cls is not None and self.compiler.program.class_member(inst.cls, name) is not None:
            return
        if name == "training":
            return
        self.spoil_attribute(inst, name)
        self.fail("new-attribute", node, once=(self.place, inst.name, name), name=name, cls=inst.name)

    def _return(self, node: cst.Return) -> bool:
        hint = self.declared if self.declared is not t.NOTHING else t.UNKNOWN
        value = self.expr(node.value, hint) if node.value is not None else V(t.NONE, const=None)
        kind = self.type_of(value, node.value or node)
        if self.declared is not t.NOTHING:
            if not t.converts(kind, self.declared, True):
                self.fail(
                    "return-annotation",
                    node,
                    LIKELY if value.soft else CERTAIN,
                    (self.function, kind),
                    type=str(self.declared),
                    found=str(kind),
                )
            return True
        if kind is t.UNKNOWN or self.returned is t.UNKNOWN:
            self.returned = t.UNKNOWN if self.returned is t.NOTHING or kind is t.UNKNOWN else self.returned
            return True
        joined = t.unify(self.returned, kind)
        if joined is None:
            self.fail("return-types", node, LIKELY if value.soft else CERTAIN, old=str(self.returned), new=str(kind))
            joined = t.UNKNOWN
        self.returned = joined
        return True

    def _raise(self, node: cst.Raise) -> bool:
        if isinstance(node.exc, cst.Call):
            self._message([arg.value for arg in node.exc.args])
        return True

    def _message(self, parts: Sequence[cst.BaseExpression]) -> None:
        """What is raised with an error: compiled, and no result depends on it."""
        self.raising = True
        for part in parts:
            self.expr(part)
        self.raising = False

    def _assert(self, node: cst.Assert) -> bool:
        truth, refine, _ = self.condition(node.test)
        if node.msg is not None and truth is not True:
            self._message([node.msg])
        self.apply(refine)
        return truth is False

    def _del(self, node: cst.Del) -> None:
        target = node.target
        targets = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        for one in targets:
            if isinstance(one, cst.Name):
                for scope in self.scopes:
                    scope.pop(one.value, None)
            elif isinstance(one, cst.Attribute):
                self.fail("statement", node, what="`del` of an attribute")
            elif isinstance(one, cst.Subscript) and isinstance(one.slice[0].slice, cst.Slice):
                self.fail("statement", node, what="`del` of a slice")

    def _jump(self, node: cst.CSTNode) -> bool:
        if self.unrolled and not self.in_loop:
            self.fail("unrolled-jump", node, word="break" if isinstance(node, cst.Break) else "continue")
        return True

    # --- branches

    def _if(self, node: cst.If) -> bool:
        self.undecided = False
        truth, then_refine, else_refine = self.condition(node.test)
        undecided, self.undecided = self.undecided, False
        orelse = node.orelse
        other: Sequence[cst.CSTNode] = (
            () if orelse is None else orelse.body.body if isinstance(orelse, cst.Else) else (orelse,)
        )
        if truth is not None:
            self.apply(then_refine if truth else else_refine)
            return self.block(node.body.body if truth else other)
        if undecided:
            return self._either(node.body.body, other)
        self.scopes.append({})
        self.apply(then_refine)
        then_ends = self.block(node.body.body)
        then_scope = self.scopes.pop()
        self.scopes.append({})
        self.apply(else_refine)
        else_ends = self.block(other)
        else_scope = self.scopes.pop()
        self._join(then_scope, else_scope, then_ends, else_ends, node)
        return then_ends and else_ends

    def _either(self, first: Sequence[cst.CSTNode], second: Sequence[cst.CSTNode]) -> bool:
        """Two paths of which the compiler takes one, and it is not known which: nothing is claimed of either."""
        least, self.compiler.least = self.compiler.least, POSSIBLE
        before = self.returned
        ends, scopes, returned = [], [], []
        for path in (first, second):
            self.returned = before
            self.scopes.append({})
            ends.append(self.block(path))
            scopes.append(self.scopes.pop())
            returned.append(self.returned)
        self.compiler.least = least
        self.returned = returned[0] if returned[0] is returned[1] else t.UNKNOWN
        for name in {**scopes[0], **scopes[1]}:
            a = scopes[0].get(name) or self.find(name) or UNKNOWN
            b = scopes[1].get(name) or self.find(name) or UNKNOWN
            joined = t.unify(a.type, b.type) if a.type is not None and b.type is not None else None
            self.scopes[-1][name] = V(joined if joined is not None and not (a.error or b.error) else t.UNKNOWN)
        return all(ends)

    def _join(self, then: Scope, other: Scope, then_ends: bool, else_ends: bool, node: cst.If) -> None:
        target = self.scopes[-1]
        if then_ends and else_ends:
            return
        if then_ends or else_ends:
            for name, value in (other if then_ends else then).items():
                target[name] = value
            return
        for name in {**then, **other}:
            a = then.get(name) or self.find(name)
            b = other.get(name) or self.find(name)
            if a is None or b is None:
                where = "true" if a is None else "false"
                target[name] = V(t.UNKNOWN, error=("undefined", {"name": name, "branch": where, "at": node.test}))
                continue
            if a.error or b.error:
                target[name] = a if a.error else b
                continue
            target[name] = self._merge(name, a, b, node)

    def _merge(self, name: str, a: V, b: V, node: cst.If) -> V:
        if a is b:
            return a
        if a.type is None or b.type is None:
            if t.UNKNOWN in (a.type, b.type):
                return V(t.UNKNOWN)
            facts = {"name": name, "then": self.describe(a), "other": self.describe(b)}
            return V(t.UNKNOWN, error=("branch-values", facts))
        joined = t.unify(a.type, b.type)
        hint = self.annotated.get(name)
        if joined is None and hint is not None:
            joined = hint
        if joined is None:
            confidence = LIKELY if a.soft or b.soft else CERTAIN
            return V(
                t.UNKNOWN,
                error=(
                    "branch-types",
                    {
                        "name": name,
                        "then": str(a.type),
                        "other": str(b.type),
                        "confidence": confidence,
                        "at": node.test,
                    },
                ),
            )
        return V(joined, soft=a.soft or b.soft)

    # --- loops

    def _for(self, node: cst.For) -> bool:
        iterable = self.expr(node.iter)
        items = self.static_items(iterable)
        if items is not None:
            return self._unroll(node, items)
        element = self.element(iterable, node.iter)
        if self._unsized_modules(iterable):
            element = UNKNOWN
        self._loop(node.body.body, lambda: self.store(node.target, element, node))
        return False

    def _unsized_modules(self, value: V) -> bool:
        return isinstance(value.py, Inst)

    def _unroll(self, node: cst.For, items: list[V]) -> bool:
        ended = False
        saved, self.in_loop = self.in_loop, 0
        self.unrolled += 1
        for item in items[:8]:
            self.store(node.target, item, node)
            ended = self.block(node.body.body)
            if ended:
                break
        if not items:
            pass
        self.unrolled -= 1
        self.in_loop = saved
        return False

    def _loop(self, statements: Sequence[cst.CSTNode], start: Callable[[], None], refine: Any = ()) -> None:
        self.scopes.append({})
        self.in_loop += 1
        start()
        self.apply(refine)
        self.block(statements)
        self.in_loop -= 1
        inner = self.scopes.pop()
        target = self.scopes[-1]
        for name, value in inner.items():
            known = self.find(name)
            if known is None:
                target[name] = V(t.UNKNOWN, error=("loop-only", {"name": name}))
            elif value.type is not None and known.type is not None and not known.error:
                unknown = t.UNKNOWN in (known.type, value.type)
                target[name] = V(t.UNKNOWN if unknown else known.type, soft=known.soft)

    def _while(self, node: cst.While) -> bool:
        truth, refine, _ = self.condition(node.test, loop=True)
        self._loop(node.body.body, lambda: None, refine)
        return False

    def _with(self, node: cst.With) -> bool:
        for item in node.items:
            self._context(item, node)
            if item.asname is not None and isinstance(item.asname.name, cst.Name):
                self.scopes[-1][item.asname.name.value] = V(t.UNKNOWN)
        return self.block(node.body.body)

    def _context(self, item: cst.WithItem, node: cst.With) -> None:
        expression = item.item
        callee = expression.func if isinstance(expression, cst.Call) else expression
        if isinstance(expression, cst.Call):
            made = self.compiler.program.resolve(callee, self.function.module)
            if isinstance(made, Function) and "contextlib.contextmanager" in made.decorator_names:
                self.fail("context", node, name=made.name)
                return
        dotted = self.function.module.dotted(callee)
        if dotted in _CONTEXTS:
            return
        builtin = f"builtins.{dotted}"
        if dotted in _REFUSED_CONTEXTS or builtin in _REFUSED_CONTEXTS:
            self.fail("context", node, name=dotted)
            return
        if dotted is not None and (dotted.startswith("torch.") or dotted.startswith("contextlib.")):
            return
        value = self.expr(expression)
        if value.word == "global" or value.type is not None and value.type is not t.UNKNOWN:
            self.fail("context", node, name=self.source(expression))

    def call_function(
        self, function: Function, args: list[V], keywords: dict[str, V], node: cst.CSTNode, inst: Inst | None
    ) -> V:
        return project_calls.call_function(self, function, args, keywords, node, inst)

    def _pass(self, node: cst.CSTNode) -> None:
        return None


_STATEMENTS: dict[type, Callable[[Body, Any], bool | None]] = {
    cst.Expr: Body._expr,
    cst.Assign: Body._assign,
    cst.AnnAssign: Body._ann_assign,
    cst.AugAssign: Body._aug_assign,
    cst.Return: Body._return,
    cst.Raise: Body._raise,
    cst.Assert: Body._assert,
    cst.Del: Body._del,
    cst.Break: Body._jump,
    cst.Continue: Body._jump,
    cst.If: Body._if,
    cst.For: Body._for,
    cst.While: Body._while,
    cst.With: Body._with,
    cst.Pass: Body._pass,
}
__all__ = ["Body", "Seq"]
