"""What each probe sees of small modules whose behaviour on torch is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tsdyn_lint.verify.probe import observations, probe_files
from tsdyn_lint.verify.probes.places import Project

GATE = """\
import torch
from torch import nn

class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x

example = Gate(), (torch.ones(3),)
"""
COUNTER = """\
import torch
from torch import nn

class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n

example = Counter(), (torch.ones(3),)
repeat = 6
"""
MANY = """\
import torch
from torch import nn

class Inner(nn.Module):
    def forward(self, x):
        return {**{"a": x}}["a"]

class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        with open("/dev/null") as f:
            print(f)
        z = f"{x.shape[0]:>3}"
        return self.inner(x) + len(z)

example = Many(), (torch.ones(3),)
"""
PLAIN = """\
import torch

def plain(x):
    return torch.relu(x) + 1

example = plain, (torch.ones(2, 3),)
"""
NESTED = """\
import torch
from torch.utils.checkpoint import checkpoint

def inner(x):
    y = x.sin()
    return y.cos()

def outer(x):
    return checkpoint(inner, x, use_reentrant=False) + 1

example = outer, (torch.ones(2, 3, requires_grad=True),)
"""
ONCE = """\
import torch
from torch import nn

class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.done = False

    def forward(self, x):
        if self.done:
            raise RuntimeError("only once")
        self.done = True
        return x + 1

example = Once(), (torch.ones(3),)
"""
SEGFAULT = """\
import torch
from torch import nn

class Dies(nn.Module):
    def forward(self, x):
        if torch.jit.is_tracing():
            import ctypes
            ctypes.string_at(0)
        return x + 1

