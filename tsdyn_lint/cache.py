"""Verdicts of earlier runs on disk: a record for each way of asking, replaced whole, so that a kill leaves the old."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

from tsdyn_lint import __version__
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Confidence, Edit, Engine, Finding, Fix, Location, Related, Severity
from tsdyn_lint.outline import EVERYTHING, Summary
from tsdyn_lint.rulebook import rules_folder
from tsdyn_lint.source import RACY_NS
from tsdyn_lint.usage import Whole

FOLDER = ".tsdyn_cache"
_MAX_RECORDS = 64
_MAX_BYTES = 200_000_000
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of tsdyn-lint.\n"
_RECORDS = (".json", ".tmp")
_MANY = 20
"""More texts than this are searched for no sooner than what they are searched in is read."""


@dataclass(frozen=True)
class Stamp:
    """A file's state: size, modification time in ns (-1: look at the bytes) and digest; an absent file has size -1."""

    size: int
    mtime: int
    digest: str

    def still_holds(self, path: str) -> bool:
        """Whether the file is what it was: by size and time, else by its bytes."""
        try:
            now = os.stat(path)
        except OSError:
            return self.size == -1
        if now.st_size != self.size:
            return False
        return now.st_mtime_ns == self.mtime or stamp(path).digest == self.digest


T = TypeVar("T")


class Part(Generic[T]):
    """A part of a record: its JSON is read only when it is asked for, and written as it was."""

    __slots__ = ("_line", "_value")

    def __init__(self, value: T | None = None, line: bytes | None = None) -> None:
        """Of a value that JSON can hold, or of the line that holds it."""
        self._value, self._line = value, line

    @property
    def value(self) -> T:
        if self._value is None:
            assert self._line is not None
            self._value = json.loads(self._line)
        return self._value

    @property
    def line(self) -> bytes:
        if self._line is None:
            self._line = _json(self._value)
        return self._line

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Part) and self.line == other.line

    __hash__ = None  # type: ignore[assignment]


@dataclass
class FileRecord:
    """What is known of one file: its state, the files that it asked for names, its bases, its findings, its names, and
    those of them that its entry points hang on.

    `raw` are findings before suppression and selection, `shown` after, both as JSON has them (`decode` reads them).
    What only an edit asks for is kept in parts.
    """

    stamp: Stamp
    linted: bool = False
    bases: list[str] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)
    roots: list[str] = field(default_factory=lambda: [EVERYTHING])
    reads: Part[dict[str, list[str]]] = field(default_factory=lambda: Part({}))
    raw: Part[list[Any]] = field(default_factory=lambda: Part([]))
    summary: Part[Summary] = field(default_factory=lambda: Part({}))

    @property
    def parts(self) -> tuple[Part[Any], ...]:
        return self.reads, self.raw, self.summary


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass
class Record:
    """A whole run: its files by path, the paths that modules were looked for at in vain, and classes that were asked
    for subclasses: their file and name, whether there are any, and the files that were looked into."""

    files: dict[str, FileRecord] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    heirs: list[tuple[str, str, bool, list[str]]] = field(default_factory=list)


