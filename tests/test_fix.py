"""Fixes: what is applied, shown, written, and what is left alone; and baselines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Project

from tsdyn_lint.findings import Edit, Finding, Fix, Location, Severity
from tsdyn_lint.fix import apply_fixes
from tsdyn_lint.source import make_source


def test_safe_fixes_are_applied_and_the_rest_reported(project: Project, prints: None) -> None:
    path = project.write("model.py", "import torch\nprint(1)\nprint(2)  # unsafe\nprint(3)  # shown\n")
    path.chmod(0o755)
    result = project.run("--fix")
    assert project.read("model.py") == "import torch\npass\nprint(2)  # unsafe\nprint(3)  # shown\n"
    assert "Found 2 findings in 1 of 1 file.\nFixed 1 finding in 1 file.\n" in result.stdout
    assert "[*] 0 can be fixed with --fix (1 more with --unsafe-fixes)." in result.stdout
    assert result.exit_code == 1
    assert path.stat().st_mode & 0o777 == 0o755
    assert os.listdir(project.folder) == ["model.py"]


def test_unsafe_fixes(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint(2)  # unsafe\n")
    assert project.run("--fix", "--unsafe-fixes").exit_code == 0
    assert project.read("model.py") == "import torch\npass  # unsafe\n"


def test_exit_non_zero_on_fix(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint(2)\n")
    assert project.run("--fix", "--exit-non-zero-on-fix").exit_code == 1
    assert project.run("--fix", "--exit-non-zero-on-fix").exit_code == 0


def test_diff_shows_and_changes_nothing(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint(1)\n")
    result = project.run("--diff")
    assert result.stdout == "--- model.py\n+++ model.py\n@@ -1,2 +1,2 @@\n import torch\n-print(1)\n+pass\n"
    assert result.exit_code == 1
    assert project.read("model.py") == "import torch\nprint(1)\n"
    assert project.run("--diff", "--ignore", "TSD301").exit_code == 0


def test_a_file_that_would_no_longer_parse_is_left_as_it_was(project: Project, prints: None) -> None:
    text = "import torch\nprint(1)  # broken\n"
    project.write("model.py", text)
    project.write("other.py", "import torch\nprint(1)\n")
    assert project.run("--fix").exit_code == 1
    assert project.read("model.py") == text
    assert project.read("other.py") == "import torch\npass\n"


def test_standard_input_is_fixed_to_standard_output(project: Project, prints: None) -> None:
    result = project.run("-", "--fix", stdin="import torch\nprint(1)\nprint(2)  # shown\n")
    assert result.stdout == "import torch\npass\nprint(2)  # shown\n"
    assert "TSD301" in result.stderr


def test_encoding_and_line_ends_are_kept(project: Project, prints: None) -> None:
    project.write("model.py", b"# coding: latin-1\r\nimport torch\r\nprint('\xe9')\r\nx = '\xe9'\r\n")
    project.run("--fix")
    expected = b"# coding: latin-1\r\nimport torch\r\npass\r\nx = '\xe9'\r\n"
    assert (project.folder / "model.py").read_bytes() == expected


def test_a_link_stays_a_link(project: Project, prints: None) -> None:
    target = project.write("real/model.txt", "import torch\nprint(1)\n")
    link = project.folder / "model.py"
    link.symlink_to(target)
    project.run("--fix", "model.py")
    assert link.is_symlink()
    assert target.read_text() == "import torch\npass\n"


def test_edits_that_overlap_wait_for_the_next_round() -> None:
    source = make_source(__import__("pathlib").Path("/p/a.py"), b"one two three\nfour\n")

    def finding(start: tuple[int, int], end: tuple[int, int], content: str) -> Finding:
        edit = Edit(content, Location(*start), Location(*end))
        return Finding(
            *("X001", "x", "x", Severity.ERROR, "/p/a.py", edit.start, edit.end), fix=Fix("safe", "x", (edit,))
        )

    first, overlapping = finding((1, 5), (1, 8), "2"), finding((1, 7), (1, 10), "!")
    last, at_the_end = finding((2, 1), (2, 5), "4"), finding((3, 1), (3, 1), "five\n")
    fixed = apply_fixes(source, [first, overlapping, last, at_the_end], unsafe=False)
    assert (fixed.text, fixed.count) == ("one 2 three\n4\nfive\n", 3)


def test_fix_in_the_configuration(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", "fix = true\n")
    project.write("model.py", "import torch\nprint(1)\n")
    assert project.run().exit_code == 0
    assert project.read("model.py") == "import torch\npass\n"


def test_a_baseline_holds_known_findings_back_wherever_they_move(project: Project, prints: None) -> None:
    project.write("pkg/model.py", "import torch\nprint(1)\n")
    assert project.run("--baseline", "known.json", "--update-baseline").exit_code == 0
    result = project.run("--baseline", "known.json")
    assert result.exit_code == 0
    assert "The baseline holds back 1 finding." in result.stdout
    project.write("pkg/model.py", "import torch\n\n\n  \nprint(1)\nprint(1)\nprint(2)\n")
    assert project.rows("--baseline", "known.json") == [("TSD301", 6), ("TSD301", 7)]
    assert project.run("--baseline", "known.json").exit_code == 1


def test_a_baseline_is_an_entry_a_line_in_order(project: Project, prints: None) -> None:
    project.write("b.py", "import torch\nprint(1)\nprint(1)\n")
    project.write("a.py", "import torch\nprint(1)\n")
    project.write("tsdyn-lint.toml", 'baseline = "known.json"\n')
    project.run("--update-baseline")
    lines = project.read("known.json").splitlines()
    assert len(lines) == 4
    assert json.loads(lines[1].rstrip(","))["path"] == "a.py"
    assert json.loads(lines[2])["count"] == 2
    assert project.rows() == []


def test_a_baseline_that_is_missing_or_broken_is_wrong_usage(project: Project) -> None:
    assert "--update-baseline writes it" in project.run("--baseline", "gone.json").stderr
    project.write("known.json", "[]")
    assert project.run("--baseline", "known.json").exit_code == 2
    assert project.run("--update-baseline").exit_code == 2


def test_a_file_that_cannot_be_written_costs_no_report(
    project: Project, prints: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tsdyn_lint.fix.write_atomically", refuse)
    project.write("model.py", "import torch\nprint(1)\n")
    result = project.run("--fix")
    assert result.exit_code == 2
    assert "model.py: not fixed: Permission denied" in result.stderr
    assert "Checked dynamo" in result.stdout
