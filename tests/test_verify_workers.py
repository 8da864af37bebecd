"""Each fault a target can commit, in a batch of good targets: the others answer, it fails clearly, nothing is left."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tsdyn_lint.verify.spawn import Job, Result, Workers, can_fork

GOOD = "import torch\nexample = torch.nn.Linear(2, 2), (torch.ones(1, 2),)\n"
FORWARD = """\
import ctypes, os, subprocess, sys, torch
from torch import nn

class Bad(nn.Module):
    def forward(self, x):
        {body}
        return x

example = Bad(), (torch.ones(1),)
"""
FAULTS = {
    "segfault": ("ctypes.string_at(0)", "crash", "SIGSEGV"),
    "endless": ("\n        while True: pass", "timeout", "time limit"),
    "exit": ("os._exit(5)", "crash", "exited with code 5"),
    "quits-quietly": ("os._exit(0)", "crash", "without an answer"),
    "memory": ("\n        kept = []\n        while True: kept.append(torch.ones(2**22))", "memory", "memory limit"),
    "kills-the-template": ("os.kill(os.getppid(), 9)", "crash", "template"),
    "closed-pipe": ("os.closerange(3, 256)", "crash", "during eager"),
}
LEFTOVER = "subprocess.Popen(['sleep', '{seconds}'], start_new_session={apart})"
COUNT = 10


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(parallel=2) as running:
        yield running


def job(folder: Path, name: str, text: str, **limits: float) -> Job:
    file = folder / f"{name}.py"
    file.write_text(text)
    return Job(
        {"file": str(file)}, ("eager",), timeout=limits.get("timeout", 60), memory=int(limits.get("memory", 4000))
    )


def batch(workers: Workers, folder: Path, bad: Job) -> Result:
    """Run it in the middle of good ones, which must all succeed."""
    jobs = [job(folder, f"good{n}", GOOD) for n in range(COUNT)]
    jobs.insert(COUNT // 2, bad)
    results = dict(workers.run(jobs))
    assert len(results) == COUNT + 1
    failed = results.pop(COUNT // 2)
    assert all(r.failure is None and r.seen["eager"]["ok"] for r in results.values())
    return failed


def running(words: str) -> list[int]:
    """Processes with these words on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if words in line:
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(not can_fork(), reason="the template road needs fork")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_that_targets_result(workers: Workers, tmp_path: Path, fault: str) -> None:
    body, kind, words = FAULTS[fault]
    bad = job(tmp_path, "bad", FORWARD.format(body=body), timeout=4 if kind == "timeout" else 60, memory=600)
    result = batch(workers, tmp_path, bad)
    assert result.failure is not None
    assert result.failure[0] == kind and words in result.failure[1]


@pytest.mark.skipif(not can_fork(), reason="the template road needs fork")
def test_an_exception_at_import_is_told(workers: Workers, tmp_path: Path) -> None:
    result = batch(workers, tmp_path, job(tmp_path, "bad", "import no_such_package_anywhere\n"))
    assert result.failure is not None
    assert result.failure[0] == "build" and "no_such_package_anywhere" in result.failure[1]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("apart", [False, True])
def test_left_over_children_are_killed(workers: Workers, tmp_path: Path, apart: bool) -> None:
    seconds = 987_000 + os.getpid() % 1000 + apart
    body = LEFTOVER.format(seconds=seconds, apart=apart)
    result = batch(workers, tmp_path, job(tmp_path, "bad", FORWARD.format(body=body)))
    assert result.failure is None and result.seen["eager"]["ok"]
    deadline = time.monotonic() + 5
    while running(f"sleep {seconds}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(f"sleep {seconds}")


@pytest.mark.skipif(not can_fork(), reason="the template road needs fork")
def test_what_a_target_prints_is_kept_and_its_input_is_empty(workers: Workers, tmp_path: Path) -> None:
    body = "print('said', repr(sys.stdin.read()))"
    result = batch(workers, tmp_path, job(tmp_path, "talks", FORWARD.format(body=body)))
    assert result.failure is None
    assert "said ''" in result.log


@pytest.mark.skipif(not can_fork(), reason="the template road needs fork")
def test_the_network_is_cut_where_the_system_allows(workers: Workers, tmp_path: Path) -> None:
    body = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    result = batch(workers, tmp_path, job(tmp_path, "calls", FORWARD.format(body=body)))
    error = result.seen["eager"]["error"]
    assert result.network in ("cut", "open") and error is not None
    assert result.network == "open" or "unreachable" in error["message"]


@pytest.mark.slow
def test_the_plain_road_ends_an_endless_loop(tmp_path: Path) -> None:
    endless = job(tmp_path, "endless", FORWARD.format(body="\n        while True: pass"), timeout=3)
    with Workers(parallel=2, fork=False) as plain:
        results = dict(plain.run([job(tmp_path, "good", GOOD), endless]))
    assert results[0].failure is None and results[0].seen["eager"]["ok"]
    assert results[1].failure is not None and results[1].failure[0] == "timeout"
