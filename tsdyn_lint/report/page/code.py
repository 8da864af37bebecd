"""A target's source: each line by the graph it fell into, and what happened on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsdyn_lint.report.page.markup import Html, el, join
from tsdyn_lint.report.page.paint import Code
from tsdyn_lint.report.run import Run
from tsdyn_lint.statements import Statements

HUES = 6
_LONG = 600
"""Lines of a file from which on it is folded."""
_DEEPEST = 16
"""Columns of indentation that the rest of a long line keeps."""


@dataclass(frozen=True)
class Mark:
    """Something that happened on a line: `kind` is its colour, `label` the capture or event, `message` the rest."""

    kind: str
    label: str
    message: str


@dataclass(frozen=True)
class File:
    """What is known of one file's rows in one target."""

    ran: frozenset[int]
    graphs: Mapping[int, Sequence[int]]
    skipped: frozenset[int]
    marks: Mapping[int, Sequence[Mark]]


def listing(run: Run, target: Mapping[str, Any]) -> Html:
    """The functions that ran, file by file; empty where nothing did."""
    shown = []
    for name in _files(target):
        source = run.source(name)
        if source is not None and not source.error:
            shown.append(_file(run, target, name, source.text))
    legend = _legend(target) if any(shown) else None
    return join([legend, *shown])


def _files(target: Mapping[str, Any]) -> list[str]:
    return [entry["filename"] for entry in target["eager"]["lines"] if entry["rows"]]


def _legend(target: Mapping[str, Any]) -> Html | None:
    dynamo = target["dynamo"]
    if dynamo is None or not dynamo["ok"]:
        return None
    graphs = dynamo["captured"]
    entries = [
        el("li", _chip([index]), f" graph {index + 1}, {graph['ops']} op{'s' * (graph['ops'] != 1)}", cls=hue(index))
        for index, graph in enumerate(graphs[:HUES])
    ]
    if len(graphs) > HUES:
        entries.append(el("li", f"and {len(graphs) - HUES} more graphs, in the same colours again"))
    if dynamo["frames_skipped"]:
        entries.append(el("li", el("span", "eager", cls="chip"), " in a frame that Dynamo gave up", cls="eager"))
    entries.append(el("li", "no mark: Python only, no operation", cls="plain"))
    entries.append(el("li", "faint: did not run", cls="unrun"))
    return el("ul", entries, cls="legend")


def _file(run: Run, target: Mapping[str, Any], name: str, text: str) -> Html:
    statements = Statements(text)
    seen = _seen(run, target, name, statements)
    code = Code(text)
    blocks = _blocks(seen.ran, statements)
    body = [_block(run.shown(name), block, seen, code) for block in blocks]
    rows = sum(last - first + 1 for first, last, _ in blocks)
    summary = el("summary", el("span", run.shown(name), cls="path"), el("small", f"{len(seen.ran)} lines ran"))
    return el("details", summary, body, cls="file", open=rows <= _LONG) if body else Html("")


def _seen(run: Run, target: Mapping[str, Any], name: str, statements: Statements) -> File:
    """Rows are widened to whole statements: torch names one row of each."""
    dynamo = target["dynamo"] or {"captured": [], "frames_skipped": []}
    ran = {row for entry in target["eager"]["lines"] if entry["filename"] == name for row in entry["rows"]}
    ran = _widened(ran, statements)
    graphs: dict[int, list[int]] = defaultdict(list)
    for index, graph in enumerate(dynamo["captured"]):
        named = {row for entry in graph["lines"] if entry["filename"] == name for row in entry["rows"]}
        for row in _widened(named, statements):
            graphs[row].append(index)
    skipped: set[int] = set()
    for frame in dynamo["frames_skipped"]:
        function = statements.function(frame["first_row"]) if frame["filename"] == name else None
        if function is not None:
            skipped |= {row for row in range(function[0], function[1] + 1) if row in ran and row not in graphs}
    marks: dict[int, dict[Mark, None]] = defaultdict(dict)
    for row, mark in _marks(run, target, name, statements):
        marks[statements.span(row)[1]][mark] = None
    return File(frozenset(ran), graphs, frozenset(skipped), {row: list(found) for row, found in marks.items()})


def _widened(rows: set[int], statements: Statements) -> set[int]:
    return {other for first, last in map(statements.span, rows) for other in range(first, last + 1)}


def _marks(run: Run, target: Mapping[str, Any], name: str, statements: Statements) -> Iterator[tuple[int, Mark]]:
    """What each capture says of lines of that file, graph breaks first."""
    shown: set[int] = set()
    for row, mark in _shown(target, name):
        shown.add(statements.span(row)[0])
        yield row, mark
    for finding in run.findings:
        verify = finding.verify
        row = statements.span(finding.start.row)[0]
        if finding.filename == name and verify and row not in shown and _own(verify, target):
            yield finding.start.row, Mark("finding", finding.code, f"{finding.message} ({verify['status']})")


