"""`tsdyn-lint rule`: print rule pages, or test one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tsdyn_lint.config import Configs
from tsdyn_lint.configfile import Options
from tsdyn_lint.rulebook import Rule, RuleBook


@click.command(
    "rule",
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS]",
)
@click.argument("names", nargs=-1, metavar="CODE|NAME... | test FILE.md...")
@click.option("--all", "every", is_flag=True, help="Print every rule's page.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="How pages are printed.")
def command(names: tuple[str, ...], every: bool, output_format: str) -> int:
    """Print the page of a rule, by code or name; `rule test FILE.md` runs the examples of a page of your own."""
    if names[:1] == ("test",):
        return _test(names[1:])
    configs = Configs(Options())
    rulebook = configs.rulebook(configs.settings_for(Path.cwd()))
    if not every and not names:
        raise click.UsageError("name a rule, such as TSD201 or data-dependent-branch, or give --all")
    rules = list(rulebook) if every else [_find(rulebook, name) for name in names]
    if output_format == "json":
        click.echo(json.dumps([_as_json(rule) for rule in rules] if every or len(rules) > 1 else _as_json(rules[0])))
        return 0
    click.echo("\n".join(page(rule) for rule in rules), nl=False)
    return 0


def page(rule: Rule) -> str:
    """A rule as Markdown for the terminal: a heading with its facts, then its page."""
    facts = [f"severity {rule.severity.value}", f"{rule.status} since {rule.since}", f"fix: {rule.fix}"]
    if rule.engines:
        facts.insert(0, f"breaks {', '.join(engine.value for engine in rule.engines)}")
    if rule.gb:
        facts.append(f"Dynamo's {', '.join(rule.gb)}")
    if rule.torch:
        facts.append(f"torch {rule.torch}")
    return f"# {rule.name} ({rule.code})\n\n{'; '.join(facts)}.\n\n{rule.text.strip()}\n"


def _find(rulebook: RuleBook, name: str) -> Rule:
    rule = rulebook.get(name) or rulebook.get(name.upper())
    if rule is None:
        raise click.UsageError(f"no rule is called `{name}`{rulebook.suggestion(name)}")
    return rule


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary,
        "message": rule.message,
        "engines": [engine.value for engine in rule.engines],
        "severity": rule.severity.value,
        "status": rule.status,
        "since": rule.since,
        "fix": rule.fix,
        "gb": list(rule.gb),
        "torch": rule.torch,
        "explanation": rule.text.strip(),
    }


def _test(files: tuple[str, ...]) -> int:
    from tsdyn_lint.pagetest import page_problems
    from tsdyn_lint.rulebook import load_rules, read_rule

    if not files:
        raise click.UsageError("`rule test` wants a rule page, such as rules/my-rule.md")
    failed = False
    for file in map(Path, files):
        rule = read_rule(file)
        problems = page_problems(rule, load_rules((file,)) if rule.code not in load_rules() else load_rules())
        failed = failed or bool(problems)
        click.echo(f"{file}: {'failed' if problems else 'passed'}")
        for problem in problems:
            click.echo(f"  {problem}")
    return int(failed)
