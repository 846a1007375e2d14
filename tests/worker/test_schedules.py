"""Schedules with real workers: one job for each tick, however many look at the clock; changes are followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from statistics import median

import pytest

from relet import App, Attempt, InvalidInput, State
from relet._worker import Worker
from relet._worker.maintenance import Maintenance
from tests.databases import Database
from tests.worker import fault_tasks
from tests.worker.processes import WorkerProcesses, wait_until
from tests.worker.working import connect, over, prefix, until, working

EVERY = 0.2


def check_ticks(app: App, name: str, every: float) -> int:
    """Each tick has one job, no two share one, and none is left out. Returns how many there are."""
    ticks = app.client.schedules.ticks(name, limit=1000)[::-1]
    assert len({one.job for one in ticks}) == len(ticks)
    assert all(one.job is not None for one in ticks)
    gaps = [b.at.timestamp() - a.at.timestamp() for a, b in pairwise(ticks)]
    assert gaps == pytest.approx([every] * len(gaps), abs=1e-5)
    return len(ticks)


@contextmanager
def reads_of(app: App) -> Iterator[list[tuple[float, float]]]:
    """When a thread that only sleeps and reads has looked at the store, every 20 ms where the machine lets it."""
    reads, stop = [], threading.Event()

    def read() -> None:
        while not stop.wait(0.02):
            begin = time.time()
            app.client.schedules.get("beat")
            reads.append((begin, time.time()))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield reads
    finally:
        stop.set()
        thread.join()


def live_jobs_and_cursors(database: Database, app: App, workers: list[Worker]) -> str:
    """Which jobs are left, where they stand, and where each worker looks for them."""
    columns = "id, state, wait, suspect, rank, seq, attempt, version, worker, expires_at"
    with closing(connect(database, app)) as connection:
        jobs = connection.execute(f"select {columns} from {prefix(database, app)}jobs order by seq").fetchall()
    producers = [
        f"{worker.id}: {one.slots.running} running, {one.slots.waiting} waiting, {one._claimer.cursor._queues}"
        for worker in workers
        for session in worker._sessions
        for one in session.producers
    ]
    return "\n".join([f"live jobs ({columns}):", *map(str, jobs), f"producers at {time.monotonic():.2f}:", *producers])


def test_one_job_for_each_tick_with_several_workers_and_none_left_out(two_databases: Database) -> None:
    apps = [two_databases.app() for _ in range(4)]
    ran: list[str] = []
    workers: list[Worker] = []

    def beat(attempt: Attempt) -> None:
        ran.append(attempt.job.id)

    with ExitStack() as stack:
        for app in apps:
            stack.callback(app.close)
            app.schedule(every=EVERY, missed="all")(app.task(name="beat")(beat))
            # A lease so long that none is lost to a loaded machine: then a job would run twice, and rightly so.
            workers.append(stack.enter_context(working(app, concurrency=2, lease=30.0)))
        reads = stack.enter_context(reads_of(apps[0]))
        try:
            until(lambda: len(ran) >= 12)
            apps[0].client.schedules.pause("beat")
            until(lambda: apps[0].client.count(state=["queued", "pending", "running"]) == 0)
        except AssertionError as error:
            raise AssertionError(live_jobs_and_cursors(two_databases, apps[0], workers)) from error
        number = check_ticks(apps[0], "beat", EVERY)
        assert len(ran) == len(set(ran)) == number
        jobs = [job for job in (apps[0].client.get(id) for id in ran[1:]) if job]
        late = [(job.created_at - job.run_at).total_seconds() for job in jobs]
        assert all(seconds >= 0 for seconds in late), "never early"
        # A machine that stands still holds up every tick of that time. Five round trips lie between a tick and its job.
        now = time.time()
        until(lambda: reads[-1][0] > now)
        ticks = [job.run_at.timestamp() for job in jobs]
        machine = [next(end for begin, end in reads if begin >= at) - at for at in ticks]
        beyond = [seconds - 5 * lost for seconds, lost in zip(late, machine, strict=True)]
        assert median(beyond) < 0.1, f"on time: {late}, where the machine is late by {machine}"


@pytest.mark.long("sqlite")
def test_one_job_for_each_tick_with_four_worker_processes(processes: WorkerProcesses) -> None:
    processes.client.schedules.put("beat", fault_tasks.quick.draft("tick"), every=EVERY, missed="all")
    patient = ("-c", "1", "--lease", "3")  # so that no lease is lost to a loaded machine
    workers = [processes.worker(*patient) for _ in range(4)]
    wait_until(lambda: len(processes.notes("start")) >= 10, "ticks")
    workers[0].kill()
    number = len(processes.notes("start"))
    wait_until(lambda: len(processes.notes("start")) >= number + 5, "ticks after a death")
    processes.client.schedules.pause("beat")
    wait_until(lambda: processes.client.count(state=["queued", "pending", "running"]) == 0, "the end")
    ticks = check_ticks(processes.app, "beat", EVERY)
    starts = [note.pid for note in processes.notes("start")]
    assert ticks <= len(starts)
    others = [pid for pid in starts if pid != workers[0].pid]
    assert len(others) <= ticks, "what the dead worker had not settled may run again, and nothing else"


@pytest.mark.long
def test_ticks_that_are_skipped_do_not_make_the_next_late(two_apps: App) -> None:
    """Nothing is enqueued for them, so that nothing wakes upkeep but the clock."""
    app = two_apps

    @app.schedule(every=0.1, overlap="skip", missed="once")
    @app.task
    def slow() -> None:
        time.sleep(1.0)

    with working(app):
        until(lambda: len(app.client.schedules.ticks("slow")) >= 12)
        found = app.client.schedules.ticks("slow")[::-1][:12]
    # A worker that is late has one tick in place of several: that may happen now and then, but is not the rule.
    gaps = [later.at.timestamp() - earlier.at.timestamp() for earlier, later in pairwise(found)]
    assert median(gaps) == pytest.approx(0.1, abs=0.01)
    assert sum(one.job is None for one in found) >= 8


def test_a_schedule_is_added_changed_run_paused_and_removed_while_workers_run(two_apps: App) -> None:
    app, ran = two_apps, []

    @app.task
    def note(what: str) -> None:
        ran.append(what)

    def soon(what: str, number: int = 1) -> None:
        begin = time.monotonic()
        until(lambda: ran.count(what) >= number)
        assert time.monotonic() - begin < 2.0

    with working(app, poll_interval=5.0):
        assert app.client.schedules.all() == []
        app.client.schedules.put("s", note.draft("first"), every=0.1)
        soon("first", 3)
        app.client.schedules.put("s", note.draft("second"), every=0.1)
        soon("second", 3)
        app.client.schedules.put("s", note.draft("never"), "0 0 29 2 *")
        job = app.client.schedules.run_now("s")
        over(app, job)
        assert ran.count("never") == 1
        app.client.schedules.put("s", note.draft("third"), every=0.1)
        soon("third", 1)
        app.client.schedules.pause("s")
        until(lambda: app.client.count(state=["queued", "pending", "running"]) == 0)
        number = len(ran)
        time.sleep(0.4)
        assert len(ran) == number
        app.client.schedules.resume("s")
        soon("third", ran.count("third") + 1)
        app.client.schedules.remove("s")
        until(lambda: app.client.count(state=["queued", "pending", "running"]) == 0)
        number = len(ran)
        time.sleep(0.3)
        assert len(ran) == number
        assert app.client.schedules.get("s") is None


@pytest.mark.long
def test_a_change_at_run_time_outlives_a_worker_and_the_codes_next_word_counts(two_databases: Database) -> None:
    def app_with(every: float) -> App:
        app = two_databases.app()

        @app.schedule(every=every)
        @app.task
        def work() -> None: ...

        return app

    def start_and_see(every: float, expected: float) -> None:
        app = app_with(every)
        try:
            with working(app):
                until(lambda: (found := app.client.schedules.get("work")) and found.every == expected)
                until(app.client.workers)
                time.sleep(0.2)  # a worker that would overwrite it has done so
                found = app.client.schedules.get("work")
                assert found is not None
                assert found.every == expected
        finally:
            app.close()

    start_and_see(3600, 3600)
    app = app_with(3600)
    app.client.schedules.put("work", app.lookup("work").draft(), every=1800)
    app.close()
    start_and_see(3600, 1800)
    start_and_see(7200, 7200)


@pytest.mark.long
def test_a_schedule_that_no_worker_can_follow_does_not_make_upkeep_spin(
    two_databases: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A task that no worker knows, and a time zone that this machine lacks; the others are followed."""
    reads: list[float] = []
    check = Maintenance.check

    def noted(self: Maintenance) -> None:
        reads.append(time.monotonic())
        check(self)

    monkeypatch.setattr(Maintenance, "check", noted)
    app, stranger = two_databases.app(), two_databases.app()

    @stranger.task
    def elsewhere() -> None: ...

    @app.task
    def here() -> None: ...

    stranger.client.schedules.put("unknown", elsewhere.draft(), every=0.1)
    app.client.schedules.put("puzzle", here.draft(), every=0.1, timezone="Etc/UTC")
    app.client.schedules.put("works", here.draft(), "0 0 1 1 *")
    connection = connect(two_databases, app)
    cast = "::json" if two_databases.is_postgres else ""
    connection.execute(
        f"update {prefix(two_databases, app)}schedules set definition ="
        f" replace(cast(definition as text), 'Etc/UTC', 'Mars/Crater'){cast} where name = 'puzzle'"
    )
    connection.commit()
    connection.close()
    with working(app):
        time.sleep(0.5)
        begin = len(reads)
        time.sleep(1.5)
        assert len(reads) - begin <= 6, "about one look a second"
        app.client.schedules.put("works", here.draft(), every=0.1)
        until(lambda: app.client.count(task="here") >= 3)
        app.client.schedules.put("puzzle", here.draft(), every=0.1)
        until(lambda: app.client.schedules.ticks("puzzle"), "what was mended is followed at once", 3.0)
    assert stranger.client.schedules.ticks("unknown") == []
    said = [one.getMessage() for one in caplog.records if "Cannot follow" in one.getMessage()]
    assert len(said) == 1
    assert "Cannot follow schedule puzzle: there is no time zone 'Mars/Crater'" in said[0]
    app.close()
    stranger.close()


