"""Every verb of the client and every statement of a worker, timed one by one in a store that is there already."""

from __future__ import annotations

import itertools
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from bench.bars import CALL_BOUND
from bench.large import QUEUES, TASKS, retention
from bench.machine import precise_cpu_seconds
from bench.places import PostgresPlace
from bench.statistic import percentile
from relet import App, new_id
from relet._core.job import Lease, Succeeded
from relet._store.flows import claim, claim_scope, inspect, lease, maintenance, promote, schedules, settle, stats
from relet._store.flows.claim_scope import Scope
from relet._store.store import Store
from relet._worker.claimer import MAX_QUEUES
from relet.errors import InvalidTransition, JobNotFound, ReletError

FAILED = 60_000.0  # milliseconds, in the place of the time of a call that failed
SCAN = 10_000  # as the API has it by default
Figures = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One call. `before` prepares it, untimed. `bar`: False for what no person and no job waits for.

    `most`: rounds at most; 1: it takes minutes, and is not tried before. `steps`: set for a verb that goes on as long
    as there are jobs. Then each of its transactions is timed, as nothing else has to wait for longer than for one.
    """

    name: str
    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    bar: bool = True
    most: int = 1_000_000
    steps: Transactions | None = None


class Transactions:
    """Times each transaction of a store."""

    def __init__(self, store: Store) -> None:
        self.times: list[float] = []  # milliseconds
        run = store.run

        def timed(flow: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return run(flow, *args, **kwargs)
            finally:
                self.times.append(1000 * (time.perf_counter() - began))

        store.run = timed  # type: ignore[method-assign]


def time_call(place: PostgresPlace, call: Call, rounds: int) -> Figures:
    """Milliseconds, and buffers that the server touched in one call on average."""
    times, cpu, buffers = list[float](), list[float](), 0.0
    failure = None
    if call.most > 1:
        call.before()
        failure = _failure_of(call)  # this first call also connects, imports and plans
    for _ in range(min(rounds, call.most) if failure is None else 1):
        call.before()
        place.db.execute("select pg_stat_statements_reset()")
        began, used = time.perf_counter(), CpuTime(place)
        if call.steps is not None:
            call.steps.times.clear()
        failure = _failure_of(call)
        elapsed = 1000 * (time.perf_counter() - began)
        times += [elapsed] if call.steps is None else call.steps.times
        cpu.append(used.milliseconds())
        buffers += touched(place)
    if failure is not None:
        print(f"  {call.name} failed: {failure}", file=sys.stderr)
        times = [FAILED]
    slow = percentile(times, 0.99)
    figures = {"p50": percentile(times, 0.5), "p99": slow, "max": max(times), "cpu": percentile(cpu, 0.5)}
    verdict = "under 100 ms" if slow <= CALL_BOUND else "OVER 100 ms"
    name = call.name if call.steps is None else f"{call.name}: each transaction"
    return {"system": name, **figures, "buffers": buffers / len(cpu), "note": verdict if call.bar else ""}


class CpuTime:
    """CPU time since this was made: of this program, and of the backends that serve it, if they run here. Unlike the
    time that a call takes, it does not depend on what else the machine does.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._server, self._program = self._backends(), time.process_time()

    def milliseconds(self) -> float:
        program = time.process_time() - self._program
        server = (seconds - self._server.get(pid, 0.0) for pid, seconds in self._backends().items())
        return 1000 * (program + sum(server))

    def _backends(self) -> dict[int, float]:
        if self._place.server.address[0] not in ("127.0.0.1", "localhost"):
            return {}
        query = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        return {pid: precise_cpu_seconds(pid) for (pid,) in self._place.db.execute(query.encode())}


