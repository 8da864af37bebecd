"""A group's files and the record of an earlier run -> findings: only what a change can reach is judged again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from tsdyn_lint.cache import (
    Cache,
    FileRecord,
    Mentions,
    Part,
    Record,
    Stamp,
    decode,
    encode,
    key_of,
    places,
    stamp,
    stamp_of,
)
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Finding, Location, Related
from tsdyn_lint.impact import ALL, Impact, difference, moved_row, names_at
from tsdyn_lint.judge import Judgement, combined, judge
from tsdyn_lint.outline import EVERYTHING, Statement, Summary, classes_of, outline, summary_of
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.settle import settle
from tsdyn_lint.source import Library
from tsdyn_lint.usage import Whole, classes_in, says_of_others

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
    project: Whole
    shared: frozenset[Path] = frozenset()
    """Files whose suppressions may serve others, which are not linted."""

    def all(self) -> tuple[list[Finding], Record]:
        """Every file judged, and the record of it."""
        return self._judge([str(path) for path in self.paths], Record(), _Edit(Record(), self.library, set()))

    def again(self, record: Record) -> tuple[list[Finding], Record | None]:
        """The findings that `all` would give, from the record where that holds; and a new record if that changed."""
        names = [str(path) for path in self.paths]
        if any(Path(path).exists() for path in record.missing):
            return self.all()
        changed = {path for path, known in record.files.items() if not self._holds(path, known)}
        linted = {path for path, known in record.files.items() if known.linted}
        if not changed and linted == set(names) and not self._other_heirs(record, {}):
            return [decode(row) for name in names for row in record.files[name].shown], None
        differing = changed | (linted ^ set(names))
        edit = _Edit(record, self.library, differing)
        affected = edit.also(self._other_heirs(record, edit.differing))
        if len(affected & set(names)) > _ENOUGH * len(names):
            return self.all()
        return self._judge([name for name in names if name in affected], record, edit)

    def _judge(self, names: list[str], record: Record, edit: _Edit) -> tuple[list[Finding], Record]:
        """Judges the named files and takes the rest from the record, until no finding of the rest is in doubt."""
        wanted = [str(path) for path in self.paths]
        gone = record.files.keys() - wanted
        while True:
            sources = [self.library[name] for name in names]
            result = judge(sources, self.settings, self.rulebook, self.jobs, frozenset(wanted), self.project)
            new: dict[str, list[Finding]] = defaultdict(list)
            for finding in result.findings:
                new[finding.filename].append(finding)
            old: dict[str, list[Finding]] = {}
            doubted: dict[str, frozenset[str]] = {}
            again = _From([*names, *gone])
            touched = [path for path in wanted if path in new or edit.touches(record.files.get(path), again)]
            for path in touched:
                found = set(map(_verdict, new[path]))
                for finding in map(decode, record.files[path].raw.value if path in record.files else ()):
                    moved = edit.moved(finding)
                    if moved is None:
                        continue  # who reaches that place is judged
                    if edit.explained(finding) and not again.reached(finding.entry, *finding.also):
                        old.setdefault(path, []).append(moved)
                    elif _verdict(moved) not in found:
                        doubted[path] = doubted.get(path, frozenset()) | edit.names_of(finding)
            more = set(edit.also(doubted)).intersection(wanted).difference(names) if doubted else set()
            if not more:
                break
            names = [name for name in wanted if name in more or name in names]
        # of two that are as sure, that of the first file counts, as where all are judged
        both = {name: sorted([*old.get(name, ()), *new[name]], key=lambda one: one.entry or "") for name in touched}
        fresh = {name: Part(list(map(encode, combined(found, self.rulebook)))) for name, found in both.items()}
        raw = {name: fresh.get(name) or record.files[name].raw for name in wanted}
        return self._recorded(raw, result, record, edit)

    def _recorded(
        self, raw: Mapping[str, Part[list[Any]]], result: Judgement, record: Record, edit: _Edit
    ) -> tuple[list[Finding], Record]:
        reads = {
            str(path): {str(other): set(names) for other, names in files.items()}
            for path, files in result.dependencies.items()
        }
        for name in reads.keys() & record.files.keys():  # what others asked it for before, they need not ask again
            for other, asked in record.files[name].reads.value.items():
                reads[name].setdefault(other, set()).update(asked)
        summaries = edit.summaries | {str(path): one for path, one in result.summaries.items()}
        fresh = self._record(raw, reads, summaries, record, {*record.missing, *map(str, result.missing)})
        roots = {str(path): names for path, names in result.roots.items()}
        for name in raw:
            fresh.files[name].roots = sorted(roots[name] if name in roots else edit.roots(name))
        heirs = {(path, name): (path, name, had_any, into) for path, name, had_any, into in record.heirs}
        for (path, name), (has_any, paths) in result.heirs.items():
            heirs[str(path), name] = (str(path), name, has_any, list(map(str, paths)))
        fresh.heirs = sorted(heirs.values())
        return [decode(row) for name in raw for row in fresh.files[name].shown], fresh

    def _record(
        self,
        raw: Mapping[str, Part[list[Any]]],
        reads: Mapping[str, Mapping[str, Iterable[str]]],
        summaries: Mapping[str, Summary],
        old: Record,
        missing: Iterable[str],
    ) -> Record:
        files: dict[str, FileRecord] = {}
        todo = list(raw)
        while todo:
            path = todo.pop()
            if path in files:
                continue
            known = old.files.get(path)
            holds = known is not None and self._holds(path, known)
            state = known.stamp if known and path not in reads and holds else self._stamp(path)
            files[path] = entry = FileRecord(state, path in raw)
            if path in reads:
                entry.reads = Part({other: sorted(asked) for other, asked in sorted(reads[path].items())})
            elif known:
                entry.reads = known.reads
            if path in summaries:
                entry.summary = Part(summaries[path])
            elif known and holds:
                entry.summary = known.summary
            todo += entry.reads.value
            if path not in raw:
                continue
            entry.raw = raw[path]
            if known and known.linted and known.stamp.digest == state.digest and known.raw == entry.raw:
                entry.shown, entry.bases = known.shown, known.bases
            else:
                source = self.library[path]
                found = list(map(decode, raw[path].value))
                shown = settle(source, found, self.settings, self.rulebook, source.path in self.shared)
                entry.shown = list(map(encode, shown))
                entry.bases = _bases(source.data)
        return Record(files, sorted(missing))

    def _holds(self, path: str, known: FileRecord) -> bool:
        """Whether a file is what it was when it was recorded, or the text that is to be judged in its place."""
        if self.library.holds(path):
            return stamp_of(self.library[path].data).digest == known.stamp.digest
        return known.stamp.still_holds(path)

    def _stamp(self, path: str) -> Stamp:
        """The state of a file as it was judged; one that was edited since then is found changed by the next run."""
        now = stamp(path)
        if not self.library.holds(path):
            return now
        judged = stamp_of(self.library[path].data)
        return now if now.digest == judged.digest else judged

    def _other_heirs(self, record: Record, differing: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Classes that were asked for subclasses, by file, where another answer is possible by now."""
        found: dict[str, frozenset[str]] = {}
        for path, name, had_any, looked_into in record.heirs:
            plain = name.rpartition(".")[2]
            now = list(dict.fromkeys([path, *self.project.heirs.get(plain, ())]))
            same = now[: len(looked_into)] == looked_into and (had_any or len(now) == len(looked_into))
            if not same or any(self._derives_otherwise(one, plain, record, differing) for one in looked_into):
                found[path] = found.get(path, frozenset()) | {name.partition(".")[0]}
        return found

    def _derives_otherwise(self, path: str, name: str, record: Record, differing: Mapping[str, frozenset[str]]) -> bool:
        if path not in differing:
            return False
        source, known = self.library.get(path), record.files.get(path)
        if source is None or known is None or not known.linted or differing[path] >= ALL:
            return True
        return name in differing[path] or known.bases != _bases(source.data)


