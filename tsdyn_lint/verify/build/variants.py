"""Other calls, made from an example call: other values, negated, other sizes, other numbers and flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.probes.subject import Call

Change = Callable[[torch.Tensor], torch.Tensor]
Resize = Callable[[torch.Size], tuple[int, ...]]


def others(example: Call) -> tuple[Call, ...]:
    """Calls on which a capture that baked something in gives itself away.

    Negated inputs and another batch size show what "other random values" alone do not.
    """
    return (
        _tensors(example, "other values", other_values),
        _tensors(example, "negated", negated),
        *_numbers(example, (2,)),
        *_sized(example, (2,)),
    )


def sweep(example: Call) -> tuple[Call, ...]:
    """Calls in an order that tells one recompile (a size turns dynamic) from one for each new value."""
    again = Call(example.args, example.kwargs, "the example again", "again")
    return (
        again, again, _tensors(example, "other values", other_values), _tensors(example, "negated", negated),
        *_numbers(example, (1, 2, 3, 4)), *_sized(example, (1, 2, 3, 5)),
    )  # fmt: skip


def _mapped(call: Call, label: str, change: Callable[[Any], Any], kind: str = "values") -> Call:
    return Call(call.args, call.kwargs, label, kind, change)


def _tensors(call: Call, label: str, change: Change) -> Call:
    return _mapped(call, label, lambda leaf: _kept(leaf, change) if isinstance(leaf, torch.Tensor) else leaf)


def _kept(tensor: torch.Tensor, change: Change) -> torch.Tensor:
    with torch.no_grad():
        changed = change(tensor.detach())
    return changed.requires_grad_(True) if tensor.requires_grad else changed


def other_values(x: torch.Tensor) -> torch.Tensor:
    """New numbers in the example's range; whole numbers stay within it, so that indices stay valid."""
    generator = torch.Generator().manual_seed(7)
    if x.dtype is torch.bool:
        return torch.rand(x.shape, generator=generator).to(x.device) > 0.5
    if x.numel() == 0 or x.is_sparse or x.is_complex():
        return x.clone()
    low, high = x.min(), x.max()
    if not x.is_floating_point():
        if x.dim() == 0 or low == high:
            return (x - 1).clamp(min=1) if x.dim() == 0 and int(x) > 1 else x + (1 if x.dim() == 0 else 0)
        return torch.randint(int(low), int(high) + 1, x.shape, generator=generator).to(x.device, x.dtype)
    spread = (high - low) if high > low else torch.ones((), dtype=x.dtype, device=x.device)
    noise = torch.rand(x.shape, generator=generator).to(x.device, x.dtype)
    return low + noise * spread


def negated(x: torch.Tensor) -> torch.Tensor:
    """The other sign; flags flipped; whole numbers mirrored within their range."""
    if x.dtype is torch.bool:
        return ~x
    if x.is_floating_point() or x.is_complex():
        return -x
    return x.min() + x.max() - x if x.numel() else x.clone()


def _sized(example: Call, steps: tuple[int, ...]) -> Iterator[Call]:
    """Calls in which one size differs everywhere it occurs: the first dimension, then the others."""
    shapes = [x.shape for x in pytree.tree_leaves((example.args, example.kwargs)) if isinstance(x, torch.Tensor)]
    shapes = [shape for shape in shapes if len(shape)]
    if not shapes:
        return
    batch, longest = shapes[0][0], max(shapes, key=len)
    for step in steps:
        yield _resized(example, f"batch {batch + step}", _batch(batch, step))
    if len(longest) >= 4:
        for step in steps:
            yield _resized(example, f"height and width + {8 * step}", _image(8 * step))
    elif len(longest) >= 2:
        for step in steps:
            yield _resized(example, f"size {longest[1] + step}", _length(longest[1], step))
    if len(longest) == 3:
        yield _resized(example, f"last size {longest[-1] + steps[0]}", _last(steps[0]))


def _batch(size: int, by: int) -> Resize:
    return lambda shape: (shape[0] + by, *shape[1:]) if shape[0] == size else tuple(shape)


def _image(by: int) -> Resize:
    return lambda shape: (*shape[:2], *(n + by for n in shape[2:])) if len(shape) >= 4 else tuple(shape)


def _length(size: int, by: int) -> Resize:
    return lambda shape: (shape[0], *(n + by if n == size else n for n in shape[1:]))


def _last(by: int) -> Resize:
    return lambda shape: (*shape[:-1], shape[-1] + by) if len(shape) == 3 else tuple(shape)


def _resized(example: Call, label: str, change: Resize) -> Call:
    def leaf(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dim() == 0:
            return x
        shape = change(x.shape)
        return x if shape == tuple(x.shape) else _kept(x, lambda t: fill(t, shape))

    return _mapped(example, label, leaf, "sizes")


def fill(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of that shape holding the example's values, repeated as needed."""
    if x.numel() == 0:
        return x.new_zeros(shape)
    count = 1
    for n in shape:
        count *= n
    flat = x.reshape(-1)
    return flat.repeat(count // flat.numel() + 1)[:count].reshape(shape).clone()


def _numbers(example: Call, steps: tuple[int, ...]) -> Iterator[Call]:
    """Calls in which the plain numbers among the arguments grow, and the flags turn."""
    leaves = pytree.tree_leaves((example.args, example.kwargs))
    if any(isinstance(x, bool) for x in leaves):
        yield _mapped(example, "flags turned", lambda x: not x if isinstance(x, bool) else x)
    for applies in (is_number, is_count):
        have = [float(x) for x in leaves if applies(x)]
        for step in steps if have else ():
            label = f"{have[0] + step:g} instead of {have[0]:g}" if len(have) == 1 else f"numbers + {step}"
            yield _mapped(example, label, _plus(step, applies))


def is_number(x: Any) -> bool:
    """A plain Python number, a flag not being one."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def is_count(x: Any) -> bool:
    """A whole number in a tensor without dimensions."""
    whole = isinstance(x, torch.Tensor) and not x.is_floating_point() and x.dtype is not torch.bool
    return bool(whole and x.dim() == 0)


def _plus(step: int, applies: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda x: x + step if applies(x) else x
