"""Paths -> the files to lint: folders walked, `.gitignore` and exclusions respected."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsdyn_lint.config import Configs, Settings

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SUFFIXES = (".py", ".ipynb")


class MissingPathError(Exception):
    """A path that was named does not exist, or is nothing to lint."""


def find_files(paths: Sequence[Path], configs: Configs) -> Iterator[tuple[Path, Settings]]:
    """Each file to lint, once, with its settings; raises MissingPathError and ConfigError.

    A file that is named is linted whatever it is called, unless `force-exclude` is set and it is excluded.
    """
    seen: set[Path] = set()
    for named in paths:
        path = Path(os.path.abspath(named))
        if not path.exists():
            raise MissingPathError(f"{named}: no such file or folder")
        if not path.is_dir() and not path.is_file():  # what reads a pipe may wait for ever
            raise MissingPathError(f"{named}: neither a file nor a folder; `-` reads standard input")
        folder = path if path.is_dir() else path.parent
        settings = configs.settings_for(folder)
        if settings.force_exclude and any(settings.excludes(part) for part in (path, *path.parents)):
            continue
        found = _walk(path, configs, _ignores_above(path)) if path.is_dir() else iter([(path, settings)])
        for file, file_settings in found:
            if file not in seen:
                seen.add(file)
                yield file, file_settings


def _walk(folder: Path, configs: Configs, ignores: tuple[_Ignore, ...]) -> Iterator[tuple[Path, Settings]]:
    settings = configs.settings_for(folder)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if settings.respect_gitignore and any(entry.name == ".gitignore" for entry in entries):
        ignores = (*ignores, _Ignore(folder))
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not (entry.name.endswith(_SUFFIXES) and entry.is_file()):
                continue
        except OSError:  # links that lead to each other
            continue
        if settings.excludes(path) or (settings.respect_gitignore and _ignored(path, is_folder, ignores)):
            continue
        if is_folder:
            yield from _walk(path, configs, ignores)
        else:
            yield path, settings


class _Ignore:
    """The `.gitignore` of one folder, read when first asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spec: GitIgnoreSpec | None = None

    def verdict(self, path: Path, is_folder: bool) -> bool | None:
        """True for ignored, False for a line that takes it back, None for no line about it."""
        if self._spec is None:
            from pathspec import GitIgnoreSpec

            text = (self.folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
            self._spec = GitIgnoreSpec.from_lines(text.splitlines())
        relative = path.relative_to(self.folder).as_posix() + ("/" if is_folder else "")
        return self._spec.check_file(relative).include


def _ignored(path: Path, is_folder: bool, ignores: tuple[_Ignore, ...]) -> bool:
    for ignore in reversed(ignores):
        verdict = ignore.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def _ignores_above(folder: Path) -> tuple[_Ignore, ...]:
    """The `.gitignore` files of the repository's folders above one, outermost first; none outside a repository."""
    above: list[_Ignore] = []
    for parent in (folder, *folder.parents):
        if parent != folder and (parent / ".gitignore").is_file():
            above.append(_Ignore(parent))
        if (parent / ".git").exists():
            return tuple(reversed(above))
    return ()
