"""`--verify=measure`: kernels by hand check, coverage, what no figure is made up of, and how a run prints them."""

from __future__ import annotations

import itertools
import json
import math
import platform
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import REPOSITORY

pytest.importorskip("torch")

from tsdyn_lint.cli import main
from tsdyn_lint.verify.figures import Ratio
from tsdyn_lint.verify.measured import MEASURED
from tsdyn_lint.verify.observe import decode
from tsdyn_lint.verify.spawn import Job, Result, Workers

FIXTURES = REPOSITORY / "fixtures/measure"
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="Inductor needs a C++ compiler"
)


def job(file: Path, name: str, probes: str, table: dict[str, Any] | None = None, backend: str = "inductor") -> Job:
    subject = {
        "file": str(file), "root": str(file.parent), "module": file.stem, "roots": [str(file.parent)],
        "qualname": name, "table": table or {}, "entry": None, "found": not table, "backend": backend,
    }  # fmt: skip
    return Job(subject, tuple(probes.split()), timeout=300)


LOOP = "compiling graphs kernels torchscript"
TRAINED = {"mode": "train", "inputs": [{"shape": ["batch", 256]}]}
JOBS = {
    "pointwise": job(FIXTURES / "pointwise.py", "Pointwise", "compiling graphs guards kernels memory"),
    "mlp": job(FIXTURES / "mlp.py", "MLP", "compiling graphs kernels"),
    "conv": job(FIXTURES / "conv_bn_relu.py", "ConvBnRelu", "compiling graphs kernels"),
    "attention": job(FIXTURES / "attention.py", "Attention", "compiling graphs kernels"),
    "one_break": job(FIXTURES / "one_break.py", "OneBreak", "compiling graphs guards kernels lifts"),
    "break_in_loop": job(FIXTURES / "break_in_loop.py", "BreakInLoop", "compiling graphs guards kernels"),
    "moe": job(FIXTURES / "moe.py", "MoE", "compiling graphs kernels"),
    "trained": job(FIXTURES / "mlp.py", "MLP", "compiling speed training sweep", TRAINED, "aot_eager"),
    "loop_model": job(REPOSITORY / "fixtures/models/loop_model.py", "LoopModel", LOOP),
}


@pytest.fixture(scope="module")
def ran() -> dict[str, dict[str, Any]]:
    """What the probes saw of each fixture, as dataclasses."""
    with Workers(compiling=True) as workers:
        results: dict[int, Result] = dict(workers.run(JOBS.values()))
    found = {}
    for index, name in enumerate(JOBS):
        assert results[index].failure is None and not results[index].broken, (name, results[index])
        found[name] = {probe: decode(MEASURED[probe], seen) for probe, seen in results[index].seen.items()}
    return found


FUSED, EXTERNAL = "fused", "external"
SDPA = "_scaled_dot_product_flash_attention"
MADE_OF = {
    "pointwise": [(FUSED, "mul tanh add sigmoid mul add exp neg", [9, 10])],
    "mlp": [
        (EXTERNAL, "addmm", [16]), (FUSED, "gelu", [16]), (EXTERNAL, "addmm", [16]),
        (FUSED, "add native_layer_norm", [16]),
    ],
    "conv": [
        (FUSED, "convolution", [14]),  # weights and image, copied into the layout that the library wants
        (EXTERNAL, "convolution", [14]), (FUSED, "_native_batch_norm_legit_no_training relu mean", [14]),
    ],
    "one_break": [
        (EXTERNAL, "addmm", [14]), (FUSED, "tanh sigmoid mul add mean", [14, 15]),
        (EXTERNAL, "addmm", [16]), (FUSED, "tanh sigmoid mul mul", [16]),
    ],
    "break_in_loop": [], "moe": [],
    "loop_model": [(EXTERNAL, "addmm", [15]), (FUSED, "relu", [15])] * 4,
}  # fmt: skip
"""Kind, operators and rows of each kernel, in the order of the calls in the code that Inductor writes."""
ATTENTION = [
    (EXTERNAL, "addmm", [16]), (FUSED, "clone clone clone", [17, 18]), (EXTERNAL, f"{SDPA}_for_cpu", [17, 18]),
    (FUSED, "clone", [18]), (EXTERNAL, "addmm", [18]),
]  # fmt: skip
"""Where Inductor knows the pattern and calls the library's attention on copies of q, k and v."""
WRITTEN_OUT = [
    (EXTERNAL, "addmm", [16]), (FUSED, "clone clone", [17]), (EXTERNAL, "bmm", [17]), (FUSED, "mul _softmax", [17]),
    (FUSED, "clone", [18]), (EXTERNAL, "bmm", [18]), (FUSED, "clone", [18]), (EXTERNAL, "addmm", [18]),
]  # fmt: skip
EAGER = {
    "pointwise": 8,
    "mlp": 5,
    "conv": 4,
    "attention": 10,  # two linear, two matrix products, scaling, softmax, four copies by reshape
    "one_break": 11,  # .item() reads a number, and computes none
    "break_in_loop": 4 * 6,
    "moe": 4 + 4 * 9,  # linear, softmax, max, zeros; an expert: ==, nonzero, two gathers, three layers, *, index_add
    "loop_model": 4 * 2,
}
"""How many operators compute in a call: views and allocations do not."""


