"""What the text of import statements names, also where it does not parse."""

from __future__ import annotations

import pytest

from tsdyn_lint.imports import imported_names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import a, b.c as d; import e", ["a", "b.c", "e"]),
        ("from a.b import c as d, e  # import f", ["a.b", "a.b.c", "a.b.e"]),
        ("from a import *", ["a", "a.*"]),
        ("from . import b", [".", ".b"]),
        ("from .a import b", [".a", ".a.b"]),
        ("from .import b", [".", ".b"]),
        ("from . a import b", [".a", ".a.b"]),
        ("from . . import b", ["..", "..b"]),
        ("import a . b", ["a.b"]),
        ("\ufefffrom a import b", ["a", "a.b"]),
        ("\x0cfrom\x0ca import b", ["a", "a.b"]),
        ("from a \\\n  import \\\r\n  b", ["a", "a.b"]),
        ("import os, \\\n  a.b", ["os", "a.b"]),
        ("from a import (  # one)\n    b,  # import c\n\n    d as e,\n)\nimport f", ["a", "a.b", "a.d", "f"]),
        ("from a import (\n    b,\nimport c\n", ["a", "a.b", "c"]),
        ("from a import (\n" + "    b,  # noqa: F401\n" * 40, ["a"] + ["a.b"] * 40),
        ("from a import (\n" * 3, ["a"] * 3),
        ("if x: import a\ntry: from b import c\nexcept: pass\n", ["a", "b", "b.c"]),
        ("import über", ["über"]),
        ("x = 1 # a\rimport b", ["b"]),
        ("important = imported.from_ + my_import\nfrom_import()\n", []),
        ("from " + "." * 2000, []),
        ("raise A from e\nimport b", ["b"]),
        ("def f(:\n    import a", ["a"]),
    ],
)
def test_names(code: str, names: list[str]) -> None:
    assert list(imported_names(code.encode())) == names
