"""The clock of a store, moved by a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from relet._store.store import Store


@contextmanager
def at(store: Store, moment: float | None) -> Iterator[None]:
    """The store's clock stands still at this moment; None: it is the database's."""
    before = store.clock
    store.clock = None if moment is None else lambda: moment
    try:
        yield
    finally:
        store.clock = before
