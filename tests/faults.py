"""Errors of the database on demand: a trigger that fails a number of times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def failing(
    dsn: str, schema: str, table: str, state: str, *, times: int = 1_000_000, when: str = "true"
) -> Iterator[None]:
    """As `fail_with`, within the block."""
    fail_with(dsn, schema, table, state, times=times, when=when)
    try:
        yield
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f'drop function "{schema}".fail cascade; drop sequence "{schema}".faults'.encode())


def fail_with(dsn: str, schema: str, table: str, state: str, *, times: int = 1_000_000, when: str = "true") -> None:
    """The next changes of this table fail with this SQLSTATE, so many times: rows that fit, as `new.queue = 'mail'`."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"""
            create sequence "{schema}".faults;
            create function "{schema}".fail() returns trigger language plpgsql as $$
            begin
                if ({when}) and nextval('"{schema}".faults') <= {times} then  -- a sequence counts what is rolled back
                    raise exception 'not now' using errcode = '{state}';
                end if;
                return new;
            end $$;
            create trigger fail before insert or update on "{schema}"."{table}"
            for each row execute function "{schema}".fail();
            """.encode()
        )


def failures(dsn: str, schema: str) -> int:
    """How often it has failed, or would have."""
    with psycopg.connect(dsn) as connection:
        (last,) = connection.execute(f'select last_value from "{schema}".faults'.encode()).fetchone() or (0,)
        return int(last)
