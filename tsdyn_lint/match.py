"""Events -> findings: each rule's `[match]` table, or its check, decides; the page gives the words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from typing import Any

import libcst as cst

from tsdyn_lint.checks import CHECKS, Check, Verdict
from tsdyn_lint.findings import Engine, Finding, Related, Severity
from tsdyn_lint.infer.events import CONFIDENCE, LIKELY, Event, Step
from tsdyn_lint.infer.settings import CompileSettings
from tsdyn_lint.masking import behind, given_up
from tsdyn_lint.problems import internal_error
from tsdyn_lint.resolve import Function, Module
from tsdyn_lint.rulebook import Rule, RuleBook
from tsdyn_lint.torchdata.load import TorchData, load

DEFAULTS = CompileSettings()
_SHOWN = 60
_CALLS = frozenset({"call", "method"})
_BRANCH = "GB0170"
"""Data-dependent branching: what is left of a break at a call that this torch traces."""
_SPECIAL = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class _Names:
    """A set of globs made ready: nearly all are plain names or end in their only `*`, and need no expression."""

    plain: frozenset[Any]
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, globs: Iterable[Any]) -> _Names:
        plain, prefixes, rest = set(), set(), set()
        for glob in globs:
            if not isinstance(glob, str) or not _SPECIAL.search(glob):
                plain.add(glob)
            elif glob[-1] == "*" and not _SPECIAL.search(glob[:-1]):
                prefixes.add(glob[:-1])
            else:
                rest.add(glob)
        pattern = re.compile("|".join(map(translate, sorted(rest)))) if rest else None
        return cls(frozenset(plain), tuple(sorted(prefixes)), pattern)

    def hold(self, name: object) -> bool:
        if name in self.plain:
            return True
        if not isinstance(name, str):
            return False
        return name.startswith(self.prefixes) or self.pattern is not None and self.pattern.match(name) is not None


@dataclass(frozen=True)
class _Condition:
    fact: str
    values: _Names

    def holds(self, event: Event) -> bool:
        return self.values.hold(event.facts.get(self.fact))


@dataclass(frozen=True)
class _Table:
    """A rule's `[match]` table made ready."""

    code: str
    rulebook: RuleBook
    kinds: frozenset[str]
    conditions: tuple[_Condition, ...]

    def verdict(self, event: Event) -> Verdict | None:
        if all(c.holds(event) for c in self.conditions):
            return Verdict(frozenset(self.rulebook[self.code].engines))
        return None


_Decide = Callable[[Event], "Verdict | None"]


@dataclass(frozen=True)
class Matcher:
    """The codes of all rules of a run, by the kind of event they look at. A page is read when its rule finds."""

    rulebook: RuleBook
    rules: Mapping[str, list[tuple[str, _Decide]]]
    targets: _Names
    _known: dict[str, bool] = field(default_factory=dict)

    def wants(self, dotted: str) -> bool:
        """Whether some rule looks at calls of that dotted name."""
        found = self._known.get(dotted)
        if found is None:
            found = self._known[dotted] = self.targets.hold(dotted)
        return found

    def findings(
        self,
        events: Iterable[Event],
        engines: frozenset[Engine],
        version: tuple[int, int],
        compiled: CompileSettings = DEFAULTS,
    ) -> Iterator[Finding]:
        """What the rules say of the events, for these engines, this torch and the way the project compiles."""
        data = load(version)
        hits = list(self._hits(events, version, compiled, data))
        breaks = [event for event, _, _, hit in hits if Engine.DYNAMO in hit]
        eager = given_up(breaks)
        masked = {} if compiled.fullgraph else behind(breaks, eager)
        hidden = frozenset(event for events in masked.values() for event in events)
        places: dict[tuple[str, int, int], list[_Hit]] = {}
        for event, rule, verdict, hit in hits:
            if event in hidden:
                hit -= {Engine.DYNAMO}  # its frame is eager before it is reached
            if event.function in eager:
                hit -= {Engine.RECOMPILE}  # nothing of it is compiled, so nothing compiles again
            hit &= engines
            if hit:
                place = (rule.code, id(event.node), id(event.asked.node) if event.asked is not None else 0)
                places.setdefault(place, []).append((event, rule, verdict, hit))
        for group in places.values():
            event, rule, verdict, hit = _together(group)
            later = masked.get(event, ()) if Engine.DYNAMO in hit else ()
            try:
                yield _for_version(_finding(event, rule, verdict, hit, compiled, later, version), event, data)
            except RecursionError as error:  # too deep a tree for libcst to print
                yield internal_error(event.module.path, error, f"placing {rule.code}")

    def _hits(
        self,
        events: Iterable[Event],
        version: tuple[int, int],
        compiled: CompileSettings,
        data: TorchData,
    ) -> Iterator[tuple[Event, Rule, Verdict, frozenset[Engine]]]:
        """Each event with each rule that speaks of it, and the captures it breaks."""
        for event in events:
            if not event.judged:
                continue
            named = False
            for code, decide in self.rules.get(event.kind, ()):
                if named and _is_fallback(code):
                    continue
                verdict = decide(event)
                if verdict is None:
                    continue
                rule = self.rulebook[code]
                if not rule.holds_for(version):
                    continue
                named = True
                hit = verdict.engines & event.engines
                if Engine.DYNAMO in hit and compiled.captures(event):
                    hit -= {Engine.DYNAMO, Engine.RECOMPILE}
                if Engine.RECOMPILE in hit and compiled.generalises(event):
                    hit -= {Engine.RECOMPILE}
                yield event, rule, verdict, hit - _mended(event, data)


