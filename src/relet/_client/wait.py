"""Waiting for chains: read their states, wait until something has ended, read again. Polling backs notifications up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .._core.job import Job
from .._store.flows import control, inspect
from .._store.store import Store
from .._threads import read_in_thread, write_in_thread
from ..errors import JobNotFound, WaitTimeout

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
LONG_READ = 0.01  # seconds; a longer read is followed by a rest of the same length, however often notifications come


class Chains:
    """The chains of some jobs, until all of them have ended or failed.

    One statement reads all of them; those that have ended are not read again.
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
        """Have the end of each chain notify."""
        self._chains = self._store.run(control.watch, self._ids)
        self._left = list(dict.fromkeys(self._chains.values()))

    def read(self) -> list[Job[Any]] | None:
        """The last job of each chain, in the order of the jobs; None while some have not ended."""
        chains = self._chains
        ends = self._store.run(inspect.ends, self._left)
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

    def rest(self, seconds_read: float) -> float:
        """How many seconds to rest after a read that took so long."""
        left = self._give_up - time.monotonic()
        return max(min(seconds_read, left), 0.0) if seconds_read > LONG_READ else 0.0

    def pause(self) -> float:
        """How many seconds to wait for a notification."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE)
        return min(pause, max(self._give_up - time.monotonic(), 0.0))


def wait_for(store: Store, ids: Sequence[str], timeout: float) -> list[Job[Any]]:
    """The last jobs of the chains that these jobs belong to, once all of them have ended or failed."""
    if not ids:
        return []
    chains = Chains(store, ids, timeout)
    with store.notifier.subscribe("done") as subscription:
        chains.watch()
        while True:
            subscription.clear()
            began = time.monotonic()
            ends = chains.read()
            if ends is not None:
                return ends
            if rest := chains.rest(time.monotonic() - began):
                time.sleep(rest)
            subscription.wait(chains.pause())


async def await_for(store: Store, ids: Sequence[str], timeout: float) -> list[Job[Any]]:
    """The same for async code. A wait takes a thread only for each read, so that any number of waits is possible."""
    import asyncio

    if not ids:
        return []
    chains = Chains(store, ids, timeout)
    with store.notifier.subscribe_async("done") as subscription:
        await write_in_thread(chains.watch)
        while True:
            subscription.clear()
            began = time.monotonic()
            ends = await read_in_thread(chains.read)
            if ends is not None:
                return ends
            if rest := chains.rest(time.monotonic() - began):
                await asyncio.sleep(rest)
            await subscription.wait(chains.pause())
