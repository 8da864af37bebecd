"""Arguments that somebody wrote down: by the configuration, or as `example_inputs` beside a class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tsdyn_lint.verify.build import literal
from tsdyn_lint.verify.build.importing import BuildError, named
from tsdyn_lint.verify.build.variants import others, sweep
from tsdyn_lint.verify.probes.subject import Call, seed

BESIDE = ("example_inputs", "get_example_inputs", "example_input_array")

Calls = tuple[Call, tuple[Call, ...], tuple[Call, ...]]
"""The example, calls to compare on, and the sweep."""


def from_table(table: Mapping[str, Any], module: ModuleType) -> Calls | None:
    """What `inputs` and `second` of a target's table say; None without `inputs`."""
    inputs = table.get("inputs")
    if inputs is None:
        return None
    if isinstance(inputs, list) and not any(isinstance(item, str) and ":" in item for item in inputs):
        example, compared, swept = literal.calls(inputs)
    else:
        example = call_of(inputs, module)
        compared, swept = others(example), sweep(example)
    return with_second(table.get("second"), module, (example, compared, swept))


def with_second(second: Any, module: ModuleType, calls: Calls) -> Calls:
    """The same with the user's other inputs before the ones that are made up."""
    if second is None:
        return calls
    example, compared, swept = calls
    if isinstance(second, list) and all(isinstance(item, Mapping) for item in second):
        given = literal.call_from(second, dict.fromkeys(literal.sizes_of(second), 6), "second inputs", "given", 0)
    else:
        given = call_of(second, module, "second inputs", "given")
    return example, (given, *compared), (given, *swept)


def call_of(source: Any, module: ModuleType, label: str = "the example", kind: str = "example") -> Call:
    """`package.module:function`, a function or plain arguments -> a call: args, `(args, kwargs)` or a mapping."""
    value = named(source, module) if isinstance(source, str) else source
    seed(0)
    if callable(value) and not hasattr(value, "shape"):
        value = value()
    if isinstance(value, dict):
        return Call((), value, label, kind)
    if not isinstance(value, tuple):
        return Call(tuple(value) if isinstance(value, list) else (value,), {}, label, kind)
    if len(value) == 2 and isinstance(value[0], (tuple, list)) and isinstance(value[1], dict):
        return Call(tuple(value[0]), value[1], label, kind)
    return Call(value, {}, label, kind)


def beside(kind: Any, module: ModuleType, instance: Any) -> Call | None:
    """Arguments that the class itself or its module offers; None where neither does."""
    for name in BESIDE:
        for owner in (instance, module):
            value = getattr(owner, name, None)
            if value is None:
                continue
            if isinstance(value, Mapping) and getattr(kind, "__name__", "") in value:
                value = value[kind.__name__]
            try:
                return call_of(_bound(value, kind), module)
            except BuildError:
                raise
            except Exception as error:
                raise BuildError(f"{name}() failed: {type(error).__name__}: {error}") from error
    return None


def _bound(value: Any, kind: Any) -> Any:
    """A function of one required parameter is asked for the inputs of this class."""
    if not callable(value) or hasattr(value, "shape"):
        return value
    try:
        needed = [
            p for p in inspect.signature(value).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
    except (TypeError, ValueError):
        return value
    return (lambda: value(kind)) if len(needed) == 1 else value
