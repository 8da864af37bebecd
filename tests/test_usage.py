"""What `--engine auto` sees, and which torch is judged when nobody says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from conftest import REPOSITORY, Project

from tsdyn_lint.findings import Engine
from tsdyn_lint.syntax import nodes_of
from tsdyn_lint.torchversion import default_torch, nearest_known, required_torch
from tsdyn_lint.usage import DEFAULT, engines_used, usage_of


@pytest.mark.parametrize(
    ("code", "captures"),
    [
        ("import torch\ntorch.compile(m)", {"torch.compile"}),
        ("import torch as t\nm = t.jit.script(m)", {"torch.jit.script"}),
        ("from torch import jit\n@jit.script\ndef f(x): ...", {"torch.jit.script"}),
        ("import torch.jit as j\nj.trace(m, x)", {"torch.jit.trace"}),
        ("from torch import compile as c\nc(m)", {"torch.compile"}),
        ("from torch.export import export\nexport(m, ())", {"torch.export.export"}),
        ("import torch.export\ntorch.export.export(m, ())", {"torch.export.export"}),
        ("import torch\n@torch.compile\ndef f(x): ...", {"torch.compile"}),
        (
            "import torch\nif __name__ == '__main__':\n    torch.jit.trace(m, x); torch.compile(m)",
            {"torch.jit.trace", "torch.compile"},
        ),
        ("import torch, re\nre.compile('x')", set()),
        ("import torch\n# torch.compile(m)\nx = 'torch.jit.script(m)'", set()),
        ("import mytorch\nmytorch.compile(m)", set()),
        ("from .torch import compile\ncompile(m)", set()),
        ("import torch\ntorch.compile(", set()),
    ],
)
def test_captures_a_file_calls(code: str, captures: set[str]) -> None:
    assert set(usage_of(code.encode()).captures) == captures


def test_auto_looks_at_the_whole_project_of_a_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/elsewhere"))
    project.write("pkg/model.py", "import torch\n")
    project.write("pkg/train.py", "import torch\ntorch.jit.script(1)\n")
    project.write("tests/broken/tsdyn-lint.toml", "bogus = 1\n")
    assert "(no capture call seen)" in project.run("pkg/model.py").stdout
    project.write("pyproject.toml", "")
    assert "Checked script (the project calls torch.jit.script)" in project.run("pkg/model.py").stdout


def test_what_a_file_calls_is_remembered_till_it_changes(project: Project) -> None:
    project.write("pyproject.toml", "")
    project.write("model.py", "import torch\n")
    train = project.write("train.py", "import torch\ntorch.jit.script(1)\n")
    for _ in range(2):
        assert "Checked script (" in project.run("check", "model.py").stdout
    train.write_text("import torch\ntorch.jit.trace(1)\n# longer\n")
    assert "Checked trace (" in project.run("check", "model.py").stdout
    train.unlink()
    assert "(no capture call seen)" in project.run("check", "model.py").stdout


def test_engines_of_captures() -> None:
    assert engines_used([]) == (DEFAULT, "no capture call seen")
    engines, reason = engines_used(["torch.compile", "torch.jit.trace", "torch.compile"])
    assert engines == {Engine.DYNAMO, Engine.RECOMPILE, Engine.TRACE}
    assert reason == "the project calls torch.compile, torch.jit.trace"


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("requirements.txt", "numpy\ntorch==2.12.1\n", (2, 12)),
        ("requirements.txt", "torch>=2.11,<2.14  # pinned\n", (2, 13)),
        ("requirements.txt", "torch~=2.11\n", (2, 15)),
        ("requirements.txt", "torchvision==0.9.1\n", None),
        ("requirements.txt", "torch\n", None),
        ("requirements.txt", "torch[extra] <= 2.12\n", (2, 12)),
        ("pyproject.toml", '[project]\ndependencies = ["numpy>=1", "torch>=2.11,!=2.15"]\n', (2, 15)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.12"\n', None),
        ("setup.py", "install_requires=['torch<2.13']", (2, 12)),
        ("setup.cfg", "install_requires =\n    torch<=1.13\n", (1, 13)),
        ("environment.yml", "dependencies:\n  - pytorch=2.14\n", (2, 14)),
    ],
)
def test_required_torch(tmp_path: Path, file: str, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / file).write_text(text)
    assert required_torch(tmp_path / file) == version


def test_default_torch_prefers_the_installed_then_the_required_then_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert default_torch(tmp_path) == ((2, 15), "the newest known")
    (tmp_path / "requirements.txt").write_text("torch==2.12\n")
    assert default_torch(tmp_path / "pkg") == ((2, 12), "required in requirements.txt")
    (tmp_path / "torch-2.13.0+cpu.dist-info").mkdir()
    assert default_torch(tmp_path) == ((2, 13), "installed")


def test_an_unknown_torch_is_judged_by_its_nearest_neighbour() -> None:
    assert nearest_known((2, 9), "installed") == ((2, 11), "the nearest known to 2.9, which is installed")
    assert nearest_known((3, 0), "installed")[0] == (2, 15)


def test_the_walk_over_a_tree_is_that_of_ast() -> None:
    trees = [ast.parse(path.read_text()) for path in sorted((REPOSITORY / "tsdyn_lint").rglob("*.py"))]
    trees.append(
        ast.parse(
            "global a\nx: int\nf(*y, **z)\n{1: 2, **w}\n"
            "lambda a=1, *, b, c=2: 0\nmatch x:\n    case {'k': v, **r}: pass"
        )
    )
    for tree in trees:
        assert nodes_of(tree) == [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
