"""`-w`: the same run again whenever a file changes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import click


def watch(paths: tuple[Path, ...], once: Callable[[], int]) -> int:
    """Runs now and after each change of a source, page or configuration, till ^C; returns the last exit code."""
    try:
        from watchfiles import watch as changes
    except ImportError:
        raise click.UsageError("-w needs watchfiles: pip install 'tsdyn-lint[watch]'") from None

    named = {path.resolve() for path in paths if path.is_file()}
    folders = [path.resolve() for path in paths if not path.is_file()]

    def matters(change: object, path: str) -> bool:
        """A source that was named or lies in a named folder, a page or a configuration.

        An editor that saves by renaming makes a new file, so the folder of a file is watched, not the file.
        """
        place = Path(path).resolve()
        if place.suffix in (".toml", ".md"):
            return True
        return place.suffix in (".py", ".ipynb") and (
            place in named or any(place.is_relative_to(folder) for folder in folders)
        )

    gc.enable()
    code = once()
    places = {path.parent if path.is_file() else path for path in paths}
    for _ in changes(*places, watch_filter=matters, raise_interrupt=False):
        click.clear()
        code = once()
    return code
