"""`python -m tsdyn_lint.torchdata.generate --out rules/`: the data file of the installed torch."""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import json
import platform
import re
from pathlib import Path
from typing import Any

from tsdyn_lint.torchdata import delta, write
from tsdyn_lint.torchdata.load import BASE
from tsdyn_lint.torchdata.sources import (
    config,
    families,
    modules,
    natives,
    returns,
    rules,
    sample,
    stubs,
    tags,
    versions,
)

RUN = ("dtype", "dynamo", "rank")
"""Sections that running torch gives."""


def sections(site: Path) -> dict[str, Any]:
    """Everything about the torch that is installed in `site`: what is read and what has to be run."""
    found = read(site)
    operators = natives.read(site)
    calls = returns.collect(site / "torch", operators)
    dtypes, ranks = sample.collect(operators)
    dynamo = rules.collect(calls.known, set(calls.kinds) | set(calls.choices))
    found["source"] |= dict.fromkeys(RUN, "run")
    found["meta"] |= {"python": platform.python_version()[:4], "numpy": importlib.metadata.version("numpy")}
    return found | {
        name: write.group(values.items()) for name, values in zip(RUN, (dtypes, dynamo, ranks), strict=True)
    }


def kept(site: Path, old: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """As `sections`, but what has to be run is taken from the version's `old` file, or from the base if it has none."""
    found = read(site)
    is_base = old.get("meta") == base.get("meta")
    if old:
        found["meta"] = old["meta"] | found["meta"]
        found["source"] |= {name: old["source"][name] for name in RUN}
    else:
        found["source"] |= dict.fromkeys(RUN, f"neighbour {base['meta']['torch']}")
    return found | {name: base[name] if is_base else delta.apply(name, base, old) for name in RUN}


def read(site: Path) -> dict[str, Any]:
    """The sections that the files in `site` give, a folder that holds `torch/` and `torchgen/`."""
    torch_dir = site / "torch"
    operators = natives.read(site)
    found = returns.collect(torch_dir, operators)
    return {
        "meta": {"torch": version(torch_dir)},
        "source": dict.fromkeys(("returns", "tags", "gb", "modules", "config"), "read"),
        "returns": write.group(found.kinds.items()),
        "choices": {name: [list(c) for c in choices] for name, choices in found.choices.items()},
        "fields": {name: " ".join(fields) for name, fields in found.fields.items()},
        "tags": write.group(tags.collect(operators, found.known).items()),
        "gb": graph_breaks(torch_dir),
        "modules": modules.collect(torch_dir),
        "config": config.collect(torch_dir),
        "families": families.collect(skiplist(torch_dir)),
        "version_rows": versions.ROWS,
    }


def version(torch_dir: Path) -> str:
    """`2.13.0`: without the build suffix, which the data does not depend on."""
    text = (torch_dir / "version.py").read_text("utf-8")
    found = re.search(r"__version__ = '([^'+]+)", text)
    if not found:
        raise ValueError(f"no version in {torch_dir}/version.py")
    return found[1]


def skiplist(torch_dir: Path) -> tuple[str, ...]:
    """Third-party packages that Dynamo's trace rules never trace into."""
    for node in stubs.read(torch_dir / "_dynamo/trace_rules.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "THIRDPARTY_SKIPLIST":
            return tuple(ast.literal_eval(node.value))
    return ()


def graph_breaks(torch_dir: Path) -> dict[str, str]:
    """GB id -> title, from the registry that ships in the wheel."""
    registry = json.loads((torch_dir / "_dynamo/graph_break_registry.json").read_text("utf-8"))
    return {code: str(entries[0]["Gb_type"]) for code, entries in registry.items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--site", type=Path, help="read this folder with an unpacked wheel, run nothing")
    parser.add_argument("--reread", action="store_true", help="run nothing: that takes minutes")
    options = parser.parse_args()
    run = not (options.reread or options.site)
    print(generate(options.site or installed(), options.out, run=run))


def generate(site: Path, out: Path, *, run: bool = True) -> Path:
    """Writes the file of the torch in `site`: whole for the base version, else what differs from the base in `out`."""
    major, minor = version(site / "torch").split(".")[:2]
    path = out / f"torch-{major}.{minor}.json"
    base_path = out / f"torch-{BASE[0]}.{BASE[1]}.json"
    old, base = (json.loads(p.read_text("utf-8")) if p.is_file() else {} for p in (path, base_path))
    found = sections(site) if run else kept(site, old, base)
    path.write_text(write.text(found if path == base_path else delta.between(base, found)), "utf-8")
    return path


def installed() -> Path:
    """The folder that the importable torch lies in."""
    import torch

    return Path(torch.__file__).parent.parent


if __name__ == "__main__":
    main()
