"""Memory that is freed stays with the process, until it is told to begin anew on other memory."""

from __future__ import annotations

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_TRIM, LARGEST_MMAP = (1 << 31) - 1, 1 << 25
"""The most that glibc's malloc takes for them."""


def keep_freed_memory() -> None:
    """As in a process that has run for a while, where its C library can be told so.

    Otherwise the heap's end goes back to the system after a call, to be faulted in anew by the next, or does not:
    what lies there decides, and a ratio may double from one run to another.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP)
        mallopt(M_TRIM_THRESHOLD, LARGEST_TRIM)


def release_freed_memory() -> None:
    """Give it all back, where the C library can: what comes next lies on other pages, as in another process.

    Which pages those are decides what evicts what from the caches, and with that a good part of a call's time.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
