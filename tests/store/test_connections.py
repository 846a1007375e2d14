"""Connections: shared by threads, not used after a fork, on any event loop, and no obstacle to an exit."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pytest

from relet import App
from relet._core.filters import Filter
from relet._store.flows import search
from relet._store.pool import MAX_IDLE, IdleAsyncConnections, Pool, _sweeper
from relet._store.postgres import PostgresStore
from relet._threads import DaemonThreadPool
from relet.errors import StoreBusy
from tests import forks
from tests.databases import Database
from tests.plugin.selection import rounds

pytestmark = pytest.mark.every_store


def with_task(app: App) -> Any:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    return work


# the pool


class Line:
    """The part of a connection that a pool uses."""

    def __init__(self) -> None:
        self.good = True
        self.closed = False

    def close(self) -> None:
        self.closed = True


def pool(limit: int = 2, timeout: float = 0.05, max_idle: float = MAX_IDLE) -> tuple[Pool[Line], list[Line]]:
    made: list[Line] = []

    def connect() -> Line:
        made.append(Line())
        return made[-1]

    return Pool(connect, lambda line: line.good, limit=limit, timeout=timeout, max_idle=max_idle), made


def test_a_connection_is_made_when_needed_and_used_again() -> None:
    lines, made = pool()
    assert made == []
    for _ in range(3):
        with lines.connection() as one:
            assert one is made[0]
    with lines.connection() as one, lines.connection() as two:
        assert one is not two
    assert len(made) == 2


def test_a_broken_connection_is_closed_and_not_used_again() -> None:
    lines, made = pool()
    with lines.connection() as one:
        one.good = False
    assert made[0].closed
    with lines.connection() as other:
        assert other is made[1]


def test_an_error_gives_the_connection_back() -> None:
    lines, made = pool(limit=1)
    for _ in range(3):
        with pytest.raises(LookupError), lines.connection():
            raise LookupError
    assert len(made) == 1


def test_a_pool_that_is_exhausted_says_so_and_recovers() -> None:
    lines, _ = pool(limit=2)
    with lines.connection(), lines.connection():
        with pytest.raises(StoreBusy, match=r"all 2 connections have been in use for 0\.05 s"), lines.connection():
            pass
    with lines.connection():
        pass


def test_a_waiting_call_gets_the_connection_that_is_returned() -> None:
    lines, made = pool(limit=1, timeout=10)
    got = threading.Event()

    def want() -> None:
        with lines.connection():
            got.set()

    with lines.connection():
        thread = threading.Thread(target=want, daemon=True)
        thread.start()
        assert not got.wait(0.05)
    assert got.wait(5)
    thread.join(5)
    assert len(made) == 1


def test_a_connection_that_cannot_be_made_takes_no_slot() -> None:
    tries = iter([OSError("no"), OSError("no"), None])

    def connect() -> Line:
        if problem := next(tries):
            raise problem
        return Line()

    lines = Pool(connect, lambda line: True, limit=1, timeout=0.05)
    for _ in range(2):
        with pytest.raises(OSError, match="no"), lines.connection():
            pass
    with lines.connection():
        pass


def test_close_closes_idle_connections_and_the_pool_goes_on() -> None:
    lines, made = pool()
    with lines.connection(), lines.connection():
        pass
    lines.close()
    assert [line.closed for line in made] == [True, True]
    with lines.connection() as another:
        assert another is made[2]
        assert not another.closed


def test_a_store_whose_connections_are_all_in_use_says_so(pg_database: Database) -> None:
    store = PostgresStore(pg_database.url, schema=pg_database.schema, connections=2)
    store._pool._timeout = 0.2
    assert store.run(search.count, Filter()) == 0
    with store._pool.connection(), store._pool.connection():
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"all 2 connections have been in use for 0\.2 s"):
            store.run(search.count, Filter())
        assert time.monotonic() - began < 5
    assert store.run(search.count, Filter()) == 0
    store.close()


# idle connections


def until(holds: Callable[[], object]) -> None:
    give_up = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.005)


def sweepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "relet-idle"]


def test_unused_connections_are_closed_while_the_process_idles_and_the_thread_ends() -> None:
    lines, made = pool(limit=5, max_idle=0.05)
    with lines.connection(), lines.connection():
        pass
    with lines.connection() as one:
        until(lambda: sum(line.closed for line in made) == 1)
        assert not one.closed, "what is in use is left alone"
    until(lambda: one.closed)
    with lines.connection() as again:
        assert again not in made[:2]
    until(lambda: again.closed)
    until(lambda: lines not in _sweeper._pools)


def test_a_connection_in_frequent_use_is_kept_until_it_is_old() -> None:
    lines, made = pool()
    lines.max_idle, lines.max_lifetime = 60.0, 0.05
    with lines.connection():
        pass
    give_up = time.monotonic() + 30
    while len(made) == 1:
        assert time.monotonic() < give_up
        with lines.connection():
            pass
    assert made[0].closed


def test_a_connection_in_constant_use_does_not_start_a_thread_each_time() -> None:
    lines, _ = pool()
    seen: set[int] = set()
    began = time.monotonic()
    for _ in range(500):
        with lines.connection():
            seen.update(id(thread) for thread in sweepers())
            time.sleep(0.0005)
    assert len(seen) <= 2 + time.monotonic() - began, "the thread looks once a second, and may end then"


def test_unused_async_connections_are_closed() -> None:
    closed: list[Line] = []
    idle = IdleAsyncConnections(closed.append, limit=5, max_idle=0.05)
    loop, one = object(), Line()
    idle.keep(loop, one)
    assert idle.take(loop) is one
    idle.keep(loop, one)
    until(lambda: closed == [one])
    assert idle.take(loop) is None


def test_one_thread_sweeps_all_pools_and_a_dead_pool_does_not_keep_it() -> None:
    pools = [pool()[0] for _ in range(5)]
    for lines in pools:
        with lines.connection():
            pass
    assert len(sweepers()) == 1
    assert all(lines in _sweeper._pools for lines in pools)
    del lines
    gone = [weakref.ref(pools.pop()) for _ in range(5)]
    until(lambda: gc.collect() >= 0 and not any(one() for one in gone))  # the sweeper may be using one just now


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_closes_its_own_idle_connections() -> None:
    lines, made = pool(limit=5, max_idle=0.2)
    with lines.connection():
        pass
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            with lines.connection() as mine:
                assert mine is not made[0]
            until(lambda: mine.closed)
            code = 0 if not made[0].closed else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_idle_connections_of_a_store_are_closed(pg_database: Database) -> None:
    with closing(PostgresStore(pg_database.url, schema=pg_database.schema)) as store:
        store._pool.max_idle = 0.05
        store.run(search.count, Filter())
        (kept,) = store._pool._idle
        until(lambda: kept.connection.closed)
        assert store.run(search.count, Filter()) == 0


# threads


def test_twenty_threads_may_be_the_first(database: Database) -> None:
    app = database.app()
    work = with_task(app)
    barrier = threading.Barrier(20)

    def first(n: int) -> str:
        barrier.wait(10)
        return str(work.enqueue(n).id)

    with ThreadPoolExecutor(20) as threads:
        ids = list(threads.map(first, range(20)))
    assert app.client.count() == 20 == len(set(ids))
    app.close()


def test_twenty_threads_may_be_the_first_of_a_tenant(tmp_path: Any) -> None:
    app = App(f"sqlite:///{tmp_path / 'shop.db'}")
    work = with_task(app)
    barrier = threading.Barrier(20)

    def first(n: int) -> Any:
        barrier.wait(10)
        return work.using(tenant="acme").enqueue(n)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(first, range(20)))
    assert app.client.tenant("acme").count() == 20
    app.close()


def test_threads_that_come_and_go_do_not_use_up_connections(app: App) -> None:
    work = with_task(app)
    for n in range(60):
        thread = threading.Thread(target=work.enqueue, args=(n,))
        thread.start()
        thread.join(20)
    assert app.client.count() == 60


# forks

FORK = """
import asyncio, os, signal, sys
from functools import partial
from relet import App
from relet._store.flows import search
from relet._core.filters import Filter
from relet._store.query import Traits

