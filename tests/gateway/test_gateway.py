"""Beyond the protocol: statements, logs, several gateways, and other features of a Python worker."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from relet import App, Attempt, InvalidInput, Retry, Snooze, Worker
from relet._gateway.line import Line
from relet._gateway.server import workers_auth
from relet._remote import wire
from relet._remote.channel import Channel, Gateways
from relet.errors import ReletError, StoreRefused
from relet.types import BatchItem
from tests.gateway import workers
from tests.gateway.conformance import define_tasks, until
from tests.gateway.protocol import Speaker, lease
from tests.gateway.serving import SCOPED, TOKEN, serving
from tests.gateway.workers import LEASE, bench

NO_DATABASE = "postgresql://none@127.0.0.1:1/none"


@contextmanager
def working(worker: Worker) -> Iterator[Worker]:
    """A worker on an event loop in a thread."""
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()), daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


def tasks_of(app: App) -> App:
    """Tasks that use the features of a worker. The worker has its own app, without a database."""

    @app.task(name="steps")
    def steps(attempt: Attempt) -> list[int]:
        first = attempt.step("first", lambda: attempt.version)
        attempt.sleep("nap", 0.05)
        signal: int = attempt.wait_for("go", int)
        return [first, signal]

    @app.task(name="ends")
    async def ends(attempt: Attempt, how: str) -> str:
        if attempt.version == 1:
            raise Snooze(0.01) if how == "snooze" else Retry(delay=0.01)
        return how

    @app.task(name="continues")
    def continues(attempt: Attempt, left: int) -> int:
        return left if not left else attempt.continue_with(continues.draft(left - 1))

    @app.task(name="follows")
    async def follows(attempt: Attempt) -> list[int]:
        return attempt.dependency_results(continues)

    @app.task(name="transacts", max_attempts=1)
    def transacts(attempt: Attempt) -> None:
        with attempt.transaction():
            pass

    @app.batch_task(name="batched", size=5, wait=0.05)
    async def batched(items: list[BatchItem[int]]) -> None:
        for item in items:
            item.succeed(len(items))

    return app


def test_a_python_worker_behind_a_gateway_works_like_others(app: App) -> None:
    tasks_of(app)
    enqueue = {name: task.enqueue for name, task in app.tasks.items()}
    waiting = enqueue["steps"]()
    ends = [enqueue["ends"](how) for how in ("snooze", "retry")]
    chain = enqueue["continues"](2)
    after = app.tasks["follows"].using(depends_on=[chain]).enqueue()
    refused = enqueue["transacts"]()
    batch = app.client.enqueue_many([app.tasks["batched"].draft(n) for n in range(3)])
    with serving(app) as (url, _), working(Worker(tasks_of(App(NO_DATABASE)), gateway=url, gateway_token=TOKEN)):
        until(lambda: (job := app.client.get(waiting)) is not None and job.awaits, "it does not wait for its signal")
        app.client.signal(waiting, "go", 7)
        assert app.client.result(waiting, timeout=20) == [1, 7]
        assert [app.client.result(job, timeout=20) for job in ends] == ["snooze", "retry"]
        assert app.client.result(chain, timeout=20) == 0
        assert app.client.result(after, timeout=20) == [0]
        assert {app.client.result(job, timeout=20) for job in batch} <= {1, 2, 3}
        until(lambda: (job := app.client.get(refused)) is not None and job.state == "failed", "it did not fail")
    error = app.client.get(refused).error or ""  # type: ignore[union-attr]
    assert "reaches the store through a gateway, so it has no connection to the database" in error


def test_a_notification_costs_one_claim_however_many_workers_wait(pg_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each job wakes one worker."""
    app, claims = pg_app, list[float]()
    define_tasks(app)
    claim: Callable[..., Any] = Line.claim

    def counted(self: Line, *args: Any) -> Any:
        claims.append(time.monotonic())
        return claim(self, *args)

    monkeypatch.setattr(Line, "claim", counted)
    monkeypatch.setattr("relet._gateway.claims.POLL_EVERY", 60.0)
    answers: list[Any] = []
    with serving(app) as (url, gateway):
        threads = []
        for number in range(20):
            body = {"token": str(uuid.uuid4()), "tasks": ["work"], "wait": 25}
            speaker = Speaker(url, TOKEN, f"w{number}:1:1")
            threads.append(threading.Thread(target=lambda s=speaker, b=body: answers.append(s.ask("claim", **b))))
            threads[-1].start()
        lines = gateway.claims._lines.values()
        until(lambda: sum(len(line._waiters) for line in lines) == 20, "they do not wait")
        time.sleep(0.5)  # the first request for notifications, and the claim after it
        claims.clear()
        app.tasks["work"].enqueue(1)
        until(lambda: len(answers) == 1, "the job was not claimed")
        time.sleep(0.3)
        assert len(claims) <= 3  # the notification; one more if it was heard twice, and one as the claim was filled
        assert len(answers) == 1
        app.client.enqueue_many([app.tasks["work"].draft(n) for n in range(5)])
        until(lambda: sum(len(one["jobs"]) for one in answers) == 6, "the jobs were not claimed")
        gateway.claims._wake()
    for thread in threads:
        thread.join(20)
    assert all(len(one["jobs"]) <= 1 for one in answers)


