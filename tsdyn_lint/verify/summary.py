"""What the measuring probes saw of a target -> its `Measure`, with the cost model's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tsdyn_lint.verify.cost import benefit, break_even
from tsdyn_lint.verify.figures import Benefit, Calls, ColdWarm, CompileParts, Measure, Pair, Saving
from tsdyn_lint.verify.measured import Compiling, Graphs, Guards, Kernels, Lifts, Memory, Speed, Sweep


def measure(
    seen: Mapping[str, Any], unavailable: Mapping[str, str], backend: str, mode: str, calls: int | None
) -> Measure:
    """`seen` maps a probe to its dataclass, `unavailable` one that gave nothing to why."""
    compiling: Compiling | None = seen.get("compiling")
    speed: Speed | None = seen.get("speed")
    graphs: Graphs | None = seen.get("graphs")
    guards: Guards | None = seen.get("guards")
    kernels: Kernels | None = seen.get("kernels")
    memory: Memory | None = seen.get("memory")
    sweep: Sweep | None = seen.get("sweep")
    lifts: Lifts | None = seen.get("lifts")
    cold = compiling.cold if compiling else None
    warm = compiling.warm if compiling else None
    t_guard, t_graph, t_rest = terms(speed, graphs, guards)
    return Measure(
        backend=backend,
        mode=mode,
        clock=speed.clock if speed else "",
        t_eager_us=speed.eager_us if speed else None,
        t_compiled_us=speed.compiled_us if speed else None,
        speedup=speed.speedup if speed else None,
        control=speed.control if speed else None,
        guards=guards.count if guards else None,
        t_guard_us=t_guard,
        t_graph_us=t_graph,
        t_rest_us=t_rest,
        coverage=graphs.share if graphs else None,
        t_capture_s=cold.capture if cold else None,
        t_inductor_s=inductor(cold) if backend == "inductor" else None,
        t_compile_s=ColdWarm(cold.whole if cold else None, warm.whole if warm else None),
        compile_parts_s={name: part for name, part in (("cold", cold), ("warm", warm)) if part is not None},
        break_even_calls=Calls(_break_even(cold, speed), _break_even(warm, speed)),
        benefit_s=Benefit(calls, _benefit(calls, cold, speed), _benefit(calls, warm, speed)) if calls else None,
        kernels=kernels.kernels if kernels else (),
        launches=kernels.launches if kernels else Pair(),
        bytes=kernels.bytes if kernels else Pair(),
        saving_us=kernels.saving if kernels else Saving(),
        peak_memory_mb=memory.peak if memory else Pair(),
        torchscript=seen.get("torchscript"),
        onnx=seen.get("onnx"),
        train_step=seen.get("training"),
        sweep=sweep.calls if sweep else (),
        lifted=lifts.lifted if lifts else (),
        cuda=seen.get("cuda"),
        unavailable=dict(unavailable),
    )


def terms(
    speed: Speed | None, graphs: Graphs | None, guards: Guards | None
) -> tuple[float | None, float | None, float | None]:
    """T_guard, T_graph and T_rest, which add up to the compiled call's time."""
    guard = guards.us if guards else None
    if speed is None or graphs is None:
        return guard, None, None
    graph = graphs.share * speed.compiled_us
    return guard, graph, max(speed.compiled_us - graph - (guard or 0.0), 0.0)


def inductor(parts: CompileParts | None) -> float | None:
    """What of a compile is Inductor's, the compiler that it waits for included."""
    if parts is None:
        return None
    own = [part for part in (parts.lowering, parts.codegen, parts.build) if part is not None]
    return sum(own) if own else None


def _break_even(parts: CompileParts | None, speed: Speed | None) -> int | None:
    """Calls until the compile has paid; none can be named for a gain that the noise may have made."""
    if parts is None or speed is None or not speed.speedup.resolved:
        return None
    return break_even(parts.whole, speed.eager_us / 1e6, speed.compiled_us / 1e6)


def _benefit(calls: int, parts: CompileParts | None, speed: Speed | None) -> float | None:
    """Seconds won over those calls; without a difference that is resolved, the compile is what is lost."""
    if parts is None or speed is None:
        return None
    compiled = speed.compiled_us if speed.speedup.resolved else speed.eager_us
    return benefit(calls, parts.whole, speed.eager_us / 1e6, compiled / 1e6)
