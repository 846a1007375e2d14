"""Which fault strikes when: made from a seed before the run begins, and stored, so that a run can be repeated."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from msgspec import Struct


class Fault(Struct, frozen=True):
    """`at`: seconds since the start. `worker`: the number of the worker that it strikes, if it strikes one.
    `size`: from 0 to 1, what the kind makes of it."""

    at: float
    kind: str
    worker: int
    size: float


def minimum(kind: str, plan: list[Fault]) -> int:
    """How many faults of a kind must strike. Some miss: their process has ended, or a lock is not to be had in time."""
    return math.ceil(sum(fault.kind == kind for fault in plan) / 2)


def make_plan(seed: int, seconds: float, per_minute: dict[str, float], workers: int) -> list[Fault]:
    """At least one fault of each kind, and on average so many a minute."""
    chance = random.Random(seed)
    faults = [
        Fault(round(at, 3), kind, chance.randrange(workers), round(chance.random(), 3))
        for kind, rate in per_minute.items()
        for at in _moments(chance, seconds, max(round(rate * seconds / 60), 1))
    ]
    return sorted(faults, key=lambda fault: fault.at)


def _moments(chance: random.Random, seconds: float, number: int) -> Iterable[float]:
    return (chance.uniform(0.02, 0.95) * seconds for _ in range(number))
