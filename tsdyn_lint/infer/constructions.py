"""The module instances that a file captures -> the calls that make them, where nothing changes them in between.

`torch.compile(Net(4).eval())`, or `net = Net(4)` and `torch.compile(net)` in one scope. Where a name may stand for
something else by then, or the instance may be another, nothing is said: the defaults of the class then have to do.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.captures import captures, dotted_ast
from tsdyn_lint.resolve import Module
from tsdyn_lint.usage import CAPTURES

_MOST = 8
"""Instances of a class in one file: each is walked by itself, and tests may capture many that differ little."""
_SAME = frozenset(
    "eval train to cuda cpu xpu half float double bfloat16 type requires_grad_ share_memory compile".split()
)
"""Methods of `nn.Module` that return the module and leave what its constructor set."""
_READERS = _SAME | frozenset(
    "parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict zero_grad".split()
)
_SCOPES = (
    *(ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp),
)


@dataclass(frozen=True)
class Construction:
    """A call that makes what is captured, and for which engines; `unknown`: the names in it that only a run knows."""

    call: ast.Call
    engines: frozenset[Engine]
    unknown: frozenset[str]


_FILES: WeakKeyDictionary[Module, _File] = WeakKeyDictionary()


def constructions(module: Module, name: str) -> list[Construction]:
    """The calls that make the captured instances of a class of the module level, those that are alike once. An engine
    that captures none of them may be given any.
    """
    calls: dict[str, ast.Call] = {}
    engines: dict[str, frozenset[Engine]] = {}
    targets = [(one.target, one.engines) for one in captures(module) if one.target is not None]
    if not targets:
        return []
    file = _FILES.get(module)
    if file is None:
        file = _FILES[module] = _File(module)
    for target, asked in targets:
        call = file.maker(target)
        if call is not None and file.makes(call, name):
            text = ast.dump(call)
            if text in calls or len(calls) < _MOST:
                calls[text] = call
                engines[text] = engines.get(text, frozenset()) | asked
    others = frozenset(Engine).difference(*engines.values())
    return [Construction(call, engines[text] | others, file.unknown(call)) for text, call in calls.items()]


class _File:
    """Who binds which name where in a file."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._nodes = module.tree.nodes
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}

    def maker(self, target: ast.expr) -> ast.Call | None:
        """The call that makes what is captured: itself, or the only one that its variable is bound to."""
        target = _unwrapped(target)
        if isinstance(target, ast.Name):
            scope = self._scope(target)
            bound = [node for node in self._bindings.get((scope, target.id), ()) if not self._captures(node)]
            if len(bound) != 1 or not self._is_only_used(target.id, scope):
                return None
            assignment = self._parents[bound[0]]
            if not isinstance(assignment, (ast.Assign, ast.AnnAssign)) or assignment.value is None:
                return None
            target = _unwrapped(assignment.value)
        return target if isinstance(target, ast.Call) else None

    def makes(self, call: ast.Call, name: str) -> bool:
        """Whether a call is one of the class of that name at module level."""
        if not isinstance(call.func, ast.Name) or call.func.id != name or not self._is_known(call.func):
            return False
        return isinstance(self._bindings[self._module_scope, name][0], ast.ClassDef)

    def unknown(self, call: ast.Call) -> frozenset[str]:
        """The names in the arguments of a call that may stand for something else than the module level says."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        names = [node for value in given for node in ast.walk(value) if isinstance(node, ast.Name)]
        return frozenset(node.id for node in names if not self._is_known(node))

    @cached_property
    def _module_scope(self) -> ast.AST:
        return self._nodes[0]

    def _scope(self, node: ast.AST) -> ast.AST:
        node = self._parents.get(node, node)
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node

    def _scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """The scopes around a node, that of the module left out."""
        scope = self._scope(node)
        while scope is not self._module_scope:
            yield scope
            scope = self._scope(scope)

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list[ast.AST]]:
        """For each name in each scope, what binds it there."""
        found: dict[tuple[ast.AST, str], list[ast.AST]] = {}
        for node in self._nodes:
            for name in _bound(node):
                found.setdefault((self._scope(node), name), []).append(node)
        return found

    @cached_property
    def _uses(self) -> dict[str, list[ast.Name]]:
        """Where each name is read."""
        found: dict[str, list[ast.Name]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def _declared(self) -> frozenset[str]:
        """The names that functions bind outside of themselves."""
        outer = [node.names for node in self._nodes if isinstance(node, (ast.Global, ast.Nonlocal))]
        return frozenset(name for names in outer for name in names)

    def _is_known(self, node: ast.Name) -> bool:
        """Whether a name stands for what the module level binds it to once, and for nothing that is changed later."""
        name = node.id
        if name in self._declared or any((scope, name) in self._bindings for scope in self._scopes(node)):
            return False
        bound = self._bindings.get((self._module_scope, name), ())
        if not bound:
            return hasattr(builtins, name)
        if len(bound) > 1:
            return False
        if isinstance(bound[0], ast.Name):
            assignment = self._parents[bound[0]]
            block = self._parents.get(assignment)
            if not isinstance(assignment, (ast.Assign, ast.AnnAssign)) or not isinstance(block, (ast.Module, ast.If)):
                return False
        is_variable = isinstance(bound[0], ast.Name)
        return not any(self._changes(use, is_variable) for use in self._uses.get(name, ()))

    def _changes(self, use: ast.Name, is_variable: bool) -> bool:
        """Whether a use may change what is used: it sets something of it, or calls a method of a variable's value."""
        top: ast.AST = use
        parent = self._parents[top]
        while isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is top:
            top, parent = parent, self._parents[parent]
        if isinstance(parent, ast.Call):
            if top is use and dotted_ast(parent.func, self._module) in ("setattr", "delattr"):
                return use in parent.args[:1]
            if parent.func is top and top is not use and is_variable:
                return True
        return not isinstance(getattr(top, "ctx", None), ast.Load)

    def _is_only_used(self, name: str, scope: ast.AST) -> bool:
        """Whether an instance is only called, captured and read from where it is bound, so that it stays as it was."""
        if name in self._declared:
            return False
        uses = [use for use in self._uses.get(name, ()) if scope is self._module_scope or scope in self._scopes(use)]
        return all(map(self._only_reads, uses))

    def _only_reads(self, use: ast.Name) -> bool:
        parent = self._parents[use]
        if isinstance(parent, ast.Call):
            return parent.func is use or self._is_capture(parent)
        if not isinstance(parent, ast.Attribute) or parent.attr not in _READERS:
            return False
        call = self._parents[parent]
        return isinstance(call, ast.Call) and call.func is parent

    def _captures(self, node: ast.AST) -> bool:
        """Whether a name is bound to what a capture returns: `net = torch.compile(net)`."""
        assignment = self._parents[node]
        return isinstance(assignment, ast.Assign) and self._is_capture(assignment.value)

    def _is_capture(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and dotted_ast(node.func, self._module) in CAPTURES


def _unwrapped(node: ast.expr) -> ast.expr:
    """`Net(4)` of `Net(4).eval().cuda()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds in the scope around it."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
