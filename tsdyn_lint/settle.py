"""One file's raw findings -> what is shown of them, and its suppressions that are for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.problems import internal_error
from tsdyn_lint.rulebook import Rule, RuleBook
from tsdyn_lint.source import Source
from tsdyn_lint.suppress import never, suppress


def settle(
    source: Source, raw: Sequence[Finding], settings: Settings, rulebook: RuleBook, partly: bool = False
) -> list[Finding]:
    """Findings that suppressions, selection and confidence let through, in order of place; `TSD099` always.

    `partly`: others than the files that were judged reach this one, and may need its suppressions.
    """
    selected = settings.selected_for(source.path)
    try:
        tells = never if partly else _Judged(selected, settings, rulebook).tells
        kept, unused = suppress(source, raw, rulebook, tells)
    except Exception as problem:
        kept, unused = [*raw, internal_error(source.path, problem)], []
    shown = [
        finding
        for finding in (*kept, *unused)
        if finding.code == "TSD099"
        or (finding.code in selected and finding.confidence.rank >= settings.min_confidence.rank)
    ]
    return sorted(shown, key=lambda finding: finding.sort_key)


class _Judged:
    """What a run can tell of codes: those whose rules ran, for each engine that the project uses."""

    def __init__(self, selected: frozenset[str], settings: Settings, rulebook: RuleBook) -> None:
        self._selected, self._version, self._rulebook = selected, settings.torch_version, rulebook
        self._engines = settings.engines or frozenset()
        self._own = self._engines | (settings.own_engines or frozenset())

    def tells(self, codes: frozenset[str]) -> bool:
        """Whether nothing can need a suppression of these that silenced nothing: no other run of the project finds
        more of them.
        """
        rules = [self._rulebook[code] for code in codes if not code.startswith("TSD9")]  # `--verify` alone sees those
        wanted = [rule for rule in rules if rule.holds_for(self._version) and (not rule.engines or self._needed(rule))]
        return bool(wanted) and all(
            rule.code in self._selected and self._needed(rule) <= self._engines for rule in wanted
        )

    def _needed(self, rule: Rule) -> frozenset[Engine]:
        """The engines that the project uses of a rule's. What compiles again breaks the capture as well."""
        wanted = self._own.intersection(rule.engines)
        return wanted - {Engine.RECOMPILE} if Engine.DYNAMO in wanted else wanted
