"""The doctor finds real faults in real PostgreSQL servers.

The tests use a separate database, as other tests keep transactions open elsewhere. Advice that is a statement is run.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest

from relet import App
from relet._store import migrate
from relet._store.doctor import expected, judge_server
from tests.conftest import PG_KINDS, SERVERS
from tests.databases import Database
from tests.harness import harness_of
from tests.schemas import EMPTIED
from tests.store.bouncers import bouncing, needs_bouncer
from tests.store.doctor_findings import bad, found, make_app, the

pytestmark = pytest.mark.every_server

ALL_CHECKS = {
    "connection", "pooler", "capabilities", "server", "writable", "durability", "clock", "connections", "notifications",
    "old_transactions", "schema", "indexes", "autovacuum", "dead_rows", "bloat", "partitions", "privileges",
    "pulse", "leases", "workers", "queues",
}  # fmt: skip


@pytest.fixture(scope="module", params=PG_KINDS)
def doctor_database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema that is made once. Each test repairs its damage by following the advice."""
    with request.config.stash[SERVERS].durable(request.param).fresh_database() as url:
        with closing(make_app(url, "jobs")) as app:
            app.client.migrate()
        yield Database(request.param, url, "jobs")


def _empty(doctor_database: Database) -> None:
    with psycopg.connect(doctor_database.url) as connection:
        for table in EMPTIED:
            connection.execute(f"delete from {doctor_database.schema}.{table}".encode())


@pytest.fixture
def checked_app(doctor_database: Database) -> Iterator[App]:
    with closing(make_app(doctor_database.url, doctor_database.schema)) as app:
        yield app
    _empty(doctor_database)


@pytest.fixture
def database_url(doctor_database: Database) -> str:
    return doctor_database.url


@pytest.fixture
def schema(doctor_database: Database) -> str:
    return doctor_database.schema


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_healthy_store_has_no_complaints(checked_app: App) -> None:
    harness_of(checked_app).record_pulse()
    findings = checked_app.client.doctor()
    assert bad(findings) == []
    assert {one.check for one in findings} == checks_of(checked_app)
    assert all(one.advice is None for one in findings if one.level == "ok")


def checks_of(app: App) -> set[str]:
    app._store().ready()
    return ALL_CHECKS - ({"partitions"} if app._store().statements == "rows" else set())


def test_the_expected_objects_are_all_that_a_migration_makes(checked_app: App, database_url: str, schema: str) -> None:
    checked_app._store().ready()
    wanted = expected.in_postgres(schema, migrate.newest("postgres"), checked_app._store().statements)
    kinds = {"table": "rp", "index": "iI", "view": "v", "sequence": "S"}
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "select relkind::text, relname::text, array_to_string(reloptions, ',') from pg_class"
            " where relnamespace = to_regnamespace(%s) and relname !~ '^finished_[0-9]'",
            (schema,),
        ).fetchall()
    for kind, letters in kinds.items():
        there = {name for letter, name, _ in rows if letter in letters}
        assert there == set(wanted.of(kind)), kind
    options = {name: dict(one.split("=") for one in text.split(",")) for _, name, text in rows if text}
    assert options == wanted.options


def test_no_schema_is_a_finding_and_no_error(database_url: str) -> None:
    with closing(make_app(database_url, "nowhere")) as app:
        finding = the(app, "schema", "error")
        assert "there is no Relet schema yet" in finding.text
        assert "app.client.migrate()" in str(finding.advice)


def test_a_missing_index_comes_with_the_statement_that_makes_it(
    checked_app: App, database_url: str, schema: str
) -> None:
    execute(database_url, f"drop index {schema}.jobs_claim", f"drop index {schema}.finished_chain")
    findings = found(checked_app, "indexes")
    assert [(one.level, one.text.partition(" is")[0]) for one in findings] == [
        ("error", "index finished_chain"),
        ("error", "index jobs_claim"),
    ]
    for finding in findings:
        execute(database_url, str(finding.advice).removeprefix("make it again: "))
    the(checked_app, "indexes", "ok")


def test_an_invalid_index_comes_with_the_statement_that_mends_it(
    checked_app: App, database_url: str, schema: str
) -> None:
    for n in range(2):
        checked_app.lookup("work").enqueue(n)
    with pytest.raises(psycopg.errors.UniqueViolation):
        execute(database_url, f"create unique index concurrently own on {schema}.jobs (task)")
    execute(database_url, f"update pg_index set indisvalid = false where indexrelid = '{schema}.jobs_due'::regclass")
    due, own = sorted(found(checked_app, "indexes"), key=lambda one: one.text)
    assert (due.level, own.level) == ("warning", "warning")
    assert "index jobs_due of jobs is invalid" in due.text
    assert "index own of jobs is invalid" in own.text
    execute(database_url, str(due.advice).partition(" (or")[0], f"drop index {schema}.own")
    the(checked_app, "indexes", "ok")


