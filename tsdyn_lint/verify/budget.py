"""Budgets: what a target may cost, and where one that costs more went over it (`TSD902`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsdyn_lint.config import Settings
from tsdyn_lint.configfile import PYPROJECT
from tsdyn_lint.findings import Finding, Location, Related, Severity
from tsdyn_lint.statements import Statements, text_of
from tsdyn_lint.tomlplaces import Path as Keys
from tsdyn_lint.tomlplaces import places, row_of
from tsdyn_lint.verify.target import Target

CODE, NAME = "TSD902", "budget-exceeded"
CONFIRMED = ("graph_breaks", "recompiles")
"""Figures that the confirm stage alone knows."""

Place = tuple[str, int]
"""A file and a row."""


@dataclass(frozen=True)
class Broken:
    """A figure beyond its limit. `culprits` are the lines that took it there, the one to blame first.

    `measured` is None where the target does not run or does not compile: a limit that nothing keeps is broken too.
    """

    figure: str
    limit: float
    measured: float | None
    message: str
    culprits: tuple[Place, ...] = ()

    def as_json(self, place: Place) -> dict[str, Any]:
        return {
            "figure": self.figure, "limit": self.limit, "measured": self.measured, "message": self.message,
            "filename": place[0], "location": {"row": place[1]},
        }  # fmt: skip


def limits(table: Mapping[str, Any], torch: str | None) -> dict[str, float]:
    """A target's budget for that torch: `budget`, and over it `budgets."X.Y"`."""
    return {**table.get("budget", {}), **table.get("budgets", {}).get(minor(torch), {})}


def minor(torch: str | None) -> str:
    """`2.13` of `2.13.0+cpu`."""
    return ".".join((torch or "").split(".")[:2])


def needs_measure(table: Mapping[str, Any], torch: str | None) -> bool:
    """Whether a target's budget limits a figure that only the measure stage knows."""
    return any(figure not in CONFIRMED for figure in limits(table, torch))


def figures(report: Mapping[str, Any]) -> dict[str, float | None]:
    """What the budget's figures are now, None where they were not worked out. `report` is a target's JSON object."""
    dynamo, measure = report["dynamo"], report["measure"] or {}
    ok = dynamo is not None and dynamo["ok"]
    compiles, kernels = measure.get("t_compile_s") or {}, measure.get("kernels")
    return {
        "graph_breaks": len(dynamo["breaks"]) if ok else None,
        "recompiles": len(dynamo["recompiles"]) if ok and dynamo["guard_hit_rate"] is not None else None,
        "guards": measure.get("guards"),
        "min_coverage": measure.get("coverage"),
        "min_speedup": (measure.get("speedup") or {}).get("value"),
        "max_compile_s": compiles.get("cold"),
        "max_kernels": len(kernels) if kernels else None,
    }


def broken(report: Mapping[str, Any], allowed: Mapping[str, float]) -> list[Broken]:
    """The limits that are not kept. A figure that is not known breaks none, unless the target itself failed."""
    missing = _missing(report, allowed)
    if missing and (why := _failed(report)) is not None:
        message = f"{', '.join(missing)} of the budget could not be checked: {why}"
        return [Broken(missing[0], allowed[missing[0]], None, message)]
    found = []
    for figure, value in figures(report).items():
        limit = allowed.get(figure)
        if limit is None or value is None or not _beyond(figure, value, limit, report):
            continue
        told = _TOLD[figure](value, report)
        wanted = "asks for at least" if figure.startswith("min_") else "allows"
        message = f"{told}, the budget {wanted} {limit:g}"
        found.append(Broken(figure, limit, value, message, tuple(_culprits(figure, int(limit), report))))
    return found


def unknown(report: Mapping[str, Any], allowed: Mapping[str, float]) -> list[str]:
    """The limits of figures that could not be had though the target ran."""
    return [] if _failed(report) is not None else _missing(report, allowed)


def _missing(report: Mapping[str, Any], allowed: Mapping[str, float]) -> list[str]:
    return [figure for figure, value in figures(report).items() if value is None and figure in allowed]


def _failed(report: Mapping[str, Any]) -> str | None:
    """Why a target has no figures: it did not run, or torch.compile raised; None where neither is so."""
    failure, dynamo = report["failure"], report["dynamo"]
    if failure is not None and dynamo is None:
        return f"the target did not run ({failure['kind']}): {_first_line(failure['message'])}"
    if dynamo is not None and not dynamo["ok"] and dynamo["error"] is not None:
        return f"torch.compile raises {_first_line(dynamo['error']['message'])}"
    return None


def _first_line(message: str) -> str:
    return next(iter(message.strip().splitlines()), "")[:200]


def _beyond(figure: str, value: float, limit: float, report: Mapping[str, Any]) -> bool:
    if figure == "min_speedup":  # an interval that holds the limit resolves nothing
        high = report["measure"]["speedup"].get("high")
        return bool((value if high is None else high) < limit)
    return value < limit if figure.startswith("min_") else value > limit


