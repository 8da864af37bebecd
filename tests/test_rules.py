"""Every rule page is true: well formed, its marked lines fire and no others, its better form is silent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import REPOSITORY, Project

from tsdyn_lint.checks import CHECKS
from tsdyn_lint.findings import Engine
from tsdyn_lint.pagetest import page_problems
from tsdyn_lint.rulebook import Rule, RuleError, load_rules, parse_rule, version_in

RULEBOOK = load_rules()
PAGE = (REPOSITORY / "rules" / "TSD301-print-call.md").read_text()


@pytest.mark.parametrize("rule", list(RULEBOOK), ids=lambda rule: rule.code)
def test_page(rule: Rule) -> None:
    assert rule.path.name == f"{rule.code}-{rule.name}.md"
    assert rule.summary
    assert not rule.is_about_captures or (rule.examples and any(example.fixed for example in rule.examples))
    assert page_problems(rule, RULEBOOK) == []


def test_a_code_has_a_match_table_or_a_check_function_and_not_both() -> None:
    judged = {rule.code for rule in RULEBOOK if rule.is_about_captures and not rule.code.startswith("TSD9")}
    with_table = {rule.code for rule in RULEBOOK if rule.match is not None}
    assert with_table.isdisjoint(CHECKS)
    assert with_table | set(CHECKS) == judged


def test_every_rule_of_torchscripts_types_is_raised_by_its_checker() -> None:
    sources = "".join(path.read_text() for path in sorted((REPOSITORY / "tsdyn_lint/script").rglob("*.py")))
    typed = {rule.code for rule in RULEBOOK if rule.code.startswith("TSD1") and rule.match is None}
    assert typed <= set(re.findall(r"TSD1\d\d", sources)) | set(CHECKS)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('code = "TSD301"', 'code = "T1"', "`code` is letters and three digits"),
        ('name = "print-call"', 'name = "Print call"', "`name` is lower-case words"),
        ('severity = "error"', 'severity = "fatal"', "`severity` is one of"),
        ('fix = "none"', 'fix = "maybe"', "`fix` is one of"),
        ('since = "0.1.0"', "", "`since` is missing"),
        ('since = "0.1.0"', 'since = "0.1.0"\nbogus = 1', "unknown key `bogus`"),
        ('torch = ">=2.11"', 'torch = "new"', "`new` is not a version requirement"),
        ("engines = [", 'engines = ["jax", ', "'jax' is not a valid Engine"),
        ("+++\n", "", "between two lines of +++"),
    ],
)
def test_a_page_that_is_not_valid_says_what_is_wrong(old: str, new: str, complaint: str) -> None:
    assert old in PAGE
    with pytest.raises(RuleError, match=re.escape(complaint)):
        parse_rule(PAGE.replace(old, new, 1), Path("page.md"))


def test_two_pages_may_not_share_a_code_or_name(tmp_path: Path) -> None:
    (tmp_path / "twin.md").write_text(PAGE)
    with pytest.raises(RuleError, match="TSD301 is already the rule of"):
        load_rules((tmp_path,))


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [("", True), (">=2.11", True), (">=2.14", False), (">=2.11,<2.13", False), ("<2.14", True), ("!=2.13", False)],
)
def test_version_requirements(requirement: str, holds: bool) -> None:
    assert version_in((2, 13), requirement) is holds


def test_the_page_test_catches_each_kind_of_untruth(project: Project) -> None:
    def problems(page: str) -> list[str]:
        path = project.write("TSD301-print-call.md", page)
        return page_problems(parse_rule(page, path), RULEBOOK)

    sound = (REPOSITORY / "rules" / "TSD000-syntax-error.md").read_text()
    assert problems(sound) == []
    assert "does not fire" in problems(sound.replace("return x", "return x  # error", 1))[0]
    assert "fires unasked" in problems(sound.replace("  # error", ""))[0]
    assert "fires unasked" in problems(sound.replace("fixed\n", "fixed\ndef f(:\n"))[0]
    assert "its headings are" in problems(sound.replace("## Why it breaks", "## Why"))[0]


def test_rule_test_runs_a_users_page(project: Project) -> None:
    sound = (REPOSITORY / "rules" / "TSD001-unused-suppression.md").read_text()
    project.write("good.md", sound)
    project.write("bad.md", sound.replace("  # error", ""))
    assert project.run("rule", "test", "good.md").stdout == "good.md: passed\n"
    result = project.run("rule", "test", "good.md", "bad.md")
    assert result.exit_code == 1
    assert "bad.md: failed\n  example, line 5: unused-suppression fires unasked" in result.stdout
    assert project.run("rule", "test", "gone.md").exit_code == 2


def test_engines_are_in_their_order() -> None:
    for rule in RULEBOOK:
        assert list(rule.engines) == [engine for engine in Engine if engine in rule.engines]


def test_a_match_table_alone_is_that_of_the_whole_page() -> None:
    unread = load_rules()
    assert {rule.code: unread.match_of(rule.code) for rule in RULEBOOK} == {rule.code: rule.match for rule in RULEBOOK}