def _failure_of(call: Call) -> str | None:
    """Make the call. Returns how it failed: a call that is refused, or takes too long, is far over the bar."""
    try:
        call.run()
    except (ReletError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def touched(place: PostgresPlace) -> float:
    """Buffers touched by all statements since the last reset."""
    return float(
        place.value(
            "select coalesce(sum(shared_blks_hit + shared_blks_read), 0) from pg_stat_statements s "
            "join pg_database d on d.oid = s.dbid and d.datname = current_database() "
            "where query !~ 'pg_stat_statements'"
        )
    )


class Jobs:
    """Ids of jobs that the calls use up."""

    def __init__(self, place: PostgresPlace, rounds: int) -> None:
        self._place, self._number = place, rounds + 2

    def where(self, condition: str, table: str = "jobs") -> Iterator[str]:
        """Different ids on each call, of jobs all over the table."""
        sample = "" if self._size(table) < 200_000 else "tablesample system (1)"
        query = f"select id::text from relet.{table} {sample} where {condition} limit {self._number}"
        found = [id for (id,) in self._place.db.execute(query.encode())]
        if not found:
            found = [id for (id,) in self._place.db.execute(query.replace(sample, "").encode())]
        random.shuffle(found)
        return itertools.cycle(found)

    def _size(self, table: str) -> int:
        return int(
            self._place.value(f"select sum(reltuples) from pg_class where relname like '{table}%' and relkind = 'r'")
        )


def all_calls(app: App, place: PostgresPlace, ids: dict[str, str], rounds: int) -> list[Call]:
    return [*client_calls(app, place, ids, rounds), *WorkerCalls(app, place).calls()]


def client_calls(app: App, place: PostgresPlace, ids: dict[str, str], rounds: int) -> list[Call]:
    """Every method of the client."""
    jobs, steps = Jobs(place, rounds), Transactions(app._store())
    return [
        *_reads_of_one(app, jobs, ids), *_lists(app, ids), *_overviews(app, steps), *_enqueues(app), *_verbs(app, jobs),
        *_settings(app), *_of_many(app, steps),
    ]  # fmt: skip


def _enqueues(app: App) -> list[Call]:
    task, client = app.lookup("task_1").using(queue="queue-0001"), app.client
    numbers = itertools.count(1_000_000_000)
    drafts = [app.lookup(f"task_{n % TASKS}").using(queue=f"queue-{n:04}") for n in range(100)]
    return [
        Call("enqueue", lambda: task.enqueue("acct-7", 500)),
        Call("enqueue, target", lambda: app.lookup("task_1").using(target="target-7").enqueue("acct-7", 500)),
        Call("enqueue, unique", lambda: app.lookup("task_1").using(unique=f"k{next(numbers)}").enqueue("acct-7", 500)),
        Call("enqueue, unique, taken", lambda: app.lookup("task_1").using(unique="key-7").enqueue("acct-7", 500)),
        Call("enqueue_many of 100", lambda: client.enqueue_many([one.draft("acct-7", 500) for one in drafts])),
    ]


def _reads_of_one(app: App, jobs: Jobs, ids: dict[str, str]) -> list[Call]:
    client, queued, over = app.client, jobs.where("state = 'queued'"), jobs.where("true", "finished")
    in_line, parent = jobs.where("wait = 'target'"), ids["depended on"]
    return [
        Call("get, waiting", lambda: client.get(next(queued))),
        Call("get, finished", lambda: client.get(next(over))),
        Call("get, no such job", lambda: client.get(new_id())),
        Call("describe", lambda: client.describe(next(queued))),
        Call("describe, 200 dependents", lambda: client.describe(parent)),
        Call("explain, queued", lambda: client.explain(next(queued))),
        Call("explain, in line", lambda: client.explain(next(in_line))),
        Call("attempts", lambda: client.attempts(next(over))),
        Call("steps", lambda: client.steps(next(queued))),
        Call("chain", lambda: client.chain(next(queued))),
        Call("dependencies", lambda: client.dependencies(next(queued))),
        Call("dependents", lambda: client.dependents(parent)),
        Call("result", lambda: client.result(next(over), timeout=5)),
        Call("wait_many of 100", lambda: client.wait_many(list(itertools.islice(over, 100)), timeout=5)),
    ]


def filters() -> list[dict[str, Any]]:
    """One value for each filter that some jobs match, and one that none matches."""
    now = datetime.now(UTC)
    states = ("pending", "queued", "running", "paused", "failed", "succeeded", "cancelled")
    some = {
        "queue": "queue-0007", "task": "task_7", "target": "target-7", "group": "group-7", "unique": "key-7",
        "tag": "tag-7", "payload": '{"account": "acct-7"}', "worker": "worker-7", "error": "ConnectionError",
        "created_from": now - timedelta(hours=1), "created_to": now - timedelta(days=3),
    }  # fmt: skip
    none = {"queue": "none", "task": "none", "target": "none", "tag": "none", "payload": '{"no": 1}', "error": "none"}
    return [
        *({"state": state} for state in states),
        *({name: value} for name, value in some.items()),
        *({name: value} for name, value in none.items()),
    ]


def _lists(app: App, ids: dict[str, str]) -> list[Call]:
    client = app.client
    calls = [
        Call("jobs", lambda: client.jobs()),
        Call("jobs, cursor", lambda: client.jobs(cursor=ids["finished"], scan=SCAN)),
        Call("count of all, no limit", lambda: client.count(), bar=False, most=3),
    ]
    for which in filters():
        name = ", ".join(_described(name, value) for name, value in which.items())
        calls.append(Call(f"jobs, {name}", partial(client.jobs, scan=SCAN, **which)))
        calls.append(Call(f"count to 10,001, {name}", partial(client.count, limit=10_001, scan=SCAN, **which)))
    return calls


def _described(name: str, value: object) -> str:
    return f"{name}={'a moment' if isinstance(value, datetime) else value}"


def _overviews(app: App, steps: Transactions) -> list[Call]:
    client, now = app.client, datetime.now(UTC)
    ago = {"1 h": timedelta(hours=1), "24 h": timedelta(hours=24), "7 d": timedelta(days=7), "30 d": timedelta(days=30)}
    calls = [
        Call("queues", client.queues),
        Call("targets", lambda: client.targets()),
        Call("target", lambda: client.target("target-7")),
        Call("workers", client.workers),
        Call("failures", lambda: client.failures()),
        Call("totals", client.totals, steps=steps),
        Call("audit", lambda: client.audit()),
        Call("schedules", client.schedules.all),
        Call("schedules, get", lambda: client.schedules.get("schedule-7")),
        Call("schedules, ticks", lambda: client.schedules.ticks("schedule-7")),
        Call("doctor", client.doctor, most=20),
        Call("migrate, nothing to do", client.migrate),
        Call("tenants", client.tenants),
    ]
    for name, span in ago.items():
        for queue, words in (("*", "all queues together"), ("queue-0007", "one queue")):
            calls.append(Call(f"stats of {name}, {words}", partial(client.stats, since=now - span, queue=queue)))
    every = partial(client.stats, since=now - timedelta(minutes=5))
    return [*calls, Call("stats of 5 min, each of 1,000 queues", every, most=10, steps=steps)]


def _verbs(app: App, jobs: Jobs) -> list[Call]:
    client, queued = app.client, jobs.where("state = 'queued' and target is null and group_key is null")
    due, over = jobs.where("wait = 'time'"), jobs.where("true", "finished")
    paused, failed = jobs.where("state = 'paused'"), jobs.where("state = 'failed'")
    held, deleted = jobs.where("holds and state = 'queued'"), jobs.where("true", "finished")
    running = jobs.where("state = 'running'")
    actor = client.acting_as("web:ann")
    return [
        Call("cancel", lambda: _unless_refused(lambda: client.cancel(next(queued)))),
        Call("cancel, at a target", lambda: _unless_refused(lambda: client.cancel(next(held)))),
        Call("cancel, running", lambda: _unless_refused(lambda: client.cancel(next(running)))),
        Call("pause", lambda: _unless_refused(lambda: client.pause(next(queued)))),
        Call("pause, audited", lambda: _unless_refused(lambda: actor.pause(next(queued)))),
        Call("resume, paused", lambda: _unless_refused(lambda: client.resume(next(paused)))),
        Call("resume, failed", lambda: _unless_refused(lambda: client.resume(next(failed)))),
        Call("run_now", lambda: _unless_refused(lambda: client.run_now(next(due)))),
        Call("complete", lambda: _unless_refused(lambda: client.complete(next(queued)))),
        Call("delete, waiting", lambda: _unless_refused(lambda: client.delete(next(queued)))),
        Call("delete, finished", lambda: _unless_refused(lambda: client.delete(next(deleted)))),
        Call("delete, chain", lambda: _unless_refused(lambda: client.delete(next(deleted), chain=True))),
        Call("rerun", lambda: client.rerun(next(over))),
        Call("signal", lambda: _unless_refused(lambda: client.signal(next(queued), "go"))),
    ]


def _unless_refused(verb: Callable[[], object]) -> None:
    """A job that an earlier call has changed may refuse the verb, which costs as much as doing it."""
    with suppress(InvalidTransition, JobNotFound):
        verb()


def _settings(app: App) -> list[Call]:
    """Verbs of queues and schedules."""
    client, schedules, numbers = app.client, app.client.schedules, itertools.count()
    task, new = app.lookup("task_2").using(queue="queue-0002"), partial(next, itertools.count())

    def queue() -> str:
        return f"queue-{next(numbers) % QUEUES:04}"

    def put(name: str) -> None:
        schedules.put(name, task.draft("a", new()), every=86_400)

    return [
        Call("pause_queue", lambda: client.pause_queue(queue())),
        Call("resume_queue", lambda: client.resume_queue(queue())),
        Call("limit_queue", lambda: client.limit_queue("queue-0997", max_running=next(numbers) + 1)),
        Call("schedules, put", lambda: put("schedule-7")),
        Call("schedules, remove", lambda: schedules.remove("new"), lambda: put("new")),
        Call("schedules, pause", lambda: schedules.pause("schedule-7")),
        Call("schedules, resume", lambda: schedules.resume("schedule-7")),
        Call("schedules, run_now", lambda: schedules.run_now("schedule-7")),
    ]


def _of_many(app: App, steps: Transactions) -> list[Call]:
    """Verbs that go on as long as there are jobs for them, one transaction after the other."""
    client, numbers = app.client, itertools.count()
    task = app.lookup("task_2")
    marked = {"tag": task.using(tags=["x"]), "target": task.using(target="x"), "group": task.using(group="x")}

    def enqueue(kind: str) -> None:
        client.enqueue_many([marked[kind].draft("a", 1) for _ in range(100)])

    def pause(number: int) -> None:
        client.bulk("pause", limit=number, queue=f"queue-{next(numbers) % QUEUES:04}")

    month = 30 * 86_400.0
    return [
        Call("bulk, pause 1,000 of a queue", lambda: pause(1000), most=20, steps=steps),
        Call("erase, 100 by tag", lambda: client.erase(tag="x"), lambda: enqueue("tag"), steps=steps),
        Call("erase, 100 by target", lambda: client.erase(target="x"), lambda: enqueue("target"), most=1, steps=steps),
        Call("erase, 100 by group", lambda: client.erase(group="x"), lambda: enqueue("group"), most=1, steps=steps),
        Call("prune, nothing old", lambda: client.prune(keep_finished=month, keep_failed=month), steps=steps, most=20),
    ]


class WorkerCalls:
    """The statements of a worker that serves all queues."""

    def __init__(self, app: App, place: PostgresPlace) -> None:
        self._app, self._place, self._store = app, place, app._store()
        self._queues = [f"queue-{number:04}" for number in range(QUEUES - 3)]
        self._leases: list[list[Lease]] = []
        self._number = itertools.count()

    def calls(self) -> list[Call]:
        run, tasks = self._store.run, list(self._app.tasks)

        def sample() -> list[str]:
            return random.sample(self._queues, MAX_QUEUES)

        return [
            Call("worker: claim of 10", lambda: self.claim(10)),
            Call("worker: claim of 100", lambda: self.claim(100)),
            Call("worker: renew 100", lambda: self.renew(self._leases[-1]), lambda: self.claim(100)),
            Call("worker: requests of 100", lambda: run(lease.pending_requests, self._leases[-1])),
            Call("worker: settle 100", lambda: self.settle(self._leases.pop())),
            Call("worker: flags of 100 queues", lambda: run(claim_scope.flags, sample(), tasks)),
            Call("worker: names of queues", lambda: run(inspect.queue_names)),
            Call("worker: tasks of 100 queues", lambda: run(inspect.queued_tasks, sample())),
            Call("worker: look for work", lambda: run(maintenance.work_ahead, tasks)),
            Call("worker: pulse", lambda: run(maintenance.record_pulse, grace=0.0)),
            Call("worker: reap, nothing expired", lambda: run(lease.reap, random.random), self._pulse),
            Call("worker: reap 100", lambda: run(lease.reap, random.random), self._expire, most=20),
            Call("worker: promote, nothing due", lambda: run(promote.promote)),
            Call("worker: promote 100 due", lambda: run(promote.promote), lambda: self._make_due(100)),
            Call("worker: promote 1,000 due", lambda: run(promote.promote), lambda: self._make_due(1000), most=20),
            Call("worker: promote at 100 targets", lambda: run(promote.promote), lambda: self._nudge(100)),
            Call("worker: promote at 1,000 targets", lambda: run(promote.promote), lambda: self._nudge(1000), most=20),
            Call("worker: tick", lambda: run(schedules.tick, tasks, new_id)),
            Call("worker: prune 1,000", lambda: self._prune(retention().total_seconds())),
            Call("worker: prune, nothing old", lambda: self._prune(30 * 86_400.0)),
            Call("worker: check 1,000 keys", lambda: run(maintenance.prune_stale_keys)),
            Call("worker: count of all jobs by queue", lambda: run(inspect.counted_queues), bar=False, most=5),
            Call("worker: store that count", self._sample, bar=False, most=5),
            Call("worker: roll up", lambda: run(stats.roll_up), bar=False, most=2),
        ]  # fmt: skip

    def claim(self, want: int, seconds: float = 86_400.0) -> None:
        scopes = [Scope(queue, want) for queue in random.sample(self._queues, MAX_QUEUES)]
        which = (f"bench-{next(self._number)}", str(uuid.uuid4()), scopes, list(self._app.tasks))
        found = self._store.run(claim.claim_plain, *which, want=want, lease=seconds)
        if len(found.jobs) != want:
            raise RuntimeError(f"a claim of {want} jobs found {len(found.jobs)}")
        if want == 100:
            self._leases.append(sorted(job.lease for job in found.jobs))

    def renew(self, leases: Sequence[Lease]) -> None:
        worker = self._place.value(f"select worker from relet.jobs where id = '{leases[0].id}'")
        found = self._store.run(lease.renew, worker, leases, lease=86_400.0)
        if len(found.renewed) != len(leases):
            raise RuntimeError(f"{len(found.renewed)} of {len(leases)} leases were renewed")

    def settle(self, leases: Sequence[Lease]) -> None:
        self._store.run(settle.settle, [(one, Succeeded('"paid"')) for one in leases], random.random)

    def _pulse(self) -> None:
        self._store.run(maintenance.record_pulse, grace=0.0)

    def _expire(self) -> None:
        self.claim(100, 0.1)
        self._leases.pop()
        time.sleep(0.2)
        self._pulse()

    def _make_due(self, number: int) -> None:
        self._place.db.execute(
            "update relet.jobs set run_at = now() where id = any(array(select id from relet.jobs where wait = 'time' "
            f"and run_at > now() order by run_at limit {number}))".encode()
        )

    def _nudge(self, number: int) -> None:
        """End the holders of some targets, for which other jobs wait."""
        self._place.db.execute(
            "with ended as (delete from relet.jobs where id = any(array(select id from relet.jobs where holds and "
            f"state = 'queued' limit {number})) returning target) "
            "insert into relet.nudges (kind, key) select 'target', target from ended".encode()
        )

    def _prune(self, keep: float) -> None:
        self._store.run(maintenance.prune, keep_finished=keep, keep_failed=30 * 86_400.0)

    def _sample(self) -> None:
        self._store.run(stats.save_sample, self._store.run(inspect.counted_queues))