class _Edit:
    """What changed since a record was written, and which files that reaches."""

    def __init__(self, record: Record, library: Library, changed: set[str]) -> None:
        self._record, self._library = record, library
        self._now: dict[str, list[Statement] | None] = {}
        self._impact = Impact({path: known.reads.value for path, known in record.files.items()}, self._statements)
        self._changed = Mentions(changed)
        self.differing: dict[str, frozenset[str]] = {}
        """The names of changed files that say something else than before."""
        self.summaries: dict[str, Summary] = {}
        """What those of the changed files bind that can be told."""
        for path in changed:
            statements = self._statements(path)
            now = None if statements is None else summary_of(statements)
            self.differing[path] = difference(self._before(path), now)
            if now is not None:
                self.summaries[path] = now
        lost = self._lost()
        self._impact.spread({path: names | lost[path] for path, names in self.differing.items()})

    def also(self, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """The files with entry points that what changed reaches, when these names count as changed too."""
        self._impact.spread(names)
        return frozenset(path for path in self._impact.changed if self._hits(path))

    def roots(self, path: str) -> frozenset[str]:
        """The names that the entry points of a file hang on which is not judged again."""
        known = self._record.files.get(path)
        if known is None or not known.linted or EVERYTHING in known.roots:
            return ALL
        return classes_of(self._statements(path) or ()) if path in self.differing else frozenset(known.roots)

    def _hits(self, path: str) -> bool:
        """Whether the names that changed in a file reach an entry point of it."""
        known, changed = self._record.files.get(path), self._impact.changed[path]
        if known is None or not known.linted or changed >= ALL:
            return True
        if not changed:  # all is where it was, or was moved
            return False
        roots = self.roots(path).union(known.roots)
        if roots >= ALL or not roots.isdisjoint(changed):
            return True
        own = self.differing.get(path)
        if not own:
            return False
        others = any(not one.is_plain and not one.names.isdisjoint(own) for one in self._statements(path) or ())
        return others or says_of_others(self._library[path].text)

    def touches(self, known: FileRecord | None, again: _From) -> bool:
        """Whether findings of a file may be others than they were: where they lie, what they point to or came from."""
        if known is None or not known.linted:
            return True
        if not self._changed.may_be_in(known.raw) and not again.names.may_be_in(known.raw):
            return False
        return any(
            again.reached(*entries) or filename in self.differing or any(one[0] in self.differing for one in related)
            for filename, entries, related in map(places, known.raw.value)
        )

    def moved(self, finding: Finding) -> Finding | None:
        """A finding of the record on the present rows; None where its code says something else by now."""
        path = finding.filename
        row = self._row(path, finding.start.row)
        if row is None:
            return None
        down = row - finding.start.row
        return replace(
            finding,
            start=_down(finding.start, down),
            end=_down(finding.end, down),
            related=tuple(map(self._moved_place, finding.related)),
        )

    def explained(self, finding: Finding) -> bool:
        """Whether the places that a finding of the record points to say what they said."""
        return all(self._row(one.filename, one.start.row) is not None for one in finding.related)

    def _moved_place(self, place: Related) -> Related:
        down = (self._row(place.filename, place.start.row) or place.start.row) - place.start.row
        return replace(place, start=_down(place.start, down), end=_down(place.end, down))

    def names_of(self, finding: Finding) -> frozenset[str]:
        return names_at(self._before(finding.filename), finding.start.row)

    def _before(self, path: str) -> Summary | None:
        known = self._record.files.get(path)
        return known.summary.value if known else None

    def _row(self, path: str, row: int) -> int | None:
        """Where a row of the record is now; None where it says something else."""
        if path not in self.differing:
            return row
        before, now = self._before(path), self.summaries.get(path)
        return moved_row(before, now, row, self.differing[path]) if before and now else None

    def _lost(self) -> dict[str, frozenset[str]]:
        """The names of changed files that findings of the record, in whatever file, point into and that fell apart."""
        found: dict[str, frozenset[str]] = dict.fromkeys(self.differing, frozenset())
        for known in self._record.files.values():
            for row in known.raw.value if self._changed.may_be_in(known.raw) else ():
                filename, _, related = places(row)
                if filename in found or any(one[0] in found for one in related):
                    for path, at in _places_of(decode(row)):
                        if path in found and self._row(path, at) is None:
                            found[path] |= names_at(self._before(path), at)
        return found

    def _statements(self, path: str) -> list[Statement] | None:
        if path not in self._now:
            source = self._library.get(path)
            self._now[path] = None if source is None or source.error else outline(source.text)
        return self._now[path]


def _down(place: Location, rows: int) -> Location:
    return Location(place.row + rows, place.column)


def _places_of(finding: Finding) -> Iterator[tuple[str, int]]:
    yield finding.filename, finding.start.row
    for one in finding.related:
        yield one.filename, one.start.row


def lint_with(cache: Cache, lint: Lint, asked: Iterable[str]) -> tuple[list[Finding], Record]:
    """The findings of a group by way of the cache, and its record; `asked` are the paths of the command line."""
    key = key_of(lint.settings, asked, lint.project, lint.shared)
    record = cache.load(key)
    if record is None:
        findings, fresh = lint.all()
    else:
        findings, changed = lint.again(record)
        if changed is None:
            return findings, record
        fresh = changed
    cache.store(key, fresh)
    return findings, fresh


def _verdict(finding: Finding) -> tuple[object, ...]:
    """What a finding says, but for how it was reached."""
    return finding.code, finding.start, finding.message, finding.engines, finding.confidence, finding.severity


class _From:
    """Whether findings may have been reached from entry points of these files, whose modules their entries name."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._modules: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        """The parts of the files' paths by the last one."""
        for path in paths:
            parts = PurePath(path).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            self._modules[parts[-1]].add(parts)
        self._known: dict[str | None, bool] = {None: False}
        self.names = Mentions(self._modules)

    def reached(self, *entries: str | None) -> bool:
        return any(map(self._reached, entries))

    def _reached(self, entry: str | None) -> bool:
        if entry not in self._known:
            assert entry is not None
            parts = tuple(entry.split("."))
            self._known[entry] = any(
                whole[-length:] == parts[:length]
                for length in range(1, len(parts) + 1)
                for whole in self._modules.get(parts[length - 1], ())
            )
        return self._known[entry]


def _bases(data: bytes) -> list[str]:
    """The last parts of the names of the bases that a file lists."""
    return sorted({base.decode() for _, bases in classes_in(data) for base in bases})
