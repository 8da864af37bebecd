"""Drives a run: files -> groups of one configuration -> findings -> fixes -> what is reported."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsdyn_lint.config import Configs, Settings
from tsdyn_lint.files import find_files
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.judge import default_jobs, judge
from tsdyn_lint.project import project_imports, project_usage
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.settle import settle
from tsdyn_lint.source import Library, Source, by_cell, check_syntax, make_source
from tsdyn_lint.usage import Usage, Whole, engines_used, whole_of

if TYPE_CHECKING:
    from tsdyn_lint.cache import Cache, Record
    from tsdyn_lint.incremental import Lint

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
    use_cache: bool = False


@dataclass(frozen=True)
class Group:
    """Files that share their settings, with the engines they are judged for."""

    settings: Settings
    rulebook: RuleBook
    paths: list[Path]
    engine_reason: str
    project: Whole = Whole()
    shared: frozenset[Path] = frozenset()
    """Files whose suppressions may serve others of the project, which this run does not lint."""

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
    library: Library
    fixed: dict[str, tuple[Source, Source]] = field(default_factory=dict)
    """Files that fixes changed: as they were, and as they are to be. Nothing is written here."""
    fix_count: int = 0
    targets: list[dict[str, Any]] | None = None
    """What `--verify` saw, as the JSON report prints it; None without it."""

    @property
    def files(self) -> list[Path]:
        return [path for group in self.groups for path in group.paths]


def run(request: Request) -> Outcome:
    """The whole run but for writing; raises ConfigError and MissingPathError."""
    library = Library()
    if request.stdin is not None:
        library.put(make_source(_stdin_path(request), request.stdin))
    groups = collect(request, library)
    jobs = request.jobs or default_jobs()
    found: list[Finding] = []
    fixed: dict[str, tuple[Source, Source]] = {}
    count = 0
    for group in groups:
        if request.fix:
            findings, changed, group_count = _fix(*_recorded(group, request, library, jobs), request.unsafe_fixes)
            fixed.update(changed)
            count += group_count
        else:
            findings = _lint_group(group, request, library, jobs)
        found.extend(by_cell(library[one.filename], one) if ".ipynb" in one.filename else one for one in findings)
    found.sort(key=lambda finding: finding.sort_key)
    return Outcome(groups, found, library, fixed, count)


def collect(request: Request, library: Library) -> list[Group]:
    """The files of a run by their settings, engines decided."""
    by_settings: dict[int, tuple[Settings, list[Path]]] = {}
    for path, settings in _files(request):
        by_settings.setdefault(id(settings), (settings, []))[1].append(path)
    groups = []
    for settings, paths in by_settings.values():
        memory = _cache(settings) if request.use_cache else None
        usage = project_usage(paths, request.configs, library, memory)
        used, reason = engines_used(name for one in usage.values() for name in one.captures)
        reason = "asked for" if settings.engines else reason
        suppressing = [name for name in map(str, paths) if usage[name].suppresses]
        own = (settings.own_engines or used) if suppressing else None  # nothing else hangs on them
        decided = replace(settings, engines=settings.engines or used, own_engines=own)
        shared = _shared(suppressing, paths, usage, library, memory)
        groups.append(Group(decided, request.configs.rulebook(settings), paths, reason, whole_of(usage), shared))
    return groups


def _shared(
    suppressing: list[str], linted: list[Path], usage: dict[str, Usage], library: Library, memory: Cache | None
) -> frozenset[Path]:
    """The files that others with torch in them run, which are not judged together with these."""
    judged = set(map(str, linted))
    outside = [name for name, one in usage.items() if one.torch and name not in judged] if suppressing else []
    if not outside:
        return frozenset()
    from tsdyn_lint.imports import reached

    return frozenset(map(Path, reached(outside, project_imports(usage, library, memory), suppressing)))


def _certain(findings: list[Finding], library: Library) -> list[Finding]:
    """Without claims that a suppression is for nothing, where nobody knows what a file that does not parse runs."""
    broken = {finding.filename for finding in findings if finding.code == "TSD000"}
    if not any(library[name].mentions_torch for name in broken):
        return findings
    return [finding for finding in findings if finding.code != "TSD001"]


def lint(
    sources: Sequence[Source],
    settings: Settings,
    rulebook: RuleBook,
    jobs: int = 1,
    project: Whole | None = None,
    shared: frozenset[Path] = frozenset(),
) -> list[Finding]:
    """Findings of the sources that suppressions and settings let through, in order; `settings.engines` is decided.

    `project`: what the files around them say, by default what the sources themselves do; `shared`: see `Group`.
    """
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in judge(sources, settings, rulebook, jobs, project=project).findings:
        by_file[finding.filename].append(finding)
    return [
        found
        for one in sources
        for found in settle(one, by_file[str(one.path)], settings, rulebook, one.path in shared)
    ]


def _lint_group(group: Group, request: Request, library: Library, jobs: int) -> list[Finding]:
    if request.use_cache and request.stdin is None:
        return _certain(_recorded(group, request, library, jobs)[1], library)
    sources = [library[str(path)] for path in group.paths]
    return _certain(lint(sources, group.settings, group.rulebook, jobs, group.project, group.shared), library)


def _recorded(group: Group, request: Request, library: Library, jobs: int) -> tuple[Lint, list[Finding], Record]:
    """The findings of a group, by way of the cache where it may be used, and what it takes to judge an edit of it."""
    from tsdyn_lint.incremental import Lint, lint_with

    task = Lint(group.paths, group.settings, group.rulebook, library, jobs, group.project, group.shared)
    if not request.use_cache or request.stdin is not None:
        return task, *task.all()
    return task, *lint_with(_cache(group.settings), task, [str(path.absolute()) for path in request.paths])


def _cache(settings: Settings) -> Cache:
    from tsdyn_lint.cache import Cache, cache_folder

    return Cache(cache_folder(settings))


def _stdin_path(request: Request) -> Path:
    return Path(os.path.abspath(request.stdin_path))


def _files(request: Request) -> Iterator[tuple[Path, Settings]]:
    if request.stdin is None:
        yield from find_files(request.paths, request.configs)
        return
    path = _stdin_path(request)
    settings = request.configs.settings_for(path.parent)
    if not (settings.force_exclude and any(settings.excludes(part) for part in (path, *path.parents))):
        yield path, settings


def _fix(
    task: Lint, findings: list[Finding], record: Record, unsafe: bool
) -> tuple[list[Finding], dict[str, tuple[Source, Source]], int]:
    """Applies fixes and judges again what they changed, until nothing is left to fix.

    A file that would no longer parse is left as it was. Returns the findings that remain, the changed files
    before and after, and the number of findings fixed; the task's library then holds the changed sources.
    """
    from tsdyn_lint.fix import apply_fixes

    library = task.library
    changed: dict[str, tuple[Source, Source]] = {}
    given_up: set[str] = set()
    count = 0
    findings = _certain(findings, library)
    for _ in range(_FIX_ROUNDS):
        by_file: dict[str, list[Finding]] = defaultdict(list)
        for finding in findings:
            by_file[finding.filename].append(finding)
        this_round: dict[str, Source] = {}
        for name, own in by_file.items():
            source = library[name]
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
        for name, new in this_round.items():
            changed[name] = (changed[name][0] if name in changed else library[name], new)
            library.put(new)
        findings, fresh = task.again(record)
        findings, record = _certain(findings, library), fresh or record
    return sorted(findings, key=lambda finding: finding.sort_key), changed, count
