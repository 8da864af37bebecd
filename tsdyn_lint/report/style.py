"""Colours of the terminal, without importing anything to get them."""

from __future__ import annotations

_CODES = {"red": "31", "yellow": "33", "blue": "34", "cyan": "36", "green": "32", "bold": "1", "dim": "2"}


def paint(text: str, colour: str, on: bool, bold: bool = False) -> str:
    """The text between ANSI escapes, or as it is when colours are off."""
    if not on:
        return text
    return f"\033[{'1;' if bold else ''}{_CODES[colour]}m{text}\033[0m"
