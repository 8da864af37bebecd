"""Which lines of the project run during a call. Never used around a compile: Dynamo would see the tracer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

from tsdyn_lint.verify.probes.places import Project


class Coverage:
    """Context manager; afterwards `lines` maps each file of the project to its sorted rows that ran.

    `sys.monitoring` (Python 3.12) is told to report a line once only; before, a trace function does it.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen: dict[str, set[int]] = {}
        self._mine: dict[CodeType, bool] = {}
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._previous: Any = None

    @property
    def lines(self) -> dict[str, list[int]]:
        return {name: sorted(rows) for name, rows in self._seen.items()}

    def _own(self, code: CodeType) -> bool:
        own = self._mine.get(code)
        if own is None:
            own = self._mine[code] = self._project.has(code.co_filename)
        return own

    def __enter__(self) -> Coverage:
        if self._monitoring is not None and self._claim():
            return self
        self._monitoring = None
        self._previous = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._monitoring is not None:
            tool = self._monitoring.COVERAGE_ID
            self._monitoring.set_events(tool, 0)
            self._monitoring.register_callback(tool, self._monitoring.events.LINE, None)
            self._monitoring.free_tool_id(tool)
        else:
            sys.settrace(self._previous)

    def _claim(self) -> bool:
        """Take the slot for coverage tools; False where someone else (coverage.py) has it."""
        tool, events = self._monitoring.COVERAGE_ID, self._monitoring.events
        if self._monitoring.get_tool(tool) is not None:
            return False
        self._monitoring.use_tool_id(tool, "tsdyn-lint")
        self._monitoring.register_callback(tool, events.LINE, self._on_line)
        self._monitoring.set_events(tool, events.LINE)
        self._monitoring.restart_events()
        return True

    def _on_line(self, code: CodeType, row: int) -> Any:
        if self._own(code):
            self._seen.setdefault(code.co_filename, set()).add(row)
        return self._monitoring.DISABLE

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if not self._own(frame.f_code):
            return None
        rows = self._seen.setdefault(frame.f_code.co_filename, set())

        def on_line(inner: FrameType, event: str, arg: Any) -> Callable[..., Any]:
            rows.add(inner.f_lineno)
            return on_line

        return on_line
