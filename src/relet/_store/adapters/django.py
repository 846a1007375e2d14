"""Flows on a caller's Django connection.

Statements go through a cursor of Django's, not through the driver's connection below it: it knows of threads and of
blocks that are to be rolled back, raises Django's errors, lets hooks and the log of queries see what runs, and is there
for every backend, whatever that wraps. Its rows are sequences, or Django itself could not read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import InvalidInput, ReletError
from ..query import Query, Row, texts, values
from ..store import Store
from .checks import named, refuse_autocommit, same_file, same_system, sqlite_begin, sqlite_schema


class OnDjango:
    """A caller's `django.db.connection`, or one of `django.db.connections`."""

    def __init__(self, store: Store, raw: Any) -> None:
        if not hasattr(raw, "vendor"):  # a cache is behind a ConnectionProxy too
            raise TypeError(f"cannot work on {named(raw)}: it is no connection to a database")
        self._raw = raw
        self._dialect = store.dialect
        self._schema = store.quoted
        self._clock = store.clock
        what = f"Django's connection {raw.alias!r}"
        same_system(store, what, raw.vendor)
        raw.validate_thread_sharing()
        if raw.get_autocommit():
            using = "" if raw.alias == "default" else f"using={raw.alias!r}"
            refuse_autocommit(what, f"with transaction.atomic({using}):")
        if store.dialect == "sqlite":
            with self._marking():
                _check_file(store, what, raw)

    def begin(self) -> None:
        """Theirs is open, or opens with the first statement; on SQLite, where that would have to be a write, now."""
        if self._dialect == "sqlite":
            with self._marking():
                sqlite_begin(self._raw.connection)

    def execute(self, query: Query) -> list[Row]:
        """Run a statement, or a script: the answer is what all of it returns."""
        answer: list[Row] = []
        params = values(query, self._clock)
        with self._marking(), self._raw.cursor() as cursor:
            for text in texts(query.name, self._dialect, "pyformat", self._schema, self._clock is not None):
                cursor.execute(text.sql, text.named(params))
                answer += [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        return answer

    @contextmanager
    def _marking(self) -> Iterator[None]:
        """What fails in the middle is undone with its `atomic` block even if the error is caught in there.

        Django does the same for `Model.save`. SQLite would otherwise commit the half that went well.
        """
        try:
            with self._raw.wrap_database_errors:
                yield
        except ReletError:
            raise  # refused before anything was written
        except Exception as error:
            if self._raw.in_atomic_block:
                self._raw.set_rollback(True)
                self._raw.rollback_exc = error
            raise


def _check_file(store: Store, what: str, raw: Any) -> None:
    """On the connection below, so that queries that were not asked for are not logged nor counted."""
    if raw.is_in_memory_db():
        raise InvalidInput(
            f"{what} is open on memory, which nobody else can see, but the jobs live in {store.where}: "
            f'let both use one file (in tests: DATABASES["{raw.alias}"]["TEST"]["NAME"])'
        )
    own = same_file(store, what, raw.connection.execute("pragma database_list").fetchall())
    sqlite_schema(own, raw.connection)
