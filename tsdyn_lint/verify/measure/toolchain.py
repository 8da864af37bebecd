"""Whether a backend can compile here at all, found with a throw-away compile that also pays what only the first pays.

The first compile on a machine probes the processor and precompiles headers: a minute, kept in torch's own cache
folder. The first in a process imports what generates code. Neither is what compiling the target costs.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import torch
import torch._dynamo

from tsdyn_lint.verify.probes.places import shorten
from tsdyn_lint.verify.probes.subject import quiet

COMPILERS = ("g++", "clang++", "c++", "cl")


class Unavailable(Exception):
    """Something that this machine or torch lacks; the message is for the user."""


def _throwaway(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def warm_up(backend: str, device: str) -> None:
    """Compile next to nothing; raises Unavailable where that fails, saying what is missing."""
    if backend != "inductor":
        _compiled(backend, device)
        return
    import torch._inductor.config as config

    with config.patch({"fx_graph_cache": False}):
        _compiled(backend, device)


def _compiled(backend: str, device: str) -> None:
    try:
        with quiet(), torch.no_grad():
            torch.compile(_throwaway, backend=backend)(torch.ones(64, device=device))
    except Exception as error:
        raise Unavailable(_told(error, backend, device)) from error
    finally:
        torch._dynamo.reset()


def _told(error: Exception, backend: str, device: str) -> str:
    if backend == "inductor" and device == "cpu" and not any(map(shutil.which, compilers())):
        return "Inductor needs a C++ compiler here: install g++, or name one in the variable CXX"
    why = next(iter(f"{type(error).__name__}: {error}".splitlines()))
    return f"the backend {backend!r} does not compile on {device}: {shorten(why, 300)}"


def compilers() -> list[str]:
    """The programs that Inductor looks for, the one that CXX names first."""
    return [name for name in (os.environ.get("CXX"), *COMPILERS) if name]


def registered() -> list[str]:
    """Every backend that Dynamo knows here by name."""
    known: Any = torch._dynamo.list_backends(None)
    return sorted(map(str, known))
