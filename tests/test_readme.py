"""The README shows what is true: its example's output, its rule table (`UPDATE=1` rewrites both), its commands."""

from __future__ import annotations

import os
import re
import shlex

from conftest import REPOSITORY, run_cli

from tsdyn_lint.rulebook import Rule, load_rules

README = REPOSITORY / "README.md"


def rule_table() -> str:
    lines = ["| code | name | breaks | what it does |", "| --- | --- | --- | --- |"]
    lines += [_row(rule) for rule in load_rules()]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    engines = ", ".join(engine.value for engine in rule.engines)
    page = f"rules/{rule.path.name}"
    return f"| [{rule.code}]({page}) | {rule.name} | {engines} | {rule.summary.replace('|', chr(92) + '|')} |"


def example_output(command: str) -> str:
    done = run_cli("--isolated", "--no-cache", "--torch-version", "2.13", *shlex.split(command), cwd=REPOSITORY)
    return f"```\n{done.stdout.replace('set in --torch-version', 'installed')}```\n"


def generated(text: str) -> str:
    """The README with its generated parts as they must be."""
    start, end = "<!-- rules -->\n", "<!-- /rules -->"
    text = text[: text.index(start) + len(start)] + rule_table() + text[text.index(end) :]
    example = re.compile(r"(<!-- example: (.*?) -->\n).*?(<!-- /example -->)", re.DOTALL)
    return example.sub(lambda found: found[1] + example_output(found[2]) + found[3], text)


def test_the_generated_parts_are_current() -> None:
    text = README.read_text(encoding="utf-8")
    wanted = generated(text)
    if os.environ.get("UPDATE"):
        README.write_text(wanted, encoding="utf-8")
    assert README.read_text(encoding="utf-8") == wanted, "run: UPDATE=1 python -m pytest tests/test_readme.py"


def test_the_code_shown_is_that_of_the_file() -> None:
    shown = README.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert shown in (REPOSITORY / "fixtures/models/loop_model.py").read_text()


def test_every_file_it_links_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert target.startswith("http") or (REPOSITORY / target).exists(), target


def test_every_option_it_shows_is_one() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", run_cli("--help", cwd=REPOSITORY).stdout))
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if "pytest" not in line]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines))) <= known


def test_ci_runs_the_test_command_that_it_shows() -> None:
    assert len(re.findall(r"<!-- tests -->\n```sh\n(.+)\n```\n", README.read_text(encoding="utf-8"))) == 1
    assert "<!-- tests -->" in (REPOSITORY / ".ci/run").read_text()
