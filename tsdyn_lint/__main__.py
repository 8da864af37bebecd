"""`python -m tsdyn_lint`."""

from tsdyn_lint.cli import main

if __name__ == "__main__":
    main(prog_name="tsdyn-lint")
