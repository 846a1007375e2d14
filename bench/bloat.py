"""Claims while an old snapshot is held open: it keeps the index entries of every job that has passed alive.

Without a cursor a claim walks over all of them, and slows down for as long as the snapshot lives.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.places import Place
from bench.store import LEASE, drafts
from leasehold.core.job import Claimed, Succeeded
from leasehold.store.cursor import ClaimCursor
from leasehold.store.flows import enqueue, lease
from leasehold.store.flows.lease import Scope
from leasehold.store.postgres import PostgresStore

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
        token = str(uuid.uuid4())
        jobs = self._run(lease.claim, "w", token, [scope], ["charge"], want=BATCH, lease=LEASE, random=random.random).jobs
        end = time.monotonic()
        if self._cursor:
            self._cursor.seen("default", jobs, end - begin, end)
        self.spent.append(end - begin)
        return jobs


@contextmanager
def old_snapshot(place: Place) -> Iterator[None]:
    """A transaction that has seen the store before everything that follows, and stays open."""
    assert isinstance(place.store, PostgresStore)
    with psycopg.connect(place.raw.info.dsn, autocommit=True, password=place.raw.info.password or None) as other:
        other.execute("begin isolation level repeatable read")
        other.execute(f"select count(*) from {place.store.quoted}.jobs")
        yield
        other.execute("rollback")


def run(place: Place, number: int, *, cursor: bool, snapshot: bool) -> None:
    """The table, a line for each block."""
    print(f"{number:,} jobs, {BATCH} at a time, cursor {'on' if cursor else 'off'}, old snapshot {'held' if snapshot else 'not held'}")
    print("       jobs   claim ms: median    mean     p95     max   settle ms   jobs/s")
    if snapshot:
        with old_snapshot(place):
            medians = [block(place, done, cursor_of) for done, cursor_of in _blocks(place, number, cursor)]
    else:
        medians = [block(place, done, cursor_of) for done, cursor_of in _blocks(place, number, cursor)]
    ratio = medians[-1] / medians[0]
    print(f"claims of the last block take {ratio:.2f} of those of the first; the goal is at most {GOAL}")


def _blocks(place: Place, number: int, cursor: bool) -> Iterator[tuple[int, Claims]]:
    claims = Claims(place, cursor=cursor)
    for done in range(0, number, BLOCK):
        yield min(done + BLOCK, number), claims


def block(place: Place, done: int, claims: Claims) -> float:
    """Enqueue, claim, settle, a hundred at a time; returns the mean of the claims in milliseconds."""
    claims.spent.clear()
    settling = 0.0
    begin = time.perf_counter()
    jobs_done = 0
    goal = done - (done - 1) // BLOCK * BLOCK
    while jobs_done < goal:
        place.store.run(enqueue.enqueue, drafts(BATCH))
        jobs = claims.claim()
        started = time.perf_counter()
        place.store.run(lease.settle, [(job.lease, Succeeded("1")) for job in jobs], random.random)
        settling += time.perf_counter() - started
        jobs_done += BATCH
    total = time.perf_counter() - begin
    spent = sorted(1000 * seconds for seconds in claims.spent)
    mean = statistics.fmean(spent)
    print(
        f"{done:>11,}          {statistics.median(spent):>8.2f}{mean:>8.2f}{spent[int(len(spent) * 0.95)]:>8.2f}{spent[-1]:>8.2f}"
        f"{1000 * settling / len(spent):>12.2f}{jobs_done / total:>9,.0f}",
        flush=True,
    )
    return mean
