"""The command line: options in, an exit code out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from tsdyn_lint import __version__
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Confidence, Engine, Finding


@click.command()
@click.version_option(__version__, prog_name="tsdyn-lint")
@click.option("--engine", default="dynamo,recompile,script,trace,export")
@click.option("--torch-version", default="2.13")
@click.option("-o", "--output-format", default="concise")
@click.option("--min-confidence", default="likely")
@click.option("--isolated", is_flag=True)
@click.option("--no-cache", is_flag=True)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
def main(
    engine: str, torch_version: str, output_format: str, min_confidence: str, paths: tuple[Path, ...], **_: Any
) -> None:
    """Flags the lines that break a PyTorch capture."""
    from tsdyn_lint.rulebook import load_rules
    from tsdyn_lint.session import lint
    from tsdyn_lint.source import read_source

    rulebook = load_rules()
    major, minor = torch_version.split(".")[:2]
    settings = Settings(
        Path.cwd(),
        frozenset(map(Engine, engine.split(","))),
        (int(major), int(minor)),
        selected=rulebook.codes,
        min_confidence=Confidence(min_confidence),
    )
    files: list[Path] = []
    for path in paths or (Path("."),):
        files.extend(sorted(path.rglob("*.py")) if path.is_dir() else [path])
    findings = lint([read_source(file.absolute()) for file in files], settings, rulebook)
    if output_format == "json":
        print(json.dumps([as_json(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            engines = ",".join(finding.engines)
            place = f"{finding.filename}:{finding.start.row}:{finding.start.column}"
            print(f"{place}: {finding.code} {finding.message} [{engines}]")
    sys.exit(1 if any(finding.severity.fails for finding in findings) else 0)


def as_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity,
        "filename": finding.filename,
        "location": {"row": finding.start.row, "column": finding.start.column},
        "end_location": {"row": finding.end.row, "column": finding.end.column},
        "engines": [engine.value for engine in finding.engines],
        "confidence": finding.confidence,
        "gb": list(finding.gb),
        "entry": finding.entry,
    }
