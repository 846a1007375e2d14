"""Threads that loops share: no step and no wake is lost, and a loop that waits for its store keeps no other waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from relet._system import SYSTEM
from relet._worker import loop_threads
from relet._worker.loop import Loop
from relet._worker.loop_threads import LoopThreads
from tests.worker.working import until

SIZE, LIMIT = 3, 8


@contextmanager
def shared(size: int = SIZE, limit: int = LIMIT) -> Iterator[LoopThreads]:
    threads = LoopThreads(SYSTEM, "shared-test", size, limit)
    try:
        yield threads
    finally:
        threads.close()
        until(lambda: threads.number == 0, "its threads do not end")


def test_many_loops_take_their_steps_in_few_threads() -> None:
    counts, names, loops = [0] * 100, set[int](), list[Loop]()

    def step(number: int) -> float | None:
        counts[number] += 1
        names.add(threading.get_ident())
        return 0.001 if counts[number] < 20 else None

    with shared() as threads:
        for number in range(len(counts)):
            loops.append(Loop(SYSTEM, "test", lambda number=number: step(number), threads))  # type: ignore[misc]
            loops[-1].start()
        until(lambda: counts == [20] * len(counts), "all steps are taken")
        assert threads.number <= SIZE
    assert len(names) <= SIZE


def test_a_loop_is_never_in_two_steps_and_no_wake_is_lost() -> None:
    """Several threads wake a loop all the time: each wake is followed by a step."""
    asked, taken, inside = [0], [0], threading.Lock()

    def step() -> None:
        assert inside.acquire(blocking=False), "two steps at a time"
        taken[0] = asked[0]
        inside.release()

    with shared() as threads:
        loop = Loop(SYSTEM, "test", step, threads)
        loop.start()
        for number in range(1, 2001):
            asked[0] = number
            loop.wake()
            if number % 100 == 0:
                until(lambda number=number: taken[0] >= number, f"wake {number} is lost")  # type: ignore[misc]
        loop.stop()
        loop.join(20)
        assert loop.has_ended


def test_a_step_that_waits_for_its_store_gives_its_place_to_others() -> None:
    """As many loops as there are places wait in their steps, as they do while their stores cannot be reached."""
    parked, done = [], threading.Event()

    def blocked(loop: list[Loop]) -> None:
        parked.append(loop[0])
        loop[0].stopping.wait(60)

    with shared() as threads:
        waiting = []
        for _ in range(SIZE + 1):
            mine: list[Loop] = []
            mine.append(Loop(SYSTEM, "test", lambda mine=mine: blocked(mine), threads))  # type: ignore[misc]
            mine[0].start()
            waiting.append(mine[0])
        until(lambda: len(parked) == SIZE + 1, "all wait")
        other = Loop(SYSTEM, "test", done.set, threads)
        other.start()
        assert done.wait(20), "the waiting loops keep another one from running"
        assert threads.number <= LIMIT
        for loop in waiting:
            loop.stop()
        for loop in waiting:
            loop.join(20)
        assert all(loop.has_ended for loop in waiting)


def test_a_failed_step_is_repeated_after_a_pause_that_a_stop_cuts_short(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[float] = []

    def step() -> float | None:
        calls.append(time.monotonic())
        loop.wake()
        raise RuntimeError("not yet")

    with shared() as threads:
        loop = Loop(SYSTEM, "test", step, threads)
        loop.start()
        until(lambda: len(calls) == 2, "it is repeated")
        assert calls[1] - calls[0] >= 0.9
        loop.stop()
        loop.join(20)
        assert loop.has_ended
    assert "test failed, trying again in 1 s" in caplog.text


def test_threads_that_are_not_needed_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_threads, "LINGER", 0.05)
    barrier = threading.Barrier(SIZE)

    def step() -> None:
        barrier.wait(20)  # all threads are needed at once

    with shared() as threads:
        loops = [Loop(SYSTEM, "test", step, threads) for _ in range(SIZE)]
        for loop in loops:
            loop.start()
        until(lambda: threads.number == 1, "one thread is left, which waits for the next step")
