"""Sources -> findings: parse, resolve, infer, match. Read this first."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.infer.entries import walk
from tsdyn_lint.infer.settings import compile_settings
from tsdyn_lint.match import matcher
from tsdyn_lint.outline import Summary
from tsdyn_lint.parse import ParseFailure, Tree
from tsdyn_lint.problems import internal_error
from tsdyn_lint.resolve import Module, Program
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.script.check import reconcile, script_events
from tsdyn_lint.source import Source, read_source, syntax_finding
from tsdyn_lint.torchdata.load import load
from tsdyn_lint.usage import Whole

_DEPTH = 6_000
_ROOM = 140_000
"""In words of 8 bytes: a little more than a power of two, so that the chunk has as much room again."""
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Analysis:
    """Findings in any file reached, unsuppressed and unfiltered; which engines were judged and why.

    `dependencies` maps each file that was read to the files looked up from it, with the names they were asked for;
    `summaries` say what such files bind; `missing` are paths where a module was looked for in vain; `roots` are the
    names of the judged files that their entry points hang on.
    """

    findings: list[Finding]
    engines: frozenset[Engine]
    engine_reason: str
    dependencies: Mapping[Path, Mapping[Path, set[str]]] = field(default_factory=dict)
    missing: frozenset[Path] = frozenset()
    summaries: Mapping[Path, Summary] = field(default_factory=dict)
    heirs: Mapping[tuple[Path, str], tuple[bool, list[Path]]] = field(default_factory=dict)
    """Classes, by file and name, that were asked for subclasses: whether there are any, and the files looked into."""
    roots: Mapping[Path, frozenset[str]] = field(default_factory=dict)


def analyse(
    files: Sequence[Source],
    settings: Settings,
    rulebook: RuleBook,
    whole: Whole,
    trees: dict[Path, Tree] | None = None,
    exports: dict[tuple[Path, str], bool] | None = None,
) -> Analysis:
    """Judges the files together. A file that does not parse gives `TSD000`. `whole`: what their project says.

    `trees`: what the analysis before it in a run has parsed for this one; left with what it has for the next.
    `exports`: in the same way, whether files that `*` imports may bind a name.
    """
    with _without_collector(), _deep():
        return _roomy(_analyse)(files, settings, rulebook, whole, {} if trees is None else trees, exports)


def _roomy(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The function with room for the frames of all calls below it.

    CPython keeps frames in chunks of 16 KB, and asks the system for one whenever a call crosses the end of the last:
    in a deep walk that is a tenth of the time. A frame that says that it needs more gets a chunk of twice its size.
    """

    def call(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        return function(*given, **named)

    call.__code__ = call.__code__.replace(co_stacksize=_ROOM)
    return call


@contextmanager
def _deep() -> Iterator[None]:
    """Trees are walked recursively, and a chain of a few hundred calls or sums is as deep."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Trees are many small objects that live till the end: looking for garbage among them is a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _analyse(
    files: Sequence[Source],
    settings: Settings,
    rulebook: RuleBook,
    whole: Whole,
    trees: dict[Path, Tree],
    exports: dict[tuple[Path, str], bool] | None,
) -> Analysis:
    engines = settings.engines or frozenset(Engine)
    given = {source.path: source for source in files}
    program = Program(lambda path: _text(path, given), trees, whole.heirs, exports)
    findings: list[Finding] = []
    for source in files:
        if source.error is not None:
            findings.append(source.error)
            continue
        try:
            program.linted.append(program.load(source.path))
        except ParseFailure as failure:
            findings.append(syntax_finding(source.path, failure.message, failure.row, failure.column))
    rules = matcher(rulebook)

    def fail(module: Module, name: str, error: Exception) -> None:
        if isinstance(error, ParseFailure):  # newer syntax than libcst reads, in a body that was left for later
            findings.append(syntax_finding(error.path or module.path, error.message, error.row, error.column))
            return
        findings.append(internal_error(module.path, error, f"walking {name}"))

    events = walk(program, load(settings.torch_version), rules.wants, fail)
    compiled = compile_settings(whole)
    found = list(rules.findings(events, engines, settings.torch_version, compiled))
    if Engine.SCRIPT in engines:
        refusals = script_events(program, settings.torch_version, fail)
        found = reconcile(found, list(rules.findings(refusals, engines, settings.torch_version)), rulebook)
    findings += found
    common = program.common()
    trees.clear()
    trees.update(common)
    analysis = Analysis(
        *(findings, engines, "asked for", program.dependencies(), frozenset(program.missing), program.summaries()),
        *(program.heirs_of, program.roots()),
    )
    program.release()
    return analysis


def _text(path: Path, given: Mapping[Path, Source]) -> str | None:
    source = given.get(path)
    if source is None:
        source = read_source(path)
    return None if source.error is not None else source.text
