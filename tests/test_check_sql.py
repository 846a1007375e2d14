"""The rules for statements on PostgreSQL: refused and accepted SQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from relet._store.fragments import shared
from relet._store.postgres import PostgresStore
from tools import check_sql
from tools.check_sql import WIDTH, long_lines, problems

REFUSED = {
    "clock": [
        "select coalesce(a, {now}) from t",
        "select coalesce(to_timestamp(:run_at::float8), {now} + make_interval(secs => 1)) from t",
        "update t set a = case when b then {now} end",
        "update t set a = case when b <= statement_timestamp() then 1 else 2 end",
        "select coalesce((select true from t where a <= {now} limit 1), false)",
        "select case when a then case when b then 1 end else clock_timestamp() end",
        "select COALESCE (a, current_timestamp)",
        "create function f() returns void as $$ begin\n x := coalesce(y, now());\nend $$ language plpgsql",
    ],
    "returning": [
        "delete from t returning extract(epoch from a)::float8",
        "with d as (delete from t returning id, date_part('epoch', a)) select * from d",
        "insert into t select 1 returning id, {now}",
        "insert into t select 1 returning nextval('s')",
        "update t set a = 1 returning greatest(a, random())",
        "update t set a = 1 returning {schema}.first_id(a)",
        "insert into t values (1) returning current_date",
    ],
    "twice": [
        "with d as (delete from {schema}.t where a returning a) insert into {schema}.t select a from d",
        "with a as (update t set x = 1), b as (select 1) update t set y = 2",
        "with a as (insert into t values (1) on conflict do nothing) delete from t using b where t.x = b.x",
        "with a as (update only t set x = 1) update t set y = 2",
    ],
    "advisory": ["select pg_advisory_xact_lock(1)", "select pg_try_advisory_lock(1)"],
}

FINE = [
    "select coalesce(a, b), {now} from t where c <= {now}",
    "with m as (select {now} as now) select case when t.a > m.now then 1 end from t, m",
    "select case when a then 1 end, {now}, coalesce(b, 2) + extract(epoch from {now})",
    "select (a <= {now}) is true, nullif(b, '-infinity')",
    "with d as (delete from t returning a, b::text) select extract(epoch from a) from d",
    "with d as (delete from t returning a) select random(), {schema}.first_id({now}) from d",
    "with l as (select 1 from t for update), m as (select 1 from t for no key update skip locked) update t set a = 1",
    "with l as (select 1 from t for update of t skip locked) update t set a = 1",
    "insert into t values (1) on conflict (a) do update set b = 2",
    "with d as (delete from t returning a) insert into u select a from d",
    "with d as (delete from {schema}.t) delete from {schema}.tt",
    "update t set a = 1; update t set a = 2",
    "select 'case {now} end', 'pg_advisory_lock' -- coalesce({now}, 1)\n/* returning random() */",
    "create function f() returns void as $$ begin\n update t set a = 1;\n update t set b = 2;\nend $$ language plpgsql",
    "create function f() returns void as $$ begin\n delete from t returning a into x; y := random();\nend $$",
    "alter table t add foreign key (a) references u on update cascade on delete cascade",
]


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in REFUSED.items() for text in texts])
def test_statements_that_a_distributed_engine_refuses_are_found(rule: str, text: str) -> None:
    assert {one.rule for one in problems(text)} == {rule}


@pytest.mark.parametrize("text", FINE)
def test_statements_that_it_accepts_are_accepted(text: str) -> None:
    assert problems(text) == []


def test_a_problem_is_named_with_its_line() -> None:
    text = "-- a comment\nselect 'a\nb',\n  coalesce(a,\n    {now})\n;\ndelete from t\nreturning a,\n  random()"
    assert [(one.line, one.rule) for one in problems(text)] == [(5, "clock"), (9, "returning")]


def test_a_line_with_too_many_columns_is_found() -> None:
    fits, exceeds = "x" * WIDTH, "-- " + "ä" * WIDTH
    assert long_lines(f"{fits}\n\n{fits}\n") == []
    assert [(one.line, one.rule) for one in long_lines(f"{fits}\n{exceeds}\n{fits}")] == [(2, "width")]


@pytest.mark.parametrize(
    "name", ["sql/claim/claim.sqlite.sql", "sql/shared/room.postgres.sql", "migrations/1.sqlite.sql"]
)
def test_every_sql_file_is_checked_for_its_width(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "src" / "relet" / "_store"
    (store / name).parent.mkdir(parents=True)
    (store / name).write_text("select 1\n" + "x" * (WIDTH + 1), "utf-8")
    monkeypatch.setattr(check_sql, "STORE", store)
    assert check_sql.main() == 1
    assert f"{name}:2: width: 121 columns" in capsys.readouterr().out


def test_all_statements_keep_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_sql.main() == 0, capsys.readouterr().out


def test_the_jobs_of_a_claim_are_immutable(pg_url: str, schema: str) -> None:
    """PostgreSQL indexes immutable expressions only."""
    store = PostgresStore(pg_url, schema=schema)
    store.migrate()
    with psycopg.connect(pg_url, autocommit=True) as raw:
        for expression in _columns(shared("claimed", "postgres").replace("j.", "")):
            raw.execute(f"create index on {store.quoted}.jobs (({expression}))".encode())
        with pytest.raises(psycopg.errors.InvalidObjectDefinition, match="IMMUTABLE"):
            raw.execute(f"create index on {store.quoted}.jobs (date_part('epoch', created_at))".encode())
    store.close()


def _columns(listed: str) -> list[str]:
    """The expressions of a list, cut at the commas that no bracket encloses."""
    columns, depth = [""], 0
    for letter in listed:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            columns.append("")
        else:
            columns[-1] += letter
    return columns
