"""Findings with fixes -> new text: edits that do not overlap, applied together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsdyn_lint.findings import Edit, Finding, Location
from tsdyn_lint.source import NEWLINE, Source


@dataclass(frozen=True)
class Fixed:
    """A file's text after fixes, and how many findings went."""

    text: str
    count: int


def applicable(finding: Finding, unsafe: bool) -> bool:
    return finding.fix is not None and finding.fix.applicability in (("safe", "unsafe") if unsafe else ("safe",))


def apply_fixes(source: Source, findings: Sequence[Finding], unsafe: bool) -> Fixed:
    """One round over a file's findings, first come first served: a fix that overlaps an earlier one waits."""
    starts = _line_starts(source.text)
    taken: list[tuple[int, int, str]] = []
    count = 0
    for finding in findings:
        if finding.fix is None or not applicable(finding, unsafe):
            continue
        spans = [_span(edit, starts, len(source.text)) for edit in finding.fix.edits]
        new = [span for span in spans if span not in taken]
        if any(_overlap(span, other) for span in new for other in taken):
            continue
        taken.extend(new)
        count += 1
    text = source.text
    for start, end, content in sorted(taken, reverse=True):
        text = text[:start] + content + text[end:]
    return Fixed(text, count)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file so that no reader and no crash ever sees half of it; keeps its mode, and follows a link."""
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(name, target.stat().st_mode & 0o7777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def unified_diff(path: str, before: str, after: str) -> str:
    """What `--diff` prints for one file."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), path, path)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in NEWLINE.finditer(text))]


def _span(edit: Edit, starts: list[int], length: int) -> tuple[int, int, str]:
    def offset(place: Location) -> int:
        return length if place.row > len(starts) else starts[place.row - 1] + place.column - 1

    return offset(edit.start), offset(edit.end), edit.content


def _overlap(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    if one[0] == one[1] == other[0] == other[1]:
        return True
    return one[0] < other[1] and other[0] < one[1]
