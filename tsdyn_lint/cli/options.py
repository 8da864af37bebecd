"""The options of `check`, and how those that configuration knows too become a layer over it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tsdyn_lint.cli.verify import OPTIONS as VERIFY_OPTIONS
from tsdyn_lint.configfile import FORMATS, ConfigError, Options, options_from, parse_assignment

F = TypeVar("F", bound=Callable[..., Any])

_LISTS = ("engine", "select", "extend-select", "ignore", "extend-ignore", "exclude", "extend-exclude")
_VALUES = (
    *("torch-version", "min-confidence", "baseline", "cache-dir", "respect-gitignore", "force-exclude"),
    *("fix", "unsafe-fixes"),
)


def check_options(function: F) -> F:
    """Adds every option of `check` to a command, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def layer_from(given: Mapping[str, Any]) -> tuple[Options, Path | None]:
    """The options that were given as a layer over configuration, and the file that `--config` names, if any."""
    values: dict[str, Any] = {}
    for key in _LISTS:
        if listed := given[key.replace("-", "_")]:
            values[key] = [item.strip() for text in listed for item in text.split(",") if item.strip()]
            if key == "select" and not values[key]:
                raise ConfigError("--select names no rule: nothing would be reported")
    for key in _VALUES:
        if (value := given[key.replace("-", "_")]) is not None:
            values[key] = value
    if given["output_format"]:
        values["output-format"] = list(given["output_format"])
    if given["per_file_ignores"]:
        values["per-file-ignores"] = _ignores(given["per_file_ignores"])
    layer, file = options_from(values), None
    for text in given["configs"]:
        if os.path.exists(text) or "=" not in text:
            if file is not None:
                raise ConfigError("--config names two files; one holds for all paths")
            file = Path(text)
        else:
            layer = layer.over(parse_assignment(text))
    return layer, file


def wants_colour(choice: str) -> bool:
    """`--color` decides, then `NO_COLOR`, then `FORCE_COLOR`, then whether standard output is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def _ignores(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """`tests/*:TSD2,TSD301` gives a pattern its rules; a pattern may come twice, and a bare rule adds to the last."""
    ignores: dict[str, list[str]] = {}
    pattern = ""
    for item in (item.strip() for text in texts for item in text.split(",")):
        if ":" in item:
            pattern, _, item = item.rpartition(":")
        elif not pattern:
            raise ConfigError(f"--per-file-ignores wants PATTERN:RULE, not {item!r}")
        ignores.setdefault(pattern, []).append(item)
    return ignores


def _lists(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar="LIST", help=text)


def _switch(name: str, text: str, **extra: Any) -> Callable[[F], F]:
    """A flag that is None unless given, so that configuration shows through."""
    return click.option(name, is_flag=True, default=None, help=text, **extra)


_OPTIONS: list[Callable[[Any], Any]] = [
    _lists("--engine", "Captures that must keep working: dynamo, recompile, script, trace, export; or auto (default)."),
    click.option("--torch-version", metavar="X.Y", help="The torch whose behaviour is judged."),
    _lists("--select", "Report only these: codes, code prefixes or rule names, joined by commas."),
    _lists("--extend-select", "Report these too."),
    _lists("--ignore", "Leave these out."),
    _lists("--extend-ignore", "Leave these out too."),
    click.option(
        "--per-file-ignores", multiple=True, metavar="PATTERN:RULE,...", help="Leave rules out in some files."
    ),
    click.option(
        "--min-confidence", type=click.Choice(["certain", "likely", "possible"]), help="How sure a finding must be."
    ),
    _switch("--fix", "Apply fixes that keep behaviour."),
    _switch("--unsafe-fixes/--no-unsafe-fixes", "Let --fix and --diff apply fixes that may change behaviour."),
    click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing."),
    click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if anything was fixed."),
    click.option(
        "-o",
        "--output-format",
        multiple=True,
        metavar="FORMAT[:FILE]",
        envvar="TSDYN_LINT_OUTPUT_FORMAT",
        help=f"{', '.join(FORMATS)}; repeatable, so one can go to the screen and others into files.",
    ),
    click.option("--baseline", type=click.Path(dir_okay=False), help="Known findings: only others are reported."),
    click.option("--update-baseline", is_flag=True, help="Write what is found now as the baseline."),
    _lists("--exclude", "Leave out these files and folders in place of the usual ones."),
    _lists("--extend-exclude", "Leave out these files and folders too."),
    _switch("--respect-gitignore/--no-respect-gitignore", "Leave out what .gitignore names (default)."),
    _switch("--force-exclude/--no-force-exclude", "Leave out excluded files even if they are named."),
    click.option("--isolated", is_flag=True, help="Ignore configuration files."),
    click.option(
        "--config",
        "configs",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        help="A configuration for all paths, or one key.",
    ),
    click.option(
        "-n", "--no-cache", is_flag=True, envvar="TSDYN_LINT_NO_CACHE", help="Neither read nor write the cache."
    ),
    click.option(
        "--cache-dir", type=click.Path(file_okay=False), envvar="TSDYN_LINT_CACHE_DIR", help="Where the cache lies."
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=0), default=0, help="Processes; 0 for one a processor."),
    click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of what `-` reads."),
    *VERIFY_OPTIONS,
    click.option("--statistics", is_flag=True, help="Show how often each rule fired in place of the findings."),
    click.option("-e", "--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
    click.option("--show-settings", is_flag=True, help="Print the settings of the first path, and stop."),
    click.option("--show-files", is_flag=True, help="Print the files that would be linted, and stop."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours."),
    click.option("-q", "--quiet", is_flag=True, help="Findings only, no summary."),
    click.option("-v", "--verbose", is_flag=True, help="Say more: files, settings, tracebacks."),
    click.option("-w", "--watch", is_flag=True, help="Lint again whenever a file changes (extra: watch)."),
]
