"""A store for a test, and sessions beside it whose transactions stay open between their statements.

`Bench` says in one line what a test wants of a store. `Session` is a connection of its own: `session.leave_open(flow)`
runs a flow and does not commit, `session.steps(flow)` stops a flow before a statement. `Background` runs what may
block, and tells whether it does.
"""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from relet._core.ids import make_id
from relet._core.job import Claimed, Draft, Job, Lease, Outcome, Policy, Raised, Released, State, Succeeded
from relet._store.flows import claim as claim_flows
from relet._store.flows import claim_scope, control, enqueue, inspect, lease, maintenance, promote
from relet._store.flows import settle as settle_flows
from relet._store.postgres import Limits, OwnConnection, PostgresStore
from relet._store.query import Begin, Flow, Query, Row
from relet._store.runner import drive
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store
from tests.clocks import MovedClock

R = TypeVar("R")

MEMORY = "sqlite:///:memory:"
LEASE = 30.0
SHORT = 0.3  # long enough for a statement to run into a lock
LONG = 20.0  # longer than anything that is not stuck


def draft(
    task: str = "t", *, id: str | None = None, policy: dict[str, Any] | None = None, **options: Any
) -> Draft[Any]:
    """A job to enqueue."""
    made = make_id(time.time(), os.urandom(10)) if id is None else id
    return Draft(made, task, '{"a":1}', policy=Policy(**(policy or {})), **options)


def token() -> str:
    return str(uuid.uuid4())


def half() -> float:
    """What flows are given for chance."""
    return 0.5


def connect(url: str, schema: str) -> Store:
    """The store of a URL, with its schema made."""
    store: Store
    if url.startswith("sqlite"):
        store = SQLiteStore(None if url == MEMORY else url.removeprefix("sqlite:///"))
    else:
        store = PostgresStore(url, schema=schema)
    store.migrate()
    return store


@contextmanager
def bench(url: str, schema: str) -> Iterator[Bench]:
    """A bench on a fresh store, closed afterwards."""
    store = connect(url, schema)
    made = Bench(store)
    try:
        yield made
    finally:
        for session in made.sessions:
            session.close()
        store.close()


