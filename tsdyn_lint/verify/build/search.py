"""A module class nobody wrote inputs for -> arguments it runs with, or the nearest miss and the TOML that would do."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tsdyn_lint.verify.build.ctor import Constructor, Instance
from tsdyn_lint.verify.build.guess import Recipe
from tsdyn_lint.verify.build.importing import BuildError
from tsdyn_lint.verify.build.repair import repairs
from tsdyn_lint.verify.build.seeds import module_seeds
from tsdyn_lint.verify.build.spec import Specs
from tsdyn_lint.verify.limits import TooLong, attempt
from tsdyn_lint.verify.probes.subject import seed

TRIES, FIRST_SECONDS, OTHER_SECONDS, ALL_SECONDS, ONE_TRY = 90, 10.0, 5.0, 25.0, 6.0
GUESS_EVERY = 3
"""Every third try is a new first guess rather than a repair of an old one."""
LARGEST = 20_000_000
"""Elements a made-up tensor may have."""


@dataclass(frozen=True)
class Found:
    """Arguments that run: constructor recipes and input specs."""

    arguments: Mapping[str, Recipe]
    specs: Specs
    tries: int


@dataclass
class Miss:
    """The inputs that got furthest, by operations run before the error."""

    operations: int = -1
    specs: Specs = ()
    error: str = ""

    @property
    def text(self) -> str:
        """For the report."""
        if self.operations < 0:
            return "no inputs found: none could be tried"
        nearest = ", ".join(map(str, self.specs))
        return f"no inputs found; the nearest, ({nearest}), ran {self.operations} operations: {self.error}"


class Counting(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operations that run."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def search(kind: type, given: Mapping[str, Any], mode: str) -> Found:
    """Raises BuildError with the nearest miss where nothing runs in time."""
    start, constructor, miss, tries = time.process_time(), Constructor(kind, given), Miss(), 0
    instance: Instance | None = None
    for index, instance in enumerate(constructor.instances()):
        instance.module.train(mode == "train")
        budget = FIRST_SECONDS if index == 0 else OTHER_SECONDS
        specs, count = inputs_for(instance.module, module_seeds(instance.module), budget, miss)
        tries += count
        if specs is not None:
            return Found(instance.arguments, specs, tries)
        if time.process_time() - start > ALL_SECONDS:
            break
    if instance is None:
        error = constructor.error
        raise BuildError(
            f"no constructor arguments found: {type(error).__name__}: {str(error)[:300]}",
            example_toml(constructor.name, constructor.needs, ()),
        )
    raise BuildError(miss.text, example_toml(constructor.name, constructor.needs, miss.specs))


def inputs_for(
    function: Callable[..., Any], guesses: Iterable[Specs], seconds: float, miss: Miss
) -> tuple[Specs | None, int]:
    """Inputs that run, searched best-first on how many operations ran before the error; and how many were tried."""
    ties = itertools.count()
    seen: set[Specs] = set()
    deadline = time.process_time() + seconds
    queue: list[tuple[int, int, Specs]] = []
    fresh = list(guesses)[::-1]
    while (queue or fresh) and len(seen) < TRIES and time.process_time() < deadline:
        if fresh and (not queue or len(seen) % GUESS_EVERY == 0):
            specs = fresh.pop()
        else:
            specs = heapq.heappop(queue)[2]
        if specs in seen or not sensible(specs):
            continue
        seen.add(specs)
        operations, error, output = run(function, specs)
        if error is None:
            if operations or any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(output)):
                return specs, len(seen)
            continue
        text = f"{type(error).__name__}: {str(error)[:600]}"
        if operations > miss.operations:
            miss.operations, miss.specs, miss.error = operations, specs, text[:300]
        for better in repairs(text, specs):
            heapq.heappush(queue, (-operations, next(ties), better))
    return None, len(seen)


def sensible(specs: Specs) -> bool:
    """Neither too large nor of too many dimensions."""
    for spec in specs:
        if spec.items and not sensible(spec.items):
            return False
        if spec.is_tensor and (
            len(spec.shape) > 5 or min(spec.shape, default=1) < 0 or math.prod(spec.shape) > LARGEST
        ):
            return False
    return True


def run(function: Callable[..., Any], specs: Specs) -> tuple[int, BaseException | None, Any]:
    """One call without gradients: operations run, what was raised, what came out."""
    counting = Counting()
    try:
        with attempt(ONE_TRY), torch.no_grad():
            seed(0)
            arguments = [spec.make() for spec in specs]
            with counting:
                output = function(*arguments)
        return counting.count, None, output
    except (Exception, TooLong, SystemExit) as error:
        return counting.count, error, None


def example_toml(name: str, needs: tuple[str, ...], specs: Specs) -> str:
    """The three lines that would make it run, to be filled in."""
    kwargs = ", ".join(f"{need} = ..." for need in needs)
    inputs = ", ".join(spec.toml() for spec in specs) or '{shape = ["batch", 3, 224, 224], dtype = "float32"}'
    lines = ["[[tool.tsdyn-lint.verify.targets]]", f'module = "{name}"']
    if kwargs:
        lines.append(f"kwargs = {{{kwargs}}}")
    return "\n".join([*lines, f"inputs = [{inputs}]"])
