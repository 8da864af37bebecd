"""Constructor arguments for a module class: candidates for each, tried best-first by how far `__init__` got."""

from __future__ import annotations

import heapq
import inspect
import itertools
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tsdyn_lint.verify.build.guess import (
    FACTORY,
    RELU_CLASS,
    SETTINGS,
    SMALL,
    STAND_IN,
    Recipe,
    by_annotation,
    by_name,
    plain,
)
from tsdyn_lint.verify.build.uses import Use, uses_in
from tsdyn_lint.verify.limits import TooLong, attempt
from tsdyn_lint.verify.probes.subject import seed

TRIES, SECONDS, ONE_TRY = 80, 6.0, 5.0
MOST = 6
"""Instances with other arguments that are worth trying inputs on."""
MOST_CANDIDATES = 24
LARGER = (8, 16, 64, 3, 1)
"""What all small sizes become at once where 4 is refused: heads and groups must divide, images have 3 channels."""
STRING_METHODS = {"lower", "upper", "startswith", "split", "strip", "format", "endswith"}
MODULES = re.compile(
    r"^(\w+_)?(model|module|net|network|encoder|decoder|backbone|layer|block|extractor|attn|attention|mlp|generator"
    r"|discriminator|embedder|embeddings?|fn|body|head|submodule)$"
)
"""Names of arguments that are modules, unless they are used as numbers."""
BLOCKS = re.compile(r"block|bottleneck|^layer_?(type|cls|class)$")
"""Names of arguments, and of classes, that a network is built of."""
CONTAINER_METHODS = {"append", "shape", "size", "copy", "items", "keys", "values", "index", "pop", "extend"}

Choice = tuple[int, ...]
"""For each required parameter, which candidate."""


@dataclass(frozen=True)
class Instance:
    """A module and the arguments it was made with."""

    module: Any
    arguments: Mapping[str, Recipe]


class Constructor:
    """Makes instances of a class; `error` is what the furthest try ended with."""

    def __init__(self, kind: type, given: Mapping[str, Any]) -> None:
        self._kind = kind
        self.name = f"{kind.__module__}:{kind.__qualname__}"
        self._given = {name: plain(value) for name, value in given.items()}
        self.error: BaseException | None = None
        init: Any = kind.__dict__.get("__init__") or type.__getattribute__(kind, "__init__")
        self._code = getattr(init, "__code__", None)
        uses = uses_in(init)
        self._required = [p for p in _parameters(init) if p.name not in given]
        self._candidates = [candidates(p, uses[p.name], blocks(kind)) for p in self._required]

    @property
    def needs(self) -> tuple[str, ...]:
        """The required parameters that have to be made up."""
        return tuple(p.name for p in self._required)

    def instances(self) -> Iterator[Instance]:
        """Instances, likeliest arguments first, until tries or time run out."""
        deadline, ties = time.process_time() + SECONDS, itertools.count()
        start: Choice = (0,) * len(self._candidates)
        queue: list[tuple[int, int, Choice, int]] = [(0, next(ties), start, SMALL)]
        seen: set[tuple[Choice, int]] = set()
        made, furthest = 0, -1
        while queue and len(seen) < TRIES and time.process_time() < deadline:
            _, _, choice, size = heapq.heappop(queue)
            if (choice, size) in seen:
                continue
            seen.add((choice, size))
            recipes = self._recipes(choice, size)
            module, depth, failed = self._make(recipes)
            if failed is None:
                yield Instance(module, recipes)
                made += 1
                if made >= MOST:
                    return
                rank = 1
            else:
                rank = -depth
                self._learn(failed)
                if depth > furthest:
                    furthest, self.error = depth, failed
            if size == SMALL:
                for larger in LARGER:
                    heapq.heappush(queue, (rank, next(ties), choice, larger))
            for other in self._neighbours(choice, failed):
                heapq.heappush(queue, (rank, next(ties), other, size))

    def _learn(self, failed: BaseException) -> None:
        """Values that a refusal lists (`only 18, 34 or 50`, `one of 'a', 'b'`) are candidates from now on."""
        text = str(failed)
        if not isinstance(failed, (ValueError, NotImplementedError, AssertionError, KeyError)) or len(text) > 300:
            return
        numbers = [plain(int(digits)) for digits in re.findall(r"\b\d{1,4}\b", text)[:5]]
        words = [plain(word) for word in re.findall(r"['\"](\w+)['\"]", text)[:5]]
        for options in self._candidates:
            first = options[0].plain
            for recipe in numbers if type(first) is int else words if isinstance(first, str) else ():
                if recipe.text not in {option.text for option in options} and len(options) < MOST_CANDIDATES:
                    options.append(recipe)

    def _neighbours(self, choice: Choice, failed: BaseException | None) -> Iterator[Choice]:
        """One argument changed; the ones an error names first."""
        text = str(failed) if failed else ""
        order = sorted(range(len(choice)), key=lambda i: self._required[i].name not in text)
        for index in order:
            for candidate in range(len(self._candidates[index])):
                if candidate != choice[index]:
                    yield (*choice[:index], candidate, *choice[index + 1 :])

    def _recipes(self, choice: Choice, size: int) -> dict[str, Recipe]:
        recipes = dict(self._given)
        for parameter, options, index in zip(self._required, self._candidates, choice, strict=True):
            recipe = options[index]
            if size != SMALL and type(recipe.plain) is int and recipe.plain == SMALL:
                recipe = plain(size)
            elif size != SMALL and recipe.plain == [SMALL] * 4:
                recipe = plain([size] * 4)
            recipes[parameter.name] = recipe
        return recipes

    def _make(self, recipes: Mapping[str, Recipe]) -> tuple[Any, int, BaseException | None]:
        """The instance; or how far into `__init__` it got, and the error."""
        try:
            with attempt(ONE_TRY):
                seed(0)
                return self._kind(**{name: recipe.make() for name, recipe in recipes.items()}), 0, None
        except (Exception, TooLong, SystemExit) as error:
            rows = [row for frame, row in traceback.walk_tb(error.__traceback__) if frame.f_code is self._code]
            return None, max(rows, default=0), error


