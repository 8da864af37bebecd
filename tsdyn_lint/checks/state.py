"""TSD4xx: state that calls change: attributes, globals, containers."""

from __future__ import annotations

from tsdyn_lint.checks.registry import D, E, R, S, T, check
from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event

_OUTPUT = frozenset({"arith", "shape", "index", "branch", "loop", "return", "arg", "value", "math", "format"})


def _frozen(event: Event) -> set[Engine]:
    """Trace and export keep the state of the first call where a later read reaches the output.

    What is made of parameters alone is the same in each call.
    """
    if event.facts.get("lasts"):
        return set()
    return {T, E} if event.facts.get("reads", frozenset()) & _OUTPUT else set()


@check("TSD401", "write")
def attribute_counter(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["owner"] != "self" or facts["form"] != "augment" or facts["value"] not in ("constant", "scalar"):
        return None
    return {R} | _frozen(event)


@check("TSD402", "write")
def attribute_container_mutation(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["owner"] != "self" or "container" not in facts:
        return None
    grows = facts["resizes"] and facts["form"] not in ("clear", "update")
    return ({R} if grows else set()) | _frozen(event)


@check("TSD403", "write")
def global_write(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["owner"] != "global" or "container" in facts:
        return None
    return ({R} if facts["form"] == "augment" else set()) | _frozen(event)


@check("TSD404", "write")
def global_container_mutation(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["owner"] != "global" or "container" not in facts:
        return None
    return ({R} if facts["resizes"] and facts["form"] not in ("clear", "update") else set()) | {S} | _frozen(event)


@check("TSD405", "write")
def mutable_default(event: Event) -> set[Engine] | None:
    facts = event.facts
    return {R, S} if facts["owner"] == "default" and facts.get("resizes") else None


@check("TSD406", "write")
def attribute_cache(event: Event) -> set[Engine] | None:
    """Filled on the first call and read: the capture records the filling, later calls of eager do not fill."""
    facts = event.facts
    if facts["owner"] != "self" or facts["form"] != "assign" or facts.get("had") != "none":
        return None
    return {T, E} if facts.get("varies") and facts.get("reads") else None


@check("TSD407", "write")
def buffer_rebind(event: Event) -> set[Engine] | None:
    facts = event.facts
    if (
        facts["owner"] != "self"
        or facts["form"] != "assign"
        or facts["value"] != "tensor"
        or facts.get("had") != "tensor"
    ):
        return None
    if not facts.get("reads"):
        return None
    if facts["built"] and not facts["read_before"]:  # from sizes alone, before any use: an earlier call left the same
        return None
    return {T} if facts.get("before") in ("buffer", "parameter") else {T, E}


@check("TSD408", "tensor-attr")
def data_attribute_write(event: Event) -> set[Engine] | None:
    facts = event.facts
    if facts["name"] != "data" or facts["mode"] != "write":
        return None
    made_here = facts.get("intermediate") and facts.get("origin") not in ("parameter", "buffer")
    return {D, S, T, E} if made_here else {S, T, E}
