"""Errors of the tool itself -> `TSD099` findings, so that one file or entry point never costs the run."""

from __future__ import annotations

import os
from pathlib import Path

from tsdyn_lint.findings import Confidence, Finding, Location, Severity


def internal_error(path: Path, problem: BaseException, doing: str = "") -> Finding:
    """`TSD099` for a file, naming the exception and the line of ours that raised it; `-v` prints the traceback."""
    import traceback

    if os.environ.get("TSDYN_LINT_TRACEBACK"):
        traceback.print_exception(problem)
    last = traceback.extract_tb(problem.__traceback__)[-1:]
    where = f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
    what = f" while {doing}" if doing else ""
    message = f"internal error{what}: {type(problem).__name__}: {problem}{where}"
    start = Location(1, 1)
    return Finding(
        "TSD099", "internal-error", message, Severity.ERROR, str(path), start, start, confidence=Confidence.CERTAIN
    )