def _parameters(init: Any) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(init).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    wanted = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p for p in parameters if p.default is p.empty and p.kind in wanted]


def blocks(kind: type) -> list[Recipe]:
    """The other module classes of the same file that are named as what networks are built of."""
    defined = vars(sys.modules.get(kind.__module__, object)).values()
    return [
        Recipe(lambda one=one: one, one.__qualname__)  # type: ignore[misc]
        for one in dict.fromkeys(value for value in defined if isinstance(value, type))
        if one is not kind
        and issubclass(one, torch.nn.Module)
        and one.__module__ == kind.__module__
        and BLOCKS.search(one.__name__.lower())
    ]


def candidates(parameter: inspect.Parameter, use: Use, built_of: Sequence[Recipe] = ()) -> list[Recipe]:
    """Values worth trying for one required parameter, likeliest first; `built_of` where its name asks for a class."""
    found: list[Recipe | None] = []
    named = by_name(parameter.name)
    strings = [value for value in use.compared if isinstance(value, str)]
    numbers = [value for value in use.compared if type(value) is int]
    methods = use.attributes - CONTAINER_METHODS
    if parameter.annotation is not parameter.empty:
        found.append(by_annotation(parameter.annotation, parameter.name))
    if BLOCKS.search(parameter.name.lower()) and not parameter.name.endswith("s"):
        found += built_of
    if strings or use.attributes & STRING_METHODS:
        found += [plain(text) for text in strings[:4] or ["relu"]]
    if use.attributes & {"items", "keys", "values"}:
        found.append(plain({}))
    if "called" in use.marks:
        found += [named if named and named.plain is None else None, FACTORY, RELU_CLASS]
    elif use.keys or methods - STRING_METHODS:
        found += [STAND_IN, SETTINGS] if MODULES.search(parameter.name.lower()) else [SETTINGS, STAND_IN]
    elif MODULES.search(parameter.name.lower()) and not use.marks:
        found.append(STAND_IN)
    if use.parts:
        found.append(plain([SMALL] * use.parts))
    if use.marks & {"iterated", "indexed"}:
        found += [plain([SMALL] * 4), plain([SMALL] * 3), plain([SMALL] * 2)]
    if "fraction" in use.marks:
        found.append(plain(0.5))
    if "vocabulary" in use.marks:
        found.append(plain(16))
    if "whole" in use.marks:
        found.append(named if named and type(named.plain) is int else plain(SMALL))
    found += [named, *map(plain, numbers[:3])]
    found += [plain(SMALL), STAND_IN, plain([SMALL] * 4), SETTINGS, plain(0.5), plain(None), plain("relu")]
    found += [RELU_CLASS, FACTORY, plain(1), plain(True)]
    unique: dict[str, Recipe] = {}
    for recipe in found:
        if recipe is not None:
            unique.setdefault(recipe.text, recipe)
    return list(unique.values())
