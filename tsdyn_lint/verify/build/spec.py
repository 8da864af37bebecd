"""Made-up inputs: what kind, which shape, and how each is written for a person and for the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

LETTERS = {"f": "f32", "i": "i64", "b": "b8"}
DTYPES = {"f": "float32", "i": "int64", "b": "bool"}


@dataclass(frozen=True)
class Spec:
    """One argument. `kind`: `f`, `i` or `b` (a tensor of floats, small whole numbers, flags), `list`, `tuple`,
    `dict` (of `items`), or `value`.
    """

    kind: str
    shape: tuple[int, ...] = ()
    items: tuple[Spec, ...] = ()
    keys: tuple[str, ...] = ()
    value: Any = field(default=None, hash=False)  # it may be a list
    high: int = 2
    """Whole numbers are drawn below it."""

    @property
    def is_tensor(self) -> bool:
        return self.kind in LETTERS

    def with_shape(self, shape: tuple[int, ...]) -> Spec:
        return Spec(self.kind, tuple(shape), high=self.high)

    def make(self) -> Any:
        """The value, drawn from torch's seeded generator."""
        if self.kind == "f":
            return torch.rand(self.shape)
        if self.kind == "i":
            return torch.randint(0, self.high, self.shape)
        if self.kind == "b":
            return torch.ones(self.shape, dtype=torch.bool)
        if self.kind == "value":
            return self.value
        made = [item.make() for item in self.items]
        if self.kind == "dict":
            return dict(zip(self.keys, made, strict=True))
        return tuple(made) if self.kind == "tuple" else made

    def __str__(self) -> str:
        if self.is_tensor:
            return f"{LETTERS[self.kind]}[{','.join(map(str, self.shape))}]"
        if self.kind == "value":
            return repr(self.value)
        return f"{self.kind}({', '.join(map(str, self.items))})"

    def toml(self) -> str:
        """As an entry of `inputs = [...]`."""
        if self.is_tensor:
            values = f', values = "randint(0, {self.high})"' if self.kind == "i" else ""
            return f'{{shape = [{", ".join(map(str, self.shape))}], dtype = "{DTYPES[self.kind]}"{values}}}'
        if self.kind == "value":
            return "true" if self.value is True else "false" if self.value is False else repr(self.value)
        inner = [item.toml() for item in self.items]
        if self.kind == "dict":
            pairs = zip(self.keys, inner, strict=True)
            return "{dict = {" + ", ".join(f"{key} = {text}" for key, text in pairs) + "}}"
        return "{list = [" + ", ".join(inner) + "]}"


def floats(*shape: int) -> Spec:
    """A tensor of floats."""
    return Spec("f", shape)


def listed(count: int, spec: Spec, kind: str = "list") -> Spec:
    """The same several times, in a list or a tuple."""
    return Spec(kind, items=(spec,) * count)


Specs = tuple[Spec, ...]
