"""Linted files -> how the project compiles: `fullgraph=True`, and the switches of `torch._dynamo.config` it sets."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.captures import captures, dotted_ast
from tsdyn_lint.infer.events import Event
from tsdyn_lint.resolve import Module

_CONFIG = "torch._dynamo.config."
_REORDERABLE = _CONFIG + "reorderable_logging_functions"
_STEERS = frozenset({"branch", "loop", "value", "math", "raise", "assert"})
_NEVER_CAPTURED = frozenset({"ctc_loss", "lstsq"})
"""Operators without a meta kernel: no setting captures their dynamic shape."""


@dataclass(frozen=True)
class CompileSettings:
    """What the project's own settings let Dynamo capture beyond its defaults.

    `fullgraph`: every `torch.compile` of the project asks for one graph, which turns both captures on and makes what
    still breaks an error. `reordered`: functions that Dynamo moves to the end of the graph instead of breaking.
    `dynamic_integers`: integers that modules hold become dynamic when they change, as arguments do.
    """

    scalars: bool = False
    dynamic_shapes: bool = False
    fullgraph: bool = False
    reordered: frozenset[str] = frozenset()
    dynamic_integers: bool = False

    def captures(self, event: Event) -> bool:
        """Whether an event that breaks the graph by default is captured under these settings (measured on 2.13)."""
        if event.kind == "scalar":
            plain = event.facts["spelling"] in ("item", "int", "float", "tolist")
            return (self.scalars or self.fullgraph) and plain and not event.use_kinds & _STEERS
        if event.kind in ("dynshape", "datasize"):
            return (self.dynamic_shapes or self.fullgraph) and event.facts.get("op") not in _NEVER_CAPTURED
        if event.kind in ("call", "method"):
            return event.facts["target"] in self.reordered
        return False

    def generalises(self, event: Event) -> bool:
        """Whether what compiles again for each value by default does so once (measured on 2.13)."""
        if event.kind == "differing-attribute":
            return self.dynamic_integers and event.facts["type"] == "int"
        if event.kind == "write":
            counts = event.facts["form"] == "augment" and event.facts["value"] in ("constant", "scalar")
            return self.dynamic_integers and event.facts["owner"] == "self" and counts
        return False


def compile_settings(modules: Iterable[Module]) -> CompileSettings:
    """The settings that any of the files makes; `fullgraph` only if each of their compile calls asks for it."""
    values: dict[str, bool] = {}
    reordered: set[str] = set()
    graphs: list[bool] = []
    for module in modules:
        graphs += [c.fullgraph for c in captures(module) if Engine.DYNAMO in c.engines]
        if module.tree.syntax is None or "_dynamo" not in module.tree.text:
            continue
        for name, value in _assigned(module):
            if name.startswith(_CONFIG) and isinstance(value, ast.Constant):
                values[name.removeprefix(_CONFIG)] = value.value is True
            elif name == _REORDERABLE:
                names = [n for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute))]
                reordered |= {_full(dotted_ast(n, module)) for n in names}
    return CompileSettings(
        scalars=values.get("capture_scalar_outputs", False),
        dynamic_shapes=values.get("capture_dynamic_output_shape_ops", False),
        fullgraph=bool(graphs) and all(graphs),
        reordered=frozenset(reordered),
        dynamic_integers=values.get("allow_unspec_int_on_nn_module", False),
    )


def _assigned(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Dotted names that the file assigns or `config.patch`es, and values added to a set in the configuration.

    A patch inside of a function holds there alone, which says nothing of the rest of the project.
    """
    assert module.tree.syntax is not None
    scoped = {
        id(inner)
        for node in ast.walk(module.tree.syntax)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree.syntax):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield dotted_ast(target, module), node.value
        elif isinstance(node, ast.Call):
            called = dotted_ast(node.func, module)
            if called == _CONFIG + "patch" and id(node) not in scoped:
                yield from ((_CONFIG + k.arg, k.value) for k in node.keywords if k.arg)
                for argument in node.args:
                    if isinstance(argument, ast.Dict):
                        pairs = zip(argument.keys, argument.values, strict=True)
                        yield from ((_CONFIG + str(k.value), v) for k, v in pairs if isinstance(k, ast.Constant))
            elif called in (f"{_REORDERABLE}.add", f"{_REORDERABLE}.update"):
                yield from ((_REORDERABLE, argument) for argument in node.args)


def _full(name: str) -> str:
    return name if "." in name else f"builtins.{name}"
