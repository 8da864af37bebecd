"""Configuration: which file holds for which path, what is refused, what wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Project

from tsdyn_lint.configfile import FORMATS, KEYS, ConfigError, parse_options
from tsdyn_lint.globs import anchored, matches
from tsdyn_lint.report import FORMATS as RENDERED

PRINTS = "import torch\nprint(1)\n"


def test_the_closest_file_holds_and_is_not_merged(project: Project, prints: None) -> None:
    project.write("pyproject.toml", '[tool.tsdyn-lint]\nignore = ["TSD301"]\n')
    project.write("a.py", PRINTS)
    project.write("pkg/b.py", PRINTS)
    project.write("pkg/deep/c.py", PRINTS)
    project.write("pkg/tsdyn-lint.toml", "")
    found = [finding["filename"] for finding in project.json()]
    assert [Path(name).name for name in found] == ["b.py", "c.py"]


def test_tsdyn_lint_toml_beats_pyproject_in_the_same_folder(project: Project, prints: None) -> None:
    project.write("pyproject.toml", '[tool.tsdyn-lint]\nignore = ["TSD301"]\n')
    project.write("tsdyn-lint.toml", "")
    project.write("a.py", PRINTS)
    assert project.rows() == [("TSD301", 2)]


def test_a_pyproject_without_our_table_does_not_count(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", 'ignore = ["TSD301"]\n')
    project.write("pkg/pyproject.toml", '[project]\nname = "tsdyn-lint-user"\n')
    project.write("pkg/a.py", PRINTS)
    assert project.rows() == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[tool]\ntsdyn-lint = 3\n", "pyproject.toml:2: `tool.tsdyn-lint` must be a table"),
        ("[[tool.tsdyn-lint]]\nfix = true\n", "`tool.tsdyn-lint` must be a table"),
        ("['tool'.\"tsdyn-lint\"]\nfixx = true\n", "pyproject.toml:2: unknown key `fixx`; did you mean `fix`?"),
        ("tool = {tsdyn-lint = {fix = 1}}\n", "pyproject.toml:1: `fix` must be true or false"),
    ],
)
def test_our_table_counts_however_it_is_written(project: Project, text: str, complaint: str) -> None:
    project.write("pyproject.toml", text)
    project.write("a.py", PRINTS)
    result = project.run()
    assert (result.exit_code, complaint in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("name", ["pyproject.toml", "tsdyn-lint.toml"])
def test_a_configuration_may_begin_with_a_byte_order_mark(project: Project, prints: None, name: str) -> None:
    table = "[tool.tsdyn-lint]\n" if name == "pyproject.toml" else ""
    project.write(name, "\ufeff" + table + 'ignore = ["TSD301"]\n')
    project.write("a.py", PRINTS)
    assert project.rows() == []


def test_extend_inherits_and_overrides(project: Project, prints: None) -> None:
    project.write("base.toml", 'ignore = ["TSD301"]\nmin-confidence = "possible"\n')
    project.write("pkg/tsdyn-lint.toml", 'extend = "../base.toml"\n')
    project.write("pkg/a.py", PRINTS)
    assert project.rows() == []
    project.write("pkg/tsdyn-lint.toml", 'extend = "../base.toml"\nignore = []\n')
    project.write("pkg/a.py", PRINTS + "print(2)  # unsure\n")
    assert project.rows() == [("TSD301", 2), ("TSD301", 3)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('\nselec = ["TSD3"]\n', "tsdyn-lint.toml:2: unknown key `selec`; did you mean `select`?"),
        ("torch_version = '2.13'\n", "tsdyn-lint.toml:1: unknown key `torch_version`; did you mean `torch-version`?"),
        ("[verify]\n\ntimout = 3\n", "tsdyn-lint.toml:3: unknown key `verify.timout`; did you mean `timeout`?"),
        (
            '[[verify.targets]]\nmodule = "a:B"\nbudget = {graph_break = 0}\n',
            "tsdyn-lint.toml:3: unknown key `verify.targets.budget.graph_break`; did you mean `graph_breaks`?",
        ),
        (
            "[[verify.targets]]\nbudget = {guards = 1}\n[[verify.targets]]\nbudget.guards = -1\n",
            "tsdyn-lint.toml:4: `verify.targets.budget.guards` must be a whole number from 0 up",
        ),
        ("[verify]\ntimeout = -1\n", "tsdyn-lint.toml:2: `verify.timeout` must be a number of seconds above 0"),
        ("[verify]\nmemory = 1.5\n", "tsdyn-lint.toml:2: `verify.memory` must be a whole number of MB"),
        (
            "[[verify.targets]]\nbudget.min_coverage = 90\n",
            "tsdyn-lint.toml:2: `verify.targets.budget.min_coverage` must be a number from 0 to 1",
        ),
        (
            '[[verify.targets]]\n[verify.targets.budgets."2.13.0"]\nguards = 1\n',
            'tsdyn-lint.toml:2: a key of `verify.targets.budgets` must be a torch version such as "2.13", not `2.13.0`',
        ),
        (
            '[[verify.targets]]\nbudgets."2.13" = {max_kernel = 1}\n',
            "tsdyn-lint.toml:2: unknown key `verify.targets.budgets.2.13.max_kernel`; did you mean `max_kernels`?",
        ),
        ("select = 'TSD3'\n", "tsdyn-lint.toml:1: `select` must be a list of strings"),
        ("\n\nengine = ['dynam']\n", "tsdyn-lint.toml:3: `engine` must be auto, or some of dynamo"),
        ("torch-version = 2.13\n", 'tsdyn-lint.toml:1: `torch-version` must be a string such as "2.13"'),
        ("min-confidence = 'sure'\n", "tsdyn-lint.toml:1: `min-confidence` must be one of certain, likely, possible"),
        ("output-format = ['sarf']\n", "tsdyn-lint.toml:1: `output-format` must be some of full"),
        ("verify = 3\n", "tsdyn-lint.toml:1: `verify` must be a table"),
        ("select = [\n", "tsdyn-lint.toml: "),
        ("ignore = ['prnt-call']\n", "tsdyn-lint.toml: no rule is called `prnt-call`; did you mean `print-call`?"),
        ("extend = 'gone.toml'\n", "tsdyn-lint.toml:1: `extend` names a file that does not exist"),
        ("extend = 'tsdyn-lint.toml'\n", "`extend` goes round in a circle"),
        ("extend = '~nobody_here/x.toml'\n", "tsdyn-lint.toml:1: `extend` names a file that does not exist"),
        ('extend = "a\\u0000b"\n', "tsdyn-lint.toml:1: `extend` must be a path"),
        ('rule-paths = ["a\\u0000b"]\n', "tsdyn-lint.toml:1: `rule-paths` must be a list of paths"),
        ("cache-dir = ''\n", "tsdyn-lint.toml:1: `cache-dir` must be a path"),
        ('output-format = "json:\\u0000"\n', "tsdyn-lint.toml:1: `output-format` must be some of full"),
        (f"engine = {'[' * 3000}{']' * 3000}\n", "nested too deeply"),
    ],
)
def test_a_wrong_configuration_names_file_line_and_remedy(project: Project, text: str, complaint: str) -> None:
    project.write("tsdyn-lint.toml", text)
    project.write("a.py", PRINTS)
    result = project.run()
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_line_of_an_unknown_key_is_the_one_in_our_table(project: Project) -> None:
    project.write("pyproject.toml", "[tool.other]\nbogus = 1\n\n[tool.tsdyn-lint]\nbogus = 1\n")
    assert f"{project.folder / 'pyproject.toml'}:5: unknown key `bogus`" in project.run().stderr


def test_isolated_ignores_even_a_broken_configuration(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", "bogus = 1\n")
    project.write("a.py", PRINTS)
    assert project.rows("--isolated") == [("TSD301", 2)]


def test_config_file_or_key_on_the_command_line(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", "")
    project.write("other.toml", 'ignore = ["TSD301"]\n')
    project.write("a.py", PRINTS + "def f(:\n")
    project.write("b.py", PRINTS)
    assert project.rows("--config", "other.toml", "b.py") == []
    assert project.rows("--config", 'ignore = ["TSD301"]', "b.py") == []
    assert project.run("--config", "bogus = 1").exit_code == 2
    assert project.run("--config", "gone.toml").exit_code == 2


def test_the_command_line_wins_over_the_file(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", 'select = ["TSD0"]\nmin-confidence = "possible"\n')
    project.write("a.py", PRINTS + "print(2)  # unsure\n")
    assert project.rows() == []
    assert project.rows("--select", "TSD3") == [("TSD301", 2), ("TSD301", 3)]
    assert project.rows("--select", "TSD3", "--min-confidence", "likely") == [("TSD301", 2)]


def test_select_on_the_command_line_keeps_the_files_ignores(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", 'ignore = ["TSD301"]\n')
    project.write("a.py", PRINTS)
    assert project.rows("--select", "TSD3") == []
    assert project.rows("--select", "TSD3", "--ignore", "TSD302") == [("TSD301", 2)]


def test_per_file_ignores(project: Project, prints: None) -> None:
    project.write("tsdyn-lint.toml", '[per-file-ignores]\n"tests/*" = ["print-call"]\n"gen_*.py" = ["TSD3"]\n')
    for name in ("a.py", "gen_a.py", "tests/b.py", "pkg/tests/c.py"):
        project.write(name, PRINTS)
    found = {str(Path(finding["filename"]).relative_to(project.folder)) for finding in project.json()}
    assert found == {"a.py", "pkg/tests/c.py"}
    found = {Path(f["filename"]).name for f in project.json("--per-file-ignores", "a.py:TSD301,TSD302")}
    assert found == {"gen_a.py", "b.py", "c.py"}
    assert project.run("--per-file-ignores", "TSD301").exit_code == 2


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("/p/a.py", "a.py", True),
        ("/p/x/a.py", "a.py", True),
        ("/p/x/a.py", "x/*.py", True),
        ("/p/y/x/a.py", "x/*.py", False),
        ("/p/y/x/a.py", "**/x/*.py", True),
        ("/p/x/a.py", "**/x/*.py", True),
        ("/p/x/y/a.py", "x/**/a.py", True),
        ("/p/x/a.py", "x/**/a.py", True),
        ("/p/x/b.py", "x/[!a].py", True),
        ("/p/x/a.py", "x/[!a].py", False),
        ("/p/x/a.py", "/p/x/?.py", True),
        ("/p/a.py", "!a.py", False),
        ("/p/b.py", "!a.py", True),
        ("/p/x/a.py", "x", False),
        ("/p/x+y/a.py", "x+y/a.py", True),
    ],
)
def test_patterns(path: str, pattern: str, fits: bool) -> None:
    assert matches(Path(path), anchored(pattern, Path("/p"))) is fits


def test_config_prints_each_value_with_its_origin(project: Project) -> None:
    file = project.write("tsdyn-lint.toml", 'engine = ["script", "dynamo"]\n')
    out = project.run("config").stdout
    assert out.startswith(f"# {file}\n")
    assert f'engine = ["dynamo", "script"]  # {file}\n' in out
    assert 'min-confidence = "likely"  # default\n' in out
    assert project.run("config", "gone").exit_code == 2


def test_rule_paths_add_rules_that_need_no_code(project: Project) -> None:
    page = (Path(__file__).parent.parent / "rules" / "TSD301-print-call.md").read_text()
    page = page.replace('"TSD301"', '"ABC001"').replace('"print-call"', '"our-print"')
    project.write("lint/ABC001-our-print.md", page)
    project.write("tsdyn-lint.toml", 'rule-paths = ["lint"]\nselect = ["ABC"]\n')
    assert "# our-print (ABC001)" in project.run("rule", "ABC001").stdout
    project.write("lint/broken.md", "no front matter")
    result = project.run()
    assert result.exit_code == 2
    assert "broken.md: a rule page begins with TOML between two lines of +++" in result.stderr


def test_the_formats_of_configuration_are_those_that_can_be_rendered() -> None:
    assert FORMATS == RENDERED


def test_every_key_has_a_check() -> None:
    for key in set(KEYS) - {"verify"}:
        with pytest.raises(ConfigError):
            parse_options(f"{key} = {{a = 1979-05-27}}", Path("x.toml"))
