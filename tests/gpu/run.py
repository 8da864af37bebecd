"""Confirms the rule pages and measures the fixtures on the device at hand: `python tests/gpu/run.py`.

Needs torch alone (before Python 3.11 also tomli, pip's will do). On a machine without a GPU it runs dry, on the CPU.
Writes the figures, after each part those that there are. Ends with 1 if a claim that holds on the CPU is not confirmed,
if a forked worker cannot use CUDA, or if what is measured is not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
if sys.version_info < (3, 11):
    with contextlib.suppress(ImportError):
        from pip._vendor import tomli

        sys.modules.setdefault("tomli", tomli)

from tsdyn_lint.imports import import_place  # noqa: E402
from tsdyn_lint.rulebook import load_rules  # noqa: E402
from tsdyn_lint.source import read_source  # noqa: E402
from tsdyn_lint.statements import Statements  # noqa: E402
from tsdyn_lint.torchversion import installed_torch  # noqa: E402
from tsdyn_lint.verify.describe import describe  # noqa: E402
from tsdyn_lint.verify.measuring import Measuring  # noqa: E402
from tsdyn_lint.verify.observe import OBSERVATIONS  # noqa: E402
from tsdyn_lint.verify.pages import judge_pages, refuted, unconfirmed  # noqa: E402
from tsdyn_lint.verify.session import observed  # noqa: E402
from tsdyn_lint.verify.spawn import Job, Result, Workers  # noqa: E402
from tsdyn_lint.verify.target import Target, discovered  # noqa: E402

FORKED = """\
import torch
from torch import nn

class OnDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

example = OnDevice(), (torch.ones(2, 4),)
"""

SHOWN = ("t_eager_us", "t_compiled_us", "speedup", "coverage", "t_compile_s", "launches", "saving_us", "cuda")


def main() -> int:
    """Run everything, print a summary, write the JSON; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-figures.json"))
    parser.add_argument("-j", "--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--only", default="", help="a prefix of rule codes")
    options = parser.parse_args()
    begin = time.perf_counter()
    figures: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}

    def write() -> None:
        figures["seconds"] = round(time.perf_counter() - begin, 1)
        options.output.write_text(json.dumps(figures, indent=2) + "\n")

    figures["forked"] = forked(options.device)
    device = figures["forked"]["device"] or "cpu"
    version = installed_torch() or (0, 0)
    rules = [
        rule for rule in load_rules()
        if rule.is_about_captures and rule.holds_for(version) and rule.code.startswith(options.only)
    ]  # fmt: skip
    judged = judge_pages(rules, device, options.jobs)
    figures["torch"] = ".".join(map(str, version))
    figures["device"] = device
    figures["pages"] = {
        "rules": len({page.code for page in judged}),
        "verdicts": dict(Counter(one.status for page in judged for one in page.verdicts)),
        "unconfirmed": unconfirmed(judged),
        "refuted": refuted(judged),
        "seconds_a_page": round(sum(page.seconds for page in judged) / max(len(judged), 1), 2),
    }
    write()
    figures["fixtures"] = fixtures(device, options.jobs)
    figures["measured"] = []
    for report in measured(device):
        figures["measured"].append(report)
        write()
    figures["wrong"] = wrong(figures["measured"], device)
    write()
    print(json.dumps({key: value for key, value in figures.items() if key not in ("fixtures", "measured")}))
    for report in figures["measured"]:
        print(report["target"], json.dumps(compact({key: report["measure"][key] for key in SHOWN})))
    good = figures["forked"]["ok"] and not figures["pages"]["refuted"] and not figures["wrong"]
    return 0 if good else 1


