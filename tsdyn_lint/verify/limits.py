"""A time limit on one attempt, inside the worker. The target's own limit is kept by the parent."""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Iterator
from types import FrameType


class TooLong(BaseException):
    """The attempt took longer than it was given; not an Exception, so that the code tried cannot swallow it."""


@contextlib.contextmanager
def attempt(seconds: float) -> Iterator[None]:
    """Interrupt what runs inside after that time, warnings silenced. No limit where there are no alarm signals."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"took more than {seconds:g} s")

    has_alarm = hasattr(signal, "setitimer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not has_alarm:
            yield
            return
        previous = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
