"""The captures side by side: whether each holds, and whether it answers as eager does on both inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.code import break_text, first_line
from tsdyn_lint.report.page.markup import Html, el
from tsdyn_lint.report.run import Run

_NAMES = {
    "trace": "torch.jit.trace", "script": "torch.jit.script", "dynamo": "torch.compile", "export": "torch.export",
    "aot": "AOTInductor",
}  # fmt: skip
_ANSWERS = {True: ("good", "same as eager"), False: ("bad", "differs"), None: ("none", "not compared")}
_MOST = 8


def captures(run: Run, target: Mapping[str, Any]) -> Html | None:
    """A card a capture, None where nothing was captured."""
    cards = [_card(run, name, target[name], _cost(name, target)) for name in _NAMES if target[name] is not None]
    return el("div", cards, cls="cards") if cards else None


def state(name: str, seen: Mapping[str, Any] | None) -> tuple[str, str]:
    """A capture in a word, and how good that is: `good`, `fair`, `bad` or `none`."""
    if seen is None or seen.get("unavailable"):
        return "none", "not tried"
    if not seen["ok"]:
        return "bad", "fails"
    if seen["same_input"] is False:
        return "bad", "wrong"
    if name == "dynamo" and seen["breaks"]:
        return "fair", units.plural(len(seen["breaks"]), "break")
    if seen["other_inputs"] is False:
        return "fair", "specialised"
    return "good", "whole" if name == "dynamo" else "ok"


def _cost(name: str, target: Mapping[str, Any]) -> str:
    """What a call of it takes, and its file where it has one; empty where it was not measured."""
    measure, aot = target["measure"] or {}, target["aot"] or {}
    script = measure.get("torchscript") or {}
    call = {
        "dynamo": measure.get("t_compiled_us"), "script": script.get("t_script_us"), "trace": script.get("t_trace_us"),
        "aot": aot.get("t_call_us"),
    }.get(name)  # fmt: skip
    saved = {"script": script, "aot": aot}.get(name, {})
    told = [f"{units.microseconds(call)} a call"] if call is not None else []
    if saved.get("build_s") is not None:
        told.append(f"built in {units.seconds(saved['build_s'])}")
    if saved.get("file_mb") is not None:
        told.append(f"{units.size(saved['file_mb'] * 1e6)} on disk, loaded in {units.seconds(saved['load_s'])}")
    return "; ".join(told)


def _card(run: Run, name: str, seen: Mapping[str, Any], cost: str) -> Html:
    kind, word = state(name, seen)
    head = el("h4", el("code", _NAMES[name]), el("span", word, cls=f"state {kind}"))
    if seen.get("unavailable"):
        return el("article", head, el("p", first_line(seen["unavailable"])))
    told = list(_told(run, name, seen))
    more = [el("li", f"and {len(told) - _MOST} more")] if len(told) > _MOST else []
    answers = el(
        "dl",
        el("div", el("dt", "These inputs"), _answer(seen["same_input"])),
        el("div", el("dt", "Other inputs, later calls"), _answer(seen["other_inputs"])),
    )
    return el("article", head, answers, el("ul", told[:_MOST], more) if told else None, el("p", cost) if cost else None)


def _answer(same: bool | None) -> Html:
    kind, words = _ANSWERS[same]
    return el("dd", words, cls=f"state {kind}")


def _told(run: Run, name: str, seen: Mapping[str, Any]) -> Iterator[Html]:
    """What was raised, what broke, and which answers are other ones."""
    for error in [seen.get("error"), *seen.get("errors", ())]:
        if error:
            yield el("li", *place(run, error), first_line(error["message"]))
    for item in seen.get("breaks", ()):
        yield el("li", *place(run, item), break_text(item))
    for item in seen.get("warnings", ()):
        yield el("li", *place(run, item), first_line(item["message"]))
    for item in seen.get("answers", ()):
        if item["outcome"] in ("differs", "raises"):
            yield el("li", f"{item['input']}: {first_line(item['message']) or item['outcome']}")
    for item in seen.get("draft") or ():
        yield el("li", *place(run, item), f"needs data: {first_line(item['expression'] or item['kind'])}")


def place(run: Run, item: Mapping[str, Any]) -> tuple[Html | str, ...]:
    """`model.py:9 `, nothing where no line is known."""
    if not item.get("filename") or not item.get("location"):
        return ()
    return _path(run, item["filename"], [item["location"]["row"]]), " "


def places(run: Run, lines: Iterable[Mapping[str, Any]]) -> list[Html]:
    """`model.py:9, 12`: lines of several files, a file each time once."""
    rows: dict[str, list[int]] = {}
    for line in lines:
        rows.setdefault(line["filename"], []).append(line["row"])
    return [el("div", _path(run, name, sorted(set(found)))) for name, found in rows.items()]


def _path(run: Run, filename: str, rows: Sequence[int]) -> Html:
    folders, slash, name = run.shown(filename).rpartition("/")
    told = f"{name}:{', '.join(map(str, rows))}"
    return el("span", folders + slash, el("wbr") if slash else None, told, cls="path")
