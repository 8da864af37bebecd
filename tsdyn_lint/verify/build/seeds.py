"""First guesses at a module's inputs: from the layers its parameters flow into, their names and their uses."""

from __future__ import annotations

import inspect
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from tsdyn_lint.verify.build.spec import Spec, Specs, floats, listed
from tsdyn_lint.verify.build.uses import Use, calls_of, uses_in

INTEGERS = re.compile(
    r"^(ids?|idx|index|indices|indexes|tokens?|input_ids|labels?|targets?|word|words|chars?|segment|segments|timesteps?"
    r"|token_type_ids|position_ids|.*_(ids?|idx|index|indices|tokens?|labels?|types?)|captions?|questions?|sent|sents"
    r"|sentences?|users?|items?|seq|src|tgt|trg)$"
)
DEPTH = 4
WITH_OPTIONAL = 3
GENERAL: tuple[Spec, ...] = (
    floats(4, 4, 4, 4), floats(2, 3, 64, 64), floats(4, 4, 4), floats(4, 4), Spec("i", (4, 4)), floats(4),
    listed(4, floats(4, 4, 4, 4)), floats(1, 4, 16, 16, 16), floats(4, 1, 4, 4), floats(2, 1, 28, 28),
)  # fmt: skip


def parameters(function: Callable[..., Any], bound: bool) -> list[inspect.Parameter]:
    """Parameters without a default (`bound`: after `self`), then those that default to None.

    One tensor where it takes whatever comes.
    """
    try:
        found = list(inspect.signature(function).parameters.values())[int(bound) :]
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    required = [p for p in found if p.default is p.empty and p.kind in kinds]
    optional = [p for p in found if p.default is None and p.kind in kinds]
    if not required and (any(p.kind is p.VAR_POSITIONAL for p in found) or any(p.kind in kinds for p in found)):
        first = next((p for p in found if p.kind in kinds), None)
        return [first or inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]
    return required + optional if required else required


