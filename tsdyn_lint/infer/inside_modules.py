"""Calls of torch.nn modules -> the tensors whose value torch's own code reads there, where no capture can follow."""

from __future__ import annotations

from collections.abc import Iterator

from tsdyn_lint.infer.recall import Args
from tsdyn_lint.infer.refine import is_none
from tsdyn_lint.infer.values import Const, Instance, Tensor, Value

_MASKS = {
    "torch.nn.TransformerEncoder": (("mask", 1, "is_causal", 3),),
    "torch.nn.TransformerDecoder": (("tgt_mask", 2, "tgt_is_causal", 6),),
    "torch.nn.Transformer": (("src_mask", 2, "src_is_causal", 8), ("tgt_mask", 3, "tgt_is_causal", 9)),
}
"""Each mask that is compared with a causal one unless the call says whether it is: both names and positions."""


def compared_masks(kind: str, args: Args) -> Iterator[Value]:
    """Masks given to a transformer that has to look whether they are causal."""
    for mask, index, told, told_index in _MASKS.get(kind, ()):
        given, causal = args.get(index, mask), args.get(told_index, told)
        if given is not None and not is_none(given) and (causal is None or is_none(causal)):
            if not isinstance(given, Tensor) or given.rank in (2, None):
                yield given


def counts_batches(owner: Instance) -> bool:
    """Whether it is a batch norm that averages over all batches so far, whose number it keeps in a tensor."""
    if not owner.outside.endswith(("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")):
        return False
    tracks = owner.kwargs.get("track_running_stats", owner.args[4] if len(owner.args) > 4 else None)
    momentum = owner.kwargs.get("momentum", owner.args[2] if len(owner.args) > 2 else None)
    return momentum is not None and is_none(momentum) is True and not (isinstance(tracks, Const) and not tracks.value)