@needs_compiler
@pytest.mark.slow
@pytest.mark.xdist_group("measure")
class TestKernels:
    """By hand: what Inductor makes of each fixture is known, and the operators are those of the source."""

    @pytest.mark.parametrize("name", [*MADE_OF, "attention"])
    def test_each_kernel_is_what_inductors_code_says(self, ran: dict[str, dict[str, Any]], name: str) -> None:
        seen = ran[name]["kernels"]
        found = [
            (kernel.kind, " ".join(op.removeprefix("aten.") for op in kernel.ops), [line.row for line in kernel.lines])
            for kernel in seen.kernels
        ]
        library = any(SDPA in ops for _, ops, _ in found)
        assert found == (MADE_OF[name] if name != "attention" else ATTENTION if library else WRITTEN_OUT)
        assert all(kernel.time_us and kernel.bytes and kernel.gbps is None for kernel in seen.kernels)
        assert seen.launches.compiled == (len(found) if found else EAGER[name])

    @pytest.mark.parametrize("name", EAGER)
    def test_eager_runs_the_operators_of_the_source(self, ran: dict[str, dict[str, Any]], name: str) -> None:
        assert ran[name]["kernels"].launches.eager == EAGER[name]

    def test_fusing_reads_inputs_once_and_writes_the_result_once(self, ran: dict[str, dict[str, Any]]) -> None:
        (kernel,) = ran["pointwise"]["kernels"].kernels
        assert kernel.bytes == 3 * 256 * 512 * 4

    def test_only_a_gpu_saves_launches(self, ran: dict[str, dict[str, Any]]) -> None:
        assert ran["pointwise"]["kernels"].saving.launch is None


@needs_compiler
@pytest.mark.slow
@pytest.mark.xdist_group("measure")
class TestTerms:
    """Where a call's time goes."""

    @pytest.mark.parametrize("name", ["pointwise", "mlp", "conv", "attention"])
    def test_a_whole_graph_is_most_of_a_call(self, ran: dict[str, dict[str, Any]], name: str) -> None:
        assert ran[name]["graphs"].count == 1 and ran[name]["graphs"].share > 0.7  # 0.95 where nothing else runs

    def test_a_break_takes_its_share(self, ran: dict[str, dict[str, Any]]) -> None:
        assert ran["one_break"]["graphs"].count == 2 and ran["loop_model"]["graphs"].count == 1
        for name in ("one_break", "loop_model"):
            assert 0.1 < ran[name]["graphs"].share < 0.98

    def test_a_skipped_frame_is_in_no_graph(self, ran: dict[str, dict[str, Any]]) -> None:
        for name in ("break_in_loop", "moe"):
            assert ran[name]["graphs"].count == 0 and ran[name]["graphs"].share == 0

    def test_guards_of_every_frame_count(self, ran: dict[str, dict[str, Any]]) -> None:
        whole, split = ran["pointwise"]["guards"], ran["one_break"]["guards"]
        assert 0 < whole.count < split.count and whole.us > 0
        assert ran["break_in_loop"]["guards"].count == 0

    def test_the_parts_of_a_compile_are_apart(self, ran: dict[str, dict[str, Any]]) -> None:
        cold, warm = ran["mlp"]["compiling"].cold, ran["mlp"]["compiling"].warm
        parts = [cold.capture, cold.aot, cold.lowering, cold.codegen, cold.build]
        assert all(part is not None and part >= 0 for part in parts) and sum(parts) <= cold.whole
        assert cold.build > 0 and warm.build == 0 and warm.whole < cold.whole

    def test_fusing_keeps_less_at_a_time(self, ran: dict[str, dict[str, Any]]) -> None:
        peak = ran["pointwise"]["memory"].peak
        assert peak.compiled == pytest.approx(256 * 512 * 4 / 2**20, abs=0.01) and peak.eager > 2 * peak.compiled

    def test_lifting_the_break_makes_one_graph(self, ran: dict[str, dict[str, Any]]) -> None:
        (lifted,) = ran["one_break"]["lifts"].lifted
        assert lifted.switch == "capture_scalar_outputs" and [site.row for site in lifted.sites] == [15]
        assert (lifted.before.graphs, lifted.after.graphs) == (2, 1)


