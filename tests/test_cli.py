"""The command line as CONTRACT promises it: what is linted, what is said, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Project, run_cli

from tsdyn_lint import __version__

MODEL = "import torch\n\n\ndef forward(x):\n    print(x)\n    return x\n"


def test_findings_exit_with_1_and_a_clean_project_with_0(project: Project, prints: None) -> None:
    project.write("model.py", MODEL)
    assert project.run().exit_code == 1
    project.write("model.py", MODEL.replace("print(x)", "pass"))
    assert project.run().exit_code == 0


def test_no_files_is_success_and_says_so(project: Project) -> None:
    result = project.run()
    assert result.exit_code == 0
    assert "No files to lint." in result.stdout


def test_a_missing_path_is_wrong_usage(project: Project) -> None:
    result = project.run("nope.py")
    assert result.exit_code == 2
    assert "nope.py: no such file or folder" in result.stderr


def test_check_is_the_same_as_no_verb(project: Project, prints: None) -> None:
    project.write("model.py", MODEL)
    assert project.run("check", "--no-cache", "-o", "json").stdout == project.run("-o", "json").stdout


def test_an_unparsable_file_is_a_finding_and_the_others_are_still_linted(project: Project, prints: None) -> None:
    project.write("bad.py", "import torch\ndef f(:\n")
    project.write("model.py", MODEL)
    project.write("no_torch.py", "x = (\n")
    project.write("odd.py", b"import torch\nx = '\xff'\n")
    result = project.run("-o", "json")
    assert result.exit_code == 1
    found = [(Path(f["filename"]).name, f["code"]) for f in json.loads(result.stdout)]
    assert found == [("bad.py", "TSD000"), ("model.py", "TSD301"), ("no_torch.py", "TSD000"), ("odd.py", "TSD000")]


def test_files_without_torch_are_not_analysed(project: Project, prints: None) -> None:
    project.write("plain.py", "print(1)\n")
    assert project.rows() == []


def test_info_never_fails(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint(1)  # notice\n")
    result = project.run("-o", "json")
    assert [finding["severity"] for finding in json.loads(result.stdout)] == ["info"]
    assert result.exit_code == 0


CHECKS = """
import torch.nn as nn


class Checked(nn.Module):
    def forward(self, x):
        if x.dim() == 3:
            return x
        elif x.shape[0] > 3:
            raise ValueError
        else:
            return x + 1
