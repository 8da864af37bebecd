"""Forks a child for each job, reads what it tells, and ends it when time or memory run out. No torch in here.

The child has a process group of its own; whatever it leaves behind is killed with it, also what moved to another
group, since orphans come back to this process (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
POLL_SECONDS, MEMORY_EVERY = 0.02, 0.1


@dataclass
class Child:
    """A job that runs."""

    id: int
    pid: int
    pipe: int
    deadline: float
    memory: int
    started: float = field(default_factory=time.monotonic)
    buffer: bytes = b""
    peak: int = 0
    stopped: str | None = None
    checked: float = 0.0


class Template:
    """Serves jobs from standard input until it closes. `tell` gets one message for each thing that happens."""

    def __init__(
        self,
        tell: Callable[[dict[str, Any]], None],
        parallel: int,
        device: Callable[[str], str] = lambda wanted: wanted,
    ) -> None:
        """`device` turns `auto` into what there is, without touching it."""
        self._tell = tell
        self._device = device
        self._parallel = parallel
        self._waiting: list[dict[str, Any]] = []
        self._running: dict[int, Child] = {}
        self._input = b""
        self._open = True
        self._kernel = ctypes.CDLL(None, use_errno=True)
        self._baseline = sum(memory_of({os.getpid()}).values())

    def serve(self) -> None:
        """Run until there is neither a job nor anyone to send one."""
        with contextlib.suppress(AttributeError):
            self._kernel.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._tell({"ready": True, "pid": os.getpid()})
        while self._open or self._waiting or self._running:
            while self._waiting and len(self._running) < self._parallel:
                self._start(self._waiting.pop(0))
            self._listen()
            for child in list(self._running.values()):
                self._watch(child)

    def _listen(self) -> None:
        pipes = {child.pipe: child for child in self._running.values()}
        sources = [*pipes, *([0] if self._open else [])]
        ready, _, _ = select.select(sources, [], [], POLL_SECONDS if self._running else 0.5)
        for source in ready:
            if source in pipes:
                self._forward(pipes[source])
                continue
            data = os.read(0, 1 << 16)
            if not data:  # whoever asked is gone
                self._open = False
                self._waiting.clear()
                for child in self._running.values():
                    child.stopped = "cancelled"
            self._input += data
            *lines, self._input = self._input.split(b"\n")
            self._waiting += [json.loads(line) for line in lines if line.strip()]

    def _forward(self, child: Child) -> bool:
        """Pass on the child's whole lines; False once its pipe is at an end."""
        try:
            data = os.read(child.pipe, 1 << 16)
        except OSError:
            data = b""
        child.buffer += data
        *lines, child.buffer = child.buffer.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                self._tell({"id": child.id, "says": json.loads(line)})
        return bool(data)

    def _start(self, job: dict[str, Any]) -> None:
        job["device"] = self._device(job.get("device", "cpu"))
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                self._become(job, writing, parent)
            finally:
                os._exit(70)
        os.close(writing)
        os.set_blocking(reading, True)
        limit = job["memory"] * (1 << 20) + self._baseline
        self._running[pid] = Child(job["id"], pid, reading, time.monotonic() + job["timeout"], limit)
        self._tell({"id": job["id"], "pid": pid})

    def _become(self, job: dict[str, Any], writing: int, parent: int) -> None:
        """The child's side: cut off from the terminal, the network and its siblings; never returns."""
        import resource

        from tsdyn_lint.verify.worker import run_job, writer

        os.setsid()
        log = os.open(job["log"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        for child in self._running.values():
            os.close(child.pipe)
        with contextlib.suppress(AttributeError):
            self._kernel.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(70)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        emit = writer(writing)
        emit({"network": "cut" if job.get("device") != "cuda" and self._cut_network() else "open"})
        run_job(job, emit)
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    def _cut_network(self) -> bool:
        """An empty network namespace; where that is refused, proxies that lead nowhere."""
        with contextlib.suppress(AttributeError, OSError):
            if self._kernel.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
                return True
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            os.environ[name] = os.environ[name.upper()] = "http://127.0.0.1:9"
        os.environ["HF_HUB_OFFLINE"] = "1"
        return False

    def _watch(self, child: Child) -> None:
        """See whether it ended, and end it if it went past a limit."""
        now = time.monotonic()
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid == 0 and child.stopped is None:
            if now > child.deadline:
                child.stopped = "timeout"
            elif now - child.checked > MEMORY_EVERY:
                child.checked = now
                used = sum(memory_of(descendants(child.pid)).values())
                child.peak = max(child.peak, used)
                if used > child.memory:
                    child.stopped = "memory"
        if pid == 0 and child.stopped is None:
            return
        kill_group(child.pid)
        if pid == 0:
            _, status = os.waitpid(child.pid, 0)
        self._finish(child, status)

    def _finish(self, child: Child, status: int) -> None:
        del self._running[child.pid]
        self._kill_orphans()
        os.set_blocking(child.pipe, False)
        while self._forward(child):
            continue
        os.close(child.pipe)
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self._tell(
            {
                "id": child.id,
                "end": {
                    "stopped": child.stopped,
                    "signal": signal.Signals(killed).name if killed and child.stopped is None else None,
                    "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "seconds": round(time.monotonic() - child.started, 3),
                    "peak_mb": child.peak >> 20,
                },
            }
        )

    def _kill_orphans(self) -> None:
        """Processes that a finished job left behind under another group: they are this process's children now."""
        for pid in children_of(os.getpid()) - set(self._running):
            kill_group(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def kill_group(pid: int) -> None:
    """Kill a whole process group; a group that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _parents() -> dict[int, int]:
    """Every process and its parent, as far as the system tells (Linux)."""
    found: dict[int, int] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as stream:
                found[int(name)] = int(stream.read().rsplit(")", 1)[1].split()[1])
    return found


def children_of(pid: int) -> set[int]:
    """Its direct children."""
    return {child for child, parent in _parents().items() if parent == pid}


def descendants(pid: int) -> set[int]:
    """The process and everything below it."""
    below: dict[int, list[int]] = {}
    for child, parent in _parents().items():
        below.setdefault(parent, []).append(child)
    found, queue = {pid}, [pid]
    while queue:
        for child in below.get(queue.pop(), []):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def memory_of(pids: set[int]) -> dict[int, int]:
    """Resident bytes of each process that still exists."""
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm") as stream:
            found[pid] = int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return found
