"""A function's text -> the types that its type comment or its docstring gives to parameters without an annotation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from tsdyn_lint.parse import ParseFailure, parsed_expression

_WORDS = {
    **dict.fromkeys(("list", "sequence", "iterable"), "list"),
    **{word: word for word in ("tuple", "dict", "int", "float", "bool", "str")},
    **{"dictionary": "dict", "mapping": "dict", "integer": "int", "boolean": "bool", "string": "str"},
}
"""The first word of a type in prose -> what it is, where that is no tensor."""
_NUMBERS = frozenset({"int", "float", "bool", "str"})
_DESCRIBED = re.compile(r"^[ \t]*(?P<name>\w+)(?: ?\((?P<google>[^\n]*?)\):| : (?P<numpy>[^\n]+)$)", re.MULTILINE)
_OTHERWISE = re.compile(r",\s*\*?optional\*?|,? or |\|")


def comment_types(text: str) -> Sequence[cst.BaseExpression]:
    """The types of the parameters in `(Tensor, int) -> Tensor`; none where it does not read as that."""
    given = text.partition("->")[0].strip()
    try:
        tuple_ = parsed_expression(f"({given[1:-1]},)")
    except ParseFailure:
        return ()
    elements = tuple_.elements if isinstance(tuple_, cst.Tuple) else ()
    return () if any(isinstance(e.value, cst.Ellipsis) for e in elements) else [e.value for e in elements]


def docstring_types(text: str) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Each parameter that `name (type): ...` or `name : type` describes as something else than a tensor."""
    for described in _DESCRIBED.finditer(text):
        found = _type(described["google"] or described["numpy"] or "")  # `name (): ...` names no type
        if found:
            yield described["name"], parsed_expression(found)


def _type(prose: str) -> str | None:
    """The annotation for a type in prose, if each of its alternatives is one and the same that is no tensor."""
    kinds = {_kind(part) for part in _OTHERWISE.split(prose.replace("`", "").replace("~", "").lower()) if part.strip()}
    kinds.discard("None")
    kind = kinds.pop() if len(kinds) == 1 else None
    return "list[torch.Tensor]" if kind == "list" and "tensor" in prose.lower() else kind


def _kind(part: str) -> str | None:
    words = re.findall(r"[\w.]+", part)
    if not words:
        return None
    word = words[0].rpartition(".")[2]
    kind = "None" if word == "none" else _WORDS.get(word)
    return None if kind in _NUMBERS and len(words) > 1 else kind
