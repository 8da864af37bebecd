"""Whether a capture answers as eager does: on the same call, on later ones and on other inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.limits import TooLong
from tsdyn_lint.verify.limits import attempt as limit
from tsdyn_lint.verify.observe import Answer
from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import Call, Subject, invoke

RTOL, ATOL = 1e-3, 1e-4
"""Looser than torch's defaults: another order of the same additions is no finding."""

CALL_SECONDS = 20.0

Result = tuple[bool, Any]
"""Whether the call returned, and what; or False and the exception."""


class Agreement:
    """Eager's answers to a sequence of calls on one instance, worked out once and compared with each capture.

    The sequence is the example, the example again (state shows), then every other call that eager takes. It is run
    twice (what differs between the two is noise), and once more with a call before it: making a capture runs the
    module once, so a capture that keeps its state right may be one call ahead.
    """

    def __init__(self, subject: Subject) -> None:
        again = Call(subject.example.args, subject.example.kwargs, "the example again", "again")
        self.subject = subject
        self.calls, self.eager = taken(subject, (subject.example, again, *subject.others))
        self._ahead: list[Result] | None = None
        again_all = run(subject.fresh(), self.calls)
        self.noise = tuple(
            c.label for c, a, b in zip(self.calls, self.eager, again_all, strict=True) if a[0] and difference(a, b)
        )
        """Labels of the calls to which eager itself gives two answers."""

    def answers(
        self,
        captured: Callable[..., Any],
        refusal: Callable[[Exception, Call], bool],
    ) -> tuple[Answer, ...]:
        """One `Answer` a call. `refusal` says whether an exception is a guard's, not a failure."""
        return self._answers(run(captured, self.calls), refusal)

    def repeated(self, captured: Callable[..., Any], first: Result) -> tuple[Answer, ...]:
        """Of the example and its repetition alone, for a capture that was made by the first of these calls."""
        same = [call for call in self.calls if call.kind in ("example", "again")]
        return self._answers([first, *run(captured, same, 1)], never)

    def _answers(self, given: Sequence[Result], refusal: Callable[[Exception, Call], bool]) -> tuple[Answer, ...]:
        answers = self._compare(self.eager, given, refusal)
        if any(a.outcome == "differs" for a in answers):
            if self._ahead is None:
                function = self.subject.fresh()
                attempt(function, self.calls[0], 0)
                self._ahead = run(function, self.calls)
            ahead = self._compare(self._ahead, given, refusal)
            if not any(a.outcome in ("differs", "raises", "eager-failed") for a in ahead):
                return ahead
        return answers

    def _compare(
        self, eager: Sequence[Result], given: Sequence[Result], refusal: Callable[[Exception, Call], bool]
    ) -> tuple[Answer, ...]:
        return tuple(
            answer(call, want, got, call.label in self.noise, refusal)
            for call, want, got in zip(self.calls, eager, given, strict=False)  # `given` may be the first of them
        )


def agreement(subject: Subject) -> Agreement:
    """Eager's answers for a subject, made on first use and kept: every capture is compared with the same ones."""
    if subject.eager is None:
        subject.eager = Agreement(subject)
    found: Agreement = subject.eager
    return found


def taken(subject: Subject, calls: Sequence[Call]) -> tuple[tuple[Call, ...], list[Result]]:
    """The calls that one instance takes in eager, one after the other, and its results.

    One that raises is left out and the rest run anew: half-way it may have left its mark on what the later ones give.
    """
    while True:
        results = run(subject.fresh(), calls)
        kept = tuple(call for call, result in zip(calls, results, strict=True) if call is calls[0] or result[0])
        if len(kept) == len(calls):
            return kept, results
        calls = kept


def run(function: Callable[..., Any], calls: Sequence[Call], first: int = 0) -> list[Result]:
    """What one instance gives on one call after the other, from the one with that index on."""
    return [attempt(function, call, index) for index, call in enumerate(calls[first:], first)]


def attempt(function: Callable[..., Any], call: Call, seed_value: int) -> Result:
    """Call it; an exception is a result, and so is one call that never returns (a lock that an error left taken)."""
    try:
        with limit(CALL_SECONDS):
            return True, detached(invoke(function, call, seed_value))
    except (Exception, TooLong) as error:
        return False, error


def never(error: Exception, call: Call) -> bool:
    """For captures without guards that may refuse an input."""
    return False


def answer(
    call: Call, want: Result, got: Result, noisy: bool = False, refusal: Callable[[Exception, Call], bool] = never
) -> Answer:
    """How a capture's result compares with eager's."""
    outcome, message = _outcome(call, want, got, noisy, refusal)
    return Answer(call.label, outcome, message, call.kind)


def _outcome(
    call: Call, want: Result, got: Result, noisy: bool, refusal: Callable[[Exception, Call], bool]
) -> tuple[str, str]:
    if not want[0]:
        return "eager-failed", shorten(f"{type(want[1]).__name__}: {want[1]}", 300)
    if not got[0]:
        kind = "refused" if refusal(got[1], call) else "raises"
        return kind, shorten(f"{type(got[1]).__name__}: {got[1]}", 600)
    if found := difference(want, got, shapes_only=noisy):
        return "differs", found
    return ("noisy" if noisy else "same"), ""


def detached(tree: Any) -> Any:
    """Copies of the tensors, since a later call may write to what an earlier one returned."""
    return pytree.tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, tree)


def difference(want: Result, got: Result, shapes_only: bool = False) -> str:
    """How two results differ, in a clause; empty if they agree. Containers may change kind (a list, a tuple)."""
    if want[0] != got[0]:
        return "one raises"
    if not want[0]:
        return ""
    left, right = leaves(want[1]), leaves(got[1])
    if len(left) != len(right):
        return f"{len(right)} values instead of {len(left)}"
    for a, b in zip(left, right, strict=True):
        found = _leaf_difference(a, b, shapes_only)
        if found:
            return found
    return ""


def leaves(tree: Any) -> list[Any]:
    """Tensors and numbers of a result, in order; what has no value to compare is left out."""
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, (torch.Tensor, bool, int, float, str))]


def _leaf_difference(a: Any, b: Any, shapes_only: bool) -> str:
    if isinstance(a, str) or isinstance(b, str):
        return "" if a == b or shapes_only else f"{b!r} instead of {a!r}"
    left, right = _tensor(a), _tensor(b)
    if left.shape != right.shape:
        return f"shape {tuple(right.shape)} instead of {tuple(left.shape)}"
    if shapes_only or left.numel() == 0:
        return ""
    wide = torch.complex128 if left.is_complex() or right.is_complex() else torch.float64
    left, right = left.to(wide), right.to(wide)
    if torch.allclose(right, left, rtol=RTOL, atol=ATOL, equal_nan=True):
        return ""
    gap = (right - left).abs().max().item()
    return "other values" if math.isnan(gap) else f"off by up to {gap:.3g}"


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        return torch.tensor(value)
    plain: torch.Tensor = value.detach()
    return plain.to_dense().cpu() if plain.layout is not torch.strided else plain.cpu()
