"""The cache: the same findings as without it, less work, and no way to harm a run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, Project

from tsdyn_lint.cache import Cache, FileRecord, Record, decode, encode, stamp
from tsdyn_lint.findings import Confidence, Edit, Engine, Finding, Fix, Location, Related, Severity
from tsdyn_lint.judge import combined
from tsdyn_lint.outline import dependents, outline, summary_of
from tsdyn_lint.rulebook import load_rules

HELPER = "import torch\n\n\ndef mean(x):\n    print(x)\n    return x\n"
MODEL = """import torch
from torch import nn

from pkg.helper import mean


class Gate(nn.Module):
    def forward(self, x):
        return mean(x)
"""
OTHER = MODEL.replace("Gate", "Other").replace("mean(x)", "x")
OPTIONS = ("--isolated", "--engine", "dynamo,trace", "--torch-version", "2.13", "-o", "json")


@pytest.fixture
def package(project: Project, judged: list[set[str]]) -> Project:
    project.write("pkg/__init__.py", "")
    project.write("pkg/helper.py", HELPER)
    project.write("pkg/model.py", MODEL)
    project.write("pkg/other.py", OTHER)
    for number in range(4):
        project.write(f"pkg/filler{number}.py", f"import torch\n\n\ndef forward(x):\n    return x.sum() + {number}\n")
    return project


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names of the files of each analysis, in order."""
    import tsdyn_lint.pipeline as pipeline

    real = pipeline.analyse
    calls: list[set[str]] = []

    def spy(files: Sequence[object], *rest: object) -> object:
        calls.append({file.path.name for file in files})  # type: ignore[attr-defined]
        return real(files, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "analyse", spy)
    return calls


def check(project: Project) -> list[tuple[str, str, int]]:
    """Lints with the cache; asserts that it says what a run without it says.

    Only which of several entry points a finding names is left open.
    """
    cached = json.loads(project.run("check", *OPTIONS).stdout)
    fresh = json.loads(project.run("check", "--no-cache", *OPTIONS).stdout)
    for finding in (*cached, *fresh):
        del finding["entry"], finding["related"]
    assert cached == fresh
    return [(Path(finding["filename"]).name, finding["code"], finding["location"]["row"]) for finding in cached]


def test_nothing_changed_nothing_judged(package: Project, judged: list[set[str]]) -> None:
    found = check(package)
    assert ("helper.py", "TSD301", 5) in found
    judged.clear()
    package.run("check", *OPTIONS)
    assert judged == []


def test_what_another_state_of_the_tool_read_in_a_file_is_read_again(package: Project) -> None:
    package.write("pkg/helper.py", HELPER.replace("print(x)", "torch.zeros(int(x.sum()))"))
    package.write("pkg/switch.py", "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = True\n")
    package.write("pyproject.toml", "")
    os.utime(package.folder / "pkg/switch.py", ns=(1, 1))
    check(package)
    cache = Cache(package.folder / ".tsdyn_cache")
    kept = cache.read("usage")
    files = {path: [*row[:2], ["torch.compile"]] for path, row in kept["files"].items()}
    for other in (files, {"reader": [1, 1], "files": files}):
        cache.write("usage", other)
        check(package)


def test_an_edit_judges_the_file_and_what_reads_it(package: Project, judged: list[set[str]]) -> None:
    check(package)
    judged.clear()
    package.write("pkg/filler1.py", OTHER.replace("return x", "print(x)"))
    assert ("filler1.py", "TSD301", 9) in check(package)
    assert judged[0] == {"filler1.py"}
    judged.clear()
    package.write("pkg/helper.py", HELPER.replace("print(x)", "print(x, 1)"))
    check(package)
    assert judged[0] == {"helper.py", "model.py"}


def test_a_caller_that_no_longer_calls_takes_its_finding_away(package: Project) -> None:
    assert ("helper.py", "TSD301", 5) in check(package)
    package.write("pkg/model.py", MODEL.replace("mean(x)", "x"))
    assert ("helper.py", "TSD301", 5) not in check(package)
    package.write("pkg/other.py", OTHER.replace("return x", "return mean(x)"))
    assert ("helper.py", "TSD301", 5) in check(package)


def test_a_finding_with_two_callers_outlives_one(package: Project) -> None:
    package.write("pkg/other.py", OTHER.replace("return x", "return mean(x)"))
    assert ("helper.py", "TSD301", 5) in check(package)
    package.write("pkg/model.py", MODEL.replace("mean(x)", "x"))
    assert ("helper.py", "TSD301", 5) in check(package)


