"""The same file judged for each torch version: what `tests/torch_versions.py` sees real torches do."""

from __future__ import annotations

import json

import pytest
from conftest import Project

MODEL = """import heapq
import random
import time

import torch
import torch.nn as nn

COUNT = 0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        global COUNT
        COUNT += 1
        start = time.time()
        n = len(self.state_dict())
        r = random.random()
        order = [3, 1]
        heapq.heapify(order)
        return self.layer(x) * r * n


compiled = torch.compile(Model())
"""
ROWS = {"counter": 18, "time": 19, "state_dict": 20, "random": 21, "heapq": 23}
COMMON = {"time": (["dynamo"], ["GB0007"])}
RANDOM, COUNTER, HEAPQ = (["dynamo"], ["GB0007"]), (["recompile"], []), (["dynamo"], ["GB0007"])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "2.12",
            {**COMMON, "state_dict": (["dynamo"], ["GB0059"]), "random": RANDOM, "counter": COUNTER, "heapq": HEAPQ},
        ),
        ("2.13", {**COMMON, "random": RANDOM, "counter": COUNTER, "heapq": HEAPQ}),
        ("2.14", {**COMMON, "state_dict": (["dynamo"], ["GB0467"]), "heapq": HEAPQ}),
        ("2.15", {"time": (["dynamo"], ["GB9193"]), "state_dict": (["dynamo"], ["GB0467"])}),
    ],
)
def test_verdicts_follow_the_version(
    project: Project, version: str, expected: dict[str, tuple[list[str], list[str]]]
) -> None:
    project.write("model.py", MODEL)
    out = project.run("--engine", "dynamo,recompile", "--torch-version", version, "-o", "json").stdout
    names = {row: name for name, row in ROWS.items()}
    found = {names[f["location"]["row"]]: (f["engines"], f["gb"]) for f in json.loads(out)}
    assert found == expected


ASSIGNED = """import torch
import torch.nn as nn


class Scatter(nn.Module):
    def forward(self, x, index):
        out = torch.zeros_like(x)
        out[0, index.argmax()] = x.sum()
        return out
"""


@pytest.mark.parametrize(("version", "engines"), [("2.13", ["dynamo", "export"]), ("2.14", ["dynamo"])])
def test_an_item_assigned_by_a_tensor_exports_since_2_14(project: Project, version: str, engines: list[str]) -> None:
    project.write("model.py", ASSIGNED)
    out = project.run("--engine", "dynamo,export", "--torch-version", version, "-o", "json").stdout
    (finding,) = json.loads(out)
    assert finding["code"] == "TSD211"
    assert finding["engines"] == engines
