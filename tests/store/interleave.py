"""Sessions beside a store, whose transactions stay open between their statements, and calls that may block.

`session.leave_open(flow)` runs a flow and does not commit, `session.steps(flow)` stops a flow before a statement.
`Background` runs a call in a thread, and shows whether it blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from relet._store.postgres import Limits, OwnConnection, PostgresStore
from relet._store.query import Begin, Flow, Query, Row
from relet._store.runner import drive
from relet._store.store import Store

R = TypeVar("R")

SHORT = 0.3  # long enough for a statement to run into a lock
LONG = 20.0  # longer than anything that is not stuck


class Session:
    """A separate connection to a PostgreSQL store."""

    def __init__(self, store: Store) -> None:
        assert isinstance(store, PostgresStore)
        self.raw = store._server.connect_unlimited()
        self.pid = self.raw.info.backend_pid
        self.connection = OwnConnection(
            self.raw,
            store.quoted,
            Limits(seconds=60.0, tries=0, small=60.0, session=60.0),
            store.clock,
            store.statements,
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
    """A call that may block, in a thread."""

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
        """Whether the call has not returned after a moment."""
        self._thread.join(SHORT)
        return self._thread.is_alive()

    def result(self, seconds: float = LONG) -> Any:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"still blocked after {seconds:g} s"
        if self._error is not None:
            raise self._error
        return self._answer
