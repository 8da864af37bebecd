"""Bytes of a file -> what it says of its whole project: captures that it calls, how they compile, bases of classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tsdyn_lint.findings import Engine

if TYPE_CHECKING:
    import ast

DEFAULT = frozenset({Engine.DYNAMO, Engine.RECOMPILE, Engine.SCRIPT})
"""What is judged in a project that calls no capture."""

SCRIPT_IF_TRACING = frozenset({"torch.jit.script_if_tracing", "torch.jit._script_if_tracing"})
"""Names of the decorator that scripts a function where a trace reaches it."""

CAPTURES: dict[str, frozenset[Engine]] = {
    "torch.compile": frozenset({Engine.DYNAMO, Engine.RECOMPILE}),
    "torch._dynamo.optimize": frozenset({Engine.DYNAMO, Engine.RECOMPILE}),
    "torch.jit.script": frozenset({Engine.SCRIPT}),
    **dict.fromkeys(sorted(SCRIPT_IF_TRACING), frozenset({Engine.SCRIPT})),
    "torch.jit.trace": frozenset({Engine.TRACE}),
    "torch.jit.trace_module": frozenset({Engine.TRACE}),
    "torch.export.export": frozenset({Engine.EXPORT}),
    "torch.export.draft_export": frozenset({Engine.EXPORT}),
    "torch.export.export_for_training": frozenset({Engine.EXPORT}),
}
_DOTTED = "|".join(name.replace(".", r"\s*\.\s*") for name in CAPTURES).encode()
_MAYBE = re.compile(
    rb"\b(?:%s)\b"
    rb"|\bfrom\s+torch[\w.]*\s+import\b[^;#]{0,300}?\b(?:compile|jit|export|_dynamo|script|trace|trace_module)\b"
    rb"|\bimport\s+torch(?:\s*\.\s*(?:jit|export|_dynamo))?\s+as\b" % _DOTTED
)

_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in CAPTURES)
_NAMED = {"Name": "id", "Attribute": "attr", "alias": "name"}
"""Where nodes hold a name that may be one of those."""

Names = Callable[[str], "str | None"]
"""What a local name of a file stands for, None if it is no import."""

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^)]{0,4000})\))?", re.MULTILINE)
_CONFIG = "torch._dynamo.config."
_REORDERABLE = _CONFIG + "reorderable_logging_functions"


@dataclass(frozen=True)
class Usage:
    """What one file says. All of it can be kept as JSON."""

    captures: list[str] = field(default_factory=list)
    """Dotted names of the captures that its code calls, decorates with or hands on."""
    fullgraph: list[bool] = field(default_factory=list)
    """For each compile call, whether it asks for one graph."""
    switches: dict[str, bool] = field(default_factory=dict)
    """What it sets in `torch._dynamo.config`."""
    reordered: list[str] = field(default_factory=list)
    """Functions that it lets Dynamo move to the end of the graph."""
    bases: list[str] = field(default_factory=list)
    """Plain names of classes from elsewhere that classes of the file derive from."""
    suppresses: bool = False
    """Whether a comment in it may silence findings."""
    torch: bool = False
    """Whether it names torch at all."""


@dataclass(frozen=True)
class Whole:
    """What the files of a project say together; the verdict on any one of them may hang on it."""

    switches: Mapping[str, bool] = field(default_factory=dict)
    reordered: frozenset[str] = frozenset()
    fullgraph: bool = False
    """Whether each compile call of the project asks for one graph."""
    heirs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each plain name of a class, the files with classes that derive from one of that name elsewhere."""

    @property
    def compiling(self) -> list[Any]:
        """All but the class hierarchy, to tell one state from another."""
        return [sorted(self.switches.items()), sorted(self.reordered), self.fullgraph]


def whole_of(files: Mapping[str, Usage]) -> Whole:
    """The sum of what the files say, in the order of their paths."""
    ordered = [files[path] for path in sorted(files)]
    asked = [full for one in ordered for full in one.fullgraph]
    heirs: dict[str, tuple[str, ...]] = {}
    for path in sorted(files):
        for base in files[path].bases:
            heirs[base] = (*heirs.get(base, ()), path)
    return Whole(
        {name: on for one in ordered for name, on in one.switches.items()},
        frozenset(name for one in ordered for name in one.reordered),
        bool(asked) and all(asked),
        heirs,
    )


def may_capture(data: bytes) -> bool:
    """Whether a file's bytes could hold a capture: the cheap test before `ast`."""
    return b"torch" in data and _MAYBE.search(data) is not None


def says_of_others(text: str, nodes: Iterable[ast.AST] | None = None) -> bool:
    """Whether a statement of a file may decide how others are judged: it captures them, or is a kernel for one.

    `nodes`: those of the file, where they are known; none if it cannot hold a capture.
    """
    if "register_fake" in text:
        return True
    if nodes is None:
        if not may_capture(text.encode()):
            return False
        from tsdyn_lint.syntax import nodes_of

        tree = _parsed(text)
        if tree is None:
            return True
        nodes = nodes_of(tree)
    return any(
        getattr(node, _NAMED.get(type(node).__name__, ""), "").rpartition(".")[2] in _LAST_NAMES for node in nodes
    )


