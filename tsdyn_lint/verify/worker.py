"""The processes that import torch: a template that has it loaded forks one child a job and watches over it.

Lines of JSON on standard input are jobs; lines on standard output are what happens to them. On systems without
`fork` (and for tests) the same file runs one job as a process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

Emit = Callable[[dict[str, Any]], None]


def preload(compiling: bool = False) -> None:
    """Import all of torch that probes use, by running each once, so that a forked child starts warm.

    CUDA is never touched here: a process forked after CUDA was initialised cannot use it.
    """
    import torch

    from tsdyn_lint.verify.probes import PROBES, load
    from tsdyn_lint.verify.probes.places import Project, real
    from tsdyn_lint.verify.probes.subject import Call, Subject

    torch.set_num_threads(1)
    subject = Subject(torch.nn.Identity, Call((torch.ones(1),)), Project(()))
    for name in PROBES:
        load(name)(subject)
    if compiling:
        _prepare_compiles()
    for module in list(sys.modules.values()):
        real(getattr(module, "__file__", None) or "")
    if torch.cuda.is_initialized():
        raise RuntimeError("CUDA was initialised before a fork")


def _prepare_compiles() -> None:
    """Import Inductor, and have it look at the processor: each child would run a dozen processes to do so again."""
    with contextlib.suppress(Exception):  # a child that compiles will tell what is missing
        from torch._inductor.cpu_vec_isa import pick_vec_isa

        pick_vec_isa()


def run_job(job: dict[str, Any], emit: Emit) -> None:
    """Build the subject and run its probes in order, telling of each before it starts and when it ends."""
    from tsdyn_lint.verify.build.importing import BuildError, NotATarget
    from tsdyn_lint.verify.build.subjects import build, listed
    from tsdyn_lint.verify.observe import encode
    from tsdyn_lint.verify.probes import load

    emit({"start": "build"})
    try:
        if "backend" in job["subject"] and "file" not in job["subject"]:
            check_backend(job["subject"]["backend"])
            emit({"done": True})
            return
        if job["subject"].get("list"):
            emit({"built": {"targets": listed(job["subject"])}})
            emit({"done": True})
            return
        device = chosen_device(job.get("device", "cpu"))
        check_device(device)
        subject = build({**job["subject"], "device": device})
        subject.backend = job["subject"].get("backend") or subject.backend
        subject.folder = os.path.dirname(job["log"])
    except BackendError as error:
        emit({"failure": "backend", "message": str(error)})
        return
    except NotATarget as error:
        emit({"failure": "skip", "message": str(error)})
        return
    except BuildError as error:
        emit({"failure": "build", "message": str(error), "toml": error.toml})
        return
    except BaseException as error:
        emit({"failure": "build", "message": _told(error), "traceback": traceback.format_exc(limit=-8)})
        return
    emit({"built": subject.about})
    for name in job["probes"]:
        emit({"start": name})
        begin = time.perf_counter()
        try:
            seen = encode(load(name)(subject))
        except BaseException as error:
            emit({"probe": name, "error": _told(error), "traceback": traceback.format_exc(limit=-8)})
            if name == "compiling":
                break
            continue
        emit({"probe": name, "seen": seen, "seconds": round(time.perf_counter() - begin, 4)})
        if name == "eager" and not seen["ok"]:
            break
    emit({"done": True})


def chosen_device(wanted: str) -> str:
    """`auto` is CUDA where there is one. Asking does not initialise CUDA: the environment says to look by NVML."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


def check_device(device: str) -> None:
    """Raise BuildError where this process cannot use it."""
    import torch

    from tsdyn_lint.verify.build.importing import BuildError

    if device == "cuda" and getattr(torch.cuda, "_is_in_bad_fork", lambda: False)():
        raise BuildError("CUDA was initialised before this worker was forked")
    if device == "cuda" and not torch.cuda.is_available():
        raise BuildError("there is no CUDA device")


def check_backend(name: str) -> None:
    """Raise BackendError for one that Dynamo does not know."""
    from tsdyn_lint.verify.measure.toolchain import registered

    if name not in (known := registered()):
        raise BackendError(f"no backend {name!r} is registered here; there are {', '.join(known)}")


class BackendError(Exception):
    """A backend that does not exist."""


def _told(error: BaseException) -> str:
    if type(error).__name__ == "Unavailable":
        return str(error)
    return f"{type(error).__name__}: {error}"[:2000]


def writer(descriptor: int) -> Emit:
    """Writes messages as lines to a file descriptor, whole lines at a time."""

    def emit(message: dict[str, Any]) -> None:
        data = (json.dumps(message, default=repr) + "\n").encode()
        while data:
            data = data[os.write(descriptor, data) :]

    return emit


def run_alone() -> None:
    """One job as this process: read it from standard input, answer on what was standard output, log to the rest."""
    job = json.loads(sys.stdin.readline())
    answers = os.dup(1)
    log = os.open(job["log"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    preload()
    emit = writer(answers)
    emit({"ready": True})
    run_job(job, emit)
    sys.stdout.flush()
    os._exit(0)


def main() -> None:
    """`alone` as first argument runs one job; else this is the template, which runs so many at once."""
    sys.path[:] = [entry for entry in sys.path if entry not in ("", os.getcwd())]
    if sys.argv[1:2] == ["alone"]:
        run_alone()
        return
    from tsdyn_lint.verify.template import Template

    answers = os.dup(1)
    os.dup2(2, 1)
    preload("compiling" in sys.argv)
    gc.collect()
    gc.freeze()  # a child's collections then leave the shared pages alone
    Template(writer(answers), int(sys.argv[1]), chosen_device).serve()


if __name__ == "__main__":
    main()
