"""Regression cases in Markdown: `cases/*.md`, each heading a test, each of its Python blocks a file.

A block's fence may name its file (```` ```python helper.py ````; the first is `model.py`). A line ends in
`# error: [rule-name]`, or `# error: [rule-name: dynamo, trace]` where the engines matter too; several rules
are separated by `;`. No other line may have a finding; TorchScript's own rules (TSD1xx) count in a case that marks one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.rulebook import load_rules
from tsdyn_lint.session import lint
from tsdyn_lint.source import make_source

CASES = Path(__file__).parent / "cases"
RULEBOOK = load_rules()
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```python[ \t]*(?P<name>\S+\.py)?[ \t]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"[ \t]*# error: \[(?P<marks>[^\]]+)\][ \t]*$")


@dataclass(frozen=True)
class Case:
    """A heading with code under it: file name -> text, marks left in."""

    name: str
    files: dict[str, str]


def cases() -> Iterator[Case]:
    """All of them, in the order of the files."""
    for page in sorted(CASES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        headings = [*_HEADING.finditer(re.sub(r"^```.*?^```", _blank, text, flags=re.MULTILINE | re.DOTALL))]
        for heading, following in zip(headings, [*headings[1:], None], strict=True):
            section = text[heading.end() : following.start() if following else len(text)]
            files = {block["name"] or "model.py": block["code"] for block in _BLOCK.finditer(section)}
            if files:
                yield Case(f"{page.stem}: {heading['title']}", files)


def _blank(block: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", block[0])


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    sources = []
    for name, code in case.files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = "\n".join(_MARK.sub("", line) for line in code.splitlines()) + "\n"
        path.write_text(plain, encoding="utf-8")
        sources.append(make_source(path, plain.encode()))
    settings = Settings(root=tmp_path, engines=frozenset(Engine), torch_version=(2, 13), selected=RULEBOOK.codes)
    found = lint(sources, settings, RULEBOOK)
    assert sorted(fired(case, found, tmp_path)) == sorted(marked(case))
    heard = frozenset(Engine) - {Engine.SCRIPT}  # whose part its own compiler decides, after the message is made
    unsaid = [(f.message, e.value) for f in found for e in heard.intersection(f.engines) if e.value not in f.message]
    assert not unsaid, "a message says what happens in each capture that its finding names"


def marked(case: Case) -> Iterator[str]:
    """`file:row rule` for each mark, with the engines where it says them."""
    for name, code in case.files.items():
        for row, line in enumerate(code.splitlines(), 1):
            if mark := _MARK.search(line):
                for one in mark["marks"].split(";"):
                    rule, _, engines = (part.strip() for part in one.partition(":"))
                    assert rule in RULEBOOK, f"{name}:{row}: no rule is called {rule}"
                    yield f"{name}:{row} {rule}{_spelled(engines.split(',')) if engines else ''}"


def fired(case: Case, findings: list[Finding], folder: Path) -> Iterator[str]:
    """The findings in the same spelling; engines only where the mark of that line and rule says them."""
    told = {text.partition(" (")[0] for text in marked(case) if "(" in text}
    script_too = any(RULEBOOK[text.split(" ")[1]].code.startswith("TSD1") for text in marked(case))
    for finding in findings:
        if finding.code.startswith("TSD1") and not script_too:
            continue
        place = f"{Path(finding.filename).relative_to(folder).as_posix()}:{finding.start.row} {finding.name}"
        yield place + (_spelled([engine.value for engine in finding.engines]) if place in told else "")


def _spelled(engines: list[str]) -> str:
    return f" ({', '.join(sorted(engine.strip() for engine in engines))})"
