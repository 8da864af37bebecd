"""`--verify`: its options, the bar that shows how far it is, and an `Outcome` with what torch said."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsdyn_lint.configfile import ConfigError
from tsdyn_lint.findings import Finding

if TYPE_CHECKING:
    from tsdyn_lint.session import Outcome

_OPEN = ("masked", "not-reached", "not-run")
_BAR = 24


class CheckCommand(click.Command):
    """A command whose `--verify` takes a value only after `=`, so that a path may follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        plain = ["--verify=confirm" if arg == "--verify" else arg for arg in args[:end]]
        return super().parse_args(ctx, plain + args[end:])


def shard(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int]:
    """`I/N` as numbers, 1/1 without it."""
    if text is None:
        return (1, 1)
    first, _, count = text.partition("/")
    if not (first.isdigit() and count.isdigit() and 1 <= int(first) <= int(count)):
        raise click.BadParameter("write I/N with 1 <= I <= N")
    return (int(first), int(count))


OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--verify",
        type=click.Choice(["confirm", "measure", "aot"]),
        metavar="[=STAGE]",
        help="Run the flagged modules on the installed torch and say which findings hold (extra: verify); =measure "
        "adds what compiling them costs and saves, =aot a package of AOTInductor too.",
    ),
    click.option(
        "--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where --verify runs; auto: CUDA if any."
    ),
    click.option(
        "--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds a target may take (120; measuring 900)."
    ),
    click.option("--memory", type=click.IntRange(min=1), help="MB a target may use (8192)."),
    click.option("--shard", metavar="I/N", callback=shard, help="Run only every N-th target, beginning with the I-th."),
    click.option(
        "--report",
        metavar="FILE.html",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write what --verify saw as one page: source by graph, figures, captures.",
    ),
    click.option("--backend", metavar="NAME", help="What --verify=measure compiles with: any of torch's (inductor)."),
    click.option(
        "--calls", type=click.IntRange(min=1), metavar="N", help="Say what compiling wins or loses over N calls."
    ),
    click.option("--update-budgets", is_flag=True, help="Write what --verify saw as budgets into the configuration."),
    click.option("--fail-unverified", is_flag=True, help="Fail on findings that --verify could not try."),
]


def verified(outcome: Outcome, given: Mapping[str, Any], jobs: int) -> Outcome:
    """The outcome with a verdict on each finding, what nobody predicted, and the targets; raises ConfigError."""
    from tsdyn_lint.verify.session import Group, NoTorch, Options, verify
    from tsdyn_lint.verify.target import TargetError

    options = Options(
        given["verify"], given["device"], given["timeout"], given["memory"], given["shard"], jobs,
        progress=_bar if sys.stderr.isatty() and not given["quiet"] else None, backend=given["backend"],
        calls=given["calls"],
    )  # fmt: skip
    groups = [
        Group(group.settings, group.rulebook, [outcome.library[str(path)] for path in group.paths])
        for group in outcome.groups
    ]
    try:
        found = verify(groups, outcome.findings, options)
    except (NoTorch, TargetError) as problem:
        raise ConfigError(str(problem)) from problem
    if found.left and not given["quiet"]:
        names = ", ".join(found.left)
        click.echo(f"Not run, the linted files have no part in them: {names}.", err=True)
    return replace(outcome, findings=found.findings, targets=found.targets)


def update_budgets(outcome: Outcome) -> list[str]:
    """Rewrites the configurations of the targets, and says so in a line each; raises ConfigError."""
    from tsdyn_lint.fix import write_atomically
    from tsdyn_lint.verify.budgetfile import NotWritable, update

    said = []
    for group in outcome.groups:
        try:
            found = update(group.settings, outcome.targets or ())
        except NotWritable as problem:
            raise ConfigError(f"--update-budgets: {problem}") from problem
        if found is not None:
            write_atomically(found.file, found.text.encode("utf-8"))
            kept = f"; {found.without} gave no figures and keep what they have" if found.without else ""
            targets = f"{found.written} target{'s' * (found.written != 1)}"
            said.append(f"Wrote the budgets of {targets} to {os.path.relpath(found.file)}{kept}.")
    if not said:
        raise ConfigError("--update-budgets needs targets: [[tool.tsdyn-lint.verify.targets]] in the configuration")
    return said


def fails(findings: Sequence[Finding], targets: Sequence[Mapping[str, Any]], fail_unverified: bool) -> bool:
    """Whether a verified run fails: something holds, nobody predicted it, a budget is broken, or it is left open."""
    from tsdyn_lint.verify.confirm import OTHER_SHARD

    wanted = {"confirmed", *(_OPEN if fail_unverified else ())}
    for finding in findings:
        if finding.severity.fails and (finding.verify is None or finding.verify["status"] in wanted):
            if finding.verify and all(seen["reason"] == OTHER_SHARD for seen in finding.verify["observed"]):
                continue
            return True
    if any(target["budget"]["broken"] for target in targets):
        return True
    return fail_unverified and any(target["failure"] or target["budget"].get("unknown") for target in targets)


def _bar(done: int, count: int, name: str) -> None:
    filled = _BAR * done // max(count, 1)
    text = f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {done}/{count} {name[:40]:<40}"
    print(text if done < count else "\r" + " " * len(text) + "\r", end="", file=sys.stderr, flush=True)
