"""Failover: the primary is lost, or demoted, under load. Workers and clients go on at the other host, and nothing that
was acknowledged is lost or run twice."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from relet.errors import StoreError
from tests import patroni
from tests.conftest import LOCAL_PG_KINDS, SERVERS
from tests.servers import PrivateServer
from tests.worker.programs import Program, Shop, a_shop, until

LEASE = 6.0
FIRST_ACK_WITHIN = 5.0  # seconds of the promotion
TIMEOUT = 60.0


@dataclass
class Pair:
    """A primary, its synchronous standby, and a shop that knows both."""

    primary: PrivateServer
    standby: PrivateServer
    shop: Shop

    def promote(self) -> float:
        """Returns when it was done."""
        self.standby.promote()
        return time.monotonic()


@pytest.fixture(params=LOCAL_PG_KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    yield from a_pair(request, tmp_path, "sync")


@pytest.fixture(params=LOCAL_PG_KINDS)
def asynchronous_pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    yield from a_pair(request, tmp_path, "async")


def a_pair(request: pytest.FixtureRequest, folder: Path, kind: str) -> Iterator[Pair]:
    servers = request.config.stash[SERVERS]
    with servers.private(request.param) as primary, primary.standby(synchronous=kind == "sync") as standby:
        until(lambda: sync_states(primary) == [kind], lambda: str(sync_states(primary)))
        with a_shop(folder, servers.dsn_of(primary.name, standby.name)) as shop:
            yield Pair(primary, standby, shop)


def sync_states(server: PrivateServer) -> list[str]:
    with psycopg.connect(server.dsn) as connection:
        return [state for (state,) in connection.execute("select sync_state from pg_stat_replication")]


def sessions(server: PrivateServer) -> int:
    with psycopg.connect(server.dsn) as connection:
        query = "select count(*) from pg_stat_activity where application_name = 'relet'"
        return int((connection.execute(query).fetchone() or (0,))[0])


@dataclass
class Load:
    """Producers, and the ids acknowledged to them, each with the moment of its answer."""

    shop: Shop
    acknowledged: dict[str, float] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)

    def produce(self) -> None:
        while not self.stopped.wait(0.02):
            try:
                job = self.shop.one("quick", 0.01)
            except StoreError:  # it was away for longer than a call is repeated for: nothing was acknowledged
                continue
            self.acknowledged[job.id] = time.monotonic()

    def after(self, moment: float, number: int) -> float:
        """Wait until so many were acknowledged after this moment; returns when the first was."""

        def late() -> list[float]:
            return sorted(when for when in list(self.acknowledged.values()) if when > moment)

        until(lambda: len(late()) >= number, lambda: f"{len(late())} of {number}\n{self.shop.logs}", TIMEOUT)
        return late()[0]


@contextmanager
def load_on(shop: Shop, producers: int = 3) -> Iterator[Load]:
    load = Load(shop)
    threads = [threading.Thread(target=load.produce) for _ in range(producers)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.stopped.set()
        for thread in threads:
            thread.join()


def fail_over(pair: Pair, lose_primary: Callable[[], None], then: Callable[[], None] = lambda: None) -> None:
    """Lose the primary under load, promote the standby, and check the jobs."""
    shop = pair.shop
    workers = [shop.start("-c", "4", "--lease", str(LEASE)) for _ in range(2)]
    with load_on(shop) as load:
        shop.noted("start", times=60)
        lose_primary()
        promoted = pair.promote()
        assert load.after(promoted, 60) - promoted < FIRST_ACK_WITHIN
    assert_all_ran_once(shop, load)
    then()
    assert_they_end_in_good_order(workers)


def assert_all_ran_once(shop: Shop, load: Load) -> None:
    ended = shop.client.wait_many(list(load.acknowledged), timeout=TIMEOUT)
    assert Counter(job.state for job in ended) == {"succeeded": len(load.acknowledged)}
    until(lambda: not shop.client.count(state=("pending", "queued", "running")), lambda: shop.logs, TIMEOUT)
    starts = Counter(line[1] for line in shop.notes("start"))
    assert not [id for id, number in starts.items() if number > 1]
    assert set(load.acknowledged) <= set(starts)


def assert_they_end_in_good_order(workers: list[Program]) -> None:
    for worker in workers:
        assert worker.send(signal.SIGTERM).code() == 0, worker.log
        assert "Traceback" not in worker.log, worker.log


def test_a_failover_under_load_loses_nothing_and_runs_nothing_twice(pair: Pair) -> None:
    fail_over(pair, pair.primary.crash)


@pytest.mark.parametrize("seconds", [5.5, pytest.param(15.0, marks=pytest.mark.long)])
def test_a_standby_that_hangs_before_a_failover_loses_nothing(pair: Pair, seconds: float) -> None:
    """Its primary has commits then that no standby has. None of them may have been acknowledged."""

    def lose_primary() -> None:
        pair.standby.signal("walreceiver", signal.SIGSTOP)
        time.sleep(seconds)  # longer than a client waits for an answer
        pair.primary.crash()
        pair.standby.signal("walreceiver", signal.SIGCONT)

    fail_over(pair, lose_primary)


def demote(server: PrivateServer) -> None:
    """It keeps its sessions."""
    server.execute("alter system set default_transaction_read_only = on", "select pg_reload_conf()")


def test_clients_and_workers_leave_a_primary_that_was_demoted_and_keeps_its_sessions(pair: Pair) -> None:
    def has_no_sessions() -> None:
        until(lambda: sessions(pair.primary) == 0, lambda: f"{sessions(pair.primary)} sessions\n{pair.shop.logs}")

    fail_over(pair, lambda: demote(pair.primary), has_no_sessions)


def test_transactions_of_handlers_do_not_begin_on_a_primary_that_was_demoted(pair: Pair) -> None:
    """Each connection that was idle at that time would fail one of them, which counts as an attempt."""
    store, number = pair.shop.app._store(), 4
    barrier = threading.Barrier(number)

    def is_read_only(_: object) -> str:
        with store.begin() as tx:
            barrier.wait(TIMEOUT)
            return str(tx.raw.execute("show transaction_read_only").fetchone()[0])

    async def ais_read_only(barrier: asyncio.Barrier) -> str:
        async with store.abegin() as tx:
            await barrier.wait()
            return str((await (await tx.raw.execute("show transaction_read_only")).fetchone())[0])

    async def on_a_loop() -> list[str]:
        abarrier = asyncio.Barrier(number)
        found = await asyncio.gather(*(ais_read_only(abarrier) for _ in range(number)))
        found += await asyncio.to_thread(in_threads)
        demote(pair.primary)
        pair.promote()
        found += await asyncio.gather(*(ais_read_only(abarrier) for _ in range(number)))
        return [*found, *await asyncio.to_thread(in_threads)]

    def in_threads() -> list[str]:
        with ThreadPoolExecutor(number) as threads:
            return list(threads.map(is_read_only, range(number)))

    assert asyncio.run(on_a_loop()) == ["off"] * 4 * number
    assert sessions(pair.standby) >= 2 * number


@pytest.mark.long
@pytest.mark.skipif(bool(patroni.missing()), reason=f"not installed here: {patroni.missing()}")
def test_a_switchover_by_patroni_under_load_loses_nothing_and_starts_nothing_twice(tmp_path: Path) -> None:
    with patroni.cluster() as cluster, a_shop(tmp_path, cluster.url) as shop:
        workers = [shop.start("-c", "4", "--lease", str(LEASE)) for _ in range(2)]
        with load_on(shop) as load:
            shop.noted("start", times=60)
            for _ in range(2):  # to the other server, and back
                leader = cluster.leader.name
                cluster.switch_over()
                switched = time.monotonic()
                load.after(switched, 60)
                until(cluster.is_complete, cluster.logs, TIMEOUT)
                assert cluster.leader.name != leader
        assert_all_ran_once(shop, load)
        assert_they_end_in_good_order(workers)


def test_a_worker_reports_outcomes_that_an_asynchronous_standby_lacked(asynchronous_pair: Pair) -> None:
    """Claims, ends and jobs are lost in one failover. The worker names each of its attempts that the new primary does
    not know, and the jobs of which it knows run again."""
    pair, shop = asynchronous_pair, asynchronous_pair.shop
    worker = shop.start("-c", "8", "--lease", "9")
    lost_end = shop.one("hold")
    shop.started(lost_end)
    shop.client.pause_queue("default")
    stored = [shop.one("quick", seconds) for seconds in (60.0, 0.0)]
    until(lambda: pair.standby.has_caught_up_with(pair.primary), lambda: "the standby is behind")
    pair.standby.follow_nothing()
    shop.client.resume_queue("default")  # which is lost as well: these jobs are not claimed again before the end
    unknown = [shop.one("quick", seconds) for seconds in (60.0, 0.0)]
    shop.go()
    shop.started(*stored, *unknown)
    ended = [lost_end, stored[1], unknown[1]]
    shop.client.wait_many(ended)
    worker.says("succeeded", times=len(ended))
    pair.primary.crash()
    pair.promote()

    worker.says(f"quick {stored[0].id}: the database has lost its claim")
    worker.says(f"quick {unknown[0].id}: there is no such job in the database any more; aborting the handler")
    worker.says(f"quick {stored[1].id}: the database has lost the end of its attempt 1")
    worker.says(f"quick {unknown[1].id}: there is no such job in the database any more, and its attempt 1 has ended")
    worker.says(f"hold {lost_end.id}: the database has lost the end of its attempt 1")
    for job, state in ((stored[0], "queued"), (stored[1], "queued"), (unknown[1], None), (lost_end, "running")):
        shop.noted("Undone", job.id, state)
    assert {line[1] for line in shop.notes("LeaseLost")} == {stored[0].id, unknown[0].id}
    assert "The reply to a claim was lost" not in worker.log

    shop.client.resume_queue("default")
    for job in (lost_end, stored[1]):
        shop.noted("start", job.id, times=2)
    shop.client.cancel(stored[0])
    shop.over("succeeded", "cancelled")
    assert len(shop.notes("Undone")) == 4, "each is reported once"
    assert_they_end_in_good_order([worker])


def test_a_worker_reports_nothing_after_a_failover_that_lost_nothing(pair: Pair) -> None:
    worker = pair.shop.start("-c", "4", "--lease", str(LEASE))
    ended = pair.shop.enqueue("quick", number=20)
    running = pair.shop.one("hold")
    pair.shop.client.wait_many(ended)
    pair.shop.started(running)
    pair.primary.crash()
    pair.promote()
    # It may reach the standby at its first try, so that it reports no outage.
    reached = f"select max(seen_at) > '{pair.standby.value('select clock_timestamp()')}' from relet.workers"
    until(lambda: pair.standby.value(reached), lambda: f"the worker does not reach the standby:\n{worker.log}")
    pair.shop.go()
    pair.shop.client.wait(running)
    reports = "select count(*) from relet.stats"
    until(lambda: pair.standby.value(reports), lambda: "the reporter has not run since")
    assert_they_end_in_good_order([worker])
    assert not pair.shop.notes("Undone")
    assert "any more" not in worker.log
