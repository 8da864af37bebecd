"""Eager: does it run at all, which lines does it reach, can it repeat its own answer?"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.observe import Eager
from tsdyn_lint.verify.probes.agreement import agreement
from tsdyn_lint.verify.probes.coverage import Coverage
from tsdyn_lint.verify.probes.places import fault
from tsdyn_lint.verify.probes.subject import Call, Subject, invoke

PATIENCE, FEWEST = 8.0, 3
"""Seconds that the other calls of a target may take in eager, and how many are made though: none if one takes that."""
DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8",
    torch.complex64: "c64",
}  # fmt: skip


def probe(subject: Subject) -> Eager:
    """One covered call, then the comparison of eager with itself on all calls."""
    inputs = describe(subject.example)
    function = subject.fresh()
    coverage = Coverage(subject.project)
    try:
        with coverage:
            start = time.perf_counter()
            invoke(function, subject.example)
            seconds = time.perf_counter() - start
    except Exception as error:
        return Eager(False, fault(error, subject.project), coverage.lines, inputs=inputs)
    subject.others, subject.sweep = affordable(subject.others, seconds), affordable(subject.sweep, seconds)
    return Eager(True, None, coverage.lines, agreement(subject).noise, inputs, seconds)


def affordable(calls: Sequence[Call], seconds: float) -> tuple[Call, ...]:
    """As many of the calls as take `PATIENCE` together, the first of each kind before the others; in their order."""
    room = max(FEWEST, int(PATIENCE / max(seconds, 1e-6))) if seconds < PATIENCE else 0
    first = {call.kind: index for index, call in reversed(list(enumerate(calls)))}
    kept = sorted(range(len(calls)), key=lambda index: (index not in first.values(), index))[:room]
    return tuple(calls[index] for index in sorted(kept))


def describe(call: Call) -> tuple[str, ...]:
    """The arguments in a few characters each: `f32[4,8]`, `i64[]=4`, `flag=True`."""
    named = [(None, arg) for arg in call.args] + list(call.kwargs.items())
    return tuple(f"{name}={_spell(value)}" if name else _spell(value) for name, value in named)


def _spell(value: object) -> str:
    if isinstance(value, torch.Tensor):
        text = f"{DTYPES.get(value.dtype, str(value.dtype).removeprefix('torch.'))}[{','.join(map(str, value.shape))}]"
        return f"{text}={value.item()}" if value.dim() == 0 and not value.is_meta else text
    if isinstance(value, (list, tuple, dict)):
        leaves = pytree.tree_leaves(value)
        kind = type(value).__name__
        return f"{kind}({', '.join(_spell(x) for x in leaves[:4])}{', ...' if len(leaves) > 4 else ''})"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
