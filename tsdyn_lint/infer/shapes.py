"""What operators leave of a tensor's shape: its rank, and which of its sizes are the same whatever the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tsdyn_lint.infer.values import Const, Scalar, Seq, SliceValue, Tensor, Unknown, Value, either

if TYPE_CHECKING:
    from tsdyn_lint.infer.recall import Args

Fixed = tuple[bool, ...]

OWN = frozenset({"parameter", "buffer", "constant"})
"""Where tensors come from that are the same for every input."""
VIEWS = frozenset({"view", "reshape", "expand", "repeat"})
"""Operators that are given the sizes of their result."""
NEW = frozenset({"new_zeros", "new_ones", "new_empty", "new_full"})
"""Methods that make a tensor of the sizes given, of the type of the one they are called on."""
_FACTORIES = frozenset({"zeros", "ones", "empty", "rand", "randn", "full"})
_FILLED = frozenset({"full", "new_full"})
_SAME_SHAPE = frozenset(
    "contiguous detach clone to cpu cuda float long relu sigmoid tanh exp log abs sqrt softmax flip".split()
)
_SAME_RANK = _SAME_SHAPE | {"permute", "transpose", "t"}


def fixed_sizes(tensor: Tensor) -> Fixed | None:
    """Which sizes of the tensor are the same whatever the input; None if its rank is not known."""
    if tensor.fixed is not None or tensor.rank is None:
        return tensor.fixed
    return (tensor.origin in OWN and not tensor.data_sized,) * tensor.rank


def first_size_varies(tensor: Tensor) -> bool:
    """Whether the length of the tensor depends on the input."""
    if tensor.fixed:
        return not tensor.fixed[0] or tensor.data_sized
    return tensor.origin not in OWN or tensor.data_sized


def size_at(sizes: Seq, dim: Value | None) -> Value:
    """`x.size(dim)`."""
    if sizes.items is None:
        return sizes.elem
    if isinstance(dim, Const) and isinstance(dim.value, int) and -len(sizes.items) <= dim.value < len(sizes.items):
        return sizes.items[dim.value]
    return either(sizes.items) if sizes.items else sizes.elem


def result_rank(name: str, args: Args, owner: Tensor | None, tensors: list[Tensor], reduction: bool) -> int | None:
    """The rank of what an operator gives."""
    rest = args.pos if owner is not None else args.pos[1:]
    if reduction and not rest and not ({"dim", "axis", "keepdim"} & set(args.kw)):
        return 0
    if not tensors or name in NEW:
        return _made_rank(name, args)
    rank = tensors[0].rank
    if name in ("argmax", "argmin") and "keepdim" not in args.kw:
        dim = rest[0] if rest else args.kw.get("dim")
        if isinstance(dim, Const) and len(rest) < 2:
            return rank - 1 if rank else 1 if dim.value == 1 else None
    if name in VIEWS:
        sizes = _given_sizes(rest, args)
        return None if sizes is None else len(sizes)
    if rank is None:
        return None
    if name in ("unsqueeze", "unsqueeze_"):
        return rank + 1
    return rank if name.rstrip("_") in _SAME_RANK else None


def _made_rank(name: str, args: Args) -> int | None:
    """The rank of what is made of numbers."""
    if name in _FACTORIES or name in NEW:
        sizes = _made_sizes(name, args)
        return None if sizes is None else len(sizes)
    if name in ("arange", "linspace", "randperm"):
        return 1
    return 0 if name == "tensor" and args.pos and isinstance(args.pos[0], (Const, Scalar)) else None


def _made_sizes(name: str, args: Args) -> list[Value] | None:
    return _given_sizes(args.pos[:1] if name in _FILLED else args.pos, args)


def _given_sizes(given: Sequence[Value], args: Args) -> list[Value] | None:
    """The sizes that a view is given, one by one or in a list; None if they may be more or fewer than seen."""
    if args.rest is not None or not given:
        return None
    if len(given) > 1:
        return list(given)
    only = given[0]
    if isinstance(only, Seq):
        return only.items
    return [only] if isinstance(only, Const) and isinstance(only.value, int) or isinstance(only, Scalar) else None


def result_fixed(name: str, args: Args, owner: Tensor | None, tensors: list[Tensor]) -> Fixed | None:
    """Which sizes of what an operator gives are the same whatever the input, where that is known."""
    if name in _FACTORIES or name in NEW:
        sizes = _made_sizes(name, args)
        return None if sizes is None else tuple(map(_is_fixed, sizes))
    if not tensors:
        return None
    rest = args.pos if owner is not None else args.pos[1:]
    if name in VIEWS:
        sizes = _given_sizes(rest, args)
        return None if sizes is None else _viewed(name, sizes, tensors[0])
    fixed = fixed_sizes(tensors[0])
    if fixed is None:
        return None
    if name in _SAME_SHAPE:
        return fixed
    dims = [v.value for v in rest if isinstance(v, Const) and isinstance(v.value, int)]
    if len(dims) < len(rest):
        return None
    if name == "unsqueeze" and len(dims) == 1:
        at = dims[0] % (len(fixed) + 1)
        return (*fixed[:at], True, *fixed[at:])
    if any(not -len(fixed) <= d < len(fixed) for d in dims):
        return None
    if name == "transpose" and len(dims) == 2 or name == "t" and not dims and len(fixed) == 2:
        swapped = list(fixed)
        one, other = dims or (0, 1)
        swapped[one], swapped[other] = fixed[other], fixed[one]
        return tuple(swapped)
    if name == "permute" and len(dims) == len(fixed):
        return tuple(fixed[d] for d in dims)
    return None


def _viewed(name: str, sizes: list[Value], tensor: Tensor) -> Fixed:
    """The sizes of a view; -1 leaves what the other sizes leave."""
    before = fixed_sizes(tensor)
    steady = all(before) if before is not None else tensor.origin in OWN and not tensor.data_sized
    fixed = [_is_fixed(size) for size in sizes]
    if name == "repeat":
        return tuple(one and steady for one in fixed)
    left = [isinstance(size, Const) and size.value == -1 for size in sizes]
    others = steady and (name == "expand" or all(one or rest for one, rest in zip(fixed, left, strict=True)))
    return tuple(one or rest and others for one, rest in zip(fixed, left, strict=True))


def _is_fixed(size: Value) -> bool:
    """Whether a size given to a view is the same for every input: a number other than -1."""
    if isinstance(size, Const):
        return bool(size.value != -1)
    return isinstance(size, Unknown) and size.given or isinstance(size, Scalar) and size.origin == "constant"


def broadcast_fixed(a: Tensor, b: Tensor) -> Fixed | None:
    """The sizes of `a + b`: one that is fixed may be 1, and then the other's decides."""
    one, other = fixed_sizes(a), fixed_sizes(b)
    if one is None or other is None:
        return None
    length = max(len(one), len(other))
    one, other = ((True,) * (length - len(f)) + f for f in (one, other))
    return tuple(x and y for x, y in zip(one, other, strict=True))


def indexed_fixed(owner: Tensor, parts: Sequence[Value]) -> Fixed | None:
    """The sizes of `t[parts]`, where all parts are slices, numbers and None."""
    fixed = fixed_sizes(owner)
    if fixed is None:
        return None
    left, found = list(fixed), list[bool]()
    for part in parts:
        if isinstance(part, Const) and part.value is None:
            found.append(True)
        elif not left or isinstance(part, Const) and not isinstance(part.value, int):
            return None
        elif isinstance(part, SliceValue):
            found.append(left.pop(0) and all(isinstance(bound, Const) or _is_fixed(bound) for bound in part.parts))
        elif isinstance(part, (Const, Scalar)):
            left.pop(0)
        else:
            return None
    return (*found, *left)
