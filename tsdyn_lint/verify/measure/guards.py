"""T_guard: what the guard managers of every frame of one call take, asked themselves with that call's values."""

from __future__ import annotations

import statistics
import sys
import time
from functools import cache
from types import CodeType, FrameType
from typing import Any

import torch

from tsdyn_lint.verify.measure.rig import rig
from tsdyn_lint.verify.measure.toolchain import Unavailable
from tsdyn_lint.verify.measured import Guards
from tsdyn_lint.verify.probes.subject import Subject

REPEATS, ROUNDS = 200, 15

Check = tuple[Any, dict[str, Any]]
"""The root of a guard manager, and the values of the frame that it guards."""


def probe(subject: Subject) -> Guards:
    """The checks of one settled call, each timed alone. Neither the profiler's event nor torch's metric says that."""
    made = rig(subject)
    with made.conditions():
        if not _shown():
            raise Unavailable("this Python does not show the frames that Dynamo made")
        checks = checks_of(made.settled())
        return Guards(sum(map(_executed, checks)), sum(map(_microseconds, checks)))


@cache
def _shown() -> bool:
    """Whether compiled frames can be seen at all: a call without guards is then one without graphs."""
    x = torch.ones(1)
    compiled = torch.compile(lambda y: y + 1, backend="eager")
    compiled(x)
    return bool(checks_of(lambda: compiled(x)))


def checks_of(step: Any) -> list[Check]:
    """The guards that were found to hold on the way through one call.

    A profile function sees the compiled code of each frame, also of what resumes after a break, with its values.
    """
    try:
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list
        from torch._dynamo.utils import orig_code_map
    except ImportError as error:
        raise Unavailable(f"this torch does not show its guards: {error}") from error
    found: list[Check] = []

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code not in orig_code_map:
            return
        original: CodeType = orig_code_map[frame.f_code]
        for entry in _debug_get_cache_entry_list(original):
            if entry.code is frame.f_code:
                found.append((entry.guard_manager.root, dict(frame.f_locals)))

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        step()
    finally:
        sys.setprofile(previous)
    return [(root, values) for root, values in found if root.check(values)]


def _executed(check: Check) -> int:
    root, values = check
    return int(root.check_verbose(values).num_guards_executed)


def _microseconds(check: Check) -> float:
    root, values = check
    ask, times = root.check, []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(REPEATS):
            ask(values)
        times.append((time.thread_time_ns() - begin) / REPEATS / 1e3)
    return statistics.median(times)
