"""A loop: only it waits, a step that fails is repeated after a pause, and a wake is never lost."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from relet._system import SYSTEM
from relet._worker.loop import Loop


@pytest.mark.long
def test_a_step_that_fails_is_repeated_after_a_pause_however_often_it_is_woken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[float] = []

    def step() -> float | None:
        calls.append(time.monotonic())
        loop.wake()
        if len(calls) < 3:
            raise RuntimeError("not yet")
        loop.stop()
        return None

    loop = Loop(SYSTEM, "test", step)
    loop.start()
    loop.join(20)
    assert [later - sooner >= 0.9 for sooner, later in pairwise(calls)] == [True, True]
    assert caplog.text.count("test failed, trying again in 1 s") == 2


def test_a_wake_during_a_step_is_not_lost() -> None:
    steps, done = [], threading.Event()

    def step() -> float | None:
        steps.append(loop.was_woken)
        if len(steps) == 1:
            loop.wake()
        else:
            done.set()
        return None

    loop = Loop(SYSTEM, "test", step)
    loop.start()
    assert done.wait(20)
    loop.stop()
    loop.join(20)
    assert steps[:2] == [False, True]
