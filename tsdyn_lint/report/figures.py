"""What `--verify=measure` measured of a target, a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tsdyn_lint.report.run import Run

_MOST = 8
"""Kernels shown, the slowest first."""
_CLOCKS = {"thread": "CPU time of one thread", "process": "CPU time", "wall": "wall time"}


def measured(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    """Times, the terms of a call, compiling, kernels, memory; what could not be had, with the reason."""
    if seen["speedup"] is not None:
        yield from _call(seen)
    yield from _compile(seen)
    yield from _kernels(run, seen)
    yield from _memory(seen)
    yield from _training(seen)
    yield from _others(seen)
    yield from _lifted(run, seen)
    yield from (f"no {name}: {_first(why)}" for name, why in seen["unavailable"].items())


def route(seen: Mapping[str, Any]) -> Iterator[str]:
    """The advice and its reasons, then that of the other roads where it is another."""
    yield seen["advice"]
    yield from (f"  {why}" for why in seen["why"])
    road = seen["roads"]["python_free"]
    yield f"without Python: {road['advice']}"
    yield from (f"  {why}" for why in road["why"])


def packaged(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    """The package of AOTInductor."""
    if not seen["ok"]:
        error = seen["error"] or {}
        place = f" {run.shown(error['filename'])}:{error['location']['row']}" if error.get("filename") else ""
        yield f"raises{place}: {_first(error['message'])}"
        return
    words = {True: "same as eager", False: "not as eager", None: "not compared"}
    yield (
        f"package of {seen['file_mb']:.3g} MB, built in {_s(seen['build_s'])}, loaded in {_s(seen['load_s'])}; "
        f"{_us(seen['t_call_us'])} a call; {words[seen['same_input']]} on these inputs, "
        f"{words[seen['other_inputs']]} on other values"
    )


def ratio(seen: Mapping[str, Any], control: Mapping[str, Any]) -> str:
    """`1.42 times faster (1.27 to 1.55)`, or that the noise does not resolve a difference, and what that is."""
    between = f"{seen['low']:.2f} to {seen['high']:.2f}"
    if not seen["resolved"]:
        noise = f"eager against itself {control['low']:.2f} to {control['high']:.2f}"
        return f"no difference resolvable ({between}; {noise})"
    return f"{seen['value']:.2f} times {'faster' if seen['value'] > 1 else 'as fast, slower'} ({between})"


def _call(seen: Mapping[str, Any]) -> Iterator[str]:
    what = "step" if seen["mode"] == "train" else "call"
    clock = _CLOCKS.get(seen["clock"], seen["clock"])
    times = f"eager {_us(seen['t_eager_us'])}, compiled {_us(seen['t_compiled_us'])} a {what} ({clock})"
    yield f"{seen['backend']}: {times}; {ratio(seen['speedup'], seen['control'])}"
    if seen["t_graph_us"] is not None:
        guards = f"{seen['guards']} guard{'s' * (seen['guards'] != 1)}" if seen["guards"] is not None else "guards"
        yield (
            f"graphs {_us(seen['t_graph_us'])}, {guards} {_us(seen['t_guard_us'])}, the rest {_us(seen['t_rest_us'])}; "
            f"coverage {seen['coverage']:.0%}"
        )


def _compile(seen: Mapping[str, Any]) -> Iterator[str]:
    cold = seen["compile_parts_s"].get("cold")
    if cold is None:
        return
    parts = [f"{name} {_s(cold[name])}" for name in ("capture", "aot", "lowering", "codegen", "build") if cold[name]]
    detail = f" ({', '.join(parts)})" if parts else ""
    warm = seen["t_compile_s"]["warm"]
    yield f"compiles in {_s(cold['whole'])} cold{detail}{f', {_s(warm)} warm' if warm is not None else ''}"
    calls = seen["break_even_calls"]
    if calls["cold"] is not None:
        warm_calls = f", {calls['warm']:,} warm" if calls["warm"] is not None else ""
        yield f"pays after {calls['cold']:,} calls cold{warm_calls}"
    elif seen["speedup"] is not None:
        yield "never pays: a compiled call is not faster"
    won = seen["benefit_s"]
    if won is not None and won["cold"] is not None:
        yield f"over {won['calls']:,} calls: {won['cold']:+.3g} s cold, {won['warm']:+.3g} s warm"


def _kernels(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    launches, kernels = seen["launches"], seen["kernels"]
    if launches["eager"] is not None:
        fused = sum(kernel["kind"] == "fused" for kernel in kernels)
        made = f"; {fused} fused and {len(kernels) - fused} external kernels" if kernels else ""
        what = "launches" if seen["cuda"] is not None else "operators and kernels"
        yield f"{what}: {launches['eager']:g} eager, {launches['compiled']:g} compiled{made}{_saving(seen)}"
    for kernel in sorted(kernels, key=lambda kernel: -(kernel["time_us"] or 0))[:_MOST]:
        moved = f", {kernel['bytes'] / 1e6:.3g} MB" if kernel["bytes"] else ""
        reached = f", {kernel['gbps']:.0f} GB/s" if kernel["gbps"] else ""
        ops = ", ".join(op.removeprefix("aten.") for op in kernel["ops"])
        time = f"{_us(kernel['time_us'])}{moved}{reached}"
        yield f"  {kernel['name']} {time}: {_short(ops)}{_lines(run, kernel['lines'])}"
    if len(kernels) > _MOST:
        yield f"  and {len(kernels) - _MOST} more"


def _saving(seen: Mapping[str, Any]) -> str:
    saving = seen["saving_us"]
    told = [f"{_us(saving['device'])} in kernels"] if saving["device"] is not None else []
    told += [f"{_us(saving['launch'])} in launches"] if saving["launch"] is not None else []
    return f"; saves {' and '.join(told)}" if told else ""


def _memory(seen: Mapping[str, Any]) -> Iterator[str]:
    peak, moved = seen["peak_memory_mb"], seen["bytes"]
    if peak["eager"] is not None and peak["compiled"] is not None:
        bytes_ = ""
        if moved["eager"] is not None and moved["compiled"] is not None:
            bytes_ = (
                f"; moves {moved['eager'] / 1e6:.3g} MB eager, {moved['compiled'] / 1e6:.3g} MB compiled by account"
            )
        yield f"peak memory {peak['eager']:.3g} MB eager, {peak['compiled']:.3g} MB compiled{bytes_}"
    cuda = seen["cuda"]
    if cuda is not None:
        graphs = f"CUDA graphs {_us(cuda['cudagraphs_us'])} a call" if cuda["cudagraphs_us"] else "no CUDA graphs"
        why = f" ({_first(cuda['cudagraphs_skipped'])})" if cuda["cudagraphs_skipped"] else ""
        copy = f"; a copy reaches {cuda['copy_gbps']:.0f} GB/s" if cuda["copy_gbps"] else ""
        yield f"a launch takes {_us(cuda['t_launch_us'])}{copy}; {graphs}{why}"


def _training(seen: Mapping[str, Any]) -> Iterator[str]:
    step = seen["train_step"]
    if step is not None:
        forward, backward = step["forward_us"], step["backward_us"]
        yield (
            f"forward {_us(forward['eager'])} eager, {_us(forward['compiled'])} compiled; "
            f"loss and backward {_us(backward['eager'])} eager, {_us(backward['compiled'])} compiled"
        )


def _others(seen: Mapping[str, Any]) -> Iterator[str]:
    script = seen["torchscript"]
    if script is not None:
        told = [f"{name} {_us(script[key])}" for name, key in (("scripted", "t_script_us"), ("traced", "t_trace_us"))
                if script[key] is not None]  # fmt: skip
        size = script["file_mb"]
        file = f"; file {size:.3g} MB, loads in {_s(script['load_s'])}" if size is not None else ""
        yield f"TorchScript: {', '.join(told)} a call{file}"
    if seen["onnx"] is not None and seen["onnx"]["ok"]:
        yield f"ONNX: {_us(seen['onnx']['t_call_us'])} a call"
    for call in seen["sweep"]:
        times = f"eager {_us(call['t_eager_us'])}, compiled {_us(call['t_compiled_us'])}"
        yield f"{call['input']}: {call['how']}; {times}"


def _lifted(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    for item in seen["lifted"]:
        before, after = item["before"], item["after"]
        gain = f"{_us(item['gain_us'])} a call" if item["gain_us"] is not None else "no difference resolvable"
        yield (
            f"{item['switch']} lifts the break{_lines(run, item['sites'])}: {gain}; graphs {before['graphs']} to "
            f"{after['graphs']}, launches {before['launches']:g} to {after['launches']:g}, "
            f"coverage {before['coverage']:.0%} to {after['coverage']:.0%}"
        )


def _lines(run: Run, lines: list[Mapping[str, Any]]) -> str:
    by_file: dict[str, list[int]] = {}
    for line in lines:
        by_file.setdefault(line["filename"], []).append(line["row"])
    told = [f"{run.shown(name)}:{','.join(map(str, rows))}" for name, rows in by_file.items()]
    return f" ({'; '.join(told)})" if told else ""


def _us(time: float | None) -> str:
    if time is None:
        return "?"
    scale, unit = (1e6, "s") if time >= 1e6 else (1e3, "ms") if time >= 2e3 else (1.0, "us")
    return f"{time / scale:,.0f} {unit}" if time / scale >= 100 else f"{time / scale:.3g} {unit}"


def _s(seconds: float | None) -> str:
    return "?" if seconds is None else _us(seconds * 1e6) if seconds < 0.1 else f"{seconds:.3g} s"


def _short(text: str) -> str:
    return text if len(text) <= 90 else text[:87] + "..."


def _first(text: str) -> str:
    line = next(iter(str(text).strip().splitlines()), "")
    return line if len(line) <= 200 else line[:197] + "..."
