"""Breaks that Dynamo never comes to: one before them makes it run the whole function without a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tsdyn_lint.infer.events import LIKELY, Event, Place
from tsdyn_lint.resolve import Function

GivenUp = Mapping[Function, Sequence[tuple[Event, Place]]]
"""Functions that run without a graph, each with the breaks that cause it and where in the function they are."""


def given_up(breaks: Iterable[Event]) -> GivenUp:
    """The functions that Dynamo gives up for these breaks."""
    found: dict[Function, list[tuple[Event, Place]]] = {}
    for event in breaks:
        if event.judged >= LIKELY:
            for place in event.skipped:
                found.setdefault(place.function, []).append((event, place))
    return found


def behind(breaks: Iterable[Event], functions: GivenUp) -> Mapping[Event, Sequence[Event]]:
    """For each break that gives up a function, those that come after it there on every way: the masked ones."""
    masked: dict[Event, list[Event]] = {}
    for event in breaks:
        if event.apart:
            continue
        start = None
        for earlier, place in functions.get(event.function, ()):
            if earlier is event or event.sides[: len(place.sides)] != place.sides:
                continue
            start = start or event.module.tree.places.span(event.node)[0]
            if place.function.module.tree.places.span(place.node)[1] < start:
                masked.setdefault(earlier, []).append(event)
    return masked
