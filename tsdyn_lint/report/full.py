"""The report for people: message, excerpt with a caret under the code at fault, notes."""

from __future__ import annotations

from tsdyn_lint.findings import Finding, Severity
from tsdyn_lint.report.run import Run, row_in_text
from tsdyn_lint.report.style import paint
from tsdyn_lint.source import Source

_CONTEXT = 2
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}


def render(run: Run) -> str:
    return "".join(_block(run, finding) for finding in run.findings)


def _block(run: Run, finding: Finding) -> str:
    if finding.verify and finding.verify.get("status") == "refuted":
        head = paint(f"{finding.code} {finding.message}", "dim", run.colour)
    else:
        head = f"{paint(finding.code, _COLOURS[finding.severity], run.colour, bold=True)} {finding.message}"
    lines = [head, f"{paint('-->', 'blue', run.colour)} {run.place(finding)}"]
    source = run.source(finding.filename)
    if source is not None:
        lines += _excerpt(run, finding, source)
    lines += _notes(run, finding)
    return "\n".join(lines) + "\n\n"


def _excerpt(run: Run, finding: Finding, source: Source) -> list[str]:
    """Lines around the finding's first row, its own row underlined as far as the code at fault goes."""
    row = row_in_text(source, finding.cell, finding.start.row)
    offset = row - finding.start.row
    cell = source.cell_at(row)
    first = max(row - _CONTEXT, cell.first_row if cell else 1)
    last = min(row + _CONTEXT, cell.first_row + cell.rows - 1 if cell else len(source.lines))
    width = len(str(last - offset))
    bar = paint("|", "blue", run.colour)
    shown = [" " * width + f" {bar}"]
    for number in range(first, last + 1):
        text = _visible(source.line(number))
        shown.append(f"{paint(f'{number - offset:>{width}}', 'blue', run.colour)} {bar} {text}".rstrip())
        if number == row:
            carets = paint(_carets(finding, source.line(row)), _COLOURS[finding.severity], run.colour)
            shown.append(f"{' ' * width} {bar} {carets}")
    shown.append(" " * width + f" {bar}")
    return shown


def _carets(finding: Finding, line: str) -> str:
    start = finding.start.column - 1
    end = finding.end.column - 1 if finding.end.row == finding.start.row else len(line.rstrip())
    before, under = _visible(line[:start]), _visible(line[start : max(end, start + 1)])
    return " " * _width(before) + "^" * max(_width(under), 1)


def _visible(text: str) -> str:
    return text.expandtabs(4)


def _width(text: str) -> int:
    """Terminal columns: East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _notes(run: Run, finding: Finding) -> list[str]:
    notes = []
    if finding.engines:
        notes.append(f"breaks {', '.join(finding.engines)} ({finding.confidence.value})")
    if finding.entry:
        notes.append(f"reached from {finding.entry}")
    for related in finding.related:
        notes.append(f"{run.shown(related.filename)}:{related.start.row}:{related.start.column}: {related.message}")
    if finding.fix:
        how = {"safe": "--fix", "unsafe": "--fix --unsafe-fixes"}.get(finding.fix.applicability)
        notes.append(f"fix: {finding.fix.message}" + (f" ({how})" if how else ""))
    for observed in (finding.verify or {}).get("observed", ()):
        gb = f"{observed['gb']}: " if observed.get("gb") else ""
        notes.append(f"observed, {observed.get('engine')}: {gb}{observed.get('reason')}")
    if finding.verify:
        notes.append(f"verified: {finding.verify['status']}")
    return [f"{paint('=', 'blue', run.colour)} {note}" for note in notes]
