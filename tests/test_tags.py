"""Tags, filters by group, unique key and arguments, and reruns."""

from __future__ import annotations

from typing import Any

import pytest

from relet import App, InvalidInput, JobNotFound, new_id
from relet._store.flows import search
from relet.codecs import ZlibCodec
from tests.databases import inventory
from tests.harness import harness_of


def pay(account: str, cents: int = 5, more: dict[str, Any] | None = None) -> None: ...


@pytest.fixture(autouse=True)
def _task(app: App) -> None:
    app.task(pay)
    app.client.migrate()


def found(app: App, **which: Any) -> list[str]:
    return sorted(job.payload["account"] for job in app.client.jobs(**which).jobs)


def test_jobs_are_found_by_tag_while_they_wait_and_when_they_are_over(app: App) -> None:
    task = app.tasks["pay"]
    job = task.using(tags=["vip", "eu", "vip"]).enqueue("a")
    task.using(tags=["eu"]).enqueue("b")
    task.enqueue("c")
    assert job.tags == ("eu", "vip")
    assert found(app, tag="eu") == ["a", "b"]
    assert found(app, tag="vip") == ["a"]
    assert found(app, tag="v") == []
    harness_of(app).succeed(harness_of(app).claim(1)[0])
    over = app.client.get(job)
    assert over is not None
    assert (over.state, over.tags) == ("succeeded", ("eu", "vip"))
    assert found(app, tag="vip", state="succeeded") == ["a"]
    assert app.client.count(tag="eu") == 2
    assert app.client.bulk("cancel", tag="eu").done == 1


