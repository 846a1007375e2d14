"""The rules for the variant `rows`: refused and accepted statements."""

from __future__ import annotations

import pytest

from relet._store import migrate
from relet._store.query import texts
from tests.store.statement_files import statement_files
from tools import check_engines

REFUSED = {
    "address": "select ctid from t",
    "notify": "select pg_notify('a', '')",
    "partition": "create table t (id uuid primary key) partition by range (id)",
    "storage": "create table t (id uuid primary key) with (fillfactor = 50)",
    "function": "create function f() returns void language plpgsql as $$ begin end $$",
    "planner": "set local enable_seqscan = off",
    "advisory": "select pg_advisory_xact_lock(1)",
    "named argument": "select coalesce(a => 1)",
    "collation": 'select a from t order by a collate "C"',
    "lock table": "lock table t in share mode",
    "empty list": "select 1 where exists (select from t)",
    "stored json": "create table t (\n  a json not null\n)",
    "division": "select count(*) / 2 from t",
    "twice": "with d as (delete from t returning a) insert into t select a from d",
    "inner write": "select 1 from (with d as (delete from t returning a) select a from d) e",
}


@pytest.mark.parametrize("rule", REFUSED)
def test_features_that_an_engine_lacks_are_refused(rule: str) -> None:
    assert rule in {problem.rule for problem in check_engines.problems("t", REFUSED[rule])}


def test_a_function_that_is_not_in_both_engines_is_refused() -> None:
    (problem,) = check_engines.problems("t", "select width_bucket(a, b) from t")
    assert problem.what.startswith("width_bucket ")


def test_each_rule_names_its_source() -> None:
    assert all(rule.source for rule in check_engines.RULES)


def test_the_statements_of_the_variant_keep_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_engines.main() == 0, capsys.readouterr().out


def test_statements_for_postgresql_break_the_rules() -> None:
    """The rules are no formality: without the rewriting they find violations."""
    sent = [text.sql for file in statement_files() if file.endswith(".postgres.sql")
            for text in texts(file.removesuffix(".postgres.sql"), "postgres", "dollar", '"s"')]  # fmt: skip
    sent += [sql for version in migrate.migrations("postgres") for sql in migrate.unfilled("postgres", version)]
    broken = {problem.rule for sql in sent for problem in check_engines.problems("", sql)}
    assert {"address", "notify", "partition", "storage", "function", "collation", "stored json"} <= broken


def test_every_statement_of_the_variant_has_the_parameters_of_the_others() -> None:
    for file in statement_files():
        name, _, dialect = file.removesuffix(".sql").rpartition(".")
        if dialect == "postgres":
            ours = {word for text in texts(name, "rows", "named", "s") for word in text.names}
            theirs = {word for text in texts(name, "postgres", "named", "s") for word in text.names}
            assert ours - {"margin"} == theirs - {"channel"}, name  # the variant sends no notification