def layer_input(layer: nn.Module) -> Spec | None:
    """What a layer of torch's takes; None for others."""
    if isinstance(layer, nn.modules.conv._ConvNd):
        rank = len(layer.kernel_size)
        transposed = isinstance(layer, nn.modules.conv._ConvTransposeNd)
        side = 8 if transposed else {1: 32, 2: 32, 3: 16}.get(rank, 16)
        return floats(2, layer.in_channels, *(side,) * rank)
    if isinstance(layer, nn.Linear):
        return floats(2, layer.in_features)
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return Spec("i", (2, 8), high=min(layer.num_embeddings, 8))
    if isinstance(layer, nn.RNNBase):
        return floats(2, 8, layer.input_size)
    if isinstance(layer, nn.RNNCellBase):
        return floats(2, layer.input_size)
    if isinstance(layer, (nn.BatchNorm2d, nn.InstanceNorm2d)):
        return floats(2, layer.num_features, 16, 16)
    if isinstance(layer, nn.BatchNorm3d):
        return floats(2, layer.num_features, 8, 16, 16)
    if isinstance(layer, nn.BatchNorm1d):
        return floats(2, layer.num_features)
    if isinstance(layer, nn.GroupNorm):
        return floats(2, layer.num_channels, 16, 16)
    if isinstance(layer, nn.LayerNorm):
        return floats(2, 8, *layer.normalized_shape)
    if isinstance(layer, nn.MultiheadAttention):
        return floats(8, 2, layer.embed_dim)
    if isinstance(layer, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        return floats(8, 2, layer.self_attn.embed_dim)
    return None


def first_input(module: nn.Module) -> Spec | None:
    """What the first layer of torch's among its modules takes."""
    return next((spec for layer in module.modules() if (spec := layer_input(layer)) is not None), None)


def flows(module: nn.Module, depth: int = DEPTH) -> dict[str, Spec]:
    """Parameter of `forward` -> what the first layer it is handed to takes, followed into the project's submodules."""
    found: dict[str, Spec] = {}
    if depth == 0:
        return found
    for path, position, name in calls_of(type(module).forward):
        if name in found:
            continue
        spec = _taken(_below(module, path), position, depth)
        if spec is not None:
            found[name] = spec
    return found


def _below(module: nn.Module, path: str) -> Any:
    """`encoder`, `layers[0]`, `encoder.embed`: the submodule of that path, a loop's variable aside."""
    target: Any = module
    for part in re.findall(r"\w+", path):
        try:
            target = target[int(part)] if part.isdigit() else getattr(target, part)
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
    return target


def _taken(target: Any, position: int, depth: int) -> Spec | None:
    if not isinstance(target, nn.Module):
        return None
    direct = layer_input(target)
    if direct is not None:
        return direct if position == 0 or isinstance(target, nn.MultiheadAttention) else None
    if isinstance(target, nn.Sequential):
        return (
            next((s for layer in target if (s := _taken(layer, position, depth - 1)) is not None), None)
            if depth
            else None
        )
    names = [p.name for p in list(inspect.signature(type(target).forward).parameters.values())[1:]]
    inner = flows(target, depth - 1)
    if position < len(names) and names[position] in inner:
        return inner[names[position]]
    return first_input(target) if position == 0 else None


def module_seeds(module: nn.Module) -> Iterator[Specs]:
    """Guesses at all arguments of a module's `forward` together, likeliest first."""
    forward = type(module).forward
    first = first_input(module) or floats(2, 4, 4, 4)
    return _seeds(parameters(forward, True), uses_in(forward), flows(module), first)


def function_seeds(function: Callable[..., Any]) -> Iterator[Specs]:
    """The same for a function of tensors."""
    return _seeds(parameters(function, False), uses_in(function), {}, floats(4, 8))


def _seeds(
    wanted: list[inspect.Parameter], uses: defaultdict[str, Use], known: dict[str, Spec], first: Spec
) -> Iterator[Specs]:
    """Required parameters alone, likeliest first; then with those that default to None, which some code needs."""
    required = [p for p in wanted if p.default is p.empty] or wanted[:1]
    yield from _guesses(required, uses, known, first)
    if len(wanted) > len(required):
        yield from itertools.islice(_guesses(wanted, uses, known, first), WITH_OPTIONAL)


def _guesses(
    wanted: list[inspect.Parameter], uses: defaultdict[str, Use], known: dict[str, Spec], first: Spec
) -> Iterator[Specs]:
    anchor = next((known[p.name] for p in wanted if p.name in known), first)
    seen = set()
    for base in (anchor, first, *GENERAL):
        specs = tuple(_one(p, uses[p.name], known.get(p.name) if base is anchor else None, base) for p in wanted)
        if specs not in seen:
            seen.add(specs)
            yield specs


def _one(parameter: inspect.Parameter, use: Use, known: Spec | None, base: Spec) -> Spec:
    name, annotation = parameter.name.lower(), str(parameter.annotation).lower()
    if use.keys:
        keys = tuple(dict.fromkeys(use.keys))
        return Spec("dict", items=(base,) * len(keys), keys=keys)
    if "list[" in annotation or "tuple[" in annotation or "sequence[" in annotation:
        return listed(4, base if base.is_tensor else floats(4, 4, 4, 4))
    if "bool" in annotation and "tensor" not in annotation:
        return Spec("value", value=False)
    if re.search(r"\bint\b", annotation) and "tensor" not in annotation:
        return Spec("value", value=4)
    if re.search(r"\bfloat\b", annotation) and "tensor" not in annotation:
        return Spec("value", value=0.5)
    if "str" in annotation.split("[")[0] and "tensor" not in annotation:
        return Spec("value", value=next((v for v in use.compared if isinstance(v, str)), "relu"))
    strings = [value for value in use.compared if isinstance(value, str)]
    if strings:
        return Spec("value", value=strings[0])
    if use.parts and known is None:
        return listed(use.parts, base if base.is_tensor else floats(4, 4, 4, 4), "tuple")
    if known is not None:
        return _ranked_by_use(known, use)
    if not base.is_tensor:
        return base
    if re.search(r"^(adj|adjacency|a|graph)(_?mat(rix)?)?$", name) and len(base.shape) >= 2:
        return floats(base.shape[0], base.shape[0])
    if name == "edge_index":
        return Spec("i", (2, 4), high=2)
    if re.search(r"^(h|hx|hidden|c|state|hidden_state|prev_h\w*)$", name) and len(base.shape) == 2:
        return floats(*base.shape)
    if INTEGERS.match(name) and "float" not in annotation:
        return Spec("i", base.shape[:2])
    return _ranked_by_use(base, use)


def _ranked_by_use(spec: Spec, use: Use) -> Spec:
    """The tensor with as many dimensions as the function unpacks or permutes."""
    if not spec.is_tensor or not use.dims:
        return spec
    wanted, shape = max(use.dims), list(spec.shape)
    if spec.kind == "f" and len(shape) == 2 and wanted >= 3:  # a Linear takes any dimensions before its own
        shape = [2, *[8] * (wanted - 2), shape[-1]]
    while len(shape) < wanted:
        shape.append(16)
    return spec.with_shape(tuple(shape))
