"""The cost model: what a compile costs once against what it saves on every call."""

from __future__ import annotations

import math
from fractions import Fraction


def break_even(t_compile: float, t_eager: float, t_compiled: float) -> int | None:
    """N*: the fewest calls after which compiling has paid, None where a compiled call is no faster.

    The times count as the decimal numbers they are printed as, so that 0.3 / (0.05 - 0.02) is 10 and not 11.
    """
    gain = _exact(t_eager) - _exact(t_compiled)
    return math.ceil(_exact(t_compile) / gain) if gain > 0 else None


def benefit(calls: int, t_compile: float, t_eager: float, t_compiled: float) -> float:
    """Benefit(N) = N (T_eager - T_compiled) - T_compile: seconds won, below zero where they are lost."""
    return float(calls * (_exact(t_eager) - _exact(t_compiled)) - _exact(t_compile))


def _exact(seconds: float) -> Fraction:
    return Fraction(str(seconds))