example = Dies(), (torch.ones(2),)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All files in one worker: its start costs more than the probes."""
    folder: Path = tmp_path_factory.mktemp("examples")
    texts = {
        "gate": GATE, "counter": COUNTER, "many": MANY, "plain": PLAIN, "nested": NESTED, "once": ONCE,
        "dies": SEGFAULT,
    }  # fmt: skip
    files = []
    for name, text in texts.items():
        files.append(folder / f"{name}.py")
        files[-1].write_text(text)
    results = probe_files(files)
    for result in results:
        assert result.failure is None
    found: dict[str, Any] = dict(zip(texts, map(observations, results), strict=True))
    found["dies"]["broken"] = results[-1].broken
    return found


def rows(items: Any) -> list[int]:
    return [item.site.row for item in items if item.site]


def test_eager_tells_lines_and_inputs(seen: dict[str, Any]) -> None:
    eager = seen["gate"]["eager"]
    assert eager.ok and eager.inputs == ("f32[3]",)
    assert list(eager.lines.values()) == [[6, 7]]


def test_a_branch_on_a_tensor_breaks_where_it_stands(seen: dict[str, Any]) -> None:
    dynamo = seen["gate"]["dynamo"]
    assert dynamo.ok and rows(dynamo.breaks) == [6]
    assert dynamo.breaks[0].gb == "GB0170" and dynamo.breaks[0].reason == "Data-dependent branching"
    assert all(site.filename.endswith("gate.py") for site in dynamo.breaks[0].stack if site.function == "forward")


def test_code_made_from_a_string_is_no_file_of_the_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Project((str(tmp_path),)).has("model.py") and not Project((str(tmp_path),)).has("<string>")


def test_each_line_is_known_by_the_graph_it_fell_into(seen: dict[str, Any]) -> None:
    dynamo = seen["gate"]["dynamo"]
    assert dynamo.graphs == 2
    assert [list(graph.lines.values()) for graph in dynamo.captured] == [[[6]], [[7]]]
    assert [graph.ops for graph in dynamo.captured] == [2, 1] and dynamo.ops == 3


def test_a_graph_inside_of_a_graph_is_part_of_it(seen: dict[str, Any]) -> None:
    (graph,) = seen["nested"]["dynamo"].captured
    assert list(graph.lines.values()) == [[5, 6, 9]]


def test_a_break_in_with_skips_the_frame(seen: dict[str, Any]) -> None:
    dynamo = seen["many"]["dynamo"]
    assert {b.gb for b in dynamo.breaks if b.frame_skipped} == {"GB0142"}
    assert {frame.row for frame in dynamo.skipped} == {14}


def test_a_counter_recompiles_at_its_line_on_every_call(seen: dict[str, Any]) -> None:
    recompile = seen["counter"]["recompile"]
    assert recompile.graphs_after == (1, 2, 3, 4, 5, 6)
    assert recompile.hits == 0
    assert {(r.site.row, r.guard) for r in recompile.recompiles} == {(10, f"self.n == {n}") for n in range(5)}


def test_a_size_recompiles_once(seen: dict[str, Any]) -> None:
    recompile = seen["plain"]["recompile"]
    assert [r.input for r in recompile.recompiles] == ["batch 3", "size 4"]
    assert recompile.hit_rate is not None and recompile.hit_rate > 0.7


def test_trace_warns_and_differs_on_negated_input(seen: dict[str, Any]) -> None:
    trace = seen["gate"]["trace"]
    assert rows(trace.warnings) == [6]
    assert {a.input for a in trace.answers if a.outcome == "differs"} == {"negated"}


def test_trace_bakes_a_counter_without_a_word(seen: dict[str, Any]) -> None:
    trace = seen["counter"]["trace"]
    assert not trace.warnings
    assert trace.answers[0].outcome == "same" and trace.answers[1].outcome == "differs"


def test_script_tells_errors_past_the_first_and_of_submodules(seen: dict[str, Any]) -> None:
    script = seen["many"]["script"]
    assert not script.ok and script.complete
    assert {e.fault.site.row for e in script.errors} >= {6, 14, 16}
    assert {e.how for e in script.errors} >= {"leaf", "masked"}


def test_export_names_the_line_and_draft_the_expression(seen: dict[str, Any]) -> None:
    assert seen["gate"]["export"].error.site.row == 6
    assert seen["gate"]["export_strict"].error.site.row == 6
    assert [f.site.row for f in seen["gate"]["draft"].failures] == [6]


def test_plain_code_passes_everything(seen: dict[str, Any]) -> None:
    plain = seen["plain"]
    assert all(plain[name].ok for name in plain)
    assert plain["dynamo"].graphs == 1 and not plain["dynamo"].breaks
    for name in ("script", "trace"):
        assert {a.outcome for a in plain[name].answers} == {"same"}
    assert {a.outcome for a in plain["export"].answers} == {"same", "refused"}


def test_a_call_that_eager_refuses_is_compared_with_nothing(seen: dict[str, Any]) -> None:
    for name in ("dynamo", "script", "trace", "export"):
        assert [(a.input, a.outcome) for a in seen["once"][name].answers] == [("the example", "same")], name
    assert seen["once"]["recompile"].calls == ("the example",) and seen["once"]["recompile"].hit_rate is None


def test_a_segfault_in_one_probe_leaves_the_others(seen: dict[str, Any]) -> None:
    assert set(seen["dies"]["broken"]) == {"trace"} and "SIGSEGV" in seen["dies"]["broken"]["trace"]
    assert seen["dies"]["draft"].ok and seen["dies"]["dynamo"].ok


def test_what_has_no_file_is_no_part_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own modules would be put back to how they were before torch imported more of itself."""
    from tsdyn_lint.verify.probes.places import Project

    monkeypatch.chdir(tmp_path)
    assert not Project((str(tmp_path),)).has("")
    assert Project((str(tmp_path),)).has(str(tmp_path / "model.py"))


def test_a_slow_model_is_called_less_often_but_with_inputs_of_each_kind() -> None:
    from tsdyn_lint.verify.probes.eager import affordable
    from tsdyn_lint.verify.probes.subject import Call

    kinds = ("again", "again", "values", "values", "sizes", "sizes", "sizes")
    calls = tuple(Call((), {}, str(number), kind) for number, kind in enumerate(kinds))
    assert affordable(calls, 0.01) == calls
    assert [call.label for call in affordable(calls, 1.9)] == ["0", "1", "2", "4"]
    assert [call.label for call in affordable(calls, 7.0)] == ["0", "2", "4"]
    assert affordable(calls, 100.0) == ()


def test_changed_inputs_are_made_when_they_are_used() -> None:
    import torch

    from tsdyn_lint.verify.build.variants import others, sweep
    from tsdyn_lint.verify.probes.subject import Call

    example = Call((torch.ones(2, 3),), {"flag": True, "n": 4})
    calls = {call.label: call for call in (*others(example), *sweep(example))}
    assert all(call.args[0] is example.args[0] for call in calls.values())
    assert calls["negated"].copy().args[0].sum() == -6 and calls["flags turned"].copy().kwargs["flag"] is False
    assert calls["batch 4"].copy().args[0].shape == (4, 3) and calls["6 instead of 4"].copy().kwargs["n"] == 6
