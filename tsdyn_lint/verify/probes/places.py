"""Where in the project something happened: from stacks, tracebacks and the text of messages."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from tsdyn_lint.verify.observe import Fault, Site

FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?')
MESSAGE_LIMIT = 2000
INSTALLED = {"site-packages", "dist-packages"}
OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep


@dataclass(frozen=True)
class Project:
    """The files whose lines are reported: those under `roots`, installed packages inside of them aside."""

    roots: tuple[str, ...]

    def has(self, filename: str) -> bool:
        """Whether that file (as code objects and messages spell it) is the project's."""
        return _under(self.roots, filename)

    def last(self, sites: Iterable[Site]) -> Site | None:
        """The innermost of the project's sites in a stack given outermost first."""
        return next((site for site in reversed(tuple(sites)) if self.has(site.filename)), None)


@cache
def real(filename: str) -> str:
    """Where a file really is. Asked of thousands of modules: the template asks once for all of torch's."""
    return os.path.realpath(filename)


@lru_cache(maxsize=4096)
def _under(roots: tuple[str, ...], filename: str) -> bool:
    if not filename or filename.startswith("<"):  # built in, or made from a string as dataclasses are
        return False
    path = real(filename)
    if path.startswith(OURS):
        return False
    for root in roots:
        base = real(root)
        if path == base:
            return True
        if path.startswith(base.rstrip(os.sep) + os.sep):
            return not INSTALLED & set(path[len(base) :].split(os.sep))
    return False


def frames_in(text: str) -> tuple[Site, ...]:
    """The `File "...", line N` entries of a message, in its order."""
    return tuple(Site(name, int(row), function or "") for name, row, function in FRAME.findall(text))


def fault(error: BaseException, project: Project, *, first: bool = False) -> Fault:
    """What was raised and where.

    Dynamo's own stack comes first (`real_stack`), then the frames its message names, then the traceback: a
    traceback of a capture that failed ends inside of torch. `first` takes the message's first frame in the
    project, as TorchScript's messages put the site before its callers.
    """
    message = str(error)
    named = tuple(site for site in frames_in(message) if project.has(site.filename))
    stack = tuple(Site(f.filename, f.lineno or 0, f.name) for f in getattr(error, "real_stack", None) or ())
    walked = tuple(
        Site(frame.f_code.co_filename, row, frame.f_code.co_name)
        for frame, row in traceback.walk_tb(error.__traceback__)
    )
    site = project.last(stack) or (named[0 if first else -1] if named else None) or project.last(walked)
    return Fault(type(error).__name__, shorten(message), site, stack or named or walked[-12:])


def shorten(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Long messages (TorchScript lists every overload) cut in the middle."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit // 2] + " [...] " + text[-limit // 2 :]