def test_pages_of_a_tag_read_no_jobs_without_it(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_TAGGED", 2)
    task, jobs = app.tasks["pay"], list[str]()
    for number in range(5):
        jobs.append(task.using(tags=["vip"], queue=f"q{number % 2}").enqueue("a").id)
        app.client.enqueue_many([task.draft("other") for _ in range(10)])
    newest = sorted(jobs, reverse=True)  # ids of the same millisecond are in any order
    app.client.cancel(newest[0])
    assert [job.id for job in app.client.jobs(tag="vip", scan=2).jobs] == newest[:2]
    page = app.client.jobs(tag="vip", queue="q1", scan=100, limit=1)
    found = page.jobs
    while page.cursor is not None:  # a page may be short, or empty
        page = app.client.jobs(tag="vip", queue="q1", scan=100, limit=1, cursor=page.cursor)
        found += page.jobs
    assert [job.id for job in found] == [id for id in newest if id in (jobs[1], jobs[3])]
    assert [job.id for job in app.client.jobs(tag="vip", limit=3).jobs] == newest[:3]


def test_many_drafts_keep_their_order_with_tags(app: App) -> None:
    task = app.tasks["pay"]
    drafts = [task.using(tags=[f"n{n % 2}"] if n % 3 else None).draft(str(n)) for n in range(10)]
    jobs = app.client.enqueue_many(drafts)
    assert [job.payload["account"] for job in jobs] == [str(n) for n in range(10)]
    assert [job.tags for job in jobs] == [(f"n{n % 2}",) if n % 3 else () for n in range(10)]
    assert len(harness_of(app).claim(10)) == 10


def test_tags_go_with_their_jobs(app: App) -> None:
    task = app.tasks["pay"]
    kept = task.using(tags=["x"]).enqueue("a")
    gone = task.using(tags=["x"]).enqueue("b")
    app.client.rerun(gone)
    app.client.delete(gone)
    harness_of(app).succeed(harness_of(app).claim(1)[0])
    assert inventory(app._store())["tags"] == 2
    app.client.prune(keep_finished=0)
    assert app.client.get(kept) is None
    assert inventory(app._store())["tags"] == 1


def test_jobs_are_found_by_group_and_unique_key(app: App) -> None:
    task = app.tasks["pay"]
    task.using(group="acme").enqueue("a")
    task.using(unique="once").enqueue("b")
    task.enqueue("c")
    assert found(app, group="acme") == ["a"]
    assert found(app, unique="once") == ["b"]
    assert found(app, group="other") == []


def test_jobs_are_found_by_the_values_of_arguments(app: App) -> None:
    task = app.tasks["pay"]
    task.enqueue("a", 7)
    task.enqueue("b", 7, {"x": [1, {"y": None}]})
    task.enqueue("c", 8)
    assert found(app, payload={"cents": 7}) == ["a", "b"]
    assert found(app, payload={"cents": 7, "account": "b"}) == ["b"]
    assert found(app, payload='{"account": "c"}') == ["c"]
    assert found(app, payload={"more": {"x": [1, {"y": None}]}}) == ["b"]
    assert found(app, payload={"cents": "7"}) == []
    assert found(app, payload={"missing": None}) == []
    for bad in ("[1]", "{", 5, {"a": object()}):
        with pytest.raises(InvalidInput, match="payload must be arguments and their values, as in"):
            app.client.jobs(payload=bad)  # type: ignore[arg-type]


def test_encoded_arguments_cannot_be_searched() -> None:
    app = App("sqlite:///:memory:", codecs=[ZlibCodec()])
    app.task(pay)
    app.client.migrate()
    with pytest.raises(InvalidInput, match="payload cannot be searched: a codec encodes the payloads of task pay"):
        app.client.jobs(task="pay", payload={"cents": 7})
    with pytest.raises(InvalidInput, match="payloads of tasks of this app"):
        app.client.count(payload={"cents": 7})


def test_a_rerun_is_a_new_job_with_the_same_arguments(app: App) -> None:
    task = app.tasks["pay"]
    job = task.using(
        queue="till", priority=3, group="acme", tags=["eu"], unique="once", target="acct", max_attempts=9
    ).enqueue("a", 7)
    rerun = app.client.rerun(job)
    assert (rerun.rerun_of, rerun.payload) == (job.id, {"account": "a", "cents": 7})
    assert (rerun.queue, rerun.priority, rerun.group, rerun.tags) == ("till", 3, "acme", ("eu",))
    assert (rerun.target, rerun.unique, rerun.max_attempts) == ("acct", None, 4)
    assert app.client.get(rerun).rerun_of == job.id  # type: ignore[union-attr]
    assert app.client.get(job).state == job.state  # type: ignore[union-attr]


def test_finished_and_failed_jobs_are_rerun_with_edited_arguments(app: App) -> None:
    task = app.tasks["pay"]
    done, failed = task.enqueue("a", 7), task.enqueue("b", 7)
    harness_of(app).succeed(harness_of(app).claim(1)[0])
    harness_of(app).fail(harness_of(app).claim(1)[0])
    rerun = app.client.rerun(done, arguments={"cents": 9})
    assert rerun.payload == {"account": "a", "cents": 9}
    assert app.client.get(done).state == "succeeded"  # type: ignore[union-attr]
    assert app.client.rerun(failed).state == "queued"
    assert app.client.get(failed).state == "failed"  # type: ignore[union-attr]
    harness_of(app).succeed(next(one for one in harness_of(app).claim(5) if one.id == rerun.id))
    assert app.client.get(rerun).rerun_of == done.id  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="cents"):
        app.client.rerun(done, arguments={"cents": "many"})
    with pytest.raises(InvalidInput, match="unknown"):
        app.client.rerun(done, arguments={"unknown": 1})
    for value in (float("nan"), 2**70, "\ud800"):
        with pytest.raises(InvalidInput, match=r"the arguments.more\.x: "):
            app.client.rerun(done, arguments={"more": {"x": value}})
    with pytest.raises(JobNotFound):
        app.client.rerun(new_id())


def test_a_rerun_is_audited_and_repeated_once(app: App) -> None:
    job = app.tasks["pay"].enqueue("a")
    client = app.client.acting_as("ann")
    first = client.idempotent("again").rerun(job)
    assert client.idempotent("again").rerun(job).id == first.id
    assert app.client.count() == 2
    (entry,) = app.client.audit().entries
    assert (entry.what, entry.subject) == ("rerun", job.id)


def test_a_job_of_an_unknown_task_is_rerun_unchanged_only(app: App) -> None:
    job = app.tasks["pay"].using(max_attempts=9).enqueue("a")
    app._tasks.clear()
    assert app.client.rerun(job).max_attempts == 9
    with pytest.raises(InvalidInput, match="which this app does not define: rerun it unchanged"):
        app.client.rerun(job, arguments={"cents": 1})


def test_bad_tags_are_refused(app: App) -> None:
    task = app.tasks["pay"]
    for bad in ("vip", [""], [1], ["x"] * 33):
        with pytest.raises(InvalidInput, match="tag"):
            task.using(tags=bad)  # type: ignore[arg-type]
