"""Apps for workers: `app` in a store of every kind, `memory_app` where stores make no difference, `two_databases` for
what takes long: one SQLite file, one PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relet import App
from tests.conftest import PG_KINDS, SQLITE_FILE
from tests.databases import Database, shared_schema
from tests.templates import fill_in
from tests.worker.completions import CompletionRunner, runner_at
from tests.worker.programs import Shop, a_shop


@pytest.fixture
def memory_app() -> Iterator[App]:
    app = App("sqlite:///:memory:")
    fill_in(app._store())
    yield app
    app.close()


@pytest.fixture(scope="module", params=[SQLITE_FILE, *PG_KINDS])
def _one_of_two(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database("sqlite", "", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def two_databases(_one_of_two: Database, tmp_path: Path) -> Iterator[Database]:
    """A SQLite file, then a PostgreSQL."""
    if _one_of_two.is_postgres:
        yield _one_of_two
        _one_of_two.empty()
    else:
        yield Database("sqlite", f"sqlite:///{tmp_path / 'relet.db'}", "relet")


@pytest.fixture
def two_apps(two_databases: Database) -> Iterator[App]:
    """An app in each of `two_databases`."""
    app = two_databases.app()
    yield app
    app.close()


@pytest.fixture
def runner(two_databases: Database, two_apps: App) -> Iterator[CompletionRunner]:
    """For handlers that complete their jobs in transactions, in each of `two_databases`."""
    with runner_at(two_databases, two_apps) as made:
        yield made


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop of worker programs on SQLite."""
    with a_shop(tmp_path, f"sqlite:///{tmp_path / 'relet.db'}") as made:
        yield made
