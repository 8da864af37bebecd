"""`torch.onnx.export`, where the packages that it needs are installed (extra: onnx)."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

from tsdyn_lint.verify.figures import Onnx
from tsdyn_lint.verify.measure.clock import per_call
from tsdyn_lint.verify.measure.rig import bound, rig
from tsdyn_lint.verify.observe import agree
from tsdyn_lint.verify.probes.agreement import agreement
from tsdyn_lint.verify.probes.export import as_module, is_refusal
from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import Subject, quiet

NEEDED = ("onnx", "onnxscript", "onnxruntime")


def probe(subject: Subject) -> Onnx | None:
    """None without the extra."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        return None
    made = rig(subject)
    call = subject.example.copy()
    export: Any = torch.onnx.export
    try:
        with quiet(), torch.no_grad():
            program = export(as_module(made.instance), call.args, kwargs=call.kwargs or None, dynamo=True)
            answers = agreement(subject).answers(program, is_refusal)
            spent = per_call(bound(program, subject.example), made.clock)
    except Exception as error:
        return Onnx(False, shorten(f"{type(error).__name__}: {error}", 300))
    return Onnx(True, "", agree(answers, ("example",)), spent)
