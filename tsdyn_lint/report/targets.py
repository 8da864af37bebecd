"""What `--verify` saw of each target, a few lines each, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tsdyn_lint.report import figures
from tsdyn_lint.report.run import Run
from tsdyn_lint.report.style import paint

_MOST = 6
"""Lines of one kind before the rest is only counted."""


def render(run: Run) -> str:
    """All targets of a run, empty without `--verify`."""
    return "".join(_block(run, target) for target in run.targets or ())


def _block(run: Run, target: Mapping[str, Any]) -> str:
    lines = [_head(run, target)]
    failure = target["failure"]
    if failure:
        lines.append(f"  not run ({failure['kind']}): {_short(failure['message'])}")
        lines += [f"    {line}" for line in failure.get("toml", "").splitlines()]
    for name, describe in _PARTS.items():
        seen = target[name]
        if seen is not None:
            lacks = isinstance(seen.get("unavailable"), str)
            told = [f"not available: {seen['unavailable']}"] if lacks else list(describe(run, seen))
            lines += [f"  {name if index == 0 else '':<7} {text}" for index, text in enumerate(told)]
    lines += [f"  {'budget' if index == 0 else '':<7} {text}" for index, text in enumerate(_budget(run, target))]
    return "\n".join(lines) + "\n\n"


def _budget(run: Run, target: Mapping[str, Any]) -> Iterator[str]:
    for item in target["budget"]["broken"]:
        yield f"{item['message']}{_at(run, item)}"
    if unknown := target["budget"].get("unknown"):
        yield f"not checked, figures that could not be had: {', '.join(unknown)}"


def _head(run: Run, target: Mapping[str, Any]) -> str:
    parts = [paint(target["target"], "bold", run.colour)]
    if target["inputs"]:
        made = ", synthesised" if target["synthesised"] else ""
        kwargs = ", ".join(f"{key}={value}" for key, value in target["kwargs"].items())
        built = f" built with {kwargs}" if kwargs else ""
        parts.append(f"on {', '.join(target['inputs'])}{made}{built}")
    if target["lines_reached"] is not None:
        parts.append(f"{target['lines_reached']:.0%} of its lines reached")
    if target["torch"]:
        parts.append(f"torch {target['torch']}, {target['device']}")
    return "; ".join(parts)


def _dynamo(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    breaks = seen["breaks"]
    count = f"{_agreement(seen)}; {_count(seen['graphs'], 'graph')}, {_count(len(breaks), 'break')}"
    yield count if seen["ok"] else f"raises{_at(run, seen['error'])}: {_short(seen['error']['message'])}"
    for item in breaks[:_MOST]:
        who = item["finding"] or "not predicted"
        skipped = ", frame skipped" if item["frame_skipped"] else ""
        yield f"{_at(run, item).lstrip()} {item['gb'] or ''} {_short(item['reason'])} ({who}{skipped})"
    if len(breaks) > _MOST:
        yield f"and {len(breaks) - _MOST} more"
    recompiles = seen["recompiles"]
    if seen["guard_hit_rate"] is not None:
        limit = ", up to the limit" if seen["limit_hit"] else ""
        yield f"{_count(len(recompiles), 'recompile')}{limit}; guards hit {seen['guard_hit_rate']:.0%}"
    for item in recompiles[:_MOST]:
        yield f"  {item['input']}: {_short(item['guard'])}{_at(run, item)}"
    for switch, places in seen["lifted_by"].items():
        yield f"{switch} lifts {', '.join(_at(run, place).lstrip() for place in places)}"


def _script(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    if not seen["errors"]:
        yield _agreement(seen)
    for error in seen["errors"][:_MOST]:
        past = {"masked": " (past the errors above)", "run": " (when run)"}.get(error["how"], "")
        yield f"raises{_at(run, error)}: {_short(error['message'])}{past}"


def _trace(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    if not seen["ok"]:
        yield f"raises{_at(run, seen['error'])}: {_short(seen['error']['message'])}"
        return
    yield _agreement(seen)
    for answer in seen["answers"]:
        if answer["outcome"] in ("differs", "raises"):
            yield f"  {answer['input']}: {_short(answer['message'])}"
    for warned in seen["warnings"][:_MOST]:
        yield f"  warns{_at(run, warned)}: {_short(warned['message'].partition(' might cause')[0])}"


def _export(run: Run, seen: Mapping[str, Any]) -> Iterator[str]:
    yield from ([_agreement(seen)] if seen["ok"] else [])
    for error in seen["errors"]:
        yield f"raises{_at(run, error)}: {_short(error['message'])}"
    for failure in (seen["draft"] or [])[:_MOST]:
        yield f"  needs data{_at(run, failure)}: {_short(failure['expression'] or failure['kind'])}"


_PARTS: dict[str, Callable[[Run, Mapping[str, Any]], Iterator[str]]] = {
    "dynamo": _dynamo, "script": _script, "trace": _trace, "export": _export, "aot": figures.packaged,
    "measure": figures.measured, "route": lambda run, seen: figures.route(seen),
}  # fmt: skip


def _agreement(seen: Mapping[str, Any]) -> str:
    words = {True: "same as eager", False: "not as eager", None: "not compared"}
    return f"ok; {words[seen['same_input']]} on these inputs, {words[seen['other_inputs']]} on others and later calls"


def _at(run: Run, place: Mapping[str, Any] | None) -> str:
    if not place or not place.get("filename"):
        return ""
    return f" {run.shown(place['filename'])}:{place['location']['row']}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _short(text: str) -> str:
    line = next(iter(str(text).strip().splitlines()), "")
    return line if len(line) <= 160 else line[:157] + "..."
