"""Pruning: deletes jobs that ended long ago, and their rows in other tables, in small transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from .flows import maintenance, stats
from .flows.maintenance import Pruned
from .store import Store


class PruneRound:
    """Everything that can be deleted now.

    `run` runs a flow that deletes rows and returns plain values. `stop` ends the round early. `next_key`: where the
    check of unique keys goes on; of millions of keys, `key_steps` transactions check some (None: all of them).
    `keep_payloads`: when jobs that ended lose their payloads (None: never); `next_payload`: where that goes on.
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
        keep_payloads: float | None = None,
        next_payload: str | None = None,
        key_steps: int | None = None,
    ) -> None:
        self._store, self._run, self._stop = store, run, stop
        self._keep_finished, self._keep_failed = keep_finished, keep_failed
        self._key_steps = key_steps
        self._keep_payloads, self.next_payload = keep_payloads, next_payload
        self.next_key = next_key
        self.total = Pruned()

    def steps(self) -> Iterator[Pruned]:
        """Yields what was deleted so far after each transaction, with `more` while jobs are left."""
        while self._store.run(stats.roll_up) and not self._stop():
            pass  # in small transactions
        dropped = tuple(self._store.drop_old(self._keep_finished, self._stop))
        self.total = Pruned(partitions=dropped)
        yield from self._delete_jobs()
        yield from self._strip_payloads()
        yield from self._delete_keys()

    def _delete_jobs(self) -> Iterator[Pruned]:
        ages = {"keep_finished": self._keep_finished, "keep_failed": self._keep_failed}
        more = True
        while more:
            counts = self._run(maintenance.prune_counted, **ages, limit=self._store.prune_at_once)
            finished, failed, keys, more = counts
            self._add(finished, failed, keys, more)
            yield self.total

    def _strip_payloads(self) -> Iterator[Pruned]:
        """Remove the payloads of jobs that ended long ago. A later round begins anew: some jobs take long to end."""
        more = self._keep_payloads is not None
        while more:
            step = (self._keep_payloads, self.next_payload)
            stripped, self.next_payload = self._run(maintenance.strip_payloads, *step, limit=self._store.prune_at_once)
            more = self.next_payload is not None
            self.total = structs.replace(self.total, stripped=self.total.stripped + stripped)
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
        self.total = structs.replace(
            before,
            finished=before.finished + finished,
            failed=before.failed + failed,
            keys=before.keys + keys,
            more=more,
        )
