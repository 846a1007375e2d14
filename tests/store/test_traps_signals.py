"""Signals, sleepers and steps, in every order of their transactions: who was told wakes, what is lost is not kept."""

from __future__ import annotations

import pytest

from relet._core.job import Snoozed, State
from relet._store.flows import completion, control, lease, maintenance, operations, settle
from relet._store.flows.operations import Operation
from tests.harness import StoreHarness, draft, half
from tests.store.interleave import Background

TEN_YEARS = 3e8


def told(harness: StoreHarness, id: str, name: str = "word") -> bool:
    return harness.run(control.signal, id, name, "1")


def test_a_signal_that_was_committed_before_the_snooze_wakes(harness: StoreHarness) -> None:
    job = harness.claim_new()
    assert told(harness, job.id)
    harness.promote_until_idle()  # no job sleeps yet: the nudge is taken for nothing
    harness.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    assert harness.promote().promoted == [job.id]


def test_a_signal_that_comes_after_the_snooze_wakes(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    harness.promote_until_idle()
    assert told(harness, job.id, "another word")
    harness.promote_until_idle()
    assert harness.state(job.id) is State.PENDING
    assert told(harness, job.id)
    assert harness.promote().promoted == [job.id]


def test_a_signal_under_way_while_the_job_falls_asleep_wakes_when_it_is_committed(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    sender = pg_harness.session()
    assert sender.leave_open(control.signal(job.id, "word", "1"))
    assert Background(lambda: pg_harness.settle((job.lease, Snoozed(TEN_YEARS, "word")))).result() == [State.PENDING]
    pg_harness.promote_until_idle()
    assert pg_harness.state(job.id) is State.PENDING
    sender.commit()
    assert pg_harness.promote().promoted == [job.id]


def test_a_snooze_under_way_while_the_signal_comes_wakes_when_it_is_committed(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    owner = pg_harness.session()
    owner.leave_open(settle.settle([(job.lease, Snoozed(TEN_YEARS, "word"))], half))
    assert Background(lambda: told(pg_harness, job.id)).result() is True
    pg_harness.promote_until_idle()
    owner.commit()
    assert pg_harness.promote().promoted == [job.id]


def test_a_sleeping_job_that_is_locked_is_woken_later(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    pg_harness.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    person = pg_harness.session()
    person.leave_open(control._lock(job.id, "run_now"))
    told(pg_harness, job.id)
    assert pg_harness.promote().promoted == []
    assert pg_harness.count("nudges", "kind = 'signal'") == 1
    person.roll_back()
    assert pg_harness.promote().promoted == [job.id]


@pytest.mark.parametrize("end", ["commit", "roll_back"])
def test_a_second_signal_of_a_name_waits_to_see_whether_the_first_happened(pg_harness: StoreHarness, end: str) -> None:
    job = pg_harness.claim_new()
    first = pg_harness.session()
    first.leave_open(control.signal(job.id, "word", "1"))
    second = Background(lambda: told(pg_harness, job.id))
    assert second.blocked
    getattr(first, end)()
    assert second.result() is (end == "roll_back")


def test_a_signal_that_is_repeated_because_its_answer_was_lost_has_happened(harness: StoreHarness) -> None:
    job = harness.claim_new()
    operation = Operation(draft().id, "signal", job.id)
    for _ in range(2):
        assert harness.run(operations.once, operation, control.signal, job.id, "word", "1")
    assert not told(harness, job.id)
    assert harness.count("signals") == 1


# Steps, which lock the job that they belong to


def test_a_step_under_way_does_not_keep_the_lease_from_being_renewed(pg_harness: StoreHarness) -> None:
    """A handler that keeps one step after another would lose its job otherwise."""
    job = pg_harness.claim_new()
    handlers = pg_harness.session()
    assert handlers.leave_open(completion.keep(job.lease, "step", "a", completion.Called("1"), None))
    assert list(Background(lambda: pg_harness.renew(job.lease)).result(5).renewed) == [job.lease]
    handlers.commit()


def test_a_job_is_not_taken_away_while_a_step_of_it_is_under_way(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    handlers = pg_harness.session()
    assert handlers.leave_open(completion.keep(job.lease, "step", "a", completion.Called("1"), None))
    assert pg_harness.later(100).reap() == [], "passed over"
    settling = Background(lambda: pg_harness.succeed(job))
    assert settling.blocked
    handlers.commit()
    assert settling.result() is State.SUCCEEDED


def test_a_step_that_waited_for_the_reaper_is_refused(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    pg_harness.later(100)
    pg_harness.run(maintenance.record_pulse, grace=0.0)
    reaper = pg_harness.session()
    assert len(reaper.leave_open(lease.reap(half))) == 1
    late = Background(lambda: pg_harness.run(completion.keep, job.lease, "step", "a", completion.Called("1"), None))
    assert late.blocked
    reaper.commit()
    assert late.result() is None
    assert pg_harness.count("steps") == 0
