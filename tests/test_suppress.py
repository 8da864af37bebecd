"""Comments that silence: which lines they speak for, and which are for nothing."""

from __future__ import annotations

import json
import os

import pytest
from conftest import Project

from tsdyn_lint import imports

OTHER = "# tsdyn: ignore[TSD302]"
IGNORE = "# tsdyn: ignore[TSD301]"


def rows(project: Project, text: str) -> list[tuple[str, int]]:
    project.write("model.py", "import torch\n" + text)
    return sorted(project.rows())


@pytest.mark.parametrize(
    "text",
    [
        f"print(1)  {IGNORE}\n",
        "print(1)  # tsdyn: ignore[print-call]\n",
        "print(1)  # tsdyn: ignore[TSD3]\n",
        "print(1)  # tsdyn: ignore[TSD301] -- shown once, on purpose\n",
        "print(1)  # tsdyn:ignore[ TSD301 ]  # type: ignore\n",
        "print(1)  # type: ignore  # noqa: TSD301\n",
        "print(1)  # noqa\n",
        "print(1)  # NOQA: E501, TSD301\n",
        "print(1)  # noqa:TSD301,E501\n",
        f"{IGNORE}\nprint(1)\n",
        f"{IGNORE}\n\n# and a word\nprint(1)\n",
        f"x = [\n    print(1),\n    2,\n]  {IGNORE}\n",
        f"x = [  {IGNORE}\n    2,\n    print(1),\n]\n",
        f"x = [\n    {IGNORE}\n    2,\n    print(1),\n]\n",
        f"def f():  {IGNORE}\n    if 1:\n        print(1)\n",
        f"def f(\n    x,\n    y,  {IGNORE}\n):\n    print(1)\n",
        f"class A:  {IGNORE}\n    def f(self):\n        print(1)\n",
        f"{IGNORE}\n@torch.compile\ndef f():\n    print(1)\n",
        f"@torch.compile  {IGNORE}\ndef f():\n    print(1)\n",
        f"if print(1):  {IGNORE}\n    pass\n",
        f"with print(1) as x:  {IGNORE}\n    pass\n",
        f"def f():\n    {IGNORE}\n    print(1)\n    return 2\n",
        "# tsdyn: file-ignore[TSD301]\nprint(1)\n\nprint(2)\n",
        "def f():\n    # tsdyn: file-ignore[print-call]\n    pass\nprint(1)\n",
    ],
)
def test_silenced(project: Project, prints: None, text: str) -> None:
    assert rows(project, text) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"print(1)  {OTHER}\n", [("TSD001", 2), ("TSD301", 2)]),
        (f"print(1)  {OTHER}  {IGNORE}\n", [("TSD001", 2)]),
        (f"print(1)  {IGNORE}  {OTHER}\n", [("TSD001", 2)]),
        ("print(1)  # noqa: E501\n", [("TSD301", 2)]),
        (f"if 1:  {IGNORE}\n    print(1)\n", [("TSD001", 2), ("TSD301", 3)]),
        (f"def f():\n    {IGNORE}\n    x = 1\n    print(1)\n", [("TSD001", 3), ("TSD301", 5)]),
        (f"x = '{IGNORE}'; print(1)\n", [("TSD301", 2)]),
        (f'"""\n{IGNORE}\n"""\nprint(1)\n', [("TSD301", 5)]),
        (f"{IGNORE}\nx = 1\nprint(1)\n", [("TSD001", 2), ("TSD301", 4)]),
        (f"try:\n    pass\nexcept A:  {IGNORE}\n    print(1)\n", [("TSD001", 4), ("TSD301", 5)]),
        ("# tsdyn: file-ignore\nprint(1)\n", [("TSD001", 2), ("TSD301", 3)]),
        ("print(1)  # tsdyn: ignore\n", [("TSD001", 2), ("TSD301", 2)]),
        ("print(1)  # tsdyn: ignore[]\n", [("TSD001", 2), ("TSD301", 2)]),
    ],
)
def test_not_silenced(project: Project, prints: None, text: str, left: list[tuple[str, int]]) -> None:
    assert rows(project, text) == left


