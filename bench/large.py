"""A store of the size at which growth is measured: rows of every table, copied on the server from a few real ones.

At scale 1: ten million finished jobs of a week, ten million waiting ones, 100,000 targets. A thousand queues, whatever
the scale, because most costs that grow with queues do not grow with jobs.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from bench.environments import Unavailable
from bench.places import PostgresPlace
from bench.rows import Copier
from relet import App
from relet._core.job import Raised, Succeeded
from relet._core.worker import WorkerFacts
from relet._store.flows import claim, inspect, maintenance, promote, settle, stats, worker_reports
from relet._store.flows.claim_scope import Scope

QUEUES, TASKS, WORKERS, SCHEDULES = 1000, 10, 200, 200
WEEK = 7 * 86_400
AT_ONCE = 2_000_000  # copies in one statement
QUEUE = f"'queue-' || lpad((n % {QUEUES})::text, 4, '0')"
TASK = f"'task_' || n % {TASKS}"
OUTCOMES = (
    "succeeded", "failed", "waits", "waits.sum", "starts", "starts.sum", "runs", "runs.sum",
    "gauge.pending", "gauge.queued", "gauge.running", "gauge.paused_jobs", "gauge.failed", "gauge.oldest",
)  # fmt: skip
#: Kinds of jobs that a run changes, and what is true of each.
REPLACEABLE = {
    "failed": "state = 'failed'", "waiting": "state = 'queued' and target is null", "holder": "holds",
    "in line": "wait = 'target'", "paused": "state = 'paused'",
}  # fmt: skip
#: Seconds of a step of the statistics, and for how many seconds they are kept; a month of those kept for a year.
HISTORY = {60: 10_800, 600: 259_200, 3600: 691_200, 21_600: 2_592_000}


@dataclass(frozen=True)
class Sizes:
    """How many rows there are of each kind."""

    scale: float

    @property
    def finished(self) -> int:
        return int(10_000_000 * self.scale)

    @property
    def waiting(self) -> int:
        return int(10_000_000 * self.scale)

    @property
    def targets(self) -> int:
        return int(100_000 * self.scale)

    def part(self, share: float) -> int:
        return max(int(self.waiting * share), 1000)


def make_app(url: str) -> App:
    """An app with the tasks of the data set."""
    app = App(url)

    def pay(account: str, cents: int) -> str:
        return f"{account} paid {cents}"

    for number in range(TASKS):
        app.task(name=f"task_{number}", max_attempts=1)(pay)
    return app


def moment_of(number: int, seconds: float = WEEK) -> str:
    """SQL for the time of copy `n` of so many: spread evenly over the time until now, in order."""
    return f"now() - make_interval(secs => {seconds} * (1 - n::float8 / {number + 1}))"


class Filling:
    """Fills an empty store, or goes on with one that was filled before. `ids`: one job of each kind."""

    def __init__(self, place: PostgresPlace, app: App, scale: float, show: Callable[[str], None]) -> None:
        self.place, self.app, self.sizes, self._show = place, app, Sizes(scale), show
        self.ids: dict[str, str] = {}

    def run(self) -> None:
        if self.place.is_new:
            with self._without_syncs():
                self._fill()
        elif self.place.value("select to_regclass('public.filled')") is None:
            raise Unavailable(f"database {self.place.database} was not filled to its end: drop it")
        else:
            self.ids = self.place.value("select ids from public.filled")
            for kind, condition in REPLACEABLE.items():
                self._replace(kind, condition)
        self._run_parts(self._recent, self._settle_down)

    def _fill(self) -> None:
        self.execute("set maintenance_work_mem = '512MB'")
        self._run_parts(self._templates, self._finished, self._waiting, self._details, self._statistics, self._settings)
        self.place.db.execute("create table public.filled as select %s::json as ids", (json.dumps(self.ids),))

    def _replace(self, kind: str, condition: str) -> None:
        """Choose another job of this kind if an earlier run has changed or deleted this one."""
        query = "select id::text from relet.jobs where {} limit 1"
        if self.place.value(query.format(f"id = '{self.ids[kind]}' and {condition}")) is None:
            self.ids[kind] = self.place.value(query.format(condition)) or self.ids[kind]

    def _run_parts(self, *parts: Callable[[], None]) -> None:
        for part in parts:
            began = time.monotonic()
            part()
            self._show(f"{part.__name__.strip('_').replace('_', ' ')}: {time.monotonic() - began:.0f} s")

    @contextmanager
    def _without_syncs(self) -> Iterator[None]:
        """On a server that this run has started: it has no other data."""
        if self.place.server.pid is None:
            yield
            return
        for switch in ("set fsync = off", "set full_page_writes = off"):
            self.execute(f"alter system {switch}")
        self.execute("select pg_reload_conf()")
        try:
            yield
        finally:
            self.execute("alter system reset all")
            self.execute("select pg_reload_conf()")
            self.place.checkpoint()

    @contextmanager
    def _without_indexes(self, table: str) -> Iterator[None]:
        """Make the indexes after the load: sorted once, they take a fraction of the time."""
        found = self.place.db.execute(
            "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index "
            "where indrelid = %s::regclass and not indisprimary",
            (table,),
        ).fetchall()
        for name, _ in found:
            self.execute(f"drop index {name}")
        yield
        for _, definition in found:
            self.execute(definition)

    def execute(self, statement: str) -> None:
        self.place.db.execute(statement.encode())

    def _templates(self) -> None:
        """One job of each kind, made by the flows that make them in production."""
        store, task = self.app._store(), self.app.lookup("task_0")
        store.run(promote.promote)
        self.ids["finished"] = self._run_one(Succeeded('"acct-7 paid 500"'))
        self.ids["failed"] = self._run_one(Raised("ConnectionError: connection refused", None))
        self.ids["cancelled"] = self.app.client.cancel(task.enqueue("acct-7", 500)).id
        self.ids["paused"] = self.app.client.pause(task.enqueue("acct-7", 500)).id
        self.ids["running"] = task.enqueue("acct-7", 500).id
        self._claim()
        self.ids["pending"] = task.using(delay=7 * 86_400).enqueue("acct-7", 500).id
        for kind in ("holder", "in line"):
            self.ids[kind] = task.using(target="target-0").enqueue("acct-7", 500).id
            store.run(promote.promote)
        self.ids["unique"] = task.using(unique="key-0").enqueue("acct-7", 500).id
        self.ids["group"] = task.using(group="group-0").enqueue("acct-7", 500).id
        self.ids["waiting"] = task.enqueue("acct-7", 500).id
        self.ids["depended on"] = task.enqueue("acct-7", 500).id
        waits = task.using(depends_on=[self.ids["depended on"]])
        self.app.client.enqueue_many([waits.draft("acct-7", 500) for _ in range(200)])

    def _claim(self) -> list[Any]:
        claimed = self.app._store().run(
            claim.claim_plain, "worker-0", str(uuid.uuid4()), [Scope("default", 1)], list(self.app.tasks), want=1,
            lease=86_400.0,
        )  # fmt: skip
        return claimed.jobs

    def _run_one(self, outcome: Any) -> str:
        id = self.app.lookup("task_0").enqueue("acct-7", 500).id
        (job,) = self._claim()
        self.app._store().run(settle.settle, [(job.lease, outcome)], random.random)
        return id

    def _finished(self) -> None:
        first = "(now() - interval '8 days')::date"
        self.execute(f"select relet.make_partitions({first}, now()::date)")
        times = {"created_at": "moment", "run_at": "moment", "started_at": "moment", "finished_at": "moment"}
        spread = {"queue": QUEUE, "task": TASK, "worker": f"'worker-' || n % {WORKERS}"}
        number = self.sizes.finished
        self._copy("relet.finished", "finished", number * 49 // 50, {**times, **spread})
        self._copy("relet.finished", "cancelled", number // 50, {"queue": QUEUE, "task": TASK, **_without_start(times)})

    def _waiting(self) -> None:
        with self._without_indexes("relet.jobs"):
            self._live_jobs()

    def _live_jobs(self) -> None:
        sizes, copy = self.sizes, partial(self._copy, "relet.jobs")
        spread = {"queue": QUEUE, "task": TASK, "created_at": "moment"}
        due, part = {**spread, "run_at": "moment"}, sizes.part
        few = {"failed": 0.001, "paused": 0.001, "running": 0.0001, "unique": 0.01, "group": 0.05}
        more: dict[str, dict[str, str]] = {
            "failed": {"error": "'ConnectionError: host ' || n % 50 || ' refused'", "stopped_at": "moment"},
            "paused": {"stopped_at": "moment"},
            "running": {"started_at": "moment", "worker": f"'worker-' || n % {WORKERS}"},
            "unique": {"unique_key": "'key-' || n"},
            "group": {"group_key": "'group-' || n % 1000"},
        }
        for kind, share in few.items():
            copy(kind, part(share), {**due, **more[kind]})
        copy("pending", part(0.04), {**spread, "run_at": "moment + interval '8 days'"})
        copy("holder", sizes.targets, {**due, "target": "'target-' || n"})
        copy("in line", 2 * sizes.targets, {**due, "target": f"'target-' || (n % {sizes.targets}) + 1"})
        copy("waiting", max(sizes.waiting - self._live(), 0), due)

    def _live(self) -> int:
        return int(self.place.value("select count(*) from relet.jobs"))

    def _copy(self, table: str, kind: str, number: int, changes: dict[str, str]) -> None:
        copier, moment = Copier(self.place, table, self.ids[kind]), moment_of(number)
        for done in range(0, number, AT_ONCE):
            copier.multiply(min(AT_ONCE, number - done), changes, moment, first=done + 1)

    def _details(self) -> None:
        """Tags, unique keys, attempts, operations and the audit trail."""
        fifth = max(self.sizes.waiting // 50, 1000)
        self.execute(
            "insert into relet.tags (tag, job) select 'tag-' || row_number() over () % 1000, id from ("
            f"select id from relet.jobs where state = 'queued' limit {fifth}) chosen"
        )
        self.execute(
            "insert into relet.keys (key, job) select unique_key, id from relet.jobs where unique_key is not null "
            "on conflict do nothing"
        )
        self.execute(
            "insert into relet.attempts (job, version, attempt, worker, started_at, ended_at, outcome, error) "
            "select id, version, attempt, 'worker-0', stopped_at, stopped_at, 'failed', error "
            "from relet.jobs where state = 'failed' on conflict do nothing"
        )
        self.execute(
            "insert into relet.operations (id, verb, subject, at) select gen_random_uuid(), 'cancel', "
            f"gen_random_uuid()::text, now() from generate_series(1, {fifth}) n"
        )
        self.execute(
            "insert into relet.audit (id, at, who, what, subject) select gen_random_uuid(), now(), 'web:ann', "
            f"'cancel', gen_random_uuid()::text from generate_series(1, {fifth}) n"
        )

    def _workers(self) -> None:
        store, tasks = self.app._store(), tuple(sorted(self.app.tasks))
        for number in range(WORKERS):
            facts = WorkerFacts(f"worker-{number}", f"host-{number % 20}", number, None, 10, tasks, 30.0, "0.1.0")
            store.run(worker_reports.report, str(uuid.uuid4()), facts, 5, False, [])

    def _statistics(self) -> None:
        """Steps of a share of the queues; totals with full histograms."""
        for step in (600, 3600, 21_600):
            self._history(step, max(int(QUEUES * min(self.sizes.scale, 1)), 10))
        classes = f"generate_series(0, {QUEUES - 1}) n, generate_series(0, 15) bucket"
        self.execute(
            "insert into relet.stats (step, at, queue, name, bucket, peak, number) "
            f"select 0, 'epoch', {QUEUE}, name, bucket, false, 7 from {classes}, {_names('waits', 'starts', 'runs')}"
        )
        self._points(0, f"(select 'epoch'::timestamptz as at) e, generate_series(0, {QUEUES - 1}) n", QUEUE)

    def _history(self, step: int, queues: int) -> None:
        first = f"to_timestamp(floor(extract(epoch from now()) / {step}) * {step} - {HISTORY[step]})"
        moments = f"generate_series({first}, now(), interval '{step} seconds') at"
        self._points(step, f"{moments}, generate_series(0, {queues - 1}) n", QUEUE)
        self._points(-step, f"{moments}, generate_series(0, 0) n", "'*'")

    def _points(self, step: int, source: str, queue: str) -> None:
        self.execute(
            "insert into relet.stats (step, at, queue, name, bucket, peak, number) "
            f"select {step}, at, {queue}, name, case when name in ('waits', 'starts', 'runs') then 3 else 0 end, "
            f"name like 'gauge%', 7 from {source}, {_names(*OUTCOMES)} on conflict do nothing"
        )

    def _settings(self) -> None:
        """Schedules, and two queues with settings."""
        task = self.app.lookup("task_0")
        for number in range(SCHEDULES):
            self.app.client.schedules.put(f"schedule-{number}", task.draft("acct-7", 500), every=86_400)
        self.execute(
            "insert into relet.ticks (schedule, tick) select 'schedule-' || n, now() - h * interval '1 hour' "
            f"from generate_series(0, {SCHEDULES - 1}) n, generate_series(1, 168) h"
        )
        self.app.client.pause_queue("queue-0999")
        self.app.client.limit_queue("queue-0998", max_running=5)

    def _recent(self) -> None:
        """What workers store all the time: minutes of every queue, reports, and a sample of the queues."""
        store = self.app._store()
        self._history(60, QUEUES)
        self._workers()
        store.run(stats.save_sample, store.run(inspect.counted_queues))
        store.run(maintenance.record_pulse, grace=0.0)

    def _settle_down(self) -> None:
        self.execute("vacuum analyze")
        self.place.checkpoint()


def _names(*names: str) -> str:
    return f"unnest(array[{', '.join(map(repr, names))}]) name"


def _without_start(times: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in times.items() if name != "started_at"}


def retention() -> timedelta:
    """Finished jobs older than this are few, so that a step of pruning has some to delete, and not all."""
    return timedelta(seconds=WEEK - 3600)
