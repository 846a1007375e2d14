"""The pruner: deletes jobs that ended long ago, in small transactions with a pause after each."""

from __future__ import annotations

from collections.abc import Iterator

from .._store.pruning import PruneRound
from .context import WorkerContext
from .loop import Loop
from .reconnect import ReconnectingStore

PRUNE_EVERY = 300.0
PAUSE = 0.05  # seconds between two transactions
KEY_STEPS = 20  # transactions that check unique keys in each round


class Pruner:
    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._settings, self._system = context.settings, context.system
        self.loop = Loop(context.system, "pruner", self.step, context.threads)
        self._store = store.stopped_by(self.loop.stopping)
        self._next_key = ""
        self._round: Iterator[object] = iter(())
        self.is_pruning = False

    def begin_round(self) -> None:
        """Have the first step begin a round. Called before the loop starts."""
        self._round, self.is_pruning = self._prune(), True

    def step(self) -> float:
        """Run one transaction of the current round. After the last one, wait for the next round."""
        for _ in self._round:
            self.is_pruning = True
            return PAUSE
        self._round, self.is_pruning = self._prune(), False
        return PRUNE_EVERY * self._system.uniform(0.5, 1.5)

    def prune(self) -> None:
        """Run a whole round without pauses."""
        for _ in self._prune():
            pass

    def _prune(self) -> Iterator[object]:
        settings = self._settings
        prune = PruneRound(
            self._store.store, self._store.run, settings.keep_finished, settings.keep_failed,
            stop=self.loop.stopping.is_set, next_key=self._next_key, key_steps=KEY_STEPS,
            keep_payloads=settings.keep_payloads,
        )  # fmt: skip
        yield from prune.steps()
        self._next_key = prune.next_key
