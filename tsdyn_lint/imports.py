"""The import statements of files -> the files of the same source tree that they run, by way of others too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:"
    rb"from[ \t]*(?P<module>\.*[\w.]*)[ \t]*\bimport\b[ \t]*"
    rb"(?P<names>\((?:[^)#]|#[^\n]*)*\)|[^\n#;\\]*(?:\\\r?\n[^\n#;\\]*)*)"
    rb"|import[ \t]+(?P<modules>[^\n#;]+))",
    re.MULTILINE,
)
"""Statements that import, wherever they stand; what a text says in these words is taken for one as well."""
_COMMENT = re.compile(rb"#[^\n]*")
_AS = re.compile(rb"\bas[ \t]+\w+")
_DOTTED = re.compile(rb"[\w.]+|\*")


def import_place(file: Path) -> tuple[Path, str]:
    """The folder to import a file from and its dotted name there, by the `__init__.py` files above it."""
    folder, parts = file.parent, [] if file.name == "__init__.py" else [file.stem]
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or file.stem


def imported_files(path: str, code: bytes, roots: Iterable[str], is_file: Callable[[str], bool]) -> Iterator[str]:
    """The files that the imports of this code may name, packages on the way among them. It need not parse.

    Absolute imports start from any of the `roots`.
    """
    for statement in _IMPORT.finditer(code):
        module = (statement["module"] or b"").decode(errors="replace")
        names = _AS.sub(b"", _COMMENT.sub(b"", statement["names"] or statement["modules"]))
        dots = len(module) - len(module.lstrip("."))
        folders = roots
        if dots:
            folder = path
            for _ in range(dots):
                folder = os.path.dirname(folder)
            folders = (folder,)
            if is_file(own := os.path.join(folder, "__init__.py")):
                yield own
        for name in _DOTTED.findall(names):
            dotted = f"{module.lstrip('.')}.{name.decode(errors='replace')}".strip(".")
            for folder in folders:
                yield from filter(is_file, _files(folder, dotted))


def reached(
    outside: Iterable[Path], files: Iterable[Path], code: Callable[[str], bytes], asked: Collection[Path]
) -> set[Path]:
    """Those of the files `asked` for that others run: the ones `outside`, or what these import among the `files`.

    Looks no further than it takes to find them all.
    """
    given = {os.path.realpath(path): str(path) for path in files}
    open_ = {os.path.realpath(path): path for path in asked}
    todo = [real for real in map(os.path.realpath, outside) if real not in open_]
    seen = set(todo)
    found: set[Path] = set()
    places: dict[str, tuple[str, ...]] = {}
    for path in todo:
        folder = os.path.dirname(path)
        if folder not in places:
            root, _ = import_place(Path(path))
            places[folder] = (str(root), str(root / "src"), str(root.parent), str(root.parent / "src"))
        for other in imported_files(path, code(given.get(path, path)), places[folder], given.__contains__):
            if other not in seen:
                seen.add(other)
                todo.append(other)
                if other in open_:
                    found.add(open_.pop(other))
        if not open_:
            break
    return found


def _files(folder: str, dotted: str) -> Iterator[str]:
    """Where the module of a dotted name would be, and its packages; its last part may be no module."""
    base = folder
    for part in dotted.split("."):
        base = os.path.join(base, part)
        yield os.path.join(base, "__init__.py")
        yield f"{base}.py"
