"""A module's skeleton -> its symbols: imports, functions, classes with their members, assigned names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst

from tsdyn_lint.parse import Deferred, ParseFailure, Tree
from tsdyn_lint.resolve.checking import is_a_check
from tsdyn_lint.resolve.documented import comment_types, docstring_types
from tsdyn_lint.syntax import nodes_of


@dataclass(frozen=True)
class Imported:
    """A name bound by an import: the absolute dotted name of what it stands for."""

    dotted: str


@dataclass
class Assigned:
    """A name bound by assignment: the expressions it may hold, in source order, and its annotation."""

    module: Module
    values: list[cst.BaseExpression] = field(default_factory=list)
    annotation: cst.BaseExpression | None = None


@dataclass(eq=False)
class Function:
    """A function or method. `cls` is the class it is defined in, `outer` the function it is nested in."""

    name: str
    node: cst.FunctionDef | cst.Lambda
    module: Module
    cls: Class | None = None
    outer: Function | None = None

    @cached_property
    def qualname(self) -> str:
        """Dotted name inside the module, as Python's `__qualname__` without `<locals>`."""
        around = self.cls.qualname if self.cls else self.outer.qualname if self.outer else ""
        return f"{around}.{self.name}" if around else self.name

    @cached_property
    def decorators(self) -> tuple[cst.BaseExpression, ...]:
        if isinstance(self.node, cst.Lambda):
            return ()
        return tuple(d.decorator for d in self.node.decorators)

    @cached_property
    def decorator_names(self) -> frozenset[str]:
        """Dotted names of the decorators (calls by what they call), resolved through the module's imports."""
        return frozenset(
            filter(None, (self.module.dotted(d.func if isinstance(d, cst.Call) else d) for d in self.decorators))
        )

    @cached_property
    def body(self) -> Sequence[cst.CSTNode]:
        """Its statements, made on first use; a lambda has none."""
        return () if isinstance(self.node, cst.Lambda) else self.module.tree.body(self.node)

    @cached_property
    def is_a_check(self) -> bool:
        """Whether all that a call of it does is to raise or not."""
        return is_a_check(self.body)

    @cached_property
    def syntax(self) -> ast.stmt | None:
        """The function as `ast` has it; its body is not parsed for that."""
        return None if isinstance(self.node, cst.Lambda) else self.module.tree.syntax_of(self.node)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its statements as `ast` has them."""
        return [inner for statement in getattr(self.syntax, "body", ()) for inner in nodes_of(statement)]

    @cached_property
    def type_comment(self) -> str | None:
        """What follows `# type:` under the header."""
        return None if isinstance(self.node, cst.Lambda) else self.module.tree.places.type_comment(self.node)

    @cached_property
    def documented(self) -> Mapping[str, cst.BaseExpression]:
        """Types of parameters that are no annotations: those of the type comment, else what the docstring says."""
        names = [p.name.value for p in (*self.node.params.posonly_params, *self.node.params.params)]
        kinds = comment_types(self.type_comment) if self.type_comment is not None else ()
        if kinds and len(kinds) in (len(names), len(names) - 1):
            return dict(zip(names[len(names) - len(kinds) :], kinds, strict=True))
        if not isinstance(self.syntax, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return {}
        return dict(docstring_types(ast.get_docstring(self.syntax) or ""))

    @cached_property
    def is_static(self) -> bool:
        return "staticmethod" in self.decorator_names

    @cached_property
    def is_class_method(self) -> bool:
        return "classmethod" in self.decorator_names

    @cached_property
    def is_property(self) -> bool:
        names = self.decorator_names
        return bool(names & {"property", "functools.cached_property", "torch.utils._contextlib.classproperty"}) or any(
            n.endswith("cached_property") for n in names
        )


@dataclass(eq=False)
class Class:
    """A class statement with its own members; bases are resolved by `Program.mro`."""

    name: str
    node: cst.ClassDef
    module: Module
    outer: Class | None = None
    methods: Methods = field(init=False)
    assigned: dict[str, Assigned] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.methods = Methods(self)

    @cached_property
    def qualname(self) -> str:
        return f"{self.outer.qualname}.{self.name}" if self.outer else self.name

    @cached_property
    def bases(self) -> tuple[cst.BaseExpression, ...]:
        return tuple(arg.value for arg in self.node.bases if not arg.star)


class Methods(Mapping[str, Function]):
    """The functions of a class by name, each parsed when it is looked up."""

    def __init__(self, cls: Class) -> None:
        self._cls = cls
        self._listed: dict[str, list[Function | Deferred]] = {}
        """Each name's definitions in order."""
        self._parsed: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        found = self._parsed.get(name)
        if found is None:
            listed = self._listed[name][-1]
            found = self._parsed[name] = listed if isinstance(listed, Function) else self._parse(name, listed)
        return found

    def _parse(self, name: str, deferred: Deferred) -> Function:
        module = self._cls.module
        return Function(name, module.tree.definition(deferred), module, self._cls)

    def __contains__(self, name: object) -> bool:
        return name in self._listed

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def syntax(self, name: str) -> ast.stmt | None:
        """A function as `ast` has it; nothing is parsed for that."""
        return self._syntax(self._listed[name][-1])

    def hidden(self, name: str) -> list[ast.stmt | None]:
        """The definitions that a later one of the same name hides: its overloads, if they are that."""
        return list(map(self._syntax, self._listed[name][:-1]))

    def parsed(self) -> Iterable[Function]:
        """The functions that were looked up."""
        return self._parsed.values()

    def add(self, name: str, function: Function | Deferred) -> None:
        self._listed.setdefault(name, []).append(function)

    def _syntax(self, listed: Function | Deferred) -> ast.stmt | None:
        return listed.syntax


