"""Places of keys in TOML, and edits that leave the rest as it was."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tsdyn_lint.tomlplaces import Path, inline, places, row_of, with_value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = r"""
# [not.a.header]
name = "a # b" # c = 1
"quoted key".'its' = 1
many = '''
[no]
x = 2
'''
text = @@@one \@@@ two@@@"
when = 1979-05-27 07:32:00
list = [ 1, # one
  {a = 1, b = {c = "}"}}, [2, 3],
]

[tool . "x.y"]
key=true

[[tool.many]]
module = "a:B"
budget = {graph_breaks = 0}  # none
[tool.many.sub]
z = 1
[[tool.many]]
[[tool.many.inner]]
q = 1
[[tool.many.inner]]
q = 2
""".replace("@@@", '"' * 3)


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every scalar of read TOML by its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {path: value}
    return {key: leaf for name, item in items for key, leaf in leaves(item, (*path, name)).items()}


def test_places_are_those_that_the_reader_finds() -> None:
    found = places(TEXT)
    for path, value in leaves(tomllib.loads(TEXT)).items():
        place = found[path]
        assert tomllib.loads(f"x = {TEXT[place.start : place.end]}")["x"] == value, path
    assert row_of(TEXT, ("tool", "many", 0, "budget", "graph_breaks")) == 20
    assert row_of(TEXT, ("tool", "many", 1, "inner", 1, "nothing")) == 26
    assert row_of(TEXT, ("nowhere",)) is None


HEAD = "[[verify.targets]]\n"
TARGETS = ("verify", "targets")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ((0, "n"), HEAD + "x = 'a:B'  # b\n\n[other]\n", HEAD + "x = 'a:B'  # b\nn = 1\n\n[other]\n"),
        ((0, "n"), HEAD + "x = 2\r\n[other]\r\n", HEAD + "x = 2\r\nn = 1\r\n[other]\r\n"),
        ((0, "b", "2.13"), HEAD[:-1], HEAD + 'b."2.13" = 1\n'),
        ((1, "n"), f"{HEAD}[[verify.targets]] # x\ny = 3", f"{HEAD}[[verify.targets]] # x\ny = 3\nn = 1\n"),
        ((0, "b", "n"), HEAD + "b = {n =  5 } # x\n", HEAD + "b = {n =  1 } # x\n"),
        ((0, "b", "n"), HEAD + "b = {m = 5 }\n", HEAD + "b = {m = 5, n = 1 }\n"),
        ((0, "b", "n"), HEAD + "b = {}\n", HEAD + "b = {n = 1}\n"),
        ((0, "b", "x", "n"), HEAD + "[verify.targets.b.x]\nm = 5\n", HEAD + "[verify.targets.b.x]\nm = 5\nn = 1\n"),
        ((0, "b", "x"), HEAD + "[verify.targets.b.y]\nm = 5\n", HEAD + "b.x = 1\n[verify.targets.b.y]\nm = 5\n"),
        (
            (1, "b", "2.13"),
            "[verify]\ntargets = [{x = 'a:B'}, {x = 'c:D'}]\n",
            "[verify]\ntargets = [{x = 'a:B'}, {x = 'c:D', b.\"2.13\" = 1}]\n",
        ),
    ],
)
def test_one_value_is_set_and_nothing_else(path: Path, before: str, after: str) -> None:
    assert with_value(before, (*TARGETS, *path), "1") == after
    assert leaves(tomllib.loads(after))[(*TARGETS, *path)] == 1


def test_a_table_on_a_line() -> None:
    assert tomllib.loads("x = " + inline({"a": 1, "2.13": 0.5})) == {"x": {"a": 1, "2.13": 0.5}}


def test_a_key_without_a_table_to_stand_in() -> None:
    with pytest.raises(KeyError):
        with_value("a = 1\n", ("verify", "targets", 0, "n"), "1")
