"""The other verbs of operators, by the model. Said to a chain, a verb goes to the one job of it that is not over."""

from __future__ import annotations

from typing import Any

from relet._core.job import Draft
from relet.errors import HasDependents, InvalidTransition, JobNotFound
from tests.store.model import OVER, Model, Row


class FullModel(Model):
    def run_now(self, id: str, now: float) -> dict[str, Any]:
        row = self._find(id, "run_now", "pending")
        if row.wait != "time":
            raise InvalidTransition(id, "run_now", "pending")
        row.run_at = now
        return row.view()

    def delete(self, id: str, now: float) -> bool:
        row = self.jobs.get(id)
        if row is not None:
            if row.state in OVER:  # jobs that waited for it shall have its result
                self._decide_all([row.chain], now)
            self._free_key(row)
            del self.jobs[id]
        return row is not None

    def set_queue(self, queue: str, paused: bool | None, limit: int | None, keep: bool) -> None:
        old_paused, old_limit = self.queues.get(queue, (False, None))
        self.queues[queue] = (old_paused if paused is None else paused, old_limit if keep else limit)

    def set_group_limit(self, queue: str, group: str, limit: int | None) -> None:
        self.set_queue(queue, None, None, keep=True)
        self.group_limits.pop((queue, group), None)
        if limit is not None:
            self.group_limits[queue, group] = limit

    def cancel_chain(self, id: str, now: float) -> dict[str, Any]:
        return self.cancel(self._last_job(id), now)

    def complete_chain(self, id: str, result: str | None, successor: Draft[Any] | None, now: float) -> dict[str, Any]:
        return self.complete(self._last_job(id), result, successor, now)

    def delete_chain(self, id: str, dependents: bool, now: float) -> list[str]:
        if id not in self.jobs:
            raise JobNotFound(id)
        root = self.jobs[id].chain
        self._decide_all([root], now)
        chains, waiting = {root}, self._waiting_for({root})
        if waiting and not dependents:
            raise HasDependents(root, tuple(sorted(row.draft.id for row in waiting)))
        while waiting:
            chains |= {row.chain for row in waiting}
            waiting = [row for row in self._waiting_for(chains) if row.chain not in chains]
        gone = [row for chain in chains for row in self._of(chain)]
        for row in gone:
            self._free_key(row)
            del self.jobs[row.draft.id]
        return sorted(row.draft.id for row in gone)

    def _last_job(self, id: str) -> str:
        """The last job of a chain that there is."""
        if id not in self.jobs:
            raise JobNotFound(id)
        return max(self._of(self.jobs[id].chain), key=lambda row: row.position).draft.id

    def _of(self, chain: str) -> list[Row]:
        return [row for row in self.jobs.values() if row.chain == chain]

    def _waiting_for(self, chains: set[str]) -> list[Row]:
        live = [row for row in self.jobs.values() if row.state not in OVER]
        return [row for row in live if any(end is None and on in chains for on, (end, *_) in row.dependencies.items())]
