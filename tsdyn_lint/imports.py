"""The import statements of files -> the files of the same source tree that they run, by way of others too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

_START = re.compile(r"(?<![\w.])(?:from\b(?P<module>[ \t\f.\w]{0,400}?)\b)?import\b")
_NEXT = re.compile(r"(?:from|import|def|class|@)\b|@")
"""What begins a line that is no more of the names in an open bracket."""
_NAME = re.compile(r"(?:\w|\.)+|\*")
_AS = re.compile(r"\bas[ \t\f]+\w+")
_AROUND_DOT = re.compile(r"[ \t\f]*\.[ \t\f]*")

Modules = Callable[[str, str], Iterable[str]]
"""The files that a dotted name stands for in a folder, those of the packages on the way among them."""


def import_root(folder: Path) -> Path:
    """The folder that absolute imports of the files in one start from: the first one upward that is no package."""
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def import_folders(root: Path) -> tuple[Path, ...]:
    """Where modules are looked for from a root: also in `src` beside a script, and in the package beside its tests."""
    return root, root / "src", root.parent, root.parent / "src"


def import_place(file: Path) -> tuple[Path, str]:
    """The folder to import a file from and its dotted name there."""
    root = import_root(file.parent)
    parts = [*file.parent.relative_to(root).parts, *([] if file.name == "__init__.py" else [file.stem])]
    return root, ".".join(parts) or file.stem


def imported_files(path: str, names: Iterable[str], roots: Iterable[str], modules: Modules) -> Iterator[str]:
    """The files that the imported `names` of a file may stand for; absolute ones start from any of the `roots`."""
    for name in names:
        dotted = name.lstrip(".")
        folders = roots
        if dots := len(name) - len(dotted):
            folder = path
            for _ in range(dots):
                folder = os.path.dirname(folder)
            folders = (folder,)
            yield from modules(folder, "")
        for folder in folders if dotted else ():
            yield from modules(folder, dotted)


def modules_among(is_file: Callable[[str], bool]) -> Modules:
    """How dotted names are looked up among the files that a test lets through; each is looked for once."""

    @cache
    def modules(folder: str, dotted: str) -> tuple[str, ...]:
        if not dotted:
            return tuple(filter(is_file, (os.path.join(folder, "__init__.py"),)))
        return tuple(filter(is_file, _files(folder, dotted)))

    return modules


def imported_names(code: bytes) -> Iterator[str]:
    """The dotted names that the import statements of a file hold: of `from .a import b as c` `.a` and `.a.b`.

    They are looked for in the text, in a time that grows with its length alone: what a string says in these words is
    taken for a statement too, and what does not parse for what it looks like.
    """
    text = code.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n").replace("\\\n", " ")
    position = 0
    while found := _START.search(text, position):
        names, position = _names(text, found.end())
        module = _AROUND_DOT.sub(".", found["module"] or "").strip()
        if module:
            yield module
        joint = "" if not module or module.endswith(".") else "."
        for name in _NAME.findall(_AS.sub("", _AROUND_DOT.sub(".", names))):
            yield f"{module}{joint}{name}"


def _names(text: str, start: int) -> tuple[str, int]:
    """What follows `import`, without comments, and where it ends: at the end of the line or of its bracket."""
    lines: list[str] = []
    while True:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line, more, _ = text[start:end].partition("#")[0].partition(";")
        is_open = lines or line.lstrip(" \t\f").startswith("(")
        inside, closed, _ = line.partition(")")
        lines.append(inside)
        if closed or not is_open:
            return "\n".join(lines), start + len(inside) if closed or more else end
        if end == len(text) or _NEXT.match(text, end + 1):
            return "\n".join(lines), end
        start = end + 1


def reached(outside: Iterable[str], names: Mapping[str, Iterable[str]], asked: Collection[str]) -> set[str]:
    """Those of the files `asked` for that others run: the ones `outside`, or what these import. `names` holds the
    imported names of all the files there are.

    Looks no further than it takes to find them all.
    """
    real_folder = cache(os.path.realpath)

    def real(path: str) -> str:
        folder, name = os.path.split(path)
        return os.path.realpath(path) if os.path.islink(path) else os.path.join(real_folder(folder), name)

    @cache
    def roots(folder: str) -> tuple[str, ...]:
        return tuple(map(str, import_folders(import_root(Path(folder)))))

    given = {real(path): path for path in names}
    open_ = {real(path): path for path in asked}
    todo = [path for path in map(real, outside) if path not in open_]
    seen = set(todo)
    found: set[str] = set()
    modules = modules_among(given.__contains__)
    for path in todo:
        for other in imported_files(path, names[given[path]], roots(os.path.dirname(path)), modules):
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
