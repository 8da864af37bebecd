"""Schema texts of torch's operators and functions -> schemas, and whether a call fits one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tsdyn_lint.script import types as t

_SIMPLE = {
    "Tensor": t.TENSOR,
    "int": t.INT,
    "SymInt": t.INT,
    "float": t.FLOAT,
    "bool": t.BOOL,
    "str": t.STR,
    "complex": t.COMPLEX,
    "number": t.NUMBER,
    "Scalar": t.NUMBER,
    "Device": t.DEVICE,
    "device": t.DEVICE,
    "torch.device": t.DEVICE,
    "Generator": t.GENERATOR,
    "ScalarType": t.INT,
    "Layout": t.INT,
    "MemoryFormat": t.INT,
    "QScheme": t.INT,
    "Stream": t.STREAM,
    "NoneType": t.NONE,
    "None": t.NONE,
    "Any": t.ANY,
    "()": t.NONE,
    "Dtype": t.INT,
    "Storage": t.STORAGE,
    "torch.dtype": t.INT,
}
_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|\(\)|[\[\](),?*~|]|\d+|->|!)")


@dataclass(frozen=True)
class Arg:
    """A parameter; `repeat` is the length that a single number is broadcast to, 0 for none."""

    name: str
    type: t.Type
    repeat: int = 0
    has_default: bool = False
    keyword_only: bool = False


@dataclass(frozen=True)
class Schema:
    """Parameters without `self` of a module, and the result type (a tuple for several results)."""

    args: tuple[Arg, ...]
    result: t.Type
    text: str = ""
    variadic: bool = False


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return found.group(1) if found else ""

    def take(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found.group(1)

    def type(self) -> tuple[t.Type, int]:
        """A type and its broadcast length."""
        kind, repeat = self.atom(), 0
        while True:
            token = self.peek()
            if token == "?":
                self.take()
                kind = t.Optional(kind)
            elif token == "[":
                self.take()
                inside = self.take()
                if inside != "]":
                    repeat = int(inside) if inside.isdigit() else 0
                    self.take()
                kind = t.List(kind)
                self.alias()
            elif token == "~":
                self.take()
                repeat = int(self.take())
            else:
                return kind, repeat

    def alias(self) -> None:
        """Skips `(a!)`, `(a -> *)`, `(*)` after a type."""
        found = re.compile(r"\((?:[a-z](?:\|[a-z])*!?|\*)(?: -> [^)]*)?\)").match(self.text, self.at)
        if found:
            self.at = found.end()

    def atom(self) -> t.Type:
        token = self.take()
        if token == "(":
            parts = [self.type()[0]]
            while self.peek() == ",":
                self.take()
                parts.append(self.type()[0])
            self.take()
            return parts[0] if len(parts) == 1 else t.Tuple(parts)
        if token in ("Dict", "Tuple", "Union", "Optional", "List", "Future", "RRef", "Await") and self.peek() in "([":
            close = {"(": ")", "[": "]"}[self.take()]
            parts = []
            while self.peek() != close and self.peek():
                if self.peek() == ",":
                    self.take()
                parts.append(self.type()[0])
            self.take()
            self.alias()
            return _composite(token, parts)
        if token in _SIMPLE:
            self.alias()
            return _SIMPLE[token]
        if re.fullmatch(r"t[A-Z]?\w?|[kv]|tVal|T", token):
            self.alias()
            return t.Type("Var", (), token)
        if token in ("AnyListType",):
            return t.Type("AnyList")
        self.alias()
        return t.UNKNOWN


def _composite(name: str, parts: list[t.Type]) -> t.Type:
    if name == "Dict":
        return t.Dict(parts[0], parts[1])
    if name == "Tuple":
        return t.Tuple(parts)
    if name == "Union":
        return t.Union(parts)
    if name == "Optional":
        return t.Optional(parts[0])
    if name == "List":
        return t.List(parts[0])
    return t.Type(name, tuple(parts))


def _skip_default(reader: _Reader) -> None:
    """Moves past a default value to the comma or parenthesis that ends it."""
    depth, text, at, quote = 0, reader.text, reader.at, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            if not depth:
                break
            depth -= 1
        elif char == "," and not depth:
            break
        at += 1
    reader.at = at


@cache
def parse(text: str) -> Schema:
    """`(Tensor self, *, Scalar alpha=1) -> Tensor` -> Schema."""
    reader = _Reader(text)
    if not text.startswith("()"):
        reader.take()
    args: list[Arg] = []
    keyword_only = variadic = False
    while True:
        token = reader.peek()
        if token in (")", "()", ""):
            reader.take()
            break
        if token == ",":
            reader.take()
            continue
        if token == "*":
            reader.take()
            keyword_only = True
            continue
        if reader.text.startswith("...", reader.at + (reader.text[reader.at :].startswith(" "))):
            variadic = True
            reader.at = reader.text.index(")", reader.at)
            continue
        kind, repeat = reader.type()
        name = reader.take()
        has_default = reader.text.startswith("=", reader.at)
        if has_default:
            reader.at += 1
            _skip_default(reader)
        args.append(Arg(name, kind, repeat, has_default, keyword_only))
    back = _Reader(text)
    back.at = text.index("->", max(0, reader.at - 3)) + 2
    rest = text[back.at :].strip()
    if rest.startswith("("):
        inner = _Reader(rest)
        inner.take()
        parts, names = [], []
        if not rest.startswith("()"):
            while inner.peek() not in (")", ""):
                if inner.peek() == ",":
                    inner.take()
                parts.append(inner.type()[0])
                found = re.compile(r"\s*([A-Za-z_]\w*)").match(inner.text, inner.at)
                if found:
                    inner.at = found.end()
                    names.append(found.group(1))
        result = t.NONE if not parts else parts[0] if len(parts) == 1 else _results(parts, names)
    else:
        result = back.type()[0]
    return Schema(tuple(args), result, text, variadic)


@cache
def read_type(text: str) -> t.Type:
    """`List[int]` or `int[]` -> its type."""
    return _Reader(text).type()[0]


def _results(parts: list[t.Type], names: list[str]) -> t.Type:
    """Several results: a tuple, with fields where the schema names them."""
    plain = t.Tuple(parts)
    return t.Tuple(parts, str(plain), tuple(names)) if len(names) == len(parts) else plain


class Mismatch(Exception):
    """Why a call does not fit; `argument` is the parameter's name where one is to blame."""

    def __init__(
        self, why: str, argument: str = "", index: int = -1, expected: t.Type | None = None, found: t.Type | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.argument, self.index, self.expected, self.found = why, argument, index, expected, found


def match(schema: Schema, positional: list[t.Type], keywords: dict[str, t.Type], implicit: bool) -> t.Type:
    """The call's result type. Raises Mismatch. `implicit`: see `types.converts`."""
    variables: dict[str, t.Type] = {}
    used = 0
    pending = dict(keywords)
    for number, arg in enumerate(schema.args):
        if used < len(positional) and not arg.keyword_only:
            if _takes_rest(schema, number, arg, positional[used:], implicit):
                used = len(positional)
                continue
            fit(arg, positional[used], variables, implicit, used)
            used += 1
        elif arg.name in pending:
            fit(arg, pending.pop(arg.name), variables, implicit, -1)
        elif not arg.has_default:
            raise Mismatch(f"Argument {arg.name} not provided.", arg.name)
    if used < len(positional) and not schema.variadic:
        raise Mismatch(
            f"Expected at most {len(schema.args)} arguments but found {len(positional)} positional arguments.",
            index=used,
        )
    if pending:
        name = next(iter(pending))
        twice = any(a.name == name for a in schema.args)
        raise Mismatch(f"Argument '{name}' specified twice." if twice else f"Unknown keyword argument '{name}'.", name)
    return substitute(schema.result, variables)


def _takes_rest(schema: Schema, number: int, arg: Arg, rest: list[t.Type], implicit: bool) -> bool:
    """`view(2, 3)`: the remaining positional arguments as one list, where the parameter is the last positional one."""
    if arg.type.kind != "List" or arg.repeat or arg.type.args[0].kind == "Var":
        return False
    following = schema.args[number + 1 :]
    if following and not following[0].keyword_only:
        return False
    element = arg.type.args[0]
    first = rest[0]
    if len(rest) == 1 and (first.kind in ("List", "Tuple") or first is t.UNKNOWN):
        return False
    return all(t.converts(r, element, implicit) for r in rest)


def fit(arg: Arg, given: t.Type, variables: dict[str, t.Type], implicit: bool, index: int) -> None:
    wanted = arg.type
    if "Var" in _kinds(wanted):
        if not bind(wanted, given, variables):
            raise Mismatch(
                f"Could not match type {given} to {wanted} in argument '{arg.name}'",
                arg.name,
                index,
                substitute(wanted, variables),
                given,
            )
        return
    if arg.repeat and given in (t.INT, t.FLOAT, t.UNKNOWN):
        inner = t.strip_none(wanted)
        if inner.kind == "List" and t.is_subtype(given, inner.args[0]):
            return
    if wanted.kind == "AnyList":
        if given.kind in ("List", "Tuple", "?"):
            return
    elif t.converts(given, wanted, implicit):
        return
    raise Mismatch(
        f"Expected a value of type '{wanted}' for argument '{arg.name}' but instead found type '{given}'.",
        arg.name,
        index,
        wanted,
        given,
    )


@cache
def _kinds(kind: t.Type) -> frozenset[str]:
    return frozenset({kind.kind}).union(*(_kinds(a) for a in kind.args))


def bind(wanted: t.Type, given: t.Type, variables: dict[str, t.Type]) -> bool:
    """Matches a type with variables; a variable keeps the type it was first given."""
    if given is t.UNKNOWN:
        return True
    if wanted.kind == "Var":
        known = variables.get(wanted.extra)
        if known is None or known is t.UNKNOWN:
            variables[wanted.extra] = given
            return True
        joined = t.unify(known, given)
        if joined is None or not (t.is_subtype(given, known)):
            return False
        return True
    if wanted.kind == "Optional" and given.kind != "Optional":
        return given is t.NONE or bind(wanted.args[0], given, variables)
    if wanted.kind == "List" and given.kind == "Tuple":
        return all(bind(wanted.args[0], e, variables) for e in given.args)
    if wanted.kind != given.kind or len(wanted.args) != len(given.args):
        return t.is_subtype(given, wanted)
    if not wanted.args:
        return t.is_subtype(given, wanted)
    return all(bind(w, g, variables) for w, g in zip(wanted.args, given.args, strict=False))


def substitute(kind: t.Type, variables: dict[str, t.Type]) -> t.Type:
    if kind.kind == "Var":
        return variables.get(kind.extra, t.UNKNOWN)
    if not kind.args:
        return kind
    args = tuple(substitute(a, variables) for a in kind.args)
    if kind.kind == "Optional":
        return t.Optional(args[0])
    return t.Type(kind.kind, args, kind.extra)