def test_files_that_come_and_go(package: Project) -> None:
    check(package)
    package.write("pkg/new.py", HELPER.replace("def mean(x)", "def forward(x: torch.Tensor)"))
    check(package)
    (package.folder / "pkg/helper.py").unlink()
    assert not [name for name, _, _ in check(package) if name == "helper.py"]
    package.write("pkg/helper.py", HELPER)
    assert ("helper.py", "TSD301", 5) in check(package)


def test_a_module_that_was_missing_appears(package: Project, judged: list[set[str]]) -> None:
    package.write("lone/model.py", "from tools.shared import mean\n" + MODEL.replace("from pkg.helper import mean", ""))
    first = package.run("check", *OPTIONS, "lone/model.py").stdout
    package.write("lone/tools/shared.py", HELPER.replace("print(x)", "if x.sum() > 0:\n        x = x + 1"))
    package.write("lone/tools/__init__.py", "")
    judged.clear()
    second = package.run("check", *OPTIONS, "lone/model.py").stdout
    assert judged == [{"model.py"}]
    assert second == package.run("check", "--no-cache", *OPTIONS, "lone/model.py").stdout
    assert json.loads(first) == []


def test_a_dependency_outside_of_what_is_linted(package: Project) -> None:
    command = ("check", *OPTIONS, "pkg/model.py")
    package.run(*command)
    package.write("pkg/helper.py", HELPER.replace("return x", "return x if x.sum() > 0 else -x"))
    assert package.run(*command).stdout == package.run(*command, "--no-cache").stdout


def test_suppressions_and_settings_are_part_of_it(package: Project) -> None:
    check(package)
    package.write("pkg/helper.py", HELPER.replace("print(x)", "print(x)  # tsdyn: ignore[TSD301]"))
    assert check(package) == []
    out = package.run("check", *OPTIONS, "--ignore", "TSD301").stdout
    assert out == package.run("check", "--no-cache", *OPTIONS, "--ignore", "TSD301").stdout


