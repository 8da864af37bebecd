"""Whether measured ratios hold from run to run: `python tests/benchmarks/measure_repeats.py [RUNS] [FIXTURE...]`.

Each fixture is compiled and timed in a process of its own, RUNS times. Printed: every ratio with its interval, how
many of the other runs' ratios lie within it, and how often a fixture without a real gain was called faster.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tsdyn_lint.source import read_source  # noqa: E402
from tsdyn_lint.verify.figures import Ratio  # noqa: E402
from tsdyn_lint.verify.spawn import Job, Workers  # noqa: E402
from tsdyn_lint.verify.target import discovered  # noqa: E402

FIXTURES = ROOT / "fixtures/measure"
NO_GAIN = ("same_speed", "break_in_loop", "one_break")
DEFAULT = ("pointwise", "mlp", "conv_bn_relu", "attention", *NO_GAIN)


def job(name: str) -> Job:
    """One run of a fixture: what it compiles to, and the speedup."""
    (target,) = discovered([read_source(FIXTURES / f"{name}.py")])
    subject: dict[str, Any] = {
        "file": str(target.file), "root": str(FIXTURES), "module": name, "roots": [str(FIXTURES)],
        "qualname": target.qualname, "table": {}, "entry": None, "found": True, "backend": "inductor",
    }  # fmt: skip
    return Job(subject, ("compiling", "speed"), 300)


def main() -> None:
    """Run, and print as it goes."""
    count = int(sys.argv[1]) if sys.argv[1:] else 20
    found: dict[str, list[Ratio]] = {name: [] for name in sys.argv[2:] or DEFAULT}
    with Workers(compiling=True) as workers:
        for _ in range(count):
            for name, ratios in found.items():
                _, result = next(iter(workers.run([job(name)])))
                ratio = Ratio(**result.seen["speed"]["speedup"])
                ratios.append(ratio)
                print(
                    f"{name:<14} {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) {ratio.resolved}", flush=True
                )
    inside = pairs = 0
    for name, ratios in found.items():
        own = [one.low <= other.value <= one.high for one, other in itertools.permutations(ratios, 2)]
        inside, pairs = inside + sum(own), pairs + len(own)
        faster = sum(ratio.resolved and ratio.value > 1 for ratio in ratios)
        wrong = f", called faster {faster} times" if name in NO_GAIN else ""
        print(f"{name}: {sum(own)} of {len(own)} ratios within the interval of another run{wrong}")
    print(f"{inside} of {pairs} within, {inside / max(pairs, 1):.1%}")


if __name__ == "__main__":
    main()
