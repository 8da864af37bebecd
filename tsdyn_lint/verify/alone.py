"""The road without `fork` (Windows, macOS): one plain process a job, its limits kept from here."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsdyn_lint.verify.spawn import Job

START_SECONDS = 180.0
POLL_SECONDS = 0.1


class Alone:
    """Same face as `spawn.Forked`: `send` jobs, `receive` messages."""

    def __init__(self, parallel: int, folder: str) -> None:
        self._folder = folder
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._slots = threading.Semaphore(parallel)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def __enter__(self) -> Alone:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        for process in list(self._processes):
            kill_tree(process)

    def send(self, index: int, job: Job, probes: Sequence[str]) -> None:
        threading.Thread(target=self._run, args=(index, job, tuple(probes)), daemon=True).start()

    def receive(self) -> dict[str, Any]:
        return self._messages.get()

    def log(self, index: int) -> str:
        """The end of what the job printed."""
        with contextlib.suppress(OSError), open(self._log(index), errors="replace") as stream:
            return stream.read()[-2000:]
        return ""

    def _log(self, index: int) -> str:
        return os.path.join(self._folder, f"{index}.log")

    def _run(self, index: int, job: Job, probes: Sequence[str]) -> None:
        from tsdyn_lint.verify.spawn import command, environment

        with self._slots:
            if self._closed:
                return
            process = subprocess.Popen(
                command("alone"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment(), start_new_session=os.name == "posix",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )  # fmt: skip
            self._processes.add(process)
            message = {"subject": job.subject, "probes": list(probes), "device": job.device, "log": self._log(index)}
            assert process.stdin
            with contextlib.suppress(OSError):
                process.stdin.write((json.dumps(message) + "\n").encode())
                process.stdin.close()
            ready = threading.Event()
            reader = threading.Thread(target=self._read, args=(index, process, ready), daemon=True)
            reader.start()
            end = watch(process, job, ready)
            kill_tree(process)
            reader.join(5)
            self._processes.discard(process)
            self._messages.put({"id": index, "end": end})

    def _read(self, index: int, process: subprocess.Popen[bytes], ready: threading.Event) -> None:
        assert process.stdout
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                says = json.loads(line)
                if "ready" in says:
                    ready.set()
                else:
                    self._messages.put({"id": index, "says": says})


def watch(process: subprocess.Popen[bytes], job: Job, ready: threading.Event) -> dict[str, Any]:
    """Wait for its end, or end it. Importing torch is not on the job's clock."""
    begin = time.monotonic()
    started, base, peak, stopped = None, 0, 0, None
    while process.poll() is None:
        now = time.monotonic()
        used = memory_of(process.pid)
        if started is None and (ready.is_set() or now - begin > START_SECONDS):
            started, base = now, used
        if started is not None:
            peak = max(peak, used)
            if now - started > job.timeout:
                stopped = "timeout"
            elif used - base > job.memory << 20:
                stopped = "memory"
        if stopped:
            kill_tree(process)
            process.wait()
            break
        time.sleep(POLL_SECONDS)
    code = process.returncode
    name = signal.Signals(-code).name if os.name == "posix" and code < 0 and not stopped else None
    return {"stopped": stopped, "signal": name, "exit": code if code >= 0 else None,
            "seconds": round(time.monotonic() - (started or begin), 3), "peak_mb": peak >> 20}  # fmt: skip


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return
    subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)


def memory_of(pid: int) -> int:
    """Resident bytes of a process, 0 where the system does not say."""
    if sys.platform == "win32":
        return _windows_memory(pid)
    try:
        answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return int(answer.stdout.strip() or 0) * 1024
    except (OSError, ValueError):
        return 0


def _windows_memory(pid: int) -> int:
    """Working set by `tasklist`, whose last column is like "123,456 K"."""
    answer = subprocess.run(
        ["tasklist", "/FI", f"PID eq {pid}", "/FO", "CSV", "/NH"], capture_output=True, text=True, check=False
    )
    digits = "".join(c for c in answer.stdout.rsplit('","', 1)[-1] if c.isdigit())
    return int(digits or 0) * 1024
