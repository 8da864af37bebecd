"""What a constructor argument probably is, from its name and annotation; stand-ins for modules and configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SMALL = 4
LISTED = 4
"""Items of a list that is made up."""


@dataclass(frozen=True)
class Recipe:
    """How to make a value, anew each time, and how to write it."""

    make: Callable[[], Any]
    text: str

    @property
    def plain(self) -> Any:
        """The value itself where it is a number, a string, a flag or a list; else None."""
        return self.make() if self.text[:1] in "0123456789-'\"[TFN" else None


def plain(value: Any) -> Recipe:
    """A recipe for a literal; a list is copied on each use."""
    return Recipe((lambda: list(value)) if isinstance(value, list) else (lambda: value), repr(value))


class StandIn(nn.Module):  # type: ignore[misc]
    """A layer for an argument that must be a module: gives back its first input; sizes asked of it are small."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            recipe = by_name(name)
            if name.startswith("_") or recipe is None:
                raise
            return recipe.make()

    def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return x


class Loose(int):
    """A small number of a configuration that may turn out to be a list of numbers, or a group of settings."""

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else int(self)

    def __iter__(self) -> Iterator[int]:
        return iter([int(self)] * LISTED)

    def __len__(self) -> int:
        return LISTED

    def __contains__(self, item: object) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        recipe = by_name(name, int(self))
        return Loose(self) if recipe is None or type(recipe.plain) is int else recipe.make()


class Settings:
    """A configuration object: any attribute or key holds a small value that suits its name."""

    def __init__(self, size: int = 4) -> None:
        self.__dict__["_size"] = size

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        recipe = by_name(name, self._size)
        value = self._size if recipe is None else recipe.make()
        value = Loose(value) if type(value) is int else value
        self.__dict__[name] = value
        return value

    def __getitem__(self, name: Any) -> Any:
        return getattr(self, name) if isinstance(name, str) else self._size

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def get(self, name: str, default: Any = None) -> Any:
        """A dictionary's `get`."""
        return default if default is not None else getattr(self, name)


def _factory(*args: Any, **kwargs: Any) -> nn.Module:
    return StandIn()


STAND_IN = Recipe(StandIn, "<a module>")
SETTINGS = Recipe(Settings, "<a configuration>")
FACTORY = Recipe(lambda: _factory, "<a function that makes a module>")
RELU_CLASS = Recipe(lambda: nn.ReLU, "torch.nn.ReLU")
RELU = Recipe(nn.ReLU, "torch.nn.ReLU()")
BATCH_NORM = Recipe(lambda: nn.BatchNorm2d, "torch.nn.BatchNorm2d")

_NAMES: tuple[tuple[str, Any], ...] = (
    (r"(^|_)eps(ilon)?$", 1e-5),
    (r"drop|prob|rate$|momentum|alpha|beta|gamma|lambda|scale_w|temperature|slope|_p$|^p$|weight_decay|sigma"
     r"|margin", 0.5),
    (r"^(is|use|has|with|do|no|add|if)_|bias$|bidirectional|pretrain|affine|inplace|residual|bool|flag|training"
     r"|return_|batch_?norm$|^bn$|^relu$|^causal$|^normalize$", False),
    (r"norm_?(layer|func|fn|cls)?$|batchnorm|normalization", BATCH_NORM),
    (r"act(ivation)?(_?(layer|func|fn|f))?$|nonlinear|non_linear", RELU),
    (r"^(block|layer_?type|block_?type|conv_?(layer|op|block)|basic_?block)$", None),
    (r"kernel|^k$|ksize|filter_size|^ks$|window", 3),
    (r"stride", 1),
    (r"pad", 1),
    (r"dilat|group|cardinality|ratio|expan|^t$|scale_factor|upscale|^scale$", 1),
    (r"num_?layer|n_?layer|n_?block|num_?block|depth|nb_|repeat|n_?stack|num_stages|^levels?$|iters?$", 2),
    (r"head", 2),
    (r"vocab|num_?emb|n_?token|n_?words|num_?word|dict|max_?len|seq_?len|num_entit|n_user|n_item|max_pos"
     r"|block_size", 16),
    (r"img|image|resol|height|width|input_size$|crop|size_hw", 32),
    (r"layers$|channels_list|dims$|sizes$|features_list|blocks$|channels$.*list", [SMALL] * 4),
    (r"device", "cpu"),
    (r"dim|chan|feat|hid|plane|size|units|width|nc|nf|class|^c\d?$|^d$|^n|_in$|_out$|^in|^out|filters|num|embed"
     r"|model|len", SMALL),
)  # fmt: skip


def by_name(name: str, size: int = SMALL) -> Recipe | None:
    """A value that an argument of that name usually takes; None where the name says nothing."""
    for pattern, value in _NAMES:
        if re.search(pattern, name.lower()):
            if value is None or isinstance(value, Recipe):
                return value
            return plain(size if type(value) is int and value == SMALL else value)
    return None


def by_annotation(annotation: Any, name: str) -> Recipe | None:
    """A value of the annotated type, the name deciding which number."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = str(annotation).lower() if "typing" in str(annotation) else text.lower()
    guess = by_name(name)
    if "optional" in text or "none" in text:
        return plain(None)
    if "list" in text or "tuple" in text or "sequence" in text:
        number = re.search(r"tuple\[((?:int|float)(?:, *(?:int|float))*)\]", text)
        return plain([SMALL] * (number[1].count(",") + 1 if number else 4))
    if "bool" in text:
        return plain(False)
    if "int" in text:
        return guess if guess and type(guess.plain) is int else plain(SMALL)
    if "float" in text:
        return guess if guess and isinstance(guess.plain, float) else plain(0.5)
    if "str" in text:
        return plain("relu")
    if "tensor" in text:
        return Recipe(lambda: torch.rand(SMALL), "torch.rand(4)")
    if "module" in text and "type" not in text:
        return STAND_IN
    if "callable" in text or "type" in text:
        return RELU_CLASS
    return None
