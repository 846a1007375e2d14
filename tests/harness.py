"""The verbs of clients, workers and maintenance on a store, one verb at a time: `StoreHarness`.

`store_harness` makes one on an empty store, with a clock that only the test moves. `harness_of` makes one on the store
of an app, whose clock is the database's.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from relet import App
from relet._core.ids import make_id
from relet._core.job import Claimed, Draft, Job, Lease, Outcome, Policy, Raised, Released, State, Succeeded
from relet._core.machine import Change
from relet._store.flows import claim as claim_flows
from relet._store.flows import claim_scope, control, enqueue, inspect, lease, maintenance, promote
from relet._store.flows import settle as settle_flows
from relet._store.postgres import PostgresStore
from relet._store.query import Flow
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store
from tests.store.interleave import Session
from tests.templates import fill_in

R = TypeVar("R")

MEMORY = "sqlite:///:memory:"
LEASE = 30.0


def draft(
    task: str = "t", *, id: str | None = None, policy: dict[str, Any] | None = None, **options: Any
) -> Draft[Any]:
    """A job to enqueue."""
    made = make_id(time.time(), os.urandom(10)) if id is None else id
    return Draft(made, task, '{"a":1}', policy=Policy(**(policy or {})), **options)


def token() -> str:
    return str(uuid.uuid4())


def half() -> float:
    """For a flow that takes a source of randomness."""
    return 0.5


def connect(url: str, schema: str) -> Store:
    """The store of a URL, with its schema made."""
    store: Store
    if url.startswith("sqlite"):
        store = SQLiteStore(None if url == MEMORY else url.removeprefix("sqlite:///"))
        fill_in(store)
    else:
        store = PostgresStore(url, schema=schema)
    store.migrate()
    return store


@contextmanager
def store_harness(url: str, schema: str) -> Iterator[StoreHarness]:
    """A harness with a stopped clock, on the store of a URL. Its sessions and its store are closed afterwards."""
    store = connect(url, schema)
    try:
        with harness_on(store) as made:
            yield made
    finally:
        store.close()


@contextmanager
def harness_on(store: Store) -> Iterator[StoreHarness]:
    """A harness with a stopped clock, on a store that tests share. Its sessions are closed afterwards."""
    made = StoreHarness(store)
    made.stop_clock()
    try:
        yield made
    finally:
        made.close_sessions()
        store.clock = None


def harness_of(app: App) -> StoreHarness:
    """A harness on the store of an app, which claims jobs of the app's tasks."""
    return StoreHarness(app._store(), app.tasks)


