"""Observations joined to findings: which verdict follows from what was seen. No torch is needed."""

from __future__ import annotations

from typing import Any

import pytest

from tsdyn_lint.findings import Confidence, Engine, Finding, Location, Related, Severity
from tsdyn_lint.statements import Statements
from tsdyn_lint.verify.confirm import Observed, best, summed_up, verdict
from tsdyn_lint.verify.observe import (
    Answer,
    Break,
    Draft,
    DraftFailure,
    Dynamo,
    Eager,
    Export,
    Fault,
    Recompile,
    Recompiles,
    Script,
    ScriptError,
    Site,
    SkippedFrame,
    Trace,
    Warned,
    decode,
    encode,
)
from tsdyn_lint.verify.unpredicted import unpredicted

FILE = "/p/model.py"
TEXT = """\
class Gate(Module):
    def forward(self, x):
        n = int(
            x.sum()
        )
        for _ in range(n):
            x = x + 1
        if self.rare:
            x = x.item()
        return other(x)

def other(x):
    return x
"""
ALL_RAN = Eager(True, None, {FILE: [3, 4, 6, 7, 8, 10, 13]})


def finding(row: int, *engines: Engine, code: str = "TSD202", gb: tuple[str, ...] = (), **more: Any) -> Finding:
    place = Location(row, 1)
    return Finding(
        code, "name", "message", Severity.ERROR, FILE, place, place, engines or (Engine.DYNAMO,),
        Confidence.LIKELY, gb, **more,
    )  # fmt: skip


def site(row: int) -> Site:
    return Site(FILE, row, "forward")


def view(findings: tuple[Finding, ...] = (), eager: Eager = ALL_RAN, **seen: Any) -> Observed:
    return Observed("model:Gate", {"eager": eager, **seen}, {}, None, lambda name: Statements(TEXT), findings)


def status(one: Finding, observed: Observed) -> str:
    return verdict(one, one.engines[0], observed).status


BREAK = Break(site(4), "GB0124", "Unsupported Tensor.item() call")


def test_a_break_at_any_row_of_the_statement_confirms() -> None:
    told = verdict(finding(3), Engine.DYNAMO, view(dynamo=Dynamo(True, 1, 1, (BREAK,))))
    assert (told.status, told.gb) == ("confirmed", "GB0124")


def test_a_captured_line_that_ran_is_refuted() -> None:
    assert status(finding(7), view(dynamo=Dynamo(True, 1, 1, (BREAK,)))) == "refuted"


def test_a_line_that_did_not_run_is_not_refuted() -> None:
    assert status(finding(9), view(dynamo=Dynamo(True, 1, 1))) == "not-reached"


def test_a_line_in_a_skipped_frame_is_masked() -> None:
    skipped = (SkippedFrame(FILE, "forward", 2, 3),)
    assert status(finding(7), view(dynamo=Dynamo(True, 0, 0, (BREAK,), skipped))) == "masked"
    assert status(finding(13), view(dynamo=Dynamo(True, 0, 0, (BREAK,), skipped))) == "refuted"


def test_a_break_below_a_call_is_the_calls() -> None:
    deep = Break(site(13), "GB0059", "print", stack=(site(10), site(13)))
    assert status(finding(10), view(dynamo=Dynamo(True, 2, 1, (deep,)))) == "confirmed"


def test_a_break_in_torchs_own_code_is_the_finding_of_its_id_in_the_compiled_function() -> None:
    inside = Dynamo(True, 0, 0, (Break(None, "GB0124", "Tensor.item()", frame=site(2)),))
    assert status(finding(7, gb=("GB0124",)), view(dynamo=inside)) == "confirmed"
    assert status(finding(7, gb=("GB0059",)), view(dynamo=inside)) == "refuted"
    assert status(finding(13, gb=("GB0124",)), view(dynamo=inside)) == "refuted"


def test_a_break_at_a_later_use_confirms_the_read() -> None:
    use = Related(FILE, Location(6, 1), Location(6, 9), "decides a loop")
    later = Dynamo(True, 2, 1, (Break(site(6), "GB0124", "loop"),))
    assert status(finding(3, related=(use,)), view(dynamo=later)) == "confirmed"


def test_of_two_findings_on_a_line_the_one_with_the_id_has_the_break() -> None:
    mine, other = finding(3, gb=("GB0124",)), finding(3, gb=("GB0007",), code="TSD305")
    seen = view((mine, other), dynamo=Dynamo(True, 1, 1, (BREAK,)))
    assert status(mine, seen) == "confirmed"
    assert status(other, seen) == "refuted"


def test_a_hard_error_confirms_its_line_and_masks_the_others() -> None:
    seen = view(dynamo=Dynamo(False, error=Fault("TorchRuntimeError", "bad", site(6))))
    assert status(finding(6), seen) == "confirmed"
    assert status(finding(3), seen) == "masked"


def test_one_recompile_turns_a_value_dynamic_more_are_one_a_value() -> None:
    def swept(*guards: str) -> Observed:
        items = tuple(Recompile("again", guard, site(6)) for guard in guards)
        return view(recompile=Recompiles(True, ("a", "b", "c", "d"), items), dynamo=Dynamo(True, 1, 1))

    assert status(finding(6, Engine.RECOMPILE), swept("n == 1")) == "refuted"
    assert status(finding(6, Engine.RECOMPILE), swept("n == 1", "n == 2")) == "confirmed"


