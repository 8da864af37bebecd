"""Jobs -> results, from the linter's side: it starts the workers, and nothing a target does can take it down."""

from __future__ import annotations

import getpass
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsdyn_lint.verify.alone import Alone

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
LOG_TAIL = 2000
GRACE = 30.0


@dataclass(frozen=True)
class Job:
    """What to build (`subject`, see `build.subjects`), which probes to run, and the limits: seconds and MB."""

    subject: dict[str, Any]
    probes: tuple[str, ...]
    timeout: float = 120.0
    memory: int = 8192
    device: str = "cpu"


@dataclass
class Result:
    """What a job gave. `seen` maps a probe to its observation as JSON; `broken` one that ended badly to why."""

    job: Job
    about: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    failure: tuple[str, str] | None = None
    """Kind (`build`, `timeout`, `memory`, `crash`, `skip`) and message; None where every probe was tried."""
    toml: str = ""
    """What to write in the configuration so that a target that was not built can be."""
    network: str = ""
    peak_mb: int = 0
    log: str = ""


def environment() -> dict[str, str]:
    """The workers': one thread unless told otherwise, no CUDA start-up on a mere question, no compile pools."""
    env = dict(os.environ)
    env.setdefault("OMP_NUM_THREADS", "1")
    env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    env.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (PACKAGE_ROOT, env.get("PYTHONPATH"))))
    env["PYTHONUNBUFFERED"] = "1"
    env.setdefault("LOGNAME", _user())  # cut off from the network, a process no longer knows whose caches to use
    return env


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def command(*arguments: str) -> list[str]:
    """Start a worker with the interpreter that runs the linter."""
    return [sys.executable, "-m", "tsdyn_lint.verify.worker", *arguments]


def can_fork() -> bool:
    """Whether the template road is taken: Windows has no fork, and macOS's frameworks do not survive one."""
    return hasattr(os, "fork") and sys.platform not in ("darwin", "win32", "cygwin")


@dataclass
class Progress:
    """How far a batch is: probes `left` for each job, the stage it is `current`ly in, jobs `sent`, and `suspects`."""

    left: dict[int, list[str]]
    current: dict[int, str] = field(default_factory=dict)
    suspects: list[int] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sent = set(self.left)


class Workers:
    """Context manager: the processes that run jobs, started by the first job and then kept for as many as needed.

    `compiling`: some of them will use Inductor. `run` raises RuntimeError where no worker can start, torch missing for
    instance.
    """

    def __init__(self, parallel: int = 1, fork: bool | None = None, compiling: bool = False) -> None:
        self._parallel = parallel
        self._compiling = compiling
        self._fork = can_fork() if fork is None else fork
        self._numbers = itertools.count()

    def __enter__(self) -> Workers:
        self._folder = tempfile.TemporaryDirectory(prefix="tsdyn-verify-", ignore_cleanup_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        if "_pool" in vars(self):
            self._pool.__exit__()
        self._folder.cleanup()

    @cached_property
    def _pool(self) -> Forked | Alone:
        from tsdyn_lint.verify.alone import Alone

        folder = self._folder.name
        if self._fork:
            return Forked(self._parallel, folder, self._compiling).__enter__()
        return Alone(self._parallel, folder).__enter__()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[int, Result]]:
        """Run all jobs, yielding (index, result) as each ends.

        A probe that takes its process down is recorded in `broken`, and those after it run in a new process.
        """
        batch = list(jobs)
        numbers = {next(self._numbers): index for index in range(len(batch))}
        results = {number: Result(batch[index]) for number, index in numbers.items()}
        state = Progress({number: list(result.job.probes) for number, result in results.items()})
        for number, result in results.items():
            self._pool.send(number, result.job, result.job.probes)
        while state.sent or state.suspects:
            if not state.sent:  # one at a time, so that the one that kills the template is known
                number = state.suspects.pop()
                state.sent.add(number)
                self._pool.send(number, results[number].job, state.left[number])
            message = self._pool.receive()
            if "died" in message:
                for number in self._restart(state, results):
                    results[number].failure = (
                        "crash",
                        f"{message['died']} during {state.current.get(number, 'start')}",
                    )
                    yield numbers[number], results[number]
                continue
            number = message.get("id", -1)
            if number not in state.sent:
                continue
            if "says" in message:
                _note(results[number], message["says"], state, number)
            elif "end" in message:
                result, end = results[number], message["end"]
                result.peak_mb = max(result.peak_mb, end.get("peak_mb") or 0)
                result.log = self._pool.log(number)
                if _goes_on(result, end, state.current.pop(number, "build"), state.left[number]):
                    self._pool.send(number, result.job, state.left[number])
                    continue
                state.sent.discard(number)
                yield numbers[number], result

    def _restart(self, state: Progress, results: dict[int, Result]) -> list[int]:
        """A new template after the old one was killed. What ran is tried again alone; what ran alone is to blame."""
        self._pool.__exit__()
        self._pool.__enter__()
        ran = [number for number in state.sent if number in state.current]
        guilty = ran if len(state.sent) == 1 else []
        state.suspects += [number for number in ran if number not in guilty]
        state.sent -= set(ran)
        for number in state.sent:
            self._pool.send(number, results[number].job, state.left[number])
        return guilty


