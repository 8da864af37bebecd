"""What the measuring probes share of a subject: one instance, a call of it as one step, caches of its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
from torch.utils import _pytree as pytree

from tsdyn_lint.verify.measure.clock import Step, clock_for
from tsdyn_lint.verify.measure.heap import keep_freed_memory, release_freed_memory
from tsdyn_lint.verify.measure.schedule import Schedule
from tsdyn_lint.verify.probes.dynamo import uncompiled
from tsdyn_lint.verify.probes.subject import Call, Subject, quiet

SETTLING, SETTLED = 16, 3
"""Calls at most before one is timed, and how many in a row must have compiled nothing."""


class Rig:
    """Made once for a subject. A step is a forward without gradients; to train: forward, loss and backward."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.training = subject.mode == "train"
        self.device = str(subject.about.get("device") or "cpu")
        self.clock_name, self.clock = clock_for(self.device)
        keep_freed_memory()
        self.instance = uncompiled(subject.fresh())
        self.schedule: Schedule | None = None
        """What Inductor made of the cold compile; later ones come from its caches, which do not tell."""
        self._changing = False
        self._graphs_are_shared = True
        self._shared: Step | None = None
        self._gradients = self.training or not self._runs_without()

    def _runs_without(self) -> bool:
        """Whether the call works with gradients off, as serving has them."""
        try:
            with quiet(), torch.no_grad():
                self.plain()()
        except Exception:
            return False
        return True

    @contextlib.contextmanager
    def conditions(self) -> Iterator[None]:
        """What every compile and every timed call runs under."""
        with quiet(), torch.set_grad_enabled(self._gradients):
            yield

    def plain(self, call: Call | None = None) -> Step:
        """The forward call alone, of the instance as it is."""
        return bound(self.instance, call or self.subject.example)

    def step(self, function: Callable[..., Any], call: Call | None = None) -> Step:
        """One unit of work with that function."""
        forward = bound(function, call or self.subject.example)
        return self._trained(forward) if self.training else forward

    def _trained(self, forward: Step) -> Step:
        parameters = list(self.instance.parameters()) if isinstance(self.instance, torch.nn.Module) else []

        def step() -> None:
            for parameter in parameters:
                parameter.grad = None
            total = loss(forward())
            if total is not None:
                total.backward()

        return step

    def compile(self, backend: Any = None) -> Callable[..., Any]:
        """The instance compiled anew: whatever Dynamo knew of it is forgotten, the caches on disk are not.

        One that changes with its calls begins at its beginning again, else the caches know nothing of what it became.
        """
        if self._changing:
            self.renew()
        self.forget()
        return self._compiled(self.subject.backend if backend is None else backend)

    def _compiled(self, backend: Any) -> Callable[..., Any]:
        compiled: Callable[..., Any] = torch.compile(self.instance, backend=backend, fullgraph=self.subject.fullgraph)
        return compiled

    def forget(self) -> None:
        """Dynamo as if it had compiled nothing."""
        self._shared = None
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def settled(self, backend: Any = None, call: Call | None = None) -> Step:
        """A step of the compiled instance that no longer compiles anything when called.

        Without a backend it is shared by the probes that ask for it until something else is compiled.
        """
        if self._shared is not None and backend is None and call is None:
            return self._shared
        step = self.step(self.compile(backend), call)
        self._changing |= settle(step) > 1
        self._shared = step if backend is None and call is None else None
        return step

    def laid_out_anew(self) -> Step:
        """The settled step of another instance, whose data lies on other memory.

        Instances share what Dynamo compiled. Where they do not, the one there is stays, and what it holds.
        """
        self._shared = None
        if self._graphs_are_shared:
            self.renew()
        release_freed_memory()
        known = frames_compiled()
        step = self.step(self._compiled(self.subject.backend))
        settle(step) if self._changing else step()
        if self._graphs_are_shared and frames_compiled() != known:
            self._graphs_are_shared = False
            step = self.settled()
        self._shared = step
        return step

    def renew(self) -> None:
        """Another instance, as the first one was."""
        self.instance = uncompiled(self.subject.fresh())


def rig(subject: Subject) -> Rig:
    """The subject's, made on first use and kept."""
    if subject.rig is None:
        subject.rig = Rig(subject)
    found: Rig = subject.rig
    return found


def bound(function: Callable[..., Any], call: Call) -> Step:
    """The function with its own copy of the arguments."""
    own = call.copy()
    return lambda: function(*own.args, **own.kwargs)


def loss(result: Any) -> torch.Tensor | None:
    """The mean of every output that has a gradient, summed; None without one."""
    means = [
        leaf.float().mean()
        for leaf in pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    return sum(means[1:], means[0]) if means else None


def settle(step: Step) -> int:
    """Call it until it has compiled nothing for a few calls; returns how many calls did compile, some at most."""
    idle, compiling, known = 0, 0, frames_compiled()
    for _ in range(SETTLING):
        step()
        now = frames_compiled()
        idle = idle + 1 if now == known else 0
        compiling += now != known
        known = now
        if idle >= SETTLED:
            break
    return compiling


def frames_compiled() -> int:
    """How many frames Dynamo has taken up since its counters were cleared."""
    return int(torch._dynamo.utils.counters["frames"].get("total", 0))


def fresh_caches(folder: str | None) -> None:
    """From now on, this process compiles into empty caches of its own."""
    from torch._inductor import utils

    clear: Any = getattr(utils, "clear_caches", None) or utils.clear_inductor_caches
    clear()
    place = tempfile.mkdtemp(prefix="inductor-", dir=folder)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = place
    os.environ["TRITON_CACHE_DIR"] = os.path.join(place, "triton")
