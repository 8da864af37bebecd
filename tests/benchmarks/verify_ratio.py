"""What the confirm stage costs beside a bare script: `python tests/benchmarks/verify_ratio.py [FILE...]`.

For each file with an `example` (blocks of the rule pages by default) a process forked from one that has imported torch
makes a bare run: eager, `torch.compile` with a no-op backend, script, trace and export, once each. Another process
forked from the same one runs all probes. Printed: processor seconds of both, their ratio, and what is beyond eager.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from tsdyn_lint.rulebook import load_rules  # noqa: E402
from tsdyn_lint.verify.build.example import load  # noqa: E402
from tsdyn_lint.verify.probes import PROBES  # noqa: E402
from tsdyn_lint.verify.probes import load as load_probe  # noqa: E402
from tsdyn_lint.verify.probes.subject import Subject  # noqa: E402
from tsdyn_lint.verify.worker import preload  # noqa: E402

COUNT = 16


def bare(subject: Subject) -> float:
    """Seconds for the five captures, each once."""
    steps: tuple[Callable[[Any, Any], object], ...] = (
        lambda model, call: model(*call.args, **call.kwargs),
        lambda model, call: torch.compile(model, backend="eager")(*call.args, **call.kwargs),
        lambda model, call: torch.jit.script(model),
        lambda model, call: torch.jit.trace(model, call.args, check_trace=False),  # type: ignore[no-untyped-call]
        lambda model, call: torch.export.export(model, call.args, call.kwargs or None, strict=False),
    )
    total = 0.0
    for step in steps:
        model, call = subject.fresh(), subject.example.copy()
        begin = time.process_time()
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            step(model, call)
        total += time.process_time() - begin
    torch._dynamo.reset()
    return total


def confirm(subject: Subject) -> dict[str, float]:
    """Seconds of each probe."""
    seconds = {}
    for name in PROBES:
        begin = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            load_probe(name)(subject)
        seconds[name] = time.process_time() - begin
    return seconds


def forked(measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What a child process measures, as a worker's child would."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(measure()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        told: dict[str, float] = json.loads(stream.read())
    os.wait()
    return told


def page_files(folder: Path) -> list[Path]:
    """Examples and fixed examples of some pages, as files: what breaks and what does not."""
    files = []
    for rule in list(load_rules())[::4]:
        for number, example in enumerate(rule.examples[:2]):
            if rule.is_about_captures:
                files.append(folder / f"{rule.code}_{'fixed' if example.fixed else number}.py")
                files[-1].write_text(example.code, encoding="utf-8")
    return files[:COUNT]


def main() -> None:
    """Measure and print a line a file, then the medians."""
    preload()
    gc.collect()
    gc.freeze()  # as the template does, so that no collection of its objects falls into either
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files = list(map(Path, sys.argv[1:])) or page_files(Path(folder))
        ratios, beyond = [], []
        for file in files:
            plain = forked(lambda: {"bare": bare(load(str(file)))})["bare"]  # noqa: B023
            probes = forked(lambda: confirm(load(str(file))))  # noqa: B023
            whole = sum(probes.values())
            ratios.append(whole / plain)
            beyond.append(whole - probes["eager"])
            detail = " ".join(f"{name} {seconds:.2f}" for name, seconds in probes.items())
            print(f"{file.name:<16} bare {plain:.2f} s, confirm {whole:.2f} s, ratio {ratios[-1]:.1f} ({detail})")
    print(f"median ratio {statistics.median(ratios):.2f}, median beyond eager {statistics.median(beyond):.2f} s")


if __name__ == "__main__":
    main()
