"""The verbs of a program on its jobs, on every store: enqueue, look, steer, tenants, prune."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from relet import App, Draft, InvalidInput, Job, JobNotFound, KeyTaken, ReletError, State
from relet._core.ids import make_id
from relet._tasks.task import PlainTask
from relet.errors import InvalidPayload, InvalidTransition
from tests.databases import ids, inventory
from tests.harness import harness_of

AWKWARD: dict[str, Any] = {
    "unicode": "žluťoučký kůň 日本 🐎 \u2028",
    "quotes": """it's "quoted" `so` $$ $1 %s %(x)s :name ::text ? {now} {schema} -- /* */ ;""",
    "backslashes": "\\ \\\\ \\n \\u0041 \r\n\t\x7f",
    "percent": "100% %% %(x)s",
    "numbers": [1e22, -0.0, 2**53 + 1, -(2**63), 2**63 - 1, 1e-300, 0.1, 5e-324],
    "nested": {"a": [{"b": [[], {}, None, True, False]}], "": "empty key", ":x": "%s", "a.b": "'"},
    "repeated": ["same", "same"],
}


def hello(app: App, **options: Any) -> PlainTask[[str], str]:
    @app.task(**options)
    def greet(name: str) -> str:
        return f"Hello, {name}"

    return greet


def echo(app: App) -> PlainTask[..., Any]:
    @app.task
    def echo(value: Any = None) -> Any:
        return value

    task: PlainTask[..., Any] = echo
    return task


# enqueue


def test_an_enqueued_job_is_there(app: App) -> None:
    greet = hello(app, queue="polite", priority=3, max_attempts=7)
    before = time.time()
    job = greet.enqueue("Ada")
    assert (job.state, job.queue, job.priority, job.max_attempts) == (State.QUEUED, "polite", 3, 7)
    assert (job.attempt, job.version, job.losses, job.existing) == (0, 0, 0, False)
    assert (job.chain, job.position) == (job.id, 0)
    assert abs(job.created_at.timestamp() - before) < 5
    assert job.run_at == job.created_at
    assert app.client.get(job) == job
    assert app.client.get(job.id) == app.client.get(uuid.UUID(job.id)) == job


def test_enqueue_and_get_return_the_same_job(app: App) -> None:
    greet = hello(app)
    first = greet.enqueue("first")
    for prepared in (
        greet.using(delay=60),
        greet.using(target="acct-7"),
        greet.using(unique="k"),
        greet.using(unique="w", unique_for=60),
        greet.using(depends_on=[first], priority=-100),
        greet.using(id=make_id(time.time(), b"0123456789")),
    ):
        job = prepared.enqueue("Ada")
        assert app.client.get(job) == job


def test_an_awkward_payload_comes_back_as_it_went_in(app: App) -> None:
    task = echo(app)
    job = task.enqueue(AWKWARD)
    stored = app.client.get(job)
    assert stored is not None
    (arguments, _) = app.lookup(job.task).arguments(stored.payload_json)
    assert repr(arguments) == repr((AWKWARD,)), "repr, because -0.0 == 0.0 and 1e22 == 10**22"
    assert stored.payload_json == job.payload_json
    (claimed,) = harness_of(app).claim(1)
    assert claimed.payload_json == job.payload_json


def test_awkward_results_come_back_as_they_went_in(app: App) -> None:
    job = echo(app).enqueue()
    app.client.complete(job, AWKWARD)
    assert repr(app.client.result(job)) == repr(AWKWARD)


def test_many_drafts_are_stored_in_order(app: App) -> None:
    task = echo(app)
    drafts = [task.draft(n) for n in range(5000)]
    jobs = app.client.enqueue_many(drafts)
    assert ids(jobs) == [draft.id for draft in drafts]
    assert app.client.count() == 5000
    taken = harness_of(app).claim(5000)
    assert [job.id for job in taken] == [draft.id for draft in drafts], "first in, first out"


def test_no_drafts_are_no_jobs(app: App) -> None:
    assert app.client.enqueue_many([]) == []


