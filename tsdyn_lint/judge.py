"""Runs the analysis over many files: byte test first, then chunks of a package each, in processes past a few files."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tsdyn_lint import leancst
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Confidence, Engine, Finding, Location
from tsdyn_lint.outline import EVERYTHING
from tsdyn_lint.problems import internal_error
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Source, check_syntax
from tsdyn_lint.usage import Whole, usage_of, whole_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tsdyn_lint.outline import Summary
    from tsdyn_lint.parse import Tree

_POOL_BYTES = 160_000
"""Less source than this (about 4,000 lines) is judged sooner than a process pool starts."""
_CHUNK_BYTES = 4_000_000
"""No more source than this in one analysis, whose syntax trees stay in memory till its end."""

_SCRIPT = (Engine.SCRIPT,)
_GARBAGE = 500_000
"""More objects than this made since the last collection are what an earlier analysis left in this process."""


@dataclass(frozen=True)
class Judgement:
    """Findings before suppressions; for each file read, the files looked up from it and the names they were asked for,
    and what it binds; where a module was missing; the names that the entry points of a judged file hang on."""

    findings: list[Finding]
    dependencies: dict[Path, dict[Path, set[str]]] = field(default_factory=dict)
    missing: frozenset[Path] = frozenset()
    summaries: dict[Path, Summary] = field(default_factory=dict)
    heirs: dict[tuple[Path, str], tuple[bool, list[Path]]] = field(default_factory=dict)
    """Classes, by file and name, that were asked for subclasses: whether there are any, and the files looked into."""
    roots: dict[Path, frozenset[str]] = field(default_factory=dict)


def judge(
    sources: Sequence[Source],
    settings: Settings,
    rulebook: RuleBook,
    jobs: int,
    named: frozenset[str] | None = None,
    project: Whole | None = None,
) -> Judgement:
    """Judges the sources with settings whose engines are decided; never raises for what is in a file.

    Findings are those in the files `named`, and `project` is what the files around them say; by default these are the
    sources themselves.
    """
    if project is None:
        project = whole_of({str(source.path): usage_of(source.code) for source in sources})
    findings = []
    candidates = []
    for source in sources:
        if source.error:
            findings.append(source.error)
        elif source.mentions_torch:
            candidates.append(source)
        elif problem := check_syntax(source):
            findings.append(problem)
    results = list(_judge_chunks(plan_chunks(candidates, jobs), settings, rulebook, project, jobs))
    findings += [finding for result in results for finding in result.findings]
    names = named or {str(source.path) for source in sources}
    whole = _joined(results)
    roots = {source.path: frozenset({EVERYTHING}) for source in sources} | whole.roots
    found = combined((one for one in findings if one.filename in names), rulebook)
    return replace(whole, findings=found, roots=roots)


def _joined(results: Iterable[Judgement]) -> Judgement:
    dependencies: dict[Path, dict[Path, set[str]]] = {}
    summaries: dict[Path, Summary] = {}
    heirs: dict[tuple[Path, str], tuple[bool, list[Path]]] = {}
    roots: dict[Path, frozenset[str]] = {}
    missing: set[Path] = set()
    findings: list[Finding] = []
    for result in results:
        findings += result.findings
        missing |= result.missing
        for path, read in result.dependencies.items():
            whole = dependencies.setdefault(path, {})
            for other, names in read.items():
                whole.setdefault(other, set()).update(names)
        summaries.update(result.summaries)
        heirs.update(result.heirs)
        roots.update(result.roots)
    return Judgement(findings, dependencies, frozenset(missing), summaries, heirs, roots)


def plan_chunks(sources: Sequence[Source], jobs: int) -> list[list[Source]]:
    """Neighbours together: files of a package import each other, and a chunk parses what it imports only once."""
    total = sum(len(source.data) for source in sources)
    if not sources:
        return []
    workers = 1 if total < _POOL_BYTES else jobs
    rounds = max(1, ceil(total / workers / _CHUNK_BYTES))  # as many chunks for each worker, all of a size
    share = total / workers / rounds
    chunks: list[list[Source]] = [[]]
    size = 0.0
    for source in sorted(sources, key=lambda source: source.path):
        if chunks[-1] and size + len(source.data) / 2 > share * len(chunks):
            chunks.append([])
        chunks[-1].append(source)
        size += len(source.data)
    return chunks


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each rule and place, with the engines of all and the surest one's words; in order of place.

    What is only possible adds nothing to what is likely.
    """
    by_place: dict[tuple[str, str, Location], Finding] = {}
    for finding in findings:
        key = (finding.filename, finding.code, finding.start)
        known = by_place.get(key)
        if known is None:
            by_place[key] = finding
            continue
        surest = max(known, finding, key=lambda one: one.confidence.rank)
        less = min(known, finding, key=lambda one: one.confidence.rank)
        if less.confidence is Confidence.POSSIBLE is not surest.confidence:
            by_place[key] = surest
            continue
        both = {*known.engines, *finding.engines}
        if both != {*surest.engines}:
            also = (*surest.also, *less.also, *filter(None, [less.entry]))
            by_place[key] = replace(surest, engines=tuple(engine for engine in Engine if engine in both), also=also)
        else:
            by_place[key] = surest
    return sorted(by_place.values(), key=lambda finding: finding.sort_key)


