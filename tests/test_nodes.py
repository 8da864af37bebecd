"""What is made of `ast` trees says what libcst's own parser says, and stands at the same places."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tsdyn_lint.made import Maker, UnknownSyntax
from tsdyn_lint.nodes import FIELDS, children
from tsdyn_lint.parse import Deferred, Tree
from tsdyn_lint.places import MadePlaces, PrintedPlaces

ROOT = Path(__file__).parent.parent

EVERYTHING = '''\
import a, b.c as d
from . import e
from ..f.g import h as i, j
from k import *
x: int = 1; y: "list[int]"
@decorate(1)
async def f(p, q: int = 2, /, r=3, *s: int, t, u=4, **v) -> None:
    global x
    async for one in r:
        await one
    else:
        pass
    async with open(p) as handle, lock:
        return
def g(*, only: bool, other=lambda a, *b, c=1, **d: (a, b)): pass
class K(Base, metaclass=Meta, **rest):
    """Documentation: é."""
    z = w = 5
    def method(self):
        def inner():
            nonlocal k
            yield
            got = yield 1
            yield from self
        return super().method()
def h(x):
    if x > 0 and x < 10 or not x:
        x += 1
    elif -x is not None is x:
        x @= ~x
    elif x in (1, 2) and (x not in [3, *x]):
        del x, y
    else:
        del x
    for i, (j, *k) in enumerate(x):
        if i: continue
        break
    else:
        assert x, "words"
    while (n := len(x)) >= 0x10:
        raise ValueError from error
    try:
        raise
    except (A, B) as error:
        "é" + x.é[é].value
    except C:
        ...
    else:
        x = {1, 2, *x}
    finally:
        x = {"a": 1, **x, 'b': 2.5}
    with a: b
    x[1, ::2, ...] = x[1:2:3] = x[:, None] = x[i][-1]
    x = [i for i in x if i if j for j in i] + list(i async for i in x)
    x = {i for i in x} | {i: j for i, j in x}
    x = f(1, *x, k=2, *y, **z) if x else f(k=1)(2)
    x = 1_000 + 1e400 - 2.5j * b"\\x00" / 'it\\'s' // True ** None % x << 2 >> 3 & 4 ^ 5
    x = f"{x!r:>{width}} {x.size(0)} text" f" more {(x + 1).item()}"
    x = "one " "two"
    x = (
        a
        .b
        (c)
        [d]
    )
    match x:
        case 0 | -1.5 | "s" | None | True:
            pass
        case [1, _, *rest] if rest:
            pass
        case {"k": v, **others}:
            pass
        case K(1, z=2) as whole:
            pass
        case _:
            pass
'''
NEWER = {
    (3, 11): "try:\n    pass\nexcept* A as e:\n    pass\nx[*a]\ndef f(*args: *b): pass\n",
    (3, 12): "type X[T] = list[T]\ndef f[T: int, *U, **V](x: T) -> T: pass\nclass K[T]: pass\nf'{a['b']}'\n",
    (3, 14): "t'{a} {b!r:>3}'\n",
}
_PARENTHESISED = (cst.Tuple, cst.GeneratorExp)
"""Nodes that libcst lets begin and end inside of their parentheses."""
_OF_A_WORD = (cst.Else, cst.Finally, cst.CompFor, cst.CompIf, cst.Decorator, cst.AsName, cst.From)
"""Nodes that begin with a word or a sign that `ast` does not place."""


def _texts() -> Iterator[Any]:
    yield pytest.param(EVERYTHING, id="everything")
    for version, text in NEWER.items():
        yield pytest.param(text, id="-".join(map(str, version)), marks=pytest.mark.skipif(
            sys.version_info < version, reason="newer syntax"))  # fmt: skip
    for path in (*sorted((ROOT / "fixtures").rglob("*.py")), *sorted((ROOT / "tsdyn_lint" / "infer").glob("*.py"))):
        yield pytest.param(path.read_text(encoding="utf-8"), id=path.name)


def _flat(body: Any) -> list[Any]:
    """Statements, without the lines that libcst puts around those without a block."""
    lines = (cst.SimpleStatementLine, cst.SimpleStatementSuite)
    return [small for one in body for small in (one.body if isinstance(one, lines) else [one])]


def _pairs(made: Any, parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Nodes of both trees that are to be alike."""
    if isinstance(made, cst.If) and isinstance(parsed, cst.Else):  # `else:` with nothing but an `if`
        (parsed,) = _flat(parsed.body.body)
    yield made, parsed
    if isinstance(parsed, cst.ConcatenatedString):  # which `ast` has joined
        return
    if isinstance(made, cst.IndentedBlock):
        both = _flat(made.body), _flat(parsed.body)
    else:
        both = children(made), [one for one in children(parsed) if not isinstance(one, cst.TypeParameters)]
    assert len(both[0]) == len(both[1]), (made, parsed)
    for one, other in zip(*both, strict=True):
        yield from _pairs(one, other)


