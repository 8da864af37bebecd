"""What a run costs beside its peers, in processor seconds measured in the same run. Not part of CI.

usage: speed.py [--rounds N] [--torchfix COMMAND] [--models FOLDER] [--project FOLDER]

`--models` is a folder of model files inside its unpacked package (`timm/models`), `--project` a large package
(`transformers`); `pip download --no-deps` and `unzip` give both. A row runs our side and its peer in turn, N times, and
prints the median of each and of their ratio. Both are copied first: caches are made, and a file is edited. Every
process finds its bytecode, as in an installed tool, in a folder that is made for the run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
TOOL = [sys.executable, "-m", "tsdyn_lint"]
LINT = [*TOOL, "--exit-zero", "-q"]
COLD = [*LINT, "--no-cache"]
ALL = ["--engine", "dynamo,recompile,script,trace,export"]
RUFF = [sys.executable, "-m", "ruff", "check", "--isolated", "--exit-zero", "-q"]
MODULE = re.compile(rb"^class \w+\(nn\.Module\)", re.MULTILINE)
PARSE = """
import sys, time, libcst
from pathlib import Path
texts = [Path(name).read_text(encoding="utf-8") for name in sys.stdin.read().splitlines()]
began = time.process_time()
for text in texts:
    libcst.parse_module(text)
print(time.process_time() - began)
"""


@dataclass(frozen=True)
class Cost:
    """Processor and wall seconds of a command with all its processes, and the peak memory of the largest, in MiB."""

    cpu: float
    wall: float = 0.0
    memory: float = 0.0


Side = Callable[[], Cost]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def cost(*command: str | Path, folder: Path | None = None) -> Cost:
    """Runs a command to its end; raises where it does not succeed."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, env=ENVIRONMENT)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode} of {command[:8]}\n{complaint.decode()[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024)


def parse(files: Sequence[Path]) -> Cost:
    """What `libcst.parse_module` alone takes for the files, in a process of its own."""
    names = "\n".join(map(str, files))
    command = [sys.executable, "-c", PARSE]
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return Cost(float(done.stdout))


def importing(module: str) -> Cost:
    """What a process takes that does nothing but import a module."""
    return cost(sys.executable, "-c", f"import {module}")


def row(name: str, wanted: float, ours: Side, peer: Side, rounds: int) -> Cost:
    """Prints the medians of both sides and of their ratio, beside the ratio wanted; returns our last cost."""
    pairs = [(ours(), peer()) for _ in range(rounds)]
    mine, other = (median(pair[side].cpu for pair in pairs) for side in (0, 1))
    ratio = median(ours.cpu / peer.cpu for ours, peer in pairs)
    print(f"{name:<66} {mine:8.2f} s {other:8.2f} s {ratio:6.2f} (at most {wanted})", flush=True)
    return pairs[-1][0]


def torch_files(folder: Path) -> list[Path]:
    """The Python files of a folder that mention torch, in order."""
    return sorted(path for path in folder.rglob("*.py") if b"torch" in path.read_bytes())


def models_rows(folder: Path, torchfix: str | None, rounds: int) -> None:
    """Start-up, a folder of models, and one of its files of about 400 lines, cold and from the cache."""
    files = torch_files(folder)
    about = f"cold, {len(files)} model files"
    one = min(
        (path for path in files if MODULE.search(path.read_bytes())),
        key=lambda path: abs(path.read_bytes().count(b"\n") - 400),
    )
    alone = folder.parent.parent / "alone" / one.name
    alone.parent.mkdir()
    shutil.copy(one, alone)

    row("--version : import click", 2.5, lambda: cost(*TOOL, "--version"), lambda: importing("click"), rounds)
    single = [*COLD, "-j", "1"]
    peer = lambda: importing("libcst")  # noqa: E731
    row(f"one model ({alone.name}) alone, cold : import libcst", 1.8, lambda: cost(*single, alone), peer, rounds)
    row(f"one model ({one.name}) in its package, cold : import libcst", 1.8, lambda: cost(*single, one), peer, rounds)
    cost(*LINT, one)
    row("the same from the cache : import click", 2.5, lambda: cost(*LINT, one), lambda: importing("click"), rounds)
    row(f"{about}, five engines : parse", 2.3, lambda: cost(*single, *ALL, folder), lambda: parse(files), rounds)
    row(f"{about}, the project's engines : parse", 2.3, lambda: cost(*single, folder), lambda: parse(files), rounds)
    if torchfix is None:
        print("TorchFix is not installed: no row beside it")
    else:
        peer = lambda: cost(torchfix, "--select=ALL", folder)  # noqa: E731
        row(f"{about}, five engines : TorchFix --select=ALL", 0.1, lambda: cost(*single, *ALL, folder), peer, rounds)


def project_rows(folder: Path, rounds: int) -> None:
    """A whole project: cold in two processes, its growth, warm, and warm with one file edited."""
    files = torch_files(folder)
    pair = [*COLD, "-j", "2"]
    cold = row(
        f"cold, {len(files)} torch files : parse", 2.0, lambda: cost(*pair, folder), lambda: parse(files), rounds
    )
    print(f"    wall {cold.wall / cold.cpu:.2f} of CPU (at most 0.6), largest process {cold.memory:.0f} MiB (700)")
    tenth = [path for number, path in enumerate(sorted(folder.rglob("*.py"))) if number % 10 == 0]
    row("growth: all files : a tenth of them", 11, lambda: cost(*pair, folder), lambda: cost(*pair, *tenth), rounds)

    cost(*LINT, folder)
    cost(*RUFF, folder)
    warm, ruff = (lambda: cost(*LINT, folder)), (lambda: cost(*RUFF, folder))
    row("warm, nothing changed : ruff check, warm", 1.5, warm, ruff, max(rounds, 5))
    models = [path for path in files if path.name.startswith("modeling_")] or files
    edited = []
    for model in models[:: max(len(models) // 5, 1)][:5]:
        with model.open("a", encoding="utf-8") as text:
            text.write("\n\ndef edited(x):\n    return x\n")
        edited.append(cost(*LINT, folder).cpu - cost(*LINT, folder).cpu)
    print(
        f"warm, one model file changed: {median(edited):.2f} s beyond warm (at most 0.8), {max(edited):.2f} s at most"
    )


def main() -> None:
    """Measure what was given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--project", type=Path)
    parser.add_argument(
        "--torchfix", default=shutil.which("torchfix"), help="TorchFix's command, by default the one installed"
    )
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = f"{scratch}/bytecode"
        cost(*COLD, *ALL, ROOT / "fixtures" / "models")
        if arguments.torchfix:
            cost(arguments.torchfix, "--version")
        if arguments.models:
            models = arguments.models.resolve()
            shutil.copytree(models.parent, Path(scratch) / models.parent.name)
            models_rows(Path(scratch) / models.parent.name / models.name, arguments.torchfix, arguments.rounds)
        if arguments.project:
            project = arguments.project.resolve()
            shutil.copytree(project, Path(scratch) / project.name)
            project_rows(Path(scratch) / project.name, arguments.rounds)


if __name__ == "__main__":
    main()