Symbol = Imported | Assigned | Function | Class


class Symbols:
    """The names of a module. A definition is parsed when its name is first looked up."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[str, Symbol] = {}
        self._waiting: dict[str, list[Deferred]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._waiting

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._waiting})

    def get(self, name: str) -> Symbol | None:
        waiting = self._waiting.pop(name, ())
        try:
            for deferred in waiting:
                self._module.collect(deferred)
        except ParseFailure:
            self._waiting[name] = list(waiting)  # whoever asks next is told as well
            raise
        return self._known.get(name)

    def imported(self, name: str) -> str | None:
        """What an import binds the name to; asking parses no definition."""
        symbol = None if name in self._waiting else self._known.get(name)
        return symbol.dotted if isinstance(symbol, Imported) else None

    def defer(self, name: str, deferred: Deferred) -> None:
        """`name` is bound by a statement that the skeleton left out."""
        self._waiting.setdefault(name, []).append(deferred)

    def set(self, name: str, symbol: Symbol) -> None:
        self._known[name] = symbol


@dataclass(eq=False)
class Module:
    """One file of the program. `name` is its dotted import name; `is_package` for an `__init__.py`."""

    name: str
    path: Path
    tree: Tree
    is_package: bool
    stars: list[str] = field(default_factory=list)
    """Modules imported by `from m import *`, absolute dotted names."""

    def __post_init__(self) -> None:
        self.symbols = Symbols(self)
        self._definitions: dict[cst.CSTNode, Class | Function] = {}
        _Collector(self).statements(self.tree.statements, None)

    def collect(self, deferred: Deferred) -> None:
        """Takes the definition that the skeleton left out."""
        node = self.tree.definition(deferred)
        if node not in self._definitions:
            _Collector(self).statements([node], None)

    def define(self, symbol: Class | Function) -> None:
        """A class or function of the module level; a later definition of the name hides it, no more."""
        self._definitions[symbol.node] = symbol
        self.symbols.set(symbol.name, symbol)

    def _all(self, kind: str) -> list[Class | Function]:
        for deferred in self.tree.deferred:
            if deferred.kind == kind:
                self.symbols.get(deferred.names[0])
        return sorted(self._definitions.values(), key=lambda symbol: self.tree.places.span(symbol.node)[0])

    def release(self) -> None:
        """Takes the module apart, with all that is defined in it: nothing may ask it any more."""
        todo: list[Class | Function] = list(self._definitions.values())
        while todo:
            definition = todo.pop()
            if isinstance(definition, Class):
                todo += [*definition.classes.values(), *definition.methods.parsed()]
            vars(definition).clear()
        vars(self).clear()

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def classes(self) -> list[Class]:
        """All classes of the file that are not inside functions, outermost first."""
        found: list[Class] = []
        todo = [s for s in self._all("class") if isinstance(s, Class)]
        while todo:
            cls = todo.pop(0)
            found.append(cls)
            todo = [*cls.classes.values(), *todo]
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """All functions of the module level; parses the header of each."""
        return [s for s in self._all("function") if isinstance(s, Function)]

    def dotted(self, node: cst.CSTNode) -> str | None:
        """`a.b.c` as written -> the absolute dotted name through this module's imports; None for other expressions."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.append(node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name):
            return None
        name = node.value
        head = self.symbols.imported(name) or (f"{self.name}.{name}" if name in self.symbols else name)
        return ".".join([head, *reversed(parts)])


