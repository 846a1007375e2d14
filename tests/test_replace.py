"""`replace`: of the drafts enqueued under one unique key, the newest counts while the job waits."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from relet import App, InvalidInput, KeyTaken, State
from relet._core.job import Raised, Snoozed
from relet._store.flows import completion
from tests.databases import Database
from tests.harness import harness_of

pytestmark = pytest.mark.every_store

WITH_AFTER = {"unique": "k", "replace": True, "depends_on": ["0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"]}


@pytest.fixture
def index(app: App) -> Any:
    @app.task
    def index(page: int) -> None: ...

    return index


def test_the_newest_payload_wins_while_the_job_waits(app: App, index: Any) -> None:
    first = index.using(unique="k", replace=True).enqueue(1)
    second = index.using(unique="k", replace=True).enqueue(2)
    assert (second.id, second.existing, second.payload_json) == (first.id, True, '{"page":2}')
    assert [job.payload_json for job in harness_of(app).claim(9)] == ['{"page":2}']


def test_without_replace_the_oldest_stays(app: App, index: Any) -> None:
    index.using(unique="k").enqueue(1)
    assert index.using(unique="k").enqueue(2).payload_json == '{"page":1}'


def test_with_a_delay_it_is_put_off_each_time(app: App, index: Any) -> None:
    late = index.using(unique="k", replace=True, delay=100)
    first, second = late.enqueue(1), late.enqueue(2)
    assert second.id == first.id
    assert second.run_at > first.run_at
    assert (second.state, second.payload_json) == (State.PENDING, '{"page":2}')
    third = index.using(unique="k", replace="payload", delay=500).enqueue(3)
    assert (third.run_at, third.payload_json) == (second.run_at, '{"page":3}'), (
        "its time stays if only the payload counts"
    )


def test_a_job_that_is_queued_is_put_off_too(app: App, index: Any) -> None:
    index.using(unique="k", target="t").enqueue(1)
    harness_of(app).promote_all()
    put_off = index.using(unique="k", replace=True, delay=60).enqueue(2)
    assert (put_off.state, put_off.wait, put_off.holds) == (State.PENDING, "time", True)
    assert harness_of(app).claim(9) == []
    assert app.client.run_now(put_off).state is State.PENDING
    harness_of(app).promote_all()
    assert [job.payload_json for job in harness_of(app).claim(9)] == ['{"page":2}']


def test_jobs_enqueued_while_one_runs_are_run_after_it(app: App, index: Any) -> None:
    draft = index.using(unique="k", replace=True)
    draft.enqueue(1)
    (running,) = harness_of(app).claim(1)
    second = draft.enqueue(2)
    assert second.existing is False
    assert (second.state, second.wait) == (State.PENDING, "jobs")
    third = draft.enqueue(3)
    assert (third.id, third.payload_json) == (second.id, '{"page":3}'), "there is one that waits, at most"
    harness_of(app).promote_all()
    assert harness_of(app).claim(9) == []
    harness_of(app).succeed(running)
    harness_of(app).promote_all()
    (again,) = harness_of(app).claim(9)
    assert (again.id, again.payload_json) == (second.id, '{"page":3}')
    harness_of(app).succeed(again)
    assert index.using(unique="k").enqueue(4).existing is False, "and then the key is free"


def test_it_runs_even_if_the_one_before_fails(app: App, index: Any) -> None:
    draft = index.using(unique="k", replace=True)
    draft.enqueue(1)
    (running,) = harness_of(app).claim(1)
    second = draft.enqueue(2)
    harness_of(app).end(running, Raised("no", fatal=True))
    harness_of(app).promote_all()
    assert [job.id for job in harness_of(app).claim(9)] == [second.id]


@pytest.mark.parametrize(
    ("end", "how"), [("cancel", {}), ("delete", {}), ("delete", {"chain": True}), ("complete", {})]
)
def test_a_follower_that_ends_before_its_turn_gives_the_key_back(
    app: App, index: Any, end: str, how: dict[str, bool]
) -> None:
    """Else a third would run beside the first."""
    draft = index.using(unique="k", replace=True)
    draft.enqueue(1)
    (running,) = harness_of(app).claim(1)
    follower = draft.enqueue(2)
    getattr(app.client, end)(follower, **how)
    third = index.using(unique="k").enqueue(3)
    assert (third.id, third.existing) == (running.id, True)
    harness_of(app).succeed(running)
    assert index.using(unique="k").enqueue(4).existing is False


def test_a_job_that_has_done_steps_is_not_given_another_payload(app: App, index: Any) -> None:
    """It sleeps in the middle of its work: a job that is enqueued now runs after it."""
    first = index.using(unique="k").enqueue(1)
    (running,) = harness_of(app).claim(1)
    app._store().run(completion.keep, running.lease, "step", "charge", completion.Called('"receipt"'), None)
    harness_of(app).end(running, Snoozed(60))
    second = index.using(unique="k", replace=True).enqueue(2)
    assert (second.existing, second.wait) == (False, "jobs")
    assert app.client.get(first).payload_json == '{"page":1}'  # type: ignore[union-attr]
    app.client.run_now(first)
    harness_of(app).promote_all()
    (again,) = harness_of(app).claim(9)
    assert again.id == first.id
    harness_of(app).succeed(again)
    harness_of(app).promote_all()
    assert [job.id for job in harness_of(app).claim(9)] == [second.id]


def test_a_paused_job_takes_it_and_stays_paused(app: App, index: Any) -> None:
    job = index.using(unique="k").enqueue(1)
    app.client.pause(job)
    replaced = index.using(unique="k", replace=True).enqueue(2)
    assert (replaced.id, replaced.state, replaced.payload_json) == (job.id, State.PAUSED, '{"page":2}')


def test_drafts_of_one_batch_replace_each_other(app: App, index: Any) -> None:
    draft = index.using(unique="k", replace=True)
    jobs = app.client.enqueue_many([draft.draft(1), index.draft(7), draft.draft(2), draft.draft(3)])
    assert len({job.id for job in jobs}) == 2
    assert sorted(job.payload_json for job in harness_of(app).claim(9)) == ['{"page":3}', '{"page":7}']


def test_drafts_of_two_tasks_do_not_share_a_key(app: App, index: Any) -> None:
    @app.task
    def mail(to: str) -> None: ...

    with pytest.raises(KeyTaken):
        app.client.enqueue_many([index.using(unique="k").draft(1), mail.using(unique="k", replace=True).draft("ada")])
    assert app.client.count() == 0


def test_the_job_of_another_task_is_not_touched(app: App, index: Any) -> None:
    @app.task
    def other(page: int) -> None: ...

    job = other.using(unique="k").enqueue(1)
    with pytest.raises(KeyTaken, match=job.id):
        index.using(unique="k", replace=True).enqueue(2)
    assert app.client.get(job).payload_json == '{"page":1}'  # type: ignore[union-attr]


def test_a_window_is_not_reopened(app: App, index: Any) -> None:
    index.using(unique="k", unique_for=60).enqueue(1)
    (job,) = harness_of(app).claim(1)
    harness_of(app).succeed(job)
    again = index.using(unique="k", unique_for=60, replace=True).enqueue(2)
    assert (again.id, again.state, again.payload_json) == (job.id, State.SUCCEEDED, '{"page":1}')


def test_within_a_window_one_that_runs_is_all_there_is(app: App, index: Any) -> None:
    draft = index.using(unique="k", unique_for=60, replace=True)
    draft.enqueue(1)
    assert draft.enqueue(2).payload_json == '{"page":2}', "while it waits the newest wins"
    (running,) = harness_of(app).claim(1)
    again = draft.enqueue(3)
    assert (again.id, again.existing, again.state) == (running.id, True, State.RUNNING)
    assert app.client.count() == 1


def test_within_a_window_one_that_has_begun_is_all_there_is(app: App, index: Any) -> None:
    draft = index.using(unique="k", unique_for=60, replace=True)
    draft.enqueue(1)
    (running,) = harness_of(app).claim(1)
    app._store().run(completion.keep, running.lease, "step", "charge", completion.Called('"receipt"'), None)
    harness_of(app).end(running, Snoozed(60))
    again = draft.enqueue(2)
    assert (again.id, again.existing, again.payload_json) == (running.id, True, '{"page":1}')


def test_a_key_whose_job_was_pruned_is_free(database: Database, app: App, index: Any) -> None:
    if not database.is_postgres:
        pytest.skip("SQLite has one writer at a time")
    index.using(unique="k").enqueue(1)
    (running,) = harness_of(app).claim(1)
    with psycopg.connect(database.url) as connection:
        index.using(unique="k", replace=True, connection=connection).enqueue(2)
        harness_of(app).succeed(running)
        connection.rollback()
    app.client.delete(running.id)
    assert index.using(unique="k").enqueue(3).existing is False


@pytest.mark.parametrize(
    "options",
    [{"replace": True}, {"unique": "k", "replace": "all"}, WITH_AFTER],
)
def test_options_that_contradict_each_other_are_refused(app: App, index: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="replace"):
        index.using(**options)


def test_many_at_once_leave_one_job_that_runs_and_one_that_waits(app: App, index: Any) -> None:
    """Threads enqueue, another claims and settles: nothing is lost, and the last payload is the last one run."""
    draft = index.using(unique="k", replace=True)
    stop, ran = threading.Event(), list[str]()

    def work() -> None:
        while not stop.is_set():
            harness_of(app).promote_all()
            for job in harness_of(app).claim(9):
                ran.append(job.payload_json)
                harness_of(app).succeed(job)

    def produce(number: int) -> None:
        for n in range(25):
            draft.enqueue(100 * number + n)

    worker = threading.Thread(target=work)
    producers = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
    for thread in [worker, *producers]:
        thread.start()
    for thread in producers:
        thread.join()
    last = draft.enqueue(999)
    for _ in range(200):
        if '{"page":999}' in ran:
            break
        stop.wait(0.05)
    stop.set()
    worker.join()
    assert ran[-1] == '{"page":999}'
    assert app.client.get(last).state is State.SUCCEEDED  # type: ignore[union-attr]
    assert app.client.count(state=["pending", "queued", "running"]) == 0
    assert len(ran) <= 101


def test_a_transaction_that_takes_the_key_over_blocks_no_other_and_may_be_rolled_back(
    database: Database, app: App, index: Any
) -> None:
    """The job that runs settles meanwhile; if nothing comes of the one that follows, its key is free all the same."""
    if not database.is_postgres:
        pytest.skip("SQLite has one writer at a time")
    index.using(unique="k").enqueue(1)
    (running,) = harness_of(app).claim(1)
    with psycopg.connect(database.url) as connection:
        index.using(unique="k", replace=True, connection=connection).enqueue(2)
        harness_of(app).succeed(running)
        connection.rollback()
    assert app.client.count(state=["pending", "queued", "running"]) == 0
    third = index.using(unique="k").enqueue(3)
    assert (third.existing, third.state) == (False, State.QUEUED)
