"""Notebooks: code cells joined to one program, and the program's changed text put back into them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
_MAGIC = re.compile(r"^\s*(?:[\w, ]+=\s*)?[%!?]|^[^#'\"]*\?\s*$")
_HIDDEN = "pass  # magic: "
_GOES_ON = "# magic goes on: "
_MARK = "# %% cell "
_SPLIT = re.compile(rf"^{_MARK}(\d+)\n", re.MULTILINE)


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
    pieces: list[str] = []
    cells: list[Cell] = []
    row = 1
    for number, cell in _code_cells(json.loads(data)):
        lines = list(_hidden(_text(cell).split("\n")))
        pieces += [f"{_MARK}{number}", *lines]
        cells.append(Cell(number, row + 1, len(lines)))
        row += 1 + len(lines)
    return "\n".join(pieces), tuple(cells)


def replace_cells(data: bytes, text: str) -> bytes:
    """A notebook's bytes with its code cells as in a changed text that `join_cells` gave; all else is kept."""
    notebook = json.loads(data)
    cells = dict(_code_cells(notebook))
    pieces = _SPLIT.split(text)
    for number, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        cell = cells[int(number)]
        is_last = number == pieces[-2]
        changed = "\n".join(map(_show, (piece if is_last else piece.removesuffix("\n")).split("\n")))
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


def _hidden(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with IPython's commands behind a `pass`, and what goes on after a backslash in one as a comment."""
    goes_on = False
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        command = goes_on or _MAGIC.match(line) is not None
        yield line if not command else _GOES_ON + line if goes_on else indent + _HIDDEN + line[len(indent) :]
        goes_on = command and line.endswith("\\")


def _show(line: str) -> str:
    if line.startswith(_GOES_ON):
        return line.removeprefix(_GOES_ON)
    indent = line[: len(line) - len(line.lstrip())]
    hidden = line[len(indent) :].startswith(_HIDDEN)
    return indent + line[len(indent) + len(_HIDDEN) :] if hidden else line
