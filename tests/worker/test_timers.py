"""Timers: things to do at a moment, in one thread."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from relet._system import SYSTEM
from relet._worker.timers import Timers
from tests.worker.working import until

pytestmark = pytest.mark.every_store


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers(SYSTEM)
    yield made
    made.stop()


def soon(seconds: float = 0.02) -> float:
    return time.monotonic() + seconds


def test_nothing_is_started_before_there_is_something_to_do(timers: Timers) -> None:
    assert not timers._is_started


def test_many_are_called_in_the_order_of_their_moments_and_not_before(timers: Timers) -> None:
    called: list[tuple[float, float]] = []
    ready = threading.Event()
    timers.at(soon(0), lambda: None if ready.wait(10) else 0.0)  # until all are there
    moments = [soon(random.random() * 0.2) for _ in range(500)]
    for moment in moments:
        timers.at(moment, lambda moment=moment: called.append((moment, time.monotonic())))  # type: ignore[misc]
    ready.set()
    until(lambda: len(called) == 500)
    assert [moment for moment, _ in called] == sorted(moments)
    assert all(then >= moment for moment, then in called)


def test_one_that_comes_sooner_is_not_held_up_by_one_that_comes_later(timers: Timers) -> None:
    called = threading.Event()
    timers.at(soon(60), lambda: None)
    timers.at(soon(), called.set)
    assert called.wait(10)


def test_a_cancelled_one_is_not_called(timers: Timers) -> None:
    called = []
    first = timers.at(soon(0.05), lambda: called.append("cancelled"))
    last = threading.Event()
    timers.at(soon(0.1), last.set)
    first.cancel()
    first.cancel()
    assert last.wait(10)
    assert not called


def test_the_value_that_it_returns_is_the_time_of_the_next_call(timers: Timers) -> None:
    times: list[float] = []

    def again() -> float | None:
        times.append(time.monotonic())
        return times[-1] + 0.02 if len(times) < 4 else None

    timers.at(soon(), again)
    until(lambda: len(times) == 4)
    time.sleep(0.05)
    assert len(times) == 4
    assert all(later - sooner >= 0.02 for sooner, later in pairwise(times))


def test_one_that_repeats_can_be_cancelled(timers: Timers) -> None:
    times: list[float] = []

    def again() -> float:
        times.append(time.monotonic())
        return soon(0.01)

    timer = timers.at(soon(), again)
    until(lambda: len(times) >= 3)
    timer.cancel()
    time.sleep(0.02)
    count = len(times)
    time.sleep(0.1)
    assert len(times) == count


def test_one_that_fails_hurts_no_other(timers: Timers, caplog: pytest.LogCaptureFixture) -> None:
    called = threading.Event()
    with caplog.at_level(logging.ERROR, "relet.worker"):
        timers.at(soon(), lambda: 1 / 0)
        timers.at(soon(0.05), called.set)
        assert called.wait(10)
    assert "A timer failed" in caplog.text


def test_cancelled_ones_do_not_pile_up(timers: Timers) -> None:
    """A job with a timeout of an hour that ends at once, again and again."""
    for _ in range(5_000):
        timers.at(soon(3600), lambda: None).cancel()
    assert len(timers._heap) < 500


def test_after_stop_nothing_is_called(timers: Timers) -> None:
    called = []
    timers.at(soon(0.05), lambda: called.append("late"))
    timers.stop()
    thread = timers._loop._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    timers.at(soon(), lambda: called.append("later"))
    time.sleep(0.1)
    assert not called
