"""Sources of a project -> the captures it is seen to use: what `--engine auto` means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

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


_SETS = re.compile(rb"_dynamo|fullgraph|\bcompile\b")


def may_capture(data: bytes) -> bool:
    """Whether a file's bytes could hold a capture: the cheap test before `ast`."""
    return b"torch" in data and _MAYBE.search(data) is not None


def compile_lines(data: bytes) -> str:
    """The lines of a file that may say how the whole project compiles: Dynamo's configuration, `fullgraph`."""
    if b"_dynamo" not in data and b"fullgraph" not in data:
        return ""
    lines = (line.strip() for line in data.splitlines())
    return b"\n".join(line for line in lines if _SETS.search(line)).decode("utf-8", "replace")


def captures_used(data: bytes) -> frozenset[str]:
    """Dotted names of the captures that a file's code calls, decorates with or hands on.

    Bytes decide first, as most files hold no such word; then `ast` follows the file's own imports, so that comments,
    strings and another library's `compile` do not count. A file that does not parse uses none.
    """
    if not may_capture(data):
        return frozenset()
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    nodes = list(ast.walk(tree))
    names = dict(_imported(nodes))
    called: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and (dotted := _dotted(node)):
            head, _, rest = dotted.partition(".")
            full = f"{names.get(head, head)}.{rest}" if rest else names.get(head, head)
            if full in CAPTURES:
                called.add(full)
    return frozenset(called)


def engines_used(captures: Iterable[str]) -> tuple[frozenset[Engine], str]:
    """The engines to judge for a project that uses these captures, and why in a few words."""
    used = sorted(set(captures))
    if not used:
        return DEFAULT, "no capture call seen"
    engines = frozenset(engine for name in used for engine in CAPTURES[name])
    return engines, f"the project calls {', '.join(used)}"


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Each local name of a torch import with what it stands for."""
    import ast

    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    yield (alias.asname, alias.name) if alias.asname else ("torch", "torch")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.AST) -> str | None:
    import ast

    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
