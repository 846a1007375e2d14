"""Flows on a caller's Django connection.

Statements go through Django's cursor, not through the driver's connection below it. Django's cursor checks the thread
and blocks that must be rolled back, raises Django's errors, runs hooks, logs queries, and exists for every backend,
whatever driver that wraps. Its rows are sequences: Django itself depends on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import InvalidInput, ReletError
from ..query import Query, Row, texts, values
from ..store import Store
from .checks import Purpose, named, refuse_autocommit, same_file, same_system, sqlite_begin, sqlite_schema


class DjangoAdapter:
    """A caller's `django.db.connection`, or one of `django.db.connections`."""

    def __init__(self, store: Store, raw: Any, purpose: Purpose) -> None:
        if not hasattr(raw, "vendor"):  # a cache has a ConnectionProxy as well
            raise TypeError(f"cannot use {named(raw)}: it is not a database connection")
        self._raw = raw
        self._store = store
        self._dialect = store.dialect
        self._schema = store.quoted
        self._clock = store.clock
        self._purpose = purpose
        what = f"Django's connection {raw.alias!r}"
        same_system(store, what, raw.vendor)
        raw.validate_thread_sharing()
        if purpose != "read" and raw.get_autocommit():
            using = "" if raw.alias == "default" else f"using={raw.alias!r}"
            refuse_autocommit(what, f"with transaction.atomic({using}):")
        if store.dialect == "sqlite":
            with self._marking():
                _check_file(store, what, raw, purpose)

    def begin(self) -> None:
        """The caller's transaction is open, or begins with the first statement.

        On SQLite it would begin only with the first write, so it is begun here.
        """
        if self._dialect == "sqlite" and self._purpose != "read":
            with self._marking():
                sqlite_begin(self._raw.connection)

    def execute(self, query: Query) -> list[Row]:
        """Run a statement or a script. Returns the rows of all statements."""
        answer: list[Row] = []
        params = values(query, self._clock)
        with self._marking(), self._raw.cursor() as cursor:
            for text in texts(query.name, self._store.statements, "pyformat", self._schema, self._clock is not None):
                cursor.execute(text.sql, text.named(params))
                answer += [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        return answer

    def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        with self._marking(), self._raw.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    @contextmanager
    def _marking(self) -> Iterator[None]:
        """On an error, mark the caller's `atomic` block for rollback, even if the error is caught inside it.

        Django does the same for `Model.save`. Otherwise SQLite would commit the statements that succeeded before.
        """
        try:
            with self._raw.wrap_database_errors:
                yield
        except ReletError:
            raise  # the call was refused before it wrote anything
        except Exception as error:
            if self._raw.in_atomic_block:
                self._raw.set_rollback(True)
                self._raw.rollback_exc = error
            raise


def _check_file(store: Store, what: str, raw: Any, purpose: Purpose) -> None:
    """Uses the driver's connection, so that Django neither logs nor counts queries that the program did not make."""
    if raw.is_in_memory_db():
        raise InvalidInput(
            f"{what} is open on memory, which no other connection can see, but the jobs live in {store.where}: "
            f'let both use one file (in tests: DATABASES["{raw.alias}"]["TEST"]["NAME"])'
        )
    raw.ensure_connection()
    own = same_file(store, what, raw.connection.execute("pragma database_list").fetchall())
    sqlite_schema(own, raw.connection, purpose)
