"""`--report`: one page, by its structure, and looked at in Chromium where there is one."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from dataclasses import asdict
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import look, needs_chromium
from click.testing import CliRunner

from tsdyn_lint.cli import main
from tsdyn_lint.report.page import render
from tsdyn_lint.report.page.paint import Code
from tsdyn_lint.report.page.units import count, microseconds, seconds, size
from tsdyn_lint.report.run import Run
from tsdyn_lint.rulebook import RuleBook
from tsdyn_lint.source import Library
from tsdyn_lint.verify.figures import (
    Aot,
    Benefit,
    Calls,
    ColdWarm,
    CompileParts,
    Kernel,
    Lifted,
    Line,
    Measure,
    Pair,
    Ratio,
    Road,
    Route,
    Saving,
    State,
    Swept,
    TorchScript,
)

HOSTILE = "</script></style></code><img src=x onerror='hacked=1'><script>hacked=1</script>\"'&\u202e\x00\ud800"
CODE = f"""\
import torch
from torch import nn


class Gate(nn.Module):
    def forward(self, x, n):
        x = self.up(
            x,
        )
        y = "</td><script>hacked=1</script> & é"  # {HOSTILE[:40]}
        if x.mean() > 0:
            return torch.relu(x)
        return x * {"1" * 300}

    def unused(self):
        return 1