def run(jobs: Sequence[Job], parallel: int = 1, fork: bool | None = None) -> Iterator[tuple[int, Result]]:
    """`Workers.run` in workers of its own."""
    with Workers(parallel, fork) as workers:
        yield from workers.run(jobs)


def _note(result: Result, says: dict[str, Any], state: Progress, number: int) -> None:
    left = state.left[number]
    if "start" in says:
        state.current[number] = says["start"]
    elif "built" in says:
        result.about = says["built"]
    elif "network" in says:
        result.network = says["network"]
    elif "failure" in says:
        result.failure = (says["failure"], says["message"])
        result.toml = says.get("toml", "")
        left.clear()
    elif "probe" in says:
        name = says["probe"]
        if name in left:
            left.remove(name)
        if says.get("error"):
            result.broken[name] = says["error"]
        elif says["seen"] is not None:  # a probe may have nothing to say of a target
            result.seen[name], result.seconds[name] = says["seen"], says["seconds"]
        state.current.pop(number, None)
    elif "done" in says:
        left.clear()
        state.current.pop(number, None)


def _goes_on(result: Result, end: dict[str, Any], during: str, left: list[str]) -> bool:
    """Whether to start again for the probes that are left; records why the process ended before its time."""
    why = describe(end)
    if why is None and not left:
        return False
    kind = end["stopped"] or "crash"
    message = f"{why or 'the worker ended without an answer'} during {during}"
    if kind != "crash" or during not in left:
        if result.failure is None and (left or during == "build" or kind != "crash"):
            result.failure = (kind, message)
        return False
    left.remove(during)
    result.broken[during] = message
    if during == "eager":
        result.failure = ("crash", message)
        return False
    return bool(left)


def describe(end: dict[str, Any]) -> str | None:
    """Why a process ended, in words; None for a normal end."""
    if end.get("stopped"):
        words = {"timeout": "the time limit was reached", "memory": "the memory limit was reached"}
        return words.get(end["stopped"], str(end["stopped"]))
    if end.get("signal"):
        return f"killed by {end['signal']}"
    return f"exited with code {end['exit']}" if end.get("exit") else None


class Forked:
    """The template process; started once for all jobs, and once more if something kills it."""

    def __init__(self, parallel: int, folder: str, compiling: bool) -> None:
        self._arguments = [str(parallel), *(["compiling"] if compiling else [])]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Forked:
        self._errors = open(os.path.join(self._folder, "template.log"), "wb")
        self._process = subprocess.Popen(
            command(*self._arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=environment(), start_new_session=True,
        )  # fmt: skip
        if "ready" not in self.receive():
            self.__exit__()
            raise RuntimeError(self._said() or "the worker did not start")
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
        self._errors.close()

    def _said(self) -> str:
        with open(os.path.join(self._folder, "template.log"), errors="replace") as stream:
            return stream.read()[-LOG_TAIL:].strip()

    def send(self, index: int, job: Job, probes: Sequence[str]) -> None:
        message = {
            "id": index, "subject": job.subject, "probes": list(probes), "timeout": job.timeout,
            "memory": job.memory, "device": job.device, "log": self._log(index),
        }  # fmt: skip
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write((json.dumps(message) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # receive() tells

    def receive(self) -> dict[str, Any]:
        assert self._process and self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            return {"died": f"the template process ended: {self._said()[-300:]}"}
        message: dict[str, Any] = json.loads(line)
        return message

    def _log(self, index: int) -> str:
        return os.path.join(self._folder, f"{index}.log")

    def log(self, index: int) -> str:
        """The end of what the job printed."""
        try:
            with open(self._log(index), errors="replace") as stream:
                return stream.read()[-LOG_TAIL:]
        except OSError:
            return ""
