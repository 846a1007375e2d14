"""One seed: the plan of faults that it makes, the run, and the findings of the checker."""

from __future__ import annotations

import math
import random
import time
from bisect import bisect
from typing import Any

from msgspec import Struct, structs

from relet._client.client import Client
from relet._torture.check import check
from relet._torture.facts import BY_OPERATOR, WAITS_FOR_SIGNALS
from relet._torture.jobs import Jobs, Violation
from relet._torture.load import Event, Loaded, Record, record_of
from relet._torture.plan import Fault
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
from relet.errors import (
    HasDependents,
    InvalidInput,
    InvalidTransition,
    JobNotFound,
    KeyTaken,
    ScheduleNotFound,
    StoreError,
)
from tests.simulation.database import Database, Link, SQLiteDatabase
from tests.simulation.events import Events
from tests.simulation.kernel import Kernel, Process
from tests.simulation.lockstep import LockstepDatabase, Schema, without_watchdog
from tests.simulation.shop import LEASE, Mix, make_app
from tests.simulation.system import BASE, SimSystem, simulated

WORKERS = 3
JOBS = 40
FAULTS = 30
DAY = 86_400.0
SECONDS = 5.5  # of virtual time in which faults strike
HEALS_WITHIN = 60.0
CLIENT_SHARE = 0.3  # of the faults of single transactions strike the producer and the operator
VERBS = ("cancel", "pause", "resume", "run_now", "signal", "complete", "delete")
KINDS = (
    "kill", "kill", "stop", "stop", "cut", "lose request", "lose answer", "lose answer", "late", "reject", "delay",
    "outage", "lose notifications", "clock", "late outcome",
)  # fmt: skip
CLOCK_STEADY = 1.0  # seconds between two steps of the clock; workers notice a step by the pulse, every 0.7 s
KINDS_AT_ONCE = 6  # a seed has some of them, so that each strikes more often


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
    kinds = chance.sample(KINDS, KINDS_AT_ONCE)
    faults = [
        Fault(chance.random() * SECONDS, chance.choice(kinds), chance.randrange(WORKERS), chance.random())
        for _ in range(FAULTS)
    ]
    return _space_clock_steps(sorted(faults, key=lambda fault: fault.at))


def _space_clock_steps(faults: list[Fault]) -> list[Fault]:
    """Replace steps of the clock that follow another one too soon: a clock that goes back and forth again between two
    beats of the pulse can cost the leases that were taken meanwhile."""
    spaced: list[Fault] = []
    stepped_at = -CLOCK_STEADY
    for fault in faults:
        if fault.kind == "clock" and fault.at - stepped_at < CLOCK_STEADY:
            fault = structs.replace(fault, kind="reject")
        elif fault.kind == "clock":
            stepped_at = fault.at
        spaced.append(fault)
    return spaced