@pytest.mark.parametrize("text", [*_texts()])
def test_nodes_are_those_that_libcst_parses(text: str) -> None:
    maker = Maker()
    made, parsed = maker.statements(ast.parse(text).body), cst.parse_module(text)
    ours, theirs = MadePlaces(text.splitlines(keepends=True), maker.origins), PrintedPlaces(parsed)
    module = cst.IndentedBlock(made)
    for one, other in _pairs(module, parsed):
        if one is module:
            continue
        if isinstance(other, cst.ConcatenatedString):
            assert isinstance(one, (cst.SimpleString, cst.FormattedString))
            continue
        assert type(one) is type(other) or isinstance(one, cst.IndentedBlock)
        if isinstance(one, cst.Name):
            assert one.value == other.value
        elif isinstance(one, (cst.SimpleString, cst.Integer, cst.Float, cst.Imaginary)):
            assert one.value == "1e999" or one.evaluated_value == other.evaluated_value
        elif isinstance(one, (cst.Arg, cst.Param, cst.Index)):
            assert (one.star or "") == (other.star or "")
        elif hasattr(other, "asynchronous"):
            assert (one.asynchronous is None) == (other.asynchronous is None)
        whole = isinstance(one, (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement))
        if one in maker.origins and whole and not isinstance(one, (*_PARENTHESISED, *_OF_A_WORD, cst.SimpleString)):
            syntax = maker.origins[one]
            if isinstance(
                syntax, (ast.alias, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ExceptHandler, ast.pattern)
            ):
                continue  # names that only their statement has a place for
            (start, end), around = ours.span(one), theirs.span(other)
            if isinstance(
                one, cst.BooleanOperation
            ):  # `(a) and (b) and c`: the first two may do without their outer ones
                assert around[0] <= start < end <= around[1]
            else:
                assert (start, end) == around


def test_every_kind_of_node_with_parts_can_have_its_parts_listed() -> None:
    kinds = [kind for kind in vars(cst).values() if isinstance(kind, type) and issubclass(kind, cst.CSTNode)]
    for kind, names in FIELDS.items():
        assert kind in kinds
        assert set(names) <= set(kind.__dataclass_fields__)  # type: ignore[attr-defined]


def test_code_of_a_node_is_the_text_that_it_stands_for() -> None:
    text = "é = 'é'\nx = f(\n    é,\n    [1],\n)\n"
    maker = Maker()
    made = maker.statements(ast.parse(text).body)
    places = MadePlaces(text.splitlines(keepends=True), maker.origins)
    call = made[1].body[0].value
    assert places.text(call) == "f(\n    é,\n    [1],\n)"
    assert places.text(call.args[1]) == "[1]"
    start, end = places.span(made[0].body[0].value)
    assert (start.column, end.column) == (5, 8)


def _name_at(text: str, *fields: str) -> tuple[int, int]:
    """Row and column of the name that the fields lead to in the first statement of a text."""
    tree = Tree(text, Path("m.py"))
    node: Any = tree.definition(tree.deferred[0])
    for field in fields:
        node = getattr(node, field)
        node = node[0] if isinstance(node, (list, tuple)) else node
    start, end = tree.places.span(node)
    assert start < end
    return start.row, start.column


@pytest.mark.parametrize(
    ("text", "fields", "place"),
    [
        ("def é2(*a): pass\n", ("name",), (1, 5)),
        ("def   eé(a): pass\n", ("name",), (1, 7)),
        ("def \\\n  q(x): pass\n", ("name",), (2, 3)),
        ("@a\nclass é: pass\n", ("name",), (2, 7)),
        ("def f(e\u0301=1): pass\n", ("params", "params"), (1, 7)),  # `ast` has one letter for the two
        ("def f(a, *, b: int = 1): pass\n", ("params", "kwonly_params"), (1, 13)),
    ],
)
def test_names_stand_where_they_are_written(text: str, fields: tuple[str, ...], place: tuple[int, int]) -> None:
    assert _name_at(text, *fields) == place


@pytest.mark.parametrize(
    ("header", "comment"),
    [
        ("def f(x, y):  # type: (int, int) -> int", " (int, int) -> int"),
        ("def f(x,  # type: (odd)\n      y):\n    # type: (int, int) -> int", " (int, int) -> int"),
        ('def f(x, y="# type: (int, int) -> int"):', None),
        ("def f(x, y):  # note # type: (int, int) -> int", None),
        ("def f(\n    x: int,\n) -> None:  # type: (int) -> None", " (int) -> None"),
    ],
)
def test_type_comments_are_comments_under_a_header(header: str, comment: str | None) -> None:
    tree = Tree(f"{header}\n    return x\n", Path("m.py"))
    assert tree.places.type_comment(tree.definition(tree.deferred[0])) == comment


def test_a_tuple_of_one_in_brackets_is_told_by_its_comma() -> None:
    one, several, plain = (Maker().expression(ast.parse(text).body[0].value) for text in ("x[1,]", "x[1, 2]", "x[1]"))  # type: ignore[attr-defined]
    assert [len(node.slice) for node in (one, several, plain)] == [1, 2, 1]
    assert [type(node.slice[0].comma) is cst.Comma for node in (one, several, plain)] == [True, False, False]


def test_syntax_of_the_future_is_an_error_and_no_crash() -> None:
    class Coming(ast.stmt):
        pass

    with pytest.raises(UnknownSyntax, match="Coming"):
        Maker().statement(Coming())


def test_definitions_wait_until_they_are_asked_for(tmp_path: Path) -> None:
    text = "import a\nif a:\n    class K:\n        x = 1\n        def f(self):\n            return 1\ndef g(): pass\n"
    tree = Tree(text, tmp_path / "m.py")
    names = [deferred.names for deferred in tree.deferred]
    assert names == [("K",), ("g",)]
    cls = tree.definition(tree.deferred[0])
    assert tree.definition(tree.deferred[0]) is cls
    method = cls.body.body[1]
    assert isinstance(method, Deferred) and method.names == ("f",)
    function = tree.definition(method)
    assert not function.body.body
    assert isinstance(tree.body(function)[0], cst.SimpleStatementLine)
    assert tree.body(function) is tree.body(function)
