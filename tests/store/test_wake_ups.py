"""Which sleeping workers a notification wakes: as many as there are new jobs, and only those that serve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from relet import App
from relet._store.flows import maintenance
from relet._system import SYSTEM
from relet._tasks.task import PlainTask
from relet._worker.notifications import NOTIFY_FOR, Notifications, Run
from tests.databases import Database
from tests.notifications import Ear

pytestmark = pytest.mark.partitioned  # in the variant rows workers poll


class Sleepers(Ear):
    """Rows of sleeping workers."""

    def __init__(self, app: App, sql: psycopg.Connection[Any]) -> None:
        super().__init__(sql)
        self._app, self._schema = app, app._schema
        for general in ("queued", "jobs"):
            self.listen(f"{self._schema}.{general}", "all")

    def sleep(self, name: str, key: int, queues: list[str] | None = None, tasks: tuple[str, ...] = ("greet",)) -> None:
        for kind in ("queued", "jobs"):
            self.listen(f"{self._schema}.{kind}.{key:x}", name)
        self._app._store().run(maintenance.request_notifications, 60.0, key, queues, tasks)


@pytest.fixture
def app(pg_app: App) -> App:
    return pg_app


@pytest.fixture
def sql(pg_database: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_database.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def sleepers(app: App, sql: psycopg.Connection[Any]) -> Sleepers:
    return Sleepers(app, sql)


@pytest.fixture
def greet(app: App) -> PlainTask[..., Any]:
    @app.task
    def greet(name: str = "Ada") -> None: ...

    return greet


Enqueue = Callable[[App, PlainTask[..., Any], psycopg.Connection[Any], int], object]


def one_by_one(app: App, greet: PlainTask[..., Any], sql: psycopg.Connection[Any], number: int) -> None:
    for _ in range(number):
        greet.enqueue()


def as_a_batch(app: App, greet: PlainTask[..., Any], sql: psycopg.Connection[Any], number: int) -> None:
    app.client.enqueue_many([greet.draft() for _ in range(number)])


def in_a_transaction(app: App, greet: PlainTask[..., Any], sql: psycopg.Connection[Any], number: int) -> None:
    with sql.transaction():
        app.client.enqueue_many([greet.draft() for _ in range(number)], connection=sql)


def by_the_sql_function(app: App, greet: PlainTask[..., Any], sql: psycopg.Connection[Any], number: int) -> None:
    for _ in range(number):
        sql.execute(f"select {app._schema}.enqueue('greet')".encode())


@pytest.mark.parametrize("enqueue", [one_by_one, as_a_batch, in_a_transaction, by_the_sql_function])
def test_no_more_workers_are_woken_than_there_are_jobs(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers, sql: psycopg.Connection[Any], enqueue: Enqueue
) -> None:
    for number in range(8):
        sleepers.sleep(f"worker {number}", 1000 * number)
    sleepers.heard()
    enqueue(app, greet, sql, 3)
    heard = sleepers.heard()
    # Jobs that one statement stores wake different workers. Each of several statements chooses anew.
    assert heard.total() == 3
    assert enqueue is one_by_one or enqueue is by_the_sql_function or len(heard) == 3
    assert "all" not in heard


def test_a_batch_wakes_each_worker_once_however_large_it_is(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers
) -> None:
    for number in range(4):
        sleepers.sleep(f"worker {number}", number)
    sleepers.heard()
    app.client.enqueue_many([greet.draft() for _ in range(100)])
    assert sleepers.heard() == {f"worker {number}": 1 for number in range(4)}


def test_only_workers_that_serve_queue_and_task_are_woken(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers
) -> None:
    sleepers.sleep("all queues", 1)
    sleepers.sleep("mail", 2, ["billing", "mail"])
    sleepers.sleep("other queue", 3, ["billing"])
    sleepers.sleep("other task", 4, None, ("charge", "render"))
    sleepers.heard()
    app.client.enqueue_many([greet.using(queue="mail").draft() for _ in range(9)])
    assert sleepers.heard() == {"all queues": 1, "mail": 1}
    greet.using(queue="elsewhere").enqueue()
    assert sleepers.heard() == {"all queues": 1}


def test_every_sleeping_worker_has_its_turn(greet: PlainTask[..., Any], sleepers: Sleepers) -> None:
    """The choice begins at a random key, and goes on with the first one after the last."""
    for number in range(3):
        sleepers.sleep(f"worker {number}", number * 2**26)
    heard = Counter[str]()
    for _ in range(200):
        greet.enqueue()
        heard += sleepers.heard()
        if len(heard) == 3:
            return
    pytest.fail(f"after 200 jobs only {heard}")


def test_a_job_that_waits_wakes_one_worker_of_each_kind(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers
) -> None:
    """Each worker may promote it. Only one that serves its queue can claim it, so one of each kind is woken."""
    for number in range(4):
        sleepers.sleep("one", number)
        sleepers.sleep("other", 100 + number, ["mail"])
    sleepers.heard()
    greet.using(target="acct-7").enqueue()
    assert sleepers.heard() == {"one": 1, "other": 1}


def test_a_request_that_has_run_out_wakes_no_worker(app: App, greet: PlainTask[..., Any], sleepers: Sleepers) -> None:
    sleepers.sleep("dead", 1)
    late = SYSTEM.time() + 70
    app._store().clock = lambda: late
    sleepers.sleep("alive", 2)
    sleepers.heard()
    app.client.enqueue_many([greet.draft() for _ in range(5)])
    assert sleepers.heard() == {"alive": 1}


def notifications(app: App) -> tuple[Notifications, Run]:
    store = app._store()
    return Notifications(SYSTEM, store.notifier, None, ["greet"]), store.run


def test_a_worker_without_room_passes_the_notification_on_and_is_not_chosen_again(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers
) -> None:
    mine, run = notifications(app)
    woken = SYSTEM.event()
    with mine.subscribe(woken.set):
        assert mine.request(run, 0.0)
        sleepers.sleep("other task", 1, None, ("charge",))
        sleepers.heard()
        greet.enqueue()
        assert woken.wait(60)
        sleepers.sleep("same kind", 2)
        mine.has_no_room(run)
        assert sleepers.heard() == {"same kind": 1}
        mine.has_no_room(run)  # nothing has come since
        app.client.enqueue_many([greet.draft() for _ in range(9)])
        assert sleepers.heard() == {"same kind": 1}
        assert mine.is_due, "it asks again when it has room"


def test_a_worker_that_leaves_jobs_behind_wakes_others_of_its_kind(app: App, sleepers: Sleepers) -> None:
    mine, run = notifications(app)
    for number in range(5):
        sleepers.sleep("same kind", number)
    sleepers.sleep("other task", 9, None, ("charge",))
    sleepers.heard()
    mine.leaves_jobs(run)
    assert sleepers.heard() == {"same kind": 2}
    mine.leaves_jobs(run)
    assert sleepers.heard().total() in (0, 2), "at most one in 50 ms"


def test_a_worker_that_stops_passes_on_notifications_that_arrive_too_late(
    app: App, greet: PlainTask[..., Any], sleepers: Sleepers, sql: psycopg.Connection[Any]
) -> None:
    mine, run = notifications(app)
    woken = SYSTEM.event()
    with mine.subscribe(woken.set):
        mine.request(run, 0.0)
        greet.enqueue()
        assert woken.wait(60)
    sleepers.sleep("same kind", 2)
    sleepers.heard()
    mine.end(run)
    assert sleepers.heard() == {"same kind": 1}
    assert sql.execute(f"select array_agg(key) from {app._schema}.sleepers".encode()).fetchone() == ([2],)
    assert not mine.is_due


def test_rows_of_workers_that_died_are_deleted(app: App, sleepers: Sleepers, sql: psycopg.Connection[Any]) -> None:
    sleepers.sleep("dead", 1)
    late = SYSTEM.time() + 4000
    app._store().clock = lambda: late
    sleepers.sleep("alive", 2)
    app.client.prune()
    assert sql.execute(f"select array_agg(key) from {app._schema}.sleepers".encode()).fetchone() == ([2],)


def test_requests_are_seldom(app: App) -> None:
    """A worker that has been idle for long asks for longer."""
    mine, run = notifications(app)
    assert mine.request(run, 0.0)
    assert mine._until - SYSTEM.monotonic() <= NOTIFY_FOR
    mine.again_at = 0.0
    assert not mine.request(run, 20.0), "enqueuing processes notified all the time"
    assert mine._until - SYSTEM.monotonic() > 10.0