def test_mixed_drafts_are_stored_together(app: App) -> None:
    greet, task = hello(app), echo(app)
    blocker = greet.draft("first")
    kept = task.using(unique="kept").enqueue(0)
    jobs = app.client.enqueue_many(
        [
            greet.using(target="t", priority=5).draft("target"),
            task.using(unique="kept").draft(1),
            task.using(depends_on=[blocker]).draft(2),
            blocker,
            task.using(delay=100, queue="later").draft(3),
            task.using(unique="fresh").draft(4),
            task.using(unique="fresh").draft(5),
        ]
    )
    assert [job.wait for job in jobs] == ["target", None, "jobs", None, "time", None, None]
    assert [job.existing for job in jobs] == [False, True, False, False, False, False, True]
    assert jobs[1].id == kept.id
    assert jobs[6].id == jobs[5].id, "of two drafts with one key the first is stored"
    assert app.client.count() == 6


def test_drafts_may_name_each_other_in_any_order(app: App) -> None:
    task = echo(app)
    last = task.draft("bottom")
    middle = task.using(depends_on=[last]).draft("middle")
    top = task.using(depends_on=[middle, last]).draft("top")
    jobs = app.client.enqueue_many([top, middle, last])
    assert [job.state for job in jobs] == ["pending", "pending", "queued"]
    assert [one.chain for one in app.client.dependencies(top.id)] == [middle.id, last.id]
    for expected in (last, middle, top):
        harness_of(app).promote_all()
        (job,) = harness_of(app).claim(10)
        assert job.id == expected.id
        harness_of(app).succeed(job, '"done"')
    assert [one.result_json for one in app.client.dependencies(top.id)] == ['"done"', '"done"']


def circle(task: PlainTask[..., Any]) -> list[Draft[Any]]:
    one, two = task.draft(1), task.draft(2)
    return [task.using(id=one.id, depends_on=[two]).draft(1), task.using(id=two.id, depends_on=[one]).draft(2)]


def stranger(task: PlainTask[..., Any]) -> list[Draft[Any]]:
    return [task.draft(1), task.using(depends_on=[make_id(time.time(), b"no such id")], unique="k").draft(2)]


def twins(task: PlainTask[..., Any]) -> list[Draft[Any]]:
    draft = task.draft(1)
    return [draft, task.draft(2), draft]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [(circle, InvalidInput, "circle"), (stranger, JobNotFound, "no such job"), (twins, InvalidInput, "same id")],
)
def test_drafts_that_make_no_sense_together_are_refused_as_a_whole(
    app: App, make: Callable[[Any], list[Draft[Any]]], error: type[Exception], says: str
) -> None:
    task = echo(app)
    task.enqueue("so that the tables are there")
    before = inventory(app._store())
    with pytest.raises(error, match=says):
        app.client.enqueue_many(make(task))
    assert inventory(app._store()) == before


# the same again


@pytest.mark.parametrize("finished", [False, True], ids=["live", "finished"])
def test_an_id_that_exists_returns_its_job(app: App, finished: bool) -> None:
    task = echo(app)
    job_id = make_id(time.time(), b"0123456789")
    first = task.using(id=job_id).enqueue(1)
    if finished:
        app.client.complete(first, "done")
    again = task.using(id=job_id).enqueue(2)
    assert again.existing
    assert again.payload_json == first.payload_json
    assert again.state == (State.SUCCEEDED if finished else State.QUEUED)
    assert app.client.count() == 1


@pytest.mark.parametrize("finished", [False, True], ids=["live", "finished"])
def test_a_draft_that_is_enqueued_twice_is_one_job(app: App, finished: bool) -> None:
    """As a program does that saw StoreUnavailable and tries again: the draft carries its id."""
    draft = echo(app).draft(1)
    first = app.client.enqueue(draft)
    if finished:
        app.client.complete(first, "done")
    again = app.client.enqueue(draft)
    assert (again.id, again.existing) == (first.id, True)
    assert app.client.count() == 1
    assert len(harness_of(app).claim(10)) == (0 if finished else 1)


