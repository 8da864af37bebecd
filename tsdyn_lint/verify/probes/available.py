"""Whether a capture works at all in this torch and on this interpreter: found by trying it on nothing much."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch._dynamo
import torch.export

from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import quiet


def _dynamo(module: Any, x: torch.Tensor) -> None:
    torch.compile(module, backend="eager")(x)
    torch._dynamo.reset()


def _script(module: Any, x: torch.Tensor) -> None:
    torch.jit.script(module)


def _trace(module: Any, x: torch.Tensor) -> None:
    tracer: Any = torch.jit.trace
    tracer(module, (x,), check_trace=False)


def _export(module: Any, x: torch.Tensor) -> None:
    torch.export.export(module, (x,), strict=False)


def _export_strict(module: Any, x: torch.Tensor) -> None:
    torch.export.export(module, (x,), strict=True)


TRIES: dict[str, Callable[[Any, torch.Tensor], None]] = {
    "dynamo": _dynamo, "script": _script, "trace": _trace, "export": _export, "export_strict": _export_strict,
}  # fmt: skip


@cache
def lacking(capture: str) -> str | None:
    """Why a capture is not available here, None where it is. TorchScript, for one, ends with Python 3.13."""
    try:
        with quiet():
            TRIES[capture](torch.nn.Identity(), torch.ones(1))
    except Exception as error:
        return f"not available here: {type(error).__name__}: {shorten(str(error), 200)}"
    return None
