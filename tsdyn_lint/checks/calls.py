"""TSD3xx, TSD6xx and TSD7xx: calls by name, where the captures that fail differ from name to name."""

from __future__ import annotations

from tsdyn_lint.checks.registry import D, E, S, T, check
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event

_STORAGE: dict[str, frozenset[Engine]] = {
    "data_ptr": frozenset({D, S, E}),
    "untyped_storage": frozenset({D, S}),
    "storage": frozenset({D, S}),
    "share_memory_": frozenset({D, S, E}),
    "is_shared": frozenset({D, S}),
    "resize_": frozenset({D, T}),
    "resize_as_": frozenset({D, T}),
}
_GENERATOR: dict[str, frozenset[Engine]] = {
    "torch.manual_seed": frozenset({D, T, E}),
    "torch.random.manual_seed": frozenset({D, T, E}),
    "torch.Generator": frozenset({D, S, T, E}),
    "torch.cuda.manual_seed": frozenset({D, S}),
    "torch.cuda.manual_seed_all": frozenset({D, S}),
    "torch.initial_seed": frozenset({D, S}),
    "torch.get_rng_state": frozenset({D, S}),
    "torch.set_rng_state": frozenset({D, S}),
    "torch.random.get_rng_state": frozenset({D, S}),
    "torch.random.set_rng_state": frozenset({D, S}),
    "torch.<made generator>": frozenset({D}),
}
_OUTPUT = frozenset({"arith", "shape", "index", "branch", "loop", "return", "arg", "value", "math", "format"})
_TORCHSCRIPT = tuple(f"torch.jit.{name}" for name in "ScriptModule fork wait isinstance script trace".split())
_DRAWS = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "sample": 0, "ranf": 0, "uniform": 2, "normal": 2,
          "randint": 2, "choice": 1}  # fmt: skip
"""NumPy functions that Dynamo traces, and the most positional arguments with which they return one number."""


@check("TSD319", "call", targets=_TORCHSCRIPT)
def jit_in_forward(event: Event) -> set[Engine] | None:
    target = event.facts["target"]
    if target == "torch.jit.ScriptModule":
        return {D, E}
    return {D} if target in _TORCHSCRIPT else None


@check("TSD323", "method", targets=tuple(f"torch.Tensor.{name}" for name in _STORAGE))
def storage_access(event: Event) -> frozenset[Engine] | None:
    owner, _, name = event.facts["target"].rpartition(".")
    return _STORAGE.get(name) if owner == "torch.Tensor" else None


@check("TSD325", "call", targets=tuple(_GENERATOR))
def rng_state(event: Event) -> frozenset[Engine] | None:
    return _GENERATOR.get(event.facts["target"])


@check("TSD329", "call", targets=("torch.nested.nested_tensor", "torch.nested.as_nested_tensor"))
def nested_tensor(event: Event) -> set[Engine] | None:
    if not event.facts["target"].startswith("torch.nested."):
        return None
    return {S, T, E} if event.facts["layout"] == "jagged" else {D, S, E}


@check(
    "TSD611", "call", "method", targets=("random.*", "random.Random.*", *(f"numpy.random.{name}" for name in _DRAWS))
)
def random_constant(event: Event) -> set[Engine] | None:
    """Those that Dynamo traces, until they decide something; a NumPy draw of one number is read into Python, and
    breaks.
    """
    module, _, name = event.facts["target"].rpartition(".")
    if module in ("random", "random.Random"):
        traced = name in ("uniform", "randint", "randrange") or module == "random.Random" and name == "random"
        decides = {D} if event.likely_uses & {"branch", "loop", "index", "shape"} else set()
        return {S} | decides | _frozen(event) if traced else None
    if module != "numpy.random" or name not in _DRAWS:
        return None
    one = event.facts.get("args", 0) <= _DRAWS[name] and "size" not in event.facts.get("keywords", ())
    return {D, S} | _frozen(event) if one else {S, T, E}


def _frozen(event: Event) -> set[Engine]:
    """Captures that keep the first draw, where it reaches the output."""
    return {T, E} if event.likely_uses & _OUTPUT else set()


@check("TSD701", "call", "method", targets=("torch.Tensor.numpy", "numpy.*"))
def numpy_in_export(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["target"] == "torch.Tensor.numpy":
        return {S, E} if facts.get("origin") == "constant" else {S, T, E}
    return {S, T, E} if facts["target"].startswith("numpy.") and facts.get("argument") == "tensor" else None
