"""Which calls read tensor data or have a size that depends on it: the tags of the operators, carried to the names
people call."""

from __future__ import annotations

from tsdyn_lint.torchdata.sources.natives import Native

_DATA, _SHAPE = "data_dependent_output", "dynamic_output_shape"

# Python-level calls that reach a tagged operator through a composite one, with the condition under which they do
_COMPOSITE = {
    "torch.Tensor.item": _DATA,
    "torch.Tensor.tolist": _DATA,
    "torch.Tensor.is_nonzero": _DATA,
    "torch.is_nonzero": _DATA,
    "torch.Tensor.__bool__": _DATA,
    "torch.Tensor.__int__": _DATA,
    "torch.Tensor.__float__": _DATA,
    "torch.Tensor.__complex__": _DATA,
    "torch.Tensor.__index__": _DATA,
    "torch.Tensor.__contains__": _DATA,
    "torch.tensor_split": f"{_DATA} if indices_or_sections:tensor",
    "torch.Tensor.tensor_split": f"{_DATA} if indices_or_sections:tensor",
    "torch.arange": f"{_DATA} if any:tensor",
    "torch.cov": _DATA,
    "torch.corrcoef": _DATA,
    "torch.Tensor.cov": _DATA,
    "torch.Tensor.corrcoef": _DATA,
    "torch.combinations": _SHAPE,
    "torch.ctc_loss": _SHAPE,
    "torch.nn.functional.ctc_loss": _SHAPE,
    "torch.where": f"{_SHAPE} if nargs=1",
    "torch.unique": _SHAPE,
    "torch.Tensor.unique": _SHAPE,
    "torch.Tensor.unique_consecutive": _SHAPE,
    "torch.repeat_interleave": f"{_SHAPE} if repeats:tensor !output_size",
    "torch.Tensor.repeat_interleave": f"{_SHAPE} if repeats:tensor !output_size",
    "torch.nn.functional.one_hot": f"{_SHAPE} if !num_classes",
    "torch.Tensor.__getitem__": f"{_SHAPE} if index:bool",
}
_SCOPES = {
    "": "torch",
    "nn": "torch.nn.functional",
    "linalg": "torch.linalg",
    "special": "torch.special",
    "sparse": "torch.sparse",
}


def collect(natives: list[Native], known: set[str]) -> dict[str, str]:
    """Qualified name -> tag, or `tag if condition`; only names this torch has (`known`)."""
    found: dict[str, str] = {}
    for native in natives:
        tag = next((t for t in (_DATA, _SHAPE) if t in native.tags), None)
        if tag is None or native.schema.is_out:
            continue
        name = native.schema.name.removeprefix(f"{native.module}_") if native.module else native.schema.name
        names = (
            [f"{_SCOPES[native.module]}.{name}"] if "function" in native.variants and native.module in _SCOPES else []
        )
        names += [f"torch.Tensor.{name}"] if "method" in native.variants else []
        found.update(dict.fromkeys((n for n in names if n in known), tag))
    found.update({name: tag for name, tag in _COMPOSITE.items() if name in known})
    return found
