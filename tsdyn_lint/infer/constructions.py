"""The module instances that a file captures -> what their constructors are given, where nothing comes in between.

`torch.compile(Net(4).eval())`, or `net = Net(4)` and `torch.compile(net)` in one scope. Only what is written in the
call itself counts: what a name holds by then, only a run knows, and the defaults of the class have to do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.captures import captures, dotted_ast
from tsdyn_lint.resolve import Module
from tsdyn_lint.syntax import COMPREHENSIONS
from tsdyn_lint.usage import CAPTURES

_KEEPING = frozenset(
    "eval train to cuda cpu xpu half float double bfloat16 type requires_grad_ share_memory compile".split()
)
"""Methods of `nn.Module` that return the module and leave what its constructor set."""
READING = _KEEPING | frozenset(
    "parameters named_parameters buffers named_buffers state_dict load_state_dict zero_grad".split()
)
"""Methods after which the module is as it was, but for its parameters."""
_MOST = 8
"""Instances of a class in one file: each is walked by itself, and tests may capture many that differ little."""
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)
_SETTERS = frozenset({"setattr", "delattr", "object"})
"""The last names of functions that set attributes of their first argument, of `mock.patch` too."""


@dataclass(frozen=True)
class Construction:
    """What a captured instance is made with, None for what only a run knows, and the engines that capture it.

    `evaluated`: it is put in eval mode, and never in train mode.
    """

    args: tuple[ast.expr | None, ...]
    keywords: tuple[tuple[str, ast.expr | None], ...]
    engines: frozenset[Engine]
    evaluated: bool


_FILES: WeakKeyDictionary[Module, _File] = WeakKeyDictionary()


def constructions(module: Module, name: str) -> list[Construction | None]:
    """How the captured instances of a class of the module level are made; None for those of which that is not known.

    An engine that captures none of the known ones may be given any.
    """
    file = _FILES.get(module)
    if file is None:
        file = _FILES[module] = _File(module)
    found: dict[tuple[str, bool], ast.Call] = {}
    engines: dict[tuple[str, bool], frozenset[Engine]] = {}
    for made, asked in file.makers:
        if made.name == name:
            key = (ast.dump(made.call), made.evaluated)
            found[key] = made.call
            engines[key] = engines.get(key, frozenset()) | asked
    if not found or len(found) > _MOST:
        return [None]
    others = frozenset(Engine).difference(*engines.values())
    known = [
        Construction(
            tuple(map(file.plain, call.args)),
            tuple((keyword.arg or "", file.plain(keyword.value)) for keyword in call.keywords),
            engines[key] | others,
            key[1],
        )
        for key, call in found.items()
    ]
    return [*known, None] if file.is_open else [*known]


@dataclass(frozen=True)
class _Maker:
    """The name of a class of the module level, and a call of it."""

    name: str
    call: ast.Call
    evaluated: bool


class _File:
    """Who binds which name where in a file."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._nodes = module.tree.nodes
        self._top = self._nodes[0]
        self._definitions: dict[str, ast.AST | None] = {}

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def _captured(self) -> list[tuple[_Maker | None, frozenset[Engine]]]:
        """What makes each thing that calls capture, functions left out, with the engines of the capture."""
        targets = [(one.target, one.engines) for one in captures(self._module) if one.target is not None]
        return [(self._maker(target), engines) for target, engines in targets if not self._is_function(target)]

    @cached_property
    def makers(self) -> list[tuple[_Maker, frozenset[Engine]]]:
        """What makes the captured instances of the file's classes."""
        return [(made, engines) for made, engines in self._captured if made is not None]

    @property
    def is_open(self) -> bool:
        """Whether something is captured that may be anything."""
        return len(self.makers) < len(self._captured)

    def _is_function(self, target: ast.expr) -> bool:
        node, _ = _unwrapped(target)
        return isinstance(node, ast.Name) and isinstance(self._definition(node), ast.FunctionDef)

    def _maker(self, target: ast.expr) -> _Maker | None:
        """What makes the instance that is captured, None where that may be anything."""
        node, modes = _unwrapped(target)
        if isinstance(node, ast.Name):
            value = self._only_value(node)
            if value is None:
                return None
            modes |= self._methods_of(node)
            node, own = _unwrapped(value)
            modes |= own
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        made = self._definition(node.func)
        is_plain = isinstance(made, ast.ClassDef) and not made.decorator_list and not made.keywords
        opens = any(isinstance(arg, ast.Starred) for arg in node.args) or any(not one.arg for one in node.keywords)
        return _Maker(node.func.id, node, "eval" in modes and "train" not in modes) if is_plain and not opens else None

    def plain(self, node: ast.expr) -> ast.expr | None:
        """The argument if it says by itself what it is: a constant, a function, an instance made of such. Else None."""
        return node if self._is_plain(node) else None

    def _is_plain(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
        if isinstance(node, ast.Name):
            found = self._definition(node)
            return isinstance(found, ast.FunctionDef) and not found.decorator_list
        if not isinstance(node, ast.Call) or not all(keyword.arg for keyword in node.keywords):
            return False
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        is_class = isinstance(root, ast.Name) and isinstance(self._definition(root), (ast.ClassDef, ast.alias))
        return is_class and all(map(self._is_plain, (*node.args, *(keyword.value for keyword in node.keywords))))

    def _only_value(self, name: ast.Name) -> ast.expr | None:
        """What a variable is bound to in the scope that captures it, if nothing else is and nothing changes it."""
        scope = self._scope(name)
        values = []
        for node in self._bindings.get((scope, name.id), ()):
            assignment = self._parents[node]
            if not isinstance(assignment, (ast.Assign, ast.AnnAssign)) or assignment.value is None:
                return None
            if not self._captures_itself(assignment.value, name.id):
                values.append(assignment.value)
        uses = [one for one in self._uses.get(name.id, ()) if scope is self._top or scope in self._scopes(one)]
        if len(values) != 1 or values[0].lineno > name.lineno or name.id in self._declared:
            return None
        return values[0] if all(map(self._only_reads, uses)) else None

    def _methods_of(self, name: ast.Name) -> set[str]:
        """The methods that are called of a variable, wherever it is used."""
        parents = (self._parents[use] for use in self._uses[name.id])
        return {parent.attr for parent in parents if isinstance(parent, ast.Attribute)}

    def _only_reads(self, use: ast.Name) -> bool:
        """Whether a use of an instance leaves it as it was: it is called, captured, or read by a method."""
        parent = self._parents[use]
        if isinstance(parent, ast.Call):
            return parent.func is use or self._is_capture(parent)
        if not isinstance(parent, ast.Attribute) or parent.attr not in READING:
            return False
        call = self._parents[parent]
        return isinstance(call, ast.Call) and call.func is parent

    def _captures_itself(self, value: ast.expr, name: str) -> bool:
        """Whether a variable is bound to its own capture: `net = torch.compile(net)`."""
        if not isinstance(value, ast.Call) or not self._is_capture(value) or not value.args:
            return False
        target, _ = _unwrapped(value.args[0])
        return isinstance(target, ast.Name) and target.id == name

    def _is_capture(self, node: ast.Call) -> bool:
        return dotted_ast(node.func, self._module) in CAPTURES

    def _definition(self, name: ast.Name) -> ast.AST | None:
        """The only statement of the module level that binds a name, if no scope around the name binds it as well and
        nothing sets an attribute of what it stands for.
        """
        if any((scope, name.id) in self._bindings for scope in self._scopes(name)):
            return None
        if name.id not in self._definitions:
            bound = self._bindings.get((self._top, name.id), ())
            changed = name.id in self._declared or any(map(self._changes, self._uses.get(name.id, ())))
            self._definitions[name.id] = bound[0] if len(bound) == 1 and not changed else None
        return self._definitions[name.id]

    def _changes(self, use: ast.Name) -> bool:
        parent = self._parents[use]
        if isinstance(parent, ast.Attribute):
            return not isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Call) and parent.args[:1] == [use]:
            called = parent.func
            return getattr(called, "attr", getattr(called, "id", "")) in _SETTERS
        return False

    def _scope(self, node: ast.AST) -> ast.AST:
        node = self._parents.get(node, node)
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node

    def _scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """The scopes around a node, that of the module left out."""
        scope = self._scope(node)
        while scope is not self._top:
            yield scope
            scope = self._scope(scope)

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list[ast.AST]]:
        """For each name in each scope, what binds it there."""
        found: dict[tuple[ast.AST, str], list[ast.AST]] = {}
        for node in self._nodes:
            for name in _bound(node):
                scope = self._scope(node)
                while isinstance(scope, COMPREHENSIONS) and isinstance(self._parents[node], ast.NamedExpr):
                    scope = self._scope(scope)
                found.setdefault((scope, name), []).append(node)
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


def _unwrapped(node: ast.expr) -> tuple[ast.expr, set[str]]:
    """`Net(4)` of `Net(4).eval().cuda()`, and the methods around it."""
    methods: set[str] = set()
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
        methods.add(node.func.attr)
        node = node.func.value
    return node, methods


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
