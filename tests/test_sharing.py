"""Objects that several entry points have in common are one, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.calls import Calls
from tsdyn_lint.infer.sharing import Sharing
from tsdyn_lint.infer.values import UNKNOWN, Const, Instance, Method, Seq, Value
from tsdyn_lint.judge import judge
from tsdyn_lint.rulebook import load_rules
from tsdyn_lint.source import make_source

CLASS: Any = object()
OTHER: Any = object()


def part(size: int, **attrs: Value) -> Instance:
    return Instance(CLASS, "", {"size": Const(size), **attrs}, True, True)


def model(*parts: Value, cls: Any = OTHER) -> Instance:
    return Instance(cls, "", {f"part{n}": value for n, value in enumerate(parts)}, True, True)


def test_what_looks_like_an_earlier_object_gives_way_to_it() -> None:
    sharing = Sharing({}, {})
    first = sharing.shared(model(part(3)))
    second = sharing.shared(model(part(3)))
    assert second is first
    third = sharing.shared(model(part(3), part(4)))
    assert third is not first
    assert third.attrs["part0"] is first.attrs["part0"]
    assert third.attrs["part1"].attrs["size"].value == 4  # type: ignore[union-attr]


def test_two_parts_stay_two_and_one_stays_one() -> None:
    sharing = Sharing({}, {})
    alone = sharing.shared(model(part(3)))
    two = sharing.shared(model(part(3), part(3)))
    assert two.attrs["part0"] is alone.attrs["part0"]
    assert two.attrs["part1"] is not two.attrs["part0"]
    one = part(3)
    again = sharing.shared(model(one, one))
    assert again is not two
    assert again.attrs["part0"] is again.attrs["part1"]


def test_the_earlier_object_is_as_new_when_it_takes_a_place() -> None:
    sharing = Sharing({}, {})
    cache = Seq("list", [], UNKNOWN)
    first = sharing.shared(model(part(3, cache=cache)))
    cache.items = [Const(1)]
    first.attrs["part0"].attrs["size"] = Const(5)  # type: ignore[union-attr]
    second = sharing.shared(model(part(3, cache=Seq("list", [], UNKNOWN))))
    assert second is first
    assert cache.items == []
    assert second.attrs["part0"].attrs["size"].value == 3  # type: ignore[union-attr]


def test_objects_that_hold_each_other_are_compared() -> None:
    sharing = Sharing({}, {})

    def bound() -> Instance:
        inner = part(3)
        whole = model(inner)
        inner.attrs["call"] = Method(whole, "forward")
        return whole

    first = sharing.shared(bound())
    assert sharing.shared(bound()) is first


FILE = """
import torch
from torch import nn

class Config:
    def __init__(self):
        self.size = 3

class Part(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.size = config.size

    def forward(self, x: torch.Tensor):
        return x * self.size

class First(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.part = Part(config)

    def forward(self, x: torch.Tensor):
        return self.part(x.relu())

class Second(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.inner = Part(config)

    def forward(self, x: torch.Tensor):
        return self.inner(x.relu())
"""


def test_a_call_of_a_shared_part_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    walk = Calls.walk_function

    def noted(self: Calls, func: Any, *others: Any) -> Value:
        if not self.muted:
            walked.append(func.function.qualname)
        return walk(self, func, *others)

    monkeypatch.setattr(Calls, "walk_function", noted)
    source = make_source(Path("/project/m.py"), FILE.encode())
    judge([source], Settings(Path("."), frozenset(Engine)), load_rules(), 1)
    assert walked == ["Part.forward", "First.forward", "Second.forward"]


HELPER = """
import numpy as np
import torch

def scale(x: torch.Tensor, exact: bool = False):
    if exact:
        return torch.from_numpy(np.frexp(x.numpy())[0])
    return x
"""
CALLERS = """
import torch
from torch import nn
from helper import scale

class First(nn.Module):
    def forward(self, x: torch.Tensor):
        return scale(x.relu(), True) + scale(x.relu(), True)

class Second(nn.Module):
    def forward(self, x: torch.Tensor):
        return scale(x.relu(), True)
"""


def test_each_call_is_told_of_that_turns_on_what_another_file_does(tmp_path: Path) -> None:
    sources = []
    for name, text in (("helper.py", HELPER), ("m.py", CALLERS)):
        (tmp_path / name).write_text(text)
        sources.append(make_source(tmp_path / name, text.encode()))
    findings = judge(sources, Settings(tmp_path, frozenset(Engine)), load_rules(), 1).findings
    found = [(f.start.row, f.start.column) for f in findings if f.filename.endswith("m.py") and f.code == "TSD315"]
    assert found == [(8, 16), (8, 40), (12, 16)]
