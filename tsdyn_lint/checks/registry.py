"""What a check is: a function decorated with the code of its page and the kinds of events it looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tsdyn_lint.findings import Engine, Severity
from tsdyn_lint.infer.events import CERTAIN, Event

D, R, S, T, E = Engine.DYNAMO, Engine.RECOMPILE, Engine.SCRIPT, Engine.TRACE, Engine.EXPORT


@dataclass(frozen=True)
class Verdict:
    """The captures that an event breaks. `facts` fill the page's message, `effects` replace its clauses."""

    engines: frozenset[Engine]
    severity: Severity | None = None
    confidence: int = CERTAIN
    facts: Mapping[str, Any] = field(default_factory=dict)
    effects: Mapping[Engine, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A registered check; `targets` are the dotted names (globs) of the calls it wants to see."""

    code: str
    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    test: Callable[[Event], Verdict | frozenset[Engine] | set[Engine] | None]
    fallback: bool = False
    """Speaks only where no other rule has anything to say of the event."""

    def decide(self, event: Event) -> Verdict | None:
        """None where the check has nothing to say of the event; no engines at all where every capture manages it."""
        answer = self.test(event)
        if answer is None:
            return None
        return answer if isinstance(answer, Verdict) else Verdict(frozenset(answer))


CHECKS: dict[str, Check] = {}
Test = Callable[[Event], "Verdict | frozenset[Engine] | set[Engine] | None"]


def check(code: str, *kinds: str, targets: tuple[str, ...] = (), fallback: bool = False) -> Callable[[Test], Test]:
    """Register a check for the rule page of that code."""

    def register(test: Test) -> Test:
        assert code not in CHECKS, f"{code} has two checks"
        CHECKS[code] = Check(code, kinds, targets, test, fallback)
        return test

    return register
