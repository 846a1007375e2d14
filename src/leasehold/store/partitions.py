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
),
stepped as (
    delete from {schema}.steps s using {schema}."{part}" f where s.job = f.id
),
told as (
    delete from {schema}.signals s using {schema}."{part}" f where s.job = f.id
)
delete from {schema}.edges e using {schema}."{part}" f where e.job = f.id
"""


# A job of that day may still live, or have finished yesterday; or another may wait for what one came to.
_MAY_GO = """
with day as (select to_date(%(day)s, 'YYYYMMDD') as day)
select not exists (select from {schema}.jobs, day
                   where id >= {schema}.first_id(day.day::timestamp at time zone 'UTC')
                     and id < {schema}.first_id((day.day + 1)::timestamp at time zone 'UTC'))
   and not exists (select from {schema}."{part}"
                   where finished_at >= statement_timestamp() - make_interval(secs => %(seconds)s))
   and not exists (select from {schema}.edges e join {schema}."{part}" f on f.chain = e.blocker where e.state is null)
"""


def drop_old(raw: psycopg.Connection[Any], schema: str, seconds: float) -> list[str]:
    """Drop what is old enough; returns the names of what was dropped."""
    dropped = []
    for part, pending in raw.execute(_OLD, {"schema": schema, "seconds": seconds}).fetchall():
        try:
            with _patience(raw):
                if pending is None or _may_go(raw, schema, part, seconds):
                    _detach(raw, schema, part, pending)
                    if _drop(raw, schema, part, seconds):
                        dropped.append(part)
        except (psycopg.errors.QueryCanceled, psycopg.errors.ObjectNotInPrerequisiteState):
            continue  # somebody reads it, or drops it just now
    return dropped


def _may_go(raw: psycopg.Connection[Any], schema: str, part: str, seconds: float) -> bool:
    """Nobody needs the partition."""
    query = _MAY_GO.format(schema=schema, part=part)
    found = raw.execute(query, {"day": part[-8:], "seconds": seconds}).fetchone()
    return bool(found and found[0])


def _detach(raw: psycopg.Connection[Any], schema: str, part: str, pending: bool | None) -> None:
    if pending is not None:
        how = "finalize" if pending else "concurrently"
        raw.execute(f'alter table {schema}.finished detach partition {schema}."{part}" {how}')


def _drop(raw: psycopg.Connection[Any], schema: str, part: str, seconds: float) -> bool:
    """Drop what is detached; unless a job came to it at the last moment: then it is attached again."""
    if not _may_go(raw, schema, part, seconds):
        raw.execute(f"select {schema}.attach_partition(to_date(%s, 'YYYYMMDD'))", (part[-8:],))
        return False
    raw.execute(_DETAILS.format(schema=schema, part=part))
    raw.execute(f'drop table {schema}."{part}"')
    return True


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
