"""A call whose connection is lost at any message says and does what one call does, whatever a rival does meanwhile.

The fast suite runs a third of the cases on SQLite, at least one for each verb; `--all` runs all of them. On PostgreSQL
this runs a twentieth, and a tenth with `--all`. `./dev cuts` runs all, and on SQLite also those errors after which the
transaction is undone at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cuts.run import check
from tests.cuts.stages import PostgresStage, SQLiteStage, postgres_stage
from tests.cuts.verbs import VERBS
from tests.homes import Home

SEED = 9


@pytest.fixture(scope="module")
def sqlite_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteStage]:
    stage = SQLiteStage(Path(tmp_path_factory.mktemp("cuts")), ("before", "after", "busy"))
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def pg_stage(pg_schema: Home) -> Iterator[PostgresStage]:
    with postgres_stage(pg_schema.url, pg_schema.schema) as stage:
        yield stage
    pg_schema.empty()


@pytest.mark.parametrize("name", VERBS)
def test_a_call_that_is_cut_on_sqlite_is_made_once(
    sqlite_stage: SQLiteStage, name: str, pytestconfig: pytest.Config
) -> None:
    share = 1.0 if pytestconfig.getoption("--all") else 1 / 3
    number, wrong = check(sqlite_stage, VERBS[name], share=share, seed=SEED)
    assert number > 0
    assert not [str(one) for one in wrong if one.known is None]


@pytest.mark.parametrize("name", VERBS)
def test_a_call_that_is_cut_on_postgres_is_made_once(
    pg_stage: PostgresStage, name: str, pytestconfig: pytest.Config
) -> None:
    share = 0.1 if pytestconfig.getoption("--all") else 0.05
    _, wrong = check(pg_stage, VERBS[name], share=share, seed=SEED)
    assert not [str(one) for one in wrong if one.known is None]