@pytest.mark.parametrize(
    ("text", "message", "fixed"),
    [
        (
            f"x = 1  {IGNORE}\n",
            "suppression of `TSD301` suppresses nothing",
            "x = 1\n",
        ),
        (
            "print(1)  # tsdyn: ignore[TSD301, TSD302, TSD303]\n",
            "suppression of `TSD302`, `TSD303` suppresses nothing",
            "print(1)  # tsdyn: ignore[TSD301]\n",
        ),
        (
            "print(1)  # noqa: E501, TSD302, TSD301\n",
            "suppression of `TSD302` suppresses nothing",
            "print(1)  # noqa: E501, TSD301\n",
        ),
        (f"x = 1  {IGNORE}  # type: ignore\n", "suppression of `TSD301` suppresses nothing", "x = 1  # type: ignore\n"),
        (f"x = 1  # type: ignore  {IGNORE}\n", "suppression of `TSD301` suppresses nothing", "x = 1  # type: ignore\n"),
        (f"{IGNORE}\nx = 1\n", "suppression of `TSD301` suppresses nothing", "x = 1\n"),
        (
            "x = 1  # tsdyn: ignore[prnt-call]\n",
            "suppression of `prnt-call` suppresses nothing: no rule is called `prnt-call`; did you mean `print-call`?",
            "x = 1\n",
        ),
        ("# tsdyn: file-ignore[TSD301]\nx = 1\n", "suppression of `TSD301` suppresses nothing", "x = 1\n"),
    ],
)
def test_unused_is_reported_and_removed(project: Project, prints: None, text: str, message: str, fixed: str) -> None:
    project.write("model.py", "import torch\n" + text)
    assert [(finding["code"], finding["message"]) for finding in project.json()] == [("TSD001", message)]
    assert project.run("--fix").exit_code == 0
    assert project.read("model.py") == "import torch\n" + fixed


@pytest.mark.parametrize(
    ("codes", "message", "fixed"),
    [
        ("TSD302, tsd301", "no rule is called `tsd301`; did you mean `TSD301`?", "  # tsdyn: ignore[TSD301]"),
        ("TSD30l", "no rule is called `TSD30l`; did you mean `TSD301`?", "  # tsdyn: ignore[TSD301]"),
        (
            "prnt-call, tsd301",
            "no rule is called `prnt-call`, `tsd301`; did you",
            "  # tsdyn: ignore[print-call, TSD301]",
        ),
        ("tsd301, TSD30l", "no rule is called `tsd301`, `TSD30l`; did you mean", "  # tsdyn: ignore[TSD301]"),
        ("nonsense", "suppression of `nonsense` suppresses nothing: no rule is called `nonsense`", ""),
    ],
)
def test_a_misspelt_code_is_corrected_to_one_of_its_line(
    project: Project, prints: None, codes: str, message: str, fixed: str
) -> None:
    project.write("model.py", f"import torch\nprint('shown')  # tsdyn: ignore[{codes}]\n")
    assert message in project.run().stdout
    project.run("--fix")
    assert project.read("model.py") == f"import torch\nprint('shown'){fixed}\n"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("print(1)  # tsdyn: ignore", "`# tsdyn: ignore` names no rule: write `ignore[TSD301]`"),
        ("# tsdyn: file-ignore\nprint(1)", "names no rule: write `file-ignore[TSD301]`"),
        ("print(1)  # tsdyn: ignore as no file-ignore does", "names no rule: write `ignore[TSD301]`"),
        ("# tsdyn: ignore-file[TSD301]\nprint(1)", "names no rule: write `file-ignore[TSD301]`"),
        ("x = 1  # tsdyn: ignore[]", "`# tsdyn: ignore[]` names no rule: remove it"),
        ("print(1)  # tsdyn: ignore[TSD301", "names no rule: close the bracket"),
    ],
)
def test_a_comment_without_codes_is_told_what_to_write(project: Project, prints: None, line: str, advice: str) -> None:
    project.write("model.py", f"import torch\n{line}\n")
    assert advice in project.run().stdout


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("x = 1  # tsdyn: ignore[TSD301] see issue #123 for why", "x = 1"),
        ("x = 1  # tsdyn: ignore[TSD301] -- http://a.b/#part", "x = 1"),
        ("x = 1  # tsdyn: ignore[TSD301] why  # pylint: disable=foo", "x = 1  # pylint: disable=foo"),
        (
            "if 1:\n    # tsdyn: ignore[TSD301]  # pylint: disable=foo\n    x = 1",
            "if 1:\n    # pylint: disable=foo\n    x = 1",
        ),
        ("x = 1  # noqa: tsd301", "x = 1"),
        ("x = 1  # tsdyn: ignore[TSD301]  # pragma no cover", "x = 1  # pragma no cover"),
        ("x = 1  # tsdyn: ignore[TSD301]# noqa: E501", "x = 1  # noqa: E501"),
        ("x = 1  # tsdyn: ignore[TSD301] a  # tsdyn: ignore[TSD302]", "x = 1"),
        ("x = 1  ## tsdyn: ignore[TSD301]", "x = 1"),
    ],
)
def test_what_is_removed_with_a_suppression(project: Project, prints: None, line: str, fixed: str) -> None:
    project.write("model.py", f"import torch\n{line}\n")
    assert project.run("--fix").exit_code == 0
    assert project.read("model.py") == f"import torch\n{fixed}\n"