class Simulation:
    """`schema`: one of PostgreSQL; None: SQLite in memory."""

    def __init__(self, seed: int, plan: list[Fault], schema: Schema | None = None) -> None:
        self.seed, self.plan = seed, plan
        self.kernel = Kernel(seed)
        self.events = Events(self.kernel)
        self.app = make_app(
            self.kernel, self.events, announces=bool(seed % 2), limits=seed % 3 > 0, partly=seed % 4 == 1
        )  # fmt: skip
        self.url = "sqlite:" if schema is None else "postgresql:"
        self.base = BASE if schema is None else time.time() // DAY * DAY  # there are partitions for today
        self.offsets = [(-1.0, 0.0)]  # of the clock of the database, and since when
        self.database: Database = (
            SQLiteDatabase(self.kernel) if schema is None else LockstepDatabase(self.kernel, schema)
        )
        self.database.real.clock = lambda: self.base + self.kernel.now + self.offsets[-1][1]
        self.links = [Link() for _ in range(WORKERS)]
        self.client_link = Link()
        self.processes: list[Process] = []
        self._pids = 100
        self.calls = 0
        self.is_enqueued = False

    def run(self) -> Result:
        with simulated(self.kernel, self.base), without_watchdog():
            try:
                self.database.install()
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
                self.database.end_sessions()
                self.kernel.close()
                self.database.close()
        settings = TortureSettings("", self.url, "relet", "", self.seed, SECONDS, LEASE)
        loaded = Loaded(
            settings, self.base, records, self.events.by_name, ledger,
            clock_was_moved=len(self.offsets) > 1, is_virtual=True,
        )  # fmt: skip
        lost = sum(one.table == "attempts" and one.after["outcome"] == "lost" for one in records)
        crashes = [Violation("crash", "", error) for error in self.kernel.errors]
        for lease in self.database.rejected:
            about = {"job": lease.id, "token": lease.token}
            self.events.by_name["rejected"].append(Event(0.0, "database", 0, "rejected", about))
        return Result(
            self.seed, self.kernel.trace, len({one.job for one in records}), len(self.plan), lost,
            self.kernel.switches, crashes + check(Jobs(loaded)),
        )  # fmt: skip

    # The database

    def _records(self) -> list[Record]:
        columns = 'seq, at, "table", event, job, cast(before as text), cast(after as text)'
        rows = self.database.select(f"select {columns} from relet_torture_records order by seq")
        return [self._with_moment(record_of(*row)) for row in rows]

    def _with_moment(self, record: Record) -> Record:
        """Adds the virtual time, and the time by the clock of the database."""
        moment = self.database.moment_of(record.at)
        offset = self.offsets[bisect(self.offsets, (moment, math.inf)) - 1][1]
        return structs.replace(record, at=self.base + moment + offset, moment=moment)

    def _ledger(self) -> dict[str, list[int]]:
        ledger: dict[str, list[int]] = {}
        for job, version in self.database.select("select job, version from relet_torture_ledger"):
            ledger.setdefault(job, []).append(version)
        return ledger

    def _is_idle(self) -> bool:
        if not self.is_enqueued or self.kernel.now < SECONDS or not self.database.may_have_changed:
            return False
        self.database.may_have_changed = False
        states = "'pending', 'queued', 'running', 'paused'"
        ((number,),) = self.database.select(f"select count(*) from relet_jobs where state in ({states})")
        return bool(number == 0)

    # The processes

    def _start_worker(self, number: int) -> Process:
        self._pids += 1
        process = Process(f"worker{number}", self._pids)
        self.events.write("started", process=process.pid, program=process.name)
        system = SimSystem(self.kernel, process, self.base)
        store = self.database.store(process, self.links[number])
        worker = f"sim:{process.pid}:{number}"
        settings = Settings(
            lease=LEASE, poll_interval=1.0, rest=0.0, keep_finished=86400.0, keep_payloads=None, keep_failed=86400.0,
            queues=None,
        )  # fmt: skip
        context = WorkerContext(
            worker=worker, tenant=None, settings=settings, tasks=self.app._tasks_by_any_name,
            schedules=self.app.schedules, limits=self.app.limits, codecs=self.app.codecs,
            events=self.app.events, store=store, heartbeat_store=store, handler_store=store,
            leases=LeaseTable(worker, self.app.events), meter=Meter(system),
            guard=ReapGuard(system), timers=Timers(system), system=system, resources={},
        )  # fmt: skip
        quarantine = Quarantine(system)
        session = StoreSession(context, quarantine, 4, lambda run: self._begin(process, run))
        quarantine.producers = list(session.producers)

        def start() -> None:
            session.reach(system.event(), lambda store: None, lambda: None)
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
        store = self.database.store(Process("driver", 1), self.client_link)
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
        """Steer a job now and then. In the end, resume and signal jobs that wait for an operator."""
        client, chance = self._client(), self.kernel.random
        while True:
            self.kernel.sleep(chance.random() * 2.0)
            is_over = self.kernel.now > SECONDS
            try:
                if is_over:
                    self._let_everything_run(client)
                elif jobs := client.jobs(state=["pending", "queued", "running", "paused"], limit=20).jobs:
                    self._steer(client, chance.choice(VERBS), chance.choice(jobs).id)
            except (StoreError, InvalidTransition, JobNotFound, HasDependents, ScheduleNotFound):
                continue

    def _let_everything_run(self, client: Client) -> None:
        client.schedules.pause("tick")
        for job in client.jobs(task=WAITS_FOR_SIGNALS, state=["pending", "paused"], limit=100).jobs:
            client.signal(job, "go", 1)
        client.bulk("resume", state="paused")

    def _steer(self, client: Client, verb: str, job: str) -> None:
        self.calls += 1
        about: dict[str, Any] = {"call": self.calls, "verb": verb, "job": job}
        self.events.write("verb", phase="invoked", **about)
        try:
            state = self._do(client, verb, job)
        except (InvalidTransition, JobNotFound, HasDependents):
            self.events.write("verb", phase="failed", **about)
        except StoreError:
            self.events.write("verb", phase="unknown", **about)
        else:
            self.events.write("verb", phase="ok", state=state, **about)

    def _do(self, client: Client, verb: str, job: str) -> str | None:
        if verb == "signal":
            client.signal(job, "go", 1)
        elif verb == "delete":
            client.delete(job)
        elif verb == "complete":
            return str(client.complete(job, BY_OPERATOR).state)
        else:
            return str(getattr(client, verb)(job).state)
        return None

    # The faults

    def _inject(self) -> None:
        for fault in self.plan:
            self.kernel.sleep(max(fault.at - self.kernel.now, 0.0))
            self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        now, process, link = self.kernel.now, self.processes[fault.worker], self.links[fault.worker]
        seconds = (0.2 + 2.5 * fault.size) * LEASE
        match fault.kind:
            case "kill":
                self._note(fault, None, struck=process, stopped=process)
                process.is_alive = False
                self.database.forget(process)
                self.processes[fault.worker] = self._start_worker(fault.worker)
                if link.cut_until > now:  # the next process has the same connection
                    after = self.processes[fault.worker]
                    self._note(fault, link.cut_until - now, struck=after, stopped=after)
            case "stop":
                process.stopped_until = max(process.stopped_until, now + seconds)
                self._note(fault, seconds, struck=process, stopped=process)
            case "cut":
                link.cut_until = max(link.cut_until, now + seconds)
                self._note(fault, seconds, struck=process, stopped=process)
            case "delay":
                link.delay = 0.05 * fault.size
                self._note(fault, LEASE, disturbed=process)
            case "outage":
                self.database.is_down_until = max(self.database.is_down_until, now + seconds)
                self._note(fault, seconds)
                self.events.write("fault over", at=now + seconds, kind=fault.kind, began=now)
            case "lose notifications":
                self.database.notifications_lost_until = now + seconds
                self._note(fault, seconds)
            case "clock":
                now = self.kernel.now = now + 1e-6  # events recorded until now have an earlier time
                self.offsets.append((now, self.offsets[-1][1] + (fault.size - 0.5) * 8 * LEASE))
                self._note(fault, 0.0)
            case "reject":
                link.rejects.append(fault.size < 0.5)
                self._note(fault, 0.0)
            case "late outcome":
                link.fates_of_outcomes.append("late")
                if fault.size < 0.7:  # the repeat is rejected: the late one must find that the attempt has ended
                    link.rejects.append(fault.size < 0.4)
                self._note(fault, 0.0, disturbed=process)
            case _ if fault.size < CLIENT_SHARE and self.database.can_be_late(fault.kind):
                self.client_link.fates.append(fault.kind)
                self._note(fault, 0.0)
            case _:
                link.fates.append(fault.kind)
                self._note(fault, 0.0, disturbed=process)

    def _note(
        self,
        fault: Fault,
        seconds: float | None,
        *,
        struck: Process | None = None,
        stopped: Process | None = None,
        disturbed: Process | None = None,
    ) -> None:
        """As `relet._torture.faults` records faults."""
        self.events.write(
            "fault", kind=fault.kind, seconds=seconds, workers=[struck.pid] if struck else [],
            stopped=[stopped.pid] if stopped else [], disturbed=disturbed.pid if disturbed else None,
        )  # fmt: skip


def simulate(seed: int, plan: list[Fault] | None = None, schema: Schema | None = None) -> Result:
    return Simulation(seed, make_plan(seed) if plan is None else plan, schema).run()
