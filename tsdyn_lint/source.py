"""Bytes of one file -> `Source`: decoded text and lines, with notebook cells joined to one program."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tsdyn_lint.findings import Edit, Finding, Fix, Location, Severity
from tsdyn_lint.notebook import Cell, join_cells, replace_cells

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"^[ \t\f]*(?:#.*)?$")
RACY_NS = 2_000_000_000
"""A file younger than this when it was read may change again without its size or time showing it."""
NEWLINE = re.compile(r"\r\n|\r|\n")


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

    @property
    def code(self) -> bytes:
        """The bytes of the code: of a notebook, its joined cells."""
        return self.data if self.cells is None else self.text.encode()

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends, split where Python's tokenizer splits."""
        return NEWLINE.split(self.text)

    def line(self, row: int) -> str:
        """The line at a row (from 1) of `text`, empty past the end."""
        return self.lines[row - 1] if 0 < row <= len(self.lines) else ""

    def encoded(self, text: str) -> bytes:
        """The file's bytes with another text; a notebook keeps all but its code."""
        return text.encode(self.encoding) if self.cells is None else replace_cells(self.data, text)

    def cell_at(self, row: int) -> Cell | None:
        """The notebook cell that a row of `text` lies in."""
        for cell in self.cells or ():
            if cell.first_row <= row < cell.first_row + cell.rows:
                return cell
        return None


class Library:
    """Sources by the text of their path, each read when it is first asked for."""

    def __init__(self, given: Iterable[Source] = ()) -> None:
        self._sources = {str(source.path): source for source in given}

    def __getitem__(self, name: str) -> Source:
        """The source; one that cannot be read is empty and carries that as its `TSD000`."""
        found = self._sources.get(name)
        if found is None:
            path = Path(name)
            try:
                found = read_source(path)
            except OSError as problem:
                unread = syntax_finding(path, f"cannot be read: {problem.strerror or problem}")
                found = replace(make_source(path, b""), error=unread)
            self._sources[name] = found
        return found

    def get(self, name: str) -> Source | None:
        """The source, or None where there is no such file."""
        return self[name] if name in self._sources or Path(name).is_file() else None

    def holds(self, name: str) -> bool:
        """Whether the source was given or read before."""
        return name in self._sources

    def code(self, name: str) -> bytes:
        """The bytes of a file's code, not kept but for a notebook; empty where it cannot be read."""
        if name in self._sources or name.endswith(".ipynb"):
            return self[name].code
        try:
            return Path(name).read_bytes()
        except OSError:
            return b""

    def put(self, source: Source) -> None:
        """Takes a source in the place of the file."""
        self._sources[str(source.path)] = source


def read_source(path: Path) -> Source:
    """The file at `path`; raises OSError where it cannot be read."""
    return make_source(path, path.read_bytes())


def make_source(path: Path, data: bytes) -> Source:
    """A `Source` of bytes from a file, standard input or an editor; never raises."""
    try:
        if path.suffix == ".ipynb":
            text, cells = join_cells(data)
            return Source(path, data, text, cells=cells)
        encoding = source_encoding(data)
        return Source(path, data, data.decode(encoding), encoding)
    except (UnicodeError, LookupError, ValueError, RecursionError) as problem:
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
        if "too many nested" in problem.msg:  # libcst has no such limit, and overflows the stack
            return failure
    except (ValueError, RecursionError, MemoryError, OverflowError) as problem:
        return syntax_finding(source.path, str(problem) or type(problem).__name__)
    import libcst

    try:
        libcst.parse_module(source.text)
        return None
    except Exception:
        return failure


def by_cell(source: Source, finding: Finding) -> Finding:
    """A finding in a notebook with its rows counted from the top of its cell; any other as it is."""
    cell = source.cell_at(finding.start.row)
    if cell is None:
        return finding
    shift = cell.first_row - 1

    def moved(place: Location) -> Location:
        return Location(place.row - shift, place.column)

    fix = finding.fix
    if fix:
        edits = tuple(Edit(edit.content, moved(edit.start), moved(edit.end)) for edit in fix.edits)
        fix = Fix(fix.applicability, fix.message, edits)
    row = finding.noqa_row - shift if finding.noqa_row else None
    start, end = moved(finding.start), moved(finding.end)
    return replace(finding, start=start, end=end, fix=fix, cell=cell.number, noqa_row=row)