def test_a_notebook_with_lines_like_our_marks_keeps_its_cells(project: Project, prints: None) -> None:
    cells = ["import torch", "# %% cell 1\npass  # magic: y\nx = 1  # tsdyn: ignore[TSD301]\n%time x", "y = 2"]
    notebook = {"cells": [{"cell_type": "code", "source": text} for text in cells]}
    project.write("note.ipynb", json.dumps(notebook))
    assert project.run("--fix").exit_code == 0
    cells[1] = cells[1].replace("  # tsdyn: ignore[TSD301]", "")
    assert [cell["source"] for cell in json.loads(project.read("note.ipynb"))["cells"]] == cells


def test_only_rules_that_ran_are_judged(project: Project, prints: None) -> None:
    text = "x = 1  # tsdyn: ignore[TSD301]\n"
    assert rows(project, text) == [("TSD001", 2)]
    assert project.rows("--ignore", "TSD301") == []
    assert project.rows("--engine", "trace") == []
    assert project.rows("--per-file-ignores", "model.py:print-call") == []


def test_unused_where_nothing_else_is_to_be_said(project: Project, prints: None) -> None:
    project.write("plain.py", f"x = 1  {IGNORE}\n")
    assert project.rows() == [("TSD001", 1)]


def test_a_silenced_unsure_finding_counts_as_a_use(project: Project, prints: None) -> None:
    assert rows(project, f"print('unsure')  {IGNORE}\n") == []


def test_a_file_that_does_not_parse_is_not_asked_for_its_comments(project: Project) -> None:
    assert rows(project, f"def f(:  {IGNORE}\n") == [("TSD000", 2)]


HELPER = """\
import torch


def gate(flags, x):
    if flags["on"].sum() > 0:  # tsdyn: ignore[TSD201]
        return x * 2
    return x  # tsdyn: ignore[TSD202]
"""
MODEL = """\
import torch
from pkg import gate


class Net(torch.nn.Module):
    def forward(self, x):
        return gate({"on": x}, x)


net = torch.compile(Net())
"""


@pytest.fixture
def package(project: Project) -> Project:
    """A helper whose one suppression serves a model beside it, by way of the package; the other one serves nobody."""
    project.write("pyproject.toml", '[project]\nname = "pkg"\n')
    project.write("pkg/__init__.py", "from .helper import gate\n")
    project.write("pkg/helper.py", HELPER)
    project.write("pkg/model.py", MODEL)
    project.write("other.py", "import torch\nhelper = 1\n")
    return project


def test_a_suppression_may_serve_files_that_are_not_linted(package: Project) -> None:
    assert package.rows() == [("TSD001", 7)] == package.rows("pkg")
    assert package.rows("pkg/helper.py") == [] == package.rows("pkg/helper.py", "other.py")
    assert package.rows("pkg/helper.py", "pkg/model.py") == [("TSD001", 7)]
    package.run("--fix", "pkg/helper.py")
    assert package.read("pkg/helper.py") == HELPER
    package.run("--fix")
    assert package.read("pkg/helper.py") == HELPER.replace("  # tsdyn: ignore[TSD202]", "")


