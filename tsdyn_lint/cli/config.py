"""`tsdyn-lint config [PATH]`: the settings of a path, and where each was read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tsdyn_lint.config import Configs, Settings
from tsdyn_lint.configfile import Options
from tsdyn_lint.findings import Engine


@click.command("config", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", default=".", type=click.Path(path_type=Path))
def command(path: Path) -> int:
    """Print the settings that hold for PATH (default: the working folder), each with where it comes from."""
    if not path.exists():
        raise click.UsageError(f"{path}: no such file or folder")
    path = path.absolute()
    settings = Configs(Options()).settings_for(path if path.is_dir() else path.parent)
    click.echo(describe(settings), nl=False)
    return 0


def describe(settings: Settings) -> str:
    """A line a setting, as TOML, with its origin in a comment."""
    lines = [f"# {settings.config_file or 'no configuration file'}"]
    for key, value in _values(settings):
        origin = settings.origins.get(key, "default")
        if key == "torch-version":
            origin = settings.torch_reason
        lines.append(f"{key} = {json.dumps(value)}  # {origin}")
    return "".join(line + "\n" for line in lines)


def _values(settings: Settings) -> Iterator[tuple[str, Any]]:
    engines = settings.engines
    yield "engine", "auto" if engines is None else [engine.value for engine in Engine if engine in engines]
    yield "torch-version", ".".join(map(str, settings.torch_version))
    yield "select", sorted(settings.selected)
    yield "min-confidence", settings.min_confidence.value
    yield "per-file-ignores", {pattern: sorted(codes) for pattern, codes in settings.per_file_ignores}
    yield "exclude", list(settings.exclude)
    yield "respect-gitignore", settings.respect_gitignore
    yield "force-exclude", settings.force_exclude
    yield "rule-paths", list(map(str, settings.rule_paths))
    yield "output-format", list(settings.output_format)
    yield "baseline", str(settings.baseline or "")
    yield "cache-dir", str(settings.cache_dir or "")
    yield "fix", settings.fix
    yield "unsafe-fixes", settings.unsafe_fixes
    yield "verify", dict(settings.verify)
