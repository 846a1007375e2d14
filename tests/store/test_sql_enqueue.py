"""The SQL function `enqueue` does what the client does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from leasehold import App, Job, KeyTaken
from leasehold.tasks import PlainTask

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "elsewhere": {"queue": "mail", "priority": -7, "max_attempts": 9},
    "later": {"delay": 3600},
    "in line": {"target": "acct-7"},
    "keyed": {"unique": "k"},
    "in a window": {"unique": "k", "unique_for": 60},
}
MADE_BY_THE_CALL = {"id", "chain", "created_at", "run_at"}


@pytest.fixture
def app(pg_url: str, schema: str) -> Iterator[App]:
    app = App(pg_url, schema=schema)
    app.client.migrate()
    yield app
    app.close()


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    def greet(name: str = "x") -> str:
        return name

    return app.task(greet)


@pytest.fixture
def sql(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        yield connection


def call(sql: psycopg.Connection[Any], schema: str, **options: Any) -> str:
    words = {"unique": "unique_key"}
    casts = {"after": "::uuid[]", "delay": "::float8", "unique_for": "::float8"}
    given = "".join(f", {words.get(name, name)} => %({name})s{casts.get(name, '')}" for name in options)
    query = f"""select {schema}.enqueue('greet', '{{"name":"Ada"}}'{given})::text"""
    (id,) = sql.execute(query.encode(), options).fetchone() or (None,)
    assert isinstance(id, str)
    return id


def shown(job: Job[Any] | None) -> dict[str, Any]:
    assert job is not None
    return {name: getattr(job, name) for name in job.__struct_fields__ if name not in MADE_BY_THE_CALL}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_sql_and_the_client_store_the_same_job(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str, options: dict[str, Any]
) -> None:
    by_client = task.using(**options).enqueue("Ada")
    first = app.client.get(by_client)
    app.client.delete(by_client)
    sql.execute(f"delete from {schema}.keys".encode())
    by_sql = app.client.get(call(sql, schema, **options))
    assert shown(by_sql) == shown(first)
    assert by_sql is not None
    assert abs((by_sql.run_at - by_sql.created_at) - (by_client.run_at - by_client.created_at)).total_seconds() < 0.001


def test_a_key_that_is_held_returns_its_job(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str
) -> None:
    job = task.using(unique="k").enqueue("Ada")
    assert call(sql, schema, unique="k") == job.id
    app.client.complete(job, "done")
    assert call(sql, schema, unique="k") != job.id


def test_an_id_that_exists_returns_its_job_also_when_it_is_over(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str
) -> None:
    job = task.enqueue("Ada")
    assert call(sql, schema, id=job.id) == job.id
    app.client.complete(job, "done")
    assert call(sql, schema, id=job.id) == job.id
    assert app.client.count() == 1


def test_blockers_keep_the_order_in_which_they_were_named(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str
) -> None:
    jobs = app.client.enqueue_many([task.draft(str(number)) for number in range(5)])
    named = [job.id for job in reversed(jobs)]
    by_client = app.client.blockers(task.using(after=named).enqueue("Ada"))
    by_sql = app.client.blockers(call(sql, schema, after=named))
    assert [one.chain for one in by_client] == named
    assert [one.chain for one in by_sql] == named


def test_a_window_whose_job_is_gone_is_an_error_as_it_is_for_the_client(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str
) -> None:
    daily = task.using(unique="k", unique_for=60)
    app.client.delete(daily.enqueue("Ada"))
    with pytest.raises(KeyTaken):
        daily.enqueue("Ada")
    with pytest.raises(psycopg.Error, match="leasehold: "):
        call(sql, schema, unique="k", unique_for=60)
