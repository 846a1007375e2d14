"""Pruning: deletes jobs that ended long ago, and what belongs to them, in small transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .flows import maintenance, stats
from .flows.maintenance import Pruned
from .store import Store


class PruneRound:
    """Everything that can be deleted now.

    `run` runs a flow that deletes rows and returns plain values. `stop` ends the round early. `next_key`: where the
    check of unique keys goes on; of millions of keys, `key_steps` transactions check some (None: all of them).
    """

    def __init__(
        self,
        store: Store,
        run: Callable[..., Any],
        keep_finished: float,
        keep_failed: float,
        *,
        stop: Callable[[], bool] = lambda: False,
        next_key: str = "",
        key_steps: int | None = None,
    ) -> None:
        self._store, self._run, self._stop = store, run, stop
        self._keep_finished, self._keep_failed = keep_finished, keep_failed
        self._key_steps = key_steps
        self.next_key = next_key
        self.total = Pruned()

    def steps(self) -> Iterator[Pruned]:
        """Yields what was deleted so far after each transaction, with `more` while jobs are left."""
        self._store.run(stats.roll_up)
        dropped = tuple(self._store.drop_old(self._keep_finished, self._stop))
        self.total = Pruned(partitions=dropped)
        yield from self._delete_jobs()
        yield from self._delete_keys()

    def _delete_jobs(self) -> Iterator[Pruned]:
        ages = {"keep_finished": self._keep_finished, "keep_failed": self._keep_failed}
        more = True
        while more:
            counts = self._run(maintenance.prune_counted, **ages, limit=self._store.prune_at_once)
            finished, failed, keys, more = counts
            self._add(finished, failed, keys, more)
            yield self.total

    def _delete_keys(self) -> Iterator[Pruned]:
        """Unique keys whose job is gone."""
        steps = 0
        while self._key_steps is None or steps < self._key_steps:
            steps += 1
            deleted, following = self._run(maintenance.prune_stale_keys, self.next_key, limit=self._store.prune_at_once)
            self.next_key = following or ""
            self._add(0, 0, deleted, False)
            yield self.total
            if following is None:
                return

    def _add(self, finished: int, failed: int, keys: int, more: bool) -> None:
        before = self.total
        self.total = Pruned(
            before.finished + finished, before.failed + failed, before.keys + keys, before.partitions, more
        )
