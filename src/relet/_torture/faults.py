"""The kinds of faults, and how each is injected.

A fault is recorded with the workers that it may cost their leases, and with those whose connections it breaks for a
moment. The checker accepts no other lost lease: a fault that strikes all workers, such as an outage of the server, must
cost none.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from ..app import App
from .facts import GATEWAY_STARTS_WITHIN
from .history import History
from .plan import Fault
from .processes import Processes
from .proxy import Proxies, Proxy
from .record import connected
from .settings import Settings, can_serve

#: Faults a minute, by kind.
ANYWHERE = {
    "kill": 30.0, "stop": 10.0, "stop briefly": 30.0, "terminate": 8.0, "terminate twice": 3.0, "kill a client": 6.0,
    "move a clock": 10.0, "migrate": 2.0,
}  # fmt: skip
POSTGRES = {
    "cut": 40.0, "lose requests": 30.0, "lose answers": 60.0, "half open": 6.0, "hang": 5.0, "delay": 10.0,
    "kill backends": 60.0, "long transaction": 3.0, "lock table": 6.0, "lock rows": 10.0,
}  # fmt: skip
SQLITE = {
    "stop": 30.0, "stop briefly": 100.0, "kill a client": 20.0, "move a clock": 60.0, "hold the file": 20.0,
    "long read": 35.0, "stop all": 4.0,
}  # fmt: skip
#: Those of gateways, if there are any.
GATEWAY = {"kill a gateway": 6.0, "stop a gateway": 6.0, "terminate a gateway": 2.0}
#: Those that only the caller can inject, if it passes a function for them.
BY_CALLER = {"restart": 3.0, "fail over": 0.0, "fill the disk": 3.0}
#: Those that strike all workers in the same way.
FOR_ALL = frozenset({*BY_CALLER, "migrate", "lock table", "lock rows", "kill backends", "hold the file", "stop all"})
LOCKS = (
    "access share", "row share", "row exclusive", "share update exclusive", "share", "share row exclusive",
    "exclusive", "access exclusive",
)  # fmt: skip
LOCKED_TABLES = ("jobs", "finished", "queues", "keys", "pulse")
CLIENT_SHARE = 0.3  # of the faults of connections strike a producer, the operator or the HTTP API


Hook = Callable[[float], object]  # injects a fault, in the way that a number from 0 to 1 selects


def rates(settings: Settings, hooks: Mapping[str, Hook]) -> dict[str, float]:
    """The kinds that are possible at this database, with how many a minute."""
    kinds = ANYWHERE | (SQLITE if settings.is_sqlite else POSTGRES)
    kinds |= GATEWAY if can_serve() else {}
    return kinds | {kind: rate for kind, rate in BY_CALLER.items() if kind in hooks}


class Injector:
    """Injects faults. Each takes its time in a thread, so that they overlap."""

    def __init__(
        self,
        settings: Settings,
        workers: Processes,
        clients: Processes,
        gateways: Processes,
        proxies: Proxies | None,
        history: History,
        hooks: Mapping[str, Hook],
    ) -> None:
        self._settings, self._workers, self._clients, self._proxies = settings, workers, clients, proxies
        self._gateways = gateways
        self._history, self._hooks = history, hooks
        self._away_until = [0.0] * gateways.number  # of each gateway, on the monotonic clock
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._stops: Counter[int] = Counter()  # faults that stop a process now, by its id
        self._signalled: set[int] = set()  # workers that have got a SIGTERM
        self._kinds: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill, "kill a client": self._kill_client, "stop": self._stop,
            "stop briefly": self._stop_briefly, "stop all": self._stop_all, "terminate": self._terminate,
            "terminate twice": self._terminate_twice, "move a clock": self._move_clock,
            "cut": self._cut, "lose requests": self._lose_requests,
            "lose answers": self._lose_answers, "half open": self._half_open, "hang": self._hang,
            "delay": self._delay, "kill backends": self._kill_backends,
            "long transaction": self._long_transaction, "lock table": self._lock_table,
            "lock rows": self._lock_rows, "hold the file": self._hold_file, "long read": self._long_read,
            "migrate": self._migrate, "kill a gateway": self._kill_gateway, "stop a gateway": self._stop_gateway,
            "terminate a gateway": self._terminate_gateway,
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
        began = time.time()
        try:
            if fault.kind in self._hooks:
                self._note(fault)
                self._hooks[fault.kind](fault.size)
            else:
                self._kinds[fault.kind](fault)
        except Exception as error:
            self._history.write("fault missed", kind=fault.kind, error=f"{type(error).__name__}: {error}")
        if fault.kind in FOR_ALL:
            self._history.write("fault over", kind=fault.kind, began=began)

    def _note(
        self,
        fault: Fault,
        pids: list[int] | None = None,
        seconds: float | None = 0.0,
        *,
        signalled: int | None = None,
        disturbed: int | list[int] | None = None,
        stopped: list[int] | None = None,
    ) -> None:
        """Record a fault before it strikes.

        `pids`: the workers that may lose leases by it, for so many seconds (None: for good). `signalled`: the process
        that may end by it. `disturbed`: the process whose connections fail. `stopped`: those that do not run, or do not
        reach the database.
        """
        fields = {"signalled": signalled, "disturbed": disturbed, "stopped": stopped or []}
        self._history.write("fault", kind=fault.kind, workers=pids or [], seconds=seconds, **fields)

    # Processes

    def _kill(self, fault: Fault) -> None:
        pid = self._workers.pid(fault.worker)
        self._note(fault, [pid], None, signalled=pid, stopped=[pid])
        os.kill(pid, signal.SIGKILL)

    def _kill_client(self, fault: Fault) -> None:
        pid = self._clients.pid(self._client_number(fault))
        self._note(fault, signalled=pid)
        os.kill(pid, signal.SIGKILL)

    def _stop(self, fault: Fault) -> None:
        """For up to three leases."""
        pid, seconds = self._workers.pid(fault.worker), (0.3 + 2.7 * fault.size) * self._settings.lease
        self._note(fault, [pid], seconds, stopped=[pid])
        self._pause([pid], seconds)

    def _stop_briefly(self, fault: Fault) -> None:
        """For half a lease at most, so that it costs none."""
        pid, seconds = self._workers.pid(fault.worker), 0.5 * fault.size * self._settings.lease
        self._note(fault, seconds=seconds, disturbed=pid, stopped=[pid])
        self._pause([pid], seconds)

    def _stop_all(self, fault: Fault) -> None:
        """As a laptop that sleeps: no worker renews, and none may take the jobs of the others afterwards. Gateways take
        jobs of dead workers, too, so they are stopped as well."""
        seconds, began = 1.5 * self._settings.lease, time.time()
        with self._workers.paused(), self._gateways.paused():
            pids = [self._workers.pid(number) for number in range(self._workers.number)]
            gateways = [self._gateways.pid(number) for number in range(self._gateways.number)]
            self._note(fault, seconds=seconds, stopped=pids)
            self._pause(gateways + pids, seconds)
        if gateways:
            self._history.write("gateway runs again", began=began)

    def _pause(self, pids: list[int], seconds: float) -> None:
        """A process goes on when the last of the faults that stop it is over."""
        with self._lock:
            self._stops.update(pids)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        with self._lock:
            self._stops.subtract(pids)
            for pid in pids:
                if not self._stops[pid]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)

    def _terminate(self, fault: Fault) -> None:
        self._signal(fault, self._workers.pid(fault.worker))

    def _terminate_twice(self, fault: Fault) -> None:
        """The worker counts signals within half a second as one."""
        pid = self._workers.pid(fault.worker)
        self._signal(fault, pid)
        time.sleep(0.6 + fault.size * 0.5)
        with suppress(ProcessLookupError):
            self._signal(fault, pid)

    def _signal(self, fault: Fault, pid: int) -> None:
        """A second signal makes the worker leave at once; a lease that it cannot release then expires."""
        is_second = pid in self._signalled
        self._signalled.add(pid)
        self._note(fault, [pid] if is_second else [], None if is_second else 0.0, signalled=pid)
        os.kill(pid, signal.SIGTERM)

    # Gateways

    def _note_gateway(self, fault: Fault, number: int, seconds: float, signalled: int | None = None) -> None:
        """Workers use the other gateway meanwhile. If there is none, they may lose leases."""
        pids, now = self._workers.remote(), time.monotonic()
        with self._lock:
            self._away_until[number] = max(self._away_until[number], now + seconds)
            others = [until for other, until in enumerate(self._away_until) if other != number]
        if all(until > now for until in others):
            self._note(fault, pids, seconds, signalled=signalled)
        else:
            self._note(fault, seconds=min(seconds, self._settings.lease / 3), signalled=signalled, disturbed=pids)

    def _gateway_number(self, fault: Fault) -> int:
        return int(fault.size * 1000) % self._gateways.number

    def _kill_gateway(self, fault: Fault) -> None:
        number = self._gateway_number(fault)
        pid = self._gateways.pid(number)
        self._note_gateway(fault, number, GATEWAY_STARTS_WITHIN, signalled=pid)
        os.kill(pid, signal.SIGKILL)

    def _terminate_gateway(self, fault: Fault) -> None:
        number = self._gateway_number(fault)
        pid = self._gateways.pid(number)
        self._note_gateway(fault, number, GATEWAY_STARTS_WITHIN, signalled=pid)
        os.kill(pid, signal.SIGTERM)

    def _stop_gateway(self, fault: Fault) -> None:
        """For up to three leases. Workers notice that it does not answer a renewal in time."""
        number, seconds = self._gateway_number(fault), (0.3 + 2.7 * fault.size) * self._settings.lease
        self._note_gateway(fault, number, seconds)
        began = time.time()
        self._pause([self._gateways.pid(number)], seconds)
        self._history.write("gateway runs again", began=began)

    def _move_clock(self, fault: Fault) -> None:
        """By up to an hour, forth or back. A third of the times, to the right time."""
        seconds = 0.0 if fault.size < 1 / 3 else (fault.size - 2 / 3) * 3 * 3600.0
        self._note(fault)
        self._workers.clock(fault.worker).write_text(str(seconds))

    # Connections

    def _client_number(self, fault: Fault) -> int:
        return int(fault.size * 1000) % self._clients.number

    def _proxied(self, fault: Fault) -> tuple[Proxy, int]:
        """The proxy whose connections are struck, and the process behind it."""
        if fault.size * 100 % 1 < CLIENT_SHARE:
            number = self._client_number(fault)
            return self._clients.proxy(number), self._clients.pid(number)
        return self._workers.proxy(fault.worker, fault.size), self._workers.pid(fault.worker)

    def _do(self, work: Any) -> None:
        assert self._proxies is not None
        self._proxies.call(work)

    def _cut(self, fault: Fault) -> None:
        proxy, pid = self._proxied(fault)
        self._note(fault, disturbed=pid)
        self._do(proxy.cut())

    def _lose_requests(self, fault: Fault) -> None:
        proxy, pid = self._proxied(fault)
        self._note(fault, disturbed=pid)
        self._do(proxy.lose_requests())

    def _lose_answers(self, fault: Fault) -> None:
        proxy, pid = self._proxied(fault)
        self._note(fault, disturbed=pid)
        self._do(proxy.lose_answers())

    def _half_open(self, fault: Fault) -> None:
        """The worker learns of it when a statement has taken too long, which may be too late for a renewal."""
        proxy, pid = self._proxied(fault)
        self._note(fault, [pid], self._settings.lease)
        self._do(proxy.lose_server())

    def _hang(self, fault: Fault) -> None:
        """The connections of one worker, for up to three leases. A worker with two gateways reaches the other one."""
        seconds = (0.3 + 2.7 * fault.size) * self._settings.lease
        proxy, pid = self._proxied(fault)
        self._note(fault, [pid], seconds, stopped=[] if pid in self._workers.remote() else [pid])
        self._do(proxy.hang(seconds))
        time.sleep(seconds)

    def _delay(self, fault: Fault) -> None:
        """Slow, but not so slow that a renewal takes as long as a lease."""
        proxy, pid = self._proxied(fault)
        self._note(fault, seconds=self._settings.lease, disturbed=pid)
        self._do(proxy.delay(self._settings.lease, 0.01 + fault.size * 0.1))

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
        table = LOCKED_TABLES[int(fault.size * 100) % len(LOCKED_TABLES)]
        self._note(fault)
        with self._open_transaction(f"lock table {self._settings.prefix}{table} in {mode} mode"):
            time.sleep(0.1 + fault.size * 2 * self._settings.lease)

    def _lock_rows(self, fault: Fault) -> None:
        """For up to a lease. A lease that expires meanwhile may be lost: no worker can renew it."""
        self._note(fault)
        jobs = f"{self._settings.prefix}jobs"
        running = f"select id::text from {jobs} where state = 'running' limit 5 for update skip locked"
        seconds = fault.size * self._settings.lease
        with self._open_transaction(running) as rows:
            self._history.write("rows locked", jobs=[id for (id,) in rows], seconds=seconds)
            time.sleep(seconds)

    @contextmanager
    def _open_transaction(self, statement: str) -> Iterator[list[Any]]:
        """The rows that the statement returns, if it returns any."""
        with connected(self._settings) as connection, connection.transaction():
            connection.execute("set local lock_timeout = '2s'")
            cursor = connection.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
            connection.execute("select 1")
            yield rows

    def _migrate(self, fault: Fault) -> None:
        """A deployment migrates, and its migration adds a column to the jobs and drops another."""
        self._note(fault)
        with closing(App(self._settings.direct, schema=self._settings.schema)) as app:
            app.client.migrate()
        for change in ("add column torture integer", "drop column torture"):
            with connected(self._settings) as connection:
                if not self._settings.is_sqlite:
                    connection.execute("set lock_timeout = '2s'")
                connection.execute(f"alter table {self._settings.prefix}jobs {change}")

    # The file

    def _hold_file(self, fault: Fault) -> None:
        """Another program writes, for up to two leases, mostly less. Renewals wait; no lease may be lost by it."""
        self._note(fault)
        with connected(self._settings) as connection:
            connection.execute("begin immediate")
            time.sleep(0.05 + fault.size**4 * 2 * self._settings.lease)
            connection.execute("rollback")

    def _long_read(self, fault: Fault) -> None:
        """A reader keeps the log of the file from being reused."""
        self._note(fault)
        path = self._settings.direct.removeprefix("sqlite:///").partition("?")[0]
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin")
            connection.execute(f"select count(*) from {self._settings.prefix}jobs").fetchone()
            time.sleep(2 * self._settings.lease)
