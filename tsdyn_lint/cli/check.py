"""`tsdyn-lint [check]`: options -> a `Request`, its outcome -> reports and an exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from tsdyn_lint.cli.options import check_options, layer_from, wants_colour
from tsdyn_lint.cli.verify import CheckCommand


@click.command("check", cls=CheckCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@check_options
def command(paths: tuple[Path, ...], **given: Any) -> int:
    """Lint PATHS (default: the working folder); `-` reads standard input."""
    if given["verbose"]:
        os.environ["TSDYN_LINT_TRACEBACK"] = "1"
    if given["watch"]:
        from tsdyn_lint.cli.watch import watch

        return watch(paths or (Path("."),), lambda: check(paths, given))
    return check(paths, given)


def check(paths: tuple[Path, ...], given: dict[str, Any]) -> int:
    """One run, from options to exit code."""
    from tsdyn_lint.cli.output import Output
    from tsdyn_lint.config import Configs
    from tsdyn_lint.session import Request, run

    for name in ("report", "update_budgets", "calls", "backend"):
        if given[name] and not given["verify"]:
            raise click.UsageError(f"--{name.replace('_', '-')} is about what --verify sees: give both")
    if given["report"] and not given["report"].absolute().parent.is_dir():
        raise click.UsageError(f"--report {given['report']}: no such folder")
    layer, file = layer_from(given)
    configs = Configs(layer, given["isolated"], file)
    from_stdin = paths == (Path("-"),)
    first = (given["stdin_filename"] or Path("-")) if from_stdin else (paths or (Path("."),))[0]
    first = Path(os.path.abspath(first))
    settings = configs.settings_for(first if first.is_dir() else first.parent)
    if given["show_settings"]:
        from tsdyn_lint.cli.config import describe

        click.echo(describe(settings), nl=False)
        return 0
    request = Request(
        configs,
        paths or (Path("."),),
        stdin=sys.stdin.buffer.read() if from_stdin and not given["show_files"] else None,
        stdin_path=given["stdin_filename"] or Path("-"),
        jobs=given["jobs"],
        fix=settings.fix or given["diff"],
        unsafe_fixes=settings.unsafe_fixes,
        use_cache=not given["no_cache"],
    )
    if given["show_files"]:
        from tsdyn_lint.files import find_files

        for path, _ in find_files(request.paths, configs):
            click.echo(str(path))
        return 0
    output = Output(
        settings,
        wants_colour(given["color"]),
        given["quiet"],
        given["verbose"],
        fail_unverified=given["fail_unverified"],
        page=given["report"],
    )
    outcome = run(request)
    if given["diff"]:
        return output.diff(outcome)
    written = not request.fix or output.write_fixes(outcome, to_stdout=from_stdin)
    if given["update_baseline"]:
        return output.update_baseline(outcome)
    if given["verify"]:
        from tsdyn_lint.cli.verify import verified
        from tsdyn_lint.judge import default_jobs

        outcome = verified(outcome, given, given["jobs"] or default_jobs())
    if given["update_budgets"]:
        return output.update_budgets(outcome)
    code = output.report(outcome, statistics=given["statistics"], to_stderr=from_stdin and request.fix)
    if not written:
        return 2
    if code == 1 and given["exit_zero"]:
        code = 0
    return 1 if code == 0 and given["exit_non_zero_on_fix"] and outcome.fix_count else code