"""


class Elements(HTMLParser):
    """Every element with its attributes and own text; raises where the nesting is wrong."""

    VOID = ("meta", "wbr")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        if tag not in self.VOID:
            self._open.append(len(self.found) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.found[self._open[-1]][0] == tag, f"</{tag}> closes {self.found[self._open[-1]]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for index in self._open:
            self.found[index][2].append(data)

    def text(self, tag: str, cls: str = "") -> list[str]:
        """What elements of that kind hold, that of the elements inside of them too."""
        found = (item for item in self.found if item[0] == tag and cls in (item[1].get("class") or ""))
        return ["".join(parts) for _, _, parts in found]


def at(filename: Path, row: int, **more: Any) -> dict[str, Any]:
    return {"filename": str(filename), "location": {"row": row}, **more}


def make_target(file: Path, measured: bool = False, said: str = "told") -> dict[str, Any]:
    """A target as `--verify` describes it; `said` is in every text that comes from outside."""
    lines = [{"filename": str(file), "rows": [7, 8, 9, 10, 11, 12]}]
    captured = [
        {"ops": 2, "lines": [{"filename": str(file), "rows": [8, 11]}]},
        {"ops": 1, "lines": [{"filename": str(file), "rows": [12]}]},
    ]
    answers = [{"input": said, "outcome": "differs", "message": said}]
    line = (Line(str(file), 12),)
    state = State(2, 31, 0.7, 20_000.0)
    measure = Measure(
        t_eager_us=50_000.0, t_compiled_us=20_000.0, t_guard_us=50.0, t_graph_us=19_000.0, t_rest_us=950.0,
        speedup=Ratio(2.5, 2.4, 2.6, True), guards=41, coverage=0.95, t_compile_s=ColdWarm(0.3),
        compile_parts_s={"cold": CompileParts(0.3, 0.1, build=0.15)}, break_even_calls=Calls(10),
        benefit_s=Benefit(1000, 29.7), launches=Pair(8.0, 2.0), peak_memory_mb=Pair(12.0, 9.0), saving_us=Saving(240.0),
        kernels=(
            Kernel(f"fused_{said}", ("aten.add", said), 512.0, 4_200_000, "fused", line, 1),
            Kernel("addmm", (), None, None, "external"),
        ),
        sweep=(Swept(said, "recompiled", 2000.0, None),), lifted=(Lifted(said, line, state, state, 120.0),),
        unavailable={"onnx": said}, torchscript=TorchScript(0.4, 0.02, 1800.0, None),
    )  # fmt: skip
    route = Route(said, (said,), {"serving": Road(said, (said,))})
    aot = Aot(True, None, 126.8, 0.02, 1.6, True, True, 1400.0)
    return {
        "target": f"pkg.{said}:Gate", "torch": "2.13.0", "device": "cpu", "inputs": [said], "kwargs": {"width": said},
        "synthesised": True, "lines_reached": 0.75, "eager": {"ok": True, "error": None, "lines": lines},
        "dynamo": {
            "ok": True, "error": None, "graphs": 2, "ops": 3, "captured": captured,
            "breaks": [at(file, 11, gb="GB0170", reason=said, frame_skipped=False, finding="TSD201")],
            "frames_skipped": [], "lifted_by": {}, "guard_hit_rate": 0.5, "limit_hit": False,
            "recompiles": [at(file, 11, input=said, guard=said), at(file, 11, input="other", guard="n == 4")],
            "same_input": True, "other_inputs": True, "unavailable": None,
        },
        "script": {"ok": False, "errors": [at(file, 9, message=said, how="whole")], "complete": True,
                   "same_input": None, "other_inputs": None, "unavailable": None},
        "trace": {"ok": True, "error": None, "same_input": True, "other_inputs": False, "answers": answers,
                  "warnings": [at(file, 11, message=said)], "unavailable": None},
        "export": {"ok": True, "errors": [], "same_input": True, "other_inputs": True, "strict": None, "draft": None,
                   "unavailable": said},
        "aot": asdict(aot) if measured else None, "measure": asdict(measure) if measured else None,
        "route": asdict(route) if measured else None,
        "budget": {"broken": [at(file, 11, message=said)] if measured else []}, "failure": None,
    }  # fmt: skip


def make_failed(said: str = "told") -> dict[str, Any]:
    return {
        "target": "pkg:Gone", "torch": None, "device": None, "inputs": [], "kwargs": {}, "synthesised": False,
        "lines_reached": None, "eager": {"ok": False, "error": None, "lines": []}, "dynamo": None, "script": None,
        "trace": None, "export": None, "aot": None, "measure": None, "route": None, "budget": {"broken": []},
        "failure": {"kind": "build", "message": said, "toml": said},
    }  # fmt: skip


def make_page(folder: Path, *, measured: bool = False, said: str = "told") -> str:
    file = folder / "model.py"
    file.write_text(CODE, encoding="utf-8", errors="replace")
    targets = [make_target(file, measured, said), make_failed(said)]
    return render(Run([], RuleBook([]), Library().get, folder=folder, targets=targets))


@pytest.mark.parametrize("measured", [False, True])
def test_it_is_well_formed_and_needs_nothing_else(tmp_path: Path, measured: bool) -> None:
    page = make_page(tmp_path, measured=measured, said=HOSTILE)
    elements = Elements(page)
    kinds = Counter(tag for tag, _, _ in elements.found)
    assert not {"script", "img", "link", "iframe", "object", "base"} & set(kinds)
    for _, attributes, _ in elements.found:
        assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    style = "".join(elements.text("style"))
    assert "url(" not in style and "@import" not in style and "http" not in style
    assert "default-src 'none'" in str([attributes for tag, attributes, _ in elements.found if tag == "meta"])


def test_what_others_wrote_is_shown_as_they_wrote_it(tmp_path: Path) -> None:
    page = make_page(tmp_path, measured=True, said=HOSTILE)
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\u0000").replace("\ud800", "\\ud800")
    elements = Elements(page)
    for holder in ("h2", "li", "code", "pre", "b"):
        assert any(shown in text for text in elements.text(holder)), holder
    page.encode("utf-8")


def rows(elements: Elements) -> dict[int, str | None]:
    """The class of each line of code."""
    return {
        int("".join(parts)): attributes["class"]
        for (tag, attributes, _), (inner, _, parts) in pairwise(elements.found)
        if tag == "tr" and inner == "th" and "".join(parts).isdigit()
    }


def test_each_line_has_the_colour_of_its_graph(tmp_path: Path) -> None:
    elements = Elements(make_page(tmp_path))
    assert rows(elements) == {
        6: "plain", 7: "g g0", 8: "g g0", 9: "g g0", 10: "plain", 11: "g g0", 12: "g g1", 13: "unrun",
    }  # fmt: skip


def test_a_frame_that_was_given_up_is_shown_as_eager(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(CODE, encoding="utf-8", errors="replace")
    target = make_target(file)
    # what Dynamo blames is in a callee, `up`, the frame is that of `forward`
    target["dynamo"] |= {"captured": [], "frames_skipped": [at(file, 16, first_row=6, function="forward")]}
    elements = Elements(render(Run([], RuleBook([]), Library().get, folder=tmp_path, targets=[target])))
    assert [kind for kind in rows(elements).values() if kind != "unrun"] == ["plain", *["eager"] * 6]


def test_marks_stand_below_their_statement(tmp_path: Path) -> None:
    elements = Elements(make_page(tmp_path))
    assert elements.text("p", "mark") == [
        "script told", "break told, GB0170, predicted by TSD201", "recompile told fails, and 1 more", "trace told",
    ]  # fmt: skip
    table = elements.text("table", "code")[0]
    assert table.index("            x,") < table.index("script told") < table.index("y = ")
    assert table.index("if x.mean()") < table.index("break told") < table.index("return torch.relu")


def test_figures_that_were_measured_are_there_and_others_leave_no_gap(tmp_path: Path) -> None:
    heads = Elements(make_page(tmp_path)).text("h3")
    assert heads == ["Captures", "Source, by graph", "Guards"]
    elements = Elements(make_page(tmp_path, measured=True))
    assert elements.text("h3")[2:] == [
        "Where a call’s time goes", "Eager and compiled", "Cost over calls",
        "Where a compile’s time goes, cold and warm caches", "Kernels", "What breaks cost", "Other sizes", "Guards",
        "Which road to take", "Not measured",
    ]  # fmt: skip
    assert "N* = 10" in elements.text("svg")[0]
    assert any("N* = 10 calls" in text and "it saves 29.7 s" in text for text in elements.text("p"))
    bars = {
        item[1]["class"]: item[1].get("style") for item in elements.found if "piece" in (item[1].get("class") or "")
    }
    assert bars["piece eager"] == "width:100.00%" and bars["piece guards"] == "width:0.10%"
    assert bars["piece capture"] == "width:33.33%" and bars["piece build"] == "width:50.00%"
    assert elements.text("table", "pairs")[0].endswith("A call50.0 ms20.0 msLaunches82Peak memory12.0 MB9.00 MB")
    assert "Launches28 eager" in elements.text("dl", "tiles")[0]
    cards = elements.text("article")
    assert cards[-1].endswith("1.40 ms a call; built in 2.11 min; 1.60 MB on disk, loaded in 20.0 ms")
    assert cards[1].endswith("1.80 ms a call; 400 kB on disk, loaded in 20.0 ms")
    assert cards[2].endswith("20.0 ms a call") and "a call" not in cards[0]


def test_the_break_even_point_lies_where_the_lines_cross(tmp_path: Path) -> None:
    elements = Elements(make_page(tmp_path, measured=True))
    dots = [item[1] for item in elements.found if item[0] == "circle"]
    lines = [item[1]["points"] for item in elements.found if item[0] == "polyline"]
    assert len(dots) == 1 and len(lines) == 2
    x, y = float(dots[0]["cx"] or 0), float(dots[0]["cy"] or 0)
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in (line or "").split()]
        nearest = min(points, key=lambda point: abs(point[0] - x))
        assert abs(nearest[1] - y) < 4


def test_an_unresolved_difference_is_no_speedup(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(CODE, encoding="utf-8", errors="replace")
    target = make_target(file, measured=True)
    target["measure"]["speedup"]["resolved"] = False
    target["measure"]["break_even_calls"] = {"cold": None, "warm": None}
    page = render(Run([], RuleBook([]), Library().get, folder=tmp_path, targets=[target]))
    elements = Elements(page)
    assert "not resolvable" in page and "2.50×" not in page and "circle" not in {tag for tag, _, _ in elements.found}
    assert "does not pay" in page


def test_source_is_marked_up_without_losing_a_character() -> None:
    code = 'def f(a):\n    """two\n\tlines"""\n    return f"{a!r:>{3}} {{}} <b>" if a else 1.5e3  # é <!--\nx = (\n'
    assert [unescape(re.sub(r"</?i[^>]*>", "", line)) for line in Code(code).painted] == code.split("\n")


def test_numbers_as_people_read_them() -> None:
    assert [seconds(s) for s in (None, 0, 3e-9, 0.00034, 0.9999, 12.34, 300, 9000)] == [
        "–", "0 s", "3.00 ns", "340 µs", "1.00 s", "12.3 s", "5.00 min", "2.50 h",
    ]  # fmt: skip
    assert microseconds(891) == "891 µs" and size(4_200_000) == "4.20 MB" and size(12) == "12 B"
    assert count(116529) == "116\u2009529" and count(3.2e8) == "320 M"


def test_a_page_of_what_was_not_verified_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--report", str(tmp_path / "page.html"), str(tmp_path)])
    assert result.exit_code == 2 and "--verify" in result.stderr
    nowhere = CliRunner().invoke(main, ["--verify", "--report", str(tmp_path / "no" / "page.html"), str(tmp_path)])
    assert nowhere.exit_code == 2 and "no such folder" in nowhere.stderr


def test_a_real_run_writes_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = """
        import torch
        from torch import nn

        class Gate(nn.Module):
            def forward(self, x):
                y = torch.relu(x)
                if y.sum() > 1e9:
                    return y
                return y + 1
        """
    (tmp_path / "model.py").write_text(textwrap.dedent(model).lstrip())
    file = tmp_path / "page.html"
    command = ["--verify", "--isolated", "--no-cache", "--device", "cpu", "--report", str(file), str(tmp_path)]
    assert CliRunner().invoke(main, command).exit_code == 1
    elements = Elements(file.read_text(encoding="utf-8"))
    assert [mark for mark in elements.text("p", "mark") if mark.startswith("break")] == [
        "break Data-dependent branching, GB0170, predicted by TSD201"
    ]
    kinds = [attributes["class"] for tag, attributes, _ in elements.found if tag == "tr" and attributes.get("class")]
    assert [kind for kind in kinds if kind != "told"] == ["plain", "g g0", "g g0", "unrun", "g g1"]


def test_text_stands_out_from_what_is_behind_it(tmp_path: Path) -> None:
    style = "".join(Elements(make_page(tmp_path)).text("style"))
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", theme)) for theme in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    for theme in (light, dark):
        for name in ("ink", "soft", "good", "fair", "bad", "link", "k", "s", "n", "c", "b"):
            for behind in ("paper", "card", "wash"):
                assert _contrast(theme[name], theme[behind]) >= 4.5, (name, behind)


def _contrast(one: str, other: str) -> float:
    """As WCAG 2 reckons it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@needs_chromium
