"""`native_functions.yaml`, which the wheel ships for torchgen -> the operators with their schemas and tags."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsdyn_lint.torchdata.sources import schema


@dataclass(frozen=True)
class Native:
    """An operator: how Python reaches it (`variants`, `module`) and what its author tagged it with."""

    schema: schema.Schema
    variants: frozenset[str]
    module: str
    tags: frozenset[str]


def read(site: Path) -> list[Native]:
    """The operators of the torch in `site` (the folder that holds `torch/` and `torchgen/`)."""
    yaml: Any = importlib.import_module("yaml")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    path = site / "torchgen/packaged/ATen/native/native_functions.yaml"
    entries: list[dict[str, Any]] = yaml.load(path.read_text("utf-8"), Loader=loader)
    return [_native(entry) for entry in entries]


def _native(entry: dict[str, Any]) -> Native:
    tags = entry.get("tags") or []
    variants = str(entry.get("variants", "function"))
    return Native(
        schema.parse(entry["func"]),
        frozenset(v.strip() for v in variants.split(",")),
        str(entry.get("python_module", "")),
        frozenset([tags] if isinstance(tags, str) else tags),
    )
