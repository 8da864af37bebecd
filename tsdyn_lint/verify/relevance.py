"""Which named targets the linted files are part of: those defined in them, and those whose file imports one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tsdyn_lint.verify.target import Target, import_place


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

    def has(self, file: Path) -> bool:
        """Whether that file is a linted one or imports one, by way of others too."""
        todo, seen = [file.resolve()], {file.resolve()}
        while todo:
            path = todo.pop()
            if path in self._linted:
                return True
            if path not in self._imports:
                self._imports[path] = list(self._imported(path))
            todo += [found for found in self._imports[path] if found not in seen]
            seen.update(self._imports[path])
        return False

    def _imported(self, path: Path) -> Iterator[Path]:
        """The project's files that the imports of this one name; one that cannot be read names none."""
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            return
        root, _ = import_place(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._files(alias.name, (root, *self._roots))
            elif isinstance(node, ast.ImportFrom):
                folders = (root, *self._roots) if node.level == 0 else (path.parents[node.level - 1],)
                for alias in node.names:
                    yield from self._files(f"{node.module or ''}.{alias.name}".strip("."), folders)

    def _files(self, dotted: str, folders: tuple[Path, ...]) -> Iterator[Path]:
        """The files of a dotted name, its packages' among them; its last part may be no module."""
        parts = dotted.split(".")
        for folder in folders:
            if not (folder / parts[0]).is_dir() and not (folder / f"{parts[0]}.py").is_file():
                continue
            for count in range(len(parts) + 1):
                base = folder.joinpath(*parts[:count])
                for candidate in (base / "__init__.py", base.with_suffix(".py")) if count else ():
                    if candidate.is_file():
                        yield candidate.resolve()
            return