class StoreHarness:
    """Runs the verbs of clients, workers and maintenance on a store, when the test says so.

    No worker is needed: a test claims a job, moves the clock past its lease and reaps it, each with one call.
    `claim` claims jobs of `tasks`, in the name of the worker "w" unless the test names another.
    """

    now: float  # the time of a stopped clock

    def __init__(self, store: Store, tasks: Collection[str] = ("t",)) -> None:
        self.store = store
        self._tasks = tasks
        self._sessions: list[Session] = []

    @property
    def on_postgres(self) -> bool:
        return isinstance(self.store, PostgresStore)

    def run(self, flow: Callable[..., Flow[R]], *args: Any, **options: Any) -> R:
        return self.store.run(flow, *args, **options)

    def session(self) -> Session:
        """A further connection, whose transactions stay open between their statements."""
        self._sessions.append(Session(self.store))
        return self._sessions[-1]

    def close_sessions(self) -> None:
        for session in self._sessions:
            session.close()

    # The clock

    def stop_clock(self) -> None:
        """From here on only the test moves the store's clock."""
        self.now = float(int(time.time()))
        self.store.clock = lambda: self.now

    def later(self, seconds: float) -> StoreHarness:
        """Move the clock."""
        self.now += seconds
        return self

    @contextmanager
    def at(self, moment: float) -> Iterator[None]:
        """For a while the clock shows another moment."""
        before, self.now = self.now, moment
        try:
            yield
        finally:
            self.now = before

    # Clients

    def enqueue(self, *drafts: Draft[Any]) -> list[Job[Any]]:
        return self.run(enqueue.enqueue, drafts)

    def add(self, **options: Any) -> str:
        """Enqueue one job; its id."""
        return self.enqueue(draft(**options))[0].id

    def get(self, id: str) -> Job[Any] | None:
        return self.run(inspect.get, id)

    def state(self, id: str) -> State | None:
        job = self.get(id)
        return None if job is None else job.state

    def limit(self, queue: str, max_running: int | None) -> None:
        self.run(control.set_queue, queue, max_running=max_running)

    # Workers

    def claim_flow(
        self, want: int = 10, queues: tuple[str, ...] = ("default",), **options: Any
    ) -> Flow[claim_scope.Claim]:
        options = {"worker": "w", "token": token(), "lease": LEASE, "tasks": sorted(self._tasks), **options}
        worker, mark, tasks = options.pop("worker"), options.pop("token"), options.pop("tasks")
        scopes = [claim_scope.Scope(queue, want) for queue in queues]
        claim = claim_flows.claim_again if options.pop("again", False) else claim_flows.claim
        return claim(worker, mark, scopes, tasks, want=want, random=random.random, **options)

    def claim(self, want: int = 10, queues: tuple[str, ...] = ("default",), **options: Any) -> list[Claimed]:
        return self.run(lambda: self.claim_flow(want, queues, **options)).jobs

    def claim_new(self, **options: Any) -> Claimed:
        """Enqueue one job and claim it."""
        id = self.add(**options)
        self.promote()
        (job,) = (job for job in self.claim(100, (options.get("queue", "default"),)) if job.id == id)
        return job

    def settle(self, *outcomes: tuple[Lease, Outcome]) -> list[State | None]:
        """The state of each job afterwards; None: its lease was lost."""
        settled = self.run(settle_flows.settle, outcomes, random.random)
        return [one.state for one in settled]

    def end(self, job: Claimed, outcome: Outcome) -> State:
        """Settle one job, whose lease must not be lost."""
        (state,) = self.settle((job.lease, outcome))
        assert state is not None, "the lease was lost"
        return state

    def succeed(self, job: Claimed, result: str | None = "null", **options: Any) -> State:
        return self.end(job, Succeeded(result, **options))

    def fail(self, job: Claimed, error: str = "ValueError: no") -> State:
        return self.end(job, Raised(error, fatal=True))

    def release(self, job: Claimed) -> State:
        return self.end(job, Released())

    def renew(self, *leases: Lease, worker: str = "w", seconds: float = LEASE) -> lease.Renewal:
        return self.run(lease.renew, worker, leases, lease=seconds)

    # Maintenance

    def promote(self, **options: Any) -> promote.Promotion:
        return self.run(promote.promote, **options)

    def promote_all(self) -> list[str]:
        """Promote until there is no more to do at this moment; the ids of promoted jobs."""
        promoted: list[str] = []
        while True:
            step = self.promote()
            promoted += step.promoted
            if not step.more:
                return promoted

    def promote_until_idle(self) -> int:
        """Promote until nothing changes and no nudge is left; how many rounds that took. Fails if it never ends."""
        for rounds in range(1, 50):
            done = self.promote()
            if not done.promoted and not done.cancelled and not done.more and not self.count("nudges"):
                return rounds
        raise AssertionError("promote never ends")

    def record_pulse(self) -> None:
        """Record that maintenance is alive. There is no grace: it may reap at once."""
        self.run(maintenance.record_pulse, grace=0.0)

    def reap(self) -> list[Change]:
        """Reap as if maintenance had been alive all the time."""
        self.record_pulse()
        return self.run(lease.reap, random.random)

    def prune(self, **options: Any) -> maintenance.Pruned:
        return self.run(maintenance.prune, **{"keep_finished": 1.0, "keep_failed": 1.0, **options})

    # The tables

    def query(self, sql: str) -> list[Any]:
        """Rows by SQL. `{s}` stands before the name of a table."""
        if isinstance(self.store, SQLiteStore):
            with self.store._writing:
                return self.store._open_writer().execute(sql.format(s=self.store.quoted + "_")).fetchall()
        assert isinstance(self.store, PostgresStore)
        with self.store._pool.connection() as raw:
            cursor = raw.execute(sql.format(s=self.store.quoted + ".").encode())
            return cursor.fetchall() if cursor.description else []

    def count(self, table: str, where: str = "true") -> int:
        return int(self.query(f"select count(*) from {{s}}{table} where {where}")[0][0])
