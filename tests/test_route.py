"""Which road is advised for which figures."""

from __future__ import annotations

import dataclasses
from typing import Any

from tsdyn_lint.verify.figures import Calls, Measure, Ratio, Route, TorchScript
from tsdyn_lint.verify.route import route

WORKS = {"ok": True, "same_input": True, "other_inputs": True, "unavailable": None, "errors": [], "error": None}
FAULT = {"filename": "model.py", "location": {"row": 7}, "message": "Unsupported: print"}
REFUSED = {**WORKS, "ok": False, "errors": [FAULT], "error": FAULT}
FASTER = Measure(
    speedup=Ratio(2.0, 1.8, 2.2, True), control=Ratio(1.0, 0.95, 1.05), coverage=0.9,
    break_even_calls=Calls(1000, 10), torchscript=TorchScript(1.0, 0.1, 50.0, 60.0),
)  # fmt: skip


def advised(figures: Measure = FASTER, **parts: Any) -> Route:
    dynamo = {**WORKS, "graphs": 1, "breaks": [], "recompiles": [], "guard_hit_rate": 1.0, "limit_hit": False}
    target = {"dynamo": dynamo, "script": WORKS, "trace": WORKS, "export": WORKS, "aot": None, **parts}
    return route({**target, "measure": dataclasses.asdict(figures)})


def test_what_is_faster_is_compiled_and_says_when_that_pays() -> None:
    found = advised()
    assert found.advice == "torch.compile"
    assert "2.00 times faster" in found.why[0] and "pays after 1,000 calls, 10 with warm caches" in found.why


def test_noise_and_loss_stay_eager() -> None:
    same = dataclasses.replace(FASTER, speedup=Ratio(1.1, 0.98, 1.2, False), break_even_calls=Calls())
    assert advised(same).advice == "eager" and "noise" in advised(same).why[0]
    slower = dataclasses.replace(FASTER, speedup=Ratio(0.5, 0.4, 0.6, True), break_even_calls=Calls())
    assert advised(slower).advice == "eager" and "0.50 times as fast" in advised(slower).why[0]


def test_a_compile_that_raises_or_answers_otherwise_is_no_road() -> None:
    broken = {**REFUSED, "graphs": 0, "breaks": [], "recompiles": [], "guard_hit_rate": None, "limit_hit": False}
    assert advised(dynamo=broken).why == ("torch.compile raises: Unsupported: print (line 7)",)
    assert advised(dynamo={**broken, "ok": True, "same_input": False}).advice == "eager"


def test_a_missing_compiler_is_the_reason() -> None:
    found = advised(Measure(unavailable={"compiling": "Inductor needs a C++ compiler here"}))
    assert found.advice == "eager" and found.why == ("Inductor needs a C++ compiler here",)


def test_without_python_export_comes_first_and_torchscript_last() -> None:
    package = {"ok": True, "same_input": True, "t_call_us": 40.0, "unavailable": None, "error": None}
    free = advised(aot=package).roads["python_free"]
    assert free.advice == "torch.export + AOTInductor" and free.why == (
        "its package answers as eager does in 40 us a call",
    )
    slow = advised(aot={**package, "t_call_us": 80.0}).roads["python_free"]
    assert slow.advice == "torch.export + AOTInductor" and slow.why[1] == "TorchScript takes 50 us"
    script = advised(export=REFUSED).roads["python_free"]
    assert script.advice == "TorchScript" and any("deprecated" in why for why in script.why)
    assert "torch.export refuses it: Unsupported: print (line 7)" in script.why


def test_a_trace_that_is_wrong_on_other_inputs_is_no_road() -> None:
    wrong = {**WORKS, "other_inputs": False}
    found = advised(export=REFUSED, script=REFUSED, trace=wrong).roads["python_free"]
    assert found.advice == "eager" and "a trace answers otherwise than eager on other inputs" in found.why
