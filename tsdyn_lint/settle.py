"""One file's raw findings -> what is shown of them, and its suppressions that are for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine, Finding
from tsdyn_lint.problems import internal_error
from tsdyn_lint.rulebook import Rule, RuleBook
from tsdyn_lint.source import Source
from tsdyn_lint.suppress import suppress

_NONE: frozenset[str] = frozenset()
_NO_ENGINE: frozenset[Engine] = frozenset()


def settle(
    source: Source, raw: Sequence[Finding], settings: Settings, rulebook: RuleBook, partly: bool = False
) -> list[Finding]:
    """Findings that suppressions, selection and confidence let through, in order of place; `TSD099` always.

    `partly`: others than the files that were judged reach this one, and may need its suppressions.
    """
    selected = settings.selected_for(source.path)
    try:
        kept, unused = suppress(
            source, raw, rulebook, lambda: _NONE if partly else _judged(selected, settings, rulebook)
        )
    except Exception as problem:
        kept, unused = [*raw, internal_error(source.path, problem)], []
    shown = [
        finding
        for finding in (*kept, *unused)
        if finding.code == "TSD099"
        or (finding.code in selected and finding.confidence.rank >= settings.min_confidence.rank)
    ]
    return sorted(shown, key=lambda finding: finding.sort_key)


def _judged(selected: frozenset[str], settings: Settings, rulebook: RuleBook) -> frozenset[str]:
    """Codes whose rules ran for each engine that the project uses: suppressions of others may be needed elsewhere."""
    engines = settings.engines or _NO_ENGINE
    own = engines | (settings.own_engines or _NO_ENGINE)

    def ran(rule: Rule) -> bool:
        wanted = own.intersection(rule.engines)
        if Engine.DYNAMO in wanted:  # what compiles again there breaks the capture as well
            wanted -= {Engine.RECOMPILE}
        return not rule.engines or bool(wanted) and wanted <= engines

    return frozenset(
        rule.code
        for rule in rulebook
        if rule.code in selected
        and not rule.code.startswith("TSD9")  # only `--verify` sees those
        and rule.holds_for(settings.torch_version)
        and ran(rule)
    )