_Hit = tuple[Event, Rule, Verdict, frozenset[Engine]]


def _together(group: Sequence[_Hit]) -> _Hit:
    """What a rule says of one place for several values that may be there: the surest one, and what the others add.

    What is only possible adds nothing to what is likely.
    """
    sure = [min(event.judged, verdict.confidence) for event, _, verdict, _ in group]
    best = max(sure)
    said = [hit for hit, one in zip(group, sure, strict=True) if one == best or one >= LIKELY]
    event, rule, verdict, hit = group[sure.index(best)]
    if len(said) == 1:
        return event, rule, verdict, hit
    effects = {engine: text for _, _, other, _ in reversed(said) for engine, text in other.effects.items()}
    severities = {other.severity for _, _, other, _ in said}
    severity = verdict.severity if len(severities) == 1 else None
    return event, rule, replace(verdict, severity=severity, effects=effects), hit.union(*(one[3] for one in said))


def _for_version(finding: Finding, event: Event, data: TorchData) -> Finding:
    """The finding with the id that this torch gives, where it is not the one that the page was written with."""
    if event.kind not in _CALLS or not finding.gb:
        return finding
    target = str(event.facts.get("target", ""))
    other = _BRANCH if data.mended(target) else data.renamed(target)
    return replace(finding, gb=(other,)) if other else finding


def _mended(event: Event, data: TorchData) -> frozenset[Engine]:
    """Captures that stumble over this in the version the rules were written for, but not in this one."""
    if event.kind in _CALLS:
        branches = any(use.kind in ("branch", "while", "if") for use in event.uses)  # the break is then at the branch
        traced = not branches and data.mended(str(event.facts.get("target", "")))
        return frozenset({Engine.DYNAMO}) if traced else frozenset()
    if event.kind == "datasize" and event.facts["form"] == "setitem":
        fine = "export" not in data.verdicts("tensor-index-assignment")
        return frozenset({Engine.EXPORT}) if fine else frozenset()
    if event.kind == "write" and event.facts["owner"] == "global" and not event.facts.get("reads"):
        counted = event.facts["form"] == "augment" and "container" not in event.facts
        fine = counted and "recompile" not in data.verdicts("global-counter")
        return frozenset({Engine.RECOMPILE}) if fine else frozenset()
    return frozenset()


def matcher(rulebook: RuleBook) -> Matcher:
    """The rule book made ready for matching."""
    rules: dict[str, list[tuple[str, _Decide]]] = {}
    targets: list[str] = []
    for code in sorted(rulebook.codes):
        if code in CHECKS:
            check: Check = CHECKS[code]
            targets += check.targets
            for kind in check.kinds:
                rules.setdefault(kind, []).append((code, check.decide))
        elif (match := rulebook.match_of(code)) is not None:
            table = _table(code, rulebook, match)
            targets += _as_list(match.get("target", ()))
            for kind in table.kinds:
                rules.setdefault(kind, []).append((code, table.verdict))
    for deciders in rules.values():
        deciders.sort(key=lambda pair: _is_fallback(pair[0]))
    return Matcher(rulebook, rules, _Names.of(targets))


def _is_fallback(code: str) -> bool:
    """Whether a rule speaks only where no other one has anything to say of the event."""
    return code in CHECKS and CHECKS[code].fallback


