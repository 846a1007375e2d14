"""A call whose connection is lost at any message says and does what one call does, whatever a rival does meanwhile.

This runs all cases on SQLite, and a tenth of those on PostgreSQL; `--all` runs all of them there, too. `./dev cuts`
adds those errors of SQLite after which the transaction is undone at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cuts.cut_stores import PostgresCutStore, SQLiteCutStore, postgres_cut_store
from tests.cuts.run import check
from tests.cuts.verbs import VERBS
from tests.databases import Database

SEED = 9


@pytest.fixture(scope="module")
def sqlite_cut_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteCutStore]:
    cut_store = SQLiteCutStore(Path(tmp_path_factory.mktemp("cuts")), ("before", "after", "busy"))
    yield cut_store
    cut_store.close()


@pytest.fixture(scope="module")
def pg_cut_store(pg_schema: Database) -> Iterator[PostgresCutStore]:
    with postgres_cut_store(pg_schema.url, pg_schema.schema) as cut_store:
        yield cut_store
    pg_schema.empty()


@pytest.mark.parametrize("name", VERBS)
def test_a_call_that_is_cut_on_sqlite_is_made_once(sqlite_cut_store: SQLiteCutStore, name: str) -> None:
    number, wrong = check(sqlite_cut_store, VERBS[name])
    assert number > 0
    assert not [str(one) for one in wrong if one.known is None]


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.timeout(600)
def test_a_call_that_is_cut_on_postgres_is_made_once(
    pg_cut_store: PostgresCutStore, name: str, pytestconfig: pytest.Config
) -> None:
    share = 1.0 if pytestconfig.getoption("--all") else 0.1
    _, wrong = check(pg_cut_store, VERBS[name], share=share, seed=SEED)
    assert not [str(one) for one in wrong if one.known is None]
