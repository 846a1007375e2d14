"""Dropping partitions of `finished` whose jobs have all been over for long enough. Readers and writers go on meanwhile.

Three stages, each of which can be interrupted and goes on another time: what belongs to the jobs is deleted in batches,
each a short transaction; then the partition is detached; then it is dropped. One process does this at a time, the
others skip it. A process that was held up may find that another has gone on: what has changed meanwhile is no error.

Detaching CONCURRENTLY, for the owner of the tables, waits for those who use the partition, outside of any transaction.
It is given up after a while and finished another time. A role that may only call `drop_partition` does without: then
the drop locks `finished` for a moment, if it can have that lock almost at once. A role that may do neither leaves the
partitions alone: its rows are pruned one by one.
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

WAIT_FOR = 5.0  # for those who use a partition that is being detached
TURN = 60.0  # how long the others skip it if a process dies in the middle
TURN_AGAIN = 10.0
MOST = 5000  # rows of one batch
NO_JOB = "00000000-0000-0000-0000-000000000000"

#: Another process was quicker, or uses the partition just now.
_ANOTHER_TIME = (
    pg.QueryCanceled,
    pg.LockNotAvailable,
    pg.DeadlockDetected,
    pg.ObjectNotInPrerequisiteState,  # a detach is pending, or is not
    pg.UndefinedTable,  # it is gone, or no partition any more
    pg.WrongObjectType,  # it is a partition already
    pg.DuplicateTable,
    pg.InternalError_,  # "tuple concurrently updated", of a catalog
)

_MY_TURN = """
update {schema}.locks set until = clock_timestamp() + make_interval(secs => %(turn)s)
where name = 'prune' and (until < clock_timestamp() or until > clock_timestamp() + make_interval(secs => %(turn)s))
returning 1
"""

_STILL_MY_TURN = (
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

# A job of that day may still live, or have finished yesterday; or another may wait for what one came to.
_MAY_GO = """
select not exists (select from {schema}.jobs where id >= %(low)s::uuid and id < %(high)s::uuid)
   and not exists (select from {schema}.finished
                   where id >= %(low)s::uuid and id < %(high)s::uuid
                     and finished_at >= statement_timestamp() - make_interval(secs => %(seconds)s))
   and not exists (select from {schema}.edges e join {schema}.finished f on f.chain = e.blocker
                   where e.state is null and f.id >= %(low)s::uuid and f.id < %(high)s::uuid)
"""

# An open transaction that uses the partition would hold up the detach, and what it writes there is hidden until then.
_IN_USE = """
select exists (select from pg_locks
               where relation = to_regclass(%(part)s) and locktype = 'relation' and pid <> pg_backend_pid()
                 and database = (select oid from pg_database where datname = current_database()))
"""

# By the day, not by the job: one way into the index, from where the batch before has ended, whatever the planner thinks
# of joins. What has come to the day since the check keeps its details.
_DETAILS = """
with batch as materialized (
    select d.ctid as place, d.job from {schema}.{table} d
    where d.job >= %(low)s::uuid and d.job < %(high)s::uuid and d.job <> %(passed)s::uuid
    order by d.job
    limit %(most)s
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
    pending: bool | None  # None: it is detached already
    day: Any
    owned: bool


def drop_old(
    raw: psycopg.Connection[Any], schema: str, seconds: float, stop: Callable[[], bool] = lambda: False
) -> list[str]:
    """Drop what is old enough; returns the names of what was dropped. `stop` is asked between two batches."""
    found = raw.execute(_OLD, {"schema": schema, "seconds": seconds}).fetchall()
    if not found or not raw.execute(_MY_TURN.format(schema=schema), {"turn": TURN}).fetchone():
        return []
    dropping = _Dropping(raw, schema, seconds, stop)
    try:
        return [old.part for old in map(_Old._make, found) if dropping.drop(old)]
    finally:
        if not raw.closed:
            raw.execute(_STILL_MY_TURN.format(schema=schema), {"turn": 0.0})


class _Dropping:
    """The turn of one process at dropping partitions."""

    def __init__(self, raw: psycopg.Connection[Any], schema: str, seconds: float, stop: Callable[[], bool]) -> None:
        self._raw, self._schema, self._seconds, self._stop = raw, schema, seconds, stop
        self._extended = SYSTEM.monotonic()

    def drop(self, old: _Old) -> bool:
        """Whether it was dropped; if not, another prune will do it."""
        if self._stop():
            return False
        try:
            if old.pending is False and not (self._may_go(old) and self._delete_details(old)):
                return False
            if old.pending is not None and old.owned and not self._detach(old):
                return False
            return bool(self._ask(_DROP, day=old.day))
        except _ANOTHER_TIME as error:
            log.debug("partition %s is dropped another time: %s", old.part, error)
            return False

    def _may_go(self, old: _Old) -> bool:
        return bool(self._ask(_MAY_GO, **self._bounds(old)))

    def _delete_details(self, old: _Old) -> bool:
        """Whether all are gone. What was deleted stays so, and the next prune begins where this one was stopped."""
        for table in ("attempts", "steps", "signals", "edges"):
            bounds, passed, number = self._bounds(old), NO_JOB, MOST
            while number == MOST:
                if self._stop():
                    return False
                query = _DETAILS.replace("{table}", table)
                number, gone, last = self._row(query, most=MOST, passed=passed, **bounds)
                bounds["low"], passed = last or bounds["low"], NO_JOB if gone else last
        return True

    def _detach(self, old: _Old) -> bool:
        if self._ask(_IN_USE, part=f'{self._schema}."{old.part}"'):
            return False
        how = "finalize" if old.pending else "concurrently"
        with _patience(self._raw):
            self._raw.execute(f'alter table {self._schema}.finished detach partition {self._schema}."{old.part}" {how}')
        return True

    def _bounds(self, old: _Old) -> dict[str, str]:
        low, high = self._row(_BOUNDS, day=old.day)
        return {"low": low, "high": high}

    def _ask(self, query: str, **params: Any) -> Any:
        return self._row(query, **params)[0]

    def _row(self, query: str, **params: Any) -> tuple[Any, ...]:
        if SYSTEM.monotonic() - self._extended > TURN_AGAIN:
            self._raw.execute(_STILL_MY_TURN.format(schema=self._schema), {"turn": TURN})
            self._extended = SYSTEM.monotonic()
        text = query.format(schema=self._schema)
        found: tuple[Any, ...] | None = self._raw.execute(text, {"seconds": self._seconds, **params}).fetchone()
        assert found is not None  # noqa: S101 - each of them returns one row
        return found


@contextmanager
def _patience(raw: psycopg.Connection[Any]) -> Iterator[None]:
    """Cancels what takes too long. A setting would outlive us in a pooler's session."""
    timer = SYSTEM.timer(WAIT_FOR, raw.cancel)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