def _parsed(code: str | bytes) -> ast.Module | None:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def usage_of(data: bytes) -> Usage:
    """What a file says.

    Bytes decide first, as most files hold no such word; then `ast` follows the file's own imports, so that comments,
    strings and another library's `compile` do not count. A file that does not parse calls nothing.
    """
    suppresses = b"tsd" in data.lower()
    if b"torch" not in data:
        return Usage(suppresses=suppresses)
    bases = _outside_bases(data)
    captures, sets = may_capture(data), b"_dynamo" in data
    if not captures and not sets:
        return Usage(bases=bases, suppresses=suppresses, torch=True)
    import ast

    from tsdyn_lint.syntax import nodes_of

    tree = _parsed(data)
    if tree is None:
        return Usage(bases=bases, suppresses=suppresses, torch=True)
    nodes = nodes_of(tree)
    imported = dict(_imported(nodes))
    names = imported.get
    plain = {name for name, full in imported.items() if full in CAPTURES}
    chains = [
        node
        for node in nodes
        if type(node) is ast.Attribute and node.attr in _LAST_NAMES or type(node) is ast.Name and node.id in plain
    ]
    called = {full for node in chains if (full := dotted(node, names)) in CAPTURES} if captures else set()
    switches: dict[str, bool] = {}
    reordered: set[str] = set()
    for name, value in _settings(nodes, names) if sets else ():
        if name == _REORDERABLE:
            reordered |= {dotted(node, names) for node in nodes_of(value)} - {""}
        elif name.startswith(_CONFIG) and isinstance(value, ast.Constant):
            switches[name.removeprefix(_CONFIG)] = value.value is True
    asked = list(_fullgraph(nodes, names)) if called else []
    functions = sorted(name if "." in name else f"builtins.{name}" for name in reordered)
    return Usage(sorted(called), asked, switches, functions, bases, suppresses, torch=True)


def engines_used(captures: Iterable[str]) -> tuple[frozenset[Engine], str]:
    """The engines to judge for a project that uses these captures, and why in a few words."""
    used = sorted(set(captures))
    if not used:
        return DEFAULT, "no capture call seen"
    engines = frozenset(engine for name in used for engine in CAPTURES[name])
    return engines, f"the project calls {', '.join(used)}"


def _outside_bases(data: bytes) -> list[str]:
    """Plain names of the bases that the file does not define itself, each by the name that it was imported by."""
    defined: set[bytes] = set()
    bases: set[bytes] = set()
    for name, listed in classes_in(data):
        defined.add(name)
        bases.update(listed)
    return sorted({_original(data, base).decode() for base in bases - defined})


def classes_in(data: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Names of the classes that a file defines, each with the last parts of the names that it lists as bases."""
    for name, listed in _CLASS.findall(data):
        yield name, [base.rpartition(b".")[2] for base in re.findall(rb"[\w.]+", listed)]


def _original(data: bytes, name: bytes) -> bytes:
    """What an `import ... as name` of the file calls the name."""
    if data.find(b" as " + name) < 0:
        return name
    found = re.search(rb"(\w+)[ \t]+as[ \t]+%s\b" % name, data)
    return found[1] if found else name


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Each local name of an import with what it stands for."""
    import ast

    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (head, head)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"


def dotted(node: ast.AST, imported: Names) -> str:
    """The absolute dotted name of an attribute chain; empty for anything else."""
    import ast

    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([imported(node.id) or node.id, *reversed(parts)])


def _fullgraph(nodes: list[ast.AST], names: Names) -> Iterator[bool]:
    """For each call and decorator that compiles, whether it asks for one graph."""
    import ast

    def compiles(node: ast.expr) -> bool:
        return Engine.DYNAMO in CAPTURES.get(dotted(node, names), ())

    for node in nodes:
        if isinstance(node, ast.Call) and compiles(node.func):
            full = [keyword.value for keyword in node.keywords if keyword.arg == "fullgraph"]
            yield any(isinstance(value, ast.Constant) and value.value is True for value in full)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from (False for decorator in node.decorator_list if compiles(decorator))


def _settings(nodes: list[ast.AST], names: Names) -> Iterator[tuple[str, ast.expr]]:
    """Dotted names that the file assigns or `config.patch`es, and values added to a set in the configuration.

    A patch inside of a function holds there alone, which says nothing of the rest of the project.
    """
    import ast

    from tsdyn_lint.syntax import nodes_of

    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    scoped = {id(inner) for function in functions for inner in nodes_of(function)}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield dotted(target, names), node.value
        elif isinstance(node, ast.Call):
            called = dotted(node.func, names)
            if called == _CONFIG + "patch" and id(node) not in scoped:
                yield from ((_CONFIG + k.arg, k.value) for k in node.keywords if k.arg)
                for argument in node.args:
                    if isinstance(argument, ast.Dict):
                        pairs = zip(argument.keys, argument.values, strict=True)
                        yield from ((_CONFIG + str(k.value), v) for k, v in pairs if isinstance(k, ast.Constant))
            elif called in (f"{_REORDERABLE}.add", f"{_REORDERABLE}.update"):
                yield from ((_REORDERABLE, argument) for argument in node.args)
