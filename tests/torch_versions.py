"""Runs every row of the version table on the installed torch: `python tests/torch_versions.py`. A developer runs
it under each torch,
CI under the pinned one."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tsdyn_lint.torchdata.load import load

COUNT = 0


def observed(torch: Any) -> dict[tuple[str, str], str]:
    """(row name, engine) -> `ok`, a GB id, or the verdict that was seen."""
    import random

    class Weighted(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            n = len(self.state_dict())
            return self.layer(x) * n

    class Double(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    def draw(x: Any) -> Any:
        return x * random.random()

    def seed(x: Any) -> Any:
        random.seed(0)
        return x + 1

    def sample(x: Any) -> Any:
        return x + random.sample([1, 2, 3], 1)[0]

    def shuffle(x: Any) -> Any:
        order = [0, 1]
        random.shuffle(order)
        return x[order]

    def drop(x: Any) -> Any:
        if random.random() < 0.5:
            return x + 1
        return x - 1

    def repeat(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x + 1
        return x

    def text(x: Any) -> Any:
        y = x + 1
        return y, str(y)

    def caught(x: Any) -> Any:
        try:
            return x @ torch.ones(7, 7)
        except RuntimeError:
            return x + 1

    def assign(x: Any, index: Any) -> Any:
        out = torch.zeros(2, 3)
        for b in range(2):
            out[b, index[b]] = x[b]
        return out

    def count(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x + 1

    x = torch.rand(2, 2)
    return {
        ("random.random", "dynamo"): dynamo(torch, draw, x),
        ("random.seed", "dynamo"): dynamo(torch, seed, x),
        ("random.sample", "dynamo"): dynamo(torch, sample, x),
        ("random.shuffle", "dynamo"): dynamo(torch, shuffle, x),
        ("branch-on-random.random", "dynamo"): dynamo(torch, drop, x),
        ("range-of-tensor", "dynamo"): dynamo(torch, repeat, x, torch.tensor(2)),
        ("str-of-tensor", "dynamo"): dynamo(torch, text, x),
        ("torch-error-in-try", "dynamo"): dynamo(torch, caught, x),
        ("torch.nn.Module.state_dict", "dynamo"): dynamo(torch, Weighted(), x),
        ("global-counter", "recompile"): recompiles(torch, count, x),
        ("tensor-index-assignment", "export"): export(torch, assign, torch.rand(2), torch.tensor([0, 2])),
        ("torch.autograd.Function.apply", "script"): script(torch, Double),
    }


class Tap(logging.Handler):
    """Ids of the breaks and errors in torch's structured trace."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.ids: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        artifact = getattr(record, "metadata", {}).get("artifact")
        if isinstance(artifact, dict) and artifact.get("name") in {"dynamo_graph_break_reason", "dynamo_error"}:
            found = re.search(r"gb(\d{4})", str(getattr(record, "payload", "")))
            self.ids.append(f"GB{found[1]}" if found else "GB?")


def dynamo(torch: Any, function: Callable[..., Any], *args: Any) -> str:
    """`ok`, or the id of the first break."""
    tap, trace = Tap(), logging.getLogger("torch.__trace")
    trace.addHandler(tap)
    trace.setLevel(logging.DEBUG)
    torch._dynamo.reset()
    try:
        torch.compile(function, backend="eager")(*args)
    except Exception:
        return tap.ids[0] if tap.ids else "raises"
    finally:
        trace.removeHandler(tap)
    return tap.ids[0] if tap.ids else "ok"


def recompiles(torch: Any, function: Callable[..., Any], x: Any) -> str:
    """Whether three equal calls compile three times."""
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(inputs)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    for _ in range(3):
        compiled(x)
    return "recompiles" if len(graphs) == 3 else "ok"


def export(torch: Any, function: Callable[..., Any], *args: Any) -> str:
    class Wrapped(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *values: Any) -> Any:
            return function(*values)

    try:
        torch.export.export(Wrapped(), args)
    except Exception:
        return "raises"
    return "ok"


def script(torch: Any, function: Any) -> str:
    class Applies(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x):  # type: ignore[no-untyped-def]
            return function.apply(x)

    try:
        torch.jit.script(Applies())
    except Exception:
        return "raises"
    return "ok"


def main() -> int:
    """Prints one line a row; the exit code says whether the table is right for this torch."""
    import torch

    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    data = load((major, minor))
    wrong = 0
    for (name, engine), seen in observed(torch).items():
        expected = data.verdicts(name).get(engine, "ok")
        wrong += seen != expected
        print(
            "ok   " if seen == expected else "WRONG",
            f"{name} {engine}: table {expected}, torch {torch.__version__} {seen}",
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
