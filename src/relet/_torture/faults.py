"""The kinds of faults, and how each is injected.

A fault is recorded with the workers that it may cost their leases. The checker accepts no other lost lease: a fault
that strikes all workers, such as an outage of the server, must cost none.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from .history import History
from .plan import Fault
from .proxy import Proxies
from .record import connected
from .settings import Settings
from .workers import Workers

#: Faults a minute, by kind.
ANYWHERE = {"kill": 40.0, "stop": 10.0, "terminate": 8.0, "terminate twice": 3.0}
POSTGRES = {
    "cut": 30.0, "lose requests": 20.0, "lose answers": 40.0, "hang": 5.0, "delay": 8.0, "kill backends": 40.0,
    "long transaction": 3.0, "lock table": 6.0, "lock rows": 6.0,
}  # fmt: skip
SQLITE = {"hold the file": 10.0, "long read": 6.0, "stop all": 2.0}
RESTART = {"restart": 3.0}  # only where the caller can restart the server
LOCKS = (
    "access share", "row share", "row exclusive", "share update exclusive", "share", "share row exclusive",
    "exclusive", "access exclusive",
)  # fmt: skip


Restart = Callable[[float], object]  # restarts the server, in the way that a number from 0 to 1 selects


def rates(settings: Settings, restart: Restart | None) -> dict[str, float]:
    """The kinds that are possible at this database, with how many a minute."""
    kinds = ANYWHERE | (SQLITE if settings.is_sqlite else POSTGRES)
    return kinds if restart is None else kinds | RESTART


class Injector:
    """Injects faults. Each takes its time in a thread, so that they overlap."""

    def __init__(
        self,
        settings: Settings,
        workers: Workers,
        proxies: Proxies | None,
        history: History,
        restart: Restart | None,
    ) -> None:
        self._settings, self._workers, self._proxies = settings, workers, proxies
        self._history, self._restart = history, restart
        self._threads: list[threading.Thread] = []
        self._kinds: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill, "stop": self._stop, "stop all": self._stop_all, "terminate": self._terminate,
            "terminate twice": self._terminate_twice, "cut": self._cut, "lose requests": self._lose_requests,
            "lose answers": self._lose_answers, "hang": self._hang, "delay": self._delay,
            "kill backends": self._kill_backends, "long transaction": self._long_transaction,
            "lock table": self._lock_table, "lock rows": self._lock_rows, "hold the file": self._hold_file,
            "long read": self._long_read, "restart": self._restart_server,
        }  # fmt: skip

    def inject(self, fault: Fault) -> None:
        thread = threading.Thread(target=self._run, args=[fault], daemon=True, name=f"torture-{fault.kind}")
        thread.start()
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    def wait(self, seconds: float) -> None:
        """Until all faults are over."""
        give_up = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(give_up - time.monotonic(), 0.0))

    def _run(self, fault: Fault) -> None:
        try:
            self._kinds[fault.kind](fault)
        except Exception as error:
            self._history.write("fault missed", kind=fault.kind, error=f"{type(error).__name__}: {error}")

    def _note(self, fault: Fault, pids: list[int] | None = None, seconds: float | None = None) -> None:
        """Record a fault before it strikes. `pids`: the workers that may lose leases by it, for so many seconds (None:
        for good)."""
        self._history.write("fault", kind=fault.kind, workers=pids or [], seconds=seconds)

    # Processes

    def _kill(self, fault: Fault) -> None:
        pid = self._workers.pid(fault.worker)
        self._note(fault, [pid])
        os.kill(pid, signal.SIGKILL)

    def _stop(self, fault: Fault) -> None:
        """For up to three leases."""
        pid, seconds = self._workers.pid(fault.worker), (0.3 + 2.7 * fault.size) * self._settings.lease
        self._note(fault, [pid], seconds)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def _stop_all(self, fault: Fault) -> None:
        """As a laptop that sleeps: no worker renews, and none may take the jobs of the others afterwards."""
        pids = [self._workers.pid(number) for number in range(self._workers.number)]
        self._note(fault, pids, 2 * self._settings.lease)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5 * self._settings.lease)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _terminate(self, fault: Fault) -> None:
        pid = self._workers.pid(fault.worker)
        self._note(fault)
        os.kill(pid, signal.SIGTERM)

    def _terminate_twice(self, fault: Fault) -> None:
        """The second signal makes the worker leave at once; a lease that it cannot release then expires."""
        pid = self._workers.pid(fault.worker)
        self._note(fault, [pid])
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.1 + fault.size * 0.5)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    # Connections

    def _proxied(self, fault: Fault) -> Any:
        return self._workers.proxy(fault.worker)

    def _do(self, work: Any) -> None:
        assert self._proxies is not None  # noqa: S101
        self._proxies.call(work)

    def _cut(self, fault: Fault) -> None:
        self._note(fault)
        self._do(self._proxied(fault).cut())

    def _lose_requests(self, fault: Fault) -> None:
        self._note(fault)
        self._do(self._proxied(fault).lose_requests())

    def _lose_answers(self, fault: Fault) -> None:
        self._note(fault)
        self._do(self._proxied(fault).lose_answers())

    def _hang(self, fault: Fault) -> None:
        """The connections of one worker, for up to three leases."""
        seconds = (0.3 + 2.7 * fault.size) * self._settings.lease
        self._note(fault, [self._workers.pid(fault.worker)], seconds)
        self._do(self._proxied(fault).hang(seconds))
        time.sleep(seconds)

    def _delay(self, fault: Fault) -> None:
        """Slow, but not so slow that a renewal takes as long as a lease."""
        self._note(fault)
        self._do(self._proxied(fault).delay(self._settings.lease, 0.01 + fault.size * 0.1))

    # The server

    def _kill_backends(self, fault: Fault) -> None:
        """Terminate half of the sessions of this run."""
        self._note(fault)
        with connected(self._settings) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database() and usename = current_user "
                "and query like %s and random() < 0.5",
                [f"%{self._settings.schema}%"],
            )

    def _long_transaction(self, fault: Fault) -> None:
        """It holds back vacuum."""
        self._note(fault)
        with self._open_transaction("set transaction isolation level repeatable read"):
            time.sleep(2 * self._settings.lease)

    def _lock_table(self, fault: Fault) -> None:
        """In each mode, for up to two leases. Renewals wait; no lease may be lost by it."""
        mode = LOCKS[int(fault.size * len(LOCKS)) % len(LOCKS)]
        table = ("jobs", "finished", "queues", "keys", "pulse")[int(fault.size * 100) % 5]
        self._note(fault)
        with self._open_transaction(f"lock table {self._settings.prefix}{table} in {mode} mode"):
            time.sleep(0.1 + fault.size * 2 * self._settings.lease)

    def _lock_rows(self, fault: Fault) -> None:
        self._note(fault)
        jobs = f"{self._settings.prefix}jobs"
        with self._open_transaction(f"select from {jobs} where state = 'running' limit 5 for update skip locked"):
            time.sleep(fault.size * self._settings.lease)

    @contextmanager
    def _open_transaction(self, statement: str) -> Iterator[None]:
        with connected(self._settings) as connection, connection.transaction():
            connection.execute("set local lock_timeout = '2s'")
            connection.execute(statement)
            connection.execute("select 1")
            yield

    def _restart_server(self, fault: Fault) -> None:
        assert self._restart is not None  # noqa: S101
        self._note(fault)
        self._restart(fault.size)

    # The file

    def _hold_file(self, fault: Fault) -> None:
        """Another program writes, for up to two leases. Renewals wait; no lease may be lost by it."""
        self._note(fault)
        with connected(self._settings) as connection:
            connection.execute("begin immediate")
            time.sleep(0.1 + fault.size * 2 * self._settings.lease)
            connection.execute("rollback")

    def _long_read(self, fault: Fault) -> None:
        """A reader keeps the log of the file from being reused."""
        self._note(fault)
        path = self._settings.direct.removeprefix("sqlite:///").partition("?")[0]
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin")
            connection.execute(f"select count(*) from {self._settings.prefix}jobs").fetchone()  # noqa: S608
            time.sleep(2 * self._settings.lease)
