"""TSD3xx: calls that cannot be captured, where it depends on more than the name called."""

from __future__ import annotations

from tsdyn_lint.checks.registry import D, E, S, T, check
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event


@check("TSD311", "tensor-attr", "method", targets=("torch.Tensor.requires_grad_",))
def requires_grad_write(event: Event) -> set[Engine] | None:
    facts = event.facts
    if event.kind == "tensor-attr":
        return {D, S} if facts["name"] == "requires_grad" and facts["mode"] == "write" else None
    if facts["target"] != "torch.Tensor.requires_grad_":
        return None
    return None if facts["intermediate"] else {D}


@check("TSD312", "construct")
def parameter_in_forward(event: Event) -> set[Engine] | None:
    return {D, S} if event.facts["parameters"] else None


@check("TSD313", "call", targets=("copy.copy", "copy.deepcopy"))
def deepcopy_call(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["target"] == "copy.deepcopy":
        if facts["argument"] == "tensor":
            return {D, S, T, E}
        if facts["argument"] == "module" or facts.get("holds_tensor"):
            return {D, S, E}
        return None
    return {D, S} if facts["target"] == "copy.copy" and facts["argument"] == "list" else None
