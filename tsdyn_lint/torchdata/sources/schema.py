"""Operator schema text (`name.overload(Type arg=default, *, Type out) -> Type`) -> its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"^(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\((?P<args>.*)\) -> (?P<returns>.*)$", re.DOTALL)


@dataclass(frozen=True)
class Arg:
    """A parameter: its type as the schema spells it, without alias marks."""

    name: str
    type: str
    has_default: bool
    keyword_only: bool
    default: str = ""


@dataclass(frozen=True)
class Schema:
    """An overload: `returns` holds (type, name or '') pairs."""

    name: str
    overload: str
    args: tuple[Arg, ...]
    returns: tuple[tuple[str, str], ...]
    vararg: bool = False

    @property
    def is_out(self) -> bool:
        """Whether this is an `out=` variant, which nobody calls by this overload's name."""
        return any(a.keyword_only and not a.has_default and a.name.startswith("out") for a in self.args) or (
            self.overload.endswith("out")
        )


def parse(text: str) -> Schema:
    """The schema written in `text`; ValueError where it is none."""
    found = _HEAD.match(text.strip())
    if not found:
        raise ValueError(f"no schema: {text!r}")
    args: list[Arg] = []
    keyword_only = vararg = False
    for part in split_top(found["args"]):
        if part == "*":
            keyword_only = True
        elif part == "...":
            vararg = True
        else:
            args.append(_arg(part, keyword_only))
    return Schema(found["name"], found["overload"] or "", tuple(args), _returns(found["returns"]), vararg)


def _arg(text: str, keyword_only: bool) -> Arg:
    head, eq, default = text.partition("=")
    type_, _, name = head.strip().rpartition(" ")
    return Arg(name, _plain(type_), bool(eq), keyword_only, default.strip())


def _returns(text: str) -> tuple[tuple[str, str], ...]:
    text = text.strip()
    inner = _plain(text)
    parts = split_top(inner[1:-1]) if inner.startswith("(") and inner.endswith(")") else [inner]
    found: list[tuple[str, str]] = []
    for part in parts:
        if part == "...":
            found.append(("...", ""))
            continue
        type_, _, name = part.strip().rpartition(" ")
        found.append((type_, name) if type_ and re.fullmatch(r"[A-Za-z_]\w*", name) else (part.strip(), ""))
    return tuple(found)


def _plain(text: str) -> str:
    """`Tensor(a!)[]` -> `Tensor[]`: alias marks say nothing about types."""
    return re.sub(r"\(\w!?(?:\|\w)*(?:\s*->\s*[\w*|]+)?!?\)|\(\*\)", "", text)


def split_top(text: str) -> list[str]:
    """`text` split at the commas that lie in no bracket or quotes."""
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[i - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