app = App({url!r}, schema={schema!r})

@app.task
def work(value=None): ...

def was_read(store):
    "How many jobs there are, asked once: a connection that has been spoilt shows."
    return store.run_once(partial(search.count, Filter()), Traits(read_only=True), 0)[0]

def child():
    {child}

signal.alarm(60)
work.enqueue("before")
asyncio.run(app.aclient.count())
with app._store().notifier.subscribe("done"):  # so that a thread listens, too
    work.enqueue("before")
{before}
pid = os.fork()
if pid == 0:
    signal.alarm(10)
    child()
    {leave}
status = os.waitpid(pid, 0)[1]
for _ in range(3):
    was_read(app._store())
work.enqueue("after")
jobs = app.client.count()
app.close()
print(status, jobs, was_read(app._store()))
app.close()
"""
CHILDREN = {
    "enqueues": ("work.enqueue('child')", 4),
    "looks": ("app.client.count()", 3),
    "awaits": ("asyncio.run(work.aenqueue('child'))", 4),
    "migrates": ("app.client.migrate()", 3),
    "closes": ("app.close()", 3),
    "closes after use": ("work.enqueue('child'); app.close(); work.enqueue('child')", 5),
    "waits": ("app.client.complete(job := work.enqueue()); app.client.wait(job, timeout=5)", 4),
    "does nothing": ("pass", 3),
}


@pytest.mark.parametrize("kind", CHILDREN)
def test_a_fork_spoils_nothing_on_either_side(fork_home: Database, kind: str) -> None:
    child, jobs = CHILDREN[kind]
    run_fork(fork_home, child=child, leave="os._exit(0)", before="", jobs=jobs)


@pytest.mark.parametrize("kind", ["enqueues", "does nothing"])
def test_a_child_that_exits_like_any_program_spoils_nothing(fork_home: Database, kind: str) -> None:
    """The child destroys all objects of the parent, connections among them."""
    child, jobs = CHILDREN[kind]
    run_fork(fork_home, child=child, leave="sys.exit(0)", before="", jobs=jobs)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["enqueues", "closes", "migrates"])
def test_a_fork_in_the_middle_of_anothers_write_spoils_nothing(fork_home: Database, kind: str) -> None:
    """Another thread has the writer lock at the moment of the fork: in the child no thread will ever release it."""
    if fork_home.is_postgres:
        pytest.skip("PostgreSQL has no single writer")
    child, jobs = CHILDREN[kind]
    before = (
        "import threading; app._store()._writing.acquire(); threading.Timer(1.0, app._store()._writing.release).start()"
    )
    run_fork(fork_home, child=child, leave="os._exit(0)", before=before, jobs=jobs)


@pytest.fixture
def fork_home(database: Database) -> Database:
    if database.kind == "memory":
        pytest.skip("memory is not shared")
    return database


def run_fork(database: Database, *, child: str, leave: str, before: str, jobs: int) -> None:
    script = FORK.format(url=database.url, schema=database.schema, child=child, leave=leave, before=before)
    run = forks.run([sys.executable, "-c", script], timeout=100)
    assert run.stdout.split() == ["0", str(jobs), str(jobs)], run.stdout + run.stderr
    assert "Traceback" not in run.stderr, run.stderr


# event loops


def test_two_loops_one_after_another(app: App) -> None:
    work = with_task(app)
    for n in range(1, 4):
        job = asyncio.run(work.aenqueue(n))
        assert asyncio.run(app.aclient.get(job)) == job
    assert app.client.count() == 3


def test_two_loops_at_the_same_time(app: App) -> None:
    work = with_task(app)

    async def many() -> list[Any]:
        return list(await asyncio.gather(*(work.aenqueue(n) for n in range(25))))

    with ThreadPoolExecutor(2) as threads:
        here, there = threads.map(lambda _: asyncio.run(many()), range(2))
    assert len({job.id for job in (*here, *there)}) == app.client.count() == 50


def test_a_hundred_calls_at_once_are_served(app: App) -> None:
    work = with_task(app)

    async def main() -> None:
        jobs = await asyncio.gather(*(work.aenqueue(n) for n in range(100)))
        found = await asyncio.gather(*(app.aclient.get(job) for job in jobs))
        assert [job.id for job in found if job] == [job.id for job in jobs]
        assert await app.aclient.count() == 100

    asyncio.run(main())


def test_a_loop_is_not_blocked_by_a_call(app: App) -> None:
    work = with_task(app)
    job = work.enqueue()

    async def main() -> int:
        waiting = asyncio.create_task(app.aclient.wait(job, timeout=30))
        ticks = 0
        while not waiting.done() and ticks < 20:
            await asyncio.sleep(0.01)
            ticks += 1
        await app.aclient.complete(job)
        await waiting
        return ticks

    assert asyncio.run(main()) == 20


def test_giving_up_on_a_call_does_not_wait_for_it(app: App) -> None:
    job = with_task(app).enqueue()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await app.aclient.result(job, timeout=3)

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 2.5
    app.client.complete(job)
    give_up = time.monotonic() + 10
    notifier = app._store().notifier
    while notifier.subscriptions and time.monotonic() < give_up:  # the abandoned call goes on until it sees the result
        time.sleep(0.01)


def test_a_program_ends_although_a_call_is_under_way(database: Database) -> None:
    script = f"""
