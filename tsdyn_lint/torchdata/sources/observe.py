"""Statements -> the graph breaks that a real `torch.compile` gives for each. Runs in a process of its own: `python
-m ...observe`."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection
from typing import Any

_SECONDS, _GROUP = 120, 8
_PRELUDE = """
import {imports}
import torch
class Obj: pass
@dataclasses.dataclass
class Point:
    a: int = 1
    b: int = 2
class Colour(enum.Enum):
    RED = 1
point = Point()
log = logging.getLogger('probe')
text = io.StringIO('1')
buffer = io.BytesIO()
saved = io.BytesIO()
torch.save(torch.ones(1), saved)
saved.seek(0)
gen = torch.Generator()
def helper(*args): return None
def helper2(a, b): return a
def helper_sum(a): return a.sum()
"""
_FUNCTION = """
def probe(x, ints, mod, obj, xs, d, n, s):
    z = x + 1
    {code}
    return z + 1
"""
_MODULES = (
    "abc ast array asyncio atexit base64 bisect cmath collections concurrent.futures contextlib "
    "contextvars copy csv ctypes "
    "dataclasses datetime decimal enum fnmatch fractions functools gc getpass glob hashlib html heapq "
    "importlib.util inspect io "
    "itertools json locale logging math multiprocessing numbers numpy operator os pathlib pickle platform "
    "pprint queue random re "
    "secrets shlex shutil socket statistics string struct subprocess sys tempfile textwrap threading time "
    "timeit traceback types typing "
    "uuid warnings weakref zlib torch.utils.checkpoint torch.nested torch.distributions torch.optim "
    "torch.utils.dlpack torch.testing "
    "torch.onnx torch._dynamo torch.profiler torch.nn.attention torch.distributed torch.func"
)


class _Tap(logging.Handler):
    """Collects the break reasons that torch writes to its structured trace."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.breaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        artifact = getattr(record, "metadata", {}).get("artifact")
        if isinstance(artifact, dict) and artifact.get("name") == "dynamo_graph_break_reason":
            payload = str(getattr(record, "payload", ""))
            found = re.search(r"gb(\d{4})", payload)
            if "<torchdata probe>" in payload:
                self.breaks.append(f"GB{found[1]}" if found else "GB")


def observe(statements: list[str], likely: Collection[str] = ()) -> list[str]:
    """Per statement: `ok`, the first GB id, `eager:Error` where it fails without Dynamo, `raise:Error` where only
    with it, `dies` where the process ends or hangs.

    Statements in `likely` are expected to be fine: they are compiled several at a time, and one by one only where such
    a group is not.
    """
    outcomes: dict[str, str] = {}
    together = [code for code in statements if code in likely]
    groups = [together[i : i + _GROUP] for i in range(0, len(together), _GROUP)]
    groups += [[code] for code in statements if code not in likely]
    command = [sys.executable, "-m", "tsdyn_lint.torchdata.sources.observe"]
    while groups:
        run = subprocess.run(command, input=json.dumps(groups), stdout=subprocess.PIPE, text=True, check=False)
        done = [line.split("\t") for line in run.stdout.splitlines()]
        for group, found in zip(groups, done, strict=False):
            outcomes.update(zip(group, found, strict=True))
        groups = groups[len(done) :]
        if run.returncode and groups:
            died = groups.pop(0)
            if len(died) == 1:
                outcomes[died[0]] = "dies"
            else:
                groups = [[code] for code in died] + groups
    return [outcomes[code] for code in statements]


def _serve(groups: list[list[str]], write: Callable[[str], object]) -> None:
    """Write the outcomes of a group as a line, tabs between, as they come."""
    import torch

    tap = _Tap()
    trace = logging.getLogger("torch.__trace")
    trace.addHandler(tap)
    trace.setLevel(logging.DEBUG)
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    names: dict[str, Any] = {}
    exec(_PRELUDE.format(imports=_MODULES.replace(" ", ", ")), names)
    for group in groups:
        signal.alarm(_SECONDS)
        outcomes = [_one(torch, "; ".join(group), names, tap)]
        if len(group) > 1:
            fine = outcomes == ["ok"]
            outcomes = ["ok"] * len(group) if fine else [_one(torch, code, names, tap) for code in group]
        write("\t".join(outcomes) + "\n")


def _one(torch: Any, code: str, names: dict[str, Any], tap: _Tap) -> str:
    source = _FUNCTION.format(code=code.replace("; ", "\n    "))
    scope = dict(names)
    exec(compile(source, "<torchdata probe>", "exec"), scope)
    probe = scope["probe"]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            probe(**_inputs(torch, scope))
        except Exception as error:
            return f"eager:{type(error).__name__}"
        torch._dynamo.reset()
        tap.breaks.clear()
        try:
            torch.compile(probe, backend="eager")(**_inputs(torch, scope))
        except Exception as error:
            return tap.breaks[0] if tap.breaks else f"raise:{type(error).__name__}"
        finally:
            torch.set_grad_enabled(True)
    return tap.breaks[0] if tap.breaks else "ok"


def _inputs(torch: Any, scope: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    return {
        "x": torch.rand(2, 3), "ints": torch.tensor([0, 1]), "mod": torch.nn.Linear(3, 3), "obj": scope["Obj"](),
        "xs": [1, 2, 3], "d": {"a": 1}, "n": 3, "s": "ab",
    }  # fmt: skip


def main() -> None:
    """JSON list of groups of statements on standard input -> a line of outcomes a group on standard output."""
    out = sys.stdout
    _serve(json.load(sys.stdin), lambda line: (out.write(line), out.flush()))


if __name__ == "__main__":
    main()
