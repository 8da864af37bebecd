"""What is probed: how to make a fresh instance, the call to make, and other calls to make afterwards."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.probes.places import Project


@dataclass(frozen=True)
class Call:
    """Arguments of one call. `label` says how they differ from the example; `kind` is `observe.Answer`'s.

    `change` is applied to each leaf when the call is made: a dozen changed copies of large inputs would fill memory.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    label: str = "the example"
    kind: str = "example"
    change: Callable[[Any], Any] | None = None

    @property
    def sized(self) -> bool:
        """Whether its shapes may differ from the example's."""
        return self.kind in ("sizes", "given")

    def copy(self) -> Call:
        """The same, changed, with tensors of its own, so that a call that writes to its input spoils nothing."""
        tree = (self.args, self.kwargs)
        args, kwargs = copy_tree(tree if self.change is None else pytree.tree_map(self.change, tree))
        return Call(args, kwargs, self.label, self.kind)


@dataclass
class Subject:
    """One thing to probe.

    `make()` gives a fresh module or function, its state as at first. `others` are calls to compare captures on;
    `sweep` calls for counting recompiles, in order. `reset` puts changed module-level values back.
    """

    make: Callable[[], Callable[..., Any]]
    example: Call
    project: Project
    others: tuple[Call, ...] = ()
    sweep: tuple[Call, ...] = ()
    fullgraph: bool = False
    reset: Callable[[], None] = lambda: None
    about: dict[str, Any] = field(default_factory=dict)
    """What is told of how it was built: inputs used, whether they were made up."""
    mode: str = "eval"
    backend: str = "inductor"
    folder: str | None = None
    """Where files of the run may lie; None for the system's."""
    exported: bool = False
    """Whether plain `torch.export` took it: then there is nothing for `draft_export` to list."""
    eager: Any = None
    """What `agreement.agreement` keeps here."""
    rig: Any = None
    """What `measure.rig.rig` keeps here."""

    def fresh(self) -> Callable[..., Any]:
        """A new instance with a clean torch, Python and module state, made with the same random numbers each time."""
        self.reset()
        seed(0)
        return self.make()


def seed(value: int) -> None:
    """Seed every generator a model is likely to draw from."""
    torch.manual_seed(value)
    random.seed(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value)


def copy_leaf(leaf: Any) -> Any:
    """A tensor's values in storage of its own; anything else deep-copied where it can be."""
    if isinstance(leaf, torch.Tensor):
        with torch.no_grad():
            clone = leaf.detach().clone()
        return clone.requires_grad_(leaf.requires_grad) if leaf.requires_grad else clone
    try:
        return copy.deepcopy(leaf)
    except Exception:  # what cannot be copied (a lock, a module) is shared
        return leaf


def copy_tree(tree: Any) -> Any:
    """`tree` with every leaf copied."""
    return pytree.tree_map(copy_leaf, tree)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings from the code under test; its prints go to the worker's log anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def invoke(function: Callable[..., Any], call: Call, seed_value: int = 0) -> Any:
    """Call it with its own copy of the arguments and seeded generators."""
    own = call.copy()
    seed(seed_value)
    with quiet():
        return function(*own.args, **own.kwargs)
