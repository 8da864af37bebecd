"""Drives `--verify`: findings and files -> targets -> workers -> verdicts, breaks nobody predicted, and a report."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.imports import import_place
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source
from tsdyn_lint.statements import Statements, text_of
from tsdyn_lint.suppress import never, suppress
from tsdyn_lint.torchversion import installed_torch
from tsdyn_lint.verify import budget
from tsdyn_lint.verify.confirm import NOT_REACHED, NOT_RUN, OTHER_SHARD, Observed, Verdict, best, summed_up, verdict
from tsdyn_lint.verify.describe import describe
from tsdyn_lint.verify.measuring import Measuring
from tsdyn_lint.verify.observe import OBSERVATIONS, decode
from tsdyn_lint.verify.relevance import relevant
from tsdyn_lint.verify.spawn import Job, Result, Workers
from tsdyn_lint.verify.target import VERIFY_FILE, Target, TargetError, configured, discovered, named_by
from tsdyn_lint.verify.unpredicted import unpredicted

TIMEOUT, MEASURE_TIMEOUT, MEMORY = 120.0, 900.0, 8192
Progress = Callable[[int, int, str], None]
"""Called with how many targets are done, how many there are, and the name of the last one."""


@dataclass(frozen=True)
class Options:
    """What the command line says of `--verify`; None where the configuration decides."""

    stage: str = "confirm"
    device: str | None = None
    timeout: float | None = None
    memory: int | None = None
    shard: tuple[int, int] = (1, 1)
    jobs: int = 1
    fail_unverified: bool = False
    progress: Progress | None = None
    backend: str | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Group:
    """Files of one configuration: the engines of `settings` are decided."""

    settings: Settings
    rulebook: RuleBook
    sources: Sequence[Source]


@dataclass(frozen=True)
class Verified:
    """Findings with verdicts, those of `TSD901` among them, and the targets as the JSON report prints them.

    `left` names the targets that were asked for but have no part in the linted files.
    """

    findings: list[Finding]
    targets: list[dict[str, Any]]
    left: tuple[str, ...] = ()


@dataclass
class Ran:
    """A target and what its worker told."""

    target: Target
    result: Result
    observed: Observed = field(init=False)
    measured: Result | None = None
    """What the measuring worker told, where there was one."""


class NoTorch(Exception):
    """The workers cannot import torch; the message says what to install."""


def verify(groups: Sequence[Group], findings: Sequence[Finding], options: Options) -> Verified:
    """Try every finding on the real torch; raises TargetError for a wrong target and NoTorch without torch."""
    if installed_torch() is None:
        raise NoTorch("--verify needs torch in this environment: pip install 'tsdyn-lint[verify]'")
    done: list[Finding] = []
    reports: list[dict[str, Any]] = []
    left: list[str] = []
    by_file = {str(source.path): group for group in groups for source in group.sources}
    try:
        with Workers(options.jobs, compiling=_compiles(groups, options)) as workers:
            for group in groups:
                mine = [finding for finding in findings if by_file.get(finding.filename) is group]
                named, others = _named_targets(group, map(Path, by_file), workers)
                found, told = _verify_group(group, named, mine, options, workers)
                done += found
                reports += told
                left += [target.name for target in others]
    except RuntimeError as problem:
        raise NoTorch(f"--verify: no worker could be started: {problem}") from problem
    done += [finding for finding in findings if finding.filename not in by_file]
    return Verified(sorted(done, key=lambda finding: finding.sort_key), reports, tuple(dict.fromkeys(left)))


def _compiles(groups: Sequence[Group], options: Options) -> bool:
    """Whether anything may be measured."""
    tables = [table for group in groups for table in group.settings.verify.get("targets", ())]
    return options.stage != "confirm" or any("budget" in table or "budgets" in table for table in tables)


def _verify_group(
    group: Group, named: list[Target], findings: list[Finding], options: Options, workers: Workers
) -> tuple[list[Finding], list[dict[str, Any]]]:
    measuring = Measuring(
        options.stage, options.backend or group.settings.verify.get("backend") or "inductor",
        options.calls or group.settings.verify.get("calls"),
    )  # fmt: skip
    _check_backend(measuring.backend, workers)
    runs, elsewhere = _run_targets(group, named, findings, options, workers)
    texts: dict[str, Statements] = {str(source.path): Statements(source.text) for source in group.sources}

    def statements(filename: str) -> Statements:
        if filename not in texts:
            texts[filename] = Statements(text_of(filename))
        return texts[filename]

    for run in runs:
        run.observed = observed(run.target.name, run.result, statements, findings)
    views = [run.observed for run in runs]
    engines = [engine for engine in Engine if engine in (group.settings.engines or ())]
    judged = [_judged(finding, views, elsewhere) for finding in findings]
    new = unpredicted(views, findings, engines, {str(source.path) for source in group.sources}, statements)
    kept = _reported(new, group)
    _measure(runs, group, options, measuring, workers)
    reports = []
    for run in runs:
        report = describe(run.target, run.result, run.observed, [*findings, *kept])
        reports.append(report if run.measured is None else measuring.added(report, run.measured))
    mine = {str(source.path): statements(str(source.path)) for source in group.sources}
    for run, report in zip(runs, reports, strict=True):
        kept += over_budget(run.target, report, group, mine)
    return judged + kept, reports


def over_budget(target: Target, report: dict[str, Any], group: Group, files: Mapping[str, Statements]) -> list[Finding]:
    """Findings for the limits that a target breaks, which its report is told of too."""
    torch = report["torch"] or ".".join(map(str, installed_torch() or ()))
    allowed = budget.limits(target.table, torch)
    found = {}
    for over in budget.broken(report, allowed):
        found[over] = budget.finding(over, target, torch, group.settings, files)
    kept = _reported(list(found.values()), group)
    told = [over.as_json((one.filename, one.start.row)) for over, one in found.items() if one in kept]
    report["budget"] = {"limits": allowed, "broken": told, "unknown": budget.unknown(report, allowed)}
    return kept


def _check_backend(name: str, workers: Workers) -> None:
    """Before anything runs; the one that is always there is not asked for."""
    if name == "inductor":
        return
    _, told = next(iter(workers.run([Job({"backend": name}, ())])))
    if told.failure is not None:
        raise TargetError(f"--backend: {told.failure[1]}")


def _measure(runs: Sequence[Ran], group: Group, options: Options, measuring: Measuring, workers: Workers) -> None:
    """One target after the other, with nothing else running: what shares the machine shows in every figure."""
    wanted = [run for run in runs if measuring.wants(run.target, run.result)]
    for index, run in enumerate(wanted):
        subject = {**_subject(run.target, group), "backend": measuring.backend}
        job = _job(subject, measuring.probes(), group, options, MEASURE_TIMEOUT)
        _, run.measured = next(iter(workers.run([job])))
        if options.progress:
            options.progress(index + 1, len(wanted), f"measured {run.target.name}")


def observed(
    name: str, result: Result, statements: Callable[[str], Statements], findings: Sequence[Finding]
) -> Observed:
    """A worker's JSON as dataclasses."""
    seen = {probe: decode(OBSERVATIONS[probe], data) for probe, data in result.seen.items()}
    return Observed(name, seen, result.broken, result.failure, statements, tuple(findings))


