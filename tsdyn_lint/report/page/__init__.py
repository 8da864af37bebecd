"""`--report FILE.html`: what `--verify` saw, as one page that needs nothing else: no script, no network."""

from __future__ import annotations

from importlib.resources import files

from tsdyn_lint import __version__
from tsdyn_lint.report.page import units
from tsdyn_lint.report.page.markup import Html, el
from tsdyn_lint.report.page.section import section
from tsdyn_lint.report.page.summary import summary
from tsdyn_lint.report.run import Run

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(run: Run) -> str:
    """The whole document."""
    targets = list(run.targets or ())
    style = files(__name__).joinpath("style.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"tsdyn-lint: {units.plural(len(targets), 'target')}"),
        el("style", Html(style)),
    )
    body = el(
        "body",
        el("header", el("p", f"tsdyn-lint {__version__}", cls="tool"), el("h1", _headline(run)), summary(targets)),
        el("main", [section(run, index, target) for index, target in enumerate(targets, 1)]),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _headline(run: Run) -> str:
    targets = list(run.targets or ())
    broken = sum(bool(target["dynamo"] and target["dynamo"]["breaks"]) for target in targets)
    whole = sum(bool(t["dynamo"] and t["dynamo"]["ok"] and not t["dynamo"]["breaks"]) for t in targets)
    told = [units.plural(len(targets), "target")]
    told += [f"{whole} captured whole"] if whole else []
    told += [f"{broken} with graph breaks"] if broken else []
    failed = sum(bool(target["failure"]) for target in targets)
    return ", ".join(told + ([f"{failed} not run"] if failed else []))
