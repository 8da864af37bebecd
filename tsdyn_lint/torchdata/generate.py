"""`python -m tsdyn_lint.torchdata.generate --out rules/`: the data file of the installed torch, or of an unpacked wheel (`--site`)."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from tsdyn_lint.torchdata import write
from tsdyn_lint.torchdata.sources import natives, returns, tags


def sections(site: Path) -> dict[str, Any]:
    """The sections of the torch in `site`, a folder that holds `torch/` and `torchgen/`."""
    torch_dir = site / "torch"
    operators = natives.read(site)
    found = returns.collect(torch_dir, operators)
    return {
        "meta": {"torch": version(torch_dir)},
        "source": {"returns": "read", "tags": "read", "gb": "read"},
        "returns": write.group(found.kinds.items()),
        "choices": {name: [list(c) for c in choices] for name, choices in found.choices.items()},
        "fields": {name: " ".join(fields) for name, fields in found.fields.items()},
        "tags": write.group(tags.collect(operators, found.known).items()),
        "gb": graph_breaks(torch_dir),
    }


def version(torch_dir: Path) -> str:
    """`2.13.0`: without the build suffix, which the data does not depend on."""
    text = (torch_dir / "version.py").read_text("utf-8")
    found = re.search(r"__version__ = '([^'+]+)", text)
    if not found:
        raise ValueError(f"no version in {torch_dir}/version.py")
    return found[1]


def graph_breaks(torch_dir: Path) -> dict[str, str]:
    """GB id -> title, from the registry that ships in the wheel."""
    registry = json.loads((torch_dir / "_dynamo/graph_break_registry.json").read_text("utf-8"))
    return {code: str(entries[0]["Gb_type"]) for code, entries in registry.items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the data files")
    parser.add_argument(
        "--site", type=Path, help="folder with an unpacked torch/ and torchgen/ (default: the installed torch)"
    )
    options = parser.parse_args()
    site = options.site or installed()
    found = sections(site)
    major, minor = found["meta"]["torch"].split(".")[:2]
    path = options.out / f"torch-{major}.{minor}.json"
    path.write_text(write.text(found), "utf-8")
    print(path)


def installed() -> Path:
    """The folder that the importable torch lies in."""
    import torch

    return Path(torch.__file__).parent.parent


if __name__ == "__main__":
    main()
