"""Budgets of targets: what breaks one, the line it is reported at, and how one is written."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_report_page import CODE, at, make_target

from tsdyn_lint.cli import main
from tsdyn_lint.cli.verify import fails, update_budgets
from tsdyn_lint.config import Settings
from tsdyn_lint.configfile import ConfigError
from tsdyn_lint.rulebook import load_rules
from tsdyn_lint.session import Outcome
from tsdyn_lint.source import Library, make_source
from tsdyn_lint.statements import Statements
from tsdyn_lint.verify.budget import broken, figures, limits, needs_measure, unknown
from tsdyn_lint.verify.budgetfile import NotWritable, now, written
from tsdyn_lint.verify.session import Group, over_budget
from tsdyn_lint.verify.target import Target

TABLE = {"budget": {"graph_breaks": 1, "guards": 9}, "budgets": {"2.13": {"guards": 5}, "2.14": {"recompiles": 0}}}


def target(folder: Path, **measured: Any) -> dict[str, Any]:
    found = make_target(folder / "model.py", measured=bool(measured))
    found["measure"] = {**found["measure"], **measured} if measured else None
    return found


def test_a_budget_for_one_torch_stands_over_that_for_all() -> None:
    assert limits(TABLE, "2.13.0+cpu") == {"graph_breaks": 1, "guards": 5}
    assert limits(TABLE, "2.14.1") == {"graph_breaks": 1, "guards": 9, "recompiles": 0}
    assert limits({}, None) == {}
    assert needs_measure(TABLE, "2.14.1") and not needs_measure({"budget": {"recompiles": 0}}, "2.13.0")


@pytest.mark.parametrize(
    ("figure", "kept", "exceeded", "message"),
    [
        ("graph_breaks", 1, 0, "1 graph break, the budget allows 0"),
        ("recompiles", 2, 1, "2 recompiles, the budget allows 1"),
        ("guards", 41, 40, "41 guards, the budget allows 40"),
        ("min_coverage", 0.95, 0.96, "coverage 0.95, the budget asks for at least 0.96"),
        ("max_compile_s", 0.3, 0.2, "0.3 s to compile, the budget allows 0.2"),
        ("max_kernels", 2, 1, "2 kernels, the budget allows 1"),
    ],
)
def test_a_limit_holds_up_to_itself(tmp_path: Path, figure: str, kept: float, exceeded: float, message: str) -> None:
    seen = target(tmp_path, guards=41)
    assert broken(seen, {figure: kept}) == []
    (over,) = broken(seen, {figure: exceeded})
    assert over.figure == figure and over.message == message


def test_noise_breaks_no_budget(tmp_path: Path) -> None:
    seen = target(tmp_path, speedup={"value": 0.97, "low": 0.93, "high": 1.01})
    assert broken(seen, {"min_speedup": 1.0}) == []
    seen = target(tmp_path, speedup={"value": 0.9, "low": 0.86, "high": 0.94})
    assert [o.message for o in broken(seen, {"min_speedup": 1.0})] == [
        "speedup 0.90 (0.86 to 0.94), the budget asks for at least 1"
    ]


def test_what_is_not_known_breaks_no_budget(tmp_path: Path) -> None:
    seen = target(tmp_path)
    assert broken(seen, dict.fromkeys(("guards", "min_coverage", "min_speedup", "max_compile_s"), 0)) == []
    assert unknown(seen, {"guards": 5, "recompiles": 0}) == ["guards"]
    seen["dynamo"] |= {"ok": False, "unavailable": "no Dynamo here"}
    assert set(figures(seen).values()) == {None} and broken(seen, {"graph_breaks": 0}) == []
    seen["budget"]["unknown"] = ["guards"]
    assert fails([], [seen], fail_unverified=True) and not fails([], [seen], fail_unverified=False)


def test_what_does_not_run_keeps_no_budget(tmp_path: Path) -> None:
    seen = target(tmp_path)
    seen["dynamo"] |= {"ok": False, "error": {"message": "Unsupported: no such thing\n  more"}}
    (over,) = broken(seen, {"graph_breaks": 0, "guards": 9})
    assert (over.figure, over.limit, over.measured) == ("graph_breaks", 0, None) and unknown(seen, {"guards": 9}) == []
    assert over.message == (
        "graph_breaks, guards of the budget could not be checked: torch.compile raises Unsupported: no such thing"
    )
    seen |= {"dynamo": None, "failure": {"kind": "build", "message": "no weights"}}
    (over,) = broken(seen, {"recompiles": 0})
    assert over.message.endswith("the target did not run (build): no weights") and broken(seen, {}) == []


def test_the_line_past_the_limit_is_to_blame(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    seen = target(tmp_path)
    seen["dynamo"]["breaks"] = [at(file, row) for row in (3, 7, 9)]
    (over,) = broken(seen, {"graph_breaks": 1})
    assert over.culprits == ((str(file), 7), (str(file), 9), (str(file), 3))
    seen = target(tmp_path, coverage=0.1)
    seen["dynamo"] |= {"breaks": [at(file, 3)], "frames_skipped": [at(file, 3, first_row=2)]}
    assert [place[1] for place in broken(seen, {"min_coverage": 0.5})[0].culprits] == [12, 3, 2]
    assert [place[1] for place in broken(seen, {"max_kernels": 0})[0].culprits] == [12]
    assert broken(seen, {"max_compile_s": 0.1})[0].culprits == ()


def test_figures_are_written_with_room_for_noise(tmp_path: Path) -> None:
    seen = target(tmp_path, guards=41)
    assert now({}, seen) == {
        "graph_breaks": 1, "recompiles": 2, "guards": 41, "min_coverage": 0.85, "min_speedup": 2.4,
        "max_compile_s": 0.5, "max_kernels": 2,
    }  # fmt: skip
    assert broken(seen, now({}, seen)) == []
    assert now({"budget": {"guards": 9}, "budgets": {"2.12": {"recompiles": 7}}}, seen) == {
        "recompiles": 2, "guards": 41,
    }  # fmt: skip
    assert now({}, target(tmp_path)) == {"graph_breaks": 1, "recompiles": 2}


PYPROJECT = """\
# mine
[tool.tsdyn-lint]
select = ["TSD9"]   # odd  spacing

