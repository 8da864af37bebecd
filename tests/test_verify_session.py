"""`--verify` from end to end: targets found and configured, verdicts, what nobody predicted, exit codes."""

from __future__ import annotations

import json
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from tsdyn_lint.cli import main
from tsdyn_lint.verify.build.ctor import Constructor

PROJECT = {
    "pyproject.toml": """
        [tool.tsdyn-lint]
        engine = ["dynamo", "script", "trace"]
        select = ["TSD2", "TSD9"]

        [tool.tsdyn-lint.verify]
        timeout = 60

        [[tool.tsdyn-lint.verify.targets]]
        module = "pkg.model:Gate"
        inputs = [{shape = ["batch", 6], dtype = "float32", values = "rand(1, 2)"}]
        kwargs = {width = 6}

        [[tool.tsdyn-lint.verify.targets]]
        module = "pkg.model:make_scaled"
        inputs = "pkg.given:scaled"
        second = "pkg.given:other"
        """,
    "pkg/__init__.py": "",
    "pkg/given.py": """
        import torch

        def scaled():
            return (torch.ones(2, 3),), {"factor": torch.tensor(2)}

        def other():
            return (torch.ones(5, 3),), {"factor": torch.tensor(7)}
        """,
    "pkg/model.py": """
        import torch
        from torch import nn

        class Gate(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.width = width
                self.up = nn.Linear(width, width)

            def forward(self, x):
                x = self.up(x)
                if x.mean() > 100:
                    x = x * x.max().item()
                return x

        class Scaled(nn.Module):
            def forward(self, x, factor):
                return x * factor.item()

        def make_scaled():
            return Scaled()
        """,
    "pkg/beside.py": """
        import torch
        from torch import nn

        def example_inputs():
            return torch.arange(4)

        class Lookup(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(4, 2)

            def forward(self, keys):
                if keys.dtype != torch.int64:
                    raise TypeError("keys must be whole numbers")
                return self.table(keys)

        class Inner(nn.Module):
            def forward(self, x):
                return x

        class NotRun(nn.Module):
            def __init__(self, path):
                super().__init__()
                raise OSError(f"no weights at {path}")

            def forward(self, x):
                return x.item()
        """,
    "tsdyn_verify.py": """
        import torch
        import pkg.beside

        targets = [{"module": pkg.beside.Inner, "inputs": lambda: (torch.zeros(3),)}]
        """,
}


