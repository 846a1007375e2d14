"""A worker inside a program of one's own: `await Worker(app).run()`."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from relet import App, Attempt, Backoff, InvalidInput, Job, Worker, events
from relet._core.job import Outcome
from relet._worker import maintenance
from relet._worker.execution import Execution
from relet.errors import SchemaMismatch
from tests import forks
from tests.plugin.selection import rounds
from tests.servers import Server
from tests.worker.programs import TIMEOUT, until
from tests.worker.working import working


def worker_of(app: App, **options: Any) -> Worker:
    return Worker(app, poll_interval=0.1, **options)


def add_greet(app: App) -> Callable[[str], Job[str]]:
    """A task of each colour; the result enqueues one of each, and returns the plain one."""

    @app.task
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    @app.task
    def greet_plainly(name: str) -> str:
        return f"Hello, {name}"

    def enqueue(name: str) -> Job[str]:
        greet.enqueue(name)
        return greet_plainly.enqueue(name)

    return enqueue


async def all_over(app: App, number: int) -> None:
    """Wait until so many jobs have succeeded."""
    give_up = time.monotonic() + TIMEOUT
    while await app.aclient.count(state="succeeded") < number:
        assert time.monotonic() < give_up, [(job.task, job.state) for job in (await app.aclient.jobs()).jobs]
        await asyncio.sleep(0.02)


async def while_running(worker: Worker, what: Awaitable[object]) -> None:
    """Run a worker until something is done, then stop it."""
    async with asyncio.timeout(TIMEOUT):
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running, asyncio.ensure_future(what)], return_when=asyncio.FIRST_COMPLETED)
        worker.stop()
        await running


def relet_threads() -> list[str]:
    """Those that see to a worker; the ones that wait for a next call, or listen a little longer, are not counted."""
    lasting = ("slot", "child", "listener", "client", "idle", "deadlines")
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("relet")]
    return [name for name in names if not name.removeprefix("relet-").startswith(lasting)]


@pytest.mark.long
def test_until_idle_waits_for_due_jobs_however_long_their_promotion_takes(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CHECK_GAP", 0.8)  # as on a machine that has much else to do

    @app.task(backoff=Backoff(base=0, max=0))
    def second_time_lucky(attempt: Attempt) -> int:
        if attempt.job.attempt == 1:
            raise ConnectionError
        return attempt.job.attempt

    app.client.migrate()
    job = second_time_lucky.enqueue()
    asyncio.run(worker_of(app).run(until_idle=True))
    assert app.client.result(job, timeout=0) == 2


def test_a_worker_does_not_leave_while_an_outcome_is_on_its_way_to_the_settler(
    memory_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, verdict = memory_app, Execution.final_outcome

    def slow(self: Execution, outcome: Outcome) -> Outcome | None:
        time.sleep(1.0)
        return verdict(self, outcome)

    monkeypatch.setattr(Execution, "final_outcome", slow)
    begun = threading.Event()

    @app.task
    def work(attempt: Attempt) -> str:
        begun.set()
        return "done"

    app.client.migrate()
    job = work.enqueue()

    async def main() -> Worker:
        worker = worker_of(app)
        running = asyncio.create_task(worker.run())
        await asyncio.to_thread(begun.wait, TIMEOUT)
        worker.stop()
        worker.stop()
        await running
        return worker

    worker = asyncio.run(main())
    assert app.client.result(job, timeout=0) == "done"
    assert worker.left_behind == 0


@pytest.mark.long
def test_a_worker_runs_beside_other_things_on_a_loop_until_told_to_stop(app: App) -> None:
    enqueue = add_greet(app)
    received: list[str] = []
    for kind in (events.WorkerStarted, events.WorkerStopping, events.WorkerStopped):
        app.on(kind)(lambda event: received.append(type(event).__name__))
    app.client.migrate()

    async def main() -> None:
        worker = worker_of(app)
        job = enqueue("Ada")
        await while_running(worker, all_over(app, 2))
        assert await app.aclient.result(job, timeout=1) == "Hello, Ada"

    asyncio.run(main(), debug=True)
    assert received == ["WorkerStarted", "WorkerStopping", "WorkerStopped"]
    until(lambda: not relet_threads(), lambda: str(relet_threads()))


@pytest.fixture
def memory_app() -> Iterator[App]:
    app = App("sqlite:///:memory:")
    yield app
    app.close()


def test_stop_may_be_called_from_any_thread_and_before_run(memory_app: App) -> None:
    add_greet(memory_app)
    worker = worker_of(memory_app)
    threading.Timer(0.2, worker.stop).start()
    asyncio.run(asyncio.wait_for(worker.run(), TIMEOUT))
    early = worker_of(memory_app)
    early.stop()
    asyncio.run(asyncio.wait_for(early.run(), TIMEOUT))


def test_cancelling_the_task_that_runs_a_worker_gives_its_jobs_back(memory_app: App) -> None:
    started, aborted = threading.Event(), []

    @memory_app.task
    async def hold() -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError as error:
            aborted.append(error)
            raise

    job = hold.enqueue()

    async def main() -> None:
        running = asyncio.create_task(worker_of(memory_app).run())
        while not started.is_set():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))
    found = memory_app.client.get(job)
    assert found is not None
    assert (found.state, found.attempt) == ("queued", 0)
    assert len(aborted) == 1


def test_the_end_of_asyncio_run_ends_a_worker_that_is_not_awaited(memory_app: App) -> None:
    started: list[int] = []

    @memory_app.task
    async def hold(number: int) -> None:
        started.append(number)
        await asyncio.sleep(600)

    jobs = [hold.enqueue(number) for number in range(10)]
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        tasks.append(asyncio.create_task(worker_of(memory_app).run()))
        while len(started) < len(jobs):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))  # cancels the worker, and its handlers as well
    found = [memory_app.client.get(job) for job in jobs]
    assert {(job.state, job.attempt) for job in found if job} == {("queued", 0)}
    until(lambda: not relet_threads(), lambda: str(relet_threads()))


def test_a_loop_that_is_closed_under_a_worker_does_not_keep_it_from_stopping(memory_app: App) -> None:
    enqueue = add_greet(memory_app)
    worker = worker_of(memory_app)

    async def main() -> None:
        await asyncio.wait([asyncio.create_task(worker.run())], timeout=0.1)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is left behind on purpose
    loop.close()
    job = enqueue("Ada")  # claimed by a worker whose loop is gone
    worker.stop()
    worker.stop()
    assert worker.finished.wait(TIMEOUT)
    found = memory_app.client.get(job)
    assert found is not None
    assert found.state in ("queued", "succeeded")
    assert memory_app.client.count(state="running") == 0


@pytest.mark.long("memory")
def test_a_stop_at_any_moment_leaves_nothing_behind(app: App) -> None:
    enqueue = add_greet(app)
    app.client.migrate()
    jobs = [enqueue(str(number)) for number in range(20)]

    async def start_and_stop(seconds: float) -> None:
        await while_running(worker_of(app, concurrency=2), asyncio.sleep(seconds))

    for _ in range(rounds(6, all=12)):
        jobs.append(enqueue("more"))
        asyncio.run(start_and_stop(random.random() * 0.06))
        left = app.client.jobs(state="running", limit=1000).jobs
        assert left == []
    asyncio.run(while_running(worker_of(app), all_over(app, 2 * len(jobs))))
    assert {job.attempt for job in app.client.jobs(limit=1000).jobs} == {1}


def test_two_workers_of_one_process_share_the_jobs(app: App) -> None:
    seen: list[int] = []

    @app.task
    async def note(number: int) -> None:
        seen.append(number)
        await asyncio.sleep(0.01)

    app.client.migrate()

    async def main() -> None:
        app.client.enqueue_many([note.draft(number) for number in range(40)])
        workers = [worker_of(app, concurrency=2, name=name) for name in ("one", "two")]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await all_over(app, 40)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))
    assert sorted(seen) == list(range(40))


def test_one_app_serves_one_event_loop_after_another(app: App) -> None:
    enqueue = add_greet(app)
    app.client.migrate()
    for number in range(1, 4):
        enqueue(f"loop {number}")
        asyncio.run(while_running(worker_of(app), all_over(app, 2 * number)))
    assert app.client.count(state="succeeded") == 6


def test_workers_run_in_two_loops_of_two_threads_at_once(memory_app: App) -> None:
    enqueue = add_greet(memory_app)
    failures: list[BaseException] = []

    def one_loop() -> None:
        try:
            asyncio.run(while_running(worker_of(memory_app), all_over(memory_app, 20)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one_loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(10):
        enqueue(str(number))
    for thread in threads:
        thread.join(TIMEOUT)
    assert failures == []
    assert memory_app.client.count(state="succeeded") == 20


def test_a_worker_runs_once(memory_app: App) -> None:
    add_greet(memory_app)
    worker = worker_of(memory_app)

    async def main() -> None:
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.05)
        with pytest.raises(InvalidInput, match="runs once"):
            await worker.run()
        worker.stop()
        await running
        with pytest.raises(InvalidInput, match="runs once"):
            await worker.run()

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))


def test_an_app_without_tasks_has_no_use_for_a_worker(memory_app: App) -> None:
    with pytest.raises(InvalidInput, match="no tasks"):
        Worker(memory_app)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"queues": []}, "queues must be names"),
        ({"queues": "billing"}, "queues must be names"),
        ({"queues": {"billing": 0}}, "the slots of queue billing"),
        ({"queues": ["two words"]}, "queue must be"),
        ({"tenants": {"acme": 0}}, "the slots of tenant acme"),
        ({"concurrency": 0}, "concurrency"),
        ({"lease": 0.0}, "lease"),
        ({"shutdown_timeout": -1.0}, "shutdown_timeout"),
        ({"max_jobs": 0}, "max_jobs"),
    ],
)
def test_options_that_make_no_sense_are_refused_when_the_worker_is_made(
    memory_app: App, options: dict[str, Any], said: str
) -> None:
    add_greet(memory_app)
    with pytest.raises(InvalidInput, match=said):
        Worker(memory_app, **options)


def test_a_store_that_cannot_be_reached_is_waited_for_until_told_to_stop(caplog: pytest.LogCaptureFixture) -> None:
    app = App("postgresql://ada:swordfish@127.0.0.1:1/jobs")
    add_greet(app)
    worker = Worker(app)

    async def run_and_stop() -> None:
        running = asyncio.create_task(worker.run())
        while "Cannot reach the database" not in caplog.text:
            await asyncio.sleep(0.01)
        worker.stop()
        await running

    asyncio.run(asyncio.wait_for(run_and_stop(), TIMEOUT))
    assert "cannot connect" in caplog.text
    assert "swordfish" not in caplog.text
    until(lambda: not relet_threads(), lambda: str(relet_threads()))


def test_a_store_without_a_schema_raises_from_run(pg_server: Server, schema: str) -> None:
    app = App(pg_server.dsn, schema=schema)
    add_greet(app)
    with pytest.raises(SchemaMismatch, match="migrate"):
        asyncio.run(asyncio.wait_for(Worker(app).run(), TIMEOUT))
    app.close()


def test_max_jobs_ends_the_run(memory_app: App) -> None:
    enqueue = add_greet(memory_app)
    for number in range(3):
        enqueue(str(number))
    asyncio.run(asyncio.wait_for(worker_of(memory_app, max_jobs=4, concurrency=1).run(), TIMEOUT))
    assert 4 <= memory_app.client.count(state="succeeded") <= 6
    assert memory_app.client.count(state="running") == 0


FORKED = """
import asyncio, os, sys, threading, time
from relet import App, Worker

