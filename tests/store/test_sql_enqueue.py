"""The SQL function `enqueue` does what the client does."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest

from relet import App, Job, KeyTaken
from relet._tasks.task import PlainTask
from relet.errors import InvalidInput, InvalidPayload
from tests.conftest import PG_KINDS
from tests.databases import Database, shared_schema

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "elsewhere": {"queue": "mail", "priority": -7, "max_attempts": 9},
    "later": {"delay": 3600},
    "waits for its target": {"target": "acct-7"},
    "keyed": {"unique": "k"},
    "in a window": {"unique": "k", "unique_for": 60},
}
pytestmark = pytest.mark.partitioned  # the function is part of the variant postgres
MADE_BY_THE_CALL = {"id", "chain", "created_at", "run_at"}


@pytest.fixture
def app(pg_app: App) -> App:
    return pg_app


@pytest.fixture
def schema(pg_database: Database) -> str:
    return pg_database.schema


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    def greet(name: str = "x") -> str:
        return name

    return app.task(greet)


@pytest.fixture
def sql(pg_database: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_database.url, autocommit=True) as connection:
        yield connection


def call(sql: psycopg.Connection[Any], schema: str, **options: Any) -> str:
    words = {"unique": "unique_key", "group": "group_key"}
    casts = {"depends_on": "::uuid[]", "delay": "::float8", "unique_for": "::float8"}
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
    by_client = app.client.dependencies(task.using(depends_on=named).enqueue("Ada"))
    by_sql = app.client.dependencies(call(sql, schema, depends_on=named))
    assert [one.chain for one in by_client] == named
    assert [one.chain for one in by_sql] == named


def test_a_window_whose_job_is_gone_is_an_error_as_it_is_for_the_client(
    app: App, task: PlainTask[..., Any], sql: psycopg.Connection[Any], schema: str
) -> None:
    daily = task.using(unique="k", unique_for=60)
    app.client.delete(daily.enqueue("Ada"))
    with pytest.raises(KeyTaken):
        daily.enqueue("Ada")
    with pytest.raises(psycopg.Error, match="relet: "):
        call(sql, schema, unique="k", unique_for=60)


def nested(depth: int) -> Any:
    """A payload in which the deepest value is so deep; the payload itself is 1 deep."""
    value: Any = []
    for _ in range(depth - 2):
        value = [value]
    return value


BAD_NAMES = ["", "n" * 129, "a b", "ä", "a\n", "a\u202e"]
BAD_KEYS = [
    *(
        "",
        "k" * 513,
        "\n",
        "a\x7f",
        "a\x85",
        "a\xa0b",
        "a\xad",
        "\u200b",
        "a\u2028b",
        "\u2029",
        "a\u202eb",
        "\u2066",
        "\u3000",
    ),
    *("\ue000", "\ufeff", "\ufff9", "\U000e0041", "\U000f0000", "\U0010fffd"),
]
GOOD_KEYS = ["a", "a b", "k" * 512, "<svg onload=1>", "ä", "日本", "\U0001f600", "e\u0301", "\ufffd", "¡"]
BAD_IDS = [
    *(
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
        "00000000-0000-7000-8000-000000000001",
        "e677d21f-dc00-7000-8000-000000000001",
    ),
    *("0192f3a0-7c1e-4b3a-9d1f-2f6f5a1c0de1", "0192f3a0-7c1e-7b3a-1d1f-2f6f5a1c0de1"),  # no version 7; no variant
    *("016f5e66-e7ff-7000-8000-000000000001", "03bb2cc3-d800-7000-8000-000000000001"),  # a moment before, at the end
]
GOOD_IDS = ["016f5e66-e800-7000-8000-000000000001", "03bb2cc3-d7ff-7000-8000-000000000001"]
BAD_MOMENTS = ["1969-12-31T23:59:59+00:00", "2100-01-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00"]
BAD_PAYLOADS = [nested(65), nested(3000), 2**63, -(2**63) - 1, [10**30], {"a": 9**5000}, "a\0", float("inf")]
GOOD_PAYLOADS = [
    nested(64),
    2**63 - 1,
    -(2**63),
    1.5e300,
    ["12345678901234567890", '\\"99999999999999999999'],
    0.1234567890123456789,
]

REFUSED: list[tuple[str, Any]] = [
    *(("queue", one) for one in BAD_NAMES),
    *((name, one) for name in ("target", "unique", "group") for one in BAD_KEYS),
    ("group", "*"),
    *(("id", one) for one in BAD_IDS),
    *(("delay", one) for one in (-1.0, 4e8, float("nan"), float("inf"), float("-inf"))),
    *(("unique_for", one) for one in (-1.0, 0.0, 4e8, float("nan"))),
    *(("priority", one) for one in (-101, 101)),
    *(("max_attempts", one) for one in (0, 10_001)),
    *(("run_at", one) for one in BAD_MOMENTS),
    *(("payload", one) for one in BAD_PAYLOADS),
]
ACCEPTED: list[tuple[str, Any]] = [
    *((name, one) for name in ("target", "unique", "group") for one in GOOD_KEYS),
    *(("id", one) for one in GOOD_IDS),
    *(("delay", one) for one in (0.0, 316_224_000.0)),
    *(("run_at", one) for one in ("1970-01-01T00:00:00+00:00", "2099-12-31T23:59:59+00:00")),
    *(("payload", one) for one in GOOD_PAYLOADS),
]


def as_json(value: Any) -> str:
    """Its text; of nested lists too deep for Python's encoder as well."""
    depth = 0
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value, depth = value[0], depth + 1
    return "[" * depth + json.dumps(value) + "]" * depth


