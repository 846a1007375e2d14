"""Harnesses on stores. Tests share the stores, each emptied before the next test: much quicker than a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from relet._store.store import Store
from tests.conftest import PG_KINDS, SQLITE_FILE, SQLITE_KINDS
from tests.databases import Database, shared_schema
from tests.harness import StoreHarness, connect, harness_on, store_harness
from tests.store.compared_stores import ComparedStore, compared_stores_of


@pytest.fixture(scope="module")
def _any_store(_any_schema: Database) -> Iterator[Store | None]:
    """Of PostgreSQL: its connections, and what these have cached, are there for the next test."""
    yield from _store_of(_any_schema)


@pytest.fixture
def harness(database: Database, _any_store: Store | None) -> Iterator[StoreHarness]:
    """A harness on an empty store of every kind, with a clock that only the test moves."""
    with _harness(database, _any_store) as made:
        yield made


@pytest.fixture(scope="module")
def _pg_store(pg_schema: Database) -> Iterator[Store | None]:
    yield from _store_of(pg_schema)


@pytest.fixture
def pg_harness(pg_database: Database, _pg_store: Store) -> Iterator[StoreHarness]:
    """A harness on an empty PostgreSQL, with a clock that only the test moves."""
    with harness_on(_pg_store) as made:
        yield made


def _harness(database: Database, store: Store | None) -> AbstractContextManager[StoreHarness]:
    return store_harness(database.url, database.schema) if store is None else harness_on(store)


def _store_of(schema: Database) -> Iterator[Store | None]:
    """The body of a fixture of a module. Nothing for SQLite, where each test has a database."""
    if not schema.is_postgres:
        yield None
        return
    store = connect(schema.url, schema.schema)
    yield store
    store.close()


@pytest.fixture(scope="module", params=["memory", *PG_KINDS])
def _one_of_two(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "memory":
        yield Database("memory", "sqlite:///:memory:", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture(scope="module")
def _either_store(_one_of_two: Database) -> Iterator[Store | None]:
    yield from _store_of(_one_of_two)


@pytest.fixture
def either_harness(_one_of_two: Database, _either_store: Store | None) -> Iterator[StoreHarness]:
    """A harness on SQLite in memory, then on PostgreSQL: for tests of flows more than of statements."""
    with _harness(_one_of_two, _either_store) as made:
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
