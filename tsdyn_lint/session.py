"""Drives a run: files -> groups of one configuration -> analysis -> suppressions -> fixes -> what is reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tsdyn_lint.config import Configs, Settings
from tsdyn_lint.files import find_files
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.judge import default_jobs, internal_error, judge
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source, by_cell, check_syntax, make_source, read_source, syntax_finding
from tsdyn_lint.suppress import suppress
from tsdyn_lint.usage import captures_used, engines_used

_FIX_ROUNDS = 10


@dataclass(frozen=True)
class Request:
    """What a run is asked for. `stdin` is the text of `stdin_path`, linted in place of `paths`."""

    configs: Configs
    paths: tuple[Path, ...] = (Path("."),)
    stdin: bytes | None = None
    stdin_path: Path = Path("-")
    jobs: int = 0
    fix: bool = False
    unsafe_fixes: bool = False


@dataclass(frozen=True)
class Group:
    """Files that share their settings, with the engines they are judged for."""

    settings: Settings
    rulebook: RuleBook
    sources: list[Source]
    engine_reason: str

    @property
    def checked(self) -> str:
        """`dynamo and script (asked for) for torch 2.13 (installed)`."""
        names = [engine.value for engine in Engine if engine in (self.settings.engines or ())]
        joined = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
        version = ".".join(map(str, self.settings.torch_version))
        return f"{joined} ({self.engine_reason}) for torch {version} ({self.settings.torch_reason})"


@dataclass(frozen=True)
class Outcome:
    """A finished run: findings in order of place, rows within a notebook counted by cell."""

    groups: list[Group]
    findings: list[Finding]
    sources: dict[str, Source]
    fixed: dict[str, tuple[Source, Source]] = field(default_factory=dict)
    """Files that fixes changed: as they were, and as they are to be. Nothing is written here."""
    fix_count: int = 0
    targets: list[dict[str, Any]] | None = None
    """What `--verify` saw, as the JSON report prints it; None without it."""


def run(request: Request) -> Outcome:
    """The whole run but for writing; raises ConfigError and MissingPathError."""
    groups = collect(request)
    jobs = request.jobs or default_jobs()
    found: list[Finding] = []
    sources: dict[str, Source] = {}
    fixed: dict[str, tuple[Source, Source]] = {}
    count = 0
    for group in groups:
        findings = lint(group.sources, group.settings, group.rulebook, jobs)
        now = {str(source.path): source for source in group.sources}
        if request.fix:
            findings, changed, group_count = _fix(findings, now, group, request.unsafe_fixes, jobs)
            fixed.update({name: (now[name], source) for name, source in changed.items()})
            now.update(changed)
            count += group_count
        sources.update(now)
        found.extend(by_cell(now[finding.filename], finding) for finding in findings)
    found.sort(key=lambda finding: finding.sort_key)
    return Outcome(groups, found, sources, fixed, count)


def collect(request: Request) -> list[Group]:
    """The sources of a run by their settings, engines decided."""
    by_settings: dict[int, tuple[Settings, list[Source]]] = {}
    for source, settings in _sources(request):
        by_settings.setdefault(id(settings), (settings, []))[1].append(source)
    groups = []
    for settings, sources in by_settings.values():
        engines, reason = settings.engines, "asked for"
        if engines is None:
            engines, reason = engines_used(name for source in sources for name in captures_used(source.data))
        groups.append(Group(replace(settings, engines=engines), request.configs.rulebook(settings), sources, reason))
    return groups


def lint(sources: Sequence[Source], settings: Settings, rulebook: RuleBook, jobs: int = 1) -> list[Finding]:
    """Findings of the sources that suppressions and settings let through, in order; `settings.engines` is decided."""
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in judge(sources, settings, rulebook, jobs).findings:
        by_file[finding.filename].append(finding)
    kept: list[Finding] = []
    for source in sources:
        selected = settings.selected_for(source.path)
        try:
            findings, unused = suppress(
                source, by_file[str(source.path)], rulebook, _judged(selected, settings, rulebook)
            )
        except Exception as problem:
            findings, unused = [*by_file[str(source.path)], internal_error(source.path, problem)], []
        for finding in (*findings, *unused):
            always = finding.code == "TSD099"
            sure = finding.confidence.rank >= settings.min_confidence.rank
            if always or (finding.code in selected and sure):
                kept.append(finding)
    return sorted(kept, key=lambda finding: finding.sort_key)


def _sources(request: Request) -> Iterable[tuple[Source, Settings]]:
    if request.stdin is not None:
        path = request.stdin_path.absolute()
        settings = request.configs.settings_for(path.parent)
        if not (settings.force_exclude and any(settings.excludes(part) for part in (path, *path.parents))):
            yield make_source(path, request.stdin), settings
        return
    for path, settings in find_files(request.paths, request.configs):
        try:
            yield read_source(path), settings
        except OSError as problem:
            unread = syntax_finding(path, f"cannot be read: {problem.strerror or problem}")
            yield replace(make_source(path, b""), error=unread), settings


def _judged(selected: frozenset[str], settings: Settings, rulebook: RuleBook) -> frozenset[str]:
    """Codes whose rules ran: a suppression of any other may be needed elsewhere."""
    engines = settings.engines or frozenset()
    return frozenset(
        rule.code
        for rule in rulebook
        if rule.code in selected
        and not rule.code.startswith("TSD9")  # only `--verify` sees those
        and rule.holds_for(settings.torch_version)
        and (not rule.engines or engines & set(rule.engines))
    )


def _fix(
    findings: list[Finding], sources: dict[str, Source], group: Group, unsafe: bool, jobs: int
) -> tuple[list[Finding], dict[str, Source], int]:
    """Applies fixes and judges again what they changed, until nothing is left to fix.

    A file that would no longer parse is left as it was. Returns the findings that remain, the changed sources and
    the number of findings fixed.
    """
    from tsdyn_lint.fix import apply_fixes

    changed: dict[str, Source] = {}
    given_up: set[str] = set()
    count = 0
    for _ in range(_FIX_ROUNDS):
        by_file: dict[str, list[Finding]] = defaultdict(list)
        for finding in findings:
            by_file[finding.filename].append(finding)
        this_round: dict[str, Source] = {}
        for name, own in by_file.items():
            source = changed.get(name, sources[name])
            result = apply_fixes(source, own, unsafe)
            if not result.count or name in given_up or source.error:
                continue
            new = make_source(source.path, source.encoded(result.text))
            if new.error or check_syntax(new):
                given_up.add(name)
                continue
            this_round[name] = new
            count += result.count
        if not this_round:
            break
        changed.update(this_round)
        again = lint(list(this_round.values()), group.settings, group.rulebook, jobs)
        findings = [finding for finding in findings if finding.filename not in this_round] + again
    return sorted(findings, key=lambda finding: finding.sort_key), changed, count
