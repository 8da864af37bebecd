"""An `Outcome` -> the screen and files: reports, fixed sources, diffs, the baseline and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tsdyn_lint.cli.summary import summary, would_fix
from tsdyn_lint.config import Settings
from tsdyn_lint.configfile import ConfigError
from tsdyn_lint.findings import Finding
from tsdyn_lint.report import FOR_PEOPLE, render
from tsdyn_lint.report.run import Run
from tsdyn_lint.report.targets import render as render_targets
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.session import Outcome


@dataclass(frozen=True)
class Output:
    """Where a run's results go, as its settings and options say."""

    settings: Settings
    colour: bool
    quiet: bool = False
    verbose: bool = False
    fail_unverified: bool = False
    page: Path | None = None
    """Where the page about the targets of `--verify` goes."""

    def report(self, outcome: Outcome, statistics: bool = False, to_stderr: bool = False) -> int:
        """Writes every report that was asked for. Returns 2 for an internal error, 1 for findings that fail, else 0."""
        run = self._run(outcome)
        screen = []
        for wanted in self.settings.output_format:
            name, _, file = wanted.partition(":")
            if file not in ("", "-"):
                Path(file).write_text(render(name, replace(run, colour=False)), encoding="utf-8")
            else:
                screen.append(name)
                self._say(_statistics(run, name) if statistics else render(name, run), to_stderr)
                if run.targets and name in FOR_PEOPLE and not statistics:
                    self._say(render_targets(run), to_stderr)
        if not self.quiet and set(screen) <= set(FOR_PEOPLE):
            known = len(outcome.findings) - len(run.findings)
            self._say(summary(outcome, run.findings, known, self.settings.unsafe_fixes), to_stderr)
        if self.verbose:
            for group in outcome.groups:
                place = group.settings.config_file or "no configuration file"
                self._say(f"{len(group.paths)} files by {place}: {group.checked}\n", to_stderr=True)
        self._write_page(run)
        if run.targets is None or exit_code(run.findings) == 2:
            return exit_code(run.findings)
        from tsdyn_lint.cli.verify import fails

        return int(fails(run.findings, run.targets, self.fail_unverified))

    def write_fixes(self, outcome: Outcome, to_stdout: bool) -> bool:
        """Replaces the fixed files, or prints the fixed text of standard input. False if one could not be written."""
        from tsdyn_lint.fix import write_atomically

        if to_stdout:
            for path in outcome.files:
                sys.stdout.buffer.write(outcome.library[str(path)].data)
            return True
        failed = False
        for _, after in outcome.fixed.values():
            try:
                write_atomically(after.path, after.data)
            except OSError as problem:
                failed = True
                self._say(f"tsdyn-lint: {after.path}: not fixed: {problem.strerror or problem}\n", to_stderr=True)
        return not failed

    def diff(self, outcome: Outcome) -> int:
        """Prints what fixes would change. Returns 1 if that is anything."""
        from tsdyn_lint.fix import unified_diff

        run = self._run(outcome)
        for name, (before, after) in sorted(outcome.fixed.items()):
            self._say(unified_diff(run.shown(name), before.text, after.text))
        if not self.quiet:
            self._say(would_fix(outcome), to_stderr=True)
        return int(bool(outcome.fixed))

    def update_baseline(self, outcome: Outcome) -> int:
        """Writes the findings as known ones; raises ConfigError where no file is named."""
        from tsdyn_lint.baseline import write_baseline

        path = self.settings.baseline
        if path is None:
            raise ConfigError("--update-baseline needs --baseline FILE, or `baseline` in the configuration")
        write_baseline(path, outcome.findings, self._run(outcome, use_baseline=False).line)
        self._say(f"Wrote {len(outcome.findings)} findings to {os.path.relpath(path)}.\n")
        return 2 if exit_code(outcome.findings) == 2 else 0

    def update_budgets(self, outcome: Outcome) -> int:
        """Writes what the targets of `--verify` cost now as their budgets; raises ConfigError where that fails."""
        from tsdyn_lint.cli.verify import update_budgets

        self._write_page(self._run(outcome))
        for line in update_budgets(outcome):
            self._say(line + "\n")
        return 2 if exit_code(outcome.findings) == 2 else 0

    def _write_page(self, run: Run) -> None:
        if self.page is not None:
            from tsdyn_lint.report.page import render as render_page

            self.page.write_text(render_page(run), encoding="utf-8")

    def _run(self, outcome: Outcome, use_baseline: bool = True) -> Run:
        run = Run(
            outcome.findings,
            RuleBook.joined(group.rulebook for group in outcome.groups),
            outcome.library.get,
            outcome.files,
            colour=self.colour,
            targets=outcome.targets,
        )
        if not use_baseline or self.settings.baseline is None:
            return run
        from tsdyn_lint.baseline import only_new

        return replace(run, findings=only_new(self.settings.baseline, run.findings, run.line))

    def _say(self, text: str, to_stderr: bool = False) -> None:
        click.echo(text, nl=False, err=to_stderr, color=self.colour)


def exit_code(findings: Sequence[Finding]) -> int:
    """2 for an internal error, 1 for findings that fail a run, else 0."""
    if any(finding.code == "TSD099" for finding in findings):
        return 2
    return int(any(finding.severity.fails for finding in findings))


def _statistics(run: Run, format_name: str) -> str:
    from tsdyn_lint.report.statistics import render as render_statistics

    return render_statistics(run, as_json=format_name not in FOR_PEOPLE)
