"""Findings -> text in one of the output formats, a module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from tsdyn_lint.report.run import Run

Render = Callable[[Run], str]

_MODULES: Mapping[str, str] = {
    "full": "full",
    "concise": "concise",
    "json": "as_json",
    "json-lines": "as_json",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
}
FORMATS = tuple(_MODULES)
FOR_PEOPLE = ("full", "concise")
"""Formats that end with the summary line."""


def render(format_name: str, run: Run) -> str:
    """The whole report, its last newline included; nothing for no findings where the format allows that."""
    module = import_module(f"tsdyn_lint.report.{_MODULES[format_name]}")
    function: Render = module.render_lines if format_name == "json-lines" else module.render
    return function(run)