@pytest.mark.slow
@pytest.mark.xdist_group("measure")
class TestOtherRoads:
    def test_a_training_step_has_parts(self, ran: dict[str, dict[str, Any]]) -> None:
        step, speed = ran["trained"]["training"], ran["trained"]["speed"]
        assert step.forward_us.eager > 0 and step.backward_us.compiled > 0 and step.peak_memory_mb.eager > 0
        assert speed.eager_us > step.forward_us.eager

    def test_a_size_compiles_once_more_and_is_then_reused(self, ran: dict[str, dict[str, Any]]) -> None:
        calls = ran["trained"]["sweep"].calls
        assert [call.how for call in calls] == ["recompiled", "reused", "reused", "reused"]
        assert [call.input for call in calls] == ["batch 5", "batch 6", "batch 7", "batch 9"]

    def test_torchscript_is_saved_loaded_and_timed(self, ran: dict[str, dict[str, Any]]) -> None:
        seen = ran["loop_model"]["torchscript"]
        assert seen.file_mb > 0 and seen.load_s > 0 and seen.t_script_us > 0 and seen.t_trace_us > 0


PROJECT = {
    "model.py": (FIXTURES / "one_break.py").read_text(),
    "tsdyn-lint.toml": """\
[[verify.targets]]
module = "model:OneBreak"
budget = {max_kernels = 9}
""",
}


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("measure")
def test_a_budget_on_a_measured_figure_has_its_target_measured(tmp_path: Path) -> None:
    """The same run by way of the command line: what is promised of `measure` and `route`, and the screen's text."""
    folder = project(tmp_path, PROJECT)
    file = folder / "out.json"
    asked = ["--verify", "--device", "cpu", "--backend", "aot_eager", "--calls", "1000", "--engine", "dynamo"]
    done = CliRunner().invoke(main, [*asked, "--no-cache", "-o", "full", "-o", f"json:{file}", str(folder)])
    assert done.exit_code == 1, done.output
    (target,) = json.loads(file.read_text())["targets"]
    seen = target["measure"]
    assert {
        "t_eager_us", "t_compiled_us", "speedup", "guards", "t_guard_us", "t_graph_us", "t_rest_us", "coverage",
        "t_capture_s", "t_compile_s", "break_even_calls", "kernels", "launches", "saving_us", "peak_memory_mb",
        "torchscript", "train_step",
    } <= set(seen)  # fmt: skip
    assert seen["backend"] == "aot_eager" and seen["unavailable"] == {}
    assert seen["t_graph_us"] + seen["t_guard_us"] + seen["t_rest_us"] == pytest.approx(seen["t_compiled_us"], rel=0.05)
    assert seen["benefit_s"]["calls"] == 1000 and target["aot"] is None
    assert target["route"]["advice"] in ("torch.compile", "eager") and target["route"]["why"]
    assert set(target["route"]["roads"]) == {"training", "serving", "python_free"}
    assert "measure" in done.stdout and "coverage" in done.stdout and "route" in done.stdout


