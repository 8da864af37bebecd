"""Which files are linted."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Project


def listed(project: Project, *args: str) -> list[str]:
    out = project.run("--show-files", *args).stdout
    return [str(Path(line).relative_to(project.folder)) for line in out.splitlines()]


@pytest.fixture
def tree(project: Project) -> Project:
    for name in ("a.py", "b.ipynb", "c.txt", "pkg/d.py", "build/e.py", ".venv/lib/f.py", "gen/g.py", "script"):
        project.write(name, "x = 1\n")
    return project


def test_python_and_notebooks_but_for_the_usual_folders(tree: Project) -> None:
    assert listed(tree) == ["a.py", "b.ipynb", "gen/g.py", "pkg/d.py"]


def test_a_named_file_is_linted_whatever_it_is_called(tree: Project) -> None:
    assert listed(tree, "script", "build/e.py", "a.py", "a.py", "pkg", "pkg/d.py") == [
        "script",
        "build/e.py",
        "a.py",
        "pkg/d.py",
    ]


def test_force_exclude_holds_for_named_files(tree: Project) -> None:
    assert listed(tree, "--force-exclude", "build/e.py", "a.py", ".venv") == ["a.py"]


def test_exclude_and_extend_exclude(tree: Project) -> None:
    assert listed(tree, "--exclude", "gen", "--exclude", "*.ipynb,.venv") == ["a.py", "build/e.py", "pkg/d.py"]
    assert listed(tree, "--extend-exclude", "pkg/*.py") == ["a.py", "b.ipynb", "gen/g.py"]
    tree.write("tsdyn-lint.toml", 'extend-exclude = ["gen/"]\n')
    assert listed(tree) == ["a.py", "b.ipynb", "pkg/d.py"]


def test_gitignore_with_nesting_and_take_backs(tree: Project) -> None:
    tree.write(".gitignore", "gen/\n*.ipynb\n/pkg/x_*.py\n")
    tree.write("pkg/.gitignore", "d.py\n!x_keep.py\n")
    tree.write("pkg/x_keep.py", "")
    tree.write("pkg/x_gone.py", "")
    assert listed(tree) == ["a.py", "pkg/x_keep.py"]
    assert listed(tree, "gen/g.py") == ["gen/g.py"]
    assert "gen/g.py" in listed(tree, "--no-respect-gitignore")


def test_gitignore_above_the_named_folder_counts_inside_a_repository(tree: Project) -> None:
    tree.write(".gitignore", "d.py\n")
    assert listed(tree, "pkg") == ["pkg/d.py"]
    (tree.folder / ".git").mkdir()
    assert listed(tree, "pkg") == []


def test_a_linked_folder_is_not_followed(tree: Project) -> None:
    (tree.folder / "loop").symlink_to(tree.folder)
    assert listed(tree) == ["a.py", "b.ipynb", "gen/g.py", "pkg/d.py"]


def test_links_that_lead_to_each_other_are_passed_over(project: Project) -> None:
    project.write("ok.py", "import torch\n")
    (project.folder / "a.py").symlink_to(project.folder / "b.py")
    (project.folder / "b.py").symlink_to(project.folder / "a.py")
    result = project.run(".")
    assert result.exit_code == 0, result.stderr
    assert "1 file" in result.stdout
