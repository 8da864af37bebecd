"""What a run is asked to do, as one frozen `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.findings import Confidence, Engine

KNOWN_TORCH: tuple[tuple[int, int], ...] = ((2, 11), (2, 12), (2, 13), (2, 14), (2, 15))
"""The torch versions that static verdicts cover, oldest first."""


@dataclass(frozen=True)
class Settings:
    """Settings of one group of files. Relative patterns are relative to `root`.

    `engines` is None for `auto`; `selected` holds rule codes; `torch_reason` says where `torch_version` came from.
    """

    root: Path
    engines: frozenset[Engine] | None = None
    torch_version: tuple[int, int] = KNOWN_TORCH[-1]
    torch_reason: str = "the newest known"
    selected: frozenset[str] = frozenset()
    min_confidence: Confidence = Confidence.LIKELY
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    rule_paths: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    verify: Mapping[str, Any] = field(default_factory=dict)
    config_file: Path | None = None
