"""Numbers as people read them."""

from __future__ import annotations

import math

_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
NONE = "–"


def seconds(value: float | None) -> str:
    """`1.2 s`, `340 µs`; minutes and more as `5 min`, `2.1 h`."""
    if value is None:
        return NONE
    if abs(value) >= 3600:
        return f"{significant(value / 3600)} h"
    if abs(value) >= 120:
        return f"{significant(value / 60)} min"
    if value == 0:
        return "0 s"
    factor, unit = next((p for p in _PREFIXES if abs(value) >= p[0] * 0.9995), _PREFIXES[-1])
    return f"{significant(value / factor)} {unit}"


def microseconds(value: float | None) -> str:
    return seconds(None if value is None else value * 1e-6)


def size(value: float | None) -> str:
    """Bytes, by powers of 1000."""
    if value is None:
        return NONE
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor * 0.9995:
            return f"{significant(value / factor)} {unit}"
    return f"{value:.0f} B"


def count(value: float | None) -> str:
    """Whole numbers with thin spaces between thousands; large ones by a power of ten."""
    if value is None:
        return NONE
    return f"{value:,.0f}".replace(",", "\u2009") if abs(value) < 1e7 else f"{significant(value / 1e6)} M"


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"


def significant(value: float, digits: int = 3) -> str:
    """Rounded to so many digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{max(digits - 1 - exponent, 0)}f}"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