def by_client(task: PlainTask[..., Any], name: str, value: Any) -> None:
    if name == "payload":
        task.enqueue(value)
    else:
        options: dict[str, Any] = {name: datetime.fromisoformat(value) if name == "run_at" else value}
        if name == "unique_for":
            options["unique"] = "u"
        task.using(**options).enqueue("Ada")


def by_sql(sql: psycopg.Connection[Any], schema: str, name: str, value: Any) -> None:
    words = {"unique": "unique_key", "group": "group_key"}
    casts = {"payload": "::json", "id": "::uuid", "run_at": "::timestamptz", "priority": "::integer"}
    casts |= {"max_attempts": "::integer", "delay": "::float8", "unique_for": "::float8"}
    given = {"payload": json.dumps({"name": "Ada"}), name: value}
    if name == "payload":
        given["payload"] = '{"name":' + as_json(value) + "}"
    if name == "unique_for":
        given["unique"] = "u"
    listed = ", ".join(f"{words.get(one, one)} => %({one})s{casts.get(one, '')}" for one in given)
    sql.execute(f"select {schema}.enqueue('anything', {listed})".encode(), given)


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest) -> Iterator[tuple[PlainTask[..., Any], psycopg.Connection[Any], str]]:
    """A task that takes anything, a connection, and the schema: for many refusals one after another."""
    for database in shared_schema(request):
        app = App(database.url, schema=database.schema)

        def anything(name: Any) -> None: ...

        with psycopg.connect(database.url, autocommit=True) as connection:
            yield app.task(anything), connection, database.schema
        app.close()


@pytest.mark.parametrize("shop", PG_KINDS[:1], indirect=True)
def test_sql_refuses_and_accepts_the_same_values_as_the_client(
    shop: tuple[PlainTask[..., Any], psycopg.Connection[Any], str],
) -> None:
    task, sql, schema = shop
    sys.set_int_max_str_digits(0)
    for name, value in REFUSED:
        with pytest.raises((InvalidInput, InvalidPayload, OverflowError)):
            by_client(task, name, value)
        with pytest.raises(psycopg.errors.DataError) as error:
            by_sql(sql, schema, name, value)
        if "relet: " in str(error.value):
            assert error.value.sqlstate == "22023"
        else:
            assert name == "payload", (name, value, error.value)  # what is no JSON to PostgreSQL
    for name, value in ACCEPTED:
        by_client(task, name, value)
        by_sql(sql, schema, name, value)


@pytest.mark.long
@pytest.mark.parametrize("shop", PG_KINDS[:1], indirect=True)
def test_every_character_that_is_assigned_is_judged_as_python_does(
    shop: tuple[PlainTask[..., Any], psycopg.Connection[Any], str],
) -> None:
    _, sql, schema = shop
    known = [n for n in range(1, 0x110000) if unicodedata.category(chr(n)) not in ("Cn", "Cs")]
    query = f"select array_agg(n order by n) from unnest(%s::integer[]) n where {schema}.is_printable(chr(n))"
    (accepted,) = sql.execute(query.encode(), (known,)).fetchone() or ([],)
    assert accepted == [n for n in known if chr(n).isprintable()]


def test_a_null_among_blockers_is_refused(app: App, sql: psycopg.Connection[Any], schema: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="null"):
        sql.execute(f"select {schema}.enqueue('greet', depends_on => array[null]::uuid[])".encode())
