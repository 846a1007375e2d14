"""Dropping partitions of `finished` whose jobs have all been over for long enough. Readers and writers go on meanwhile.

Detaching CONCURRENTLY waits for those who use the partition, outside of any transaction. It is given up after a while
and finished another time: a partition that is half detached is in nobody's way.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

WAIT_FOR = 5.0

_OLD = """
select c.relname, i.inhdetachpending
from pg_class c left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = to_regnamespace(%(schema)s) and c.relname ~ '^finished_[0-9]{8}$'
  and to_date(right(c.relname, 8), 'YYYYMMDD') + 1
      <= ((statement_timestamp() - make_interval(secs => %(seconds)s)) at time zone 'UTC')::date
order by c.relname
"""

_DETAILS = """
with ended as (
    delete from {schema}.attempts a using {schema}."{part}" f where a.job = f.id
)
delete from {schema}.edges e using {schema}."{part}" f where e.job = f.id
"""


def drop_old(raw: psycopg.Connection[Any], schema: str, seconds: float) -> list[str]:
    """Drop what is old enough; returns the names of what was dropped."""
    dropped = []
    for part, pending in raw.execute(_OLD, {"schema": schema, "seconds": seconds}).fetchall():
        if pending is not None and not _all_old(raw, schema, part, seconds):
            continue
        try:
            with _patience(raw):
                if pending is False:
                    raw.execute(_DETAILS.format(schema=schema, part=part))
                    raw.execute(f'alter table {schema}.finished detach partition {schema}."{part}" concurrently')
                elif pending:
                    raw.execute(f'alter table {schema}.finished detach partition {schema}."{part}" finalize')
                raw.execute(f'drop table {schema}."{part}"')
        except (psycopg.errors.QueryCanceled, psycopg.errors.ObjectNotInPrerequisiteState):
            continue  # somebody reads it, or drops it just now
        dropped.append(part)
    return dropped


def _all_old(raw: psycopg.Connection[Any], schema: str, part: str, seconds: float) -> bool:
    """A job may have waited for long and finished yesterday."""
    recent = "finished_at >= statement_timestamp() - make_interval(secs => %s)"
    query = f'select not exists (select from {schema}."{part}" where {recent})'  # noqa: S608
    return bool((raw.execute(query, (seconds,)).fetchone() or (False,))[0])


@contextmanager
def _patience(raw: psycopg.Connection[Any]) -> Iterator[None]:
    """Cancels what takes too long. A setting would outlive us in a pooler's session."""
    timer = threading.Timer(WAIT_FOR, raw.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