def test_the_cache_knows_whether_others_are_served(package: Project) -> None:
    package.write("pkg/model.py", MODEL.replace("import gate", "import nothing").replace("pkg", "other"))

    def codes() -> list[str]:
        return [line.split()[1] for line in package.run("check", "-o", "concise", "pkg/helper.py").stdout.splitlines()]

    assert codes().count("TSD001") == 2 == codes().count("TSD001")
    package.write("pkg/model.py", MODEL)
    assert "TSD001" not in codes()


def test_what_files_import_is_read_once(package: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    names = imports.imported_names
    monkeypatch.setattr(imports, "imported_names", lambda code: [read.append(code), *names(code)][1:])
    for path in package.folder.rglob("*.py"):
        os.utime(path, ns=(1, 1))
    package.run("check", "pkg/helper.py")
    assert len(read) == 4
    read.clear()
    package.write("pkg/helper.py", HELPER + "\n")
    package.run("check", "pkg/helper.py")
    assert read == [package.read("pkg/helper.py").encode()]


def test_a_suppression_may_serve_an_engine_that_was_not_asked_for(package: Project) -> None:
    assert package.rows("--engine", "dynamo") == [("TSD001", 7)]
    assert package.rows("--engine", "recompile") == []
    assert package.rows("--engine", "export") == []
    package.write("tsdyn-lint.toml", 'engine = "export"\n')
    assert package.rows() == [("TSD001", 7)]
    assert package.rows("--engine", "dynamo") == []


def test_what_a_fixed_file_is_told_from_others_stays(package: Project) -> None:
    package.write("pkg/helper.py", HELPER.replace("  # tsdyn: ignore[TSD201]", ""))
    assert package.rows("--fix") == [("TSD201", 5)]
    assert "TSD202" not in package.read("pkg/helper.py")


def test_a_prefix_stands_for_rules_of_engines_that_were_not_asked_for(package: Project) -> None:
    package.write("pkg/helper.py", HELPER.replace("TSD202", "TSD2"))
    assert package.rows("--engine", "dynamo") == [("TSD001", 7)]
    assert package.rows("--engine", "export") == []
    assert package.rows("--engine", "dynamo", "--ignore", "TSD204") == []


def test_no_suppression_is_judged_where_a_file_does_not_parse(package: Project) -> None:
    package.write("pkg/model.py", MODEL + "\ndef f(:\n")
    assert [code for code, _ in package.rows()] == ["TSD000"]
    assert package.rows("pkg/helper.py") == []
    package.write("pkg/model.py", MODEL)
    package.write("other.py", "def f(:\n")
    assert sorted(package.rows()) == [("TSD000", 1), ("TSD001", 7)]


def test_files_under_other_settings_are_not_judged_together(package: Project) -> None:
    package.write("pkg/tsdyn-lint.toml", 'select = ["ALL"]\n')
    package.write("main.py", MODEL)
    package.write("pkg/model.py", "")
    assert "TSD001" not in [code for code, _ in package.rows()]


@pytest.mark.parametrize("aside", ["tests/pkg/test_helper.py", "data/pkg/notes.py"])
def test_a_folder_of_the_same_name_does_not_hide_an_importer(package: Project, aside: str) -> None:
    for name in ("__init__.py", "helper.py"):
        package.write(f"src/pkg/{name}", package.read(f"pkg/{name}"))
        (package.folder / "pkg" / name).unlink()
    (package.folder / "pkg/model.py").unlink()
    package.write(aside, "import torch\n")
    package.write(f"{aside.partition('/')[0]}/test_main.py", MODEL)
    assert package.rows("src") == []


def test_each_project_of_a_run_is_looked_at(package: Project) -> None:
    package.write("a/pyproject.toml", "")
    package.write("a/a.py", "x = 1\n")
    (package.folder / "pyproject.toml").unlink()
    package.write("setup.py", "")
    assert package.rows("--isolated", "a/a.py", "pkg/helper.py") == []


def test_a_file_is_the_same_by_other_paths(package: Project) -> None:
    (package.folder / "link").symlink_to(package.folder / "pkg")
    assert package.rows("link/helper.py") == []
    assert package.json("--stdin-filename", "pkg/../pkg/helper.py", "-", stdin=HELPER) == []


def test_an_importer_with_an_open_bracket_still_imports(package: Project) -> None:
    package.write("pkg/model.py", "import torch\nfrom pkg.helper import (\n    gate,\n")
    assert package.rows("pkg/helper.py") == []
