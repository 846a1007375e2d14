"""Limits by group: how many jobs of one group run at once."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from relet import App
from relet._core.job import Claimed, Outcome, Raised, Released, Snoozed
from relet._store.flows import lease as leases
from relet._store.flows import limits
from relet._store.flows.claim_one import claim_one
from relet.errors import InvalidTransition
from tests.harness import harness_of

GROUPS = 10_000


@pytest.fixture(autouse=True)
def _tasks(request: pytest.FixtureRequest) -> None:
    if "app" in request.fixturenames:
        app: App = request.getfixturevalue("app")
        app.task(name="work")(work)
        app.client.migrate()


def work() -> None: ...


def add(app: App, groups: str, **options: Any) -> None:
    """Enqueue a job for each letter, which is its group; a space stands for no group."""
    task = app.tasks["work"]
    app.client.enqueue_many([task.using(group=group.strip() or None, **options).draft() for group in groups])


def groups(jobs: list[Claimed]) -> str:
    return "".join(sorted(job.group or " " for job in jobs))


def test_each_group_runs_so_many_jobs_at_once(app: App) -> None:
    app.client.limit_queue("default", max_running=2, group="*")
    add(app, "aaaabbbc  ")
    jobs = harness_of(app).claim(10)
    assert groups(jobs) == "  aabbc"
    assert harness_of(app).claim(10) == []
    (first, *_) = [job for job in jobs if job.group == "b"]
    harness_of(app).succeed(first)
    assert groups(harness_of(app).claim(10)) == "b"


def test_a_single_group_may_have_another_limit(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    app.client.limit_queue("default", max_running=3, group="b")
    app.client.limit_queue("default", max_running=0, group="c")
    add(app, "aaabbbbbcc")
    assert groups(harness_of(app).claim(10)) == "abbb"


def test_a_limit_for_one_group_leaves_others_alone(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="a")
    add(app, "aabbb ")
    assert groups(harness_of(app).claim(10)) == " abbb"


def test_the_limits_of_queue_and_group_hold_together(app: App) -> None:
    app.client.limit_queue("default", max_running=3)
    app.client.limit_queue("default", max_running=2, group="*")
    add(app, "aaabbb")
    first = harness_of(app).claim(10)
    assert len(first) == 3
    assert groups(first) in ("aab", "abb")


def test_a_limit_of_jobs_that_are_already_queued_holds(app: App) -> None:
    add(app, "aaab")
    app.client.limit_queue("default", max_running=1, group="*")
    assert groups(harness_of(app).claim(10)) == "ab"


def test_raising_and_removing_a_limit_lets_jobs_start(app: App) -> None:
    app.client.limit_queue("default", max_running=0, group="*")
    add(app, "aaaab")
    assert harness_of(app).claim(10) == []
    app.client.limit_queue("default", max_running=1, group="*")
    assert groups(harness_of(app).claim(10)) == "ab"
    app.client.limit_queue("default", max_running=2, group="a")
    assert groups(harness_of(app).claim(10)) == "a"
    app.client.limit_queue("default", max_running=None, group="*")
    app.client.limit_queue("default", max_running=None, group="a")
    assert groups(harness_of(app).claim(10)) == "aa"
    (info,) = app.client.queues()
    assert info.group_limits == ()


@pytest.mark.parametrize("end", ["succeed", "retry", "fail", "release", "snooze", "cancel"])
def test_an_attempt_that_ends_makes_room_in_its_group(app: App, end: str) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "aa")
    (job,) = harness_of(app).claim(10)
    assert harness_of(app).claim(10) == []
    if end == "cancel":
        app.client.cancel(job.id)
        harness_of(app).end(job, Raised("stopped"))
    elif end == "succeed":
        harness_of(app).succeed(job)
    elif end == "fail":
        harness_of(app).fail(job)
    else:
        outcomes: dict[str, Outcome] = {"retry": Raised("no"), "release": Released(), "snooze": Snoozed(60.0)}
        harness_of(app).end(job, outcomes[end])
    (other,) = harness_of(app).claim(10)
    assert other.group == "a"
    assert (other.id == job.id) is (end == "release")
    assert harness_of(app).claim(10) == []


def test_a_reaped_job_makes_room_in_its_group(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "aa")
    assert len(harness_of(app).claim(10, lease=0.001)) == 1
    reaped: list[Any] = []
    while not reaped:
        harness_of(app).record_pulse()
        reaped = app._store().run(leases.reap, lambda: 0.5)
    harness_of(app).promote_all()
    assert len(harness_of(app).claim(10)) == 1


def test_jobs_that_become_due_or_are_enqueued_later_are_found(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "a", delay=0.001)
    promoted: list[str] = []
    while not promoted:
        promoted = harness_of(app).promote_all()
    assert groups(harness_of(app).claim(10)) == "a"
    add(app, "b")
    assert groups(harness_of(app).claim(10)) == "b"
    add(app, "c", priority=5)
    add(app, "d", target="t")
    harness_of(app).promote_all()
    assert groups(harness_of(app).claim(10)) == "cd"


def test_groups_of_unknown_tasks_stay_ready_for_workers_that_know_them(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "a")
    known = dict(app._tasks)
    app._tasks.clear()
    assert harness_of(app).claim(10) == []
    app._tasks.update(known)
    assert groups(harness_of(app).claim(10)) == "a"


@pytest.mark.long
def test_free_groups_are_served_at_once_beside_ten_thousand_full_ones(app: App) -> None:
    """One claim finds all of them: it reads no full group."""
    app.client.limit_queue("default", max_running=1, group="*")
    task = app.tasks["work"]
    names = [f"full {n:05}" for n in range(GROUPS)]
    for _ in range(2):
        app.client.enqueue_many([task.using(group=name).draft() for name in names])
    taken = 0
    while taken < GROUPS:
        jobs = harness_of(app).claim(2000)
        assert jobs
        taken += len(jobs)
    while app._store().run(limits._take_nudges, "default"):
        assert harness_of(app).claim(100) == []
    add(app, "abcdefghij")
    assert groups(harness_of(app).claim(100)) == "abcdefghij"


def test_groups_that_no_nudge_named_are_found_again(app: App) -> None:
    """As a program of an earlier release enqueues: it leaves no nudges."""
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "ab")
    store = app._store()
    table = f"{store.quoted}." if store.dialect == "postgres" else f"{store.quoted}_"
    with store.begin() as transaction:
        transaction.raw.execute(
            f"delete from {table}{'group_nudges' if store.dialect == 'postgres' else 'ready_groups'}"
        )
    assert harness_of(app).claim(10) == []
    app._store().run(limits.find_ready, "default")
    assert groups(harness_of(app).claim(10)) == "ab"


def test_a_group_without_a_limit_stays_ready_when_a_claim_takes_all_that_it_wants(app: App) -> None:
    """One group has a limit, so that groups matter. The claims of two workers take turns, one job at a time."""
    app.client.limit_queue("default", max_running=1, group="z")
    add(app, "aab")
    found = [groups(harness_of(app).claim(1)) for _ in range(4)]
    assert sorted(found) == ["", "a", "a", "b"]


def test_a_running_job_that_is_deleted_makes_room_in_its_group(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "aa")
    (running,) = harness_of(app).claim(10)
    assert harness_of(app).claim(10) == []
    app.client.delete(running.id)
    assert groups(harness_of(app).claim(10)) == "a"


def test_a_job_that_is_claimed_by_its_id_counts_in_its_group(app: App) -> None:
    app.client.limit_queue("default", max_running=1, group="*")
    add(app, "aa")
    (running,) = harness_of(app).claim(10)
    (waiting,) = app.client.jobs(state="queued").jobs
    share = ("w2", str(uuid.uuid4()), waiting.id)
    with pytest.raises(InvalidTransition, match="limit"):
        app._store().run(claim_one, *share, ["work"], lease=30.0, random=random.random)
    harness_of(app).succeed(running)
    assert app._store().run(claim_one, *share, ["work"], lease=30.0, random=random.random).id == waiting.id
