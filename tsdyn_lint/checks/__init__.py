"""Rules that a `[match]` table cannot say: plain functions from an event to a verdict, one per code, found by
being here.
"""

from __future__ import annotations

from tsdyn_lint.checks import calls, data, state, tracing, unsupported
from tsdyn_lint.checks.registry import CHECKS, Check, Verdict, check

__all__ = ["CHECKS", "Check", "Verdict", "calls", "check", "data", "state", "tracing", "unsupported"]
