"""The project around the linted files -> what its files say of it, remembered by each file's size and time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tsdyn_lint import usage
from tsdyn_lint.config import Configs, is_project_root
from tsdyn_lint.configfile import ConfigError
from tsdyn_lint.files import find_files
from tsdyn_lint.source import RACY_NS, Library
from tsdyn_lint.usage import Usage, usage_of

if TYPE_CHECKING:
    from tsdyn_lint.cache import Cache

_MOST_FILES = 20_000


def project_usage(paths: Iterable[Path], configs: Configs, library: Library, cache: Cache | None) -> dict[str, Usage]:
    """What the files say, and the others of the projects that they lie in."""
    named = list(paths)
    names = dict.fromkeys(map(str, (*named, *islice(_around(named, configs), _MOST_FILES))))
    rows = _remembered(usage, lambda code: [*astuple(usage_of(code))], names, library, cache)
    return {name: Usage(*row) for name, row in rows.items()}


def project_imports(names: Iterable[str], library: Library, cache: Cache | None) -> dict[str, list[str]]:
    """The names that each of the files imports."""
    from tsdyn_lint import imports

    return _remembered(imports, lambda code: [*imports.imported_names(code)], names, library, cache)


def _remembered(
    reader: ModuleType, read: Callable[[bytes], list[Any]], names: Iterable[str], library: Library, cache: Cache | None
) -> dict[str, list[Any]]:
    """What a module of ours reads in the files, by their names; what it read in an earlier run is not read again."""
    subject, state = reader.__name__.rpartition(".")[2], _state(str(reader.__file__))
    kept: dict[str, Any] = (cache and cache.read(subject)) or {}
    # what another state of the tool read in the same bytes may be something else
    memory: dict[str, Any] = kept["files"] if kept.get("reader") == state else {}
    seen: dict[str, Any] = {}
    for name in names:
        stamp = _state(name)
        known = memory.get(name)
        if not known or known[:2] != stamp or library.holds(name):
            young = time.time_ns() - stamp[1] < RACY_NS
            known = [stamp[0], -1 if young else stamp[1], *read(library.code(name))]
        seen[name] = known
    if cache and seen != memory:
        cache.write(subject, {"reader": state, "files": seen})
    return {name: known[2:] for name, known in seen.items()}


def _state(path: str) -> list[int]:
    """Size and time of a file, zeros without it."""
    try:
        state = os.stat(path)
        return [state.st_size, state.st_mtime_ns]
    except OSError:
        return [0, 0]


def _around(paths: list[Path], configs: Configs) -> Iterator[Path]:
    """The files of the projects that the paths lie in; none where nothing says where a project begins."""
    roots = dict.fromkeys(map(_root, dict.fromkeys(path.parent for path in paths)))
    for root in filter(None, roots):
        try:
            yield from (path for path, _ in find_files([root], configs))
        except ConfigError:  # somewhere else in the project: no reason to fail here
            return


def _root(folder: Path) -> Path | None:
    for above in (folder, *folder.parents):
        if above in (Path.home(), Path(above.anchor)):
            return None
        if is_project_root(above):
            return above
    return None
