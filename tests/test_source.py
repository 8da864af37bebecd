"""Bytes to text: encodings, line ends, lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsdyn_lint.source import check_syntax, make_source

HERE = Path("/p/a.py")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbfx = '\xc3\xa9'\n", "x = 'é'\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n", None),
        (b"\r\n# coding: utf-8\r\nx\r\n", "\r\n# coding: utf-8\r\nx\r\n"),
    ],
)
def test_decoding_as_pep_263_says(data: bytes, text: str | None) -> None:
    source = make_source(HERE, data)
    assert source.error is None
    assert text is None or source.text == text
    assert source.encoded(source.text) == data


@pytest.mark.parametrize("data", [b"x = '\xe9'\n", b"# coding: klingon\n", b"x\n\n# coding: latin-1\ny = '\xe9'\n"])
def test_what_cannot_be_decoded_is_a_finding(data: bytes) -> None:
    source = make_source(HERE, data)
    assert source.error is not None and source.error.code == "TSD000"


def test_lines_are_pythons_and_not_those_of_str() -> None:
    source = make_source(HERE, b"a = '\x0c \x1c'\rb\r\nc\nd")
    assert source.lines == ["a = '\x0c \x1c'", "b", "c", "d"]
    assert (source.line(2), source.line(0), source.line(9)) == ("b", "", "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = 1\n", None),
        ("", None),
        ("x = (\n", (1, 5)),
        ("def f():\n  x\n y\n", (3, 3)),
        ("a\0b", (1, 1)),
        ("print 1", (1, 1)),
    ],
)
def test_syntax(text: str, place: tuple[int, int] | None) -> None:
    problem = check_syntax(make_source(HERE, text.encode()))
    assert (problem and (problem.start.row, problem.start.column)) == place


def test_deep_nesting_is_a_finding_and_no_crash() -> None:
    problem = check_syntax(make_source(HERE, b"(" * 5000 + b")" * 5000))
    assert problem is not None
