"""TSD3xx: calls that cannot be captured, where it depends on more than the name called."""

from __future__ import annotations

import re
from fnmatch import translate

from tsdyn_lint.checks.registry import D, E, S, T, check
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event


@check("TSD311", "tensor-attr", "method", "call", targets=("torch.Tensor.requires_grad_",))
def requires_grad_write(event: Event) -> set[Engine] | None:
    facts = event.facts
    if event.kind == "tensor-attr":
        return {D, S} if facts["name"] == "requires_grad" and facts["mode"] == "write" else None
    if event.kind == "call":
        return {D, S} if facts["target"] == "torch.<requires_grad=True>" else None
    if facts["target"] != "torch.Tensor.requires_grad_":
        return None
    # what is that way already, as any but a parameter is without gradients, may be set
    is_set_so = facts["kept"] or facts["off"] and facts["origin"] != "parameter"
    return set() if is_set_so else {D}


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


_SKIPPED_CALLS = (
    *("gc.*", "uuid.*", "hashlib.*", "base64.*", "binascii.*", "inspect.stack", "inspect.currentframe"),
    *("inspect.getframeinfo", "inspect.getsource", "sys._getframe", "sys.getsizeof", "traceback.print_*"),
    *("traceback.extract_*", "contextvars.ContextVar.*", "faulthandler.*", "resource.*", "psutil.*"),
    *("tracemalloc.*", "ctypes.*", "dis.*", "ast.*", "atexit.*", "signal.*", "sqlite3.*"),
    *("torch.cuda.device_count", "torch.cuda.memory_allocated", "torch.cuda.is_bf16_supported"),
    *("torch.cuda.max_memory_allocated", "torch.cuda.memory_reserved", "torch.Tensor.as_subclass"),
    *("torch.Tensor.is_inference",),
)
_SKIPPED = re.compile("|".join(map(translate, _SKIPPED_CALLS)))


@check("TSD316", "call", "method", targets=_SKIPPED_CALLS, fallback=True)
def skipped_call(event: Event) -> set[Engine] | None:
    """Names of our own, then what the torch data says of this version's Dynamo."""
    target = event.facts["target"]
    if target == "torch.Tensor.as_subclass":
        return {D, S, E}
    if _SKIPPED.match(target):
        return {D, S}
    return {D} if event.facts["refused"] else None


_PACKED = tuple(
    f"torch.{name}"
    for name in (
        *("nn.utils.rnn.pack_padded_sequence", "nn.utils.rnn.pack_sequence", "nn.utils.rnn.pad_packed_sequence"),
        *("nn.utils.rnn.unpack_sequence", "nn.utils.rnn.PackedSequence"),
        *("_VF._pack_padded_sequence", "_VF._pad_packed_sequence"),
    )
)


@check("TSD318", "call", "rnn", targets=_PACKED)
def packed_sequence(event: Event) -> set[Engine] | None:
    if event.kind == "rnn":
        return {E} if event.facts.get("packed") else None
    target = event.facts["target"]
    if target not in _PACKED:
        return None
    return {D, E} if target.endswith("pad_packed_sequence") else {D}
