"""Waiting for chains: look, sleep until something has ended, look again. Polling stands behind the notification."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .core.errors import JobNotFound, WaitTimeout
from .core.job import Job
from .store.flows import look, steer
from .store.store import Store

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
LONG_LOOK = 0.01  # beyond it the store is given as much rest as it was given work, however often we are woken


def wait_for(store: Store, ids: Sequence[str], timeout: float) -> list[Job[Any]]:
    """The last jobs of the chains that these belong to, once all of them are over or have failed.

    One look for all of them; those that have ended are not asked for again.
    """
    if not ids:
        return []
    give_up = time.monotonic() + timeout
    ended: dict[str, Job[Any]] = {}  # by chain
    pause = FIRST_PAUSE
    with store.wakes.sleeper("done") as sleeper:
        chains = store.run(steer.watch, ids)
        left = list(dict.fromkeys(chains.values()))
        while True:
            sleeper.clear()
            began = time.monotonic()
            ends = store.run(look.ends, left)
            if ends.gone:
                raise JobNotFound(*(id for id in ids if chains[id] in ends.gone))
            ended |= ends.ended
            left = list(ends.states)
            if not left:
                return [ended[chains[id]] for id in ids]
            now = time.monotonic()
            if now >= give_up:
                missing = {id: ends.states[chains[id]] for id in ids if chains[id] in ends.states}
                raise WaitTimeout(missing, timeout, len(chains))
            if now - began > LONG_LOOK:
                time.sleep(min(now - began, give_up - now))
            sleeper.wait(min(pause, max(give_up - time.monotonic(), 0)))
            pause = min(pause * 1.5, LONGEST_PAUSE)
