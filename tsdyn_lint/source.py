"""Bytes of one file -> `Source`: decoded text and lines, with notebook cells joined to one program."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tsdyn_lint.findings import Finding, Location, Severity

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_MAGIC = re.compile(r"^\s*[%!?]|^[^#'\"]*\?\s*$")


@dataclass(frozen=True)
class Cell:
    """A code cell: its number among all cells (from 1) and the row of the joined text it starts at."""

    number: int
    first_row: int
    rows: int


@dataclass(frozen=True)
class Source:
    """One file to lint. `path` is absolute; `text` is decoded as PEP 263 says and keeps its line ends.

    `cells` is None but for a notebook, whose code cells `text` joins. `error` is the `TSD000` finding of input that
    cannot be decoded (then `text` is empty).
    """

    path: Path
    data: bytes
    text: str
    encoding: str = "utf-8"
    cells: tuple[Cell, ...] | None = None
    error: Finding | None = None

    @property
    def mentions_torch(self) -> bool:
        """Whether the bytes `torch` occur at all: without them no capture can."""
        return b"torch" in self.data

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends, split where Python's tokenizer splits."""
        return _NEWLINE.split(self.text)

    def line(self, row: int) -> str:
        """The line at a row (from 1) of `text`, empty past the end."""
        return self.lines[row - 1] if 0 < row <= len(self.lines) else ""

    def cell_at(self, row: int) -> Cell | None:
        """The notebook cell that a row of `text` lies in."""
        for cell in self.cells or ():
            if cell.first_row <= row < cell.first_row + cell.rows:
                return cell
        return None


def read_source(path: Path) -> Source:
    """The file at `path`; raises OSError where it cannot be read."""
    return make_source(path, path.read_bytes())


def make_source(path: Path, data: bytes) -> Source:
    """A `Source` of bytes from a file, standard input or an editor; never raises."""
    try:
        if path.suffix == ".ipynb":
            text, cells = _join_cells(data)
            return Source(path, data, text, cells=cells)
        encoding = source_encoding(data)
        return Source(path, data, data.decode(encoding), encoding)
    except (UnicodeError, LookupError, ValueError) as problem:
        return Source(path, data, "", error=syntax_finding(path, str(problem)))


def source_encoding(data: bytes) -> str:
    """The codec PEP 263 names; raises LookupError for an unknown one."""
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    for line in data.split(b"\n", 2)[:2]:
        if found := _COOKIE.match(line):
            return codecs.lookup(found[1].decode("ascii")).name
        if not _BLANK_OR_COMMENT.match(line.rstrip(b"\r")):
            break
    return "utf-8"


def syntax_finding(path: Path, message: str, row: int = 1, column: int = 1) -> Finding:
    """`TSD000` for input that cannot be read as Python."""
    start = Location(max(row, 1), max(column, 1))
    end = Location(start.row, start.column + 1)
    return Finding("TSD000", "syntax-error", message, Severity.ERROR, str(path), start, end)


def check_syntax(source: Source) -> Finding | None:
    """`TSD000` if neither this interpreter nor libcst can parse the source.

    Meant for files that get no analysis: the interpreter's own parser is cheap, and libcst (which knows newer syntax
    than an old interpreter) is asked only after a failure.
    """
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text, str(source.path), "exec", flags=0x400, dont_inherit=True)  # ast.PyCF_ONLY_AST
        return None
    except SyntaxError as problem:
        failure = syntax_finding(source.path, problem.msg or "invalid syntax", problem.lineno or 1, problem.offset or 1)
    except (ValueError, RecursionError, MemoryError, OverflowError) as problem:
        failure = syntax_finding(source.path, str(problem) or type(problem).__name__)
    import libcst

    try:
        libcst.parse_module(source.text)
        return None
    except Exception:
        return failure


def _join_cells(data: bytes) -> tuple[str, tuple[Cell, ...]]:
    """A notebook's code cells as one program; lines that are IPython's alone become comments of the same length."""
    notebook = json.loads(data)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("not a notebook: no list of cells")
    texts: list[str] = []
    cells: list[Cell] = []
    row = 1
    for number, cell in enumerate(notebook["cells"], 1):
        text = _cell_text(cell)
        if text is None:
            continue
        rows = len(_NEWLINE.split(text))
        cells.append(Cell(number, row, rows))
        texts.append(text)
        row += rows
    return "\n".join(texts), tuple(cells)


def _cell_text(cell: Any) -> str | None:
    """The Python of a code cell; None for any other kind and for a cell in another language (`%%bash`)."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    raw = cell.get("source", "")
    text = "".join(raw) if isinstance(raw, list) else str(raw)
    if text.lstrip().startswith("%%"):
        first, _, rest = text.lstrip().partition("\n")
        if first.split()[0] not in ("%%time", "%%timeit", "%%capture", "%%prun"):
            return None
        text = "#" + first[1:] + "\n" + rest
    lines = [_hide_magic(line) if _MAGIC.match(line) else line for line in _NEWLINE.split(text)]
    return "\n".join(lines)


def _hide_magic(line: str) -> str:
    """`pass` in the place of a magic, so that a block that holds only magics stays a block."""
    indent = line[: len(line) - len(line.lstrip())]
    return indent + "pass  # " + line.strip()
