"""Listens to what Dynamo says of itself on the `torch.__trace` logger: the stream that tlparse reads.

`trace_structured()` emits whenever that logger has a handler, in every version looked at (2.6 to 2.14), and it
alone has every break: `torch._dynamo.explain` and the counters miss those on empty graphs and in skipped frames.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from tsdyn_lint.verify.observe import Break, Site, SkippedFrame
from tsdyn_lint.verify.probes.places import Project, frames_in, shorten

USER_CODE = ("User code traceback:", "The graph break occurred in the following user code:", "from user code")
SKIPS = (
    "Graph break: skip:", "results in a skip", "will skip tracing the frame", "Failed to handle graph break gracefully",
)  # fmt: skip
"""How 2.6 to 2.10, then 2.11 and later, say that the whole frame runs eagerly."""
REASON = re.compile(r"Graph Break Reason:\s*(.*)")
EXPLANATION = re.compile(r"^\s*Explanation: (.*)", re.MULTILINE)
GB = re.compile(r"gb(\d{4})")


@dataclass(eq=False)
class Tap(logging.Handler):
    """Context manager that collects records; `mark` splits them, so that each call's can be told apart."""

    project: Project
    breaks: list[Break] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    recompiles: list[tuple[Any, int]] = field(default_factory=list)
    """What was said, and the place in `metrics` of the compile it was said of."""
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._placed = 0
        self._logger = logging.getLogger("torch.__trace")
        self._level = self._logger.level

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        payload = getattr(record, "payload", None)
        artifact = metadata.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name == "dynamo_graph_break_reason" and isinstance(payload, str):
            self.breaks.append(parse_break(payload, self.project))
        elif name == "dynamo_error" and isinstance(payload, str):
            self.errors.append(payload)
        elif name == "recompile_reasons":
            self.recompiles.append((payload, len(self.metrics)))
        elif isinstance(metadata.get("compilation_metrics"), dict):
            self.metrics.append(metadata["compilation_metrics"])
            self._place_breaks(metadata["compilation_metrics"])

    def _place_breaks(self, compiled: dict[str, Any]) -> None:
        """Breaks are told before the compile that they end."""
        filename = compiled.get("co_filename") or ""
        if self.project.has(filename):
            frame = Site(filename, compiled.get("co_firstlineno") or 0, compiled.get("co_name") or "")
            new = [replace(item, frame=frame) if item.site is None else item for item in self.breaks[self._placed :]]
            self.breaks[self._placed :] = new
        self._placed = len(self.breaks)

    def __enter__(self) -> Tap:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.DEBUG)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)

    def skipped(self) -> tuple[SkippedFrame, ...]:
        """Functions of the project that run eagerly because a compile of them failed.

        A frame without any operation is not compiled either, but there was nothing in it to miss.
        """
        found: dict[tuple[Any, ...], SkippedFrame] = {}
        for record in self.metrics:
            filename = record.get("co_filename") or ""
            if record.get("fail_type") is not None and self.project.has(filename):
                frame = SkippedFrame(
                    filename, record.get("co_name") or "", record.get("co_firstlineno") or 0,
                    record.get("fail_user_frame_lineno"), shorten(record.get("fail_reason") or "", 300),
                )  # fmt: skip
                found.setdefault((frame.filename, frame.name, frame.first_row, frame.row), frame)
        return tuple(found.values())


def parse_break(text: str, project: Project) -> Break:
    """A graph break's text as torch writes it. Keys that a version lacks come out empty."""
    head, stack_text = text, ""
    for marker in USER_CODE:
        head, found, stack_text = text.partition(marker)
        if found:
            break
    frames = frames_in((stack_text or text).split("\nTraceback (most recent call last)")[0])
    explanation = EXPLANATION.search(head)
    gb = GB.search(text)
    return Break(
        project.last(frames), f"GB{gb[1]}" if gb else None, _title(head),
        explanation[1].strip() if explanation else "", _inner(frames, project),
        any(marker in text for marker in SKIPS),
    )  # fmt: skip


def _title(head: str) -> str:
    """The break's own name: the line before its explanation, else what is said first."""
    before, explained, _ = head.partition("Explanation:")
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    if explained and lines:
        return lines[-1].removeprefix("Graph Break Reason:").strip()
    reason = REASON.search(head)
    return reason[1].strip() if reason else next(iter(lines), "")


def _inner(frames: tuple[Site, ...], project: Project) -> tuple[Site, ...]:
    """The stack from the project's outermost frame on: what is above is torch's and the worker's."""
    first = next((index for index, site in enumerate(frames) if project.has(site.filename)), len(frames))
    return frames[first:] or frames[-1:]
