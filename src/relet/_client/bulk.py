"""A verb applied to all jobs that match a filter, in small transactions, newest job first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from .._core.filters import Filter
from .._core.verbs import BulkVerb
from .._store.flows import control, search
from .audit import AuditAction, AuditedStore

AT_ONCE = 50  # jobs that one transaction changes
SCAN = 10_000  # jobs that one search for them reads


class BulkResult(Struct, frozen=True):
    """How many jobs were changed, and how many no longer allowed it.

    `cursor`: set if the operation stopped early; pass it to continue.
    """

    done: int = 0
    refused: int = 0
    cursor: str | None = None


class Bulk(Struct, frozen=True):
    """A verb and the jobs to apply it to. `filters`: as the caller wrote them, for the audit trail."""

    verb: BulkVerb
    where: Filter
    filters: Mapping[str, Any]
    limit: int | None
    seconds: float | None
    on_step: Callable[[BulkResult], object] | None

    def run(self, store: AuditedStore, cursor: str | None) -> BulkResult:
        """Step by step: each job is changed once, even if it matches again afterwards."""
        total, left = BulkResult(), self.limit
        end = None if self.seconds is None else time.monotonic() + self.seconds
        while (left is None or left > 0) and (end is None or time.monotonic() < end):
            step = self._step(store, cursor, left)
            total = BulkResult(total.done + step.done, total.refused + step.refused, step.cursor)
            left = None if left is None else left - step.done - step.refused
            if self.on_step is not None and (step.done or step.refused):
                self.on_step(total)
            cursor = step.cursor
            if cursor is None:
                return structs.replace(total, cursor=None)
        return structs.replace(total, cursor=cursor)

    def _step(self, store: AuditedStore, cursor: str | None, left: int | None) -> BulkResult:
        """One transaction. `cursor` is where the following one starts; None: there are no more jobs."""
        following = cursor
        name = f"bulk {self.verb}"

        def find() -> tuple[AuditAction, tuple[Any, ...]] | None:
            nonlocal following
            limit = AT_ONCE if left is None else min(AT_ONCE, left)
            page = store.read(search.jobs, self.where, limit=limit, cursor=cursor, scan=SCAN)
            following = page.cursor
            if not page.jobs:
                return None
            ids = [job.id for job in page.jobs]
            details = {"filter": _plain(self.filters), "jobs": len(ids)}
            return AuditAction(name, ids[0], details), (getattr(control, self.verb), ids, following)

        changed = store.change_unless_made(name, find, control.bulk)
        return BulkResult(cursor=following) if changed is None else BulkResult(*changed)


def _plain(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as JSON can store them."""
    set_ones = {name: value for name, value in filters.items() if value is not None}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in set_ones.items()}