import asyncio, time
from relet import App
app = App({database.url!r}, schema={database.schema!r})
@app.task
def work(): ...
async def main():
    job = await work.aenqueue()
    asyncio.create_task(app.aclient.wait(job, timeout=60))
    await asyncio.sleep(0.2)
asyncio.run(main())
print(time.time(), flush=True)
"""
    run = forks.run([sys.executable, "-c", script], timeout=50)
    assert run.returncode == 0, run.stderr
    assert time.time() - float(run.stdout) < 10
    assert not {"Error", "Traceback"} & set(run.stderr.replace(":", " ").split()), run.stderr


def test_a_plain_program_ends_although_a_thread_listens(database: Database) -> None:
    script = f"""
import threading, time
from relet import App, WaitTimeout
app = App({database.url!r}, schema={database.schema!r})
@app.task
def work(): ...
job = work.enqueue()
try: app.client.wait(job, timeout=0.1)
except WaitTimeout: pass
threading.Thread(target=app.client.wait, args=(job,), daemon=True).start()
time.sleep(0.2)
print(time.time(), flush=True)
"""
    run = forks.run([sys.executable, "-c", script], timeout=50)
    assert run.returncode == 0, run.stderr
    assert time.time() - float(run.stdout) < 10
    assert not {"Error", "Traceback"} & set(run.stderr.replace(":", " ").split()), run.stderr


# threads for async calls


def test_calls_one_after_another_use_one_thread() -> None:
    threads = DaemonThreadPool("test-calls")

    async def main() -> set[int]:
        used = set()
        for _ in range(30):
            used.add(await threads.call(threading.get_ident))
            await asyncio.sleep(0.001)
        return used

    assert len(asyncio.run(main())) <= 3


def test_a_call_sees_the_callers_context_and_its_exception_is_raised() -> None:
    threads = DaemonThreadPool("test-calls")
    name = contextvars.ContextVar("name", default="not set")

    async def main() -> None:
        name.set("Ada")
        assert await threads.call(name.get) == "Ada"
        with pytest.raises(ZeroDivisionError):
            await threads.call(lambda: 1 / 0)
        with pytest.raises(KeyboardInterrupt):
            await threads.call(_interrupt)
        assert await threads.call(lambda: "still there") == "still there"

    asyncio.run(main())


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_calls_beyond_the_bound_wait_and_run_in_order() -> None:
    threads = DaemonThreadPool("test-bound", limit=3)
    order: list[int] = []
    release = threading.Event()

    def call(n: int) -> None:
        order.append(n)
        release.wait(30)

    async def main() -> None:
        calls = asyncio.gather(*(threads.call(call, n) for n in range(50)))
        while len(order) < 3:
            await asyncio.sleep(0.001)
        assert sum(thread.name == "test-bound" for thread in threading.enumerate()) == 3
        release.set()
        await calls

    asyncio.run(main())
    assert sorted(order) == list(range(50))
    assert set(order[:3]) == {0, 1, 2}


def test_a_call_that_was_cancelled_while_it_waited_is_not_made() -> None:
    threads = DaemonThreadPool("test-calls", limit=1)
    made: list[str] = []
    release = threading.Event()

    async def main() -> None:
        first = asyncio.ensure_future(threads.call(release.wait, 30))
        second = asyncio.ensure_future(threads.call(made.append, "second"))
        third = asyncio.ensure_future(threads.call(made.append, "third"))
        await asyncio.sleep(0)
        second.cancel()
        release.set()
        await asyncio.gather(first, third)

    asyncio.run(main())
    assert made == ["third"]


def refuse_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make starting a thread fail as Python does at a limit of processes."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


def wait_for(event: threading.Event) -> None:
    event.wait(30)


def test_a_call_whose_thread_cannot_be_started_is_not_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = DaemonThreadPool("test-calls")
    made: list[str] = []
    release, over = threading.Event(), threading.Event()
    threads.submit(partial(wait_for, release))
    with monkeypatch.context() as patch:
        refuse_threads(patch, "test-calls")
        with pytest.raises(RuntimeError, match="can't start"):
            threads.submit(lambda: made.append("refused"))
    release.set()
    threads.submit(lambda: made.append("later"))
    threads.submit(over.set)
    assert over.wait(30)
    time.sleep(0.05)
    assert made == ["later"]


def test_a_bounded_call_whose_thread_cannot_be_started_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = DaemonThreadPool("test-calls", limit=8)
    release, over = threading.Event(), threading.Event()
    with monkeypatch.context() as patch:
        refuse_threads(patch, "test-calls")
        with pytest.raises(RuntimeError, match="can't start"):  # no thread would ever run it
            threads.submit(over.set)
    threads.submit(partial(wait_for, release))
    with monkeypatch.context() as patch:
        refuse_threads(patch, "test-calls")
        threads.submit(over.set)
    assert not over.is_set()
    release.set()
    assert over.wait(30)


def client_threads() -> int:
    return sum(thread.name == "relet-client" for thread in threading.enumerate())


@pytest.mark.long("sqlite")
def test_thousands_of_async_calls_share_a_few_threads(app: App) -> None:
    work = with_task(app)
    app.client.migrate()

    async def main() -> int:
        peak = 0
        calls = asyncio.gather(*(work.aenqueue(n) for n in range(2000)))
        while not calls.done():
            peak = max(peak, client_threads())
            await asyncio.sleep(0.005)
        assert len({job.id for job in await calls}) == 2000
        return peak

    assert 0 < asyncio.run(main()) <= 64
    assert app.client.count() == 2000


@pytest.mark.long("sqlite")
def test_any_number_of_async_waits_holds_up_no_other_call(app: App) -> None:
    work, number = with_task(app), rounds(70, all=100)  # more than there are threads
    app.client.migrate()

    async def main() -> None:
        jobs = await app.aclient.enqueue_many([work.draft(n) for n in range(number)])
        waits = asyncio.gather(*(app.aclient.wait(job, timeout=60) for job in jobs))
        await asyncio.sleep(0.1)
        assert not waits.done()
        assert client_threads() <= 64
        assert await app.aclient.count() == number
        for job in jobs:
            await app.aclient.complete(job, None)
        assert {job.state for job in await waits} == {"succeeded"}

    asyncio.run(main())
