"""Claims while an old snapshot is held open: it keeps the index entries of every job that has passed alive.

Without a cursor a claim walks over all of them, and slows down for as long as the snapshot lives.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import psycopg

from bench.places import Place
from bench.store import LEASE, drafts, timed
from leasehold.core.job import Claimed, Succeeded
from leasehold.store.cursor import ClaimCursor
from leasehold.store.flows import enqueue, lease
from leasehold.store.flows.lease import Scope

BATCH = 100
BLOCK = 50_000
GOAL = 1.5


class Claims:
    """Claims of one worker, and how long each took."""

    def __init__(self, place: Place, *, cursor: bool) -> None:
        self._run = place.store.run
        self._cursor = ClaimCursor() if cursor else None
        self.spent: list[float] = []

    def claim(self) -> list[Claimed]:
        begin = time.monotonic()
        scope = self._cursor.scope("default", BATCH, begin) if self._cursor else Scope("default", BATCH)
        token, chance = str(uuid.uuid4()), random.random
        jobs = self._run(lease.claim, "w", token, [scope], ["charge"], want=BATCH, lease=LEASE, random=chance).jobs
        end = time.monotonic()
        if self._cursor:
            self._cursor.seen("default", jobs, end - begin, end)
        self.spent.append(end - begin)
        return jobs


@contextmanager
def old_snapshot(place: Place) -> Iterator[None]:
    """A transaction that has seen the store before everything that follows, and stays open."""
    with psycopg.connect(place.raw.info.dsn, autocommit=True, password=place.raw.info.password or None) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select txid_current()")  # from now on nothing that it might see may go away
        yield
        other.execute("rollback")


def run(place: Place, number: int, *, cursor: bool, snapshot: bool) -> None:
    """The table, a line for each block."""
    held = "held" if snapshot else "not held"
    print(f"{number:,} jobs, {BATCH} at a time, cursor {'on' if cursor else 'off'}, old snapshot {held}")
    print("       jobs   claim ms: median    mean     p95     max   settle ms   claim/settle   jobs/s")
    claims = Claims(place, cursor=cursor)
    with old_snapshot(place) if snapshot else nullcontext():
        blocks = [block(place, claims, begin, min(begin + BLOCK, number)) for begin in range(0, number, BLOCK)]
    (first_claim, first_settle), (last_claim, last_settle) = blocks[0], blocks[-1]
    relative = last_claim / last_settle / (first_claim / first_settle)
    print(
        f"claims of the last block take {last_claim / first_claim:.2f} x what those of the first took (goal: {GOAL});"
    )
    print(f"measured in settles, which the snapshot leaves alone but a busy machine does not: {relative:.2f} x")


def block(place: Place, claims: Claims, begin: int, end: int) -> tuple[float, float]:
    """Enqueue, claim, settle, a hundred at a time; returns how long claims and settles took, in milliseconds."""
    claims.spent.clear()
    settles: list[float] = []
    started = time.perf_counter()
    for _ in range(begin, end, BATCH):
        place.store.run(enqueue.enqueue, drafts(BATCH))
        jobs = claims.claim()
        with timed(settles):
            place.store.run(lease.settle, [(job.lease, Succeeded("1")) for job in jobs], random.random)
    rate = (end - begin) / (time.perf_counter() - started)
    spent = sorted(1000 * seconds for seconds in claims.spent)
    claim, settle = statistics.fmean(spent), 1000 * statistics.fmean(settles)
    tail = f"{spent[int(len(spent) * 0.95)]:>8.2f}{spent[-1]:>8.2f}{settle:>12.2f}{claim / settle:>15.2f}{rate:>9,.0f}"
    print(f"{end:>11,}          {statistics.median(spent):>8.2f}{claim:>8.2f}{tail}", flush=True)
    return claim, settle