def compact(value: Any) -> Any:
    """The same with four figures a number."""
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def forked(device: str) -> dict[str, Any]:
    """Whether a child of the warm template, forked before CUDA was touched, computes on that device."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "on_device.py"
        file.write_text(FORKED)
        with Workers() as workers:
            begin = time.perf_counter()
            _, result = next(iter(workers.run([Job({"file": str(file)}, tuple(OBSERVATIONS), device=device)])))
    ok = result.failure is None and not result.broken and all(seen["ok"] for seen in result.seen.values())
    told = {"ok": ok, "device": result.about.get("device"), "seconds": round(time.perf_counter() - begin, 2)}
    return {**told, "failure": result.failure, "broken": result.broken, "network": result.network}


def fixtures(device: str, jobs: int) -> list[dict[str, Any]]:
    """What was seen of each model in `fixtures/models`."""
    targets, subjects = subjects_in("fixtures/models")
    with Workers(jobs) as workers:
        results = dict(workers.run(Job(subject, tuple(OBSERVATIONS), device=device) for subject in subjects))
    return [described(target, results[index]) for index, target in enumerate(targets)]


def subjects_in(folder: str) -> tuple[list[Target], list[dict[str, Any]]]:
    """The targets of a folder's files, and how a worker is told of each."""
    targets = discovered(read_source(path) for path in sorted((ROOT / folder).glob("*.py")))
    subjects = []
    for target in targets:
        root, module = import_place(target.file)
        place = {"file": str(target.file), "root": str(root), "module": module, "roots": [str(root)]}
        subjects.append({**place, "qualname": target.qualname, "table": {}, "entry": None, "found": True})
    return targets, subjects


def described(target: Target, result: Result) -> dict[str, Any]:
    """A target's report."""
    text = Statements(target.file.read_text())
    return describe(target, result, observed(target.name, result, lambda name: text, ()), ())


def measured(device: str) -> Iterator[dict[str, Any]]:
    """Everything that is measured of each model in `fixtures/measure`, one after the other; one package, the first."""
    targets, subjects = subjects_in("fixtures/measure")
    with Workers(compiling=True) as workers:
        for target, subject in zip(targets, subjects, strict=True):
            measuring = Measuring("aot" if target is targets[0] else "measure", "inductor", 100_000)
            _, confirmed = next(iter(workers.run([Job(subject, tuple(OBSERVATIONS), device=device)])))
            job = Job({**subject, "backend": "inductor"}, measuring.probes(), 300, device=device)
            _, result = next(iter(workers.run([job])))
            yield measuring.added(described(target, confirmed), result)


def wrong(reports: list[dict[str, Any]], device: str) -> list[str]:
    """What of the figures cannot be."""
    seen = {report["target"].partition(":")[0]: report["measure"] for report in reports}
    told = [f"{name}: {figures['unavailable']}" for name, figures in seen.items() if figures["unavailable"]]

    def holds(condition: bool, what: str) -> None:
        if not condition:
            told.append(what)

    pointwise = seen["pointwise"]
    holds([kernel["kind"] for kernel in pointwise["kernels"]] == ["fused"], "pointwise is not one fused kernel")
    holds(pointwise["launches"]["compiled"] < pointwise["launches"]["eager"], "fusing saves pointwise no launch")
    holds(any(kernel["kind"] == "external" for kernel in seen["mlp"]["kernels"]), "no external kernel in mlp")
    holds(seen["one_break"]["coverage"] < 1, "a break leaves one_break wholly covered")
    holds(seen["break_in_loop"]["coverage"] == 0, "a skipped frame is covered")
    holds(not (seen["same_speed"]["speedup"]["resolved"] and seen["same_speed"]["speedup"]["value"] > 1),
          "the same speed is called faster")  # fmt: skip
    for name, figures in seen.items():
        holds(all(kernel["time_us"] for kernel in figures["kernels"]), f"{name}: a kernel without a time")
        if device == "cuda":
            holds(figures["cuda"] is not None and figures["cuda"]["t_launch_us"] > 0, f"{name}: no T_launch")
            holds(figures["saving_us"]["launch"] is not None, f"{name}: no saving of launches")
        else:
            holds(figures["cuda"] is None and figures["saving_us"]["launch"] is None, f"{name}: a GPU's figure")
    holds(bool(reports[0]["aot"] and reports[0]["aot"]["ok"]), f"no package: {reports[0]['aot']}")
    return told


if __name__ == "__main__":
    sys.exit(main())
