"""What to run: targets that the configuration names, and the module classes of the linted files. No torch here."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.imports import import_place
from tsdyn_lint.source import Source

VERIFY_FILE = "tsdyn_verify.py"


class TargetError(Exception):
    """A target of the configuration that names nothing; the message is for the user."""


@dataclass(frozen=True)
class Target:
    """One class, function or factory to build and run.

    `file` and `qualname` say where it is; `table` is its table of the configuration, empty for one that was found.
    `built_by` names the classes of the same files that make one of it in their constructor: running those runs it.
    """

    name: str
    file: Path
    qualname: str
    table: Mapping[str, Any] = field(default_factory=dict)
    entry: int | None = None
    """Its place in a `tsdyn_verify.py`, whose file `file` then is."""
    built_by: frozenset[str] = frozenset()

    @property
    def found(self) -> bool:
        """Whether nobody asked for it by name."""
        return not self.table and self.entry is None


def configured(settings_table: Mapping[str, Any], root: Path) -> list[Target]:
    """The targets of `[[tool.tsdyn-lint.verify.targets]]`; raises TargetError."""
    targets = []
    for table in settings_table.get("targets", ()):
        name = table.get("module")
        if not name:
            raise TargetError("a target of [[tool.tsdyn-lint.verify.targets]] has no `module`")
        module, _, qualname = name.partition(":")
        if not qualname:
            raise TargetError(f'target "{name}": write "package.module:Name"')
        targets.append(Target(name, find_module(module, root), qualname, table))
    return targets


def find_module(dotted: str, root: Path) -> Path:
    """The file of a module below the folder of the configuration, its `src`, or among the installed packages."""
    parts = dotted.split(".")
    for base in (root, root / "src"):
        for path in (base.joinpath(*parts).with_suffix(".py"), base.joinpath(*parts, "__init__.py")):
            if path.is_file():
                return path
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in (Path(folder, *parts[1:]).with_suffix(".py"), Path(folder, *parts[1:], "__init__.py")):
            if path.is_file():
                return path
    raise TargetError(f'target "{dotted}": no such module below {root}')


def discovered(sources: Iterable[Source]) -> list[Target]:
    """Each class with a `forward`, and each function handed to a capture by a decorator, in the order of the files.

    Whether a class is a module is for the worker to see, which has its bases.
    """
    return [target for source in sources if source.cells is None for target in _in_file(source)]


def _in_file(source: Source) -> Iterator[Target]:
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError):
        return
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and _has_forward(node)]
    makers: dict[str, set[str]] = {node.name: set() for node in classes}
    for maker in classes:
        for used in _called(maker):
            if used in makers and used != maker.name:
                makers[used].add(maker.name)
    _, dotted = import_place(source.path)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            if node.name not in makers:
                continue
            built_by = frozenset(makers[node.name])
            yield Target(f"{dotted}:{node.name}", source.path, node.name, built_by=built_by)
        elif isinstance(node, ast.FunctionDef) and any(map(_is_capture, node.decorator_list)):
            yield Target(f"{dotted}:{node.name}", source.path, node.name)


def _has_forward(node: ast.ClassDef) -> bool:
    return bool(node.bases) and any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in node.body)


def _called(node: ast.ClassDef) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name):
            yield item.func.id


def _is_capture(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return any(word in text for word in ("torch.compile", "jit.script", "jit.export")) and "disable" not in text


def named_by(entries: Iterable[str], targets: Sequence[Target], sources: Iterable[Source]) -> list[Target]:
    """Targets for entry points that findings name and no target has: functions taken for one."""
    have = {dotted_name(target) for target in targets}
    functions = {}
    for source in sources:
        if source.cells is not None:
            continue
        _, dotted = import_place(source.path)
        try:
            body = ast.parse(source.text).body
        except (SyntaxError, ValueError):
            continue
        for node in body:
            if isinstance(node, ast.FunctionDef):
                functions[f"{dotted}.{node.name}"] = Target(f"{dotted}:{node.name}", source.path, node.name)
    wanted = dict.fromkeys(entry for entry in entries if entry not in have)
    return _unique(match for entry in wanted for name, match in functions.items() if _same_name(name, entry))


def _same_name(name: str, entry: str) -> bool:
    return name == entry or name.endswith("." + entry) or entry.endswith("." + name)


def _unique(targets: Iterable[Target]) -> list[Target]:
    by_place = {(target.file, target.qualname): target for target in targets}
    return list(by_place.values())


def dotted_name(target: Target) -> str:
    """`pkg.model.Gate` for `pkg.model:Gate`."""
    return target.name.replace(":", ".")
