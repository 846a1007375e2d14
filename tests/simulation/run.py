"""One seed: the plan of faults that it makes, the run, and what the checker finds."""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct

from relet._client.client import Client
from relet._store.sqlite import SQLiteStore
from relet._torture.check import Violation, check
from relet._torture.load import Loaded, Record, record_of
from relet._torture.plan import Fault
from relet._torture.record import sqlite_statements
from relet._torture.settings import Settings as TortureSettings
from relet._worker.context import Settings, WorkerContext
from relet._worker.execution import Execution
from relet._worker.invoke import call_plain
from relet._worker.lease_table import LeaseTable
from relet._worker.meter import Meter
from relet._worker.quarantine import Quarantine
from relet._worker.reconnect import ReapGuard
from relet._worker.session import StoreSession
from relet._worker.timers import Timers
from relet.errors import InvalidInput, InvalidTransition, JobNotFound, KeyTaken, StoreError
from tests.simulation.database import Database, Link, SimStore
from tests.simulation.events import Events
from tests.simulation.kernel import Kernel, Process
from tests.simulation.shop import LEASE, Mix, make_app
from tests.simulation.system import BASE, SimSystem, simulated

WORKERS = 3
JOBS = 40
FAULTS = 30
SECONDS = 12.0  # of virtual time in which faults strike
HEALS_WITHIN = 120.0
KINDS = (
    "kill", "kill", "kill", "stop", "stop", "cut", "lose request", "lose answer", "lose answer", "lose answer",
    "delay", "outage", "lose notifications",
)  # fmt: skip


class Result(Struct, frozen=True):
    seed: int
    trace: str
    jobs: int
    faults: int
    lost: int
    switches: int
    violations: list[Violation]


def make_plan(seed: int) -> list[Fault]:
    chance = random.Random(seed)
    faults = [
        Fault(chance.random() * SECONDS, chance.choice(KINDS), chance.randrange(WORKERS), chance.random())
        for _ in range(FAULTS)
    ]
    return sorted(faults, key=lambda fault: fault.at)


