"""Inputs written in the configuration -> tensors: `{shape = ["batch", 3], dtype = "float32", values = "rand"}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tsdyn_lint.verify.build.importing import BuildError
from tsdyn_lint.verify.probes.subject import Call

SHORT = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "b8": "bool", "int": "int64", "long": "int64", "float": "float32",
    "half": "float16", "double": "float64", "c64": "complex64",
}  # fmt: skip
VALUES = re.compile(r"^\s*(\w+)\s*(?:\(([^)]*)\))?\s*$")
SIZES = {"batch": 4, "b": 4, "n": 4, "height": 32, "width": 32, "h": 32, "w": 32, "seq": 16, "length": 16, "t": 16}
OTHER_SIZE = 8


def sizes_of(items: Any) -> list[str]:
    """The names of sizes in a list of inputs, in order of first use."""
    found: dict[str, None] = {}
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping):
            for size in item.get("shape", ()):
                if isinstance(size, str):
                    found.setdefault(size)
            for inner in item.get("list", ()):
                found.update(dict.fromkeys(sizes_of([inner])))
    return list(found)


def call_from(items: Sequence[Any], sizes: Mapping[str, int], label: str, kind: str, seed: int, sign: int = 1) -> Call:
    """The arguments, each drawn anew by `seed`; a table with `name` is a keyword argument."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    generator = torch.Generator().manual_seed(seed)
    for item in items:
        value = _value(item, sizes, generator, sign)
        if isinstance(item, Mapping) and "name" in item:
            kwargs[str(item["name"])] = value
        else:
            args.append(value)
    return Call(tuple(args), kwargs, label, kind)


def calls(items: Sequence[Any]) -> tuple[Call, tuple[Call, ...], tuple[Call, ...]]:
    """The example, the calls to compare on, and the sweep for recompiles: named sizes change, numbers stay."""
    plain = {name: SIZES.get(name.lower(), OTHER_SIZE) for name in sizes_of(list(items))}
    example = call_from(items, plain, "the example", "example", 0)
    values = (
        call_from(items, plain, "other values", "values", 1),
        call_from(items, plain, "negated", "values", 0, -1),
    )
    grown = [
        call_from(items, {**plain, name: size + step}, f"{name} {size + step}", "sizes", 0)
        for name, size in plain.items()
        for step in (1, 2, 3, 5)
    ]
    others = (*values, *(call for call in grown if call.label in {f"{n} {s + 2}" for n, s in plain.items()}))
    again = call_from(items, plain, "the example again", "again", 0)
    more = tuple(call_from(items, plain, f"other values {seed}", "values", seed) for seed in (2, 3))
    return example, others, (again, again, *values, *more, *grown)


def _value(item: Any, sizes: Mapping[str, int], generator: torch.Generator, sign: int) -> Any:
    if isinstance(item, list):
        return [_value(inner, sizes, generator, sign) for inner in item]
    if not isinstance(item, Mapping):
        return item
    if "list" in item:
        return [_value(inner, sizes, generator, sign) for inner in item["list"]]
    if "dict" in item:
        return {key: _value(inner, sizes, generator, sign) for key, inner in item["dict"].items()}
    if "value" in item:
        return item["value"]
    if "shape" not in item:
        raise BuildError(f"an input without `shape` or `value`: {dict(item)}")
    shape = [sizes[size] if isinstance(size, str) else int(size) for size in item["shape"]]
    return _tensor(shape, dtype_of(str(item.get("dtype", "float32"))), item.get("values"), generator, sign)


def dtype_of(name: str) -> torch.dtype:
    """`float32`, `torch.float32` or `f32`."""
    plain = name.removeprefix("torch.")
    found = getattr(torch, SHORT.get(plain, plain), None)
    if not isinstance(found, torch.dtype):
        raise BuildError(f"unknown dtype {name!r}")
    return found


def _tensor(shape: list[int], dtype: torch.dtype, values: Any, generator: torch.Generator, sign: int) -> torch.Tensor:
    if values is None:
        values = "randn" if dtype.is_floating_point or dtype.is_complex else "randint(0, 2)"
    if isinstance(values, (int, float, bool)):
        return torch.full(shape, values, dtype=dtype)
    match = VALUES.match(str(values))
    if match is None:
        raise BuildError(f"cannot read values = {values!r}")
    numbers = [float(text) for text in (match[2] or "").split(",") if text.strip()]
    return _drawn(match[1], numbers, shape, generator, sign).to(dtype)


def _drawn(how: str, numbers: list[float], shape: list[int], generator: torch.Generator, sign: int) -> torch.Tensor:
    low, high = (numbers + [0.0, 1.0][len(numbers) :])[:2] if len(numbers) != 1 else (0.0, numbers[0])
    if how == "randint":
        drawn = torch.randint(int(low), max(int(high), int(low) + 1), shape, generator=generator)
        return drawn if sign > 0 else int(low) + int(high) - 1 - drawn
    if how in ("rand", "uniform"):
        drawn = torch.rand(shape, generator=generator) * (high - low) + low
        return drawn if sign > 0 else low + high - drawn
    if how in ("randn", "normal"):
        return sign * torch.randn(shape, generator=generator)
    if how in ("zeros", "ones"):
        return torch.full(shape, float(how == "ones"))
    if how == "arange":
        count = 1
        for size in shape:
            count *= size
        return torch.arange(count).reshape(shape)
    if how == "full" and numbers:
        return torch.full(shape, numbers[0])
    raise BuildError(f"values: {how} is none of randint, rand, uniform, randn, normal, zeros, ones, arange, full")