def test_a_unique_key_has_one_live_job(app: App) -> None:
    once = echo(app).using(unique="k")
    first = once.enqueue(1)
    assert once.enqueue(2).id == first.id
    assert once.enqueue(2).existing
    app.client.complete(first)
    second = once.enqueue(3)
    assert (second.id != first.id, second.existing) == (True, False)


def test_a_window_outlives_its_job(app: App) -> None:
    once = echo(app).using(unique="k", unique_for=3600)
    first = once.enqueue(1)
    app.client.complete(first, "done")
    again = once.enqueue(2)
    assert (again.id, again.existing, again.state) == (first.id, True, State.SUCCEEDED)


@pytest.mark.parametrize("how", ["deleted", "pruned"])
def test_a_window_whose_job_is_gone_still_refuses_its_key(app: App, how: str) -> None:
    """There is no job to return, so the error names the one that had the key."""
    once = echo(app).using(unique="k", unique_for=3600)
    first = once.enqueue(1)
    if how == "deleted":
        app.client.delete(first)
    else:
        app.client.complete(first, "done")
        time.sleep(0.01)
        assert app.client.prune(keep_finished=0).finished == 1
    with pytest.raises(KeyTaken) as refused:
        once.enqueue(2)
    assert refused.value.holder == first.id


def test_a_key_given_up_by_a_failure_and_taken_by_another_stops_resume(app: App) -> None:
    once = echo(app).using(unique="k")
    first = once.enqueue(1)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    second = once.enqueue(2)
    assert not second.existing
    with pytest.raises(KeyTaken, match=second.id):
        app.client.resume(first)


# steering


def test_cancel_ends_a_job(app: App) -> None:
    job = echo(app).enqueue()
    assert app.client.cancel(job).state is State.CANCELLED
    with pytest.raises(InvalidTransition, match=f"cannot cancel job {job.id}: it is cancelled"):
        app.client.cancel(job)


def test_a_running_job_is_asked(app: App) -> None:
    job = echo(app).enqueue()
    harness_of(app).claim(1)
    asked = app.client.cancel(job)
    assert (asked.state, asked.request) == (State.RUNNING, "cancel")


def test_pause_and_resume(app: App) -> None:
    job = echo(app).enqueue()
    assert app.client.pause(job).state is State.PAUSED
    assert harness_of(app).claim(1) == []
    assert app.client.resume(job).state is State.PENDING
    assert harness_of(app).promote_all() == [job.id]
    assert len(harness_of(app).claim(1)) == 1


def test_a_failed_job_is_resumed_with_its_attempts_anew(app: App) -> None:
    job = echo(app).enqueue()
    harness_of(app).fail(harness_of(app).claim(1)[0])
    assert app.client.get(job).state is State.FAILED  # type: ignore[union-attr]
    assert app.client.resume(job).attempt == 0


def test_run_now_brings_a_time_forward(app: App) -> None:
    job = echo(app).using(delay=3600).enqueue()
    assert harness_of(app).promote_all() == []
    app.client.run_now(job)
    assert harness_of(app).promote_all() == [job.id]
    with pytest.raises(InvalidTransition, match="cannot run_now"):
        app.client.run_now(job)


def test_complete_ends_a_job_from_outside(app: App) -> None:
    job = hello(app).using(delay=3600).enqueue("Ada")
    with pytest.raises(InvalidPayload, match="does not fit its annotation"):
        app.client.complete(job, {"x": 1})
    done = app.client.complete(job, "by hand")
    assert (done.state, done.result_json) == (State.SUCCEEDED, '"by hand"')


def test_a_chain_goes_on_with_another_job(app: App) -> None:
    task = echo(app)
    first = task.enqueue(1)
    second, third = task.draft(2), task.draft(3)
    app.client.complete(first, continue_with=second)
    app.client.complete(second.id, continue_with=third)
    assert ids([*app.client.chain(first)]) == ids([*app.client.chain(third.id)]) == [first.id, second.id, third.id]
    assert [job.position for job in app.client.chain(second.id)] == [0, 1, 2]
    assert [job.continued for job in app.client.chain(second.id)] == [True, True, False]


