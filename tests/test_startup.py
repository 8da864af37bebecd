"""What a run must not import, and how long the smallest ones take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY

HEAVY = {"libcst", "torch", "pygls", "watchfiles", "multiprocessing", "pathspec"}


def imported(tmp_path: Path, *args: str) -> set[str]:
    """The modules a run has imported when it ends."""
    script = (
        "import sys\n"
        f"sys.argv = ['tsdyn-lint', *{list(args)!r}]\n"
        "from tsdyn_lint.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_the_version_needs_nothing_heavy(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--version")
    assert not modules & HEAVY
    assert not modules & {"tsdyn_lint.session", "tsdyn_lint.rulebook", "tomllib", "json"}


def test_a_file_without_torch_needs_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert not imported(tmp_path, "plain.py") & {*HEAVY, "tsdyn_lint.pipeline"}


def test_a_file_with_torch_never_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n\n\ndef forward(x: torch.Tensor):\n    return x\n")
    modules = imported(tmp_path, "model.py")
    assert "tsdyn_lint.pipeline" in modules
    assert not modules & {"torch", "numpy"}


@pytest.mark.slow
def test_the_version_takes_at_most_2_5_times_the_import_of_click(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin"}

    def seconds(*command: str) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds("-m", "tsdyn_lint", "--version") <= 2.5 * seconds("-c", "import click")


def test_python_m_imports_nothing_from_the_folder_it_runs_in(tmp_path: Path) -> None:
    (tmp_path / "weakref.py").write_text("raise SystemExit('imported')\n")
    run = subprocess.run(
        [sys.executable, "-m", "tsdyn_lint", "--isolated", "--no-cache", "."],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_an_analysis_leaves_next_to_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    """What holds itself is let go of: the walk, which knows its methods, a closure and the scope it was made in."""
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n=4):\n"
        "        super().__init__()\n        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(n)])\n\n"
        "    def forward(self, x):\n        def again(x, depth):\n"
        "            return x if depth == 0 else again(x, depth - 1)\n\n"
        "        for layer in self.layers:\n            x = again(layer(x), 2)\n        return x.item()\n"
    )
    script = (
        "import gc, sys\nfrom pathlib import Path\nfrom tsdyn_lint.judge import judge\n"
        "from tsdyn_lint.config import Configs\nfrom tsdyn_lint.configfile import Options\n"
        "from tsdyn_lint.findings import Engine\nfrom tsdyn_lint.source import read_source\n"
        "from dataclasses import replace\n"
        "configs = Configs(Options())\nsettings = replace(configs.settings_for(Path('.')), engines=frozenset(Engine))\n"
        "source = [read_source(Path('model.py').absolute())]\n"
        "assert judge(source, settings, configs.rulebook(settings), 1).findings\n"
        "gc.disable()\ngc.collect()\n"
        "assert judge(source, settings, configs.rulebook(settings), 1).findings\nprint(gc.collect())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", script]
    left = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert int(left) < 20


def test_libcst_is_as_it_was_but_for_its_cost() -> None:
    """Imported for the analysis and imported plainly, its nodes print, compare, copy and change alike."""
    script = (
        "import copy, pickle, sys\n"
        "import libcst as cst\n"
        "tree = cst.parse_module(open(sys.argv[1]).read())\n"
        "same = [copy.deepcopy(tree), tree.deep_clone(), pickle.loads(pickle.dumps(tree))]\n"
        "assert all(one.deep_equals(tree) and one != tree and one.code == tree.code for one in same)\n"
        "assert len({tree, *same, tree}) == 4 and tree == tree and tree != 1\n"
        "assert tree.with_changes(header=()).header == ()\n"
        "try:\n    cst.Name('')\n"
        "except cst.CSTValidationError as error:\n    print(error)\n"
        "kinds = [getattr(cst, name) for name in sorted(cst.__all__)]\n"
        "nodes = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, cst.CSTNode)]\n"
        "some = [tree, tree.body[0], tree.body[-1], cst.Name('x'), cst.Add()]\n"
        "print([[kind.__name__ for kind in nodes if isinstance(one, kind)] for one in some])\n"
        "print(tree)\n"
    )
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin"}
    lean = "from dataclasses import dataclass\nfrom tsdyn_lint import leancst\nleancst.load()\n"
    lean += "import dataclasses\nassert dataclasses.dataclass is dataclass\n"
    plain, ours = (
        subprocess.run(
            [sys.executable, "-c", before + script, REPOSITORY / "tsdyn_lint/parse.py"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for before in ("", lean)
    )
    assert len(plain) > 100_000
    assert plain == ours
