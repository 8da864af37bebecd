"""A group's files and the record of an earlier run -> findings: only what a change can reach is judged again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from tsdyn_lint.cache import Cache, FileRecord, Record, decode, encode, key_of, stamp
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Finding
from tsdyn_lint.judge import judge, merge
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.settle import settle
from tsdyn_lint.source import Library

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?", re.MULTILINE)
_ENOUGH = 0.5
"""Where more than this share of the files is to be judged again, all are: they share what they read."""


@dataclass(frozen=True)
class Lint:
    """What is to be linted, and how: one group of a run."""

    paths: Sequence[Path]
    settings: Settings
    rulebook: RuleBook
    library: Library
    jobs: int

    def all(self) -> tuple[list[Finding], Record]:
        """Every file judged, and the record of it."""
        names = [str(path) for path in self.paths]
        return self._judge(names, Record())

    def again(self, record: Record) -> tuple[list[Finding], Record | None]:
        """The findings that `all` would give, from the record where that holds; and a new record if that changed."""
        names = [str(path) for path in self.paths]
        if any(Path(path).exists() for path in record.missing):
            return self.all()
        changed = {path for path, known in record.files.items() if not known.stamp.still_holds(path)}
        linted = {path for path, known in record.files.items() if known.linted}
        if not changed and linted == set(names):
            return [decode(row) for name in names for row in record.files[name].shown], None
        changed |= linted ^ set(names)
        affected = self._reached(changed | self._relatives(changed, record), record)
        if len(affected & set(names)) > _ENOUGH * len(names):
            return self.all()
        return self._judge([name for name in names if name in affected], record)

    def _judge(self, names: list[str], record: Record) -> tuple[list[Finding], Record]:
        """Judges the named files and takes the rest from the record, until no finding of the rest is in doubt."""
        wanted = [str(path) for path in self.paths]
        while True:
            sources = [self.library[name] for name in names]
            result = judge(sources, self.settings, self.rulebook, self.jobs, frozenset(wanted))
            new: dict[str, list[Finding]] = defaultdict(list)
            for finding in result.findings:
                new[finding.filename].append(finding)
            old = {name: list(map(decode, record.files[name].raw)) for name in wanted if name not in names}
            doubted = {
                path
                for path, findings in old.items()
                for finding in findings
                if finding not in new[path] and any(_came_from(finding, name) for name in names)
            }
            if not doubted:
                break
            more = {name for name in wanted if doubted & self._read_by(name, record)} | doubted
            names = [name for name in wanted if name in more or name in names]
        raw = {name: merge([*old.get(name, ()), *new[name]]) for name in wanted}
        reads = {str(path): sorted(map(str, read)) for path, read in result.dependencies.items()}
        for name in reads.keys() & record.files.keys() - set(names):  # only read this time: its own lookups are older
            reads[name] = sorted({*reads[name], *record.files[name].reads})
        fresh = self._record(raw, reads, record, {*record.missing, *map(str, result.missing)})
        return [decode(row) for name in wanted for row in fresh.files[name].shown], fresh

    def _record(
        self, raw: Mapping[str, list[Finding]], reads: Mapping[str, list[str]], old: Record, missing: Iterable[str]
    ) -> Record:
        files: dict[str, FileRecord] = {}
        todo = list(raw)
        while todo:
            path = todo.pop()
            if path in files:
                continue
            known = old.files.get(path)
            state = known.stamp if known and path not in reads and known.stamp.still_holds(path) else stamp(path)
            files[path] = entry = FileRecord(state, path in raw)
            entry.reads = reads[path] if path in reads else known.reads if known else []
            todo += entry.reads
            if path not in raw:
                continue
            entry.raw = list(map(encode, raw[path]))
            if known and known.linted and known.stamp.digest == state.digest and known.raw == entry.raw:
                entry.shown, entry.defines, entry.bases = known.shown, known.defines, known.bases
            else:
                source = self.library[path]
                entry.shown = list(map(encode, settle(source, raw[path], self.settings, self.rulebook)))
                entry.defines, entry.bases = _classes(source.data)
        return Record(files, sorted(missing))

    def _relatives(self, changed: set[str], record: Record) -> set[str]:
        """Files of classes that a changed file begins or ceases to derive from: kin decide whether a base is judged."""
        names: set[str] = set()
        for path in changed:
            before = set(record.files[path].bases) if path in record.files else set()
            source = self.library.get(path)
            names |= before ^ set(_classes(source.data)[1] if source else ())
        return {path for path, known in record.files.items() if known.linted and names & set(known.defines)}

    def _reached(self, changed: set[str], record: Record) -> set[str]:
        """The files that were judged by a changed one, directly or through others, and the changed ones."""
        readers: dict[str, list[str]] = defaultdict(list)
        for path, known in record.files.items():
            for read in known.reads:
                readers[read].append(path)
        reached: set[str] = set()
        todo = list(changed)
        while todo:
            path = todo.pop()
            if path not in reached:
                reached.add(path)
                todo += readers[path]
        return reached

    def _read_by(self, name: str, record: Record) -> set[str]:
        """All files that one was judged by."""
        found: set[str] = set()
        todo = [name]
        while todo:
            path = todo.pop()
            if path not in found:
                found.add(path)
                todo += record.files[path].reads if path in record.files else []
        return found


def lint_with(cache: Cache, lint: Lint, asked: Iterable[str]) -> list[Finding]:
    """The findings of a group by way of the cache; `asked` are the paths of the command line."""
    key = key_of(lint.settings, asked)
    record = cache.load(key)
    findings, fresh = lint.again(record) if record else lint.all()
    if fresh is not None:
        cache.store(key, fresh)
    return findings


def _came_from(finding: Finding, path: str) -> bool:
    """Whether a finding may have been reached from an entry point of a file, whose module its entry then names."""
    if finding.entry is None:
        return False
    parts = PurePath(path).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    entry = finding.entry.split(".")
    return any(entry[:length] == list(parts[-length:]) for length in range(1, min(len(entry), len(parts)) + 1))


def _classes(data: bytes) -> tuple[list[str], list[str]]:
    """Names of the classes a file defines, and the last parts of the names of their bases."""
    defines, bases = set(), set()
    for name, listed in _CLASS.findall(data):
        defines.add(name.decode())
        bases |= {base.rpartition(b".")[2].decode() for base in re.findall(rb"[\w.]+", listed)}
    return sorted(defines), sorted(bases)
