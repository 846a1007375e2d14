"""A clock that is put back, or jumps ahead and back: a time stored in the future counts for a bounded time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from relet import new_id
from relet._core.ids import make_id
from relet._core.job import Draft
from relet._core.schedule import define
from relet._store.flows import enqueue, lease, maintenance, schedules
from relet._store.query import BEGIN, Flow, Row
from tests.harness import LEASE, StoreHarness, draft, half
from tests.store.test_limits_rate import rate

GRACE = 10.0


def beat(harness: StoreHarness) -> float | None:
    return harness.run(maintenance.record_pulse, grace=GRACE)


def reaped(harness: StoreHarness) -> int:
    return len(harness.run(lease.reap, half))


def beats(harness: StoreHarness, seconds: int) -> int:
    """Beat once a second; how many were accepted."""
    return sum(beat(harness.later(1)) is not None for _ in range(seconds))


def seconds_until_reaped(harness: StoreHarness) -> int:
    for second in range(1, 200):
        beat(harness.later(1))
        if reaped(harness):
            return second
    raise AssertionError("the lease was never taken away")


def test_short_leases_have_a_grace_after_a_short_outage(harness: StoreHarness) -> None:
    """In two seconds without a pulse, leases of three may expire; those of thirty do not."""
    harness.claim_new()
    for seconds, grace in ((3.0, GRACE), (30.0, 0.0)):
        beats(harness, 15)  # the grace period of the first is over
        harness.later(2)
        assert harness.run(maintenance.record_pulse, grace=GRACE, gap=lease.pulse_gap(seconds)) == pytest.approx(grace)


def test_a_gap_in_which_all_leases_were_taken_or_renewed_needs_no_grace(harness: StoreHarness) -> None:
    """While a store has no leases, workers touch the pulse seldom."""
    beats(harness, 15)
    harness.later(600)
    job = harness.claim_new()
    harness.later(1)
    assert harness.run(maintenance.record_pulse, grace=GRACE) == 0.0
    harness.later(lease.PULSE_GAP + 1)
    harness.renew(job.lease)
    assert harness.run(maintenance.record_pulse, grace=GRACE) == 0.0
    harness.later(lease.PULSE_GAP + 1)
    assert harness.run(maintenance.record_pulse, grace=GRACE) == pytest.approx(GRACE)


def test_faults_that_never_end_do_not_put_off_reaping_for_good(harness: StoreHarness) -> None:
    """Each wait for a lock gives live workers time to renew. A lease that stays expired has had it."""
    beats(harness, 15)
    job = harness.claim_new()
    harness.later(LEASE + 1)
    changes: list[Any] = []
    uptime = 0.0
    while not changes:
        assert uptime < 2.5 * maintenance.PERIOD * GRACE, "the lease was never taken away"
        harness.later(1)
        harness.run(wait_and_beat, 0.7)
        uptime += 1 - 0.7
        changes = harness.run(lease.reap, half)
    assert [change.id for change in changes] == [job.id]
    assert uptime > maintenance.PERIOD * GRACE, "else a live worker may not have had time to renew"


def test_a_lease_that_expired_in_an_outage_is_not_reaped_amid_faults(harness: StoreHarness) -> None:
    """Not before its worker had time to renew, however long reaping was put off before."""
    beats(harness, 15)
    job = harness.claim_new()
    for _ in range(60):
        harness.later(0.9)
        harness.run(wait_and_beat, 0.7)
        harness.renew(job.lease)
    harness.later(600)
    for _ in range(int(maintenance.PERIOD * GRACE)):
        harness.run(wait_and_beat, 0.7)
        assert reaped(harness) == 0
        harness.later(0.9)


def wait_and_beat(waited: float) -> Flow[list[Row]]:
    """A pulse that had to wait for the lock."""
    yield BEGIN
    return (yield from lease.touch_pulse(3.0, GRACE, 0.7, waited, enough=maintenance.PERIOD * GRACE))


def test_a_store_beside_another_goes_by_its_clock(harness: StoreHarness) -> None:
    harness.now = 1_900_000_000.0
    separate = harness.store.with_own_connections(1)
    try:
        assert separate.run(enqueue.enqueue, [draft()])[0].created_at.timestamp() == harness.now
    finally:
        separate.close()


def test_the_clock_of_the_store_counts_in_a_handlers_transaction(harness: StoreHarness) -> None:
    harness.now = 1_900_000_000.0
    with harness.store.begin() as opened:
        (job,) = opened.run(enqueue.enqueue, [draft()])

    async def on_loop() -> float:
        async with harness.store.abegin() as opened:
            return (await opened.run(enqueue.enqueue, [draft()]))[0].created_at.timestamp()

    assert (job.created_at.timestamp(), asyncio.run(on_loop())) == (harness.now, harness.now)


@pytest.mark.parametrize("back", [5.0, 3600.0])
def test_beats_are_accepted_after_the_clock_was_put_back(harness: StoreHarness, back: float) -> None:
    beats(harness, 30)
    harness.later(-back)
    assert beats(harness, 10) == 10


def test_after_the_clock_was_put_back_an_outage_is_still_noticed(harness: StoreHarness) -> None:
    beats(harness, 30)
    harness.later(-3600)
    beats(harness, 60)
    harness.claim_new()
    harness.later(3 * LEASE)
    assert beat(harness) == pytest.approx(GRACE)
    assert reaped(harness.later(0.01)) == 0


@pytest.mark.parametrize("back", [600.0, 86400.0])
def test_a_lease_of_a_dead_worker_expires_in_time_though_the_clock_was_put_back(
    harness: StoreHarness, back: float
) -> None:
    beats(harness, 30)
    harness.claim_new()
    harness.later(-back)
    assert LEASE - 1 <= seconds_until_reaped(harness) <= LEASE + GRACE + 2


def test_a_worker_that_lives_keeps_its_lease_when_the_clock_is_put_back(harness: StoreHarness) -> None:
    beats(harness, 30)
    job = harness.claim_new()
    harness.later(-600)
    for second in range(60):
        beat(harness.later(1))
        if second % 10 == 0:
            assert list(harness.renew(job.lease).renewed) == [job.lease]
        assert reaped(harness) == 0


def test_a_grace_that_was_given_in_the_future_ends_in_time(harness: StoreHarness) -> None:
    beats(harness, 30)
    job = harness.claim_new()
    harness.later(3600)
    beat(harness)  # the clock has jumped ahead: grace
    harness.later(-3600)
    assert seconds_until_reaped(harness) <= LEASE + GRACE + 2
    assert harness.state(job.id) == "queued"


@pytest.mark.parametrize("back", [30.0, 600.0])
def test_a_rate_goes_on_after_the_clock_was_put_back_and_is_not_exceeded(harness: StoreHarness, back: float) -> None:
    rate(harness, 5, per=10.0)
    for _ in range(30):
        harness.add()
    assert len(harness.claim(10)) == 5
    harness.later(-back)
    assert len(harness.claim(10)) == 0
    assert len(harness.later(5).claim(10)) == 0
    assert len(harness.later(6).claim(10)) == 5


@pytest.mark.parametrize("ahead", [600.0, 86400.0])
def test_a_schedule_ticks_on_after_the_clock_was_ahead_for_a_moment(harness: StoreHarness, ahead: float) -> None:
    draft: Draft[Any] = Draft(make_id(harness.now, bytes(10)), "t", "{}")
    harness.run(schedules.put, "s", define(draft, None, 60.0, "UTC", "once", "allow"))

    def ticks(seconds: float) -> int:
        harness.later(seconds)
        return len(harness.run(schedules.tick, ["t"], new_id).jobs)

    assert ticks(61) == 1
    assert ticks(ahead) == 1
    harness.later(-ahead)
    assert harness.run(maintenance.work_ahead, ["t"]).next_tick == 0
    assert ticks(1) == 0
    assert [ticks(60) for _ in range(3)] == [1, 1, 1]
