"""Sections -> the text of a data file: sorted, one line a section, the same bytes for the same torch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any


def text(sections: Mapping[str, Any]) -> str:
    """JSON whose top level has one section a line (the loader parses a section when it is first asked for)."""
    lines = [
        f'"{name}":{json.dumps(value, sort_keys=True, separators=(",", ":"))}'
        for name, value in sorted(sections.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def group(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """(qualified name, value) pairs -> scope -> value -> the bare names, spaced: a third of the size of one entry
    a name."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for qualname, value in pairs:
        scope, _, name = qualname.rpartition(".")
        found[scope][value].append(name)
    return {
        scope: {value: " ".join(sorted(set(names))) for value, names in values.items()}
        for scope, values in found.items()
    }