[[tool.tsdyn-lint.verify.targets]]
module = "pkg:A"
budgets."2.13" = {guards = 5,  graph_breaks = 9} # keep

[tool.other]
x = 1
"""


def test_only_the_budget_changes() -> None:
    place = ("tool", "tsdyn-lint", "verify", "targets", 0)
    assert written(PYPROJECT, place, "2.13", {"graph_breaks": 0}) == PYPROJECT.replace("= 9", "= 0")
    assert written(PYPROJECT, place, "2.14", {"guards": 3, "min_coverage": 0.5}) == PYPROJECT.replace(
        "# keep\n", '# keep\nbudgets."2.14" = {guards = 3, min_coverage = 0.5}\n'
    )
    with pytest.raises(NotWritable, match=r'budgets."2.13" = \{guards = 1\}'):
        written(PYPROJECT, ("tool", "nothing"), "2.13", {"guards": 1})


PROJECT = {
    "tsdyn-lint.toml": """
        engine = ["dynamo", "recompile"]
        select = ["TSD9"]

        [[verify.targets]]
        module = "pkg.model:Two"
        inputs = [{shape = [4], dtype = "float32"}]
        budget = {graph_breaks = 1}  # was two

        [[verify.targets]]
        module = "pkg.model:make"
        inputs = [{shape = [4], dtype = "float32"}]
        budget.recompiles = 0
        """,
    "pkg/__init__.py": "",
    "pkg/helper.py": """
        import torch

        def count(x, state):
            state["n"] += 1
            return x * state["n"]
        """,
    "pkg/model.py": """
        import torch
        from torch import nn
        from pkg.helper import count

        class Two(nn.Module):
            def forward(self, x):
                print("one")
                x = x + 1
                print("two")
                return x * 2

        class Counted(nn.Module):
            def __init__(self):
                super().__init__()
                self.state = {"n": 0}

            def forward(self, x):
                return count(x, self.state)

        def make():
            return Counted()
        """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip())
    return tmp_path


def verify(*arguments: str | Path) -> Any:
    return CliRunner().invoke(main, ["--verify", "--no-cache", "--device", "cpu", *map(str, arguments)])


def test_a_broken_budget_fails_at_the_line_that_did_it(project: Path) -> None:
    result = verify("-o", "json", project / "pkg" / "model.py")
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    over = {f["location"]["row"]: f for f in report["findings"] if f["code"] == "TSD902"}
    assert set(over) == {9, 20} and {Path(f["filename"]).name for f in over.values()} == {"model.py"}
    assert over[9]["message"] == "`pkg.model:Two`: 2 graph breaks, the budget allows 1"
    assert over[9]["severity"] == "error" and [r["location"]["row"] for r in over[9]["related"]] == [7]
    assert "the budget allows 0" in over[20]["message"]  # the guard's file was not linted: the target's own line
    assert {(Path(r["filename"]).name, r["location"]["row"]) for r in over[20]["related"]} == {("helper.py", 4)}
    two = next(t for t in report["targets"] if t["target"] == "pkg.model:Two")["budget"]
    assert two["limits"] == {"graph_breaks": 1}
    assert [(b["figure"], b["limit"], b["measured"], b["location"]) for b in two["broken"]] == [
        ("graph_breaks", 1, 2, {"row": 9})
    ]


def test_a_target_that_was_not_linted_is_blamed_in_the_configuration(project: Path) -> None:
    report = json.loads(verify("-o", "json", project / "pkg" / "helper.py").stdout)
    places = {(Path(f["filename"]).name, f["location"]["row"]) for f in report["findings"] if f["code"] == "TSD902"}
    assert places == {("tsdyn-lint.toml", 7), ("helper.py", 4)}


def test_a_target_that_the_linted_files_have_no_part_in_is_left_alone(project: Path) -> None:
    (project / "other.py").write_text("import torch\n")
    result = verify(project / "other.py")
    assert result.exit_code == 0 and "pkg.model:Two, pkg.model:make" in result.stderr
    (project / "tsdyn-lint.toml").write_text('exclude = ["pkg"]\n' + (project / "tsdyn-lint.toml").read_text())
    result = verify("-o", "json", project)
    assert result.exit_code == 0 and json.loads(result.stdout)["targets"] == []


def test_a_budget_of_a_target_that_cannot_run_is_broken(project: Path) -> None:
    helper = project / "pkg" / "helper.py"
    helper.write_text("import no_such_package\n" + helper.read_text())
    file = project / "out.xml"
    result = verify("-o", "json", "-o", f"junit:{file}", project / "pkg")
    assert result.exit_code == 1, result.output
    over = [f for f in json.loads(result.stdout)["findings"] if f["code"] == "TSD902"]
    assert [f["location"]["row"] for f in over] == [5, 20] and all("no_such_package" in f["message"] for f in over)
    assert file.read_text().count("could not be checked: the target did not run (build)") >= 2


def test_a_verify_file_sets_budgets_too(project: Path) -> None:
    (project / "tsdyn-lint.toml").write_text('engine = ["dynamo"]\nselect = ["TSD9"]\n')
    (project / "tsdyn_verify.py").write_text(
        "import torch\nfrom pkg.model import Two\n"
        'targets = [{"module": Two, "inputs": lambda: (torch.ones(4),), "budget": {"graph_breaks": 0}}]\n'
    )
    report = json.loads(verify("-o", "json", project).stdout)
    assert [f["location"]["row"] for f in report["findings"] if f["code"] == "TSD902"] == [7]
    assert [t["target"] for t in report["targets"]].count("pkg.model:Two") == 1


def test_a_budget_is_judged_where_its_rule_is_selected(tmp_path: Path) -> None:
    seen, budgeted = target(tmp_path), {"module": "model:Gate", "budget": {"graph_breaks": 0}}
    gate = Target("model:Gate", tmp_path / "model.py", "Gate", budgeted)
    source = make_source(gate.file, CODE.encode())
    for selected in (frozenset({"TSD902"}), frozenset({"TSD901"})):
        group = Group(Settings(tmp_path, selected=selected, verify={"targets": [budgeted]}), load_rules(), [source])
        found = over_budget(gate, seen, group, {str(gate.file): Statements(CODE)})
        assert [(f.code, f.start.row) for f in found] == [(code, 11) for code in selected & {"TSD902"}]
        assert len(seen["budget"]["broken"]) == len(found)


def test_what_is_updated_is_kept_from_then_on(project: Path) -> None:
    file = project / "tsdyn-lint.toml"
    before = file.read_text()
    result = verify("--update-budgets", project / "pkg")
    assert result.exit_code == 0 and "Wrote the budgets of 2 targets" in result.stdout, result.output
    after = file.read_text()
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(added) == 2 and added[0].startswith('budgets."2.') and added[0].endswith("= {graph_breaks = 2}")
    assert [line for line in after.splitlines() if line not in added] == before.splitlines()
    assert verify("--ignore", "TSD901", project / "pkg").exit_code == 0


def test_there_must_be_something_to_write_to(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(main, ["--update-budgets", str(tmp_path)])
    assert wrong.exit_code == 2 and "--verify" in wrong.stderr
    with pytest.raises(ConfigError, match="verify.targets"):
        update_budgets(Outcome([], [], Library(), targets=[]))
