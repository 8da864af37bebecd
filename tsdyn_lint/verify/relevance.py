"""Which named targets the linted files are part of: those defined in them, and those whose file imports one of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tsdyn_lint.imports import import_root, imported_files, imported_names, modules_among
from tsdyn_lint.source import Library
from tsdyn_lint.verify.target import Target


def relevant(targets: Iterable[Target], linted: Iterable[Path], root: Path) -> list[Target]:
    """The targets in whose runs a linted file can take part, and those of installed packages, of which none is linted.

    `root` is the configuration's folder: absolute imports start from it, or from its `src`.
    """
    reach, base = _Reach({path.resolve() for path in linted}, (root, root / "src")), root.resolve()
    return [target for target in targets if reach.has(target.file) or _is_installed(target.file.resolve(), base)]


def _is_installed(file: Path, root: Path) -> bool:
    return not file.is_relative_to(root) or "site-packages" in file.relative_to(root).parts


class _Reach:
    """Follows imports from file to file, each file once."""

    def __init__(self, linted: set[Path], roots: tuple[Path, ...]) -> None:
        self._linted, self._roots = linted, roots
        self._imports: dict[Path, list[Path]] = {}
        self._code, self._modules = Library().code, modules_among(os.path.isfile)

    def has(self, file: Path) -> bool:
        """Whether that file is a linted one or imports one, by way of others too."""
        todo, seen = [file.resolve()], {file.resolve()}
        while todo:
            path = todo.pop()
            if path in self._linted:
                return True
            if path not in self._imports:
                roots = tuple(map(str, (import_root(path.parent), *self._roots)))
                names = imported_names(self._code(str(path)))
                files = imported_files(str(path), names, roots, self._modules)
                self._imports[path] = [Path(file).resolve() for file in files]
            todo += [found for found in self._imports[path] if found not in seen]
            seen.update(self._imports[path])
        return False
