"""Another version's sections -> what differs from the base file, name by name, which is all that its own file keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tsdyn_lint.torchdata.load import GROUPED
from tsdyn_lint.torchdata.write import group


def flat(section: str, value: Mapping[str, Any] | list[str]) -> dict[str, Any]:
    """A section as name -> value, whether it is stored grouped or not; the names of a list have the value true."""
    if isinstance(value, list):
        return dict.fromkeys(value, True)
    if section not in GROUPED:
        return dict(value)
    return {
        f"{scope}.{name}": kind
        for scope, kinds in value.items()
        for kind, names in kinds.items()
        for name in names.split(" ")
    }


def between(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Section -> the names whose value changed, null where `other` lacks the name. `meta` and `source` are kept
    whole."""
    found: dict[str, Any] = {}
    for section, value in other.items():
        if section in {"meta", "source"}:
            found[section] = value
            continue
        ours, theirs = flat(section, base.get(section, {})), flat(section, value)
        changed = {name: theirs.get(name) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
        if changed:
            found[section] = changed
    return found


def apply(section: str, base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A grouped section of the version that `changes` describes, whole."""
    merged = flat(section, base.get(section, {})) | dict(changes.get(section, {}))
    return group((name, value) for name, value in merged.items() if value is not None)


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """All sections, none of them grouped, of the version that `changes` describes."""
    found = {section: changes[section] for section in ("meta", "source")}
    for section, value in base.items():
        merged = flat(section, value) | dict(changes.get(section, {}))
        whole = {name: merged[name] for name in sorted(merged) if merged[name] is not None}
        found.setdefault(section, list(whole) if isinstance(value, list) else whole)
    return found
