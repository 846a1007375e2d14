"""Drops partitions of `finished` whose jobs all ended long enough ago. Readers and writers are not blocked meanwhile.

There are three stages. Each can be interrupted, and a later run continues it. First the rows of other tables that
belong to the jobs are deleted in batches, each in a short transaction; then the partition is detached; then it is
dropped. One process does this at a time, and the others skip it. A process that was delayed may find that another has
continued its work: an error caused by that is ignored.

The owner of the tables detaches CONCURRENTLY, which waits, outside of any transaction, for the transactions that use
the partition. It gives up after a while, and a later run finishes it. A role that may only call `drop_partition` does
not detach: then the drop locks `finished` for a moment, if it gets that lock almost at once. A role that may do neither
leaves the partitions alone: their rows are pruned one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import errors as pg

from .._system import SYSTEM

log = logging.getLogger("relet.store")

WAIT_FOR = 5.0  # seconds to wait for transactions that use a partition which is being detached
LOCK_SECONDS = 60.0  # how long other processes skip the work if a process dies in the middle
EXTEND_AFTER = 10.0  # seconds after which the lock is extended
BATCH_ROWS = 5000
NO_JOB = "00000000-0000-0000-0000-000000000000"

#: Errors when another process was faster, or uses the partition just now: a later run drops it.
_ANOTHER_TIME = (
    pg.QueryCanceled,
    pg.LockNotAvailable,
    pg.DeadlockDetected,
    pg.ObjectNotInPrerequisiteState,  # a detach is already pending, or no longer pending
    pg.UndefinedTable,  # it has been dropped, or is no longer a partition
    pg.WrongObjectType,  # it has been attached again
    pg.DuplicateTable,
    pg.InternalError_,  # "tuple concurrently updated" in a system catalog
)

_TAKE_LOCK = """
update {schema}.locks set until = clock_timestamp() + make_interval(secs => %(turn)s)
where name = 'prune' and (until < clock_timestamp() or until > clock_timestamp() + make_interval(secs => %(turn)s))
returning 1
"""

_EXTEND_LOCK = (
    "update {schema}.locks set until = clock_timestamp() + make_interval(secs => %(turn)s) where name = 'prune'"
)

_OLD = """
select c.relname, i.inhdetachpending, to_date(right(c.relname, 8), 'YYYYMMDD'), pg_has_role(p.relowner, 'usage')
from pg_class c left join pg_inherits i on i.inhrelid = c.oid, pg_class p
where c.relnamespace = to_regnamespace(%(schema)s) and c.relname ~ '^finished_[0-9]{8}$'
  and p.oid = to_regclass(%(schema)s || '.finished')
  and (pg_has_role(p.relowner, 'usage')
       or has_function_privilege(%(schema)s || '.drop_partition(date, double precision)', 'execute'))
  and to_date(right(c.relname, 8), 'YYYYMMDD') + 1
      <= ((statement_timestamp() - make_interval(secs => %(seconds)s)) at time zone 'UTC')::date
order by c.relname
"""

_BOUNDS = """
select {schema}.first_id(%(day)s::timestamp at time zone 'UTC')::text,
       {schema}.first_id((%(day)s::date + 1)::timestamp at time zone 'UTC')::text
"""

# No job of that day may be live, or have finished recently, or be a dependency that a waiting job still needs.
_MAY_DROP = """
select not exists (select from {schema}.jobs where id >= %(low)s::uuid and id < %(high)s::uuid)
   and not exists (select from {schema}.finished
                   where id >= %(low)s::uuid and id < %(high)s::uuid
                     and finished_at >= statement_timestamp() - make_interval(secs => %(seconds)s))
   and not exists (select from {schema}.dependencies e join {schema}.finished f on f.chain = e.depends_on
                   where e.state is null and f.id >= %(low)s::uuid and f.id < %(high)s::uuid)
"""

# An open transaction that uses the partition would block the detach, and rows it writes there are hidden until then.
_IN_USE = """
select exists (select from pg_locks
               where relation = to_regclass(%(part)s) and locktype = 'relation' and pid <> pg_backend_pid()
                 and database = (select oid from pg_database where datname = current_database()))
