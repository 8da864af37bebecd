"""File patterns as configuration writes them: `tests/*`, `**/gen_*.py`, `build`."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path


def anchored(pattern: str, folder: Path) -> str:
    """A relative pattern that names folders made absolute; one without a slash fits a name at any depth."""
    inverted = "!" if pattern.startswith("!") else ""
    pattern = pattern[len(inverted) :].rstrip("/")
    if "/" in pattern and not pattern.startswith("/"):
        pattern = f"{folder.absolute().as_posix().rstrip('/')}/{pattern.removeprefix('./')}"
    return inverted + pattern


def matches(path: Path, pattern: str) -> bool:
    """Whether an absolute path, or its last part alone, fits an anchored pattern; a leading `!` turns it round.

    `*` also crosses folders and `**/` may stand for none, as in ruff.
    """
    if pattern.startswith("!"):
        return not matches(path, pattern[1:])
    return matches_any(path.as_posix(), path.name, (pattern,))


def matches_any(path: str, name: str, patterns: tuple[str, ...]) -> bool:
    """`matches` for the text of a path and its last part against many patterns at once."""
    for_names, for_paths = _compiled(patterns)
    return for_names.fullmatch(name) is not None or for_paths.fullmatch(path) is not None


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    for_names = [_regex(pattern) for pattern in patterns if "/" not in pattern]
    for_paths = [_regex(pattern) for pattern in patterns if "/" in pattern]
    nothing = r"(?!)"
    return re.compile("|".join(for_names) or nothing, re.DOTALL), re.compile("|".join(for_paths) or nothing, re.DOTALL)


def _regex(pattern: str) -> str:
    pieces: list[str] = []
    position = 0
    while position < len(pattern):
        rest = pattern[position:]
        if rest.startswith("**/"):
            pieces.append("(?:.*/)?")
            position += 3
        elif rest[0] == "*":
            pieces.append(".*")
            position += 1
        elif rest[0] == "?":
            pieces.append("[^/]")
            position += 1
        elif rest[0] == "[" and (closing := rest.find("]", 2)) > 0:
            inside = rest[1:closing].replace("\\", "\\\\")
            pieces.append("[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]")
            position += closing + 1
        else:
            pieces.append(re.escape(rest[0]))
            position += 1
    return "".join(pieces)
