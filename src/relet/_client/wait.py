"""Waiting for chains: look, sleep until something has ended, look again. Polling stands behind the notification."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .._core.job import Job
from .._store.flows import control
from .._store.flows import inspect as look
from .._store.store import Store
from .._threads import change_in_thread, look_in_thread
from ..errors import JobNotFound, WaitTimeout

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
LONG_LOOK = 0.01  # beyond it the store is given as much rest as it was given work, however often we are woken


class Chains:
    """The chains of some jobs, until all of them are over or have failed.

    One look for all of them; those that have ended are not asked for again.
    """

    def __init__(self, store: Store, ids: Sequence[str], timeout: float) -> None:
        self._store = store
        self._ids = ids
        self._timeout = timeout
        self._give_up = time.monotonic() + timeout
        self._chains: dict[str, str] = {}
        self._left: list[str] = []
        self._ended: dict[str, Job[Any]] = {}  # by chain
        self._pause = FIRST_PAUSE

    def watch(self) -> None:
        """Ask to be told of their end."""
        self._chains = self._store.run(control.watch, self._ids)
        self._left = list(dict.fromkeys(self._chains.values()))

    def look(self) -> list[Job[Any]] | None:
        """The last jobs of the chains, in the order of the jobs; None while some are not over."""
        chains = self._chains
        ends = self._store.run(look.ends, self._left)
        if ends.gone:
            raise JobNotFound(*(id for id in self._ids if chains[id] in ends.gone))
        self._ended |= ends.ended
        self._left = list(ends.states)
        if not self._left:
            return [self._ended[chains[id]] for id in self._ids]
        if time.monotonic() >= self._give_up:
            missing = {id: ends.states[chains[id]] for id in self._ids if chains[id] in ends.states}
            raise WaitTimeout(missing, self._timeout, len(chains))
        return None

    def rest(self, looked_for: float) -> float:
        """How many seconds to sleep in any case after a look that took so long."""
        return max(min(looked_for, self._give_up - time.monotonic()), 0.0) if looked_for > LONG_LOOK else 0.0

    def pause(self) -> float:
        """How many seconds to sleep unless woken."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE)
        return min(pause, max(self._give_up - time.monotonic(), 0.0))


def wait_for(store: Store, ids: Sequence[str], timeout: float) -> list[Job[Any]]:
    """The last jobs of the chains that these belong to, once all of them are over or have failed."""
    if not ids:
        return []
    chains = Chains(store, ids, timeout)
    with store.notifier.subscribe("done") as sleeper:
        chains.watch()
        while True:
            sleeper.clear()
            began = time.monotonic()
            ends = chains.look()
            if ends is not None:
                return ends
            if rest := chains.rest(time.monotonic() - began):
                time.sleep(rest)
            sleeper.wait(chains.pause())


async def await_for(store: Store, ids: Sequence[str], timeout: float) -> list[Job[Any]]:
    """The same for async code. It has a thread only while it looks: those who wait are in nobody's way."""
    import asyncio

    if not ids:
        return []
    chains = Chains(store, ids, timeout)
    with store.notifier.subscribe_async("done") as sleeper:
        await change_in_thread(chains.watch)
        while True:
            sleeper.clear()
            began = time.monotonic()
            ends = await look_in_thread(chains.look)
            if ends is not None:
                return ends
            if rest := chains.rest(time.monotonic() - began):
                await asyncio.sleep(rest)
            await sleeper.wait(chains.pause())
