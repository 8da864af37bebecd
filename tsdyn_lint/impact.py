"""Names that changed -> the files whose verdicts may hang on them, by who asked whom for which name.

A verdict of one file hangs on the code that its entry points reach. That code lies in definitions of its own or of
other files, and each of those was reached by a name that some statement mentions. So a changed name changes the names
of the statements that mention it, these are changed names for the files that asked for them, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tsdyn_lint.outline import EVERYTHING, Statement, Summary, dependents

Asked = Mapping[str, Mapping[str, Iterable[str]]]
"""For each file, the files it was looked up from it, with the names they were asked for."""
ALL = frozenset({EVERYTHING})
NAMELESS = frozenset({""})
"""What statements bind that bind nothing, and what is asked of a file that is only looked for."""


@dataclass
class Impact:
    """Spreads changes; `changed` holds the names changed in each file so far, `ALL` for more than can be told."""

    asked: Asked
    statements: Callable[[str], list[Statement] | None]
    """The present statements of a file, None where they are not known."""
    changed: dict[str, frozenset[str]] = field(default_factory=dict)

    def spread(self, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Takes these names of files for changed. All files that changes have reached so far."""
        askers: dict[str, list[str]] = defaultdict(list)
        for asker, files in self.asked.items():
            for path in files:
                askers[path].append(asker)
        todo = dict(names)
        while todo:
            path, new = todo.popitem()
            grown = self._grown(path, new)
            if grown is None:
                continue
            self.changed[path] = grown
            for asker in askers[path]:
                hit = self._hit(asker, path, grown)
                if hit:
                    todo[asker] = todo.get(asker, frozenset()) | hit
        return frozenset(self.changed)

    def _grown(self, path: str, new: frozenset[str]) -> frozenset[str] | None:
        """The names changed in a file with those that hang on them in it; None where that is nothing new."""
        known = self.changed.get(path)
        if known is not None and (known >= ALL or new <= known):
            return None
        statements = None if new >= ALL else self.statements(path)
        if statements is None:
            return ALL
        grown = dependents(statements, new | (known or frozenset()))
        return ALL if grown >= ALL else grown

    def _hit(self, asker: str, path: str, changed: frozenset[str]) -> frozenset[str]:
        """The names that are changed for a file which asked another one."""
        asked = frozenset(self.asked[asker][path])
        if EVERYTHING in asked:
            return ALL
        return asked if changed >= ALL else (asked & changed) - NAMELESS


def difference(before: Summary | None, now: Summary | None) -> frozenset[str]:
    """The names that one of two states of a file binds otherwise, or alone; all where one of them is not known."""
    if not before or now is None:
        return ALL
    changed = frozenset(name for name in {*before, *now} if before.get(name, [0])[0] != now.get(name, [0])[0])
    return ALL if changed >= ALL else changed


def moved_row(before: Summary, now: Summary, row: int, changed: frozenset[str]) -> int | None:
    """Where a row is now whose names, as `names_at` gives them, only moved; None where they changed or fell apart."""
    names = names_at(before, row)
    if changed >= ALL or names >= ALL or not names.isdisjoint(changed):
        return None
    shifts = {int(now[name][1]) - int(before[name][1]) for name in names}
    return row + shifts.pop() if len(shifts) == 1 else None


def names_at(summary: Summary | None, row: int) -> frozenset[str]:
    """The names bound by the statements around a row; all of the file where that cannot be told."""
    spans = (summary or {}).items()
    found = frozenset(name for name, (_, first, last) in spans if name and int(first) <= row <= int(last))
    return found or ALL
