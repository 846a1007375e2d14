"""Harnesses on stores. Tests share the stores, each emptied before the next test: much quicker than a new one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import PG_KINDS, SQLITE_FILE, SQLITE_KINDS
from tests.databases import Database, shared_schema
from tests.harness import StoreHarness, store_harness
from tests.store.compared_stores import ComparedStore, compared_stores_of


@pytest.fixture
def harness(database: Database) -> Iterator[StoreHarness]:
    """A harness on an empty store of every kind, with a clock that only the test moves."""
    with store_harness(database.url, database.schema) as made:
        yield made


@pytest.fixture
def pg_harness(pg_database: Database) -> Iterator[StoreHarness]:
    """A harness on an empty PostgreSQL, with a clock that only the test moves."""
    with store_harness(pg_database.url, pg_database.schema) as made:
        yield made


@pytest.fixture(scope="module", params=["memory", *PG_KINDS])
def _one_of_two(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "memory":
        yield Database("memory", "sqlite:///:memory:", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def either_harness(_one_of_two: Database) -> Iterator[StoreHarness]:
    """A harness on SQLite in memory, then on PostgreSQL: for tests of flows more than of statements."""
    with store_harness(_one_of_two.url, _one_of_two.schema) as made:
        yield made
    if _one_of_two.is_postgres:
        _one_of_two.empty()


@pytest.fixture(scope="module", params=["memory", SQLITE_FILE, *PG_KINDS])
def _shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComparedStore]:
    names = [] if request.param in SQLITE_KINDS else [request.param]
    with compared_stores_of(request.config, tmp_path_factory.mktemp("shared"), names) as found:
        yield next(compared for compared in found if compared.name == request.param)


@pytest.fixture
def shared_store(_shared_store: ComparedStore) -> ComparedStore:
    """One store of each kind for all tests of a module, emptied before each: the quickest to have."""
    _shared_store.wipe()
    return _shared_store


@pytest.fixture
def shared_harness(shared_store: ComparedStore) -> StoreHarness:
    """A harness on `shared_store`, with a clock that only the test moves."""
    harness = StoreHarness(shared_store.store)
    harness.stop_clock()
    return harness
