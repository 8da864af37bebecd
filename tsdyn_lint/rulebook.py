"""`rules/*.md` -> `RuleBook`: what each rule says, found by code and name, and chosen by code, prefix or name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tsdyn_lint import toml
from tsdyn_lint.findings import Engine, Severity
from tsdyn_lint.spelling import nearest, suggestion

HEADINGS = ("What it does", "Why it breaks", "Example", "Use instead", "References")
_STATUSES = ("preview", "stable", "deprecated")
_FIXES = ("none", "display", "unsafe", "safe")
_OUTCOMES = ("breaks", "raises", "wrong")
_REQUIRED = ("code", "name", "message", "engines", "severity", "status", "since", "fix")
_OPTIONAL = ("gb", "torch", "outcome", "effect", "advice", "match")
_CODE = re.compile(r"[A-Z]{1,4}[0-9]{3}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FENCE = re.compile(r"^```python[ \t]*(?P<kind>fixed)?[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_EXPECTED = re.compile(r"#\s*error(?::\s*\[(?P<names>[^\]]*)\])?")


class RuleError(Exception):
    """A rule page that cannot be used, or a selector that names no rule."""


@dataclass(frozen=True)
class Example:
    """A block of a page: a whole file, the rule names expected at each of its rows, and whether it shows the fix."""

    code: str
    fixed: bool
    expected: Mapping[int, frozenset[str]]
    first_row: int


@dataclass(frozen=True)
class Rule:
    """One page: its front matter and its text.

    `match` is the declarative test of an event, None where a check function decides; `text` is the Markdown body.
    """

    code: str
    name: str
    message: str
    engines: tuple[Engine, ...]
    severity: Severity
    status: str
    since: str
    fix: str
    path: Path
    text: str
    gb: tuple[str, ...] = ()
    torch: str = ""
    outcome: str | Mapping[str, str] = "breaks"
    effect: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    match: Mapping[str, Any] | None = None

    def holds_for(self, version: tuple[int, int]) -> bool:
        """Whether the page claims anything about this torch (`torch = ">=2.11,<2.14"`)."""
        return version_in(version, self.torch)

    @property
    def is_about_captures(self) -> bool:
        """False for the tool's own rules (`TSD0xx`), which no capture decides."""
        return bool(self.engines)

    @cached_property
    def summary(self) -> str:
        """The first sentence of `What it does`."""
        found = re.search(r"^## What it does\s+(.+?)(?:\n\s*\n|\Z)", self.text, re.MULTILINE | re.DOTALL)
        paragraph = " ".join(found[1].split()) if found else ""
        return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The page's Python blocks in order."""
        return tuple(_examples(self))


