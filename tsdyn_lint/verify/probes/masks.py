"""Copies of the project's files in which statements that TorchScript refused are replaced by neutral ones.

A copy is a real file in a directory of its own (TorchScript reads source through `inspect`), run as a module; the
instance under test keeps its state and only changes class.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import linecache
import os
import shutil
import sys
import tempfile
import types
from types import TracebackType
from typing import Any

import torch

from tsdyn_lint.verify.observe import Fault, Site
from tsdyn_lint.verify.probes.places import Project, real

COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NUMBERS = itertools.count()


class Masks:
    """Context manager. `mask` a site, then `apply` to a fresh instance; `original` maps a fault's sites back."""

    def __init__(self, project: Project) -> None:
        self._own = project
        self._folder = tempfile.mkdtemp(prefix="tsdyn-mask-")
        self.project = Project((*project.roots, self._folder))
        self._lines: dict[str, list[str]] = {}
        self._copies: dict[str, str] = {}
        self._names: list[str] = []

    def __enter__(self) -> Masks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in self._names:
            sys.modules.pop(name, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def original(self, error: Fault) -> Fault:
        """The same fault with the copies' names replaced by those of the files they were made from."""
        back = {copy: name for name, copy in self._copies.items()}

        def site(place: Site | None) -> Site | None:
            return place and dataclasses.replace(place, filename=back.get(place.filename, place.filename))

        message = error.message
        for copy, name in back.items():
            message = message.replace(copy, name)
        stack = tuple(s for s in map(site, error.stack) if s)
        return Fault(error.type, message, site(error.site), stack)

    def mask(self, site: Site) -> bool:
        """Replace the smallest statement around that line; False if there is none left to replace."""
        lines = self._source(site.filename)
        try:
            tree = ast.parse("\n".join(lines))
        except SyntaxError:
            return False
        found = smallest_statement(tree, site.row)
        if found is None:
            return False
        new = neutral(found)
        if new is None or lines[found.lineno - 1].strip() == new:
            return False
        first, last = found.lineno, found.end_lineno or found.lineno
        head = lines[first - 1][: found.col_offset]
        if head.strip():  # `if x: return y` on one line
            return False
        lines[first - 1 : last] = [head + new] + [""] * (last - first)
        return True

    def _source(self, filename: str) -> list[str]:
        if filename not in self._lines:
            with open(filename, encoding="utf-8") as stream:
                self._lines[filename] = stream.read().splitlines()
        return self._lines[filename]

    def apply(self, function: Any) -> Any:
        """`function` (a module or a function) with the code of the masked copies; as it was while nothing is masked."""
        if not self._lines:
            return function
        modules = {name: module for name in self._files(function) if (module := self._load(name)) is not None}
        _share(modules)
        if isinstance(function, torch.nn.Module):
            for child in function.modules():
                masked = modules.get(source_of(type(child)))
                kind = _lookup(masked, type(child).__qualname__) if masked else None
                if isinstance(kind, type):
                    child.__class__ = kind
            return function
        masked = modules.get(source_of(function))
        return (_lookup(masked, function.__qualname__) if masked else None) or function

    def _files(self, function: Any) -> set[str]:
        """The masked files, and those of the classes in use: a class must see a masked helper it imports."""
        kinds: set[Any] = {function}
        if isinstance(function, torch.nn.Module):
            kinds = {type(child) for child in function.modules()}
        return {name for name in map(source_of, kinds) if name and self._own.has(name)} | set(self._lines)

    def _load(self, filename: str) -> types.ModuleType | None:
        number = next(NUMBERS)
        copy = os.path.join(self._folder, f"{number}_{os.path.basename(filename)}")
        text = "\n".join(self._source(filename)) + "\n"
        with open(copy, "w", encoding="utf-8") as stream:
            stream.write(text)
        linecache.checkcache(copy)
        plain = next((m for m in list(sys.modules.values()) if _file_of(m) == filename), None)
        name = f"{plain.__name__ if plain else 'masked'}__masked{number}"
        module = types.ModuleType(name)
        module.__file__ = copy
        module.__package__ = plain.__package__ if plain else None
        sys.modules[name] = module
        self._names.append(name)
        self._copies[filename] = copy
        exec(compile(text, copy, "exec", dont_inherit=True), module.__dict__)
        return module


def _file_of(module: Any) -> str | None:
    try:
        return real(module.__file__)
    except (AttributeError, TypeError):
        return None


def source_of(thing: Any) -> str:
    """The file a class or function was defined in, real path; empty where there is none."""
    try:
        return real(inspect.getsourcefile(thing) or "")
    except (TypeError, OSError):
        return ""


def _lookup(module: types.ModuleType, qualname: str) -> Any:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _share(modules: dict[str, types.ModuleType]) -> None:
    """Names imported from one masked file into another point to the masked ones."""
    for module in modules.values():
        for name, value in list(vars(module).items()):
            if isinstance(value, (type, types.FunctionType)):
                other = modules.get(source_of(value))
                masked = _lookup(other, value.__qualname__) if other is not None and other is not module else None
                if masked is not None:
                    setattr(module, name, masked)


def smallest_statement(tree: ast.Module, row: int) -> ast.stmt | None:
    """The innermost simple or compound statement on that row, definitions aside."""
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, COMPOUND):
            continue
        end = node.end_lineno or node.lineno
        if node.lineno <= row <= end and (best is None or end - node.lineno <= (best.end_lineno or 0) - best.lineno):
            best = node
    return best


def neutral(node: ast.stmt) -> str | None:
    """What stands in for a statement so that later uses of what it assigns still compile; None for a bare `pass`."""
    if isinstance(node, ast.Return):
        return "return torch.zeros(1)" if node.value is not None else None
    if isinstance(node, ast.Assign):
        names = [n for target in node.targets for n in _names(target)]
        return "; ".join(f"{name} = torch.zeros(1)" for name in names) or "pass"
    return None if isinstance(node, ast.Pass) else "pass"


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _names(item)]
    if isinstance(target, ast.Starred):
        return _names(target.value)
    return []