@pytest.mark.slow
def test_a_backend_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    folder = project(tmp_path, PROJECT)
    done = CliRunner().invoke(main, ["--verify=measure", "--backend", "inductr", "--no-cache", str(folder)])
    assert done.exit_code == 2 and "inductr" in done.stderr and "inductor" in done.stderr


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from tsdyn_lint.verify.measure import toolchain

    monkeypatch.setattr("tsdyn_lint.verify.measure.toolchain.shutil.which", lambda name: None)

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr("torch.compile", fails)
    with pytest.raises(toolchain.Unavailable, match=r"needs a C\+\+ compiler"):
        toolchain.warm_up("inductor", "cpu")


KEEPING = """
import resource
from tsdyn_lint.verify.measure.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(b"x") * (1 << 23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
keep_freed_memory()
faults()
print(given_back, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_freed_memory_is_not_faulted_in_again() -> None:
    ran = subprocess.run([sys.executable, "-c", KEEPING], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    given_back, kept = map(int, ran.stdout.split())
    assert kept < 100 < given_back


def test_a_ratio_lies_within_the_interval_of_another_run() -> None:
    from tsdyn_lint.verify.measure.clock import DRIFT, compared

    generator = random.Random(0)

    def side(level: float, count: int) -> list[float]:
        """Rounds on memory of their own, now and then held up."""
        return [level * math.exp(generator.gauss(0, 0.03)) * (1 + generator.expovariate(30)) for _ in range(count)]

    def run(speedup: float, count: int) -> Ratio:
        lasting = math.exp(generator.gauss(0, DRIFT))
        return compared(side(100, count), side(100 / speedup * lasting, count), side(100, count))[0]

    for speedup, count in ((1.0, 25), (1.4, 25), (1.4, 9)):
        ratios = [run(speedup, count) for _ in range(40)]
        within = [one.low <= other.value <= one.high for one, other in itertools.permutations(ratios, 2)]
        assert sum(within) >= 0.95 * len(within), (speedup, count)
        assert all(ratio.high < 1.3 * ratio.low for ratio in ratios) or count < 25
        assert sum(ratio.resolved for ratio in ratios) == (40 if speedup > 1 else 0)


def test_students_t() -> None:
    from tsdyn_lint.verify.measure.clock import student

    assert [student(freedom) for freedom in (8, 24)] == pytest.approx([2.306, 2.064], rel=0.005)


def test_each_round_has_steps_of_its_own() -> None:
    from tsdyn_lint.verify.measure.clock import rounds

    now = 0
    laid: list[int] = []

    def lay() -> dict[str, Any]:
        nonlocal now
        now += 1_000
        laid.append(own := len(laid) + 1)
        return {"slow": lambda: step(2_000_000 + own * 1000), "fast": lambda: step(1_000_000)}

    def step(nanoseconds: int) -> None:
        nonlocal now
        now += nanoseconds

    times = rounds(lay, lambda: now, 5)
    assert len(laid) == 5 and times == {"slow": [2001, 2002, 2003, 2004, 2005], "fast": [1000] * 5}


@pytest.mark.parametrize("shared", [True, False])
def test_instances_are_laid_out_anew_where_they_share_their_graphs(shared: bool) -> None:
    import torch

    from tsdyn_lint.verify.measure.rig import Rig, frames_compiled
    from tsdyn_lint.verify.probes.places import Project
    from tsdyn_lint.verify.probes.subject import Call, Subject

    numbers = itertools.count()

    class Scaled(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(4, 4)
            self.scale = 2 if shared else next(numbers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * self.scale

    subject = Subject(Scaled, Call((torch.ones(1, 4),)), Project((str(REPOSITORY),)), backend="eager")
    rig = Rig(subject)
    with rig.conditions():
        rig.settled()
        rig.laid_out_anew()
        seen, known = rig.instance, frames_compiled()
        step = rig.laid_out_anew()
        assert (rig.instance is not seen) == shared and frames_compiled() == known
        assert torch.equal(step(), rig.plain()()) and rig.settled() is step


def test_noise_is_no_difference() -> None:
    from tsdyn_lint.verify.measure.clock import compared

    eager = [100 + (n * 37 % 11) for n in range(25)]
    again = [100 + (n * 53 % 11) for n in range(25)]
    same, control = compared(eager, [100 + (n * 29 % 11) for n in range(25)], again)
    assert not same.resolved and same.low < 1 < same.high and not control.resolved
    twice, _ = compared(eager, [50 + (n * 29 % 11) for n in range(25)], again)
    assert twice.resolved and twice.low > 1.5 and twice.value == pytest.approx(105 / 55, rel=0.05)
    half, _ = compared(eager, [200 + (n * 29 % 11) for n in range(25)], again)
    assert half.resolved and half.high < 1 and statistics.median(eager) < 120


def test_nested_metrics_are_taken_apart() -> None:
    from tsdyn_lint.verify.measure.compiling import NESTED, parts

    metrics = [dict(zip(NESTED, (5e6, 3e6, 2.5e6, 2e6, 0.5e6), strict=True)), dict.fromkeys(NESTED), {NESTED[0]: 1e6}]
    found = parts(7.0, metrics, building=1.5)
    assert (found.capture, found.aot, found.lowering, found.codegen, found.build) == (3.0, 0.5, 0.5, 0.5, 1.5)
    assert parts(7.0, [{}]).capture is None


def test_figures_are_put_together() -> None:
    from tsdyn_lint.verify import measured
    from tsdyn_lint.verify.figures import CompileParts, Ratio
    from tsdyn_lint.verify.summary import measure

    clear, noisy = Ratio(2.0, 1.9, 2.1, True), Ratio(1.02, 0.9, 1.1, False)
    seen = {
        "compiling": measured.Compiling(CompileParts(0.3, 0.1, 0.05, 0.01, 0.02, 0.12), CompileParts(0.03)),
        "speed": measured.Speed("thread", 50_000.0, 20_000.0, clear, noisy),
        "graphs": measured.Graphs(1, 0.9),
        "guards": measured.Guards(7, 5.0),
    }
    found = measure(seen, {}, "inductor", "eval", 10)
    assert (found.break_even_calls.cold, found.break_even_calls.warm) == (10, 1)
    assert found.benefit_s and found.benefit_s.cold == 0 and found.benefit_s.warm == pytest.approx(0.27)
    assert (found.t_graph_us, found.t_guard_us, found.t_rest_us) == (18_000, 5, 1_995)
    assert found.t_capture_s == 0.1 and found.t_inductor_s == pytest.approx(0.15)
    unsure = measure({**seen, "speed": measured.Speed("thread", 51.0, 50.0, noisy, noisy)}, {}, "inductor", "eval", 10)
    assert unsure.break_even_calls.cold is None and unsure.benefit_s and unsure.benefit_s.cold == -0.3


def test_external_kernels_are_known_by_their_operator() -> None:
    from tsdyn_lint.verify.measure.kernels import operator

    assert operator("extern_kernels.addmm") == operator("extern_kernels.bias_addmm") == "aten::addmm"
    assert operator("torch.ops.aten._scaled_dot_product_flash_attention.default") == (
        "aten::_scaled_dot_product_flash_attention"
    )
    assert operator("torch.ops.mkldnn._linear_pointwise.default") == "mkldnn::_linear_pointwise"


def test_a_gpus_profile_is_told_apart() -> None:
    """Kernels are the device's, ranges of the host and copies are none, launches are what the runtime was asked."""
    from types import SimpleNamespace

    from torch.autograd import DeviceType

    from tsdyn_lint.verify.measure.calls import Profiled, _device_kernels

    def event(name: str, kind: Any, spent: float = 0.0, annotation: bool = False) -> Any:
        span = SimpleNamespace(elapsed_us=lambda: spent)
        return SimpleNamespace(name=name, device_type=kind, time_range=span, is_user_annotation=annotation)

    found = Profiled()
    gpu, cpu = DeviceType.CUDA, DeviceType.CPU
    events = [
        event("triton_poi_fused_add_0", gpu, 3.0), event("triton_poi_fused_add_0", gpu, 5.0),
        event("sm90_gemm", gpu, 7.0), event("Memcpy DtoD", gpu, 9.0), event("## Call CompiledFxGraph x ##", gpu, 20.0),
        event("step", gpu, 30.0, annotation=True), event("cudaLaunchKernel", cpu), event("cuLaunchKernelEx", cpu),
        event("aten::addmm", cpu), event("cudaMemcpyAsync", cpu),
    ]  # fmt: skip
    _device_kernels(events, found)
    assert found.kernels == {"triton_poi_fused_add_0": [3.0, 5.0], "sm90_gemm": [7.0]}
    assert found.launches == 2
