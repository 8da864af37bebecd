"""Where each key of a TOML text stands, which TOML's reader does not tell; and the text with one value more or changed.

The text is taken to be valid: read it first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tsdyn_lint import toml

Path = tuple["str | int", ...]
"""Keys from the root down; a number is a place in an array."""

_BLANK = re.compile(r"(?:[\s,]|#[^\n]*)*")
_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'|[ \t]*\.[ \t]*)+""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|' + r"'''.*?'{3,5}(?!')|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'", re.DOTALL
)
_BARE = re.compile(r"[^,\]}#\r\n]*")
_REST_OF_LINE = re.compile(r"[^\n]*")


@dataclass(frozen=True)
class Place:
    """Offsets in the text: of the key, and of its value's first character and past its last one.

    A `[header]` is a key whose value begins and ends behind its bracket.
    """

    key: int
    start: int
    end: int
    is_header: bool = False


def places(text: str) -> dict[Path, Place]:
    """Every key, header and array element that is written out, by its path, in the order of the text."""
    reader = _Reader(text)
    reader.read()
    return reader.found


def row_of(text: str, path: Path) -> int | None:
    """The row of a key, or of the nearest one above it that is written out."""
    found = places(text)
    while path and path not in found:
        path = path[:-1]
    return text.count("\n", 0, found[path].key) + 1 if path else None


def with_value(text: str, path: Path, value: str) -> str:
    """The text with that value at that path; all else stays as it is, byte for byte.

    A new key is written into the innermost table around it that is there: inside of its braces, or on a line of its
    own below the last key under its header. Raises KeyError where no table above it is written out.
    """
    found = places(text)
    if path in found and not found[path].is_header:
        return text[: found[path].start] + value + text[found[path].end :]
    depth = next((d for d in range(len(path) - 1, 0, -1) if path[:d] in found), 0)
    if not depth:
        raise KeyError(path)
    table = found[path[:depth]]
    line = f"{'.'.join(_written(str(key)) for key in path[depth:])} = {value}"
    inside = [place for key, place in found.items() if len(key) > depth and key[:depth] == path[:depth]]
    if not table.is_header:
        last = max((place.end for place in inside), default=0)
        at, line = (last, f", {line}") if last else (table.start + 1, line)
        return text[:at] + line + text[at:]
    following = min(
        (place.key for place in found.values() if place.is_header and place.key > table.key), default=len(text)
    )
    last = max((place.end for place in inside if place.key < following), default=table.end)
    at = _REST_OF_LINE.match(text, last).end()  # type: ignore[union-attr]
    end = "\r\n" if "\r\n" in text else "\n"
    if at == len(text):
        return text + end + line + end
    at -= text[at - 1] == "\r"
    return text[:at] + end + line + text[at:]


def inline(values: Mapping[str, Any]) -> str:
    """`{graph_breaks = 0, min_coverage = 0.9}`."""
    return "{" + ", ".join(f"{_written(key)} = {value}" for key, value in values.items()) + "}"


def _written(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[Path, Place] = {}
        self._counts: dict[Path, int] = {}
        """How many elements each array of tables has so far."""

    def read(self) -> None:
        prefix: Path = ()
        position = self._skip(0)
        while position < len(self.text):
            if self.text[position] == "[":
                prefix, position = self._header(position)
            else:
                position = self._pair(position, prefix)
            position = self._skip(position)

    def _skip(self, position: int) -> int:
        return _BLANK.match(self.text, position).end()  # type: ignore[union-attr]

    def _key(self, position: int) -> tuple[tuple[str, ...], int]:
        """A dotted key's parts, and where it ends."""
        found = _KEY.match(self.text, position)
        if found is None or not found[0]:
            raise ValueError(f"no key at {position}")
        node: Any = toml.loads(f"{found[0]} = 0")
        parts = []
        while isinstance(node, dict):
            ((key, node),) = node.items()
            parts.append(key)
        return tuple(parts), found.end()

    def _header(self, position: int) -> tuple[Path, int]:
        brackets = 2 if self.text.startswith("[[", position) else 1
        parts, end = self._key(self._spaces(position + brackets))
        end = self._spaces(end) + brackets
        path: Path = ()
        for index, part in enumerate(parts):
            path += (part,)
            if brackets == 2 and index == len(parts) - 1:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path += (self._counts[path] - 1,)
        self.found[path] = Place(position, end, end, is_header=True)
        return path, end

    def _pair(self, position: int, prefix: Path) -> int:
        parts, end = self._key(position)
        start = self._spaces(self.text.index("=", end) + 1)
        path = (*prefix, *parts)
        self.found[path] = Place(position, start, start)  # before what is inside of it
        end = self._value(start, path)
        self.found[path] = Place(position, start, end)
        return end

    def _value(self, start: int, path: Path) -> int:
        """Where a value ends; notes what an array or an inline table holds."""
        if self.text[start] == "[":
            position, index = self._skip(start + 1), 0
            while self.text[position] != "]":
                inner = (*path, index)
                self.found[inner] = Place(position, position, position)
                end = self._value(position, inner)
                self.found[inner] = Place(position, position, end)
                position, index = self._skip(end), index + 1
            return position + 1
        if self.text[start] == "{":
            position = self._skip(start + 1)
            while self.text[position] != "}":
                position = self._skip(self._pair(position, path))
            return position + 1
        if found := _STRING.match(self.text, start):
            return found.end()
        return start + len(_BARE.match(self.text, start)[0].rstrip())  # type: ignore[index]

    def _spaces(self, position: int) -> int:
        while self.text[position] in " \t":
            position += 1
        return position
