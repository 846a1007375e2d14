"""Stores that tests share, emptied for each of them, which is much quicker than a new one; and benches on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import PG_KINDS, SQLITE_FILE, SQLITE_KINDS
from tests.homes import Home, shared_schema
from tests.store.compared_stores import ComparedStore, compared_stores_of
from tests.store.interleave import Bench, bench
from tests.store.world import World


@pytest.fixture
def b(home: Home) -> Iterator[Bench]:
    """A bench on an empty store of every kind."""
    with bench(home.url, home.schema) as made:
        yield made


@pytest.fixture
def pg(pg_home: Home) -> Iterator[Bench]:
    """A bench on an empty PostgreSQL."""
    with bench(pg_home.url, pg_home.schema) as made:
        yield made


@pytest.fixture(scope="module", params=["memory", *PG_KINDS])
def _one_of_two(request: pytest.FixtureRequest) -> Iterator[Home]:
    if request.param == "memory":
        yield Home("memory", "sqlite:///:memory:", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def either(_one_of_two: Home) -> Iterator[Bench]:
    """A bench on SQLite in memory, and on one PostgreSQL: for what is in flows more than in statements."""
    with bench(_one_of_two.url, _one_of_two.schema) as made:
        yield made
    if _one_of_two.is_postgres:
        _one_of_two.empty()


@pytest.fixture(scope="module", params=["memory", SQLITE_FILE, *PG_KINDS])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComparedStore]:
    names = [] if request.param in SQLITE_KINDS else [request.param]
    with compared_stores_of(request.config, tmp_path_factory.mktemp("shared"), names) as found:
        yield next(compared for compared in found if compared.name == request.param)


@pytest.fixture
def world(shared: ComparedStore) -> World:
    shared.wipe()
    return World(shared)
