"""Comments that silence findings: which findings they leave, and which comments were for nothing (`TSD001`)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tsdyn_lint.findings import Edit, Finding, Fix, Location, Severity
from tsdyn_lint.rulebook import RuleBook, RuleError
from tsdyn_lint.source import Source
from tsdyn_lint.spelling import nearest, suggestion

_REASON = r"(?:(?!(?<=\s)#\s*[a-z]|#\s*(?:noqa|type:)).)*"
"""What stands behind a comment of ours: all up to the next comment; a `#` in a word or before a number begins none."""
_OWN = re.compile(rf"#+\s*tsdyn:\s*(?P<kind>file-ignore|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?{_REASON}", re.IGNORECASE)
_NOQA = re.compile(rf"#\s*noqa\b(?:\s*:\s*(?P<codes>[a-z]+[0-9]+(?:[,\s]+[a-z]+[0-9]+)*))?{_REASON}", re.IGNORECASE)
_MARKED = re.compile(rb"#\s*tsdyn:|#\s*noqa\s*:[^#\n]*\bTSD", re.IGNORECASE)


@dataclass
class Suppression:
    """One comment: the rows it covers, and the codes it names with the spelling each was written in."""

    row: int
    start: int
    end: int
    rows: range
    text: str
    kind: str
    """`ignore`, `file-ignore` or `noqa`."""
    codes: dict[str, frozenset[str]] | None
    used: set[str] = field(default_factory=set)

    def silences(self, finding: Finding) -> bool:
        """Whether it covers a finding; notes which of its codes did."""
        if finding.start.row not in self.rows:
            return False
        if self.codes is None:
            return True
        hits = [spelling for spelling, codes in self.codes.items() if finding.code in codes]
        self.used.update(hits)
        return bool(hits)


def suppress(
    source: Source, findings: Sequence[Finding], rulebook: RuleBook, idle: Callable[[frozenset[str]], bool]
) -> tuple[list[Finding], list[Finding]]:
    """What is left of one file's findings, and a `TSD001` for each comment that silenced nothing.

    Rows are those of `source.text`. `idle`: whether nothing needs a suppression of these codes that silenced nothing.
    """
    if not _MARKED.search(source.data) and not (findings and b"noqa" in source.data.lower()):
        return list(findings), []
    comments = list(_suppressions(source, rulebook))
    kept = []
    for finding in findings:
        silencers = [comment for comment in comments if comment.silences(finding)]
        if not silencers:
            kept.append(finding)
    if any(finding.code == "TSD000" for finding in findings):
        return kept, []  # nobody knows what the rest of the file would have been told
    unused = [report for comment in comments if (report := _unused(comment, source, rulebook, idle, kept))]
    return kept, unused


def never(codes: frozenset[str]) -> bool:
    """What a run that cannot tell knows of suppressions that silenced nothing."""
    return False


def with_suppression(source: Source, finding: Finding) -> str | None:
    """The line that a finding starts at with a comment that silences it; None where no comment can stand."""
    row = finding.start.row
    line = f"{source.line(row).rstrip()}  # tsdyn: ignore[{finding.code}]"
    text = "\n".join([*source.lines[: row - 1], line, *source.lines[row:]])
    stands = any(token.start[0] == row and token.string.endswith(f"[{finding.code}]") for token in _comments(text))
    return line if stands else None


def _suppressions(source: Source, rulebook: RuleBook) -> Iterator[Suppression]:
    extents: _Extents | None = None
    for token in _comments(source.text):
        for pattern in (_OWN, _NOQA):
            for found in pattern.finditer(token.string):
                extents = extents or _Extents(source)
                row, column = token.start
                alone = not token.line[:column].strip()
                kind = found["kind"].lower() if pattern is _OWN else "noqa"
                rows = range(1, len(source.lines) + 1) if kind == "file-ignore" else extents.covered(row, alone)
                text = found[0].rstrip()
                start = column + found.start()
                named = _named(found, rulebook, pattern is _OWN)
                yield Suppression(row, start, start + len(text), rows, text, kind, named)


def _named(found: re.Match[str], rulebook: RuleBook, own: bool) -> dict[str, frozenset[str]] | None:
    """Spelling -> codes; None for a bare noqa, which silences all. An unknown spelling stands for no code."""
    text = found["codes"]
    if text is None:
        return {} if own else None
    named: dict[str, frozenset[str]] = {}
    for spelling in re.split(r"[,\s]+", text.strip()):
        if not spelling or (not own and not spelling.upper().startswith("TSD")):
            continue
        try:
            named[spelling] = rulebook.matching(spelling if own else spelling.upper())
        except RuleError:
            named[spelling] = frozenset()
    return named


def _unused(
    comment: Suppression,
    source: Source,
    rulebook: RuleBook,
    idle: Callable[[frozenset[str]], bool],
    kept: Sequence[Finding],
) -> Finding | None:
    """What is to be said of a comment; `kept` are the findings that nothing silences."""
    if comment.codes is None:
        return None
    here = [finding for finding in kept if finding.start.row in comment.rows]
    if not comment.codes and comment.kind != "noqa":
        codes = ", ".join(sorted({finding.code for finding in here}))
        is_open = "[" in comment.text and "]" not in comment.text
        kind = "file-ignore" if "ignore-file" in comment.text else comment.kind
        advice = "close the bracket" if is_open else f"write `{kind}[{codes}]`" if codes else "remove it"
        return _report(comment, source, f"`{comment.text}` names no rule: {advice}", None)
    spare = [
        spelling
        for spelling, codes in comment.codes.items()
        if spelling not in comment.used and (not codes or idle(codes))
    ]
    if not spare:
        return None
    unknown = [spelling for spelling in spare if not comment.codes[spelling]]
    message = f"suppression of {_quoted(spare)} suppresses nothing"
    if unknown:
        message += f": no rule is called {_quoted(unknown)}"
    # of what is found here a code can be meant; what only looks like it would be in the way of the next finding
    meant = {spelling: code for spelling in unknown if (code := _meant(spelling, here))}
    guess = next(iter(meant.values()), None) or (rulebook.nearest(unknown[0]) if unknown else None)
    message += suggestion(guess)
    return _report(comment, source, message, _correction(comment, source, spare, meant))


def _meant(spelling: str, here: Iterable[Finding]) -> str | None:
    """The code or the name of a finding that nothing silences which a spelling comes near."""
    return nearest((name for finding in here for name in (finding.code, finding.name)), spelling, spelling.upper())


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _report(comment: Suppression, source: Source, message: str, fix: Fix | None) -> Finding:
    start, end = Location(comment.row, comment.start + 1), Location(comment.row, comment.end + 1)
    path = str(source.path)
    return Finding("TSD001", "unused-suppression", message, Severity.WARNING, path, start, end, fix=fix)


def _correction(comment: Suppression, source: Source, idle: list[str], meant: Mapping[str, str]) -> Fix:
    """Writes the codes that are `meant` by idle ones, and takes the others out of the comment; where none is left, the
    comment with the space before it."""
    line = source.line(comment.row)
    pattern = _NOQA if comment.kind == "noqa" else _OWN
    found = pattern.search(comment.text)
    listed = re.findall(r"[^,\s]+", found["codes"] or "") if found else []
    left = dict.fromkeys(meant.get(code, code) for code in listed if code in meant or code not in idle)
    if left:
        start = line.index(listed[0], comment.start)
        end = line.index(listed[-1], start + sum(map(len, listed[:-1]))) + len(listed[-1])
        edit = Edit(", ".join(left), Location(comment.row, start + 1), Location(comment.row, end + 1))
        words = "Write the codes that are meant" if meant else "Remove the codes that suppress nothing"
        return Fix("safe", words, (edit,))
    start = len(line[: comment.start].rstrip())
    rest = line[comment.end :].strip()
    if start == 0 and not rest and comment.row < len(source.lines):
        edit = Edit("", Location(comment.row, 1), Location(comment.row + 1, 1))
    else:
        before = "  " if start else line[: comment.start]
        edit = Edit(
            before + rest if rest else "",
            Location(comment.row, start + 1),
            Location(comment.row, len(line) + 1),
        )
    return Fix("safe", "Remove the comment", (edit,))


def _comments(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (tokenize.TokenError, SyntaxError):
        return


class _Extents:
    """Which rows a comment speaks for: its statement, or the whole of a `def` or `class` when on its header."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._covered: dict[int, tuple[int, range]] = {}
        """For each row, the length of the smallest statement or header that it lies in, and the rows covered."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.ExceptHandler)):
                rows, covered = self._span(node)
                for row in rows:
                    if row not in self._covered or len(rows) < self._covered[row][0]:
                        self._covered[row] = len(rows), covered

    def covered(self, row: int, alone: bool) -> range:
        """The rows of the smallest statement that the comment's row lies in, else, if it stands alone, of the next."""
        inside = self._around(row)
        if inside is None and alone:
            following = row + 1
            while following < len(self._source.lines) and self._is_filler(following):
                following += 1
            inside = self._around(following)
            return inside or range(following, following + 1)
        return inside or range(row, row + 1)

    def _around(self, row: int) -> range | None:
        found = self._covered.get(row)
        return found[1] if found else None

    def _is_filler(self, row: int) -> bool:
        text = self._source.line(row).strip()
        return not text or text.startswith("#")

    def _span(self, node: ast.stmt | ast.ExceptHandler) -> tuple[range, range]:
        """(rows of a statement, or of a compound one's header; rows that a comment on them covers)."""
        start, end = node.lineno, node.end_lineno or node.lineno
        first = _first_row_inside(node)
        if first is None:
            return range(start, end + 1), range(start, end + 1)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            start = min([start, *(decorator.lineno for decorator in node.decorator_list)])
        last = max(first - 1, start)
        while last > node.lineno and self._is_filler(last):
            last -= 1
        header = range(start, last + 1)
        is_scope = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        return header, range(start, end + 1) if is_scope else header


def _first_row_inside(node: ast.stmt | ast.ExceptHandler) -> int | None:
    """The row where a compound statement's body begins; None for a simple statement."""
    if isinstance(node, ast.Match):
        return node.cases[0].pattern.lineno
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return None
    first: ast.stmt = body[0]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    return min([first.lineno, *(decorator.lineno for decorator in decorators)])