def _named_targets(group: Group, linted: Iterable[Path], workers: Workers) -> tuple[list[Target], list[Target]]:
    """Those of the configuration and of a `tsdyn_verify.py`: to run, and those that no linted file has a part in."""
    targets = [*configured(group.settings.verify, group.settings.root), *_from_verify_file(group, workers)]
    wanted = relevant(targets, linted, group.settings.root) if targets else []
    return wanted, [target for target in targets if target not in wanted]


def _run_targets(
    group: Group, targets: list[Target], findings: list[Finding], options: Options, workers: Workers
) -> tuple[list[Ran], list[str]]:
    """Named targets and top-level classes first; then the classes that those did not reach.

    The names are those of the targets that other shards run.
    """
    named = {(target.file, target.qualname) for target in targets}
    names = {target.name for target in targets}
    found = [t for t in discovered(group.sources) if (t.file, t.qualname) not in named and t.name not in names]
    entries = [finding.entry for finding in findings if finding.entry]
    found += [t for t in named_by(entries, [*targets, *found], group.sources) if t not in found]
    every = [*targets, *(t for t in found if not t.built_by)]
    runs = _run(_sharded(every, options.shard), group, findings, options, workers, 0)
    later = [t for t in found if t.built_by and not _reached(t, runs, group)]
    runs += _run(_sharded(later, options.shard), group, findings, options, workers, len(runs))
    ran = {run.target.name for run in runs}
    for run in runs:
        if not run.target.found and run.result.failure and run.result.failure[0] == "skip":
            run.result.failure = ("build", run.result.failure[1])  # what was asked for by name is not left out
    kept = [run for run in runs if run.result.failure is None or run.result.failure[0] != "skip"]
    return kept, [target.name for target in (*every, *later) if target.name not in ran]


def _sharded(targets: Sequence[Target], shard: tuple[int, int]) -> list[Target]:
    """Every N-th target, beginning with the I-th."""
    index, count = shard
    return list(targets[index - 1 :: count])


