"""`relet run APP JOB`: one job in the foreground, under a lease that no worker can take."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from relet import App, Job, new_id
from relet._store.flows import claim_one
from relet._store.postgres import PostgresStore
from relet._worker import Worker
from relet.errors import InvalidTransition
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.ptys import OnTerminal
from tests.shops import CliShop

LEASE = 1.0
TIMEOUT = 20.0

#: Further tasks of the shop. The tests run their handlers only by the command.
DESK = """
import asyncio, threading, time
from collections.abc import AsyncIterator
from pathlib import Path
from relet import App, Attempt, Snooze, events, injected

HERE = Path({folder!r})
app.on(events.Claimed)(lambda event: (HERE / "claimed").write_text(event.job_id))


class Ledger: ...


@app.resource
async def ledger() -> AsyncIterator[Ledger]:
    yield Ledger()
    (HERE / "closed").touch()


@app.task
async def books(ledger: Ledger = injected) -> str:
    return type(ledger).__name__


@app.task(max_attempts=2)
def boom() -> None:
    raise ValueError("no money")


@app.task(timeout=0.2)
def stops(attempt: Attempt) -> str:
    assert threading.current_thread() is threading.main_thread()
    owner = attempt.worker
    breakpoint()
    return owner


@app.task(process=True)
def waits(attempt: Attempt) -> None:
    attempt.progress(1, 2)
    (HERE / "started").touch()
    while True:
        time.sleep(0.01)


@app.task
async def waits_softly() -> None:
    (HERE / "started").touch()
    await asyncio.sleep(600)


@app.task
async def soft() -> int:
    assert threading.current_thread() is threading.main_thread()
    return 3


@app.task
def snoozes() -> None:
    raise Snooze(3600)
