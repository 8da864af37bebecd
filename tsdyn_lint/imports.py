"""The import statements of files -> the files of the same source tree that they run, and who is reached from where."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def import_place(file: Path) -> tuple[Path, str]:
    """The folder to import a file from and its dotted name there, by the `__init__.py` files above it."""
    folder, parts = file.parent, [] if file.name == "__init__.py" else [file.stem]
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or file.stem


def imported_files(path: Path, code: bytes, roots: Iterable[Path]) -> Iterator[Path]:
    """The files that the imports of this code name, packages on the way among them; none where it does not parse.

    Absolute imports start from the folder that the file itself is imported from, else from one of the `roots`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    root, _ = import_place(path)
    absolute = (root, *roots)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name, absolute)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(path.parents):
            folders = absolute if node.level == 0 else (path.parents[node.level - 1],)
            if node.level and (own := folders[0] / "__init__.py").is_file():
                yield own
            for alias in node.names:
                yield from _files(f"{node.module or ''}.{alias.name}".strip("."), folders)


class Importers:
    """Who imports whom among the files of a project, each parsed at most once, and only where bytes speak for it."""

    def __init__(self, files: Iterable[Path], linted: Iterable[Path], code: Callable[[str], bytes]) -> None:
        """`files` of the project, those of them that are `linted`, and the bytes of each."""
        self._linted = set(linted)
        # those that are not linted first: the first one found decides
        self._files = sorted(set(files) | self._linted, key=lambda path: (path in self._linted, path))
        self._code = code
        self._imports: dict[Path, set[Path]] = {}

    def outside(self, path: Path) -> bool:
        """Whether a file with torch in it that is not linted imports this one, by way of others too."""
        todo, seen = [path], {path}
        while todo:
            wanted = todo.pop()
            for file in self._files:
                if file in seen or not self._imports_it(file, wanted):
                    continue
                if file not in self._linted and b"torch" in self._code(str(file)):
                    return True
                seen.add(file)
                todo.append(file)
        return False

    def _imports_it(self, file: Path, wanted: Path) -> bool:
        if file not in self._imports:
            is_package = wanted.name == "__init__.py"
            name = wanted.parent.name if is_package else wanted.stem
            code = self._code(str(file))
            if name.encode() not in code and not (is_package and file.is_relative_to(wanted.parent)):
                return False
            root, _ = import_place(file)
            self._imports[file] = set(imported_files(file, code, (root / "src", root.parent, root.parent / "src")))
        return wanted in self._imports[file]


def _files(dotted: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The files of a dotted name, its packages' among them; its last part may be no module."""
    parts = dotted.split(".")
    for folder in folders:
        if not (folder / parts[0]).is_dir() and not (folder / f"{parts[0]}.py").is_file():
            continue
        for count in range(len(parts) + 1):
            base = folder.joinpath(*parts[:count])
            for candidate in (base / "__init__.py", base.with_suffix(".py")) if count else ():
                if candidate.is_file():
                    yield candidate
        return