class Simulation:
    def __init__(self, seed: int, plan: list[Fault]) -> None:
        self.seed, self.plan = seed, plan
        self.kernel = Kernel(seed)
        self.events = Events(self.kernel)
        self.app = make_app(self.kernel, self.events)
        real = SQLiteStore(None)
        real.clock = lambda: BASE + self.kernel.now
        self.database = Database(self.kernel, real)
        self.links = [Link() for _ in range(WORKERS)]
        self.processes: list[Process] = []
        self._pids = 100
        self.is_enqueued = False

    def run(self) -> Result:
        with simulated(self.kernel):
            try:
                self._install()
                for number in range(WORKERS):
                    self.processes.append(self._start_worker(number))
                driver = Process("driver", 1)
                self.kernel.spawn(driver, "producer", self._produce)
                self.kernel.spawn(driver, "operator", self._operate)
                self.kernel.spawn(driver, "faults", self._inject)
                self.kernel.run(self._is_idle, SECONDS + HEALS_WITHIN)
                records = self._records()
                ledger = self._ledger()
            finally:
                self.kernel.close()
                self.database.real.close()
        settings = TortureSettings("", "sqlite:", "relet", "", self.seed, SECONDS, LEASE)
        loaded = Loaded(settings, BASE, records, self.events.by_name, ledger)
        lost = sum(one.table == "attempts" and one.after["outcome"] == "lost" for one in records)
        return Result(
            self.seed, self.kernel.trace, len({one.job for one in records}), len(self.plan), lost,
            self.kernel.switches, check(loaded),
        )  # fmt: skip

    # The database

    def _install(self) -> None:
        real = self.database.real
        real.migrate()
        with real.begin() as transaction:
            for statement in sqlite_statements("relet_", "torture_now()"):
                transaction.raw.execute(statement)
        self._define_now()

    def _define_now(self) -> None:
        """The clock of the triggers, on every connection that writes."""
        real = self.database.real
        connections = [real._writer]
        with real._handler_pool.connection() as raw:
            connections.append(raw)
        for connection in connections:
            assert connection is not None
            connection.create_function("torture_now", 0, lambda: BASE + self.kernel.now)

    def _select(self, query: str) -> list[Any]:
        writer = self.database.real._writer
        assert writer is not None
        return writer.execute(query).fetchall()

    def _records(self) -> list[Record]:
        rows = self._select(
            'select seq, at, "table", event, job, before, after from relet_torture_records order by seq'
        )
        return [record_of(*row) for row in rows]

    def _ledger(self) -> dict[str, list[int]]:
        ledger: dict[str, list[int]] = {}
        for job, version in self._select("select job, version from relet_torture_ledger"):
            ledger.setdefault(job, []).append(version)
        return ledger

    def _is_idle(self) -> bool:
        if not self.is_enqueued or self.kernel.now < SECONDS:
            return False
        states = "'pending', 'queued', 'running', 'paused'"
        ((number,),) = self._select(f"select count(*) from relet_jobs where state in ({states})")
        return bool(number == 0)

    # The processes

    def _start_worker(self, number: int) -> Process:
        self._pids += 1
        process = Process(f"worker{number}", self._pids)
        system = SimSystem(self.kernel, process)
        store = SimStore(self.database, process, self.links[number])
        worker = f"sim:{process.pid}:{number}"
        settings = Settings(
            lease=LEASE, poll_interval=1.0, rest=0.0, keep_finished=86400.0, keep_payloads=None, keep_failed=86400.0,
            queues=None,
        )  # fmt: skip
        context = WorkerContext(
            worker=worker, tenant=None, settings=settings, tasks=self.app._tasks_by_any_name, schedules={},
            limits=self.app.limits, codecs=self.app.codecs, events=self.app.events, store=store, heartbeat_store=store,
            handler_store=store, leases=LeaseTable(worker, self.app.events), meter=Meter(system),
            guard=ReapGuard(system), timers=Timers(system), system=system, resources={},
        )  # fmt: skip
        quarantine = Quarantine(system)
        session = StoreSession(context, quarantine, 4, lambda run: self._begin(process, run))
        quarantine.producers = list(session.producers)

        def start() -> None:
            session.reach(system.event(), lambda store: None)
            session.start()

        self.kernel.spawn(process, "main", start)
        return process

    def _begin(self, process: Process, execution: Execution) -> None:
        self.kernel.spawn(process, "handler", lambda: self._handle(execution))

    def _handle(self, execution: Execution) -> None:
        following: Execution | None = execution
        while following is not None:
            if following.prepare is not None:
                following.prepare(following)
            outcome = call_plain(following.task, following.attempt, self.app.middlewares)
            following = following.slots.ended(following, outcome)

    def _client(self) -> Client:
        store = SimStore(self.database, Process("driver", 1), Link())
        return Client(self.app, lambda _: store, None, None)

    def _produce(self) -> None:
        client, mix, made = self._client(), Mix(self.app, self.kernel.random), 0
        while made < JOBS:
            drafts = mix.drafts()
            ids = [draft.id for draft in drafts]
            made += len(drafts)
            self.events.write("enqueue", phase="invoked", ids=ids)
            try:
                jobs = client.enqueue_many(drafts)
            except (InvalidInput, KeyTaken):
                self.events.write("enqueue", phase="failed", ids=ids)
            except StoreError:
                self.events.write("enqueue", phase="unknown", ids=ids)
            else:
                self.events.write("enqueue", phase="ok", ids=ids, stored=[job.id for job in jobs])
            self.kernel.sleep(self.kernel.random.random() * 2 * SECONDS / JOBS * 0.7)
        self.is_enqueued = True

    def _operate(self) -> None:
        """Cancel a job now and then."""
        client = self._client()
        while self.kernel.now < SECONDS:
            self.kernel.sleep(self.kernel.random.random() * 2.0)
            try:
                jobs = client.jobs(state=["pending", "queued", "running"], limit=20).jobs
                if not jobs:
                    continue
                job = self.kernel.random.choice(jobs)
                state = str(client.cancel(job).state)
            except (StoreError, InvalidTransition, JobNotFound):
                continue
            self.events.write("verb", phase="ok", verb="cancel", job=job.id, state=state)

    # The faults

    def _inject(self) -> None:
        for fault in self.plan:
            self.kernel.sleep(max(fault.at - self.kernel.now, 0.0))
            self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        now, process, link = self.kernel.now, self.processes[fault.worker], self.links[fault.worker]
        seconds = (0.2 + 2.5 * fault.size) * LEASE
        struck: list[int] = []
        match fault.kind:
            case "kill":
                struck = [process.pid]
                self._note(fault, struck, None)
                process.is_alive = False
                self.processes[fault.worker] = self._start_worker(fault.worker)
                return
            case "stop":
                struck, process.stopped_until = [process.pid], now + seconds
            case "cut":
                struck, link.cut_until = [process.pid], now + seconds
            case "delay":
                link.delay = 0.05 * fault.size
                seconds = 0.0
            case "outage":
                self.database.is_down_until = now + seconds
            case "lose notifications":
                self.database.notifications_lost_until = now + seconds
            case _:
                link.fates.append(fault.kind)
        self._note(fault, struck, seconds)

    def _note(self, fault: Fault, struck: list[int], seconds: float | None) -> None:
        self.events.write("fault", kind=fault.kind, workers=struck, seconds=seconds)


def simulate(seed: int, plan: list[Fault] | None = None) -> Result:
    return Simulation(seed, make_plan(seed) if plan is None else plan).run()
