"""TSD2xx: values and control flow that depend on tensor data."""

from __future__ import annotations

from tsdyn_lint.checks.registry import D, E, R, S, T, Verdict, check
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event

_REACHES_OUTPUT = frozenset({"arith", "shape", "index", "branch", "loop", "return", "arg", "value", "math"})
_STEERS = frozenset({"branch", "loop", "value"})
_MEMBERSHIP = frozenset({"in", "any", "all", "sorted", "min", "max"})
_BRANCHES = frozenset({"if", "ternary", "and", "or", "not", "comprehension", "chain", "filter", "value", "bool"})


def _baked(event: Event) -> bool:
    """Whether a trace that keeps the example's value gives another result for other inputs."""
    return bool(event.use_kinds & _REACHES_OUTPUT) and event.facts.get("origin") != "constant"


@check("TSD201", "branch")
def data_dependent_branch(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["test_kind"] != "tensor" or facts["form"] not in _BRANCHES:
        return None
    return {D, E} if facts.get("raises_only") else {D, T, E}


@check("TSD202", "scalar")
def tensor_to_scalar(event: Event) -> Verdict | None:
    spelling, uses = event.facts["spelling"], event.use_kinds
    if spelling in ("tolist", "range") or spelling == "index" and event.facts.get("container") != "list":
        return None
    engines = {D}
    if uses & {"loop", "branch"} and not uses <= {"assert", "raise"}:
        engines.add(R)
    if _baked(event) or spelling == "index":
        engines.add(T)
    steers = uses & {"branch", "loop", "raise", "math", "value"}
    if (steers or spelling in ("int", "float", "math", "index", "bool")) and not event.facts["numpy"]:
        # an array holds sizes, plain numbers to export; where a tensor becomes one it has already stopped
        engines.add(E)
    sides = {R: "compiles once more for each side of the branch"} if R in engines and "loop" not in uses else {}
    return Verdict(frozenset(engines), effects=sides)


@check("TSD203", "scalar")
def tensor_to_list(event: Event) -> set[Engine] | None:
    if event.facts["spelling"] != "tolist":
        return None
    engines = {D, S}
    if _baked(event):
        engines.add(T)
    if event.use_kinds & {"branch", "raise", "value"} or event.facts.get("data_sized"):
        engines.add(E)
    if event.facts.get("data_sized"):
        engines.add(R)
    return engines


@check("TSD204", "branch", "scalar", "loop")
def data_dependent_loop(event: Event) -> set[Engine] | None:
    facts = event.facts
    if event.kind == "branch":
        return {D, T, E} if facts["test_kind"] == "tensor" and facts["form"] == "while" else None
    if event.kind == "scalar":
        return {D, R, S, T, E} if facts["spelling"] == "range" else None
    return {T, E} if (facts["over"] == "data" or facts.get("data_sized")) and not facts.get("reported") else None


@check("TSD205", "branch")
def data_dependent_assert(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["test_kind"] != "tensor":
        return None
    if facts["form"] == "torch-assert":
        return {D, E}
    if facts["form"] != "assert":
        return None
    return {E} if facts.get("message") in ("none", "literal") and facts.get("plain") else {D, E}


@check("TSD206", "dynshape")
def dynamic_shape_op(event: Event) -> set[Engine] | None:
    op = event.facts["op"]
    if op in ("ctc_loss", "cutoffs"):
        return {D, E}
    return None if op in ("mask-index", "one_hot") else {D}


@check("TSD207", "dynshape", "mask-store")
def boolean_mask_index(event: Event) -> set[Engine] | None:
    if event.facts["op"] != "mask-index":
        return None
    return {T} if event.kind == "mask-store" else {D}


@check("TSD208", "branch", "builtin-extreme")
def tensor_membership(event: Event) -> set[Engine] | None:
    facts = event.facts
    if event.kind == "builtin-extreme":
        return {T}
    if facts["test_kind"] != "tensor" or facts["form"] not in _MEMBERSHIP:
        return None
    if facts["form"] == "sorted":
        return {D} if facts["numpy"] and facts["origin"] == "constant" else {D, T, E}
    return {D, S, T, E}


@check(
    "TSD209",
    "call",
    "method",
    "value-check",
    targets=(
        "torch.equal",
        "torch.allclose",
        "torch.Tensor.equal",
        "torch.Tensor.allclose",
        "torch.is_nonzero",
        "torch.Tensor.is_nonzero",
    ),
)
def tensor_equality_call(event: Event) -> set[Engine] | None:
    if event.kind == "value-check":
        return {D, E}
    if not event.facts["target"].endswith((".equal", ".allclose", ".is_nonzero")) or not event.facts[
        "target"
    ].startswith("torch."):
        return None
    return {D, E, T} if event.use_kinds & {"branch", "arith", "return"} else {D, E}


@check("TSD210", "call", targets=("torch.nn.functional.one_hot",))
def one_hot_without_classes(event: Event) -> set[Engine] | None:
    if event.facts["target"] != "torch.nn.functional.one_hot":
        return None
    return None if "num_classes" in event.facts["keywords"] or event.facts["args"] > 1 else {D, E}


@check("TSD211", "datasize")
def data_dependent_size(event: Event) -> set[Engine] | None:
    return {D, E} if event.facts["form"] in ("setitem", "slice-store") else {D}


@check("TSD212", "scalar")
def module_index_by_tensor(event: Event) -> Verdict | None:
    if event.facts["spelling"] != "index" or event.facts.get("container") == "list":
        return None
    return Verdict(frozenset({D, S, T, E}))


@check("TSD213", "module-read")
def value_read_by_module(event: Event) -> set[Engine] | None:
    return {D, T, E} if event.facts["baked"] else {D, E}
