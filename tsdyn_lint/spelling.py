"""A word that nothing is called -> the known word that may be meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(known: Iterable[str], *spellings: str) -> str | None:
    """The known word that the first of the spellings comes near which comes near any; None when none does."""
    from difflib import get_close_matches

    words = list(known)
    for spelling in spellings:
        if near := get_close_matches(spelling, words, n=1):
            return near[0]
    return None


def suggestion(near: str | None) -> str:
    """`; did you mean ...?`, or nothing without a word."""
    return f"; did you mean `{near}`?" if near else ""