def test_an_index_of_ones_own_on_the_hot_table_is_pointed_out(checked_app: App, database_url: str, schema: str) -> None:
    execute(database_url, f"create index mine on {schema}.jobs (created_at)")
    assert "not Relet's: mine" in the(checked_app, "indexes", "info").text
    execute(database_url, f"drop index {schema}.mine")


@pytest.mark.partitioned
def test_autovacuum_that_is_off_or_lost_its_settings(checked_app: App, database_url: str, schema: str) -> None:
    execute(
        database_url,
        f"alter table {schema}.jobs set (autovacuum_enabled = off)",
        f"alter table {schema}.keys reset (autovacuum_vacuum_scale_factor)",
        f"alter table {schema}.starts set (autovacuum_vacuum_threshold = 50)",
    )
    off, gone, other = found(checked_app, "autovacuum")
    assert (off.level, off.text) == ("warning", "autovacuum is off for jobs")
    assert (gone.level, "keys" in gone.text, "autovacuum_vacuum_scale_factor = 0.02" in gone.text) == (
        "warning", True, True,
    )  # fmt: skip
    assert (other.level, "autovacuum_vacuum_threshold = 50 (the schema has 1000)" in other.text) == ("info", True)
    back = f"alter table {schema}.starts set (autovacuum_vacuum_threshold = 1000)"
    execute(database_url, str(off.advice), str(gone.advice), back)
    the(checked_app, "autovacuum", "ok")


@pytest.mark.partitioned
def test_dead_rows_that_no_vacuum_came_for(checked_app: App, database_url: str, schema: str) -> None:
    execute(
        database_url,
        f"alter table {schema}.keys set (autovacuum_enabled = off)",
        f"insert into {schema}.keys select n::text, gen_random_uuid() from generate_series(1, 12000) n",
        f"delete from {schema}.keys",
    )
    the(checked_app, "dead_rows", "ok")
    execute(database_url, f"update {schema}.migrations set applied_at = applied_at - interval '1 hour'")
    finding = the(checked_app, "dead_rows", "warning")
    assert "keys has 12,000 dead rows and 0 live rows; vacuumed never (autovacuum is due at 1,000)" in finding.text
    mend = str(finding.advice).partition("then: ")[2]
    execute(database_url, mend, f"alter table {schema}.keys reset (autovacuum_enabled)")
    the(checked_app, "dead_rows", "ok")
    execute(database_url, f"update {schema}.migrations set applied_at = now()")


def test_a_transaction_that_holds_back_vacuum_is_named_without_its_data(
    checked_app: App, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_server, "OLD_SECONDS", 0.05)
    the(checked_app, "old_transactions", "ok")
    with psycopg.connect(database_url, application_name="re'port\x1b[31m") as other:
        other.execute("select pg_current_xact_id(), 'a secret'")
        time.sleep(0.1)
        finding = the(checked_app, "old_transactions", "warning")
        assert f"server process {other.info.backend_pid} " in finding.text
        assert "re?port" in finding.text
        assert "idle in transaction" in finding.text
        assert "secret" not in finding.text
        assert "\x1b" not in finding.text
        assert f"pg_terminate_backend({other.info.backend_pid})" in str(finding.advice)
        other.rollback()


@pytest.mark.partitioned
def test_partitions_that_are_not_ahead_or_half_gone(checked_app: App, database_url: str, schema: str) -> None:
    with psycopg.connect(database_url) as connection:
        names = [f"finished_{row[0]}" for row in connection.execute(
            "select to_char((now() at time zone 'UTC')::date + n, 'YYYYMMDD') from generate_series(-1, 7) n"
        ).fetchall()]  # fmt: skip
    execute(
        database_url,
        f"drop table {schema}.{names[3]}",
        f"alter table {schema}.finished detach partition {schema}.{names[0]}",
        f"update pg_inherits set inhdetachpending = true where inhrelid = '{schema}.{names[8]}'::regclass",
    )
    ahead, half, loose = found(checked_app, "partitions")
    assert {ahead.level, half.level, loose.level} == {"warning"}
    assert "reach 1 days ahead" in ahead.text
    assert half.text.startswith(names[8])
    assert loose.text.startswith(names[0])
    assert all(one.advice for one in (ahead, half, loose))
    first, last = names[0].removeprefix("finished_"), names[8].removeprefix("finished_")
    again = f"select {schema}.make_partitions('{first}', '{last}')"
    execute(database_url, str(half.advice).partition("by hand: ")[2], again)
    the(checked_app, "partitions", "ok")