def _table(code: str, rulebook: RuleBook, match: Mapping[str, Any]) -> _Table:
    conditions = [
        _Condition(fact, _Names.of(allowed if isinstance(allowed, list) else [allowed]))
        for fact, allowed in match.items()
        if fact != "event"
    ]
    return _Table(code, rulebook, frozenset(_as_list(match["event"])), tuple(conditions))


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _finding(
    event: Event,
    rule: Rule,
    verdict: Verdict,
    engines: frozenset[Engine],
    compiled: CompileSettings,
    masked: Iterable[Event],
    version: tuple[int, int],
) -> Finding:
    at: Event | Step = event.asked or event
    start, end = at.module.tree.places.span(at.node)
    ordered = tuple(e for e in Engine if e in engines)
    return Finding(
        code=rule.code,
        name=rule.name,
        message=_message(event, rule, verdict, ordered, compiled, version),
        severity=verdict.severity or _severity(event, rule, engines, compiled),
        filename=str(at.module.path),
        start=start,
        end=end,
        engines=ordered,
        confidence=CONFIDENCE[min(event.judged, verdict.confidence)],
        gb=rule.gb if Engine.DYNAMO in engines else (),
        entry=event.entry or None,
        related=(*_related(event), *(_place(e.node, e.function, "breaks next, once this is gone") for e in masked)),
        scope=at.scope,
    )


def _severity(event: Event, rule: Rule, engines: frozenset[Engine], compiled: CompileSettings) -> Severity:
    """One more graph is a warning; a whole frame in eager, a split in each layer, or a wrong result is an error."""
    once = engines <= {Engine.DYNAMO} and not event.skips and not event.repeated and not compiled.fullgraph
    return Severity.WARNING if once and rule.severity is Severity.ERROR else rule.severity


_USES = {
    **{kind: f"used here ({kind})" for kind in ("index", "shape", "while", "if")},
    "branch": "decides a branch",
    "loop": "decides a loop",
    "accumulate": "changed in place here",
    "again": "met here too",
    "write": "set here for the next call",
}


def _related(event: Event) -> Iterator[Related]:
    """The calls on the way from the entry point, outermost first, then where a value that was read is used."""
    for step in event.stack:
        if step is event.asked:
            yield _place(event.node, event.function, "turned on by an argument of this call")
            break
        yield _place(step.node, step.caller, f"called from `{step.caller.qualname}`")
    for use in event.uses:
        if use.kind in _USES and use.node is not event.node:
            yield _place(use.node, use.function, _USES[use.kind])


def _place(node: cst.CSTNode, function: Function, message: str) -> Related:
    start, end = function.module.tree.places.span(node)
    return Related(str(function.module.path), start, end, message)


def source_text(node: cst.CSTNode, module: Module) -> str:
    """The code of a node on one line, cut to a length that fits a message."""
    text = " ".join(module.tree.places.text(node).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3].rstrip() + "..."


def _message(
    event: Event,
    rule: Rule,
    verdict: Verdict,
    engines: tuple[Engine, ...],
    compiled: CompileSettings,
    version: tuple[int, int],
) -> str:
    """One line: what it is, what happens in each capture of this torch, what to write instead."""
    facts = {
        **event.facts,
        **verdict.facts,
        "code": source_text(event.node, event.module),
        "function": event.function.name,
    }
    head = rule.message.format_map(_Facts(facts))
    if event.asked is not None:
        head += ", turned on by an argument of this call"
    told = [e for e in engines if e.value in rule.effect or e is Engine.DYNAMO]
    effects = [f"{e.value} {_effect(event, rule, verdict, e, compiled)}" for e in told]
    parts = [head, *(["; ".join(effects)] if effects else [])]
    text = ": ".join(parts) if len(parts) > 1 and ":" not in head else " - ".join(parts)
    text += " (torch {}.{})".format(*version)
    return f"{text}. {rule.advice[:1].upper()}{rule.advice[1:]}" if rule.advice else text


def _effect(event: Event, rule: Rule, verdict: Verdict, engine: Engine, compiled: CompileSettings) -> str:
    said = verdict.effects.get(engine) or rule.effect.get(engine.value, "splits the graph")
    if engine is not Engine.DYNAMO:
        return said
    if compiled.fullgraph and event.facts.get("target") != "torch.compiler.<disabled>":
        return "raises (fullgraph=True)"
    if event.skips and "whole function" not in said:
        where = {"loop": "a loop", "try": "a try", "with": "a with that it cannot resume in"}[event.skips]
        return f"runs all of `{event.function.name}` without a graph (it cannot resume inside {where})"
    if event.repeated:
        return f"{said}, in each of the layers"
    return said


class _Facts(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


__all__ = ["Matcher", "Severity", "matcher", "source_text"]
