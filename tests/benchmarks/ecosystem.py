"""What a change of the rules or the engine adds and removes on real packages. Not part of CI.

usage: ecosystem.py SAVED.json [--update] [--min-confidence LEVEL] FOLDER...

Each FOLDER is an unpacked package (`timm/` of its wheel, say). Every one is linted whole, all engines on, and its
findings are compared with those in SAVED.json: lines that appear are printed with `+`, those that vanish with `-`.
With --update the file is written anew. Findings are told apart by rule, place and engines; a package whose folder is
not given keeps what is saved of it. Exit code 1 when something differs and --update is not given.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ENGINES = "dynamo,recompile,script,trace,export"
Saved = dict[str, dict[str, str]]
"""Package -> `path:row:column code engines` -> message."""


def main() -> int:
    """Compare the packages with the saved findings, and print what each costs in time and memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saved", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--min-confidence", default="likely", choices=["certain", "likely", "possible"])
    arguments = parser.parse_args()
    saved: Saved = json.loads(arguments.saved.read_text()) if arguments.saved.exists() else {}
    differs = False
    for folder in arguments.folders:
        found = lint(folder, arguments.min_confidence)
        differs |= compare(folder.name, saved.get(folder.name, {}), found)
        saved[folder.name] = found
    if arguments.update:
        arguments.saved.write_text(json.dumps(saved, indent=0, sort_keys=True) + "\n")
        return 0
    return int(differs)


def lint(folder: Path, confidence: str) -> dict[str, str]:
    """The findings of a package; prints their number per thousand lines, CPU seconds and peak memory of the run."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "tsdyn_lint", "--isolated", "--no-cache", "--engine", ENGINES]
    command += ["--min-confidence", confidence, "--output-format", "json", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        print(f"{folder.name}: exit code {run.returncode}\n{run.stderr[-2000:]}")
        if not run.stdout:
            raise SystemExit(2)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    found = {}
    for finding in json.loads(run.stdout):
        at = finding["location"]
        path = Path(finding["filename"]).resolve().relative_to(folder.resolve())
        name = f"{path}:{at['row']}:{at['column']} {finding['code']} {','.join(finding['engines'] or [])}"
        found[name] = finding["message"]
    lines = sum(text.count(b"\n") for text in (path.read_bytes() for path in folder.rglob("*.py")))
    print(
        f"{folder.name}: {len(found)} findings, {1000 * len(found) / max(lines, 1):.2f} per thousand of {lines} lines; "
        f"{cpu:.0f} s CPU, {time.monotonic() - began:.0f} s, peak of one process {used.ru_maxrss / 1024:.0f} MiB"
    )
    return found


def compare(package: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Prints what differs and by how much each rule changed."""
    gone, new = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    for sign, names, table in (("-", gone, before), ("+", new, now)):
        for name in names:
            print(f"{sign} {package}/{name} {table[name][:120]}")
    if gone or new:
        print(f"{package}: {len(new)} added, {len(gone)} removed")
    return bool(gone or new)


if __name__ == "__main__":
    raise SystemExit(main())
