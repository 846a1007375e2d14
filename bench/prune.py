"""Claims while a long history is pruned beside them, and while it is not."""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable

from msgspec import structs

from bench.hands import percentile
from bench.places import Place
from bench.store import drafts
from leasehold.core.ids import make_id
from leasehold.core.job import Claimed, Succeeded
from leasehold.store.flows import enqueue, lease, upkeep
from leasehold.store.flows.lease import Scope

DAY = 86400.0
BATCH = 10
PAUSE = 0.05  # as upkeep's


def run(place: Place, number: int) -> None:
    """Milliseconds of a claim of ten, first undisturbed, then while so many finished jobs are removed row by row."""
    _finish(place, number)
    quiet = _claims(place, lambda: False, rounds=300)
    pruned: list[int] = []
    pruner = threading.Thread(target=lambda: pruned.append(_prune(place)))
    pruner.start()
    begin = time.perf_counter()
    busy = _claims(place, pruner.is_alive)
    seconds = time.perf_counter() - begin
    pruner.join()
    print(f"{pruned[0]:,} finished jobs pruned in {seconds:.1f} s; claims of {BATCH} meanwhile: {len(busy)}")
    for name, times in (("undisturbed", quiet), ("beside pruning", busy)):
        p50, p99 = (1000 * percentile(times, share) for share in (0.5, 0.99))
        ratio = percentile(times, 0.99) / percentile(quiet, 0.99)
        print(f"{name:16} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   {ratio:.1f} of the undisturbed p99")


def _finish(place: Place, number: int) -> None:
    """Jobs that were over eight days ago."""
    past = time.time() - 8 * DAY
    for _ in range(0, number, 1000):
        old = [structs.replace(one, id=make_id(past, os.urandom(10))) for one in drafts(1000)]
        place.store.run(enqueue.enqueue, old, now=past)
        jobs = _claim(place, 1000, now=past)
        place.store.run(lease.settle, [(job.lease, Succeeded("1")) for job in jobs], random.random, now=past)


def _claims(place: Place, going_on: Callable[[], bool], rounds: int = 0) -> list[float]:
    times = []
    while len(times) < rounds or going_on():
        place.store.run(enqueue.enqueue, drafts(BATCH))
        begin = time.perf_counter()
        jobs = _claim(place, BATCH)
        times.append(time.perf_counter() - begin)
        place.store.run(lease.settle, [(job.lease, Succeeded("1")) for job in jobs], random.random)
    return times


def _claim(place: Place, want: int, now: float | None = None) -> list[Claimed]:
    return place.store.run(
        lease.claim, "bench", str(uuid.uuid4()), [Scope("default", want)], ["charge"],
        want=want, lease=30.0, random=random.random, now=now,
    ).jobs  # fmt: skip


def _prune(place: Place) -> int:
    gone = 0
    while True:
        most = place.store.prune_at_once
        step = place.store.run(upkeep.prune, finished_for=7 * DAY, failed_for=30 * DAY, most=most)
        gone += step.finished
        if not step.more:
            return gone
        time.sleep(PAUSE)
