"""`tsdyn-lint clean`: remove caches."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tsdyn_lint.cache import FOLDER, clear
from tsdyn_lint.config import Configs
from tsdyn_lint.configfile import Options


@click.command("clean", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--cache-dir", type=click.Path(file_okay=False, path_type=Path), envvar="TSDYN_LINT_CACHE_DIR")
def command(cache_dir: Path | None) -> int:
    """Remove the caches in and below the working folder, and the one that `cache-dir` names."""
    found = []
    if named := cache_dir or Configs(Options()).settings_for(Path.cwd()).cache_dir:
        found.append(named)
    for folder, folders, _ in os.walk(Path.cwd()):
        if FOLDER in folders:
            found.append(Path(folder, FOLDER))
        folders[:] = [name for name in folders if name not in (FOLDER, ".git", "node_modules")]
    for cache in found:
        if clear(cache):
            click.echo(f"Removed {cache}")
    return 0