class Cache:
    """A folder of records. Everything that can go wrong with it means no cache, never a failed run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / __version__

    def load(self, key: str) -> Record | None:
        """The record of that name, None where there is none that can be read."""
        try:
            first, *lines = self._lines(key)
            whole = json.loads(first)
            parts = (Part[Any](line=line) for line in lines)
            files = {
                path: FileRecord(Stamp(*state), linted, bases, shown, roots, next(parts), next(parts), next(parts))
                for path, (state, linted, bases, shown, roots) in whole["files"].items()
            }
            return Record(files, whole["missing"], whole["heirs"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError, StopIteration):
            return None

    def store(self, key: str, record: Record) -> None:
        files = {
            path: [
                [one.stamp.size, one.stamp.mtime, one.stamp.digest],
                *(one.linted, one.bases, one.shown, one.roots),
            ]
            for path, one in record.files.items()
        }
        whole = {"files": files, "missing": record.missing, "heirs": record.heirs}
        self._write(key, [_json(whole), *(part.line for one in record.files.values() for part in one.parts)])

    def read(self, name: str) -> Any:
        """What was written under a name; None without it, or where it is damaged."""
        try:
            return json.loads(self._lines(name)[0])
        except (OSError, ValueError):
            return None

    def write(self, name: str, whole: Any) -> None:
        """Replaces what is under a name, at once; does nothing where that cannot be done."""
        self._write(name, [_json(whole)])

    def _lines(self, name: str) -> list[bytes]:
        with open(self.folder / f"{name}.json", "rb") as handle:
            digest, _, data = handle.read().partition(b"\n")
        if digest.decode() != _digest(data):  # a record that was damaged, or written by other hands, is none
            raise ValueError
        return data.split(b"\n")

    def _write(self, name: str, lines: Iterable[bytes]) -> None:
        import tempfile

        data = b"\n".join(lines)
        try:
            self._make_folder()
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(f"{_digest(data)}\n".encode() + data)
            os.replace(temporary, self.folder / f"{name}.json")
            self._prune()
        except OSError:
            return

    def _make_folder(self) -> None:
        whole = self.folder.parent
        if not whole.exists():  # a folder of the user's own gets no such marks
            whole.mkdir(parents=True)
            (whole / "CACHEDIR.TAG").write_text(_TAG)
            (whole / ".gitignore").write_text("*\n")
        self.folder.mkdir(exist_ok=True)

    def _prune(self) -> None:
        """Removes the records not written for longest, past a number and a size, and what killed runs left behind."""
        with os.scandir(self.folder) as entries:
            found = sorted(((e.stat().st_mtime, e.stat().st_size, e.path) for e in entries), reverse=True)
        total = 0
        for number, (modified, size, path) in enumerate(found):
            total += size
            stale = path.endswith(".tmp") and time.time() - modified > 3600
            if stale or number >= _MAX_RECORDS or total > _MAX_BYTES:
                os.unlink(path)


def clear(folder: Path) -> bool:
    """Removes what runs left in a cache folder, and the folder if nothing else is in it; whether there was any."""
    import shutil

    if folder.name == FOLDER:
        shutil.rmtree(folder)
        return True
    ours = [path for path in _folders(folder) if all(inner.suffix in _RECORDS for inner in path.iterdir())]
    for path in ours:
        shutil.rmtree(path)
    tag = folder / "CACHEDIR.TAG"
    if tag.is_file() and tag.read_text(errors="replace") == _TAG:
        tag.unlink()
        (folder / ".gitignore").unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        return True
    return bool(ours)


def _folders(folder: Path) -> list[Path]:
    """Those of the versions that wrote into a cache folder."""
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.name[:1].isdigit() and path.is_dir() and not path.is_symlink()]


def stamp(path: str) -> Stamp:
    """The present state of a file, read."""
    try:
        with open(path, "rb") as handle:
            data = handle.read()
            state = os.fstat(handle.fileno())
    except OSError:
        return Stamp(-1, -1, "")
    young = time.time_ns() - state.st_mtime_ns < RACY_NS
    return stamp_of(data, -1 if young else state.st_mtime_ns)


def stamp_of(data: bytes, mtime: int = -1) -> Stamp:
    """The state of a file that holds these bytes."""
    return Stamp(len(data), mtime, _digest(data))


def key_of(settings: Settings, asked: Iterable[str], project: Whole, shared: Iterable[Path] = ()) -> str:
    """A name for a way of asking: the paths, every setting that a finding hangs on, how the project compiles, whose
    suppressions are `shared` with files that are not linted, and the tool with its rules."""
    parts: list[Any] = [
        sorted(asked),
        *(sorted(engine.value for engine in some or ()) for some in (settings.engines, settings.own_engines)),
        settings.torch_version,
        sorted(settings.selected),
        settings.min_confidence.value,
        [(pattern, sorted(codes)) for pattern, codes in settings.per_file_ignores],
        [str(settings.root), str(settings.config_file)],
        project.compiling,
        sorted(map(str, shared)),
        _tool_state(settings.rule_paths),
    ]
    return _digest(json.dumps(parts).encode())


def _tool_state(rule_paths: tuple[Path, ...]) -> list[tuple[str, int, int]]:
    """Name, size and time of every file that decides a verdict: our code, the rule pages, the torch data."""
    found: list[tuple[str, int, int]] = []
    todo = [str(Path(__file__).parent), str(rules_folder()), *map(str, rule_paths)]
    while todo:
        folder = todo.pop()
        if not os.path.isdir(folder):
            state = os.stat(folder)
            found.append((folder, state.st_size, state.st_mtime_ns))
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    todo += [] if entry.name == "__pycache__" else [entry.path]
                else:
                    state = entry.stat()
                    found.append((entry.path, state.st_size, state.st_mtime_ns))
    return sorted(found)


def encode(finding: Finding) -> list[Any]:
    """A finding as JSON can hold it, without names for its parts."""
    fix = finding.fix
    return [
        *(finding.code, finding.name, finding.message, finding.severity.value, finding.filename),
        *(_span(finding.start, finding.end), [engine.value for engine in finding.engines], finding.confidence.value),
        *(list(finding.gb), finding.entry),
        [[one.filename, _span(one.start, one.end), one.message] for one in finding.related],
        fix and [fix.applicability, fix.message, [[edit.content, _span(edit.start, edit.end)] for edit in fix.edits]],
        *(finding.noqa_row, finding.scope, list(finding.also)),
    ]


def decode(row: list[Any]) -> Finding:
    """The finding that `encode` was given."""
    code, name, message, severity, filename, span, engines, confidence, gb, entry, related, fix, *rest = row
    noqa_row, scope, also = rest
    start, end = _places(span)
    return Finding(
        *(code, name, message, Severity(severity), filename, start, end),
        engines=tuple(map(Engine, engines)),
        confidence=Confidence(confidence),
        gb=tuple(gb),
        entry=entry,
        related=tuple(Related(other, *_places(there), text) for other, there, text in related),
        fix=Fix(fix[0], fix[1], tuple(Edit(text, *_places(there)) for text, there in fix[2])) if fix else None,
        noqa_row=noqa_row,
        scope=scope,
        also=tuple(also),
    )


class Mentions:
    """Which findings, as their JSON, can say one of some texts: to search is quicker than to read."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [json.dumps(text)[1:-1].encode() for text in texts]

    def may_be_in(self, part: Part[Any]) -> bool:
        line = part.line
        return len(self._texts) > _MANY or any(text in line for text in self._texts)


def places(row: list[Any]) -> tuple[str, list[str | None], list[Any]]:
    """Of a finding as `encode` gives it: its file, its entry points and what it points to, each with the file first."""
    return row[4], [row[9], *row[14]], row[10]


def _span(start: Location, end: Location) -> list[int]:
    return [start.row, start.column, end.row, end.column]


def _places(span: list[int]) -> tuple[Location, Location]:
    return Location(span[0], span[1]), Location(span[2], span[3])


def cache_folder(settings: Settings) -> Path:
    """Where the records of a group lie: as configured, else in the root of its configuration or project."""
    return settings.cache_dir or settings.root / FOLDER
