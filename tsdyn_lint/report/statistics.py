"""`--statistics`: how often each rule fired, for people or as JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

from tsdyn_lint.report.run import Run


def render(run: Run, as_json: bool) -> str:
    """Rules by falling count, each with its engines."""
    counts = Counter(finding.code for finding in run.findings)
    names = {finding.code: finding.name for finding in run.findings}
    fixable = Counter(f.code for f in run.findings if f.fix and f.fix.applicability == "safe")
    engines: dict[str, Counter[str]] = defaultdict(Counter)
    for finding in run.findings:
        engines[finding.code].update(engine.value for engine in finding.engines)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    if as_json:
        rows = [
            {"code": code, "name": names[code], "count": count, "fixable": fixable[code], "engines": engines[code]}
            for code, count in ranked
        ]
        return json.dumps(rows, indent=2) + "\n"
    width = max((len(str(count)) for count in counts.values()), default=1)
    lines = []
    for code, count in ranked:
        per_engine = ", ".join(f"{engine} {number}" for engine, number in sorted(engines[code].items()))
        mark = "[*]" if fixable[code] else "[ ]"
        lines.append(f"{count:>{width}}\t{code}\t{mark} {names[code]}" + (f" ({per_engine})" if per_engine else ""))
    return "".join(line + "\n" for line in lines)
