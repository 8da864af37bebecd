"""The lines after the findings: how many there are, what can be fixed, what was checked and why."""

from __future__ import annotations

from collections.abc import Sequence

from tsdyn_lint.findings import Finding
from tsdyn_lint.session import Outcome


def summary(outcome: Outcome, findings: Sequence[Finding], known: int, unsafe: bool) -> str:
    """`known` is how many findings a baseline holds back; `unsafe` says that unsafe fixes count as fixable."""
    files = len(outcome.files)
    lines = []
    if findings:
        hit = len({finding.filename for finding in findings})
        lines.append(f"Found {_count(len(findings), 'finding')} in {hit} of {_count(files, 'file')}.")
    elif files:
        lines.append(f"Nothing to report in {_count(files, 'file')}.")
    else:
        lines.append("No files to lint.")
    if outcome.fix_count:
        lines.append(f"Fixed {_count(outcome.fix_count, 'finding')} in {_count(len(outcome.fixed), 'file')}.")
    if known:
        lines.append(f"The baseline holds back {_count(known, 'finding')}.")
    safe = sum(finding.fix is not None and finding.fix.applicability == "safe" for finding in findings)
    hidden = sum(finding.fix is not None and finding.fix.applicability == "unsafe" for finding in findings)
    if safe or hidden:
        count = safe + hidden if unsafe else safe
        more = f" ({hidden} more with --unsafe-fixes)" if hidden and not unsafe else ""
        lines.append(f"[*] {count} can be fixed with --fix{more}.")
    lines += [f"Checked {group.checked}." for group in outcome.groups]
    return "".join(line + "\n" for line in dict.fromkeys(lines))


def would_fix(outcome: Outcome) -> str:
    """The line after `--diff`."""
    return f"Would fix {_count(outcome.fix_count, 'finding')} in {_count(len(outcome.fixed), 'file')}.\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
