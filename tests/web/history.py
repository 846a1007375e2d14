"""Thirty days of statistics for the example web shop, as its workers would have counted them."""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from relet._core.stats import BOUNDS, class_of
from tests.web.example_data import QUEUES

TOGETHER = """insert into relet_stats
    select -step, at, '*', name, bucket, peak, sum(number) from relet_stats group by step, at, name, bucket, peak"""


def write(path: str, now: float) -> None:
    """Write them as the store keeps them: the older the coarser."""
    dice = random.Random(11)
    rows = []
    hour = math.floor(now / 3600) * 3600
    for step, first, last in (
        (60, hour - 2 * 3600, int(now)),
        (600, hour - 48 * 3600, hour - 2 * 3600),
        (3600, hour - 30 * 86400, hour - 48 * 3600),
    ):
        for at in range(first, last, step):
            for queue in QUEUES:
                rows += [(step, at, queue, *row) for row in _one_step(queue, at, step, now, dice)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("delete from relet_stats")
        connection.executemany("insert or replace into relet_stats values (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute(TOGETHER)


def _one_step(queue: str, at: int, step: int, now: float, dice: random.Random) -> Iterator[tuple[str, int, int, float]]:
    weight = {"billing": 22, "mail": 40, "media": 9, "reports": 2}[queue]
    hour = at % 86400 / 3600
    day = 0.35 + 0.65 * max(math.sin((hour - 5) / 24 * 2 * math.pi * 0.9), 0) ** 1.3
    weekend = 0.6 if at // 86400 % 7 in (2, 3) else 1.0
    rush = 1 + 1.8 * math.exp(-((((now - at) % 86400 - 2100) / 560) ** 2))  # a daily peak
    done = max(round(weight * step / 60 * day * weekend * rush * dice.uniform(0.75, 1.25)), 0)
    for name, share in (("succeeded", 1.0), ("retried", 0.03), ("failed", 0.008), ("lost", 0.002)):
        number = math.floor(done * share + dice.random())
        if number:
            yield name, 0, 0, float(number)
    for name, middle, spread in (("waits", 0.06 * rush**2, 1.1), ("starts", 0.004, 0.5), ("runs", {"billing": 0.7, "mail": 0.12, "media": 4.0, "reports": 11.0}[queue], 0.8)):  # fmt: skip  # noqa: E501
        classes = [0] * (len(BOUNDS) + 1)
        total = 0.0
        for _ in range(min(done, 60)):
            taken = middle * math.exp(dice.gauss(0, spread))
            classes[class_of(taken)] += max(done // 60, 1)
            total += taken * max(done // 60, 1)
        yield from ((name, bucket, 0, float(count)) for bucket, count in enumerate(classes) if count)
        if total:
            yield f"{name}.sum", 0, 0, total
    for name, size in (("queued", rush**2 * weight / 5), ("pending", weight / 4), ("running", weight / 8)):
        yield f"gauge.{name}", 0, 1, float(round(size * dice.uniform(0.6, 1.5)))