"""


@pytest.fixture
def desk(any_shop: CliShop) -> SimpleNamespace:
    """The tasks of the desk, which `relet run desk:app` knows as well."""
    text = DESK.format(folder=str(any_shop.folder))
    (any_shop.folder / "desk.py").write_text(f"from shop import app\n{text}")
    namespace: dict[str, Any] = {"__name__": "desk", "app": any_shop.app}
    exec(text, namespace)
    return SimpleNamespace(**namespace)


def current(shop: CliShop, job: Job[Any]) -> Job[Any]:
    found: Job[Any] | None = shop.client.get(job)
    assert found is not None
    return found


def wait_for(shop: CliShop, job: Job[Any], state: str) -> Job[Any]:
    give_up = time.monotonic() + TIMEOUT
    while (found := current(shop, job)).state != state:
        assert time.monotonic() < give_up, found
        time.sleep(0.02)
    return found


@pytest.mark.long
@pytest.mark.every_store
def test_a_queued_job_runs_here_by_the_end_of_its_id(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    job, other = shop.many(2)
    shop.client.pause_queue("billing")  # workers are to leave it alone; the operator is not
    code, printed = typed(shop.folder, "run", "shop:app", job.id[-12:])
    assert code == 0, printed
    assert printed.splitlines()[-1].startswith("Succeeded after ")
    assert printed.endswith('Result: "acct-0 paid 500"\n')
    assert (shop.state(job), shop.state(other)) == ("succeeded", "queued")
    (attempt,) = shop.client.attempts(job)
    assert (attempt.attempt, attempt.outcome) == (1, "succeeded")
    (entry,) = [one for one in shop.client.audit().entries if one.what == "run"]
    assert (entry.subject, entry.who.startswith("cli:")) == (job.id, True)
    assert shop.client.workers() == []
    assert [(one.queue, one.counts["succeeded"]) for one in shop.client.totals()] == [("billing", 1)]


@pytest.mark.long("postgres")
def test_async_handlers_and_json(typed: CommandLine, any_shop: CliShop, desk: SimpleNamespace) -> None:
    code, printed = typed(
        any_shop.folder, "run", "desk:app", desk.soft.enqueue().id, "--json", "--log-level", "warning"
    )
    found = json.loads(printed[printed.index("{") :])  # after log lines
    assert (code, found["outcome"], found["job"]["result"]) == (0, "succeeded", 3)
    assert (any_shop.folder / "claimed").read_text() == found["job"]["id"], "listeners hear of it"


@pytest.mark.long("postgres")
def test_the_handler_gets_its_resources(typed: CommandLine, any_shop: CliShop, desk: SimpleNamespace) -> None:
    job = desk.books.enqueue()
    code, printed = typed(any_shop.folder, "run", "desk:app", job.id)
    assert code == 0, printed
    assert "Ledger" in printed
    assert (any_shop.folder / "closed").exists()


@pytest.mark.long("postgres")
def test_a_failure_prints_the_traceback_and_the_next_state(
    typed: CommandLine, any_shop: CliShop, desk: SimpleNamespace
) -> None:
    job = desk.boom.enqueue()
    code, printed = typed(any_shop.folder, "run", "desk:app", job.id)
    assert code == 1
    assert 'raise ValueError("no money")' in printed
    assert "Attempt 1 of 2 failed after " in printed
    assert "The job is pending. A worker runs it in " in printed
    assert any_shop.state(job) == "pending"
    code, printed = typed(any_shop.folder, "run", "desk:app", job.id)  # which waits for its retry
    assert (code, any_shop.state(job)) == (1, "failed")
    assert "Attempt 2 of 2 failed after " in printed
    assert f"to let a worker run it: relet jobs desk:app resume {job.id}" in printed
    code, printed = typed(any_shop.folder, "run", "desk:app", job.id)  # failed: it gets its attempts back
    assert (code, "Attempt 1 of 2 failed after " in printed) == (1, True)


@pytest.mark.long("postgres")
def test_a_snooze_is_no_failure(typed: CommandLine, any_shop: CliShop, desk: SimpleNamespace) -> None:
    code, printed = typed(any_shop.folder, "run", "desk:app", desk.snoozes.enqueue().id)
    assert (code, "Snoozed after " in printed, "A worker runs it in " in printed) == (0, True, True), printed


@pytest.mark.long("postgres")
def test_paused_and_delayed_jobs_run(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    paused, delayed = *shop.many(1), *shop.many(1, delay=3600)
    shop.client.pause(paused)
    for job in (paused, delayed):
        assert typed(shop.folder, "run", "shop:app", job.id)[0] == 0
        assert shop.state(job) == "succeeded"


@pytest.mark.long("postgres")
def test_a_job_that_cannot_run_is_refused_and_stays_as_it_was(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    (running,) = shop.many(1)
    harness_of(shop.app).claim(1, queues=("billing",))
    assert "it is running on worker w; wait until" in refused(typed, shop, running)
    (first, second), (dependent,) = shop.many(2, target="acct"), shop.many(1, depends_on=[running])
    assert "pending, and waits for its jobs; complete, cancel or delete" in refused(typed, shop, dependent)
    assert "pending, and waits for its target; the jobs before it" in refused(typed, shop, second)
    cancelled = shop.client.cancel(second)
    assert "it is cancelled; a finished job does not run again; enqueue a new one" in refused(typed, shop, cancelled)
    assert typed(shop.folder, "run", "shop:app", first.id)[0] == 0
    assert "lease must be" in typed.refusal(shop.folder, "run", "shop:app", first.id, "--lease", "0")
    unknown = new_id()
    assert typed.refusal(shop.folder, "run", "shop:app", unknown) == f"relet: no such job: {unknown}"

    @shop.app.task
    def foreign() -> None: ...

    assert "is of task foreign, which this app does not define" in refused(typed, shop, foreign.enqueue())


def refused(typed: CommandLine, shop: CliShop, job: Job[Any]) -> str:
    before = shop.client.get(job)
    message = typed.refusal(shop.folder, "run", "shop:app", job.id)
    assert shop.client.get(job) == before
    return message


@pytest.mark.long
@pytest.mark.parametrize(
    "limit", [{"max_running": 1}, {"rate": 1, "per": 3600.0}, {"rate": 1, "per": 3600.0, "group": "*"}]
)
def test_limits_hold(typed: CommandLine, any_shop: CliShop, limit: dict[str, Any]) -> None:
    shop = any_shop
    first, second = shop.many(2, group="acme")
    shop.client.pause(second)
    shop.client.limit_queue("billing", **limit)
    assert [job.id for job in harness_of(shop.app).claim(1, queues=("billing",))] == [first.id]
    message = refused(typed, shop, second)
    assert "it is in queue billing, which is at its limit; try later" in message
    assert ("try later, again in " in message) == ("rate" in limit), message
    shop.client.limit_queue("billing", **{**limit, **dict.fromkeys(set(limit) & {"max_running", "rate"}, 2)})
    assert typed(shop.folder, "run", "shop:app", second.id)[0] == 0


@pytest.mark.long("postgres")
def test_a_job_that_must_run_alone_runs(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    (job,) = shop.many(1)
    lost_two_workers(shop)
    assert harness_of(shop.app).claim(1, queues=("billing",)) == []
    assert typed(shop.folder, "run", "shop:app", job.id)[0] == 0


def lost_two_workers(shop: CliShop) -> None:
    store = shop.app._store()
    if isinstance(store, PostgresStore):
        with psycopg.connect(store._url) as connection:
            connection.execute(f"update {store.schema}.jobs set losses = 2, suspect = 2".encode())
    else:
        with closing(sqlite3.connect(shop.folder / "jobs.db")) as file, file:
            file.execute("update relet_jobs set losses = 2, suspect = 2")


@pytest.mark.parametrize("key", ["c", "q"])
@pytest.mark.long("postgres")
def test_a_debugger_may_stop_the_handler_for_longer_than_the_lease(
    any_shop: CliShop, desk: SimpleNamespace, key: str
) -> None:
    """Meanwhile a worker serves the queue, and reaps expired leases."""
    shop = any_shop
    job = desk.stops.enqueue()
    with OnTerminal(shop.folder, "run", "desk:app", job.id, "--lease", f"{LEASE}") as terminal:
        terminal.shows("(Pdb)")
        worker = Worker(shop.app, lease=LEASE)
        thread = threading.Thread(target=worker.run_sync)
        thread.start()
        try:
            first = wait_for(shop, job, "running")
            stopped = time.monotonic()
            while time.monotonic() < stopped + 3 * LEASE:
                assert current(shop, job).worker == first.worker
                time.sleep(0.1)
        finally:
            worker.stop()
            thread.join()
        terminal.press(f"{key}\n")
        code = terminal.code()
        if key == "c":
            assert (code, shop.client.result(job)) == (0, first.worker)
        else:
            assert (code, shop.state(job)) == (130, "queued")
            assert "Interrupted after " in terminal.page


@pytest.mark.parametrize("task", ["waits", "waits_softly"])
@pytest.mark.parametrize("before", ["queued", "paused"])
@pytest.mark.long("postgres")
def test_ctrl_c_gives_the_job_back(any_shop: CliShop, desk: SimpleNamespace, task: str, before: str) -> None:
    shop, job = any_shop, getattr(desk, task).enqueue()
    if before == "paused":
        shop.client.pause(job)
    with OnTerminal(shop.folder, "run", "desk:app", job.id) as terminal:
        give_up = time.monotonic() + TIMEOUT
        while not (shop.folder / "started").exists():
            assert time.monotonic() < give_up, terminal.page
            time.sleep(0.02)
        terminal.press("\x03")
        assert terminal.code() == 130
    found = current(shop, job)
    assert (found.state, found.attempt) == (before, 0)
    (attempt,) = shop.client.attempts(job)
    assert attempt.outcome == "released"


@pytest.mark.long("postgres")
def test_a_job_that_is_cancelled_meanwhile_ends(any_shop: CliShop, desk: SimpleNamespace) -> None:
    shop, job = any_shop, desk.waits_softly.enqueue()
    with OnTerminal(shop.folder, "run", "desk:app", job.id) as terminal:
        wait_for(shop, job, "running")
        shop.client.cancel(job)
        terminal.code()
        assert "The job is cancelled." in terminal.page


@pytest.mark.every_store
def test_one_of_many_claims_gets_the_job(any_shop: CliShop) -> None:
    """Workers and operators that want the same job at the same moment."""
    shop = any_shop
    for _ in range(10):
        (job,) = shop.many(1)
        gate = threading.Barrier(4)
        with ThreadPoolExecutor(4) as threads:
            some = [threads.submit(take, shop.app, job.id, gate, by_id=number % 2 == 0) for number in range(4)]
        assert sorted(one.result() for one in some) == [False, False, False, True]


def take(app: App, job_id: str, gate: threading.Barrier, *, by_id: bool) -> bool:
    """Whether this claim got the job."""
    gate.wait()
    if not by_id:
        return bool(harness_of(app).claim(1, queues=("billing",)))
    how = {"lease": 30.0, "random": random.random}
    try:
        app._store().run(claim_one.claim_one, "w2", str(uuid.uuid4()), job_id, list(app.tasks), **how)
    except InvalidTransition:
        return False
    return True
