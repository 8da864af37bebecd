"""The package as users get it: from a wheel, an sdist and an editable install, and as a pre-commit hook."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("package")]  # they share what is built


def sh(*command: str | Path, cwd: Path, ok: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("GIT_")
    }
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 or not ok, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the working tree's files, so that building leaves nothing behind here."""
    folder = tmp_path_factory.mktemp("checkout") / "tsdyn-lint"
    listed = sh("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=REPOSITORY).stdout
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((REPOSITORY / name).read_bytes())
    for command in (("init", "-q"), ("add", "-A"), (*_IDENTITY, "commit", "-qm", "all")):
        sh("git", *command, cwd=folder)
    return folder


_IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.fixture(scope="module")
def built(checkout: Path) -> Path:
    sh(sys.executable, "-m", "build", "--no-isolation", cwd=checkout)
    return checkout / "dist"


def installed(tmp_path: Path, *what: str | Path) -> Path:
    """The command in an environment of its own, which sees this one's dependencies but not its tsdyn-lint."""
    venv.create(tmp_path / "venv", with_pip=False)
    folder = next((tmp_path / "venv").glob("lib/python*/site-packages"), tmp_path / "venv/Lib/site-packages")
    (folder / "outer.pth").write_text(str(Path(pytest.__file__).parent.parent))
    python = next(iter([*(tmp_path / "venv").glob("bin/python"), *(tmp_path / "venv").glob("Scripts/python.exe")]))
    options = ("--no-deps", "--no-build-isolation", "--no-index")
    sh(sys.executable, "-m", "pip", "--python", python, "install", "-q", *options, *what, cwd=tmp_path)
    return python.parent / "tsdyn-lint"


def finds_its_rules(command: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = sh(command, "--isolated", "--no-cache", "-o", "concise", "bad.py", cwd=tmp_path, ok=False)
    assert (done.returncode, done.stdout[:18]) == (1, "bad.py:1:7: TSD000"), done.stderr
    assert "## Why it breaks" in sh(command, "rule", "TSD201", cwd=tmp_path).stdout
    where = sh(command.parent / "python", "-c", "import tsdyn_lint; print(tsdyn_lint.__file__)", cwd=tmp_path).stdout
    assert str(REPOSITORY) not in where


def test_wheel(built: Path, tmp_path: Path) -> None:
    wheel = next(built.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "tsdyn_lint/_rules/TSD201-data-dependent-branch.md" in names
    assert "tsdyn_lint/_rules/torch-2.13.json" in names
    assert {"tsdyn_lint/py.typed", "tsdyn_lint/report/page/style.css"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "fixtures", "rules"))]
    finds_its_rules(installed(tmp_path, wheel), tmp_path)


def test_sdist(built: Path, tmp_path: Path) -> None:
    sdist = next(built.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "rules/TSD000-syntax-error.md", "tests/test_rules.py", "pyproject.toml"} <= names
    finds_its_rules(installed(tmp_path, sdist), tmp_path)


def test_editable(checkout: Path, tmp_path: Path) -> None:
    finds_its_rules(installed(tmp_path, "-e", checkout), tmp_path)


def test_pre_commit_runs_the_hooks(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sh("git", "init", "-q", cwd=scratch)
    revision = sh("git", "rev-parse", "HEAD", cwd=checkout).stdout.strip()
    (scratch / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {checkout}\n  rev: {revision}\n  hooks:\n  - id: tsdyn-lint\n  - id: tsdyn-lint-fix\n"
    )
    (scratch / "tsdyn-lint.toml").write_text('extend-exclude = ["vendor"]\n')
    (scratch / "vendor").mkdir()
    (scratch / "vendor/bad.py").write_text("import torch\ndef f(:\n")
    (scratch / "good.py").write_text("x = 1  # tsdyn: ignore[TSD000]\n")
    sh("git", "add", "-A", cwd=scratch)
    hook = (sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose")
    first = sh(*hook, "tsdyn-lint", cwd=scratch, ok=False)
    assert first.returncode == 1
    assert "TSD001" in first.stdout and "TSD000 " not in first.stdout
    second = sh(*hook, "tsdyn-lint-fix", cwd=scratch, ok=False)
    assert second.returncode == 1
    assert (scratch / "good.py").read_text() == "x = 1\n"
    sh("git", "add", "-A", cwd=scratch)
    assert sh(*hook, cwd=scratch).returncode == 0
    (scratch / "good.py").unlink()
    sh("git", "add", "-A", cwd=scratch)
    assert sh(sys.executable, "-m", "pre_commit", "run", cwd=scratch).returncode == 0
