"""The examples of `rules/*.md` on the real torch: what a page says of a capture is what that capture does.

All blocks run in one worker, through the probes that `--verify` uses.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("torch")

from tsdyn_lint.findings import Engine
from tsdyn_lint.rulebook import Example, Rule, RuleBook, load_rules
from tsdyn_lint.verify.observe import Answer, Dynamo, Export, Fault, Recompiles, Script, Trace
from tsdyn_lint.verify.probe import observations, probe_files

pytestmark = pytest.mark.xdist_group("pages on torch")  # one process makes the blocks' results for all
TORCH = (int(importlib.metadata.version("torch").split(".")[0]), int(importlib.metadata.version("torch").split(".")[1]))
PROBES = ("eager", "dynamo", "recompile", "script", "trace", "export")
SETTLED = 3
"""Recompiles of one function that new sizes alone explain: each dimension becomes dynamic once."""


@dataclass(frozen=True)
class Seen:
    """What one capture did with an example: `outcome` as a page spells it, and the rows that it named."""

    outcome: str
    rows: frozenset[int] = frozenset()
    gb: frozenset[str] = frozenset()
    said: str = ""


@dataclass(frozen=True)
class Case:
    """A block of a page."""

    rule: Rule
    example: Example
    name: str


def cases() -> list[Case]:
    """Every block of every page that makes a claim about the torch at hand."""
    found = []
    for rule in load_rules():
        if rule.is_about_captures and rule.holds_for(TORCH):
            for number, example in enumerate(rule.examples):
                kind = "fixed" if example.fixed else "example"
                found.append(Case(rule, example, f"{rule.code}-{kind}-{number}"))
    return found


CASES = cases()


@pytest.fixture(scope="session")
def rulebook() -> RuleBook:
    return load_rules()


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Block name -> the worker's result, for the blocks whose tests were selected."""
    folder = tmp_path_factory.mktemp("pages")
    selected = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [params["case"] for params in selected if isinstance(params.get("case"), Case)]
    files = []
    for case in chosen:
        path = folder / f"{case.name.replace('-', '_')}.py"
        path.write_text(case.example.code, encoding="utf-8")
        files.append(path)
    results = probe_files(files, PROBES, parallel=min(4, os.cpu_count() or 1), timeout=300.0)
    return {case.name: result for case, result in zip(chosen, results, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_block_does_what_its_page_says(case: Case, seen: dict[str, Any], rulebook: RuleBook) -> None:
    result = seen[case.name]
    assert result.failure is None, result.failure
    observed = verdicts(observations(result), result.broken)
    told = {name for names in case.example.expected.values() for name in names}
    blamed = {engine for name in told if name in rulebook for engine in rulebook[name].engines}
    excused = blamed if case.rule.name not in told else blamed - set(case.rule.engines)
    for engine in Engine:
        if engine in case.rule.engines and case.rule.name in told:
            assert engine in observed, f"{engine.value} is fine with it"
            check_claim(case, engine, observed[engine])
        elif engine not in excused:
            assert engine not in observed, f"{engine.value}: {observed[engine]}"


def check_claim(case: Case, engine: Engine, seen: Seen) -> None:
    """The outcome, the rows and the graph-break ids of one capture against the page."""
    outcome = case.rule.outcome
    said = outcome if isinstance(outcome, str) else outcome.get(engine.value, "breaks")
    if engine is not Engine.RECOMPILE:
        assert seen.outcome == said, f"{engine.value}: {seen}"
    marked = statement_rows(case.example)
    if seen.rows and seen.outcome != "wrong":
        assert seen.rows & marked, f"{engine.value} names rows {sorted(seen.rows)}: {seen.said}"
    if engine is Engine.DYNAMO:
        assert seen.rows <= marked, f"dynamo breaks at rows {sorted(seen.rows)}"
        if case.rule.gb and seen.outcome == "breaks":
            assert seen.gb & set(case.rule.gb), f"dynamo gives {sorted(seen.gb)}"


def statement_rows(example: Example) -> set[int]:
    """Rows of the statements that are marked, whichever of their lines holds the mark."""
    import ast

    rows = set(example.expected)
    for node in ast.walk(ast.parse(example.code)):
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Assert)):
            span = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if span & rows:
                rows |= span
    return rows


def verdicts(observed: dict[str, Any], broken: dict[str, str]) -> dict[Engine, Seen]:
    """Capture -> what went wrong in it; those that were fine are left out."""
    found: dict[Engine, Seen | None] = {}
    for engine, judge in ((Engine.DYNAMO, _dynamo), (Engine.RECOMPILE, _recompile), (Engine.SCRIPT, _script),
                          (Engine.TRACE, _trace), (Engine.EXPORT, _export)):  # fmt: skip
        name = engine.value
        if name in broken:
            found[engine] = Seen("raises", said=str(broken[name]))
        elif name in observed:
            found[engine] = judge(observed[name])
    return {engine: seen for engine, seen in found.items() if seen is not None}


def _dynamo(seen: Dynamo) -> Seen | None:
    if not seen.ok:
        return Seen("raises", _rows([seen.error]), said=str(seen.error))
    if not seen.breaks:
        return None
    rows = frozenset(each.site.row for each in seen.breaks if each.site)
    return Seen("breaks", rows, frozenset(each.gb for each in seen.breaks if each.gb), seen.breaks[0].reason)


def _recompile(seen: Recompiles) -> Seen | None:
    per_frame = Counter(each.frame for each in seen.recompiles)
    if not seen.limit_hit and max(per_frame.values(), default=0) <= SETTLED:
        return None
    return Seen("breaks", said=f"{seen.graphs_after} {[each.guard for each in seen.recompiles]}")


def _script(seen: Script) -> Seen | None:
    if not seen.ok:
        return Seen("raises", _rows(each.fault for each in seen.errors), said=str(seen.errors))
    if seen.run_error is not None or _wrong(seen.answers):
        return Seen("wrong", _rows([seen.run_error]), said=str(seen.run_error or seen.answers))
    return None


def _trace(seen: Trace) -> Seen | None:
    """None too where the inputs are not all tensors: that block cannot be traced as it is called."""
    if seen.error is not None and "Only Tensors" in seen.error.message:
        return None
    if not seen.ok:
        return Seen("raises", _rows([seen.error]), said=str(seen.error))
    return Seen("wrong", said=str(seen.answers)) if _wrong(seen.answers) else None


def _export(seen: Export) -> Seen | None:
    if not seen.ok:
        return Seen("raises", _rows([seen.error]), said=str(seen.error))
    return Seen("wrong", said=str(seen.answers)) if _wrong(seen.answers) else None


def _wrong(answers: Iterable[Answer]) -> bool:
    return any(answer.outcome in ("differs", "raises") for answer in answers)


def _rows(faults: Iterable[Fault | None]) -> frozenset[int]:
    """The rows that faults name, those of the same file that they came through included."""
    known = [fault for fault in faults if fault is not None and fault.site is not None]
    return frozenset(
        site.row for fault in known for site in (fault.site, *fault.stack) if site.filename == fault.site.filename
    )
