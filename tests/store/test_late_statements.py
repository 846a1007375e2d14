"""Statements that the server runs after the client has given up, repeated the call, and seen the job end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from relet import App, Draft
from relet._core.job import State, Succeeded
from relet._store.flows.enqueue import enqueue_again, enqueue_directly
from relet._tasks.task import Task
from relet.errors import JobNotFound
from tests.databases import inventory
from tests.harness import LEASE, StoreHarness, token


@pytest.fixture
def add(pg_app: App) -> Task[[int], int]:
    @pg_app.task
    def add(number: int) -> int:
        return number + 1

    return add


def send(app: App, drafts: list[Draft[int]]) -> None:
    """One try of a call that enqueues fresh jobs."""
    app._store().run(enqueue_directly, drafts)


def test_one_that_enqueues_a_job_does_not_revive_it(pg_app: App, add: Task[[int], int]) -> None:
    draft = add.draft(1)
    send(pg_app, [draft])
    pg_app.client.complete(draft.id, 2)
    send(pg_app, [draft])
    assert pg_app.client.count(state=["queued"]) == 0
    assert pg_app.client.get(draft.id).state == "succeeded"  # type: ignore[union-attr]


def test_one_that_enqueues_many_jobs_revives_none_of_them(pg_app: App, add: Task[[int], int]) -> None:
    drafts = [add.draft(number) for number in range(5)]
    send(pg_app, drafts)
    for draft in drafts:
        pg_app.client.complete(draft.id, 2)
    send(pg_app, drafts)
    assert pg_app.client.count(state=["queued"]) == 0


def test_a_repeated_enqueue_makes_no_job_again_that_was_deleted_meanwhile(app: App) -> None:
    """The answer of the first try was lost. Found by torture, seed 3, with a failover."""

    @app.task
    def add(number: int) -> int:
        return number + 1

    plain, waiting, targeted = add.draft(1), add.using(unique="key").draft(2), add.using(target="t").draft(3)
    drafts = [plain, waiting, targeted]
    send(app, drafts)
    for draft in drafts:
        app.client.delete(draft.id)
    jobs = app._store().run(enqueue_again, drafts)
    assert [job.id for job in jobs] == [draft.id for draft in drafts]
    assert not any(job.existing for job in jobs)
    assert app.client.count() == 0
    assert inventory(app._store())["keys"] == 0
    assert [job.id for job in app._store().run(enqueue_again, [add.draft(4)])] != [plain.id]
    assert app.client.count() == 1


def test_a_repeated_enqueue_makes_a_job_whose_deletion_found_none(app: App) -> None:
    """The first try did not reach the database, and the deletion came before the second."""

    @app.task
    def add(number: int) -> int:
        return number + 1

    draft = add.draft(1)
    app.client.migrate()
    with suppress(JobNotFound):
        app.client.delete(draft.id)
    app._store().run(enqueue_again, [draft])
    assert app.client.count() == 1


def test_jobs_that_were_enqueued_in_the_same_millisecond_as_others_that_are_over(
    pg_app: App, add: Task[[int], int]
) -> None:
    """Their ids lie between those of others, which is why each of them is looked up."""
    drafts = sorted((add.draft(number) for number in range(30)), key=lambda draft: draft.id)
    send(pg_app, drafts[10:20])
    for draft in drafts[10:20]:
        pg_app.client.complete(draft.id, 2)
    send(pg_app, drafts[:10] + drafts[20:])
    assert pg_app.client.count(state=["queued"]) == 20


def test_a_claim_that_the_server_runs_late_leases_with_another_token(harness: StoreHarness) -> None:
    """The worker has repeated it meanwhile, and the attempt that the repeat began has ended."""
    mark = token()
    harness.add()
    (job,) = harness.claim(token=mark, again=True)
    harness.release(job)
    (late,) = harness.claim(token=mark)
    assert late.id == job.id
    assert harness.settle((job.lease, Succeeded("1"))) == [None]
    assert [one.lease for one in harness.claim(token=mark, again=True)] == [late.lease]


def test_a_claim_that_is_repeated_after_its_leases_were_reaped_leases_with_another_token(harness: StoreHarness) -> None:
    """The answer was lost, and the worker stood still for longer than a lease. Found by the simulation, seed 956."""
    mark = token()
    harness.add()
    (first,) = harness.claim(token=mark)
    harness.later(LEASE + 1).reap()
    (second,) = harness.claim(token=mark, again=True)
    assert (second.id, second.version) == (first.id, 2)
    assert harness.renew(first.lease).lost == [first.lease]
    assert harness.settle((first.lease, Succeeded("1")), (second.lease, Succeeded("2"))) == [None, State.SUCCEEDED]
