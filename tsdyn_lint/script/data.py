"""`rules/torch-X.Y.script.json` as the checker asks for it; schema texts become schemas on first use."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

from tsdyn_lint.script import schema as s
from tsdyn_lint.script import types as t
from tsdyn_lint.torchdata import delta
from tsdyn_lint.torchdata.load import BASE, KNOWN, folder

_PROBED = frozenset(
    {
        "Tensor",
        "int",
        "float",
        "bool",
        "complex",
        "str",
        "List[int]",
        "List[float]",
        "List[bool]",
        "List[str]",
        "List[Tensor]",
        "Optional[Tensor]",
        "Optional[int]",
        "Optional[float]",
        "Device",
        "Tuple[int, int]",
        "Tuple[Tensor, Tensor]",
        "Dict[str, Tensor]",
        "Dict[str, int]",
        "Dict[int, int]",
        "List[List[int]]",
        "number",
        "NoneType",
    }
)
"""The operand types that the generator tries with every operator and builtin."""


class ScriptData:
    """One torch version's operators, functions and modules as its compiler knows them."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.operators: dict[str, list[str]] = raw["operators"]
        self.names: dict[str, str] = raw["names"]
        self.functions: dict[str, list[str]] = raw["functions"]
        self.modules: dict[str, dict[str, Any]] = raw["modules"]
        self._homes = frozenset(name.rpartition(".")[0] for name in [*self.names, *self.functions])
        self.dtypes = frozenset(raw["dtypes"])
        self.absent = frozenset(raw["absent"])
        self.properties = {name: s.read_type(text) for name, text in raw["properties"].items()}
        self.extra_methods: dict[str, list[str]] = raw["methods"]
        self._table: dict[str, dict[str, str]] = raw["expressions"]
        self._expressions: dict[tuple[str, tuple[t.Type, ...]], t.Type | bool | None] = {}
        self._calls: dict[Any, t.Type | s.Mismatch] = {}

    def overloads(self, operator: str) -> tuple[s.Schema, ...]:
        return parsed(tuple(self.operators.get(operator, ())))

    def is_function(self, dotted: str) -> bool:
        return dotted in self.names or dotted in self.functions

    def is_module(self, dotted: str) -> bool:
        return dotted in self._homes or dotted in sys.stdlib_module_names or dotted == "numpy"

    def has_operator(self, name: str) -> bool:
        return f"aten::{name}" in self.operators

    def expression(self, word: str, operands: tuple[t.Type, ...]) -> t.Type | None | bool:
        """The result of an operator or a builtin (`+`, `len()`, `max(,)`) on types that torch was asked about.

        None: it does not compile. False: torch was not asked about these types.
        """
        key = (word, operands)
        if key not in self._expressions:
            self._expressions[key] = self._expression(word, operands)
        return self._expressions[key]

    def _expression(self, word: str, operands: tuple[t.Type, ...]) -> t.Type | None | bool:
        names = [str(o) for o in operands]
        if not all(n in _PROBED for n in names):
            return False
        text = self._table.get(word, {}).get("|".join(names))
        return s.read_type(text) if text else None

    def returns_tensor(self, dotted: str) -> bool:
        """Whether a torch function gives a tensor in every overload, as far as is known."""
        operator = self.names.get(dotted)
        schemas = self.overloads(operator) if operator else ()
        mine = [x for x in schemas if x.args[:1] == () or x.args[0].type is t.TENSOR or x.result is t.TENSOR]
        return bool(mine) and all(x.result is t.TENSOR for x in mine)

    def call(self, operator: str, positional: list[t.Type], keywords: dict[str, t.Type]) -> t.Type | s.Mismatch:
        """The result of an operator's best overload, or why none fits."""
        if any(x.kind == "Module" for x in positional):
            return choose(self.overloads(operator), positional, keywords)
        key = (operator, tuple(positional), tuple(keywords.items()))
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = choose(self.overloads(operator), positional, keywords)
        return found

    def forget(self) -> None:
        """Lets go of the answers, whose types may hold classes of the program that was checked."""
        self._calls.clear()
        self._expressions.clear()


@cache
def parsed(texts: tuple[str, ...]) -> tuple[s.Schema, ...]:
    return tuple(s.parse(x) for x in texts if not x.startswith("!"))


def choose(schemas: tuple[s.Schema, ...], positional: list[t.Type], keywords: dict[str, t.Type]) -> t.Type | s.Mismatch:
    """The first overload that fits, conversions allowed only in a second round; the results' common type when unknown
    arguments leave several open."""
    unknown = any(t.has_unknown(x) for x in [*positional, *keywords.values()])
    failure: s.Mismatch | None = None
    for implicit in (False, True):
        results: list[t.Type] = []
        for schema in schemas:
            try:
                results.append(s.match(schema, positional, keywords, implicit))
            except s.Mismatch as mismatch:
                failure = failure or mismatch.with_traceback(None)  # kept with the answer; its frames are not
                if implicit and len(schemas) == 1:
                    failure = mismatch.with_traceback(None)
                continue
            if not unknown:
                return results[0]
        if results:
            return results[0] if all(r is results[0] for r in results) else t.UNKNOWN
    return failure or s.Mismatch("no such operator")


@cache
def load(version: tuple[int, int]) -> ScriptData:
    """The data of that torch, or of the nearest version that has any."""
    nearest = min(max(version, KNOWN[0]), KNOWN[-1])
    base = _read(BASE)
    return ScriptData(base if nearest == BASE else delta.merge(base, _read(nearest)))


def _read(version: tuple[int, int]) -> dict[str, Any]:
    path = folder() / f"torch-{version[0]}.{version[1]}.script.json"
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return raw