def test_chromium_shows_all_of_it_at_any_width(tmp_path: Path) -> None:
    pages = [make_page(tmp_path, measured=measured, said=HOSTILE) for measured in (False, True)]
    wanted = [(page, width) for page in pages for width in (1280, 800, 360)]
    for (page, width), seen in zip(wanted, look(wanted, tmp_path), strict=True):
        assert seen["scroll"] <= seen["width"] == width and seen["outside"] == []
        assert seen["scripts"] == 0 and seen["ran"] == "undefined" and "onerror='hacked=1'" in seen["text"]
        assert seen["smallest"] >= 10
        assert ("N* = 10" in seen["text"]) is (page == pages[1])


@needs_chromium
def test_chromium_paints_the_graphs_in_light_and_dark(tmp_path: Path) -> None:
    page = make_page(tmp_path, measured=True)
    (light,), (dark,) = (look([(page, 1280)], tmp_path, dark=dark) for dark in (False, True))
    for seen in (light, dark):
        colours = dict(map(tuple, seen["rows"]))
        assert colours[7] == colours[8] == colours[11] != colours[12]
        assert colours[10] == colours[13] == "rgba(0, 0, 0, 0)"
    assert _brightness(light["paper"]) > 0.8 > 0.3 > _brightness(light["ink"])
    assert _brightness(dark["paper"]) < 0.2 < 0.7 < _brightness(dark["ink"])


def _brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 / 255
