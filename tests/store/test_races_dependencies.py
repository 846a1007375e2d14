"""A blocker ends at the moment at which a job is enqueued behind it: whichever is first, the job is let go."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from relet._core.filters import Filter
from relet._core.job import Claimed, Draft, State, Succeeded
from relet._store.adapters.drivers import run_on
from relet._store.flows import control, enqueue, promote, search, settle
from relet._store.store import Store
from tests.clocks import at
from tests.databases import Database
from tests.harness import StoreHarness, connect, draft, store_harness
from tests.plugin.selection import rounds
from tests.store.interleave import Background

ROUNDS = rounds(80, all=240)

Enqueue = Callable[[Store, Draft[Any]], Any]


def settled(store: Store, job: Claimed) -> None:
    store.run(settle.settle, [(job.lease, Succeeded('"r"'))], random.random)


def goes_on_and_ends(store: Store, job: Claimed) -> None:
    following = draft(queue="unserved")
    store.run(settle.settle, [(job.lease, Succeeded(None, following))], random.random)
    store.run(control.complete, job.id, '"r"', chain=True)


def by_itself(store: Store, dependent: Draft[Any]) -> None:
    store.run(enqueue.enqueue, [dependent])


@contextmanager
def in_a_callers_transaction(url: str) -> Iterator[Enqueue]:
    with psycopg.connect(url) as connection:

        def do(store: Store, dependent: Draft[Any]) -> None:
            run_on(store, connection, enqueue.enqueue, [dependent])
            time.sleep(random.uniform(0, 0.003))
            connection.commit()

        yield do


@contextmanager
def upkeep(store: Store) -> Iterator[None]:
    """A thread promotes all the while."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            store.run(promote.promote)
            over.wait(0.001)

    worker = Background(work)
    try:
        yield
    finally:
        over.set()
        worker.result()


@pytest.mark.read_committed
@pytest.mark.long
@pytest.mark.parametrize("transaction", ["own", "caller's"])
def test_no_dependent_stays_pending_whose_blocker_ends_while_it_is_enqueued(
    database: Database, transaction: str
) -> None:
    if transaction == "caller's" and not database.is_postgres:
        pytest.skip("there all transactions that write come one after another")
    with store_harness(database.url, database.schema) as harness, at(harness.store, None), ExitStack() as stack:
        stores = [
            harness.store if database.kind == "memory" else connect(database.url, database.schema) for _ in range(3)
        ]
        for store in stores:
            stack.callback(store.close)
        enqueue_one: Callable[[Store, Draft[Any]], object] = by_itself
        if transaction == "caller's":
            enqueue_one = stack.enter_context(in_a_callers_transaction(database.url))
        harness.run(enqueue.enqueue, [draft() for _ in range(ROUNDS)])
        blockers = harness.claim(ROUNDS)
        dependents = [draft(depends_on=(job.id,), queue="dependents") for job in blockers]
        meet = threading.Barrier(2)

        def end_all() -> None:
            for number, job in enumerate(blockers):
                meet.wait(60)
                time.sleep(random.choice([0, 0, 0.001, 0.002]))
                (goes_on_and_ends if number % 3 == 0 else settled)(stores[0], job)

        def enqueue_all() -> None:
            for dependent in dependents:
                meet.wait(60)
                time.sleep(random.choice([0, 0, 0.001]))
                enqueue_one(stores[1], dependent)

        with upkeep(stores[2]):
            for one in (Background(end_all), Background(enqueue_all)):
                one.result(120)
        check(harness)


def check(harness: StoreHarness) -> None:
    """The promoter sees a nudge: after that no job waits any more, and each has its result."""
    while harness.count("nudges"):
        harness.run(promote.promote)
    assert harness.run(search.count, Filter(state=(State.PENDING,))) == 0
    assert harness.run(search.count, Filter(state=(State.QUEUED,), queue="dependents")) == ROUNDS
    assert harness.count("dependencies", "state = 'succeeded'") == ROUNDS