def _from_verify_file(group: Group, workers: Workers) -> list[Target]:
    """The targets of a `tsdyn_verify.py` next to the configuration."""
    config = group.settings.config_file
    file = (config.parent if config else group.settings.root) / VERIFY_FILE
    if not file.is_file():
        return []
    subject = {**_place(file, group), "list": True}
    _, result = next(iter(workers.run([Job(subject, ())])))
    if result.failure is not None:
        return [Target(f"{VERIFY_FILE}", file, "", entry=0)]
    listed = result.about.get("targets", [])
    return [
        Target(name, file, name.partition(":")[2], budgets, entry=index) for index, (name, budgets) in enumerate(listed)
    ]


def _reached(target: Target, runs: Iterable[Ran], group: Group) -> bool:
    """Whether some target already ran this class's `forward`."""
    source = next((s for s in group.sources if s.path == target.file), None)
    statements = Statements(source.text if source else text_of(str(target.file)))
    for run in runs:
        eager = run.result.seen.get("eager")
        rows = eager["lines"].get(str(target.file), ()) if eager and eager["ok"] else ()
        for row in rows:
            function = statements.function(row)
            if function and function[2] == f"{target.qualname}.forward" and row > function[0]:
                return True
    return False


def _run(
    targets: Sequence[Target], group: Group, findings: Sequence[Finding], options: Options, workers: Workers, done: int
) -> list[Ran]:
    limit = float(group.settings.verify.get("timeout") or TIMEOUT)
    jobs = [_job(_subject(target, group), tuple(OBSERVATIONS), group, options, limit) for target in targets]
    results: dict[int, Result] = {}
    for index, result in workers.run(jobs):
        results[index] = result
        if options.progress:
            options.progress(done + len(results), done + len(jobs), targets[index].name)
    return [Ran(target, results[index]) for index, target in enumerate(targets)]


def _job(subject: dict[str, Any], probes: tuple[str, ...], group: Group, options: Options, timeout: float) -> Job:
    table = group.settings.verify
    return Job(
        subject, probes, float(options.timeout or timeout), int(options.memory or table.get("memory") or MEMORY),
        str(options.device or table.get("device") or "auto"),
    )  # fmt: skip


def _place(file: Path, group: Group) -> dict[str, Any]:
    root, dotted = import_place(file)
    roots = [str(root), *(str(f) for f in (group.settings.root, group.settings.root / "src") if f.is_dir())]
    return {"file": str(file), "root": str(root), "module": dotted, "roots": list(dict.fromkeys(roots))}


def _subject(target: Target, group: Group) -> dict[str, Any]:
    return {
        **_place(target.file, group), "qualname": target.qualname, "table": _plain(target.table),
        "entry": target.entry, "found": target.found,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """A table of the configuration as JSON can carry it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _judged(finding: Finding, views: Sequence[Observed], elsewhere: Sequence[str]) -> Finding:
    """The finding with the verdict of the targets that say most of it."""
    if not finding.engines:
        return finding
    entry = finding.entry or finding.scope
    own = [view for view in views if _is_entry(view.target, entry)]
    other_shard = not own and any(_is_entry(name, entry) for name in elsewhere)
    if finding.cell is not None or not views:
        why = "notebooks are not run" if finding.cell is not None else "no target to run was found for this file"
        why = OTHER_SHARD if other_shard else why
        verdicts = [Verdict(engine.value, NOT_RUN, why) for engine in finding.engines]
        return dataclasses.replace(finding, verify=summed_up(verdicts))
    others = [view for view in views if view not in own]
    verdicts = [_standing(finding, engine, own, others, other_shard) for engine in finding.engines]
    return dataclasses.replace(finding, verify=summed_up(verdicts))


def _standing(
    finding: Finding, engine: Engine, own: Sequence[Observed], others: Sequence[Observed], other_shard: bool
) -> Verdict:
    """The verdict of the target that says most, those of the finding's own entry point first.

    That other targets do not reach its line says nothing where its own could not run, or runs elsewhere.
    """
    told = [verdict(finding, engine, view) for view in own]
    found = best([*told, *(verdict(finding, engine, view) for view in others)])
    if found.status in (NOT_REACHED, NOT_RUN) and other_shard:
        return Verdict(engine.value, NOT_RUN, OTHER_SHARD)
    return best(told) if told and found.status == NOT_REACHED else found


def _is_entry(target: str, entry: str) -> bool:
    name = target.rpartition(":")[2]
    return bool(name) and re.search(rf"(^|\.){re.escape(name)}(\.|$)", entry) is not None


def _reported(new: Sequence[Finding], group: Group) -> list[Finding]:
    """Those of the new findings that selection and suppressions let through."""
    kept = []
    for source in group.sources:
        selected = group.settings.selected_for(source.path)
        mine = [f for f in new if f.filename == str(source.path) and f.code in selected]
        kept += suppress(source, mine, group.rulebook, never)[0] if mine else []
    elsewhere = {str(source.path) for source in group.sources}
    return kept + [f for f in new if f.filename not in elsewhere and f.code in group.settings.selected]
