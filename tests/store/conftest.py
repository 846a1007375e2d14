"""Benches for the tests of stores: see `interleave.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.homes import Home, _any_schema, home, pg_home, pg_schema  # noqa: F401  (the fixtures of every kind of store)
from tests.store.interleave import Bench, bench


@pytest.fixture
def b(home: Home) -> Iterator[Bench]:  # noqa: F811
    """A bench on an empty store of every kind."""
    with bench(home.url, home.schema) as made:
        yield made


@pytest.fixture
def pg(pg_home: Home) -> Iterator[Bench]:  # noqa: F811
    """A bench on an empty PostgreSQL, every server there is."""
    with bench(pg_home.url, pg_home.schema) as made:
        yield made