"""


def test_a_check_that_a_trace_drops_never_fails(project: Project) -> None:
    project.write("model.py", CHECKS)
    result = project.run("-o", "json", "--engine", "trace", "--ignore", "TSD603")
    assert [(f["code"], f["severity"]) for f in json.loads(result.stdout)] == [("TSD601", "info")]
    assert result.exit_code == 0


def test_exit_zero(project: Project, prints: None) -> None:
    project.write("model.py", MODEL)
    assert project.run("--exit-zero").exit_code == 0


def test_an_internal_error_costs_one_file_and_exits_with_2(project: Project, prints: None) -> None:
    project.write("a.py", "import torch\nprint(1)\n")
    project.write("b.py", "import torch\nexplode = 1\n")
    result = project.run("-o", "json", "--exit-zero", "--select", "TSD3")
    found = {Path(finding["filename"]).name: finding for finding in json.loads(result.stdout)}
    assert found["a.py"]["code"] == "TSD301"
    assert found["b.py"]["code"] == "TSD099"
    assert "RuntimeError: exploded (conftest.py:" in found["b.py"]["message"]
    assert result.exit_code == 2


def test_possible_findings_need_to_be_asked_for(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint(1)  # unsure\nprint(2)\n")
    assert project.rows() == [("TSD301", 3)]
    assert project.rows("--min-confidence", "possible") == [("TSD301", 2), ("TSD301", 3)]
    assert project.rows("--min-confidence", "certain") == []


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (("--select", "TSD3"), {"TSD301"}),
        (("--select", "print-call"), {"TSD301"}),
        (("--select", "TSD0"), {"TSD000"}),
        (("--ignore", "TSD301"), {"TSD000"}),
        (("--ignore", "print-call,syntax-error"), set()),
        (("--select", "TSD0", "--extend-select", "TSD301"), {"TSD000", "TSD301"}),
        (("--select", "TSD3", "--ignore", "TSD301"), set()),
        (("--ignore", "TSD3", "--select", "TSD301"), {"TSD301"}),
        (("--extend-ignore", "TSD000"), {"TSD301"}),
    ],
)
def test_selection_by_code_prefix_and_name(
    project: Project, prints: None, options: tuple[str, ...], codes: set[str]
) -> None:
    project.write("model.py", MODEL)
    project.write("bad.py", "def f(:\n")
    assert {code for code, _ in project.rows(*options)} == codes


def test_an_unknown_rule_is_wrong_usage_with_a_suggestion(project: Project) -> None:
    result = project.run("--select", "prnt-call")
    assert result.exit_code == 2
    assert "did you mean `print-call`?" in result.stderr


def test_standard_input(project: Project, prints: None) -> None:
    found = project.json("-", "--stdin-filename", "pkg/model.py", stdin=MODEL)
    assert [(finding["filename"], finding["location"]["row"]) for finding in found] == [
        (str(project.folder / "pkg/model.py"), 5)
    ]
    assert "-:5:5: TSD301" in project.run("-", "-o", "concise", stdin=MODEL).stdout


def test_standard_input_uses_the_configuration_near_its_name(project: Project, prints: None) -> None:
    project.write("pkg/tsdyn-lint.toml", 'ignore = ["TSD301"]\n')
    assert project.json("-", "--stdin-filename", "pkg/model.py", stdin=MODEL) == []
    assert project.json("-", "--stdin-filename", "model.py", stdin=MODEL) != []


def test_summary_says_what_was_checked_and_why(project: Project, prints: None) -> None:
    project.write("model.py", MODEL)
    out = project.run("--torch-version", "2.12").stdout
    assert "Found 1 finding in 1 of 1 file.\n" in out
    assert "[*] 1 can be fixed with --fix.\n" in out
    assert "Checked dynamo, recompile and script (no capture call seen) for torch 2.12 (set in --torch-version)." in out
    project.write("train.py", "import torch\nif __name__ == '__main__':\n    torch.jit.trace(1, 2)\n")
    out = project.run("--torch-version", "2.12").stdout
    assert "Checked trace (the project calls torch.jit.trace) for" in out
    out = project.run("--engine", "export,dynamo").stdout
    assert "Checked dynamo and export (asked for) for" in out


def test_quiet_leaves_the_summary_out(project: Project, prints: None) -> None:
    project.write("model.py", MODEL)
    out = project.run("-q", "-o", "concise").stdout
    assert out.count("\n") == 1


@pytest.mark.parametrize("engine", ["dynam", ",", "dynamo,bogus", "auto,dynamo"])
def test_a_wrong_engine_is_wrong_usage(project: Project, engine: str) -> None:
    assert project.run("--engine", engine).exit_code == 2


@pytest.mark.parametrize("version", ["2", "two", "1.13", "2.99"])
def test_a_wrong_torch_version_is_wrong_usage(project: Project, version: str) -> None:
    assert project.run("--torch-version", version).exit_code == 2


def test_statistics(project: Project, prints: None) -> None:
    project.write("model.py", MODEL + "print(1)\n")
    result = project.run("--statistics")
    assert "2\tTSD301\t[*] print-call (dynamo 2, trace 2)" in result.stdout
    assert result.exit_code == 1
    rows = json.loads(project.run("--statistics", "-o", "json").stdout)
    assert [(row["code"], row["count"], row["fixable"]) for row in rows] == [("TSD301", 2, 2)]


def test_show_files_and_show_settings(project: Project) -> None:
    model = project.write("model.py", MODEL)
    project.write("notes.txt", "torch")
    assert project.run("--show-files").stdout == f"{model}\n"
    assert (
        'torch-version = "2.14"  # set in --torch-version'
        in project.run("--show-settings", "--torch-version", "2.14").stdout
    )


def test_colour(project: Project, prints: None, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("model.py", MODEL)
    assert "\033[" not in project.run().stdout
    assert "\033[" in project.run("--color", "always").stdout
    assert "\033[" not in project.run(env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\033[" in project.run(env={"FORCE_COLOR": "1", "NO_COLOR": ""}).stdout
    assert "\033[" not in project.run("--color", "never", env={"FORCE_COLOR": "1"}).stdout


def test_rule_prints_a_page_by_code_or_name(project: Project) -> None:
    page = project.run("rule", "TSD301").stdout
    assert page.startswith("# print-call (TSD301)\n")
    assert "## Why it breaks" in page
    assert project.run("rule", "print-call").stdout == page
    assert project.run("rule", "TSD9999").exit_code == 2
    assert project.run("rule").exit_code == 2
    assert {"TSD000", "TSD301"} <= {
        rule["code"] for rule in json.loads(project.run("rule", "--all", "--output-format", "json").stdout)
    }


def test_version(project: Project) -> None:
    assert project.run("--version").stdout == f"tsdyn-lint {__version__}\n"


def test_clean_removes_caches(project: Project) -> None:
    project.write("pkg/.tsdyn_cache/0.1.0/x", "x")
    result = project.run("clean")
    assert result.exit_code == 0
    assert not (project.folder / "pkg/.tsdyn_cache").exists()
    assert (project.folder / "pkg").exists()


def test_real_processes(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = run_cli("-o", "concise", "--isolated", "--no-cache", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("bad.py:1:7: TSD000 ")
    assert run_cli("nope", cwd=tmp_path).returncode == 2
    assert run_cli("--bogus", cwd=tmp_path).returncode == 2
    assert run_cli("-", "-q", cwd=tmp_path, stdin="x = 1\n").returncode == 0


def test_a_pool_of_processes_finds_the_same(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"m{number}.py").write_text(
            "import torch\n" + "x = 1  # filler of some length\n" * 1500 + "y = (\n"
        )
    one = run_cli("-o", "json", "-j", "1", "--no-cache", cwd=tmp_path)
    two = run_cli("-o", "json", "-j", "2", "--no-cache", cwd=tmp_path)
    assert len(json.loads(one.stdout)) == 6
    assert one.stdout == two.stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    import subprocess
    import sys

    for number in range(300):
        (tmp_path / f"m{number}.py").write_text("x = (\n")
    script = f"{sys.executable} -m tsdyn_lint --no-cache -o json | head -c 10"
    done = subprocess.run(
        script,
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""


def test_watch_runs_now_and_after_each_change_that_matters(
    project: Project, prints: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchfiles = pytest.importorskip("watchfiles")
    project.write("model.py", MODEL)
    filters = []

    def changes(*paths: Path, watch_filter: object, **_: object) -> object:
        filters.append(watch_filter)
        assert paths == (Path("."),)
        project.write("model.py", MODEL.replace("print(x)", "pass"))
        yield {(1, "model.py")}

    monkeypatch.setattr(watchfiles, "watch", changes)
    result = project.run("-w", "-o", "concise")
    assert "Found 1 finding" in result.stdout
    assert result.stdout.index("Found 1 finding") < result.stdout.index("Nothing to report in 1 file.")
    assert result.exit_code == 0
    assert [filters[0](1, name) for name in ("a.py", "a.toml", "a.pyc", ".tsdyn_cache/x.json")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_missing_extra_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "watchfiles", None)
    monkeypatch.setitem(__import__("sys").modules, "pygls.lsp.server", None)
    monkeypatch.delitem(__import__("sys").modules, "tsdyn_lint.lsp", raising=False)
    assert "pip install 'tsdyn-lint[watch]'" in project.run("-w").stderr
    result = project.run("lsp")
    assert result.exit_code == 2 and "pip install 'tsdyn-lint[lsp]'" in result.stderr


def test_a_very_deep_expression_costs_no_other_file(project: Project) -> None:
    model = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        {}\n"
    project.write("deep.py", model.format("return " + " + ".join(["x"] * 700)))
    project.write("ok.py", model.format("print(x)"))
    result = project.run("-j", "1", "--engine", "dynamo,script", "-o", "concise", "deep.py", "ok.py")
    assert result.exit_code == 1, result.stderr
    assert "ok.py:6:9: TSD301" in result.stdout
    assert "TSD099" not in result.stdout


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 5000 + "]" * 5000, "x = " + "f(" * 5000, 'print "a"\nx = ' + "(" * 5000]
)
def test_brackets_nested_too_deeply_are_a_finding_and_no_crash(project: Project, text: str) -> None:
    (project.folder / "deep.py").write_text(f"import torch\n{text}\n")
    result = project.run("-j", "1", "-o", "concise", "deep.py")
    assert result.exit_code == 1, result.stderr
    assert "TSD000 the code is nested too deeply" in result.stdout


def test_a_chain_too_long_to_read_is_a_finding_at_its_line(project: Project) -> None:
    forward = "    def forward(self, x):\n        {}\n        return x\n"
    model = "import torch.nn as nn\n\n{}\n\n\nclass Net(nn.Module):\n" + forward
    chain = " + ".join(["1"] * 5000)
    project.write("unused.py", model.format(f"A = {chain}", "print(x)"))
    project.write("used.py", model.format(f"A = {chain}", "x = x + A"))
    project.write("body.py", model.format("", f"x = x + {chain}"))
    result = project.run("-j", "1", "--engine", "dynamo,script", "-o", "concise", ".")
    lines = [line.split(" ")[:2] for line in result.stdout.splitlines() if line.startswith(("unused", "used", "body"))]
    assert lines == [["body.py:8:9:", "TSD000"], ["unused.py:8:9:", "TSD301"], ["used.py:3:1:", "TSD000"]]


def test_containers_that_hold_themselves(project: Project) -> None:
    project.write(
        "held.py",
        "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, n):\n        x = x[0] = [n, n]\n"
        "        y = {}\n        y['a'] = y\n"
        "        for i in range(3):\n            x.append(x)\n            y['b'] = x\n"
        "        if n.sum() > 0:\n            x = y\n        return x, y\n",
    )
    assert project.rows("--engine", "dynamo", "held.py") == [("TSD201", 12)]


def test_a_long_line_of_classes(project: Project) -> None:
    chain = "".join(f"class C{i}(C{i - 1}):\n    pass\n\n\n" for i in range(1, 400))
    first = "import torch.nn as nn\n\n\nclass C0(nn.Module):\n    def forward(self, x):\n        print(x)\n\n\n"
    project.write("many.py", first + chain)
    assert project.rows("--engine", "dynamo", "many.py") == [("TSD301", 6)]


def test_lines_may_end_in_carriage_returns_alone(project: Project, prints: None) -> None:
    project.write("a.py", MODEL.replace("\n", "\r"))
    project.write("b.py", MODEL.replace("print(x)", "print(x)  # tsdyn: ignore[TSD301]").replace("\n", "\r"))
    assert project.rows("a.py") == [("TSD301", 5)]
    assert project.rows("b.py") == []


def test_what_is_neither_file_nor_folder_is_not_read(project: Project) -> None:
    os.mkfifo(project.folder / "pipe.py")
    result = project.run("pipe.py")
    assert result.exit_code == 2 and "pipe.py: neither a file nor a folder" in result.stderr
    assert project.run(".").exit_code == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(project: Project, closed: str) -> None:
    project.write("a.py", "import torch\n\n\ndef forward(x: torch.Tensor):\n    print(x)\n    return x.sum()\n")
    command = f"{sys.executable} -m tsdyn_lint --engine dynamo -n a.py {closed}"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(["bash", "-c", command], cwd=project.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert ("TSD301" in done.stdout) == (">&-" not in closed.split())


def test_selecting_nothing_is_wrong_usage(project: Project) -> None:
    project.write("a.py", MODEL)
    assert project.run("--select", "", "a.py").exit_code == 2
    assert "--select names no rule" in project.run("--select", ",", "a.py").stderr
