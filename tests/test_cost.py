"""The cost model's arithmetic."""

from __future__ import annotations

from tsdyn_lint.verify.cost import benefit, break_even


def test_the_break_even_is_exact() -> None:
    assert break_even(0.3, 0.05, 0.02) == 10
    assert benefit(10, 0.3, 0.05, 0.02) == 0
    assert benefit(9, 0.3, 0.05, 0.02) < 0 < benefit(11, 0.3, 0.05, 0.02)


def test_part_of_a_call_counts_as_one() -> None:
    assert break_even(0.31, 0.05, 0.02) == 11


def test_what_is_no_faster_never_pays() -> None:
    assert break_even(0.3, 0.02, 0.02) is None
    assert break_even(0.3, 0.02, 0.05) is None
    assert benefit(1000, 0.3, 0.02, 0.05) < -30
