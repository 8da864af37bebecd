"""`--update-budgets`: what targets cost now, written into the configuration as `budgets."X.Y"`; all else stays."""

from __future__ import annotations

import copy
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsdyn_lint.config import Settings
from tsdyn_lint.tomlplaces import Path as Keys
from tsdyn_lint.tomlplaces import inline, places, with_value
from tsdyn_lint.verify.budget import config_file, figures, minor, targets_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Number = int | float


class NotWritable(Exception):
    """The configuration cannot be edited; the message says what to write by hand."""


@dataclass(frozen=True)
class Update:
    """A configuration's new text; how many targets that is about, and how many gave no figures."""

    file: Path
    text: str
    written: int
    without: int


def update(settings: Settings, reports: Iterable[Mapping[str, Any]]) -> Update | None:
    """What to write; None where the configuration names no target. Raises NotWritable.

    A target whose table limits some figures keeps to those; one without a budget gets all that are known.
    """
    tables, file = settings.verify.get("targets", ()), config_file(settings)
    if not tables:
        return None
    if file is None:
        raise NotWritable("the targets are not from a file")
    text, count = file.read_bytes().decode("utf-8"), 0
    by_name: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for report in reports:
        by_name[report["target"]].append(report)
    for index, table in enumerate(tables):
        own = by_name[table["module"]][:1]
        del by_name[table["module"]][:1]  # a module may be named again, with other inputs
        values = now(table, own[0]) if own else {}
        if values:
            text = written(text, (*targets_path(file), index), minor(own[0]["torch"]), values)
            count += 1
    return Update(file, text, count, len(tables) - count)


def now(table: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Number]:
    """The limits that a target just keeps, with room for what differs from run to run."""
    limited = {*table.get("budget", {}), *(key for one in table.get("budgets", {}).values() for key in one)}
    known = {figure: value for figure, value in figures(report).items() if value is not None}
    return {
        figure: _with_room(figure, value, report) for figure, value in known.items() if not limited or figure in limited
    }


def _with_room(figure: str, value: float, report: Mapping[str, Any]) -> Number:
    """Counts are exact. Coverage may be 0.1 less, a speedup its interval's low end, a compile half as long again."""
    if figure == "min_coverage":
        return _rounded_down(value - 0.1)
    if figure == "min_speedup":
        low = report["measure"]["speedup"].get("low")
        return _rounded_down(value if low is None else low)
    if figure == "max_compile_s":
        return math.ceil(value * 15) / 10
    return int(value)


def _rounded_down(value: float) -> float:
    """To two places, never below zero."""
    return max(math.floor(round(value * 100, 6)) / 100, 0.0)


def written(text: str, target: Keys, version: str, values: Mapping[str, Number]) -> str:
    """The configuration's text with `budgets."X.Y"` of one target; raises NotWritable if that cannot be done safely."""
    table = (*target, "budgets", version)
    there = any(key[: len(table)] == table for key in places(text))
    edits = {(*table, figure): repr(value) for figure, value in values.items()} if there else {table: inline(values)}
    new = text
    try:
        for path, value in edits.items():
            new = with_value(new, path, value)
        if tomllib.loads(new) == _wanted(text, table, values):
            return new
    except (KeyError, tomllib.TOMLDecodeError):
        pass
    raise NotWritable(f'write this into the table of the target yourself: budgets."{version}" = {inline(values)}')


def _wanted(text: str, table: Keys, values: Mapping[str, Number]) -> dict[str, Any]:
    whole = copy.deepcopy(tomllib.loads(text))
    node: Any = whole
    for key in table:
        node = node[key] if isinstance(key, int) else node.setdefault(key, {})
    node.update(values)
    return whole
