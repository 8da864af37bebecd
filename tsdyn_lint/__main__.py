"""The command `tsdyn-lint`, and `python -m tsdyn_lint`: one run of the command line in a process of its own."""

import atexit
import gc
import os
import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder this runs in, where a file may have the name of a module that we import

from tsdyn_lint.cli import main as command_line


def main() -> None:
    """Runs the line and exits. The process ends before its garbage matters, so nobody looks for it, also at the end."""
    gc.disable()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, open(os.devnull, mode))
    try:
        command_line(prog_name="tsdyn-lint")
    except SystemExit as end:
        gc.freeze()
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """Ends the process without taking it apart, object by object. Returns where output cannot be written."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # told by the interpreter at its end
    os._exit(code)


if __name__ == "__main__":
    main()