"""

# By the day, not by the job: one index scan that starts where the previous batch ended, whatever join the planner would
# choose. Jobs that were added to the day since the check keep their details.
_DETAILS = """
with batch as materialized (
    select d.ctid as place, d.job from {schema}.{table} d
    where d.job >= %(low)s::uuid and d.job < %(high)s::uuid and d.job <> %(passed)s::uuid
    order by d.job
    limit %(limit)s
    for update skip locked
),
gone as (
    delete from {schema}.{table} d where d.ctid = any(array(
        select b.place from batch b
        where (select true from {schema}.jobs j where j.id = b.job) is null
          and (select true from {schema}.finished f
               where f.id = b.job and f.id >= %(low)s::uuid and f.id < %(high)s::uuid
                 and f.finished_at >= statement_timestamp() - make_interval(secs => %(seconds)s)) is null))
    returning 1
)
select (select count(*) from batch), (select count(*) from gone), (select max(job::text) from batch)
"""

_DROP = "select {schema}.drop_partition(%(day)s::date, %(seconds)s::float8)"


class _Old(NamedTuple):
    part: str
    pending: bool | None  # a detach is pending; None: it is already detached
    day: Any
    owned: bool


def drop_old(
    raw: psycopg.Connection[Any], schema: str, seconds: float, stop: Callable[[], bool] = lambda: False
) -> list[str]:
    """Drop partitions that are old enough, and return their names. `stop` is called between two batches."""
    found = raw.execute(_OLD, {"schema": schema, "seconds": seconds}).fetchall()
    if not found or not raw.execute(_TAKE_LOCK.format(schema=schema), {"turn": LOCK_SECONDS}).fetchone():
        return []
    dropping = _Dropping(raw, schema, seconds, stop)
    try:
        return [old.part for old in map(_Old._make, found) if dropping.drop(old)]
    finally:
        if not raw.closed:
            raw.execute(_EXTEND_LOCK.format(schema=schema), {"turn": 0.0})


class _Dropping:
    """One run of dropping partitions, by the process that has the lock."""

    def __init__(self, raw: psycopg.Connection[Any], schema: str, seconds: float, stop: Callable[[], bool]) -> None:
        self._raw, self._schema, self._seconds, self._stop = raw, schema, seconds, stop
        self._extended = SYSTEM.monotonic()

    def drop(self, old: _Old) -> bool:
        """Drop one partition. False: it was not dropped, and a later run will do it."""
        if self._stop():
            return False
        try:
            if old.pending is False and not (self._may_drop(old) and self._delete_details(old)):
                return False
            if old.pending is not None and old.owned and not self._detach(old):
                return False
            return bool(self._value(_DROP, day=old.day))
        except _ANOTHER_TIME as error:
            log.debug("partition %s is not dropped now, a later run will try again: %s", old.part, error)
            return False

    def _may_drop(self, old: _Old) -> bool:
        return bool(self._value(_MAY_DROP, **self._bounds(old)))

    def _delete_details(self, old: _Old) -> bool:
        """Delete the rows of other tables that belong to the jobs. False: stopped early.

        Deleted rows stay deleted, and the next run continues from there.
        """
        for table in ("attempts", "steps", "signals", "dependencies", "tags", "reruns"):
            bounds, passed, number = self._bounds(old), NO_JOB, BATCH_ROWS
            while number == BATCH_ROWS:
                if self._stop():
                    return False
                query = _DETAILS.replace("{table}", table)
                number, gone, last = self._row(query, limit=BATCH_ROWS, passed=passed, **bounds)
                bounds["low"], passed = last or bounds["low"], NO_JOB if gone else last
        return True

    def _detach(self, old: _Old) -> bool:
        if self._value(_IN_USE, part=f'{self._schema}."{old.part}"'):
            return False
        how = "finalize" if old.pending else "concurrently"
        with _cancelled_after_timeout(self._raw):
            self._raw.execute(f'alter table {self._schema}.finished detach partition {self._schema}."{old.part}" {how}')
        return True

    def _bounds(self, old: _Old) -> dict[str, str]:
        low, high = self._row(_BOUNDS, day=old.day)
        return {"low": low, "high": high}

    def _value(self, query: str, **params: Any) -> Any:
        return self._row(query, **params)[0]

    def _row(self, query: str, **params: Any) -> tuple[Any, ...]:
        if SYSTEM.monotonic() - self._extended > EXTEND_AFTER:
            self._raw.execute(_EXTEND_LOCK.format(schema=self._schema), {"turn": LOCK_SECONDS})
            self._extended = SYSTEM.monotonic()
        text = query.format(schema=self._schema)
        found: tuple[Any, ...] | None = self._raw.execute(text, {"seconds": self._seconds, **params}).fetchone()
        assert found is not None
        return found


@contextmanager
def _cancelled_after_timeout(raw: psycopg.Connection[Any]) -> Iterator[None]:
    """Cancel the statement if it takes too long. A statement_timeout would stay set in a pooler's session."""
    timer = SYSTEM.timer(WAIT_FOR, raw.cancel)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
