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

    def matters(change: object, path: str) -> bool:
        return path.endswith((".py", ".ipynb", ".toml", ".md"))

    gc.enable()
    code = once()
    for _ in changes(*paths, watch_filter=matters, raise_interrupt=False):
        click.clear()
        code = once()
    return code
