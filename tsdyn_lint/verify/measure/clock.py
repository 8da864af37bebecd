"""Times of calls that hold on a busy machine: interleaved rounds, lower quartiles, intervals, and a control."""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from tsdyn_lint.verify.figures import Ratio

ROUNDS, FEWEST_ROUNDS = 25, 9
ROUND_SECONDS = 0.02
WHOLE_SECONDS = 12.0
WARM_CALLS = 3
RESAMPLES = 400
DRIFT = 0.025
"""The standard deviation of a ratio between runs that none of its rounds sees: what else goes on in a machine's caches
changes over minutes, and a compiled call has more to fetch again than an eager one.

Of `tests/benchmarks/measure_repeats.py`: the variance of the ratios less that of their rounds, where it is largest.
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


def rounds(lay: Callable[[], Mapping[str, Step]], clock: Clock, count: int = ROUNDS) -> dict[str, list[float]]:
    """Microseconds a call of each step, one number a round; each round runs every step, in random order.

    `lay` gives a round's steps, which are warm. A step is repeated within a round until that takes a while.
    """
    begin = clock()
    steps = lay()
    repeats, whole = {}, (clock() - begin) / 1e9
    for name, step in steps.items():
        repeats[name], seconds = repeats_for(step, clock)
        whole += seconds
    count = fitting(whole, count)
    order, generator = list(steps), random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in steps}
    gc.disable()
    try:
        for done in range(count):
            if done:
                steps = lay()
                gc.collect(0)  # what the last round left: to look at all of torch takes longer than a round
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
    return level(rounds(lambda: {"step": step}, clock, count)["step"])


@dataclass(frozen=True)
class Log:
    """The logarithm of a ratio, and its standard error as the rounds tell it."""

    value: float
    error: float


def logarithm(above: Sequence[Sequence[float]], below: Sequence[float]) -> Log:
    """Of the ratio of the levels. The error is over resampled rounds, all sides of a round together."""

    def ratio(chosen: Sequence[int]) -> float:
        return math.log(level([time for i in chosen for time in above[i]]) / level([below[i] for i in chosen]))

    generator, every = random.Random(0), range(min(len(above), len(below)))
    found = [ratio(generator.choices(every, k=len(every))) for _ in range(RESAMPLES)]
    return Log(ratio(every), statistics.stdev(found))


def interval(log: Log, error: float, count: int) -> tuple[float, float, float]:
    """The ratio, and its 95 % interval for that error, known from that many rounds."""
    wide = student(count - 1) * error
    return math.exp(log.value), math.exp(log.value - wide), math.exp(log.value + wide)


def student(freedom: int) -> float:
    """What 95 % of Student's t are within: the expansion about the normal distribution, good to 1 % from 4 on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def compared(eager: Sequence[float], compiled: Sequence[float], again: Sequence[float]) -> tuple[Ratio, Ratio]:
    """The speedup and its control, eager against eager. A difference is one only outside of what the control shows.

    The interval is to hold for the next run, so it is that of the difference of two: each has the variance of its
    rounds, which tell what differs between processes as far as they differ in it too (memory, above all), and `DRIFT`.
    The control's true value is known: what it is off by, the rounds did not tell either.
    """
    count = len(compiled)
    control = logarithm([(time,) for time in eager], again)
    speedup = logarithm(list(zip(eager, again, strict=True)), compiled)
    noise = Ratio(*interval(control, math.sqrt(2) * control.error, count))
    error = math.hypot(math.sqrt(2) * speedup.error, math.sqrt(2) * DRIFT, control.value, control.error)
    value, low, high = interval(speedup, error, count)
    return Ratio(value, low, high, low > max(1.0, noise.high) or high < min(1.0, noise.low)), noise
