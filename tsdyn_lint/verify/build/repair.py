"""An error of eager, given some inputs -> inputs that do not have that fault. The texts are torch's own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from tsdyn_lint.verify.build.spec import Spec, Specs, floats, listed

Change = Callable[[Spec], "Spec | None"]
IMAGE_SIZES = (16, 28, 32, 64, 96, 128, 224, 256)


def repairs(message: str, specs: Specs) -> list[Specs]:
    """Better guesses, likeliest first; the change on all arguments at once before each alone."""
    found: dict[Specs, None] = {}
    for pattern, repair in RULES:
        match = re.search(pattern, message)
        if match:
            for candidate in repair(specs, match):
                if candidate != specs:
                    found.setdefault(candidate)
    return list(found)


def each(specs: Specs, change: Change) -> Iterator[Specs]:
    """The change made to every tensor it applies to, then to one at a time."""
    changed = [change(spec) if spec.is_tensor else _inside(spec, change) for spec in specs]
    everywhere = tuple(new or old for old, new in zip(specs, changed, strict=True))
    yield everywhere
    for index, new in enumerate(changed):
        if new is not None and new != specs[index]:
            yield (*specs[:index], new, *specs[index + 1 :])


def _inside(spec: Spec, change: Change) -> Spec | None:
    if not spec.items:
        return None
    items = tuple((change(item) if item.is_tensor else _inside(item, change)) or item for item in spec.items)
    return None if items == spec.items else Spec(spec.kind, items=items, keys=spec.keys)


def ranked(spec: Spec, count: int) -> Spec:
    """The tensor with that many dimensions: the last cut off, or small ones added."""
    shape = list(spec.shape)
    while len(shape) < count:
        shape.append(16 if len(shape) >= 2 else 4)
    return spec.with_shape(tuple(shape[:count]))


def at(spec: Spec, dim: int, size: int, old: int | None = None) -> Spec | None:
    """One size changed, where the tensor has that dimension (and the size it had is the one told)."""
    shape = list(spec.shape)
    if not -len(shape) <= dim < len(shape) or (old is not None and shape[dim] != old):
        return None
    shape[dim] = size
    return spec.with_shape(tuple(shape))


def swapped(spec: Spec, old: int, new: int) -> Spec | None:
    """Every size `old` turned into `new`."""
    return spec.with_shape(tuple(new if n == old else n for n in spec.shape)) if old in spec.shape else None


def squares(specs: Specs, sizes: tuple[int, ...], least: int = 4) -> Iterator[Specs]:
    """Other image sizes."""
    for size in sizes:
        yield from each(specs, _square(size, least))


def _square(size: int, least: int) -> Change:
    return lambda s: s.with_shape((*s.shape[:2], *(size,) * (len(s.shape) - 2))) if len(s.shape) >= least else None


def _set(dim: int, size: int, old: int | None = None) -> Change:
    return lambda s: at(s, dim, size, old)


def _times(dim: int, by: int) -> Change:
    return lambda s: at(s, dim, s.shape[dim] * by) if -len(s.shape) <= dim < len(s.shape) else None


def _plus(dim: int, by: int) -> Change:
    return lambda s: (
        at(s, dim, s.shape[dim] + by) if -len(s.shape) <= dim < len(s.shape) and s.shape[dim] + by > 0 else None
    )


def _to_rank(count: int) -> Change:
    return lambda s: ranked(s, count)


def _last_two(size: int) -> Change:
    return lambda s: s.with_shape((*s.shape[:-2], size, size)) if len(s.shape) >= 4 else None


def _channels(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    want, got = int(m[1]), int(m[2])
    for dim in (1, 0, -1):
        yield from each(specs, _set(dim, want, got))
    yield from each(specs, _set(1, want))
    if got and want % got == 0:  # tensors joined on the way
        yield from each(specs, _times(1, want // got))
    yield from each(specs, _plus(1, want - got))


def _elements(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, _set(1, int(m[1]), int(m[2])))
    yield from each(specs, _set(1, int(m[1])))


def _matmul(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    inner, want = int(m[2]), int(m[3])
    yield from each(specs, _set(-1, want, inner))
    yield from each(specs, lambda s: s.with_shape((s.shape[0], want)) if _inner(s) == inner else None)
    yield from each(specs, _plus(-1, want - inner))
    if inner and want % inner == 0:
        yield from each(specs, _times(-1, want // inner))
    if want and inner % want == 0:
        yield from each(specs, lambda s: at(s, -1, max(1, s.shape[-1] * want // inner)) if s.shape else None)
    yield from each(specs, lambda s: s.with_shape((s.shape[0], want)) if len(s.shape) > 2 else None)
    yield from each(specs, lambda s: s.with_shape(s.shape[:2]) if len(s.shape) > 2 else None)
    for root in (math.isqrt(want), want):
        yield from each(specs, _last_two(root))
    yield from squares(specs, _sides(specs, want / inner if inner else 1.0))
    yield from each(specs, _set(1, want, inner))


def _sides(specs: Specs, ratio: float) -> tuple[int, ...]:
    """Image sizes near the one at which a flattened image would have `ratio` times its elements; then usual ones."""
    side = next((s.shape[-1] for s in specs if s.is_tensor and len(s.shape) >= 4), 0)
    near = round(side * math.sqrt(ratio))
    close = [near + step for step in (0, 4, -4, 2, -2, 8, -8, 1, -1, 6, -6)] if side else []
    return tuple(dict.fromkeys(size for size in (*close, *IMAGE_SIZES) if 1 < size <= 512))


def _inner(spec: Spec) -> int:
    """Elements per row once flattened."""
    return math.prod(spec.shape[1:]) if spec.shape else 0


def _rank(group: int) -> Callable[[Specs, re.Match[str]], Iterator[Specs]]:
    return lambda specs, m: each(specs, lambda s: ranked(s, int(m[group]))) if m[group] else iter(())


def _ranks(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    for text in (m[2], m[1]):
        if text:
            yield from each(specs, _to_rank(int(text)))


def _unpack(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    count = int(m[1])
    if count <= 6:
        yield from each(specs, lambda s: ranked(s, count))
    for index in range(len(specs)):
        first = specs[index] if specs[index].is_tensor else floats(4, 4, 4, 4)
        yield (*specs[:index], listed(count, first, "tuple"), *specs[index + 1 :])


def _out_of_range(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    wanted = int(m[2]) + 1 if int(m[2]) >= 0 else -int(m[2])
    yield from each(specs, lambda s: ranked(s, wanted) if len(s.shape) < wanted else None)


def _whole(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: Spec("i", s.shape) if s.kind == "f" else None)
    yield from each(specs, lambda s: Spec("i", s.shape[:2]) if s.kind == "f" else None)
    yield from each(specs, lambda s: Spec("i", s.shape[:1]) if s.kind == "f" else None)


def _float(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: Spec("f", s.shape) if s.kind in "ib" else None)


def _flags(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: Spec("b", s.shape) if s.kind in "fi" else None)


def _mismatch(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    a, b, dim = int(m[1]), int(m[2]), int(m[3])
    yield from each(specs, lambda s: at(s, dim, b, a))
    yield from each(specs, lambda s: at(s, dim, a, b))
    yield from each(specs, lambda s: swapped(s, a, b))
    yield from each(specs, lambda s: swapped(s, b, a))
    yield from squares(specs, (32, 64, 128, 224))


def _join(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    a, b = int(m[2]), int(m[3])
    yield from each(specs, lambda s: swapped(s, b, a))
    yield from each(specs, lambda s: swapped(s, a, b))
    yield from squares(specs, (32, 64, 128, 256))


def _bigger(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from squares(specs, (32, 64, 128, 224), least=3)


def _view(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    sizes = [int(x) for x in m[1].split(",") if x.strip()]
    known = math.prod(abs(n) for n in sizes)
    if known and len(specs) == 1 and all(n > 0 for n in sizes):
        yield from each(
            specs,
            lambda s: (
                s.with_shape((*s.shape[:1], known // s.shape[0]))
                if len(s.shape) == 2 and s.shape[0] and known % s.shape[0] == 0
                else None
            ),
        )
    for size in (16, 32, 64, 8):
        yield from squares(specs, (size,), least=3)
    for size in (8, 16, 64, 1, max(known, 1) if known <= 4096 else 8):
        yield from each(specs, _set(-1, size))
    yield from each(specs, lambda s: at(s, 0, 1))


def _embedding(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    size = int(m[1] or m[2])
    yield from each(specs, lambda s: at(ranked(s, 3), -1, size))


def _batched(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    want, got = int(m[2]), int(m[4])
    yield from each(specs, lambda s: swapped(s, got, want))
    yield from each(specs, lambda s: swapped(s, want, got))
    if int(m[1]) != int(m[3]):
        yield from each(specs, lambda s: at(s, 0, int(m[1])))


def _index(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    wanted, dim = int(m[1]), int(m[2])
    yield from each(specs, lambda s: at(s, dim, max(wanted + 1, 8)))
    yield from each(specs, lambda s: Spec("i", s.shape, high=1) if s.kind == "i" else None)


def _another(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: ranked(s, len(s.shape) + 1))


def _fewer(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: ranked(s, len(s.shape) - 1) if len(s.shape) > 1 else None)


def _listed(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    for index, spec in enumerate(specs):
        first = spec if spec.is_tensor else floats(4, 4, 4, 4)
        for kind, count in (("list", 4), ("tuple", 2)):
            yield (*specs[:index], listed(count, first, kind), *specs[index + 1 :])


def _lengths(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    first = next((s.shape[0] for s in specs if s.is_tensor and s.shape), 2)
    for index in range(len(specs)):
        lengths = Spec("value", value=[4] * first)
        yield (*specs[:index], lengths, *specs[index + 1 :])


def _number(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    for index in reversed(range(len(specs))):
        for value in (4, 2, 1):
            yield (*specs[:index], Spec("value", value=value), *specs[index + 1 :])


def _key(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    for index, spec in enumerate(specs):
        if spec.kind == "dict" and m[1] not in spec.keys:
            new = Spec(
                "dict", items=(*spec.items, spec.items[0] if spec.items else floats(4, 4)), keys=(*spec.keys, m[1])
            )
            yield (*specs[:index], new, *specs[index + 1 :])


def _nothing(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    for index in reversed(range(len(specs))):
        yield (*specs[:index], Spec("value", value=None), *specs[index + 1 :])


def _normalized(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    sizes = tuple(int(x) for x in m[1].split(",") if x.strip())
    yield from each(
        specs,
        lambda s: (
            s.with_shape((*s.shape[: -len(sizes)], *sizes))
            if len(s.shape) > len(sizes)
            else s.with_shape((2, 8, *sizes))
        ),
    )


def _last(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from each(specs, lambda s: at(s, -1, int(m[1])))


def _divisible(specs: Specs, m: re.Match[str]) -> Iterator[Specs]:
    yield from squares(specs, (32, 64, 224), least=3)
    yield from each(specs, lambda s: s.with_shape(tuple(-(-n // 8) * 8 for n in s.shape)))


RULES: tuple[tuple[str, Callable[[Specs, re.Match[str]], Iterator[Specs]]], ...] = (
    (r"to have (\d+) channels, but got (\d+) channels", _channels),
    (r"running_mean should contain (\d+) elements not (\d+)", _elements),
    (r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _matmul),
    (r"normalized_shape=\[([\d, ]+)\]", _normalized),
    (r"must be equal to input_size. Expected (\d+), got", _last),
    (r"input has inconsistent input_size: got \d+,? expected (\d+)", _last),
    (r"Expected (\d)D.*? or (\d)D.*?input", _ranks),
    (r"[Ee]xpected (\d)D (?:or (\d)D )?(?:input|tensor)", _ranks),
    (r"LSTM: Expected input to be (\d)D or (\d)D", _ranks),
    (r"not enough values to unpack \(expected (?:at least )?(\d+), got \d+\)", _unpack),
    (r"too many values to unpack \(expected (\d+)", _unpack),
    (r"Dimension out of range \(expected to be in range of \[-?\d+, (-?\d+)\], but got (-?\d+)", _out_of_range),
    (r"desired ordering of dimensions i\.e\. input\.dim\(\) = \d+ is not equal to len\(dims\) = (\d+)", _rank(1)),
    (r"indices.*scalar types: Long|one_hot is only applicable to index|scalar type (?:Long|Int)|must be long"
     r"|tensors used as indices must be|expected.*int64|index must be|int64 dtype|argument 'indices'.*Float"
     r"|not implemented for 'Float'", _whole),
    (r"scalar type Float but found Long|can only be.*floating|Input dtype must be either a floating|Float.*got.*Long"
     r"|should be the same|must have the same dtype|expected m1 and m2 to have the same dtype|for 'Long'|same dtype"
     r"|implemented for 'Bool'|found dtype Long", _float),
    (r"expects? a bool|must be bool|dtype torch.bool|BoolTensor|mask.*bool", _flags),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", _mismatch),
    (r"Sizes of tensors must match except in dimension (\d+). Expected size (\d+) but got size (\d+)", _join),
    (r"Kernel size can't be greater|Output size is too small|too small|more than 1 value per channel"
     r"|Padding size should be less|must be larger|non-positive|non-zero|smaller than kernel", _bigger),
    (r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", _view),
    (r"embed_dim.*?(\d+)|was expecting embedding dimension of (\d+)", _embedding),
    (r"two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]", _batched),
    (r"batch1 must be a 3D|3D tensor|must be 3-?D", lambda specs, m: each(specs, lambda s: ranked(s, 3))),
    (r"must be 2-?D|2D tensor|matrices expected|expected a matrix|t\(\) expects a tensor with <= 2",
     lambda specs, m: each(specs, lambda s: ranked(s, 2))),
    (r"must be 4-?D|4D tensor|4-dimensional", lambda specs, m: each(specs, lambda s: ranked(s, 4))),
    (r"1D tensor|must be 1-?D|vector", lambda specs, m: each(specs, lambda s: ranked(s, 1))),
    (r"index (\d+) is out of bounds for dimension (\d+) with size (\d+)", _index),
    (r"index out of range in self|out of bounds for|is out of range",
     lambda specs, m: each(specs, lambda s: Spec("i", s.shape, high=1) if s.kind == "i" else None)),
    (r"tuple index out of range|list index out of range|Dimension specified as|too many indices", _another),
    (r"same number of dimensions|got \d+ and \d+|Tensors must have same number", _another),
    (r"same number of dimensions|got \d+ and \d+|Tensors must have same number", _fewer),
    (r"not subscriptable|object is not iterable|must be tuple of Tensors|TensorList|cat\(\)|list of Tensors", _listed),
    (r"'lengths' argument should be|lengths", _lengths),
    (r"only integer tensors of a single|only one element tensors|cannot be interpreted as an integer"
     r"|argument 'size'|must be int|only tensors with one element|Boolean value of Tensor|a Tensor with \d+ elements"
     r"|slice indices must be|unsupported operand|must be Number|integer argument expected", _number),
    (r"^KeyError: '(\w+)'", _key),
    (r"divisible", _divisible),
    (r"has no attribute|is not callable|argument must be", _nothing),
)  # fmt: skip