@pytest.mark.parametrize(
    "seen, row, expected",
    [
        (Script(False, (ScriptError(Fault("RuntimeError", "no", site(3))),)), 4, "confirmed"),
        (Script(False, (ScriptError(Fault("RuntimeError", "no", site(3))),), complete=True), 7, "refuted"),
        (Script(False, (ScriptError(Fault("RuntimeError", "no", site(3))),), complete=False), 7, "masked"),
        (Script(True), 9, "refuted"),
        (Script(True, answers=(Answer("x", "differs", "", "values"),)), 7, "confirmed"),
        (Script(True, unavailable="no torch.jit.script"), 7, "not-run"),
    ],
)
def test_script(seen: Script, row: int, expected: str) -> None:
    assert status(finding(row, Engine.SCRIPT), view(script=seen)) == expected


def test_an_error_that_names_no_line_is_the_constructors_too() -> None:
    text = TEXT.replace("    def forward", "    def __init__(self):\n        self.fc = 1\n\n    def forward")
    error = ScriptError(Fault("AttributeError", "'WeightNorm' object has no attribute '__name__'"))
    seen = {"eager": Eager(True, None, {FILE: [10]}), "script": Script(False, (error,), complete=False)}
    observed = Observed("model:Gate", seen, {}, None, lambda name: Statements(text))
    assert status(finding(3, Engine.SCRIPT), observed) == "confirmed"


SAME, WRONG = Answer("values", "same", "", "values"), Answer("batch 5", "differs", "shape", "sizes")


@pytest.mark.parametrize(
    "seen, code, expected",
    [
        (Trace(True, warnings=(Warned(site(6), "Converting a tensor"),), answers=(SAME,)), "TSD202", "confirmed"),
        (Trace(True, answers=(SAME, WRONG)), "TSD601", "confirmed"),
        (Trace(True, answers=(SAME, WRONG)), "TSD401", "refuted"),
        (Trace(True, answers=(SAME,)), "TSD202", "refuted"),
        (Trace(True, answers=(Answer("values", "eager-failed", "", "values"),)), "TSD202", "not-run"),
        (Trace(False, Fault("RuntimeError", "no", site(6))), "TSD202", "confirmed"),
        (Trace(False, Fault("RuntimeError", "no", site(3))), "TSD202", "masked"),
    ],
)
def test_trace(seen: Trace, code: str, expected: str) -> None:
    assert status(finding(6, Engine.TRACE, code=code), view(trace=seen)) == expected


def test_draft_export_shows_what_export_did_not_come_to() -> None:
    stopped = Export(False, False, Fault("Guard", "no", site(3)))
    draft = Draft(False, (DraftFailure("DATA", "u0 > 2", site(6)),))
    assert status(finding(6, Engine.EXPORT), view(export=stopped, draft=draft)) == "confirmed"
    assert status(finding(6, Engine.EXPORT), view(export=stopped)) == "masked"


def test_a_target_that_eager_cannot_run_decides_nothing() -> None:
    failed = Eager(False, Fault("ValueError", "bad input", site(3)))
    told = verdict(finding(3), Engine.DYNAMO, view(eager=failed))
    assert told.status == "not-run" and "ValueError" in told.reason


def test_a_timeout_names_itself() -> None:
    observed = Observed("t", {}, {}, ("timeout", "the time limit was reached"), lambda name: Statements(TEXT))
    assert verdict(finding(3), Engine.DYNAMO, observed).reason.startswith("timeout")


def test_the_best_target_and_the_sum_over_engines() -> None:
    good = verdict(finding(3), Engine.DYNAMO, view(dynamo=Dynamo(True, 1, 1, (BREAK,))))
    unseen = verdict(finding(9), Engine.SCRIPT, view(script=Script(True, unavailable="none")))
    refuted = verdict(finding(7), Engine.DYNAMO, view(dynamo=Dynamo(True, 1, 1)))
    assert best([unseen, refuted, good]) is good
    assert summed_up([good, refuted])["status"] == "confirmed"
    assert summed_up([refuted, unseen])["status"] == "not-run"
    assert summed_up([refuted])["status"] == "refuted"


def new(observed: Observed, *findings: Finding, text: str = TEXT) -> list[Finding]:
    return unpredicted([observed], findings, list(Engine), {FILE}, lambda name: Statements(text))


def test_a_break_without_a_finding_is_reported_once() -> None:
    dynamo = Dynamo(True, 2, 1, (BREAK, Break(site(3), "GB0007", "other")))
    found = new(view(dynamo=dynamo))
    assert [(f.code, f.start.row, f.gb) for f in found] == [("TSD901", 3, ("GB0124", "GB0007"))]
    assert found[0].verify is not None and found[0].verify["status"] == "confirmed"
    assert not new(view(dynamo=dynamo), finding(3))


def test_a_disabled_call_is_only_information() -> None:
    found = new(view(dynamo=Dynamo(True, 2, 1, (Break(site(10), "GB0098", "disabled"),))))
    assert [f.severity for f in found] == [Severity.INFO]


def test_a_suppressed_line_is_left_alone() -> None:
    text = TEXT.replace("n = int(", "n = int(  # noqa: TSD202")
    assert not new(view(dynamo=Dynamo(True, 2, 1, (BREAK,))), text=text)


def test_observations_survive_the_pipe() -> None:
    for value in (Dynamo(True, 1, 1, (BREAK,), lifted={"switch": [site(3)]}), ALL_RAN, Trace(True, answers=(SAME,))):
        assert decode(type(value), encode(value)) == value
