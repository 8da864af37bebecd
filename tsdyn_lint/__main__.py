"""The command `tsdyn-lint`, and `python -m tsdyn_lint`: one run of the command line in a process of its own."""

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
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