class Bench(MovedClock):
    """A store and the verbs that tests use, with a clock that only the test moves."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = float(int(time.time()))
        store.clock = lambda: self.now
        self.sessions: list[Session] = []

    @property
    def on_postgres(self) -> bool:
        return isinstance(self.store, PostgresStore)

    def run(self, flow: Callable[..., Flow[R]], *args: Any, **options: Any) -> R:
        return self.store.run(flow, *args, **options)

    def session(self) -> Session:
        self.sessions.append(Session(self.store))
        return self.sessions[-1]

    def later(self, seconds: float) -> Bench:
        """Move the clock."""
        self.now += seconds
        return self

    def enqueue(self, *drafts: Draft[Any]) -> list[Job[Any]]:
        return self.run(enqueue.enqueue, drafts)

    def add(self, **options: Any) -> str:
        """Enqueue one job; its id."""
        return self.enqueue(draft(**options))[0].id

    def promote(self, **options: Any) -> promote.Promotion:
        return self.run(promote.promote, **options)

    def claim_flow(
        self, n: int = 10, queues: tuple[str, ...] = ("default",), **options: Any
    ) -> Flow[claim_scope.Claim]:
        given = {"worker": "w", "token": token(), "lease": LEASE, "tasks": ["t"], **options}
        worker, mark, tasks = given.pop("worker"), given.pop("token"), given.pop("tasks")
        scopes = [claim_scope.Scope(queue, n) for queue in queues]
        claim = claim_flows.claim_again if given.pop("again", False) else claim_flows.claim
        return claim(worker, mark, scopes, tasks, want=n, random=random.random, **given)

    def claim(self, n: int = 10, queues: tuple[str, ...] = ("default",), **options: Any) -> list[Claimed]:
        return self.run(lambda: self.claim_flow(n, queues, **options)).jobs

    def take(self, **options: Any) -> Claimed:
        """Enqueue one job and claim it."""
        id = self.add(**options)
        self.promote()
        (job,) = (job for job in self.claim(100, (options.get("queue", "default"),)) if job.id == id)
        return job

    def settle(self, *outcomes: tuple[Lease, Outcome]) -> list[State | None]:
        settled = self.run(settle_flows.settle, outcomes, random.random)
        return [one.state for one in settled]

    def succeed(self, job: Claimed, result: str | None = '"ok"', **options: Any) -> State | None:
        return self.settle((job.lease, Succeeded(result, **options)))[0]

    def fail(self, job: Claimed) -> State | None:
        return self.settle((job.lease, Raised("boom", fatal=True)))[0]

    def release(self, job: Claimed) -> State | None:
        return self.settle((job.lease, Released()))[0]

    def renew(self, *leases: Lease, worker: str = "w", seconds: float = LEASE) -> lease.Renewal:
        return self.run(lease.renew, worker, leases, lease=seconds)

    def reap(self) -> list[Any]:
        """Reap as if upkeep had been alive all the time."""
        self.run(maintenance.record_pulse, grace=0.0)
        return self.run(lease.reap, random.random)

    def prune(self, **options: Any) -> maintenance.Pruned:
        return self.run(maintenance.prune, **{"keep_finished": 1.0, "keep_failed": 1.0, **options})

    def get(self, id: str) -> Job[Any] | None:
        return self.run(inspect.get, id)

    def state(self, id: str) -> State | None:
        job = self.get(id)
        return None if job is None else job.state

    def limit(self, queue: str, most: int | None) -> None:
        self.run(control.set_queue, queue, max_running=most)

    def query(self, sql: str) -> list[Any]:
        """Look behind the scenes. `{s}` stands before the name of a table."""
        if isinstance(self.store, SQLiteStore):
            with self.store._writing:
                return self.store._open_writer().execute(sql.format(s=self.store.quoted + "_")).fetchall()
        assert isinstance(self.store, PostgresStore)
        with self.store._pool.connection() as raw:
            cursor = raw.execute(sql.format(s=self.store.quoted + ".").encode())
            return cursor.fetchall() if cursor.description else []

    def count(self, table: str, where: str = "true") -> int:
        return int(self.query(f"select count(*) from {{s}}{table} where {where}")[0][0])

    def settle_down(self) -> int:
        """Promote until nothing moves; how many rounds that took. Fails if it never ends."""
        for rounds in range(1, 50):
            done = self.promote()
            if not done.promoted and not done.cancelled and not done.more and not self.count("nudges"):
                return rounds
        raise AssertionError("promote never comes to an end")


class Session:
    """A connection of its own to a PostgreSQL store."""

    def __init__(self, store: Store) -> None:
        assert isinstance(store, PostgresStore)
        self.raw = store._server.connect_unlimited()
        self.pid = self.raw.info.backend_pid
        self.connection = OwnConnection(
            self.raw, store.quoted, Limits(seconds=60.0, tries=0, small=60.0, session=60.0), store.clock
        )

    def execute(self, sql: str) -> None:
        self.raw.execute(sql.encode())

    def leave_open(self, flow: Flow[R]) -> R:
        """Run a flow in the session's transaction, which stays open."""
        self.begin()
        return drive(flow, self.connection)[0]

    def begin(self) -> None:
        """As a caller would: no timeout of ours."""
        if self.raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self.raw.execute("begin isolation level read committed")
            self.connection._open = True

    def commit(self) -> None:
        self.connection.commit()

    def roll_back(self) -> None:
        self.connection.roll_back()
        self.connection._open = False

    def steps(self, flow: Flow[R]) -> Steps:
        return Steps(flow, self.connection)

    def close(self) -> None:
        self.raw.close()


class Steps:
    """A flow that runs on a session as far as it is told to."""

    def __init__(self, flow: Flow[Any], connection: OwnConnection) -> None:
        self._flow = flow
        self._connection = connection
        self._next: Any = next(flow)

    def before(self, name: str) -> None:
        """Run until the statement of this name would be next."""
        while not (isinstance(self._next, Query) and self._next.name == name):
            self._step()

    def after(self, name: str) -> None:
        """Run until the statement of this name is done."""
        self.before(name)
        self._step()

    def finish(self, *, commit: bool = True) -> Any:
        """Run to the end."""
        try:
            while True:
                self._step()
        except StopIteration as end:
            if commit:
                self._connection.commit()
            return end.value

    def _step(self) -> None:
        answer: list[Row] = []
        if isinstance(self._next, Query):
            answer = self._connection.execute(self._next)
        elif isinstance(self._next, Begin):
            self._connection.begin()
        self._next = self._flow.send(answer)


class Background:
    """Something that may block, in a thread."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._answer: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._answer = work()
        except BaseException as error:
            self._error = error

    @property
    def blocked(self) -> bool:
        """It has not come back after a moment."""
        self._thread.join(SHORT)
        return self._thread.is_alive()

    def result(self, seconds: float = LONG) -> Any:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"still blocked after {seconds:g} s"
        if self._error is not None:
            raise self._error
        return self._answer
