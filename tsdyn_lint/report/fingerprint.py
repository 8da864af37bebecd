"""A name for each finding that outlives edits elsewhere in its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

from tsdyn_lint.findings import Finding
from tsdyn_lint.report.run import Run


def fingerprints(run: Run) -> Iterator[tuple[Finding, str]]:
    """Each finding with 64 hexadecimal digits made of its rule, path, scope, line and turn; no line number is in it."""
    turns: Counter[tuple[str, ...]] = Counter()
    for finding in run.findings:
        key = (finding.code, run.shown(finding.filename), finding.scope, " ".join(run.line(finding).split()))
        turns[key] += 1
        yield finding, sha256("\0".join((*key, str(turns[key]))).encode()).hexdigest()