def test_a_worker_moves_to_the_next_gateway(pg_url: str, schema: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.gateway.python_worker"]
    with bench(tmp_path, pg_url, schema, command, gateways=2) as site:
        first, _second = site.gateway(0), site.gateway(1)
        site.worker()
        job = site.enqueue("wait", 2 * LEASE)
        site.until(job, lambda one: one.progress is not None)
        first.send_signal(signal.SIGSTOP)  # it does not answer, and its connections stay open
        try:
            paid = site.enqueue("charge", "acct", 1)
            assert site.until(paid, lambda one: one.state == "succeeded").attempt == 1
            found = site.until(job, lambda one: one.state == "succeeded")
            assert (found.attempt, found.losses) == (1, 0)
        finally:
            first.send_signal(signal.SIGCONT)


def test_a_renewal_that_a_dead_worker_had_sent_extends_no_lease(pg_url: str, schema: str, tmp_path: Path) -> None:
    """The gateway was stopped when the worker sent its last renewal."""
    with bench(tmp_path, pg_url, schema, []) as site:
        gateway = site.gateway()
        worker = Speaker(site.urls[0], workers.TOKEN)
        job = site.enqueue("charge", "acct-7", 1)
        (claimed,) = worker.claim("charge", wait=10)
        before = site.job(job).expires_at
        gateway.send_signal(signal.SIGSTOP)
        body = {"worker": worker.worker, "leases": [lease(claimed, version=1)]}
        with closing(worker.send("renew", body)):
            pass
        gateway.send_signal(signal.SIGCONT)
        worker.ask("hello")  # it works again
        time.sleep(0.3)
        assert site.job(job).expires_at == before
        assert worker.renew(claimed)["renewed"]


def test_a_gateway_does_the_maintenance(app: App) -> None:
    """A site may have gateway workers only: schedules, delays, expired leases."""
    define_tasks(app)
    app.schedule(every=0.2, arguments={"value": 1})(app.tasks["work"])
    late = app.tasks["work"].using(delay=0.3, queue="late").enqueue(2)
    with serving(app) as (url, _):
        speaker = Speaker(url, TOKEN)
        found = speaker.claim(wait=10, queues=["default"])
        assert found[0]["payload"] == {"value": 1}
        (job,) = speaker.claim(wait=10, queues=["late"], lease=0.2)
        assert job["id"] == late.id
        (again,) = speaker.claim(wait=15, queues=["late"])
        assert (again["id"], again["losses"]) == (late.id, 1)


def test_a_wrong_token_ends_a_worker_that_starts(app: App) -> None:
    with serving(app) as (url, _):
        worker = Worker(tasks_of(App(NO_DATABASE)), gateway=url, gateway_token="wrong-wrong-wrong-wrong")
        with pytest.raises(StoreRefused, match=r"Send a token"):
            asyncio.run(worker.run())


def test_a_worker_of_scoped_token_runs_its_queues_only(app: App) -> None:
    define_tasks(app)
    own, foreign = (app.tasks["work"].using(queue=queue).enqueue(1) for queue in ("billing", "mail"))
    other = App(NO_DATABASE)
    define_tasks(other)
    with serving(app) as (url, _), working(Worker(other, gateway=url, gateway_token=SCOPED)):
        assert app.client.result(own, timeout=20) == 1
        until(lambda: [one for one in app.client.workers() if one.slots], "it does not report")
        (row,) = [one for one in app.client.workers() if one.slots]
        assert row.queues == ("billing",)
    assert app.client.get(foreign).state == "queued"  # type: ignore[union-attr]


def test_options_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    app = tasks_of(App(NO_DATABASE))
    monkeypatch.delenv("RELET_GATEWAY_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match="RELET_GATEWAY_TOKEN"):
        Worker(app, gateway="http://localhost:1")
    for url in ("ftp://x", "http://user:secret@host", "http://host?x=1"):
        with pytest.raises(InvalidInput, match="URL") as raised:
            Worker(app, gateway=url, gateway_token=TOKEN)
        assert "secret" not in str(raised.value)
    with pytest.raises(InvalidInput, match="one tenant"):
        Worker(app, gateway="http://localhost:1", gateway_token=TOKEN, tenants={"acme": 1})
    with pytest.raises(InvalidInput, match="until_idle"):
        asyncio.run(Worker(app, gateway="http://localhost:1", gateway_token=TOKEN).run(until_idle=True))
    with pytest.raises(ReletError, match="@"):
        workers_auth({"a@b": TOKEN}, {})


def test_no_token_is_displayed(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    define_tasks(app)
    with serving(app) as (url, gateway):
        gateways = Gateways([url], TOKEN)
        with working(Worker(tasks_of(App(NO_DATABASE)), gateway=url, gateway_token=TOKEN)) as worker:
            until(lambda: [one for one in app.client.workers() if one.slots], "the worker does not start")
            shown = [
                repr(gateways),
                repr(worker._gateways),
                repr(worker._sessions[0]._context),
                repr(gateway._auth._keys),
            ]
    for text in (caplog.text, *shown):
        assert TOKEN not in text
        assert SCOPED not in text


def test_a_connection_in_use_is_closed_after_its_answer_once_its_channel_is_closed(app: App) -> None:
    define_tasks(app)
    with serving(app) as (url, _):
        gateways = Gateways([url], TOKEN)
        channel, worker = Channel(gateways), "test:1:aaaaaaaa"
        asked = wire.RequestsIn(worker, 10.0)
        waiting = threading.Thread(target=channel.call, args=("requests", asked, wire.RequestsOut, 10.0))
        waiting.start()
        until(lambda: channel._busy and next(iter(channel._busy)).sock is not None, "it does not wait")
        (connection,) = channel._busy
        channel.close()
        other = Channel(gateways)
        until(lambda: other.call("interrupt", wire.InterruptIn(worker), wire.Nothing) and not waiting.is_alive(), "")
        other.close()
        waiting.join()
        assert connection.sock is None
