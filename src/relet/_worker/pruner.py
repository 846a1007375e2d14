"""The pruner: deletes jobs that ended long ago, in small steps with a pause after each."""

from __future__ import annotations

from collections.abc import Iterator

from .._store.flows import maintenance as flows
from .._store.flows import stats
from .context import WorkerContext
from .loop import Loop
from .reconnect import ReconnectingStore

PRUNE_EVERY = 300.0
PAUSE = 0.05  # seconds between two steps
KEY_STEPS = 20  # of millions of unique keys, a few are checked each time


class Pruner:
    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._settings, self._system = context.settings, context.system
        self.loop = Loop(context.system, "pruner", self.step)
        self._store = store.stopped_by(self.loop.stopping)
        self._next_key = ""  # where the check of unique keys goes on
        self._round: Iterator[None] = iter(())

    def step(self) -> float:
        """One transaction of the round under way; at its end, the wait before the next."""
        for _ in self._round:
            return PAUSE
        self._round = self.round()
        return PRUNE_EVERY * self._system.uniform(0.5, 1.5)

    def prune(self) -> None:
        """A whole round at once."""
        for _ in self.round():
            pass

    def round(self) -> Iterator[None]:
        """Everything there is to delete now; yields between two transactions."""
        settings, store = self._settings, self._store.store
        self._store.run(stats.roll_up)
        store.drop_old(settings.keep_finished, self.loop.stopping.is_set)
        ages = {"keep_finished": settings.keep_finished, "keep_failed": settings.keep_failed}
        while self._store.run(flows.prune, **ages, most=store.prune_at_once).more:
            yield
        for _ in range(KEY_STEPS):
            _, following = self._store.run(flows.prune_stale_keys, self._next_key, most=store.prune_at_once)
            self._next_key = following or ""
            if following is None:
                return
            yield
