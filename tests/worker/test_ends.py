"""What a worker remembers of the attempts that it has settled, for a failover that undoes them."""

from __future__ import annotations

from typing import Any

import pytest

from relet import App, Job, events
from relet._core.job import Lease
from relet._worker import ends as module
from relet._worker.ends import BEFORE_LOSS, End, Ends, in_batches
from relet.errors import StoreUnavailable
from tests.worker.working import over, until, working


def test_only_the_last_ends_are_remembered(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind of attempt: those that are settled in one statement, and the others."""
    monkeypatch.setattr(module, "REMEMBERED", 3)
    made: list[Ends] = []
    jobs: list[Job[Any]] = []
    monkeypatch.setattr("relet._worker.lease_table.Ends", lambda: added(made))

    @app.task(max_attempts=1)
    def work(number: int) -> None:
        if number == 4:
            raise ValueError("no")

    with working(app, concurrency=1):
        for number in range(5):
            jobs.append(work.enqueue(number))
            over(app, jobs[-1])
    found = [end for one in made for end in one.since(0.0)]
    assert [end.lease.id for end in found] == [job.id for job in jobs[2:]]
    assert {(end.task, end.queue, end.version, end.attempt) for end in found} == {("work", "default", 1, 1)}


@pytest.mark.parametrize("keep", [3600.0, 0.0])
def test_a_job_that_is_gone_after_a_loss_is_reported_unless_it_may_have_been_pruned(
    app: App, caplog: pytest.LogCaptureFixture, keep: float
) -> None:
    undone: list[events.Undone] = []
    app.on(events.Undone)(undone.append)

    @app.task
    def work() -> None: ...

    with working(app, keep_finished=keep) as worker:
        (session,) = worker._sessions
        job = work.enqueue()
        until(lambda: session._context.leases.ends.since(0.0))
        app.client.delete(job)
        session.reporter._undone.check_ends()
        assert not undone, "no connection was lost"
        session.heartbeat._store._outages.failed(StoreUnavailable("gone"))
        session.reporter._undone.check_ends()
        session.reporter._undone.check_ends()
    reported = [one.getMessage() for one in caplog.records if "any more" in one.getMessage()]
    if keep:
        assert [(one.job_id, one.state, one.version) for one in undone] == [(job.id, None, 1)]
        assert [line[: len("work ") + len(job.id)] for line in reported] == [f"work {job.id}"]
    else:
        assert not undone
        assert not reported


def added(made: list[Ends]) -> Ends:
    made.append(Ends())
    return made[-1]


def test_ends_long_before_a_loss_are_not_compared_with_the_database() -> None:
    ends = Ends()
    some = [End(Lease(str(number), "t"), 1, 1, "work", "default", float(number)) for number in range(100)]
    ends._ends = {end.lease: end for end in some}
    assert ends.since(99.0 + BEFORE_LOSS) == some[-1:]
    assert ends.among([some[3].lease, Lease("3", "another")]) == [some[3]]
    ends.forget(some[:99])
    assert ends.since(0.0) == some[99:]
    assert [len(batch) for batch in in_batches(some, 40)] == [40, 40, 20]


def test_the_first_loss_counts_until_it_is_taken() -> None:
    """Also by a session that is opened after the one that lost the connection was closed."""
    ends = Ends()
    assert ends.take_loss() is None
    ends.lost_connection(1.0)
    ends.lost_connection(2.0)
    assert ends.take_loss() == 1.0
    assert ends.take_loss() is None
