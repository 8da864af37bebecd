"""Known findings, kept in a file: only those that are not in it fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tsdyn_lint.configfile import ConfigError
from tsdyn_lint.findings import Finding

Key = tuple[str, str, str, str]
"""Path from the baseline's folder, code, scope, and the line without its spacing: no number that an edit shifts."""


def read_baseline(path: Path) -> Counter[Key]:
    """How often each finding is known; raises ConfigError for a file that is missing or is no baseline."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["findings"]
        return Counter({(e["path"], e["code"], e["scope"], e["line"]): int(e["count"]) for e in entries})
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such baseline; --update-baseline writes it") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise ConfigError(f"{path}: not a baseline: {problem!r}") from problem


def write_baseline(path: Path, findings: Iterable[Finding], line_of: Callable[[Finding], str]) -> None:
    """An entry a line, sorted, so that version control merges it."""
    counts = Counter(_key(path, finding, line_of(finding)) for finding in findings if finding.code != "TSD099")
    rows = [
        json.dumps({"path": key[0], "code": key[1], "scope": key[2], "line": key[3], "count": count})
        for key, count in sorted(counts.items())
    ]
    body = ",\n".join(rows)
    path.write_text('{"version": 1, "findings": [\n' + body + ("\n" if rows else "") + "]}\n", encoding="utf-8")


def only_new(path: Path, findings: Sequence[Finding], line_of: Callable[[Finding], str]) -> list[Finding]:
    """The findings that the baseline does not know, the later ones where it knows fewer than there are."""
    known = read_baseline(path)
    new = []
    for finding in findings:
        key = _key(path, finding, line_of(finding))
        if known[key] > 0 and finding.code != "TSD099":
            known[key] -= 1
        else:
            new.append(finding)
    return new


def _key(path: Path, finding: Finding, line: str) -> Key:
    try:
        shown = Path(finding.filename).relative_to(path.absolute().parent).as_posix()
    except ValueError:
        shown = Path(finding.filename).as_posix()
    return shown, finding.code, finding.scope, " ".join(line.split())
