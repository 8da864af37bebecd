"""What the probes saw, as plain data: written by a worker as one JSON object a line, read back by the linter's process.

Nothing here imports torch. Rows are 1-based and file names absolute.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    """A line of a source file, and the function it sits in where that is known."""

    filename: str
    row: int
    function: str = ""


@dataclass(frozen=True)
class Fault:
    """Something that was raised. `site` is the innermost line of the project on the way there."""

    type: str
    message: str
    site: Site | None = None
    stack: tuple[Site, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A capture against eager on one call.

    `outcome`: `same`, `differs`, `raises` (the capture does, eager does not), `refused` (a guard of the capture
    says it was not made for this input), `noisy` (eager does not agree with itself, only shapes were compared and
    agree) or `eager-failed` (nothing to compare with).
    """

    input: str
    outcome: str
    message: str = ""
    kind: str = "given"
    """How the call differs from the example: `example`, `again`, `values`, `sizes` or `given` (by the user)."""


def agree(answers: Iterable[Answer], kinds: Sequence[str]) -> bool | None:
    """Whether all comparable answers of those kinds are eager's; None where there is none."""
    told = [a.outcome for a in answers if a.kind in kinds and a.outcome in ("same", "differs", "raises")]
    return all(outcome == "same" for outcome in told) if told else None


@dataclass(frozen=True)
class Eager:
    """One plain call. `lines` are the rows of project files that ran; `noise` the calls eager itself cannot repeat."""

    ok: bool
    error: Fault | None = None
    lines: dict[str, list[int]] = field(default_factory=dict)
    noise: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Break:
    """A graph break. `stack` is outermost first; `site` the last frame of it that is in the project.

    `frame`: where there is none, the function of the project that was compiled, at its `def`. Dynamo's stack leaves it
    out where the break is in a module of torch that it calls.
    """

    site: Site | None
    gb: str | None
    reason: str
    explanation: str = ""
    stack: tuple[Site, ...] = ()
    frame_skipped: bool = False
    frame: Site | None = None


@dataclass(frozen=True)
class SkippedFrame:
    """A function that Dynamo gave up on: it runs eagerly, and what it would have said of later lines is unknown."""

    filename: str
    name: str
    first_row: int
    row: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Graph:
    """One captured graph: how many operations it holds, and the rows of project files that they come from."""

    ops: int
    lines: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dynamo:
    """`torch.compile` with a backend that changes nothing. `ok` is false only where it raised."""

    ok: bool
    graphs: int = 0
    ops: int = 0
    breaks: tuple[Break, ...] = ()
    skipped: tuple[SkippedFrame, ...] = ()
    error: Fault | None = None
    answers: tuple[Answer, ...] = ()
    lifted: dict[str, list[Site]] = field(default_factory=dict)
    """Which breaks go away under a switch of torch (`capture_scalar_outputs`, ...): the proof of a fix."""
    captured: tuple[Graph, ...] = ()
    """The graphs of the example call, in the order in which they were captured."""
    unavailable: str | None = None


@dataclass(frozen=True)
class Recompile:
    """A frame was compiled again because of a guard that failed. `site` is where that guard was made, if it says."""

    input: str
    guard: str
    site: Site | None = None
    frame: Site | None = None


@dataclass(frozen=True)
class Recompiles:
    """A sweep of calls on one compiled module. `hits` counts the calls after the first that compiled nothing."""

    ok: bool
    calls: tuple[str, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    graphs_after: tuple[int, ...] = ()
    hits: int = 0
    answers: tuple[Answer, ...] = ()
    limit_hit: bool = False
    error: Fault | None = None
    unavailable: str | None = None

    @property
    def hit_rate(self) -> float | None:
        """The share of calls after the first that found a compiled graph, None for fewer than two calls."""
        return self.hits / (len(self.calls) - 1) if len(self.calls) > 1 else None


@dataclass(frozen=True)
class ScriptError:
    """What `torch.jit.script` refused. `how`: `whole`, `leaf` (a submodule alone) or `masked` (past earlier errors)."""

    fault: Fault
    how: str = "whole"


@dataclass(frozen=True)
class Script:
    """`ok`: compiles as it stands. `complete`: past the listed errors nothing else was refused."""

    ok: bool
    errors: tuple[ScriptError, ...] = ()
    complete: bool = True
    answers: tuple[Answer, ...] = ()
    run_error: Fault | None = None
    unavailable: str | None = None


@dataclass(frozen=True)
class Warned:
    """A TracerWarning on a line of the project."""

    site: Site
    message: str


@dataclass(frozen=True)
class Trace:
    """`torch.jit.trace` and what the traced module answers afterwards. `lines` ran while it was traced."""

    ok: bool
    error: Fault | None = None
    warnings: tuple[Warned, ...] = ()
    answers: tuple[Answer, ...] = ()
    lines: dict[str, list[int]] = field(default_factory=dict)
    unavailable: str | None = None


@dataclass(frozen=True)
class Export:
    """`torch.export.export`, one of its two ways. `lines` ran during it (non-strict only)."""

    ok: bool
    strict: bool
    error: Fault | None = None
    answers: tuple[Answer, ...] = ()
    lines: dict[str, list[int]] = field(default_factory=dict)
    unavailable: str | None = None


@dataclass(frozen=True)
class DraftFailure:
    """A place where a real export would have needed the data: what was asked there."""

    kind: str
    expression: str
    site: Site | None = None


@dataclass(frozen=True)
class Draft:
    """`draft_export`: every data-dependent failure of one run."""

    ok: bool
    failures: tuple[DraftFailure, ...] = ()
    error: Fault | None = None
    unavailable: str | None = None


OBSERVATIONS: dict[str, type[Any]] = {
    "eager": Eager,
    "dynamo": Dynamo,
    "script": Script,
    "trace": Trace,
    "export": Export,
    "export_strict": Export,
    "draft": Draft,
    "recompile": Recompiles,
}
"""Probe name -> what it returns, in the order probes run."""


def encode(value: Any) -> Any:
    """A dataclass of this module, or of `measured`, as JSON-ready data."""
    return None if value is None else dataclasses.asdict(value)


def decode(kind: type[T], data: Any) -> T:
    """The inverse of `encode`; raises KeyError or TypeError on data that is not of that kind."""
    hints = typing.get_type_hints(kind)
    values = {f.name: _value(hints[f.name], data[f.name]) for f in dataclasses.fields(kind) if f.name in data}  # type: ignore[arg-type]
    return kind(**values)


def _value(hint: Any, data: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return None if data is None else _value(next(a for a in args if a is not type(None)), data)
    if origin is tuple:
        return tuple(_value(args[0], item) for item in data)
    if origin is list:
        return [_value(args[0], item) for item in data]
    if origin is dict:
        return {key: _value(args[1], item) for key, item in data.items()}
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast("type[Any]", hint), data)
    return data
