"""The claim cursor: it helps only when it must, lags behind, and looks through everything once in a while."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relet._core.job import Claimed, Policy
from relet._store.flows.claim_scope import EVERYTHING, Scope
from relet._worker.claim_cursor import HIDDEN_FOR, LAG, PER_JOB, SLOW, ClaimCursor

QUICK = 0.001
SLUGGISH = QUICK + SLOW * 3
Range = tuple[int, int, int, int]


def job(seq: int, rank: int = 0, queue: str = "q") -> Claimed:
    return Claimed(
        f"id-{rank}-{seq}",
        "token",
        1,
        "t",
        queue,
        "{}",
        -rank,
        None,
        1,
        0,
        Policy(),
        f"id-{rank}-{seq}",
        0,
        (rank, seq),
        0.0,
        0.0,
        0.0,
    )


def jobs(*positions: int | tuple[int, int]) -> list[Claimed]:
    return [job(position) if isinstance(position, int) else job(position[1], position[0]) for position in positions]


def covers(scope: Scope, rank: int, seq: int) -> bool:
    """Whether a claim of this scope looks at a job that stands there."""
    return any(
        (low_rank, low_seq) < (rank, seq) < (high_rank, high_seq)
        for low_rank, low_seq, high_rank, high_seq in scope.ranges
    )


def slow_cursor(*positions: int | tuple[int, int], now: float = 100.0) -> ClaimCursor:
    """One that has claimed these jobs in a slow look through everything, at this time."""
    cursor = ClaimCursor()
    cursor.scope("q", 10, now - 1000)
    cursor.record_claim(["q"], [], QUICK, now - 1000)
    cursor.scope("q", 10, now)
    cursor.record_claim(["q"], jobs(*positions), SLUGGISH + PER_JOB * len(positions), now)
    return cursor


def test_at_first_everything_is_looked_through() -> None:
    assert ClaimCursor().scope("q", 7, 0.0) == Scope("q", 7, EVERYTHING)


def test_as_long_as_it_is_quick_everything_is_looked_through() -> None:
    cursor = ClaimCursor()
    for n in range(1, 100):
        assert cursor.scope("q", 10, float(n)).ranges == EVERYTHING
        cursor.record_claim(["q"], jobs(n), QUICK, float(n))


def test_a_claim_of_many_jobs_may_take_longer() -> None:
    cursor = ClaimCursor()
    cursor.scope("q", 10, 0.0)
    cursor.record_claim(["q"], [], QUICK, 0.0)
    cursor.scope("q", 500, 1.0)
    cursor.record_claim(["q"], jobs(*range(1, 501)), QUICK + SLOW + PER_JOB * 500 - 0.0001, 1.0)
    assert cursor.scope("q", 500, 1.0 + LAG).ranges == EVERYTHING


def test_a_server_that_is_slow_at_everything_is_not_taken_for_bloat() -> None:
    cursor = ClaimCursor()
    for n in range(1, 20):
        cursor.scope("q", 10, float(n))
        cursor.record_claim(["q"], jobs(n), 0.25, float(n))
        assert cursor.scope("q", 10, n + 0.5).ranges == EVERYTHING


def test_after_a_slow_claim_the_next_starts_behind_the_jobs_that_were_consumed() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    scope = cursor.scope("q", 10, 100.0 + LAG - 0.01)
    assert scope.ranges == EVERYTHING, "not yet: what was inserted before may still be committed after"
    scope = cursor.scope("q", 10, 100.0 + LAG + 0.0)
    if scope.ranges == EVERYTHING:  # a rescan may be due at the very moment
        cursor.record_claim(["q"], [], SLUGGISH, 100.0 + LAG)
        scope = cursor.scope("q", 10, 100.0 + LAG + 0.1)
    assert not covers(scope, 0, 3)
    assert covers(scope, 0, 4)


def test_the_mark_lags_behind_the_jobs_that_were_consumed() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    cursor.scope("q", 10, 101.5)
    cursor.record_claim(["q"], jobs(10), SLUGGISH, 101.5)
    scope = cursor.scope("q", 10, 101.6)
    assert not covers(scope, 0, 3)
    assert covers(scope, 0, 4), "10 was taken a moment ago: 4 to 9 may be committed still"
    later = cursor.scope("q", 10, 101.5 + LAG - 0.01)
    assert covers(later, 0, 4)


def test_each_priority_has_its_own_mark() -> None:
    cursor = slow_cursor((-5, 70), (0, 30), now=100.0)
    cursor.scope("q", 10, 101.1)
    cursor.record_claim(["q"], [], SLUGGISH, 101.1)
    scope = cursor.scope("q", 10, 101.2)
    assert scope.ranges != EVERYTHING
    assert not covers(scope, -5, 70)
    assert covers(scope, -5, 71)
    assert not covers(scope, 0, 30)
    assert covers(scope, 0, 31)
    for rank in (-100, -6, -4, -1, 1, 50, 100):
        assert covers(scope, rank, 1), f"nothing is known of rank {rank}, so all of it is looked through"


def test_the_ranges_are_in_order_and_do_not_overlap() -> None:
    cursor = slow_cursor((-100, 5), (-1, 9), (0, 1), (100, 3), now=100.0)
    cursor.scope("q", 10, 101.1)
    cursor.record_claim(["q"], [], SLUGGISH, 101.1)
    ranges = cursor.scope("q", 10, 101.2).ranges
    assert ranges[0][:2] == EVERYTHING[0][:2]
    assert ranges[-1][2:] == EVERYTHING[0][2:]
    ends: list[tuple[int, int]] = []
    for low_rank, low_seq, high_rank, high_seq in ranges:
        assert (low_rank, low_seq) <= (high_rank, high_seq)
        ends += [(low_rank, low_seq), (high_rank, high_seq)]
    assert ends == sorted(ends)


def test_a_mark_never_goes_back() -> None:
    cursor = slow_cursor(50, now=100.0)
    cursor.scope("q", 10, 101.1)
    cursor.record_claim(["q"], jobs(7), SLUGGISH, 101.1)  # came late, or came back
    cursor.scope("q", 10, 103.0)
    cursor.record_claim(["q"], [], SLUGGISH, 103.0)
    scope = cursor.scope("q", 10, 103.1)
    assert not covers(scope, 0, 50)
    assert covers(scope, 0, 51)


def test_everything_is_looked_through_again_within_a_second_or_so() -> None:
    """Jobs that were reaped, resumed, released or committed late are behind the mark."""
    cursor = slow_cursor(1, 2, 3, now=100.0)
    now, last = 100.0, 100.0
    for _ in range(200):
        now += 0.05
        if cursor.scope("q", 10, now).ranges == EVERYTHING:
            assert now - last <= HIDDEN_FOR + 0.051
            last = now
            cursor.record_claim(["q"], [], SLUGGISH, now)
        else:
            cursor.record_claim(["q"], jobs(3), QUICK, now)
    assert now - last <= HIDDEN_FOR + 0.051


@pytest.mark.parametrize(("cost", "share"), [(0.05, 0.05), (0.3, 0.3), (0.6, 0.5), (1.0, 0.5), (4.0, 0.8)])
def test_looking_through_everything_leaves_time_for_quick_claims(cost: float, share: float) -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    now, spent, rescans, quick = 100.0, 0.0, 0, 0
    ahead = itertools.count(4)
    while now < 400.0:
        if cursor.scope("q", 10, now).ranges == EVERYTHING:
            now += cost
            spent += cost
            rescans += 1
            cursor.record_claim(["q"], jobs(next(ahead)), cost, now)
        else:
            now += 0.01
            quick += 1
            cursor.record_claim(["q"], jobs(next(ahead)), QUICK, now)
    assert rescans > 5
    assert quick > 5 * rescans, "a claim does not walk over everything each time"
    assert spent / 300.0 <= share + 0.02


def seconds(highest: float) -> st.SearchStrategy[float]:
    """Multiples of 1/1024: floats represent them and their sums exactly, so that a bound means the last bit."""
    return st.integers(0, int(highest * 1024)).map(lambda number: number / 1024)


STEPS = st.lists(
    st.tuples(
        seconds(3.0),  # since the last claim
        st.one_of(seconds(0.05), seconds(30.0)),  # that it took
        st.booleans(),  # whether the store was away meanwhile
        st.lists(st.tuples(st.integers(-2, 2), st.integers(1, 1000)), max_size=3),  # its jobs
        st.booleans(),  # whether a job went back to its place meanwhile
    ),
    max_size=60,
)


@pytest.mark.long
@given(STEPS)
def test_no_job_is_hidden_for_more_than_a_second_whatever_happened_before(steps: list[Any]) -> None:
    """By the cursor: the time that a look through everything takes is not its doing."""
    cursor, now, begun, answered = ClaimCursor(), 0.0, -100.0, -100.0
    for pause, elapsed, away, positions, back in steps:
        until_full_scan = cursor.next_full_scan_in(now)
        now += pause
        scope = cursor.scope("q", 10, now)
        if scope.ranges == EVERYTHING:
            if not away:
                begun, answered = now, now + elapsed
        else:
            assert pause < until_full_scan <= HIDDEN_FOR, "a worker that sleeps until then looks through everything"
            assert now - answered < HIDDEN_FOR
            assert now - begun < HIDDEN_FOR or answered - begun > HIDDEN_FOR / 2
        if back:
            cursor.job_requeued(now + elapsed / 2)
        now += elapsed
        cursor.record_claim(["q"], jobs(*positions), None if away else elapsed, now)


def test_a_job_that_went_back_to_its_place_is_looked_for_at_once() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    assert cursor.scope("q", 10, 101.5).ranges == EVERYTHING
    cursor.record_claim(["q"], [], SLUGGISH, 101.5 + SLUGGISH)
    assert cursor.scope("q", 10, 101.6).ranges != EVERYTHING
    assert cursor.job_requeued(101.65), "it may have been passed over"
    cursor.record_claim(["q"], [], QUICK, 101.7)
    assert cursor.next_full_scan_in(101.7) <= 0
    assert cursor.scope("q", 10, 101.7).ranges == EVERYTHING
    cursor.record_claim(["q"], [], SLUGGISH, 101.7 + SLUGGISH)
    assert cursor.scope("q", 10, 101.8).ranges != EVERYTHING, "and no more than once"


def test_jobs_that_keep_going_back_do_not_make_every_claim_look_through_everything() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    now, whole, narrow = 101.0, 0.0, 0.0
    while now < 110.0:
        cursor.job_requeued(now)
        cost = 0.3 if cursor.scope("q", 10, now).ranges == EVERYTHING else 0.01
        whole, narrow = (whole + cost, narrow) if cost == 0.3 else (whole, narrow + cost)
        now += cost
        cursor.record_claim(["q"], [], cost, now)
    assert whole <= narrow + 0.6


def test_while_nothing_is_hidden_there_is_nothing_to_look_through_again() -> None:
    cursor = ClaimCursor()
    assert cursor.next_full_scan_in(0.0) == math.inf
    cursor.scope("q", 10, 0.0)
    cursor.record_claim(["q"], jobs(1), QUICK, 0.0)
    assert cursor.next_full_scan_in(5.0) == math.inf
    assert not cursor.job_requeued(5.0)


def test_where_one_came_back_the_next_look_goes_through_everything_again() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    assert cursor.scope("q", 1, 102.0).ranges == EVERYTHING
    cursor.record_claim(["q"], jobs(2), 0.5, 102.5)
    assert cursor.scope("q", 1, 102.5).ranges == EVERYTHING, "others may have come back with it"
    cursor.record_claim(["q"], jobs(9), 0.5, 103.0)
    assert cursor.scope("q", 1, 103.0).ranges != EVERYTHING


def test_a_claim_that_was_held_up_says_nothing_of_how_long_it_takes_to_look() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    cursor.scope("q", 1, 102.0)
    cursor.record_claim(["q"], [], QUICK, 102.0)
    for elapsed in (60.0, None, None):
        assert cursor.scope("q", 1, 103.0).ranges == EVERYTHING
        cursor.record_claim(["q"], [], elapsed, 103.0)
    assert cursor.scope("q", 1, 103.0).ranges == EVERYTHING


def test_once_everything_is_quick_again_the_mark_is_not_used() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    now = 102.0
    assert cursor.scope("q", 10, now).ranges == EVERYTHING
    cursor.record_claim(["q"], [], QUICK, now)
    for step in range(1, 20):
        assert cursor.scope("q", 10, now + step * 0.1).ranges == EVERYTHING
        cursor.record_claim(["q"], [], QUICK, now + step * 0.1)


def test_a_narrow_claim_that_is_slow_does_not_decide_anything() -> None:
    """Only a look through everything tells whether one is needed."""
    cursor = slow_cursor(1, 2, 3, now=100.0)
    cursor.scope("q", 10, 101.1)
    cursor.record_claim(["q"], jobs(4), SLUGGISH, 101.1)
    narrow = cursor.scope("q", 10, 101.2)
    assert narrow.ranges != EVERYTHING
    cursor.record_claim(["q"], [], 5.0, 101.3)
    assert cursor.scope("q", 10, 101.4).ranges != EVERYTHING


def test_queues_know_nothing_of_each_other() -> None:
    cursor = slow_cursor(1, 2, 3, now=100.0)
    cursor.scope("q", 10, 101.1)
    cursor.record_claim(["q"], [], SLUGGISH, 101.1)
    assert cursor.scope("other", 10, 101.2) == Scope("other", 10, EVERYTHING)
    assert cursor.scope("q", 10, 101.2).ranges != EVERYTHING


def test_a_slow_look_that_found_nothing_has_no_mark_to_start_from() -> None:
    cursor = slow_cursor(now=100.0)
    assert cursor.scope("q", 10, 100.5).ranges == EVERYTHING


@pytest.mark.long
def test_the_list_of_young_marks_does_not_grow_with_the_jobs_claimed() -> None:
    cursor = ClaimCursor()
    for n in range(1000):
        now = n * 0.01
        cursor.scope("q", 100, now)
        cursor.record_claim(["q"], jobs(*range(n * 100 + 1, n * 100 + 101)), QUICK, now)
    assert len(cursor._queues["q"].recent) <= LAG / 0.01 + 2
