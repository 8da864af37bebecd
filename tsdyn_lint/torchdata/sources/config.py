"""`torch._dynamo.config` -> its defaults that decide what is captured, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

from tsdyn_lint.torchdata.sources import stubs


def collect(torch_dir: Path) -> dict[str, object]:
    """Option -> literal default; options whose default is computed are left out."""
    found: dict[str, object] = {}
    for node in stubs.read(torch_dir / "_dynamo/config.py").body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            name, value = node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        else:
            continue
        if name.startswith("_"):
            continue
        default = _default(value)
        if isinstance(default, (bool, int, float, str)):
            found[name] = default
    return found


def _default(value: ast.expr) -> object:
    """The literal, or what `os.environ.get("NAME", "0") == "1"` gives where nobody set NAME; None for anything else."""
    if isinstance(value, ast.Compare) and ast.unparse(value.left).startswith("os.environ.get("):
        call = value.left
        unset = ast.literal_eval(call.args[1]) if isinstance(call, ast.Call) and len(call.args) > 1 else None
        wanted = ast.literal_eval(value.comparators[0])
        return (unset == wanted) if isinstance(value.ops[0], ast.Eq) else (unset != wanted)
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None
