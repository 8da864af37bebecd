"""The command line: one module a verb; `check` is the verb of a line that names none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from tsdyn_lint import __version__
from tsdyn_lint.cli.failures import exit_code_of

_VERBS = {
    "check": "Lint files and folders: what is meant when no verb is given.",
    "rule": "Print a rule's page, or test a page of your own.",
    "config": "Print the settings that hold for a path, and where each comes from.",
    "clean": "Remove the caches below the working folder.",
    "lsp": "Serve an editor over standard input and output (extra: lsp).",
}


class Verbs(click.Group):
    """A group whose verbs are imported when they are run, and whose unknown first word belongs to `check`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"tsdyn_lint.cli.{name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*_VERBS, "--help", "-h", "--version", "-V"):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))
        check = self.get_command(ctx, "check")
        assert check is not None
        own = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        options = [param.get_help_record(ctx) for param in check.get_params(ctx) if param.name not in ("help", "paths")]
        with formatter.section("Options"):
            formatter.write_dl([record for record in (*options, *own) if record])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Runs a line and exits: 0 for nothing to report, 1 for findings, 2 for anything that went wrong."""
        standalone = extra.pop("standalone_mode", True)
        if not standalone:
            return super().main(args, prog_name or "tsdyn-lint", standalone_mode=False, **extra)
        sys.exit(exit_code_of(lambda: super(Verbs, self).main(args, "tsdyn-lint", standalone_mode=False, **extra)))


@click.group(
    cls=Verbs,
    name="tsdyn-lint",
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS]",
    subcommand_metavar="[check] [OPTIONS] [PATHS]... | VERB ...",
)
@click.version_option(__version__, "-V", "--version", prog_name="tsdyn-lint", message="%(prog)s %(version)s")
def main() -> None:
    """Flags the lines of PyTorch code that break a capture: torch.compile, torch.jit.script, torch.jit.trace or
    torch.export. A line without a verb lints PATHS (default: the working folder)."""
