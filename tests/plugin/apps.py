"""Apps with tasks and jobs, in a store of each kind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from relet import App
from relet._store.notify import SchemaNotifier
from relet._store.postgres import PostgresStore
from relet._store.postgres_pool import PostgresPool
from relet._store.sqlite import SQLiteStore
from relet._tasks.task import PlainTask
from tests.harness import harness_of


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    """A task that returns its argument."""

    def work(value: Any = None) -> Any:
        return value

    made: PlainTask[..., Any] = app.task(work)
    return made


Later = Callable[..., None]


@pytest.fixture
def meanwhile(app: App) -> Iterator[Later]:
    """Do something a little later, while the test waits. All of it is done before the app is closed."""
    timers: list[threading.Timer] = []

    def later(action: Callable[[], Any], after: float = 0.2) -> None:
        timers.append(threading.Timer(after, action))
        timers[-1].start()

    yield later
    for timer in timers:
        timer.join(30)


@pytest.fixture
def no_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    """No notification arrives, neither from this process nor from others."""

    def listen(source: Any) -> Any:
        raise RuntimeError("nothing can be heard")

    monkeypatch.setattr(PostgresPool, "listen", listen)
    monkeypatch.setattr(SQLiteStore, "listen", listen)
    monkeypatch.setattr(SchemaNotifier, "publish", lambda wakes, kinds: None)
    for store in (PostgresStore, SQLiteStore):
        monkeypatch.setattr(store, "notify", lambda store, wakes: None)


@pytest.fixture
def furnished(app: App) -> App:
    """An app with a job in each state that can be had without a clock."""

    @app.task
    def work(value: Any = None) -> Any:
        return value

    @app.task
    def strict(number: int) -> None: ...

    failed, *_ = jobs = app.client.enqueue_many([work.draft(n) for n in range(5)])
    (claimed,) = harness_of(app).claim(1)
    assert claimed.id == failed.id
    harness_of(app).fail(claimed)
    app.client.pause(jobs[1])
    app.client.complete(jobs[2])
    app.client.cancel(jobs[3])
    return app