class RuleBook:
    """All rules of a run. Iterates in the order of codes; `["TSD201"]` and `["data-dependent-branch"]` both work.

    `pages` are built-in ones, whose file names say code and name; each is read when something asks what it says.
    """

    def __init__(self, rules: Iterable[Rule] = (), pages: Iterable[Path] = ()) -> None:
        self._read: dict[str, Rule] = {}
        self._paths: dict[str, Path] = {}
        self._code_of: dict[str, str] = {}
        for path in pages:
            code, _, name = path.stem.partition("-")
            self._add(code, name, path)
        for rule in rules:
            self._add(rule.code, rule.name, rule.path)
            self._read[rule.code] = rule

    def _add(self, code: str, name: str, path: Path) -> None:
        for key in (code, name):
            if key in self._code_of:
                raise RuleError(f"{path}: {key} is already the rule of {self._paths[self._code_of[key]]}")
            self._code_of[key] = code
        self._paths[code] = path

    @classmethod
    def joined(cls, books: Iterable[RuleBook]) -> RuleBook:
        """The rules of all of the books, a rule of several of them once."""
        whole = cls()
        for book in books:
            whole._read.update(book._read)
            whole._paths.update(book._paths)
            whole._code_of.update(book._code_of)
        return whole

    def __iter__(self) -> Iterator[Rule]:
        return (self[code] for code in sorted(self._paths))

    def __getitem__(self, key: str) -> Rule:
        code = self._code_of[key]
        if code not in self._read:
            self._read[code] = read_rule(self._paths[code])
        return self._read[code]

    def __contains__(self, key: object) -> bool:
        return key in self._code_of

    def __getstate__(self) -> dict[str, Any]:
        """For another process: read here, once for all of them."""
        for code in self._paths:
            self[code]
        return self.__dict__

    def get(self, key: str) -> Rule | None:
        return self[key] if key in self else None

    def match_of(self, code: str) -> Mapping[str, Any] | None:
        """The `[match]` table of a rule; of a page that nothing has asked for yet, no more than that is read."""
        return self._read[code].match if code in self._read else _read_match(self._paths[code])

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(self._paths)

    def matching(self, selector: str) -> frozenset[str]:
        """Codes that a code, a code prefix (`TSD2`), a rule name or `ALL` stands for; raises RuleError for none."""
        if selector == "ALL":
            return self.codes
        if selector in self._code_of:
            return frozenset({self._code_of[selector]})
        found = frozenset(code for code in self.codes if code.startswith(selector)) if selector else frozenset()
        if not found:
            raise RuleError(f"no rule is called `{selector}`{self.suggestion(selector)}")
        return found

    def nearest(self, selector: str) -> str | None:
        """The code or name that a selector may have meant; None when no rule comes near."""
        return nearest(self._code_of, selector, selector.upper())

    def suggestion(self, selector: str) -> str:
        """`; did you mean ...?`, or nothing when no rule comes near."""
        return suggestion(self.nearest(selector))

    def resolve(self, select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
        """Codes that are selected and not ignored; the more specific selector wins, `ignore` between equals."""
        chosen: set[str] = set()
        ranked = sorted({self._rank(selector) for selector in (*select, *ignore)})
        for rank in ranked:
            for selector in select:
                if self._rank(selector) == rank:
                    chosen |= self.matching(selector)
            for selector in ignore:
                if self._rank(selector) == rank:
                    chosen -= self.matching(selector)
        return frozenset(chosen)

    def _rank(self, selector: str) -> int:
        if selector == "ALL":
            return 0
        return 1000 if selector in self._code_of else len(selector)


def load_rules(extra_paths: Sequence[Path] = ()) -> RuleBook:
    """The built-in pages and those of the user's folders or files; raises RuleError for a page that is not valid."""
    given: list[Path] = []
    for path in extra_paths:
        if path.is_dir():
            given.extend(sorted(path.glob("*.md")))
        elif path.is_file():
            given.append(path)
        else:
            raise RuleError(f"{path}: no such rule page or folder")
    folder = rules_folder()
    pages = [folder / name for name in sorted(os.listdir(folder)) if name.endswith(".md") and name[0].isupper()]
    return RuleBook(map(read_rule, given), pages)


@cache
def rules_folder() -> Path:
    """Where the pages and torch data lie: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_rules", package.parent / "rules"):
        if folder.is_dir():
            return folder
    raise RuleError(f"the rule pages are missing beside {package}")


def read_rule(path: Path) -> Rule:
    """One page; raises RuleError, with the file and the key, for what is wrong with its front matter."""
    try:
        return parse_rule(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeError) as problem:
        raise RuleError(f"{path}: {problem}") from problem


def parse_rule(page: str, path: Path) -> Rule:
    """`read_rule` on the text of a page."""
    parts = page.split("+++\n", 2) if page.startswith("+++\n") else []
    if len(parts) != 3:
        raise RuleError(f"{path}: a rule page begins with TOML between two lines of +++")
    try:
        front = toml.loads(parts[1])
    except ValueError as problem:
        raise RuleError(f"{path}: {problem}") from problem
    return _rule_of(front, parts[2], path)


def _read_match(path: Path) -> Mapping[str, Any] | None:
    """`[match]` of a built-in page: TOML costs more than all else that is done with the pages of rules that find
    nothing.
    """
    front = path.read_text(encoding="utf-8").split("+++\n", 2)[1]
    at = front.find("\n[match]\n")
    return toml.loads(front[at:])["match"] if at >= 0 else None


@cache
def version_in(version: tuple[int, int], requirement: str) -> bool:
    """Whether `(2, 13)` satisfies `>=2.11,<2.14`; an empty requirement holds always. Raises ValueError for others."""
    for part in filter(None, (piece.strip() for piece in requirement.split(","))):
        found = re.fullmatch(r"(>=|<=|==|!=|<|>)\s*(\d+)\.(\d+)(?:\.\d+)?", part)
        if not found:
            raise ValueError(f"`{part}` is not a version requirement such as >=2.11")
        bound = (int(found[2]), int(found[3]))
        holds = {
            ">=": version >= bound,
            "<=": version <= bound,
            "==": version == bound,
            "!=": version != bound,
            "<": version < bound,
            ">": version > bound,
        }
        if not holds[found[1]]:
            return False
    return True


def _is_event(event: object) -> bool:
    return isinstance(event, str) or (isinstance(event, list) and all(isinstance(kind, str) for kind in event))


def _rule_of(front: dict[str, Any], text: str, path: Path) -> Rule:
    def refuse(problem: str) -> RuleError:
        return RuleError(f"{path}: {problem}")

    if missing := [key for key in _REQUIRED if key not in front]:
        raise refuse(f"`{missing[0]}` is missing from the front matter")
    if unknown := [key for key in front if key not in (*_REQUIRED, *_OPTIONAL)]:
        raise refuse(f"unknown key `{unknown[0]}`")
    if not isinstance(front["code"], str) or not _CODE.fullmatch(front["code"]):
        raise refuse("`code` is letters and three digits, such as ABC123")
    if not isinstance(front["name"], str) or not _NAME.fullmatch(front["name"]):
        raise refuse("`name` is lower-case words joined by hyphens")
    for key, allowed in (("status", _STATUSES), ("fix", _FIXES), ("severity", [s.value for s in Severity])):
        if front[key] not in allowed:
            raise refuse(f"`{key}` is one of {', '.join(allowed)}")
    outcome = front.get("outcome", "breaks")
    for value in outcome.values() if isinstance(outcome, dict) else (outcome,):
        if value not in _OUTCOMES:
            raise refuse(f"`outcome` is one of {', '.join(_OUTCOMES)}")
    try:
        engines = tuple(engine for engine in Engine if engine in [Engine(name) for name in front["engines"]])
        version_in((0, 0), front.get("torch", ""))
    except ValueError as problem:
        raise refuse(str(problem)) from problem
    match = front.get("match")
    if match is not None and not _is_event(match.get("event")):
        raise refuse("`[match]` needs an `event`: a kind, or a list of kinds")
    advice = front.get("advice", "")
    return Rule(
        code=front["code"],
        name=front["name"],
        message=front["message"],
        engines=engines,
        severity=Severity(front["severity"]),
        status=front["status"],
        since=front["since"],
        fix=front["fix"],
        path=path,
        text=text,
        gb=tuple(front.get("gb", ())),
        torch=front.get("torch", ""),
        outcome=outcome,
        effect=front.get("effect", {}),
        advice=advice.get("text", "") if isinstance(advice, dict) else advice,
        match=match,
    )


def _examples(rule: Rule) -> Iterator[Example]:
    for fence in _FENCE.finditer(rule.text):
        expected: dict[int, frozenset[str]] = {}
        for row, line in enumerate(fence["body"].splitlines(), 1):
            if found := _EXPECTED.search(line):
                names = found["names"] if found["names"] is not None else rule.name
                expected[row] = frozenset(name.strip() for name in names.split(","))
        first_row = rule.text.count("\n", 0, fence.start("body")) + 1
        yield Example(fence["body"], fence["kind"] is not None, expected, first_row)
