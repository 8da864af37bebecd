"""A rule page -> what is wrong with it, its examples run through the linter. No torch here: `--verify` has that."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tsdyn_lint.config import KNOWN_TORCH, Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.rulebook import HEADINGS, Example, Rule, RuleBook
from tsdyn_lint.session import lint
from tsdyn_lint.source import make_source

_MARK = re.compile(r"[ \t]*#\s*error(?::\s*\[[^\]]*\])?[ \t]*$", re.MULTILINE)
_PINNED = (2, 13)


def page_problems(rule: Rule, rulebook: RuleBook) -> list[str]:
    """What keeps a page from being true: its headings, marked lines that do not fire, and others that do."""
    problems = list(_heading_problems(rule))
    found: set[Engine] = set()
    marked = 0
    for example in rule.examples:
        findings = lint_example(example, rule, rulebook)
        problems += _line_problems(rule, example, findings)
        found |= {engine for finding in findings if finding.code == rule.code for engine in finding.engines}
        marked += sum(rule.name in names for names in example.expected.values())
    if marked and found != set(rule.engines):
        said, seen = _names(set(rule.engines)), _names(found)
        problems.append(f"the page says it breaks {said}, the findings on its examples say {seen}")
    return problems


def lint_example(example: Example, rule: Rule, rulebook: RuleBook) -> list[Finding]:
    """The findings on a block as a file of its own, for all captures and a torch that the page speaks of."""
    held = [version for version in (_PINNED, *reversed(KNOWN_TORCH)) if rule.holds_for(version)]
    settings = Settings(
        root=Path("/"),
        engines=frozenset(Engine),
        torch_version=held[0] if held else _PINNED,
        selected=rulebook.codes,
    )
    source = make_source(Path(f"/{rule.name}/example.py"), unmarked(example.code).encode())
    return lint([source], settings, rulebook)


def unmarked(code: str) -> str:
    """A block without its `# error` comments."""
    return _MARK.sub("", code)


def _heading_problems(rule: Rule) -> Iterator[str]:
    headings = re.findall(
        r"^## (.+)$", re.sub(r"^```.*?^```", "", rule.text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    wanted = list(HEADINGS)
    if rule.fix == "unsafe":
        wanted.append("Fix safety")
    required = [heading for heading in headings if heading in wanted]
    if sorted(required) != sorted(wanted) or [h for h in required if h in HEADINGS] != list(HEADINGS):
        yield f"its headings are {', '.join(headings)}; they must be {', '.join(wanted)} in this order"


def _line_problems(rule: Rule, example: Example, findings: list[Finding]) -> Iterator[str]:
    fired: dict[int, set[str]] = defaultdict(set)
    for finding in findings:
        fired[finding.start.row].add(finding.name)
    kind = "fixed block" if example.fixed else "example"
    lines = example.code.splitlines()
    for row in sorted({*fired, *example.expected}):
        text = lines[row - 1].strip() if row <= len(lines) else ""
        for name in sorted(example.expected.get(row, frozenset()) - fired[row]):
            yield f"{kind}, line {row}: {name} does not fire: {text}"
        for name in sorted(fired[row] - example.expected.get(row, frozenset())):
            messages = [finding.message for finding in findings if finding.start.row == row and finding.name == name]
            yield f"{kind}, line {row}: {name} fires unasked ({messages[0]}): {text}"


def _names(engines: set[Engine]) -> str:
    return ", ".join(engine.value for engine in Engine if engine in engines) or "nothing"
