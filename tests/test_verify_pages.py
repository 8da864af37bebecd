"""Every rule page's example is confirmed by the probes and verdicts of `--verify`, and none is refuted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tsdyn_lint.rulebook import load_rules
from tsdyn_lint.torchversion import installed_torch
from tsdyn_lint.verify.pages import PageVerdict, judge_pages, refuted, unconfirmed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged() -> list[PageVerdict]:
    version = installed_torch()
    assert version is not None
    return judge_pages(rule for rule in load_rules() if rule.is_about_captures and rule.holds_for(version))


def test_every_claim_of_a_page_is_confirmed(judged: list[PageVerdict]) -> None:
    assert len({page.code for page in judged}) > 50
    assert not unconfirmed(judged)


def test_no_marked_row_is_refuted(judged: list[PageVerdict]) -> None:
    assert not refuted(judged)
