"""A clock that is put back, or jumps ahead and back: what was stored in the future is not believed for longer than it
can mean."""

from __future__ import annotations

import asyncio

import pytest

from relet import new_id
from relet._core.ids import make_id
from relet._core.job import Draft
from relet._core.schedule import define
from relet._store.flows import enqueue, lease, maintenance, schedules
from tests.store.interleave import LEASE, Bench, draft, half
from tests.store.test_limits_rate import rate

GRACE = 10.0


def beat(b: Bench) -> float | None:
    return b.run(maintenance.record_pulse, grace=GRACE)


def reaped(b: Bench) -> int:
    return len(b.run(lease.reap, half))


def beats(b: Bench, seconds: int) -> int:
    """Beat once a second; how many were accepted."""
    return sum(beat(b.later(1)) is not None for _ in range(seconds))


def seconds_until_reaped(b: Bench) -> int:
    for second in range(1, 200):
        beat(b.later(1))
        if reaped(b):
            return second
    raise AssertionError("the lease was never taken away")


def test_short_leases_have_a_grace_after_a_short_outage(b: Bench) -> None:
    """In two seconds without a pulse, leases of three may expire; those of thirty do not."""
    for seconds, grace in ((3.0, GRACE), (30.0, 0.0)):
        beats(b, 15)  # the grace period of the first is over
        b.later(2)
        assert b.run(maintenance.record_pulse, grace=GRACE, gap=lease.pulse_gap(seconds)) == pytest.approx(grace)


def test_a_store_beside_another_goes_by_its_clock(b: Bench) -> None:
    b.now = 1_900_000_000.0
    separate = b.store.with_own_connections(1)
    try:
        assert separate.run(enqueue.enqueue, [draft()])[0].created_at.timestamp() == b.now
    finally:
        separate.close()


def test_the_clock_of_the_store_counts_in_a_handlers_transaction(b: Bench) -> None:
    b.now = 1_900_000_000.0
    with b.store.begin() as opened:
        (job,) = opened.run(enqueue.enqueue, [draft()])

    async def on_loop() -> float:
        async with b.store.abegin() as opened:
            return (await opened.run(enqueue.enqueue, [draft()]))[0].created_at.timestamp()

    assert (job.created_at.timestamp(), asyncio.run(on_loop())) == (b.now, b.now)


@pytest.mark.parametrize("back", [5.0, 3600.0])
def test_beats_are_accepted_after_the_clock_was_put_back(b: Bench, back: float) -> None:
    beats(b, 30)
    b.later(-back)
    assert beats(b, 10) == 10


def test_after_the_clock_was_put_back_an_outage_is_still_noticed(b: Bench) -> None:
    beats(b, 30)
    b.later(-3600)
    beats(b, 60)
    b.take()
    b.later(3 * LEASE)
    assert beat(b) == pytest.approx(GRACE)
    assert reaped(b.later(0.01)) == 0


@pytest.mark.parametrize("back", [600.0, 86400.0])
def test_a_lease_of_a_dead_worker_expires_in_time_though_the_clock_was_put_back(b: Bench, back: float) -> None:
    beats(b, 30)
    b.take()
    b.later(-back)
    assert LEASE - 1 <= seconds_until_reaped(b) <= LEASE + GRACE + 2


def test_a_worker_that_lives_keeps_its_lease_when_the_clock_is_put_back(b: Bench) -> None:
    beats(b, 30)
    job = b.take()
    b.later(-600)
    for second in range(60):
        beat(b.later(1))
        if second % 10 == 0:
            assert list(b.renew(job.lease).renewed) == [job.lease]
        assert reaped(b) == 0


def test_a_grace_that_was_given_in_the_future_ends_in_time(b: Bench) -> None:
    beats(b, 30)
    job = b.take()
    b.later(3600)
    beat(b)  # the clock has jumped ahead: grace
    b.later(-3600)
    assert seconds_until_reaped(b) <= LEASE + GRACE + 2
    assert b.state(job.id) == "queued"


@pytest.mark.parametrize("back", [30.0, 600.0])
def test_a_rate_goes_on_after_the_clock_was_put_back_and_is_not_exceeded(b: Bench, back: float) -> None:
    rate(b, 5, per=10.0)
    for _ in range(30):
        b.add()
    assert len(b.claim(10)) == 5
    b.later(-back)
    assert len(b.claim(10)) == 0
    assert len(b.later(5).claim(10)) == 0
    assert len(b.later(6).claim(10)) == 5


@pytest.mark.parametrize("ahead", [600.0, 86400.0])
def test_a_schedule_ticks_on_after_the_clock_was_ahead_for_a_moment(b: Bench, ahead: float) -> None:
    draft = Draft(make_id(b.now, bytes(10)), "t", "{}")
    b.run(schedules.put, "s", define(draft, None, 60.0, "UTC", "once", "allow"))

    def ticks(seconds: float) -> int:
        b.later(seconds)
        return len(b.run(schedules.tick, ["t"], new_id).jobs)

    assert ticks(61) == 1
    assert ticks(ahead) == 1
    b.later(-ahead)
    assert b.run(maintenance.work_ahead, ["t"]).next_tick == 0
    assert ticks(1) == 0
    assert [ticks(60) for _ in range(3)] == [1, 1, 1]
