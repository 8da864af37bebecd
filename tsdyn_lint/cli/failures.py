"""Exceptions -> exit codes, in one place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click


def exit_code_of(function: Callable[[], Any]) -> int:
    """The code a run ends with: its own, 2 for wrong usage, configuration or an internal error, 130 after ^C."""
    try:
        result = function()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as problem:
        problem.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as problem:
        return _report(problem)


def _report(problem: Exception) -> int:
    from tsdyn_lint import __version__
    from tsdyn_lint.configfile import ConfigError
    from tsdyn_lint.files import MissingPathError
    from tsdyn_lint.rulebook import RuleError

    if isinstance(problem, (ConfigError, MissingPathError, RuleError, OSError)):
        print(f"tsdyn-lint: {problem}", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    python = ".".join(map(str, sys.version_info[:3]))
    name = type(problem).__name__
    print(f"tsdyn-lint {__version__} (Python {python}): internal error: {name}: {problem}", file=sys.stderr)
    return 2
