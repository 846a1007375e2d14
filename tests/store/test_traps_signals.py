"""Signals, sleepers and steps, in every order of their transactions: who was told wakes, what is lost is not kept."""

from __future__ import annotations

import pytest

from relet._core.job import Snoozed, State
from relet._store.flows import completion, control, lease, maintenance, operations, settle
from relet._store.flows.operations import Operation
from tests.store.interleave import Background, Bench, draft, half

TEN_YEARS = 3e8


def told(b: Bench, id: str, name: str = "word") -> bool:
    return b.run(control.signal, id, name, "1")


def test_a_signal_that_was_committed_before_the_snooze_wakes(b: Bench) -> None:
    job = b.take()
    assert told(b, job.id)
    b.settle_down()  # nobody sleeps yet: the nudge is taken for nothing
    b.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    assert b.promote().promoted == [job.id]


def test_a_signal_that_comes_after_the_snooze_wakes(b: Bench) -> None:
    job = b.take()
    b.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    b.settle_down()
    assert told(b, job.id, "another word")
    b.settle_down()
    assert b.state(job.id) is State.PENDING
    assert told(b, job.id)
    assert b.promote().promoted == [job.id]


def test_a_signal_under_way_while_the_job_falls_asleep_wakes_when_it_is_committed(pg: Bench) -> None:
    job = pg.take()
    sender = pg.session()
    assert sender.leave_open(control.signal(job.id, "word", "1"))
    assert Background(lambda: pg.settle((job.lease, Snoozed(TEN_YEARS, "word")))).result() == [State.PENDING]
    pg.settle_down()
    assert pg.state(job.id) is State.PENDING
    sender.commit()
    assert pg.promote().promoted == [job.id]


def test_a_snooze_under_way_while_the_signal_comes_wakes_when_it_is_committed(pg: Bench) -> None:
    job = pg.take()
    owner = pg.session()
    owner.leave_open(settle.settle([(job.lease, Snoozed(TEN_YEARS, "word"))], half))
    assert Background(lambda: told(pg, job.id)).result() is True
    pg.settle_down()
    owner.commit()
    assert pg.promote().promoted == [job.id]


def test_a_sleeper_that_somebody_has_locked_is_woken_later(pg: Bench) -> None:
    job = pg.take()
    pg.settle((job.lease, Snoozed(TEN_YEARS, "word")))
    person = pg.session()
    person.leave_open(control._lock(job.id, "run_now"))
    told(pg, job.id)
    assert pg.promote().promoted == []
    assert pg.count("nudges", "kind = 'signal'") == 1
    person.roll_back()
    assert pg.promote().promoted == [job.id]


@pytest.mark.parametrize("end", ["commit", "roll_back"])
def test_a_second_signal_of_a_name_waits_to_see_whether_the_first_happened(pg: Bench, end: str) -> None:
    job = pg.take()
    first = pg.session()
    first.leave_open(control.signal(job.id, "word", "1"))
    second = Background(lambda: told(pg, job.id))
    assert second.blocked
    getattr(first, end)()
    assert second.result() is (end == "roll_back")


def test_a_signal_that_is_repeated_because_its_answer_was_lost_has_happened(b: Bench) -> None:
    job = b.take()
    operation = Operation(draft().id, "signal", job.id)
    for _ in range(2):
        assert b.run(operations.once, operation, control.signal, job.id, "word", "1")
    assert not told(b, job.id)
    assert b.count("signals") == 1


# Steps, which lock the job that they belong to


def test_a_step_under_way_does_not_keep_the_lease_from_being_renewed(pg: Bench) -> None:
    """A handler that keeps one step after another would lose its job otherwise."""
    job = pg.take()
    handlers = pg.session()
    assert handlers.leave_open(completion.keep(job.lease, "step", "a", "1", None))
    assert list(Background(lambda: pg.renew(job.lease)).result(5).renewed) == [job.lease]
    handlers.commit()


def test_a_job_is_not_taken_away_while_a_step_of_it_is_under_way(pg: Bench) -> None:
    job = pg.take()
    handlers = pg.session()
    assert handlers.leave_open(completion.keep(job.lease, "step", "a", "1", None))
    assert pg.later(100).reap() == [], "passed over"
    settling = Background(lambda: pg.succeed(job))
    assert settling.blocked
    handlers.commit()
    assert settling.result() is State.SUCCEEDED


def test_a_step_that_waited_for_the_reaper_is_refused(pg: Bench) -> None:
    job = pg.take()
    pg.later(100)
    pg.run(maintenance.record_pulse, grace=0.0)
    reaper = pg.session()
    assert len(reaper.leave_open(lease.reap(half))) == 1
    late = Background(lambda: pg.run(completion.keep, job.lease, "step", "a", "1", None))
    assert late.blocked
    reaper.commit()
    assert late.result() is None
    assert pg.count("steps") == 0