def combined(findings: Iterable[Finding], rulebook: RuleBook) -> list[Finding]:
    """The findings of several analyses as `merge` has them. What one of them finds that TorchScript refuses is left to
    the finding at the same place of a rule for several captures, which another analysis may have met.
    """
    merged = merge(findings)
    named = {
        (one.filename, row)
        for one in merged
        if Engine.SCRIPT in one.engines and one.confidence is not Confidence.POSSIBLE
        if len(rulebook[one.code].engines) > 1
        for row in range(one.start.row, one.end.row + 1)
    }
    return [
        one
        for one in merged
        if (one.filename, one.start.row) not in named or one.engines != _SCRIPT or len(rulebook[one.code].engines) > 1
    ]


def default_jobs() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _judge_chunks(
    chunks: list[list[Source]], settings: Settings, rulebook: RuleBook, project: Whole, jobs: int
) -> Iterator[Judgement]:
    if len(chunks) < 2 or jobs < 2:
        kept = Kept()
        for chunk in chunks:
            yield _judge_chunk(chunk, settings, rulebook, project, kept)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    _pipeline()  # so that forked workers have it already
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if can_fork else "spawn")
    with ProcessPoolExecutor(min(jobs, len(chunks)), context, _end_with, (os.getpid(),)) as pool:
        futures: list[Future[Judgement]] = [
            pool.submit(_judge_here, chunk, settings, rulebook, project) for chunk in chunks
        ]
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool as problem:
                yield Judgement([internal_error(source.path, problem) for source in chunk])


def _end_with(parent: int) -> None:
    """Lets a worker end soon after the process it works for: one that is killed can tell nobody."""
    import threading
    import time

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _pipeline() -> ModuleType:
    """The analysis, imported when there is something to judge."""
    leancst.load()
    return import_module("tsdyn_lint.pipeline")


@dataclass
class Kept:
    """What the chunks of a process have in common."""

    trees: dict[Path, Tree] = field(default_factory=dict)
    exports: dict[tuple[Path, str], bool] = field(default_factory=dict)
    """Whether files that `*` imports may bind a name."""


_KEPT = Kept()
"""In a worker."""


def _judge_here(chunk: list[Source], settings: Settings, rulebook: RuleBook, project: Whole) -> Judgement:
    return _judge_chunk(chunk, settings, rulebook, project, _KEPT)


def _judge_chunk(chunk: list[Source], settings: Settings, rulebook: RuleBook, project: Whole, kept: Kept) -> Judgement:
    """One analysis; where it fails, one for each file, so that only the file at fault goes without."""
    analyse = _pipeline().analyse
    if gc.get_count()[0] > _GARBAGE and not gc.isenabled():
        gc.collect()
        gc.freeze()  # what is left is kept for the next analyses, and need not be looked at again
    try:
        analysis = analyse(chunk, settings, rulebook, project, kept.trees, kept.exports)
        read = {path: dict(files) for path, files in analysis.dependencies.items()}
        found = dict(analysis.summaries), dict(analysis.heirs), dict(analysis.roots)
        return Judgement(analysis.findings, read, analysis.missing, *found)
    except Exception as problem:
        if len(chunk) == 1:
            return Judgement([internal_error(chunk[0].path, problem)])
    return _joined(_judge_chunk([source], settings, rulebook, project, kept) for source in chunk)