@pytest.mark.parametrize("finished", [False, True], ids=["live", "finished"])
def test_a_chain_cannot_go_on_with_a_job_that_exists(app: App, finished: bool) -> None:
    """It would end in silence: marked as continued, with nothing behind it."""
    task = echo(app)
    first = task.enqueue(1)
    other = task.draft(2)
    app.client.enqueue(other)
    if finished:
        app.client.complete(other.id)
    with pytest.raises(ReletError, match=other.id):
        app.client.complete(first, continue_with=other)
    assert app.client.get(first).state is State.QUEUED  # type: ignore[union-attr]


def test_a_deleted_job_is_gone(app: App) -> None:
    job = echo(app).enqueue()
    done = echo_done(app)
    for one in (job, done):
        app.client.delete(one)
        assert app.client.get(one) is None
        with pytest.raises(JobNotFound, match=one.id):
            app.client.delete(one)


def echo_done(app: App) -> Job[Any]:
    return app.client.complete(app.lookup("echo").enqueue())


VERBS = ["cancel", "pause", "resume", "run_now", "complete", "delete", "explain", "attempts", "chain", "wait", "result"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_job_that_never_was_is_not_found(app: App, verb: str) -> None:
    unknown = make_id(time.time(), b"no such id")
    assert app.client.get(unknown) is None
    with pytest.raises(JobNotFound, match=unknown):
        getattr(app.client, verb)(unknown)


def test_attempts_are_told_in_order(app: App) -> None:
    job = echo(app).enqueue()
    assert app.client.attempts(job) == []
    harness_of(app).fail(harness_of(app).claim(1, worker="w1")[0], "first")
    app.client.resume(job)
    harness_of(app).promote_all()
    (second,) = harness_of(app).claim(1, worker="w2")
    first, now = app.client.attempts(job)
    assert (first.worker, first.outcome, first.error, first.version) == ("w1", "failed", "first", 1)
    assert first.ended_at is not None
    assert first.ended_at >= first.started_at
    assert (now.worker, now.outcome, now.ended_at, now.version) == ("w2", "running", None, 2)
    harness_of(app).succeed(second)
    assert [record.outcome for record in app.client.attempts(job)] == ["failed", "succeeded"]


# the async client says the same


def test_the_async_client_does_all_that_the_plain_one_does(app: App) -> None:
    task = echo(app)

    async def day() -> None:
        client = app.aclient
        await client.migrate()
        job = await task.aenqueue({"x": 1})
        assert await client.get(job) == job
        more = await client.enqueue_many(
            [task.draft(1), task.using(depends_on=[job]).draft(2), task.using(delay=60).draft(3)]
        )
        assert await client.count() == 4
        assert [one.id for one in (await client.jobs(limit=1)).jobs] == [max(job.id, *ids(more))]
        assert (await client.dependencies(more[1]))[0].chain == job.id
        assert "no worker is running" in (await client.explain(job))[0]
        assert await client.attempts(job) == []
        assert (await client.pause(more[0])).state is State.PAUSED
        assert (await client.resume(more[0])).state is State.PENDING
        assert (await client.run_now(more[2])).run_at < more[2].run_at
        assert (await client.cancel(more[2])).state is State.CANCELLED
        await client.pause_queue("default")
        await client.limit_queue("default", max_running=3)
        assert [(info.paused, info.max_running) for info in await client.queues()] == [(True, 3)]
        await client.resume_queue("default")
        successor = task.draft("next")
        await client.complete(job, "first", continue_with=successor)
        await client.complete(successor.id, "last")
        assert await client.result(job, timeout=5) == "last"
        assert (await client.wait(job, timeout=5)).id == successor.id
        assert [one.id for one in await client.chain(job)] == [job.id, successor.id]
        await client.delete(more[0])
        assert await client.get(more[0]) is None
        await client.cancel(more[1])
        time.sleep(0.01)
        # A job that another waits for is kept; once the other is gone, the next prune deletes it.
        assert sum([(await client.prune(keep_finished=0)).finished for _ in range(2)]) == 4
        with pytest.raises(JobNotFound):
            await client.cancel(job)

    asyncio.run(day())
