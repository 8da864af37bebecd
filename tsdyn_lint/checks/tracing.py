"""TSD5xx and TSD6xx: sizes and other facts about the example that guards check and traces bake in."""

from __future__ import annotations

from tsdyn_lint.checks.registry import D, E, R, S, T, Verdict, check
from tsdyn_lint.findings import Engine, Severity
from tsdyn_lint.infer.events import Event


@check("TSD501", "loop")
def loop_over_size(event: Event) -> set[Engine] | None:
    return {R, T} if event.facts["over"] == "size" else None


@check("TSD502", "loop")
def loop_over_tensor(event: Event) -> set[Engine] | None:
    facts = event.facts
    if "module" in event.use_kinds:
        return None  # its counter picks a module for each step: a list of as many tensors
    return {R, T} if facts["over"] == "tensor" and facts["form"] == "iterate" and not facts.get("data_sized") else None


@check("TSD601", "branch")
def size_branch(event: Event) -> Verdict | set[Engine] | None:
    facts = event.facts
    if facts["form"] in ("assert", "torch-assert"):
        return None
    dropped = facts.get("raises_only", False)
    if facts["test_kind"] == "data" and facts.get("sized"):  # nonzero() and its like: Dynamo has ended its graph there
        return {E} if dropped else {T, E}
    if facts["test_kind"] != "size" or dropped and not facts.get("noted"):
        return None
    return Verdict(frozenset({T}), Severity.INFO, effects={T: "drops the check"}) if dropped else {T}


@check("TSD602", "size")
def size_to_constant(event: Event) -> set[Engine] | Verdict | None:
    if event.facts["spelling"] == "dict-key":
        return {R, T}
    if event.facts["spelling"] == "len" and event.use_kinds and event.use_kinds <= {"branch", "raise", "assert"}:
        return None  # the branch on it is a finding, the check on it is none
    if event.facts["spelling"] in ("divmod", "round"):
        return Verdict(frozenset({T}), effects={T: "raises: a traced size is a tensor"})
    return {T} if event.facts["spelling"] in ("int", "float", "len", "math", "min", "max", "numel") else None


@check("TSD603", "branch")
def rank_branch(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["test_kind"] != "rank" or facts.get("raises_only") or facts["form"] in ("assert", "torch-assert"):
        return None
    return {T}


@check("TSD604", "branch")
def requires_grad_branch(event: Event) -> set[Engine] | None:
    facts = event.facts
    return {T, E} if facts["test_kind"] == "grad" and not facts.get("raises_only") else None


@check("TSD605", "tensor-attr")
def data_attribute_read(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["name"] != "data" or facts["mode"] != "read" or facts["origin"] == "constant":
        return None
    use = facts.get("use")
    if use == "made":
        return {E}  # the example's tensor is only asked for its type, but it is there
    if use is not None:  # sizes are constants in a trace once they come from .data; types never change
        return {T} if use == "shape" and facts["origin"] == "data" else None
    return {E} if facts["origin"] in ("parameter", "buffer") else {T, E}


@check("TSD606", "size")
def size_tensor(event: Event) -> set[Engine] | Verdict | None:
    if event.facts["spelling"] != "tensor":
        return None
    if event.facts.get("kept"):
        return Verdict(frozenset({T}), Severity.INFO, effects={T: "keeps the size, but warns"})
    return {T}


@check("TSD607", "literal")
def traced_accumulator(event: Event) -> set[Engine] | None:
    return {T} if "accumulate" in event.use_kinds else None


@check("TSD612", "from-array")
def numpy_to_tensor(event: Event) -> set[Engine] | None:
    return {T} if event.facts["origin"] == "data" else None


@check("TSD702", "tensors-to-tensor")
def tensor_from_tensors(event: Event) -> set[Engine] | None:
    return {S, T, E} if event.facts["form"] == "sequence" else None


@check("TSD503", "size")
def numpy_of_size(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["spelling"] != "numpy":
        return None
    reduced = facts["function"].rpartition(".")[2] in ("prod", "sum", "max", "min", "amax", "amin", "array", "asarray")
    return {R, S, T} | ({D} if reduced and "convert" in event.use_kinds else set())
