"""A job's `subject` table -> `Subject`."""

from __future__ import annotations

from typing import Any

from tsdyn_lint.verify.build import example
from tsdyn_lint.verify.probes.subject import Subject


def build(description: dict[str, Any]) -> Subject:
    """`{"file": path}` for a rule page's example."""
    return example.load(description["file"])