def test_two_schedules_of_one_name_are_refused_and_two_of_one_task_are_not(memory_app: App) -> None:
    app = memory_app

    @app.schedule("0 3 * * *", arguments={"what": "night"})
    @app.schedule("0 15 * * *", name="by day", arguments={"what": "day"})
    @app.task(queue="slow")
    def sweep(what: str) -> str:
        return what

    with pytest.raises(InvalidInput, match="two schedules are named sweep"):
        app.schedule("0 4 * * *", arguments={"what": "again"})(sweep)
    app.schedule("0 5 * * *", name="in another queue", arguments={"what": "x"})(sweep.using(queue="other"))
    assert sweep("x") == "x"
    with working(app):
        until(lambda: len(app.client.schedules.all()) == 3)
        by_day, line, night = app.client.schedules.all()
        assert (by_day.name, by_day.payload_json, by_day.queue, by_day.declared) == (
            "by day",
            '{"what":"day"}',
            "slow",
            True,
        )
        assert (line.queue, night.cron, night.timezone) == ("other", "0 3 * * *", "UTC")
        assert night.next_at is not None
        assert (night.next_at.hour, night.next_at.minute, night.last_at, night.last_job) == (3, 0, None, None)
        assert repr(night) == "<schedule sweep (0 3 * * *) of sweep>"
        assert app.client.result(app.client.schedules.run_now("by day")) == "day"


def test_a_job_of_a_tick_is_one_like_any_other(memory_app: App) -> None:
    """It carries the policy of its task, and can be cancelled."""
    app = memory_app

    @app.task(max_attempts=1, priority=7)
    def work() -> None:
        raise ValueError("no")

    app.client.schedules.put("s", work.using(group="mine").draft(), every=0.1)
    with working(app):
        until(lambda: app.client.count(state="failed") >= 1)
        app.client.schedules.remove("s")
        job = app.client.jobs(state=State.FAILED).jobs[0]
    assert (job.priority, job.max_attempts, job.group) == (7, 1, "mine")
