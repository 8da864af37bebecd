"""Times of calls that hold on a busy machine: interleaved rounds, lower quartiles, intervals, and a control."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from tsdyn_lint.verify.figures import Ratio

ROUNDS, FEWEST_ROUNDS = 25, 9
ROUND_SECONDS = 0.02
WHOLE_SECONDS = 12.0
WARM_CALLS = 3
RESAMPLES = 1000
LAYOUT = 0.05
"""What the same code differs by between two processes, whatever one process's own rounds say of their spread.

`tests/benchmarks/measure_repeats.py` tells: with less, more than one ratio in twenty is out of another run's interval.
"""

Step = Callable[[], object]
Clock = Callable[[], int]


def clock_for(device: str) -> tuple[str, Clock]:
    """The clock's name, and nanoseconds: what the process itself computes for, where it computes here.

    On a machine that others use too, the wall's is several times too much. A GPU's work is waited for.
    """
    if device == "cuda":
        return "wall", _synchronised
    if torch.get_num_threads() == 1:
        return "thread", time.thread_time_ns
    return "process", time.process_time_ns


def _synchronised() -> int:
    torch.cuda.synchronize()
    return time.perf_counter_ns()


def rounds(steps: Mapping[str, Step], clock: Clock, count: int = ROUNDS) -> dict[str, list[float]]:
    """Microseconds a call of each step, one number a round; each round runs every step, in random order.

    A step is repeated within a round until that takes a while.
    """
    repeats, whole = {}, 0.0
    for name, step in steps.items():
        repeats[name], seconds = repeats_for(step, clock)
        whole += seconds
    count = fitting(whole, count)
    order, generator = list(steps), random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in steps}
    gc.collect()
    gc.disable()
    try:
        for _ in range(count):
            generator.shuffle(order)
            for name in order:
                times[name].append(_once(steps[name], clock, repeats[name]))
    finally:
        gc.enable()
    return times


def fitting(seconds: float, count: int = ROUNDS) -> int:
    """How many rounds of that length are made: fewer of what is slow."""
    return max(min(count, FEWEST_ROUNDS), min(count, int(WHOLE_SECONDS / seconds)))


def repeats_for(step: Step, clock: Clock) -> tuple[int, float]:
    """How often to call it in a round, and the seconds that takes."""
    for _ in range(WARM_CALLS):
        step()
    seconds = max(_once(step, clock, 2) * 1e-6, 1e-7)
    repeats = max(1, round(ROUND_SECONDS / seconds))
    return repeats, seconds * repeats


def _once(step: Step, clock: Clock, repeats: int) -> float:
    begin = clock()
    for _ in range(repeats):
        step()
    return (clock() - begin) / repeats / 1e3


def level(times: Sequence[float]) -> float:
    """What a call takes, of its rounds: the lower quartile, since what else the machine does only ever adds to it."""
    return sorted(times)[(len(times) - 1) // 4]


def per_call(step: Step, clock: Clock, count: int = FEWEST_ROUNDS) -> float:
    """The level of some rounds of one step alone."""
    return level(rounds({"step": step}, clock, count)["step"])


def interval(above: Sequence[Sequence[float]], below: Sequence[float]) -> tuple[float, float, float]:
    """The ratio of the levels, and its 95 % interval over resampled rounds, all sides of a round together."""

    def ratio(chosen: Sequence[int]) -> float:
        return level([time for i in chosen for time in above[i]]) / level([below[i] for i in chosen])

    generator, every = random.Random(0), range(min(len(above), len(below)))
    found = sorted(ratio(generator.choices(every, k=len(every))) for _ in range(RESAMPLES))
    return ratio(every), found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES)]


def compared(eager: Sequence[float], compiled: Sequence[float], again: Sequence[float]) -> tuple[Ratio, Ratio]:
    """The speedup and its control, eager against eager.

    The interval is that of the rounds, widened by what the control is off by and by `LAYOUT`: it is to hold for the
    next run as well. A difference is one only outside of what the control shows.
    """
    control = Ratio(*interval([(time,) for time in eager], again))
    value, low, high = interval(list(zip(eager, again, strict=True)), compiled)
    off = max(abs(control.low - 1), abs(control.high - 1))
    wide = (off**2 + LAYOUT**2) ** 0.5
    low, high = low * (1 - wide), high * (1 + wide)
    return Ratio(value, low, high, low > max(1.0, control.high) or high < min(1.0, control.low)), control
