"""What the project says -> how it compiles: `fullgraph=True`, and the switches of `torch._dynamo.config` it sets."""

from __future__ import annotations

from dataclasses import dataclass

from tsdyn_lint.infer.events import Event
from tsdyn_lint.usage import Whole

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


def compile_settings(whole: Whole) -> CompileSettings:
    """The settings that any file of the project makes."""
    return CompileSettings(
        scalars=whole.switches.get("capture_scalar_outputs", False),
        dynamic_shapes=whole.switches.get("capture_dynamic_output_shape_ops", False),
        fullgraph=whole.fullgraph,
        reordered=whole.reordered,
        dynamic_integers=whole.switches.get("allow_unspec_int_on_nn_module", False),
    )