def _speedup(value: float, report: Mapping[str, Any]) -> str:
    ratio = report["measure"]["speedup"]
    return f"speedup {value:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


_TOLD: dict[str, Callable[[float, Mapping[str, Any]], str]] = {
    "graph_breaks": lambda value, _: f"{value:g} graph break{'s' * (value != 1)}",
    "recompiles": lambda value, _: f"{value:g} recompile{'s' * (value != 1)}",
    "guards": lambda value, _: f"{value:g} guards",
    "min_coverage": lambda value, _: f"coverage {value:.2f}",
    "min_speedup": _speedup,
    "max_compile_s": lambda value, _: f"{value:.1f} s to compile",
    "max_kernels": lambda value, _: f"{value:g} kernels",
}


def _culprits(figure: str, limit: int, report: Mapping[str, Any]) -> Iterator[Place]:
    """Lines that took a figure over its limit, the one to blame first.

    Of what is counted that is the first past the limit; for the rest, the break that costs most.
    """
    dynamo, measure = report["dynamo"] or {}, report["measure"] or {}
    breaks = [_place(item) for item in dynamo.get("breaks", ())]
    if figure in ("graph_breaks", "recompiles", "max_kernels"):
        recompiles = [_place(item) for item in dynamo.get("recompiles", ())]
        kernels = [_line(next(iter(kernel["lines"]), None)) for kernel in measure.get("kernels", ())]
        items = {"graph_breaks": breaks, "recompiles": recompiles, "max_kernels": kernels}[figure]
        items = [*items[limit:], *items[:limit]]
    elif figure in ("min_coverage", "min_speedup"):
        lifted = [_line(site) for item in measure.get("lifted", ()) for site in item["sites"]]
        frames = [(frame["filename"], frame["first_row"]) for frame in dynamo.get("frames_skipped", ())]
        items = [*lifted, *breaks, *frames]
    else:
        items = []
    yield from dict.fromkeys(place for place in items if place)


def _place(item: Mapping[str, Any]) -> Place | None:
    return (item["filename"], item["location"]["row"]) if item.get("filename") else None


def _line(line: Mapping[str, Any] | None) -> Place | None:
    return (line["filename"], line["row"]) if line else None


def finding(
    over: Broken, target: Target, torch: str | None, settings: Settings, files: Mapping[str, Statements]
) -> Finding:
    """The finding at the line to blame, if that was linted; else at the target's; else at the budget's own."""
    at = next((place for place in over.culprits if place[0] in files), None)
    at = at or _definition(target, files) or _setting(target, torch, settings, over.figure)
    filename, row = at
    statements = files.get(filename) or Statements(text_of(filename))
    left, right = statements.columns(row)
    function = statements.function(row)
    related = (
        Related(name, Location(line, 1), Location(line, 1), f"counts towards {over.figure} too")
        for name, line in over.culprits
        if (name, line) != at
    )
    return Finding(
        CODE, NAME, f"`{target.name}`: {over.message}", Severity.ERROR, filename, Location(row, left),
        Location(row, right), entry=target.name.replace(":", "."), related=tuple(related),
        scope=function[2] if function else target.qualname,
    )  # fmt: skip


def _definition(target: Target, files: Mapping[str, Statements]) -> Place | None:
    """The header of the target's class or function, where its file was linted."""
    if str(target.file) not in files:
        return None
    try:
        body = ast.parse(text_of(str(target.file))).body
    except (SyntaxError, ValueError):
        return None
    row = 0
    for name in target.qualname.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        node = next((node for node in body if isinstance(node, kinds) and node.name == name), None)
        if node is None:
            return None
        row, body = node.lineno, node.body
    return str(target.file), row


def _setting(target: Target, torch: str | None, settings: Settings, figure: str) -> Place:
    """Where the configuration sets that limit, or at least the target."""
    file = config_file(settings)
    if file is None or target.entry is not None:
        return str(target.file), 1
    index = next(i for i, table in enumerate(settings.verify["targets"]) if table is target.table)
    text = text_of(str(file))
    path: Keys = (*targets_path(file), index)
    keys: list[Keys] = [(*path, "budgets", minor(torch), figure), (*path, "budget", figure), path]
    written = places(text)
    return str(file), row_of(text, next((key for key in keys if key in written), path)) or 1


def config_file(settings: Settings) -> Path | None:
    """The file that the table of `--verify` was read from; None for the command line."""
    origin = settings.origins.get("verify", "")
    return Path(origin) if Path(origin).is_file() else None


def targets_path(file: Path) -> tuple[str, ...]:
    """The keys that lead to the list of targets in that file."""
    return (*(PYPROJECT if file.name == "pyproject.toml" else ()), "verify", "targets")
