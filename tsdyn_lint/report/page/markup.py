"""Elements as text: whatever is put into one is escaped, unless it is an element itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

_VOID = {"meta", "wbr"}
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters without a shape of their own: controls, marks that reorder text, halves of surrogate pairs."""


class Html(str):
    """Text that is markup already."""


Child: TypeAlias = "str | float | None | Iterable[Child]"
Value: TypeAlias = "str | float | bool | None"


def el(tag: str, *children: Child, **attributes: Value) -> Html:
    """`el("td", text, cls="number")`: an element. Attributes that are None or False are left out."""
    start = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{start}>")
    return Html(f"<{tag}{start}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Html:
    """Children one after the other."""
    return Html("".join(map(_child, children)))


def text(value: str) -> Html:
    """Any text as markup; what could not be seen is spelled out."""
    return Html(html.escape(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value), quote=True))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    return text(str(child)) if isinstance(child, (str, int, float)) else join(child)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    if isinstance(value, float):
        value = f"{value:.1f}"  # a place in a drawing
    spelled = {"cls": "class"}.get(name, name.replace("_", "-"))
    return f" {spelled}" if value is True else f' {spelled}="{text(str(value))}"'