app = App({url!r}, schema={schema!r})

@app.task
async def greet(name: str) -> str:
    return f"Hello, {{name}}"

@app.task
def greet_plainly(name: str) -> str:
    return f"Hello, {{name}}"

@app.task(process=True)
def greet_elsewhere(name: str) -> str:
    return f"Hello, {{name}}"

def serve():
    jobs = [task.enqueue("Ada") for task in (greet, greet_plainly, greet_elsewhere)]
    async def main():
        worker = Worker(app, poll_interval=0.1)
        running = asyncio.create_task(worker.run())
        for job in jobs:
            assert await app.aclient.result(job, timeout=15) == "Hello, Ada"
        worker.stop()
        await running
    asyncio.run(main())

if __name__ == "__main__":
    app.client.migrate()
    serve()  # connections, threads, and a loop that has ended
    child = os.fork()
    if child == 0:
        serve()
        print("child done", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    serve()
    print("parent done", flush=True)
"""


@pytest.mark.long("sqlite")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_runs_in_a_fork_of_a_process_that_had_one(
    kind: str, pg_server: Server, tmp_path: Path, schema: str
) -> None:
    url = pg_server.dsn if kind == "postgres" else f"sqlite:///{tmp_path / 'relet.db'}"
    (tmp_path / "program.py").write_text(FORKED.format(url=url, schema=schema))
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "program.py"],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        pg_server.drop_schema(schema)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["child done", "parent done"]


@pytest.mark.long
@pytest.mark.usefixtures("unfrozen_heap")
def test_the_garbage_collector_leaves_out_older_objects_while_a_worker_runs(memory_app: App) -> None:
    @memory_app.task
    async def count() -> int:
        return gc.get_freeze_count()

    assert gc.get_freeze_count() == 0
    with working(memory_app):
        until(lambda: memory_app.client.result(count.enqueue(), timeout=20) > 1000, lambda: "the heap is not frozen")
    assert gc.get_freeze_count() == 0


@pytest.mark.long
@pytest.mark.usefixtures("unfrozen_heap")
def test_a_program_that_has_frozen_its_heap_is_left_alone(memory_app: App) -> None:
    @memory_app.task
    async def nothing() -> None: ...

    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with working(memory_app):
            memory_app.client.result(nothing.enqueue(), timeout=20)
        assert gc.get_freeze_count() <= frozen, "objects that are freed count no more"
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


RUN_SYNC = """
import signal, sys, threading, time
from relet import App, Worker

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored

with App(sys.argv[1]) as app:
    @app.task
    def work(seconds: float) -> str:
        print("started", flush=True)
        time.sleep(seconds)
        return "done"

    work.enqueue(float(sys.argv[2]))
    Worker(app, poll_interval=0.1, shutdown_timeout=30).run_sync()
    print("returned", [t for t in threading.enumerate() if t.name == "relet-signals"], flush=True)
    print(app.client.count(state="succeeded"), flush=True)
time.sleep(float(sys.argv[3]))
"""


@contextmanager
def run_sync_program(folder: Path, job: str, after: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A program that runs a worker with a job of so many seconds, and lives on for so many; and its output."""
    arguments = [f"sqlite:///{folder}/relet.db", job, after]
    with forks.Popen([sys.executable, "-c", RUN_SYNC, *arguments], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "started\n"
            yield program, program.stdout
        finally:
            program.kill()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_worker_that_plain_code_runs_after_its_jobs(tmp_path: Path, number: signal.Signals) -> None:
    with run_sync_program(tmp_path, "1.0", "60") as (program, output):
        program.send_signal(number)
        assert output.readline() == "returned []\n"
        assert output.readline() == "1\n", "the worker waited for the job"
        program.send_signal(number)
        assert program.wait(TIMEOUT) != 0, "after the worker the signal has its former meaning"


@pytest.mark.long
def test_a_second_signal_releases_the_jobs_of_a_worker_that_plain_code_runs(tmp_path: Path) -> None:
    with run_sync_program(tmp_path, "60", "0") as (program, output):
        program.send_signal(signal.SIGTERM)
        time.sleep(0.7)  # signals within half a second count as one
        program.send_signal(signal.SIGTERM)
        assert output.readline().startswith("returned"), "it does not wait for the handler"


def test_plain_code_runs_a_worker_until_it_is_idle_in_any_thread(memory_app: App) -> None:
    job = add_greet(memory_app)("Ada")
    thread = threading.Thread(target=lambda: worker_of(memory_app).run_sync(until_idle=True))
    thread.start()
    thread.join(TIMEOUT)
    assert memory_app.client.result(job) == "Hello, Ada"


def test_run_sync_is_refused_where_it_would_block_an_event_loop(memory_app: App) -> None:
    add_greet(memory_app)

    async def main() -> None:
        worker_of(memory_app).run_sync()

    with pytest.raises(InvalidInput, match=r"await worker\.run"):
        asyncio.run(main())
