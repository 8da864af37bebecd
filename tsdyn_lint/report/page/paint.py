"""Python text -> its lines, with keywords, strings, comments and numbers marked."""

from __future__ import annotations

import builtins
import io
import keyword
import token
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tsdyn_lint.report.page.markup import Html, el, join, text

_STRINGS = ("STRING", "FSTRING", "TSTRING")


class Code:
    """The lines as they are, and `painted`: the same as markup, plain from where Python cannot be read."""

    def __init__(self, code: str) -> None:
        self.lines = io.StringIO(code, newline=None).read().split("\n")
        spans = self._spans()
        self.painted = [_painted(line, spans.get(number, ())) for number, line in enumerate(self.lines, 1)]

    def indent(self, row: int) -> int:
        line = self.lines[row - 1].expandtabs(4)
        return len(line) - len(line.lstrip())

    def _spans(self) -> Mapping[int, list[tuple[int, int, str]]]:
        spans: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        try:
            for found in tokenize.generate_tokens(io.StringIO("\n".join(self.lines)).readline):
                if kind := _kind(found):
                    (row, start), (last, end) = found.start, found.end
                    for number in range(row, last + 1):
                        left = start if number == row else 0
                        spans[number].append((left, end if number == last else len(self.lines[number - 1]), kind))
        except (tokenize.TokenError, SyntaxError):
            pass
        return spans


def _kind(found: tokenize.TokenInfo) -> str | None:
    name = token.tok_name[found.type]
    if name == "NAME":
        if keyword.iskeyword(found.string) or found.string in ("self", "cls"):
            return "k"
        return "b" if hasattr(builtins, found.string) else None
    return {"COMMENT": "c", "NUMBER": "n"}.get(name) or ("s" if name.startswith(_STRINGS) else None)


def _painted(line: str, spans: Iterable[tuple[int, int, str]]) -> Html:
    parts: list[Html] = []
    done = 0
    for left, right, kind in spans:
        parts += [text(line[done:left]), el("i", line[max(left, done) : right], cls=kind)]
        done = max(done, right)
    return join([*parts, text(line[done:])])
