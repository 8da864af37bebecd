"""`python -m tsdyn_lint`."""

import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder this runs in, where a file may have the name of a module that we import

from tsdyn_lint.cli import main

if __name__ == "__main__":
    main(prog_name="tsdyn-lint")
