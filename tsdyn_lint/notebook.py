"""Notebooks: code cells joined to one program, and the program's changed text put back into them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
_MAGIC = re.compile(r"^\s*(?:\w[\w, ]*=\s*)?[%!?]|^[^#'\"]*\?\s*$")


@dataclass(frozen=True)
class _Marks:
    """What begins the lines that are ours: above a cell, for a command, and for what goes on of one. `tag` tells them
    from lines of the notebook that begin just so.
    """

    tag: str

    @property
    def cell(self) -> str:
        return f"# %%{self.tag} cell "

    @property
    def hidden(self) -> str:
        return f"pass  # magic{self.tag}: "

    @property
    def goes_on(self) -> str:
        return f"# magic{self.tag} goes on: "

    @classmethod
    def absent_from(cls, texts: Iterable[str]) -> _Marks:
        """The plainest marks that none of the texts holds."""
        whole = "\n".join(texts)
        marks = cls("")
        while any(mark in whole for mark in (marks.cell, marks.hidden, marks.goes_on)):
            marks = cls(marks.tag + "~")
        return marks


@dataclass(frozen=True)
class Cell:
    """A code cell: its number among all cells (from 1), and the rows of the joined text that it fills."""

    number: int
    first_row: int
    rows: int


def join_cells(data: bytes) -> tuple[str, tuple[Cell, ...]]:
    """The Python code cells as one program, each after a comment that names it; raises ValueError for no notebook.

    Lines that only IPython understands become a `pass` and a comment, so that their block stays a block.
    """
    found = list(_code_cells(json.loads(data)))
    marks = _Marks.absent_from(_text(cell) for _, cell in found)
    pieces: list[str] = []
    cells: list[Cell] = []
    row = 1
    for number, cell in found:
        lines = list(_hidden(_text(cell).split("\n"), marks))
        pieces += [f"{marks.cell}{number}", *lines]
        cells.append(Cell(number, row + 1, len(lines)))
        row += 1 + len(lines)
    return "\n".join(pieces), tuple(cells)


def replace_cells(data: bytes, text: str) -> bytes:
    """A notebook's bytes with its code cells as in a changed text that `join_cells` gave; all else is kept."""
    notebook = json.loads(data)
    cells = dict(_code_cells(notebook))
    marks = _Marks.absent_from(map(_text, cells.values()))
    pieces = re.split(rf"^{marks.cell}(\d+)\n", text, flags=re.MULTILINE)
    for number, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        cell = cells[int(number)]
        is_last = number == pieces[-2]
        lines = (piece if is_last else piece.removesuffix("\n")).split("\n")
        changed = "\n".join(_shown(line, marks) for line in lines)
        if changed != _text(cell):
            cell["source"] = changed.splitlines(keepends=True) if isinstance(cell["source"], list) else changed
    indent = re.search(rb"\n( +)\"", data)
    written = json.dumps(notebook, indent=len(indent[1]) if indent else None, ensure_ascii=False)
    return (written + ("\n" if data.endswith(b"\n") else "")).encode()


def _code_cells(notebook: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each cell of Python with its number; one in another language (`%%bash`) is left out."""
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("not a notebook: no list of cells")
    for number, cell in enumerate(notebook["cells"], 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            first = _text(cell).lstrip().partition("\n")[0]
            if not first.startswith("%%") or first.split()[0] in _PYTHON_MAGICS:
                yield number, cell


def _text(cell: dict[str, Any]) -> str:
    raw = cell.get("source", "")
    return "".join(map(str, raw)) if isinstance(raw, list) else str(raw)


def _hidden(lines: Iterable[str], marks: _Marks) -> Iterator[str]:
    """The lines, with IPython's commands behind a `pass`, and what goes on after a backslash in one as a comment."""
    goes_on = False
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        command = goes_on or _MAGIC.match(line) is not None
        yield line if not command else marks.goes_on + line if goes_on else indent + marks.hidden + line[len(indent) :]
        goes_on = command and line.endswith("\\")


def _shown(line: str, marks: _Marks) -> str:
    if line.startswith(marks.goes_on):
        return line.removeprefix(marks.goes_on)
    indent = line[: len(line) - len(line.lstrip())]
    return indent + line[len(indent) :].removeprefix(marks.hidden)
