"""What the measure stage costs beside a bare benchmark: `python tests/benchmarks/measure_ratio.py [FILE:CLASS...]`.

The bare one compiles once cold and once warm after a throw-away compile, and times eager, compiled and eager again in
as many interleaved rounds. Each is a process of its own, forked from one that has imported torch. Printed: processor
seconds of both, compilers that they started included, and the ratio.
"""

from __future__ import annotations

import json
import logging
import os
import random
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
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch  # noqa: E402

from tsdyn_lint.verify.build.subjects import build  # noqa: E402
from tsdyn_lint.verify.measured import MEASURED  # noqa: E402
from tsdyn_lint.verify.probes import load  # noqa: E402
from tsdyn_lint.verify.probes.subject import Subject  # noqa: E402
from tsdyn_lint.verify.worker import preload  # noqa: E402

FIXTURES = ROOT / "fixtures/measure"
TARGETS = ("pointwise:Pointwise", "mlp:MLP", "conv_bn_relu:ConvBnRelu", "attention:Attention", "same_speed:SameSpeed")
ROUNDS, ROUND_SECONDS = 25, 0.02


def subject(target: str) -> Subject:
    """The class of a file as the worker would build it."""
    name, _, kind = target.rpartition(":")
    file = Path(name) if name.endswith(".py") else FIXTURES / f"{name}.py"
    place = {"file": str(file), "root": str(file.parent), "module": file.stem, "roots": [str(file.parent)]}
    return build({**place, "qualname": kind, "table": {}, "entry": None, "found": True})


def bare(given: Subject) -> None:
    """What one would write by hand: no tsdyn-lint in it."""
    model, call = given.fresh(), given.example.copy()
    torch.compile(lambda x: x.sin() + 1)(torch.ones(64))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
    with torch.no_grad():
        for _ in range(2):  # cold, then warm
            torch._dynamo.reset()
            compiled = torch.compile(model)
            compiled(*call.args, **call.kwargs)
        sides: list[Callable[..., Any]] = [model, compiled, model]
        repeats, times = [], [[], [], []]  # type: ignore[var-annotated]
        for side in sides:
            for _ in range(3):
                side(*call.args, **call.kwargs)
            begin = time.thread_time()
            side(*call.args, **call.kwargs)
            repeats.append(max(1, round(ROUND_SECONDS / (time.thread_time() - begin))))
        for _ in range(ROUNDS):
            for index in random.sample(range(3), 3):
                begin = time.thread_time()
                for _ in range(repeats[index]):
                    sides[index](*call.args, **call.kwargs)
                times[index].append((time.thread_time() - begin) / repeats[index])
    print("bare speedup", statistics.median(times[0]) / statistics.median(times[1]))


def measured(given: Subject) -> None:
    """Every probe of `--verify=measure`."""
    for name in MEASURED:
        if name != "aot":
            load(name)(given)


def seconds(run: Callable[[], None]) -> float:
    """Processor seconds of a child process and its own children."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        run()
        spent = os.times()
        os.write(writing, json.dumps(sum(spent[:4])).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        told = float(json.loads(stream.read()))
    os.wait()
    return told


def main() -> None:
    """A line a target, then the median."""
    preload()
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    ratios = []
    for target in sys.argv[1:] or TARGETS:
        plain = seconds(lambda: bare(subject(target)))  # noqa: B023
        whole = seconds(lambda: measured(subject(target)))  # noqa: B023
        ratios.append(whole / plain)
        print(f"{target:<28} bare {plain:.1f} s, measure {whole:.1f} s, ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