def make_project(folder: Path, files: dict[str, str] = PROJECT) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    return folder


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One verified run of the whole project."""
    folder = make_project(tmp_path_factory.mktemp("project"))
    result = CliRunner().invoke(main, ["--verify", "-o", "json", "--no-cache", "--device", "cpu", str(folder / "pkg")])
    assert result.exit_code in (0, 1), result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return {
        "code": result.exit_code,
        "findings": report["findings"],
        "names": [target["target"] for target in report["targets"]],
        "targets": {target["target"]: target for target in report["targets"]},
    }


def test_every_target_is_there_once(ran: dict[str, Any]) -> None:
    assert sorted(ran["names"]) == [
        "pkg.beside:Inner", "pkg.beside:Lookup", "pkg.beside:NotRun", "pkg.model:Gate", "pkg.model:Scaled",
        "pkg.model:make_scaled",
    ]  # fmt: skip


def test_literal_inputs_are_what_they_say(ran: dict[str, Any]) -> None:
    gate = ran["targets"]["pkg.model:Gate"]
    assert gate["failure"] is None and gate["synthesised"] is False
    assert gate["inputs"] == ["f32[4,6]"] and gate["kwargs"] == {"width": "6"}
    assert gate["eager"]["ok"] and gate["dynamo"]["ok"] and gate["script"]["ok"]
    assert 0 < gate["lines_reached"] < 1


def test_a_factory_and_keyword_inputs(ran: dict[str, Any]) -> None:
    scaled = ran["targets"]["pkg.model:make_scaled"]
    assert scaled["failure"] is None and scaled["inputs"] == ["f32[2,3]", "factor=i64[]=2"]
    assert [b["gb"] for b in scaled["dynamo"]["breaks"]] == ["GB0124"]
    assert scaled["trace"]["same_input"] is True and scaled["trace"]["other_inputs"] is False
    assert any(a["input"] == "second inputs" and a["outcome"] != "same" for a in scaled["trace"]["answers"])


def test_inputs_beside_a_class_are_used(ran: dict[str, Any]) -> None:
    lookup = ran["targets"]["pkg.beside:Lookup"]
    assert lookup["failure"] is None and lookup["inputs"] == ["i64[4]"] and not lookup["synthesised"]


def test_a_verify_file_names_targets(ran: dict[str, Any]) -> None:
    inner = ran["targets"]["pkg.beside:Inner"]
    assert inner["failure"] is None and inner["inputs"] == ["f32[3]"] and not inner["synthesised"]


def test_what_cannot_be_built_says_what_would_do(ran: dict[str, Any]) -> None:
    failure = ran["targets"]["pkg.beside:NotRun"]["failure"]
    assert failure["kind"] == "build" and "no weights" in failure["message"]
    assert failure["toml"].splitlines()[0] == "[[tool.tsdyn-lint.verify.targets]]"
    assert "kwargs = {path = ...}" in failure["toml"]


def test_a_line_that_ran_and_broke_is_confirmed_one_that_did_not_is_not_reached(ran: dict[str, Any]) -> None:
    by_row = {f["location"]["row"]: f for f in ran["findings"] if f["filename"].endswith("model.py")}
    branch = by_row[12]
    assert branch["verify"]["status"] == "confirmed"
    told = {o["engine"]: o["status"] for o in branch["verify"]["observed"]}
    assert told["dynamo"] == "confirmed"
    assert by_row[13]["verify"]["status"] == "not-reached"
    assert by_row[18]["verify"]["status"] == "confirmed"


def test_a_line_whose_own_target_cannot_run_is_not_run(ran: dict[str, Any]) -> None:
    (finding,) = [f for f in ran["findings"] if f["filename"].endswith("beside.py")]
    assert finding["entry"].endswith("NotRun.forward") and finding["verify"]["status"] == "not-run"
    assert all("no weights" in seen["reason"] for seen in finding["verify"]["observed"])


def test_confirmed_findings_fail_the_run(ran: dict[str, Any]) -> None:
    assert ran["code"] == 1


UNSEEN = {
    "hidden.py": """
        import torch
        from torch import nn

        STEP = vars(torch._dynamo)["graph" + "_break"]

        class Hidden(nn.Module):
            def forward(self, x):
                STEP()
                return x + 1

        class Late(nn.Module):
            def forward(self, x):
                if x.dim() == 9:
                    x = x * x.sum().item()
                return x
        """
}


def test_a_break_nobody_predicted_fails_and_an_unreached_line_does_not(tmp_path: Path) -> None:
    folder = make_project(tmp_path, UNSEEN)
    common = ["--verify", "--isolated", "--no-cache", "--engine", "dynamo", "--device", "cpu", str(folder)]
    found = json.loads(CliRunner().invoke(main, [*common, "-o", "json"]).stdout)
    assert {(f["code"], f["location"]["row"]) for f in found["findings"] if f["code"] == "TSD901"} == {("TSD901", 8)}
    only_late = [*common, "--select", "TSD2"]
    assert CliRunner().invoke(main, only_late).exit_code == 0
    strict = CliRunner().invoke(main, [*only_late, "--fail-unverified"])
    assert strict.exit_code == 1 and "not-reached" in strict.stdout


def test_a_wrong_target_is_a_wrong_configuration(tmp_path: Path) -> None:
    folder = make_project(tmp_path, {
        "tsdyn-lint.toml": '[[verify.targets]]\nmodule = "nowhere.model:Gate"\n', "a.py": "import torch\n",
    })  # fmt: skip
    result = CliRunner().invoke(main, ["--verify", str(folder)])
    assert result.exit_code == 2 and "nowhere.model" in result.stderr


@pytest.mark.parametrize(("table", "said"), [("{'modul': 1}", "has no `module`"), ("{'module': C, 'kw': 1}", "kw;")])
def test_a_verify_file_knows_the_configurations_keys(table: str, said: str) -> None:
    from types import ModuleType

    from tsdyn_lint.verify.build.importing import BuildError
    from tsdyn_lint.verify.build.subjects import listed_targets

    module = ModuleType("tsdyn_verify")
    exec(f"class C: pass\ntargets = [C, {table}]", vars(module))
    with pytest.raises(BuildError, match=f"target 2 of tsdyn_verify .*{said}"):
        listed_targets(module)


def test_each_shard_tries_its_own_findings(tmp_path: Path) -> None:
    text = "import torch\nfrom torch import nn\n\nclass {}(nn.Module):\n    def forward(self, x):\n        {}\n"
    files = {"a.py": text.format("Plain", "return x"), "b.py": text.format("Reads", "return x * x.sum().item()")}
    folder = make_project(tmp_path, files)
    common = ["--verify", "--isolated", "--no-cache", "--engine", "dynamo", "--device", "cpu", str(folder)]
    first = CliRunner().invoke(main, [*common, "--shard", "1/2", "--fail-unverified", "-o", "json"])
    (finding,) = json.loads(first.stdout)["findings"]
    assert finding["verify"]["status"] == "not-run" and "shard" in finding["verify"]["observed"][0]["reason"]
    assert first.exit_code == 0
    second = CliRunner().invoke(main, [*common, "--shard", "2/2", "-o", "json"])
    (finding,) = json.loads(second.stdout)["findings"]
    assert finding["verify"]["status"] == "confirmed" and second.exit_code == 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "x", "2"])
def test_a_shard_is_one_of_so_many(text: str) -> None:
    assert CliRunner().invoke(main, ["--verify", "--shard", text, "."]).exit_code == 2


def test_a_network_is_built_of_the_blocks_of_its_file() -> None:
    module = types.ModuleType("blocks_of_a_file")
    code = """
        from torch import nn

        class Head(nn.Module):
            def __init__(self, width):
                super().__init__()

        class WideBlock(nn.Module):
            expansion = 2

            def __init__(self, inside, width):
                super().__init__()
                self.layer = nn.Linear(inside, width * self.expansion)

        class Net(nn.Module):
            def __init__(self, block, layers):
                super().__init__()
                self.layers = nn.Sequential(*self.made(block, layers))

            def made(self, block, layers):
                return [block(8, 4) for _ in layers]
        """
    sys.modules[module.__name__] = module
    exec(textwrap.dedent(code), vars(module))
    first = next(Constructor(module.Net, {}).instances())
    del sys.modules[module.__name__]
    assert first.arguments["block"].text == "WideBlock"
    assert all(type(layer).__name__ == "WideBlock" for layer in first.module.layers)