def _own(verify: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    return any(item.get("target") == target["target"] for item in verify["observed"])


def _shown(target: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mark]]:
    def here(items: Iterable[Any], kind: str, label: str, key: str = "message") -> Iterator[tuple[int, Mark]]:
        for item in items:
            if item and item.get("filename") == name:
                yield item["location"]["row"], Mark(kind, label, first_line(item[key]))

    dynamo, script, trace, export = (target[engine] for engine in ("dynamo", "script", "trace", "export"))
    if dynamo:
        for item in dynamo["breaks"]:
            if item["filename"] == name:
                yield item["location"]["row"], Mark("break", "break", break_text(item))
        yield from here([dynamo["error"]], "break", "torch.compile raises")
        failed: dict[int, list[str]] = defaultdict(list)
        for item in dynamo["recompiles"]:
            if item["filename"] == name:
                failed[item["location"]["row"]].append(item["guard"])
        for row, guards in failed.items():
            times = f", and {len(guards) - 1} more" if len(guards) > 1 else ""
            yield row, Mark("recompile", "recompile", f"{first_line(guards[0])} fails{times}")
    for item in target["budget"]["broken"]:
        yield from here([item], "break", "budget")
    if script:
        yield from here(script["errors"], "script", "script")
    if trace:
        yield from here([trace["error"]], "trace", "trace")
        yield from here(trace["warnings"], "trace", "trace")
    if export:
        yield from here(export["errors"], "export", "export")


def break_text(item: Mapping[str, Any]) -> str:
    """`Data-dependent branching, GB0170, predicted by TSD201`."""
    who = f"predicted by {item['finding']}" if item["finding"] else "not predicted"
    skipped = "a whole frame runs eagerly" if item["frame_skipped"] else None
    return ", ".join(part for part in (first_line(item["reason"]), item["gb"], who, skipped) if part)


def first_line(message: str) -> str:
    line = next(iter(str(message).strip().splitlines()), "").partition(" might cause")[0].rstrip(": ")
    return line if len(line) <= 240 else line[:237] + "..."


def _blocks(ran: frozenset[int], statements: Statements) -> list[tuple[int, int, str]]:
    """First row, last row and name of each function in which something ran, nested ones in the outer one."""
    functions = sorted({found for row in ran if (found := statements.function(row)) and row > found[0]})
    blocks: list[tuple[int, int, str]] = []
    for function in functions:
        if not blocks or function[0] > blocks[-1][1]:
            blocks.append(function)
    return blocks


def _block(path: str, block: tuple[int, int, str], seen: File, code: Code) -> Html:
    first, last, name = block
    numbers = range(first, min(last, len(code.lines)) + 1)
    dedent = min(code.indent(row) for row in numbers if code.lines[row - 1].strip())
    rows = [_row(row, first, seen, code, dedent) for row in numbers]
    caption = el("caption", name, " ", el("small", f"{path}:{first}"))
    return el("table", caption, el("tbody", rows), cls="code", style=f"--dedent:{dedent}ch")


def _row(row: int, header: int, seen: File, code: Code, dedent: int) -> list[Html]:
    graphs = seen.graphs.get(row, ())
    kind, chip = "plain", None
    if graphs:
        kind, chip = hue(graphs[0]), _chip(graphs)
    elif row in seen.skipped:
        kind, chip = "eager", el("span", "eager", cls="chip")
    elif row not in seen.ran and row != header:
        kind = "unrun"
    hang = min(max(code.indent(row) - dedent, 0), _DEEPEST) + 4  # where the rest of a long line goes on
    line = el("td", el("code", code.painted[row - 1], style=f"--hang:{hang}ch"))
    found = [el("tr", el("th", row, scope="row"), el("td", chip), line, cls=kind)]
    for mark in seen.marks.get(row, ()):
        told = el("td", el("p", el("b", mark.label), " ", mark.message, cls=f"mark {mark.kind}"), colspan=3)
        found.append(el("tr", told, cls="told"))
    return found


def hue(graph: int) -> str:
    """The class that gives a graph its colour."""
    return f"g g{graph % HUES}"


def _chip(graphs: Sequence[int]) -> Html:
    """Numbers of graphs, runs of them as ranges: `1`, `1-3 5`."""
    parts: list[list[int]] = []
    for graph in graphs:
        if parts and graph == parts[-1][1] + 1:
            parts[-1][1] = graph
        else:
            parts.append([graph, graph])
    words = [f"{a + 1}" if a == b else f"{a + 1}{',' if b == a + 1 else '–'}{b + 1}" for a, b in parts]
    return el("span", " ".join(words if len(words) < 4 else [words[0], "…", words[-1]]), cls="chip")