def test_rights_that_the_role_lacks_are_named(checked_app: App, database_url: str, schema: str) -> None:
    role = f"r_{uuid.uuid4().hex[:8]}"
    execute(
        database_url,
        f"create role {role}",
        f"grant usage on schema {schema} to {role}",
        f"grant select on all tables in schema {schema} to {role}",
    )
    try:
        with closing(make_app(f"{database_url}&options={quote(f'-c role={role}')}", schema)) as app:
            lacks, owner = found(app, "privileges")
            assert (lacks.level, owner.level) == ("warning", "info")
            assert re.search(r"lacks insert, update, delete on arming, .* more; usage on job_seq", lacks.text)
            assert "not the owner of the schema" in owner.text
            execute(database_url, *str(lacks.advice).split("; "))
            assert [one.level for one in found(app, "privileges")] == ["info"]
            assert bad(app.client.doctor()) == [], "these rights are enough for the other checks"
    finally:
        execute(database_url, f"drop owned by {role}", f"drop role {role}")


def test_a_database_that_takes_no_writes(checked_app: App, database_url: str) -> None:
    name = database_url.partition("?")[0].rpartition("/")[2]
    execute(database_url, f"alter database {name} set default_transaction_read_only = on")
    finding = the(checked_app, "writable", "error")
    assert "set by: database" in finding.text
    execute(database_url, f"begin; set transaction read write; {finding.advice}; commit")
    the(checked_app, "writable", "ok")


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(checked_app: App, database_url: str, schema: str) -> None:
    execute(database_url, f"alter table {schema}.pulse rename to lost")
    findings = checked_app.client.doctor()
    execute(database_url, f"alter table {schema}.lost rename to pulse")
    assert {one.check for one in findings} == checks_of(checked_app)
    assert [one.text for one in findings if one.check == "pulse"] == [
        f'could not be checked: relation "{schema}.pulse" does not exist'
    ]
    assert [one.level for one in findings if one.check == "leases"] == ["ok"]
    assert "table pulse is missing" in next(one.text for one in findings if one.level == "error")


@pytest.mark.long
def test_who_has_locked_everything_is_not_waited_for(checked_app: App, database_url: str, schema: str) -> None:
    with psycopg.connect(database_url) as other:
        other.execute(f"lock table {schema}.jobs, {schema}.finished in access exclusive mode".encode())
        began = time.monotonic()
        texts = {one.check: one.text for one in checked_app.client.doctor() if "could not be checked" in one.text}
        assert time.monotonic() - began < 8
        other.rollback()
    assert set(texts) == {"pulse", "leases", "queues"}
    assert set(texts.values()) == {"could not be checked: another transaction has locked a table that it reads"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:canary@127.0.0.1:1/shop",
        "postgresql://ada:canary@[::1]:1/shop?password=canary",
        "postgresql://ada@127.0.0.1:1/shop?password=canary&target_session_attrs=any",
    ],
)
def test_a_server_that_is_not_there_is_a_finding_without_the_password(url: str) -> None:
    (finding,) = App(url).client.doctor()
    assert (finding.check, finding.level) == ("connection", "error")
    assert "cannot connect to postgresql://ada@" in finding.text
    assert "canary" not in repr(finding)
    assert finding.advice


# poolers


@needs_bouncer
@pytest.mark.parametrize(("mode", "size"), [("transaction", 1), ("transaction", 5), ("session", 5)])
def test_the_mode_of_a_pooler_is_found_out(
    checked_app: App, database_url: str, schema: str, mode: str, size: int
) -> None:
    with bouncing(database_url, mode, size) as url, closing(make_app(url, schema)) as app:
        findings = app.client.doctor()
        (pooler,) = [one for one in findings if one.check == "pooler"]
        assert f"in {mode} mode" in pooler.text
        assert pooler.level == ("info" if mode == "transaction" else "ok")
        assert bad(findings) == []


@needs_bouncer
def test_a_pooler_in_statement_mode_cannot_be_used(checked_app: App, database_url: str, schema: str) -> None:
    with bouncing(database_url, "statement", 2) as url, closing(make_app(url, schema)) as app:
        (finding,) = bad(app.client.doctor())
        assert (finding.check, finding.level) == ("pooler", "error")
        assert "statement mode" in finding.text
        assert "pool_mode = transaction" in str(finding.advice)


@pytest.mark.long
@needs_bouncer
def test_a_pooler_whose_pool_is_used_up_is_not_waited_for(checked_app: App, database_url: str, schema: str) -> None:
    with bouncing(database_url, "session", 1) as url, closing(make_app(url, schema)) as app:
        assert "gave no second connection within 2 s" in the(app, "pooler", "warning").text
