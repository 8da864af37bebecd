"""What the measuring probes saw, as plain data: the counterpart of `observe`, put together by `summary`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tsdyn_lint.verify.figures import (
    Aot,
    CompileParts,
    Cuda,
    Kernel,
    Lifted,
    Onnx,
    Pair,
    Ratio,
    Saving,
    Swept,
    TorchScript,
    TrainStep,
)


@dataclass(frozen=True)
class Compiling:
    """The first call of a fresh instance, with empty caches and again with those it filled."""

    cold: CompileParts
    warm: CompileParts | None = None


@dataclass(frozen=True)
class Speed:
    """Eager against compiled in interleaved rounds, and eager against eager in the same ones. Microseconds a call."""

    clock: str
    eager_us: float
    compiled_us: float
    speedup: Ratio
    control: Ratio


@dataclass(frozen=True)
class Guards:
    """The guards that one call evaluates, over every frame it enters, and what that takes."""

    count: int
    us: float


@dataclass(frozen=True)
class Graphs:
    """How much of a call is spent in compiled graphs."""

    count: int
    share: float


@dataclass(frozen=True)
class Kernels:
    """The compiled call's kernels, and what they stand in for."""

    kernels: tuple[Kernel, ...]
    launches: Pair
    bytes: Pair
    saving: Saving


@dataclass(frozen=True)
class Memory:
    """The most that a call holds at a time beyond what was there before, in MB."""

    peak: Pair


@dataclass(frozen=True)
class Sweep:
    """Calls of other sizes on one compiled instance."""

    calls: tuple[Swept, ...]


@dataclass(frozen=True)
class Lifts:
    """What each switch that lifts a break is worth."""

    lifted: tuple[Lifted, ...]


MEASURED: dict[str, type[Any]] = {
    "compiling": Compiling,
    "speed": Speed,
    "guards": Guards,
    "kernels": Kernels,
    "memory": Memory,
    "cuda": Cuda,
    "graphs": Graphs,
    "training": TrainStep,
    "torchscript": TorchScript,
    "sweep": Sweep,
    "lifts": Lifts,
    "onnx": Onnx,
    "aot": Aot,
}
"""Probe name -> what it returns, in the order probes run: the first fills the caches that the others read, and those
after it share one compiled call."""