def test_same_size_and_time_but_other_bytes(package: Project) -> None:
    check(package)
    path = package.folder / "pkg/helper.py"
    state = path.stat()
    path.write_text(HELPER.replace("print", "prynt"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert ("helper.py", "TSD301", 5) not in check(package)


def test_an_edit_while_files_are_judged(package: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    import tsdyn_lint.pipeline as pipeline

    real = pipeline.analyse

    def slow(*given: object) -> object:
        package.write("pkg/helper.py", HELPER.replace("print(x)", "x = x * 2"))
        return real(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as during:
        during.setattr(pipeline, "analyse", slow)
        package.run("check", *OPTIONS)
    assert check(package) == []


def test_many_edits_in_a_row(package: Project) -> None:
    """Whatever is edited in whatever order, the cache says what a fresh run says."""
    dice = random.Random(4)
    bodies = ["x", "mean(x)", "x if x.sum() > 0 else -x", "print(x)", "x.item()", "mean(mean(x))"]
    for _ in range(25):
        name = dice.choice(["model", "other", "helper", "filler0", "extra"])
        body = dice.choice(bodies)
        if name == "helper":
            text = HELPER.replace("return x", f"return {body.replace('mean', 'abs')}")
        elif name == "extra" and dice.random() < 0.5:
            (package.folder / "pkg/extra.py").unlink(missing_ok=True)
            continue
        else:
            base = dice.choice(["nn.Module", "Gate" if name == "other" else "nn.Module"])
            text = MODEL.replace("mean(x)", body).replace("Gate", name.title()).replace("nn.Module", base)
            if base == "Gate":
                text = text.replace("\n\n\nclass", "\nfrom pkg.model import Model as Gate\n\n\nclass")
        package.write(f"pkg/{name}.py", text)
        check(package)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"files": {"/a": [[1]]}, "missing": []}', b"\xff\xfe"])
def test_a_damaged_record_is_no_record(package: Project, damage: bytes) -> None:
    found = check(package)
    for record in (package.folder / ".tsdyn_cache").rglob("*.json"):
        record.write_bytes(damage)
    assert check(package) == found


def test_an_unwritable_folder_is_no_cache(package: Project) -> None:
    package.write("blocked", "a file where the cache should be")
    done = package.run("check", *OPTIONS, "--cache-dir", "blocked/inner")
    assert done.exit_code == 1 and json.loads(done.stdout)


def test_the_folder_says_what_it_is_and_clean_removes_it(package: Project) -> None:
    package.run("check", *OPTIONS, "--cache-dir", "here")
    assert package.read("here/CACHEDIR.TAG").startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert package.read("here/.gitignore") == "*\n"
    package.run("check", *OPTIONS)
    package.run("clean", "--cache-dir", "here")
    assert not (package.folder / "here").exists() and not (package.folder / ".tsdyn_cache").exists()


def test_a_folder_of_the_users_own_keeps_what_is_in_it(package: Project) -> None:
    package.run("check", *OPTIONS, "--cache-dir", ".")
    assert not (package.folder / ".gitignore").exists() and not (package.folder / "CACHEDIR.TAG").exists()
    package.run("clean", "--cache-dir", ".")
    assert [path.name for path in package.folder.iterdir()] == ["pkg"]


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsdyn_lint.cache._MAX_RECORDS", 5)
    cache = Cache(tmp_path)
    (cache.folder).mkdir(parents=True)
    left = cache.folder / "killed.tmp"
    left.write_text("half")
    os.utime(left, (0, 0))
    for number in range(9):
        cache.store(f"k{number}", Record({"/a": FileRecord(stamp("/nowhere"))}))
        os.utime(cache.folder / f"k{number}.json", (1000 + number, 1000 + number))
    assert {path.name for path in cache.folder.iterdir()} == {f"k{number}.json" for number in range(4, 9)}


def test_runs_at_the_same_time(package: Project) -> None:
    command = [sys.executable, "-m", "tsdyn_lint", *OPTIONS, "-j", "1"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    several = [
        subprocess.Popen(command, cwd=package.folder, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = {process.communicate()[0] for process in several}
    assert outputs == {package.run("check", "--no-cache", *OPTIONS).stdout}


def test_a_warm_run_imports_no_libcst(package: Project) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['tsdyn-lint', *{list(OPTIONS)!r}]\n"
        "from tsdyn_lint.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin"}
    command = [sys.executable, "-c", script]
    runs = [
        subprocess.run(command, cwd=package.folder, env=environment, capture_output=True, text=True) for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "libcst" in runs[0].stderr.split()
    assert not {"libcst", "tsdyn_lint.pipeline", "multiprocessing"} & set(runs[1].stderr.split())


def test_a_finding_survives_the_journey() -> None:
    place = Location(3, 4)
    finding = Finding(
        *("TSD201", "name", "message", Severity.WARNING, "/a.py", place, Location(3, 9)),
        engines=(Engine.DYNAMO, Engine.EXPORT),
        confidence=Confidence.POSSIBLE,
        gb=("GB0001",),
        entry="a.B.forward",
        related=(Related("/b.py", place, place, "called"),),
        fix=Fix("safe", "Do", (Edit("x", place, place),)),
        noqa_row=3,
        scope="B.forward",
    )
    assert decode(json.loads(json.dumps(encode(finding)))) == finding


def edited(package: Project, judged: list[set[str]], name: str, text: str) -> set[str]:
    """Writes a file; the names of the files that the cache then has judged."""
    package.write(name, text)
    judged.clear()
    package.run("check", *OPTIONS)
    found = set().union(*judged)
    check(package)
    return found


def test_an_edit_that_no_entry_point_reaches_judges_nothing(package: Project, judged: list[set[str]]) -> None:
    text = MODEL + "\n\ndef used(x):\n    return x\n"
    package.write("pkg/model.py", text)
    check(package)
    text += "\n\ndef unused(x):\n    return used(x.item())\n"
    assert edited(package, judged, "pkg/model.py", text) == set()
    text = text.replace("import torch\n", "import torch\nimport math\n", 1).replace("x.item()", "math.ceil(x)")
    assert edited(package, judged, "pkg/model.py", text) == set()
    text = text.replace("return mean(x)", "return used(mean(x))")
    assert edited(package, judged, "pkg/model.py", text) == {"model.py"}
    text = text.replace("    return x\n", "    return x.item()\n")
    assert edited(package, judged, "pkg/model.py", text) == {"model.py"}
    text += "\n\nnet = torch.compile(unused)\n"
    assert edited(package, judged, "pkg/model.py", text) == {"model.py"}
    text = text.replace("math.ceil(x)", "math.floor(x)")
    assert edited(package, judged, "pkg/model.py", text) == {"model.py"}


def test_functions_of_a_file_without_classes_are_entry_points(package: Project, judged: list[set[str]]) -> None:
    check(package)
    assert edited(package, judged, "pkg/helper.py", HELPER + "\n\ndef more(x):\n    return x.item()\n") == {"helper.py"}


def test_what_an_edit_moves_is_moved(package: Project, judged: list[set[str]]) -> None:
    package.write(
        "pkg/model.py", MODEL.replace("return mean(x)", "if x.sum() > 0:\n            return mean(x)\n        return x")
    )
    assert ("helper.py", "TSD301", 5) in check(package)
    before = package.run("check", *OPTIONS).stdout
    for name in ("pkg/helper.py", "pkg/model.py"):
        assert edited(package, judged, name, "# a comment\n" + package.read(name)) == set()
    after = package.run("check", *OPTIONS).stdout
    assert after != before
    assert after == package.run("check", "--no-cache", *OPTIONS).stdout


def test_a_name_whose_statements_move_apart_changes(package: Project, judged: list[set[str]]) -> None:
    text = MODEL.replace("mean(x)", "x + LIMIT") + "\n\nLIMIT = 1\n\nOTHER = 2\nLIMIT = 3\n"
    package.write("pkg/model.py", text)
    check(package)
    assert edited(package, judged, "pkg/model.py", text.replace("OTHER", "# a comment\nOTHER")) == {"model.py"}


def test_a_file_that_goes_takes_along_what_it_alone_reached(package: Project) -> None:
    assert ("helper.py", "TSD301", 5) in check(package)
    (package.folder / "pkg/model.py").unlink()
    assert ("helper.py", "TSD301", 5) not in check(package)


def test_an_engine_that_one_caller_alone_adds_goes_with_it(package: Project) -> None:
    command = ("check", "--isolated", "--engine", "dynamo,script", "--torch-version", "2.13", "-o", "json")
    package.write("pkg/helper.py", "import time\n\nimport torch\n\n\ndef mean(x):\n    return x + time.time()\n")
    unscripted = "if torch.jit.is_scripting():\n            return x\n        return mean(x)"
    package.write("pkg/model.py", MODEL.replace("return mean(x)", unscripted))
    package.write("pkg/other.py", OTHER.replace("return x", "return mean(x)"))
    both = json.loads(package.run(*command).stdout)
    package.write("pkg/other.py", OTHER)
    one = json.loads(package.run(*command).stdout)
    assert [finding["engines"] for finding in (*both, *one)] == [["dynamo", "script"], ["dynamo"]]
    assert one == json.loads(package.run(*command, "--no-cache").stdout)


def test_what_a_rule_for_several_captures_names_is_found_once() -> None:
    place = ("/a.py", Location(3, 5), Location(3, 9))
    clock = Finding("TSD305", "clock-call", "", Severity.ERROR, *place, engines=(Engine.DYNAMO, Engine.SCRIPT))
    call = replace(clock, code="TSD112", engines=(Engine.SCRIPT,))
    rulebook = load_rules()
    assert combined([clock, call], rulebook) == [clock]
    unscripted = replace(clock, engines=(Engine.DYNAMO,))
    assert combined([unscripted, call], rulebook) == [call, unscripted]


def test_two_classes_of_a_file_that_are_derived_from(package: Project) -> None:
    bodies = (
        "    def part(self, x):\n        raise NotImplementedError\n\n    def forward(self, x):\n        print(x)\n"
    )
    classes = "\n\n".join(f"class {name}(nn.Module):\n{bodies}\n" for name in ("First", "Second"))
    package.write("pkg/model.py", f"from torch import nn\n\n\n{classes}")
    check(package)
    imported = "import torch\nfrom pkg.model import First, Second\n\n\n"
    package.write("pkg/other.py", f"{imported}class A(First):\n    pass\n\n\nclass B(Second):\n    pass\n")
    check(package)


@pytest.mark.parametrize(
    ("imported", "called"),
    [
        ("from pkg import mean", "mean(x)"),
        ("from pkg.again import average", "average(x)"),
        ("import pkg.helper", "pkg.helper.mean(x)"),
        ("from pkg import helper as h", "h.mean(x)"),
        ("from pkg.again import Base", "Base.run(self, x)"),
    ],
)
def test_an_edit_reaches_its_users_by_whatever_name(package: Project, imported: str, called: str) -> None:
    package.write("pkg/__init__.py", "from .helper import *\n")
    package.write(
        "pkg/again.py",
        "from pkg import mean as average\n\n\nclass Base:\n    def run(self, x):\n        return average(x)\n",
    )
    package.write("pkg/model.py", MODEL.replace("from pkg.helper import mean", imported).replace("mean(x)", called))
    assert ("helper.py", "TSD301", 5) in check(package)
    package.write("pkg/helper.py", HELPER.replace("print(x)", "x = x * 2"))
    assert check(package) == []
    package.write("pkg/helper.py", HELPER.replace("print(x)", "x = x * 2\n    print(x)"))
    assert ("helper.py", "TSD301", 6) in check(package)
    package.write("pkg/helper.py", HELPER.replace("def mean", "def other"))
    assert check(package) == []


def test_the_names_of_a_file_and_what_hangs_on_them() -> None:
    text = "import a as b\nfrom c import d\nX = b.f\n\n\n@d\ndef g(y):\n    return X\n\n\n"
    text += "if g:\n    class Z: pass\nprint(Z)\n"
    statements = outline(text)
    assert statements is not None
    spans = {name: row[1:] for name, row in summary_of(statements).items()}
    assert spans == {"b": [1, 1], "d": [2, 2], "X": [3, 3], "g": [6, 8], "Z": [11, 12], "": [13, 13]}
    assert dependents(statements, frozenset({"X"})) == {"X", "g", "Z", ""}
    assert dependents(statements, frozenset({"Z"})) == {"Z", ""}
    assert outline("def (") is None


def test_the_outline_of_a_file_does_not_mind_a_long_chain() -> None:
    statements = outline("total = " + " + ".join(["1"] * 1200) + "\n")
    assert statements is not None
    assert [one.names for one in statements] == [{"total"}]


def test_a_setting_of_the_project_is_seen_by_files_that_do_not_import_it(project: Project) -> None:
    project.write(
        "model.py",
        "from torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n        return x + x.sum().item()\n",
    )
    project.write("train.py", "import torch\n")
    for number in range(4):
        project.write(f"filler{number}.py", f"import torch\n\n\ndef forward(x):\n    return x.sum() + {number}\n")

    def found() -> list[int]:
        run = project.run("check", "--isolated", "--engine", "dynamo", "--torch-version", "2.13", "-o", "json")
        return [finding["location"]["row"] for finding in json.loads(run.stdout)]

    assert found() == [6]
    project.write("train.py", "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = True\n")
    assert found() == []
    project.write("filler0.py", "import torch\n")
    assert found() == []
    (project.folder / "train.py").unlink()
    assert found() == [6]


def test_a_class_that_is_derived_from_elsewhere_is_judged_through_that(project: Project) -> None:
    """Whatever files share an analysis: each of these is judged in a run of its own, too."""
    base = MODEL.replace("Gate", "Base").replace("from pkg.helper import mean\n\n", "").replace("mean(x)", "print(x)")
    project.write("pyproject.toml", "")
    project.write("pkg/__init__.py", "")
    project.write("pkg/base.py", base + "\n    def part(self, x):\n        raise NotImplementedError\n")
    for number in range(4):
        project.write(f"pkg/filler{number}.py", f"import torch\n\n\ndef forward(x):\n    return x.sum() + {number}\n")
    options = ("check", "--isolated", "--engine", "dynamo", "--torch-version", "2.13", "-o", "json")

    def found(*paths: str) -> list[int]:
        cached, fresh = (json.loads(project.run(*options, *more, *paths).stdout) for more in ((), ("--no-cache",)))
        assert cached == fresh
        return [finding["location"]["row"] for finding in cached]

    assert found() == found("pkg/base.py") == [7]
    project.write(
        "pkg/heir.py", "import torch\nfrom pkg.base import Base as B\n\n\nclass Heir(B):\n    part = torch.abs\n"
    )
    assert found("pkg/base.py") == []
    assert found("pkg/base.py", "pkg/filler0.py") == []
    project.write("pkg/heir.py", "import torch\n\nBase = object\n\n\nclass Heir(Base):\n    part = torch.abs\n")
    assert found("pkg/base.py") == [7]
