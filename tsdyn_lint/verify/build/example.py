"""A Python file that ends in `example = Model(), (args...)`: a rule page's block, as something to probe."""

from __future__ import annotations

import itertools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.build.variants import others, sweep
from tsdyn_lint.verify.probes.places import Project
from tsdyn_lint.verify.probes.subject import Call, Subject, seed

NUMBERS = itertools.count()


def load(filename: str, device: str = "cpu") -> Subject:
    """The subject of a file. It is run anew for each fresh instance, so no state survives a probe.

    Module-level names it may set: `second = (args...)`, or a list of such tuples, for the calls to compare on and to
    count recompiles with; `repeat = N`, the number of times the example itself is called for recompiles.
    Raises AttributeError without an `example`, and whatever the file raises.
    """
    path = os.path.abspath(filename)
    module = run_file(path)
    _, args, kwargs = spread(module.example)
    example = on_device(Call(args, kwargs), device)
    args, kwargs = example.args, example.kwargs
    seconds = tuple(
        on_device(Call(tuple(args), {}, f"second inputs {index}" if index > 1 else "second inputs", "given"), device)
        for index, args in enumerate(_listed(getattr(module, "second", None)), 1)
    )
    repeat = getattr(module, "repeat", None)
    again = Call(args, kwargs, "the example again", "again")
    calls = (again,) * (repeat - 1 if repeat else 2) + seconds if repeat or seconds else sweep(example)

    def make() -> Callable[..., Any]:
        function: Callable[..., Any] = spread(run_file(path).example)[0]
        return function.to(device) if isinstance(function, torch.nn.Module) and device != "cpu" else function

    about = {"device": device, "torch": torch.__version__.partition("+")[0], "synthesised": False}
    return Subject(make, example, Project((path,)), seconds or others(example), calls, about=about)


def on_device(call: Call, device: str) -> Call:
    """The same call with its tensors there."""
    if device == "cpu":
        return call
    args, kwargs = pytree.tree_map(
        lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, (call.args, call.kwargs)
    )
    return Call(args, kwargs, call.label, call.kind, call.change)


def run_file(path: str) -> types.ModuleType:
    """Run the file as a module under a new name."""
    seed(0)
    with open(path, encoding="utf-8") as stream:
        code = compile(stream.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType(f"tsdyn_example_{next(NUMBERS)}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)
    return module


def spread(example: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """`model, args` or `model, args, kwargs`, arguments always in a tuple."""
    model, args, *rest = example
    return model, args if isinstance(args, tuple) else (args,), dict(rest[0]) if rest else {}


def _listed(second: Any) -> list[Any]:
    if second is None:
        return []
    items = second if isinstance(second, list) else [second]
    return [item if isinstance(item, tuple) else (item,) for item in items]
