"""Confirms the rule pages and the fixtures on the device at hand and writes the figures: `python tests/gpu/run.py`.

Needs torch, click and (before Python 3.11) tomli; no pytest. On a machine without a GPU it runs dry, on the CPU.
Ends with 1 if a claim that holds on the CPU is not confirmed, or if a forked worker cannot use CUDA.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tsdyn_lint.rulebook import load_rules  # noqa: E402
from tsdyn_lint.source import read_source  # noqa: E402
from tsdyn_lint.statements import Statements  # noqa: E402
from tsdyn_lint.torchversion import installed_torch  # noqa: E402
from tsdyn_lint.verify.describe import describe  # noqa: E402
from tsdyn_lint.verify.observe import OBSERVATIONS  # noqa: E402
from tsdyn_lint.verify.pages import judge_pages, refuted, unconfirmed  # noqa: E402
from tsdyn_lint.verify.session import observed  # noqa: E402
from tsdyn_lint.verify.spawn import Job, Workers  # noqa: E402
from tsdyn_lint.verify.target import discovered, import_place  # noqa: E402

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


def main() -> int:
    """Run everything, print a summary, write the JSON; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-figures.json"))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="a prefix of rule codes")
    options = parser.parse_args()
    begin = time.perf_counter()
    figures: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
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
    figures["fixtures"] = fixtures(device, options.jobs)
    figures["seconds"] = round(time.perf_counter() - begin, 1)
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps({key: value for key, value in figures.items() if key != "fixtures"}, indent=2))
    good = figures["forked"]["ok"] and not figures["pages"]["refuted"]
    return 0 if good else 1


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
    targets = discovered(read_source(path) for path in sorted((ROOT / "fixtures/models").glob("*.py")))
    wanted = []
    for target in targets:
        root, module = import_place(target.file)
        place = {"file": str(target.file), "root": str(root), "module": module, "roots": [str(root)]}
        subject = {**place, "qualname": target.qualname, "table": {}, "entry": None, "found": True}
        wanted.append(Job(subject, tuple(OBSERVATIONS), device=device))
    with Workers(jobs) as workers:
        results = dict(workers.run(wanted))
    texts = {str(target.file): Statements(target.file.read_text()) for target in targets}
    reports = []
    for index, target in enumerate(targets):
        seen = observed(target.name, results[index], lambda name: texts.get(name) or Statements(""), ())
        reports.append(describe(target, results[index], seen, ()))
    return reports


if __name__ == "__main__":
    sys.exit(main())
