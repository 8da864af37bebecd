"""Probe files that end in `example = Model(), (args...)`: `python -m tsdyn_lint.verify.probe FILE...`.

Prints one JSON object a file: `{"file", "seen": {probe: observation}, "broken": {probe: why}, "failure": null}`,
observations as the dataclasses of `observe` spell them. From Python, `probe_files([...])` gives the same in order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsdyn_lint.verify.observe import OBSERVATIONS, decode
from tsdyn_lint.verify.spawn import Job, Result, run


def probe_files(
    files: Sequence[str | Path], probes: Sequence[str] = tuple(OBSERVATIONS), parallel: int = 1, timeout: float = 120.0
) -> list[Result]:
    """All probes on each file, in one worker template; `Result.seen` holds JSON, `observations` the dataclasses."""
    jobs = [Job({"file": str(Path(file).resolve())}, tuple(probes), timeout) for file in files]
    results: dict[int, Result] = dict(run(jobs, parallel))
    return [results[index] for index in range(len(jobs))]


def observations(result: Result) -> dict[str, Any]:
    """Probe name -> the dataclass of `observe` it returned."""
    return {name: decode(OBSERVATIONS[name], seen) for name, seen in result.seen.items()}


def main(arguments: Sequence[str]) -> None:
    """Print what was seen for each file named."""
    for file, result in zip(arguments, probe_files(arguments), strict=True):
        print(json.dumps({"file": file, "seen": result.seen, "broken": result.broken, "failure": result.failure,
                          "seconds": result.seconds}))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