class _Collector:
    """Fills a Module from the statements of its module level and class bodies in one tree."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def statements(self, body: Sequence[cst.CSTNode | Deferred], cls: Class | None) -> None:
        for statement in body:
            if isinstance(statement, Deferred):
                if cls is not None:
                    self.method(statement, cls)
                else:
                    for name in statement.names:
                        self.module.symbols.defer(name, statement)
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.small(small, cls)
            elif isinstance(statement, cst.FunctionDef):
                self.function(statement, cls)
            elif isinstance(statement, cst.ClassDef):
                self.klass(statement, cls)
            else:
                for block in _blocks(statement):
                    self.statements(block, cls)

    def function(self, node: cst.FunctionDef, cls: Class | None) -> None:
        function = Function(node.name.value, node, self.module, cls)
        if cls is None:
            self.module.define(function)
            return
        # a property's setter and deleter must not hide its getter
        if any(isinstance(d, cst.Attribute) and d.attr.value in ("setter", "deleter") for d in function.decorators):
            return
        cls.methods.add(function.name, function)

    def method(self, deferred: Deferred, cls: Class) -> None:
        decorators = getattr(deferred.syntax, "decorator_list", ())
        if not any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in decorators):
            cls.methods.add(deferred.names[0], deferred)

    def klass(self, node: cst.ClassDef, outer: Class | None) -> None:
        cls = Class(node.name.value, node, self.module, outer)
        if outer is None:
            self.module.define(cls)
        else:
            outer.classes[cls.name] = cls
        self.statements(node.body.body, cls)

    def small(self, node: cst.CSTNode, cls: Class | None) -> None:
        kind = type(node)
        if kind is cst.Assign:
            for target in node.targets:  # type: ignore[attr-defined]
                self.assign(target.target, node.value, cls)  # type: ignore[attr-defined]
        elif kind is cst.AnnAssign and isinstance(node.target, cst.Name):  # type: ignore[attr-defined]
            slot = self.slot(node.target.value, cls)  # type: ignore[attr-defined]
            slot.annotation = node.annotation.annotation  # type: ignore[attr-defined]
            if node.value is not None:  # type: ignore[attr-defined]
                slot.values.append(node.value)  # type: ignore[attr-defined]
        elif cls is None and isinstance(node, (cst.Import, cst.ImportFrom)):
            if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
                self.module.stars.append(import_base(node, self.module))
            for name, dotted in imported_names(node, self.module):
                self.bind(name, dotted)

    def assign(self, target: cst.BaseExpression, value: cst.BaseExpression, cls: Class | None) -> None:
        if isinstance(target, cst.Name):
            self.slot(target.value, cls).values.append(value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            same = isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements)
            for index, element in enumerate(target.elements):
                if isinstance(element.value, cst.Name):
                    slot = self.slot(element.value.value, cls)
                    if same:
                        slot.values.append(value.elements[index].value)  # type: ignore[attr-defined]

    def slot(self, name: str, cls: Class | None) -> Assigned:
        if cls is not None:
            return cls.assigned.setdefault(name, Assigned(self.module))
        known = self.module.symbols.get(name)
        if isinstance(known, Assigned):
            return known
        found = Assigned(self.module)
        if not isinstance(known, (Function, Class)):  # `f = decorate(f)`: the definition says more than the call
            self.module.symbols.set(name, found)
        return found

    def bind(self, name: str, dotted: str) -> None:
        # the first import wins over the fallbacks in `except ImportError:`
        if not isinstance(self.module.symbols.get(name), Imported):
            self.module.symbols.set(name, Imported(dotted))


def imported_names(node: cst.Import | cst.ImportFrom, module: Module) -> list[tuple[str, str]]:
    """Pairs of the name that an import binds and the absolute dotted name it stands for; `*` is left out."""
    found: list[tuple[str, str]] = []
    if isinstance(node, cst.Import):
        for alias in node.names:
            full = dotted_name(alias.name)
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                found.append((alias.asname.name.value, full))
            else:
                found.append((full.partition(".")[0], full.partition(".")[0]))
    elif not isinstance(node.names, cst.ImportStar):
        base = import_base(node, module)
        for alias in node.names:
            name = dotted_name(alias.name)
            bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            found.append((bound, f"{base}.{name}" if base else name))
    return found


def import_base(node: cst.ImportFrom, module: Module) -> str:
    """The absolute name of the module after `from`, relative dots resolved."""
    tail = dotted_name(node.module) if node.module is not None else ""
    level = len(node.relative)
    if not level:
        return tail
    parts = module.package.split(".") if module.package else []
    parts = parts[: max(0, len(parts) - (level - 1))]
    return ".".join([*parts, *([tail] if tail else [])])


def dotted_name(node: cst.CSTNode | None) -> str:
    """`a.b.c` of Name and Attribute nodes as text; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return f"{dotted_name(node.value)}.{node.attr.value}"
    return ""


def _blocks(statement: cst.CSTNode) -> Iterator[Sequence[cst.CSTNode]]:
    """Statement lists of a compound statement at module or class level."""
    body = getattr(statement, "body", None)
    if isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)):
        yield body.body
    handlers = getattr(statement, "handlers", ())
    for handler in handlers:
        yield handler.body.body
    for name in ("orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if isinstance(inner, (cst.Else, cst.Finally)):
            yield inner.body.body
        elif isinstance(inner, cst.If):
            yield from _blocks(inner)
