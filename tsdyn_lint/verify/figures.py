"""The figures of a measured target, as the JSON report prints them under `measure`, `route` and `aot`.

Times a call are microseconds, compile times seconds, and every figure is of the device that the target names. A figure
that this device, backend or torch cannot give is None, and `unavailable` says why. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """A ratio of two times with its 95 % interval.

    `resolved`: the interval is apart from what eager against eager gave in the same rounds. Where it is not, no
    difference can be told, and the value is not to be read as one.
    """

    value: float
    low: float
    high: float
    resolved: bool = False


@dataclass(frozen=True)
class ColdWarm:
    """With empty caches, and with those that the first compile filled."""

    cold: float | None = None
    warm: float | None = None


@dataclass(frozen=True)
class Calls:
    """A number of calls, with empty and with filled caches; None where compiling never pays."""

    cold: int | None = None
    warm: int | None = None


@dataclass(frozen=True)
class Benefit:
    """Seconds won (lost, below zero) by compiling when that many calls follow."""

    calls: int
    cold: float | None = None
    warm: float | None = None


@dataclass(frozen=True)
class Pair:
    """The same figure of the eager and of the compiled call."""

    eager: float | None = None
    compiled: float | None = None


@dataclass(frozen=True)
class Saving:
    """What fusion saves a call, as two terms: `device`, sum T_i - T_fused; `launch`, (n - 1) T_launch (GPU only)."""

    device: float | None = None
    launch: float | None = None


@dataclass(frozen=True)
class Line:
    """A line of source."""

    filename: str
    row: int


@dataclass(frozen=True)
class Kernel:
    """One kernel of the compiled call. `kind`: `fused` (generated) or `external` (a library's: matrix product, ...)."""

    name: str
    ops: tuple[str, ...]
    time_us: float | None
    bytes: int | None
    kind: str
    lines: tuple[Line, ...] = ()
    graph: int = 0
    gbps: float | None = None
    """Achieved bandwidth, GPU only; `cuda.copy_gbps` is what a plain copy reaches there."""


@dataclass(frozen=True)
class CompileParts:
    """One compile in seconds, the parts apart (torch's own metrics are nested): they add up to about `whole`."""

    whole: float
    capture: float | None = None
    """Dynamo itself."""
    aot: float | None = None
    lowering: float | None = None
    codegen: float | None = None
    build: float | None = None
    """Waiting for the C++ or Triton compiler."""


@dataclass(frozen=True)
class TorchScript:
    """The Python-free road of old: the saved file, and a call of the scripted and of the traced module."""

    file_mb: float | None = None
    load_s: float | None = None
    t_script_us: float | None = None
    t_trace_us: float | None = None


@dataclass(frozen=True)
class Onnx:
    """`torch.onnx.export`, where the packages for it are there."""

    ok: bool
    message: str = ""
    same_input: bool | None = None
    t_call_us: float | None = None


@dataclass(frozen=True)
class TrainStep:
    """A step is forward, loss and backward. `measure`'s own times are of the whole step; these are its parts."""

    forward_us: Pair
    backward_us: Pair
    peak_memory_mb: Pair


@dataclass(frozen=True)
class Swept:
    """One call of the sweep. `how`: `reused` (a compiled graph), `recompiled`, or `eager` (no graph any more)."""

    input: str
    how: str
    t_eager_us: float | None = None
    t_compiled_us: float | None = None


@dataclass(frozen=True)
class State:
    """What a change of settings changes."""

    graphs: int
    launches: float | None
    coverage: float | None
    t_compiled_us: float | None


@dataclass(frozen=True)
class Lifted:
    """The same target with the breaks lifted that a switch of torch lifts. Worst break first.

    `gain_us` is a call's, None where the noise does not resolve it.
    """

    switch: str
    sites: tuple[Line, ...]
    before: State
    after: State
    gain_us: float | None


@dataclass(frozen=True)
class Cuda:
    """What only a GPU can tell."""

    t_launch_us: float | None = None
    copy_gbps: float | None = None
    device_us: Pair = Pair()
    cudagraphs_us: float | None = None
    """A call with `mode="reduce-overhead"`."""
    cudagraphs_skipped: str | None = None
    """Why torch made no CUDA graph."""


@dataclass(frozen=True)
class Measure:
    """Everything measured of one target."""

    backend: str = "inductor"
    mode: str = "eval"
    clock: str = "thread"
    """What a call's time is read from: `thread` (its CPU time, one thread), `process`, or `wall` (synchronised)."""
    t_eager_us: float | None = None
    t_compiled_us: float | None = None
    speedup: Ratio | None = None
    control: Ratio | None = None
    """Eager against eager in the same rounds: what the noise alone makes of a ratio of 1."""
    guards: int | None = None
    t_guard_us: float | None = None
    t_graph_us: float | None = None
    t_rest_us: float | None = None
    coverage: float | None = None
    t_capture_s: float | None = None
    t_inductor_s: float | None = None
    t_compile_s: ColdWarm = ColdWarm()
    compile_parts_s: dict[str, CompileParts] = field(default_factory=dict)
    """`cold` and `warm`."""
    break_even_calls: Calls = Calls()
    benefit_s: Benefit | None = None
    """With `--calls N` only."""
    kernels: tuple[Kernel, ...] = ()
    launches: Pair = Pair()
    bytes: Pair = Pair()
    """Moved a call by the account of the scheduler, and of eager's operators one by one."""
    saving_us: Saving = Saving()
    peak_memory_mb: Pair = Pair()
    torchscript: TorchScript | None = None
    onnx: Onnx | None = None
    """None without the extra."""
    train_step: TrainStep | None = None
    sweep: tuple[Swept, ...] = ()
    lifted: tuple[Lifted, ...] = ()
    cuda: Cuda | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
    """Probe -> why it gave nothing."""


@dataclass(frozen=True)
class Aot:
    """The package that AOTInductor built, `aot` of a target with `--verify=aot`."""

    ok: bool
    error: dict[str, Any] | None = None
    """`filename`, `location` and `message`, as those of `export.errors`."""
    build_s: float | None = None
    load_s: float | None = None
    file_mb: float | None = None
    same_input: bool | None = None
    other_inputs: bool | None = None
    t_call_us: float | None = None
    unavailable: str | None = None


@dataclass(frozen=True)
class Road:
    """What to take for one use, and the figures that decide it."""

    advice: str
    why: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """`advice` and `why` are those of the use that the target's mode stands for: training, or serving."""

    advice: str
    why: tuple[str, ...]
    roads: dict[str, Road] = field(default_factory=dict)
    """`training`, `serving` (Python, inputs that vary) and `python_free`."""
