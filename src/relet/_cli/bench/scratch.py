"""A temporary store for the measurements: a new schema, or a file beside the user's."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from ...app import App
from ..load_app import CommandError
from .raw import PostgresLoop, RawLoop, SQLiteLoop

PREFIX = "relet_bench_"


@dataclass(frozen=True)
class Scratch:
    """An empty, migrated store, and a bare loop on the same database."""

    app: App
    url: str
    schema: str
    raw: RawLoop
    where: str


@contextmanager
def scratch(url: str | None) -> Iterator[Scratch]:
    url = url or "sqlite:///:memory:"
    App(url).close()  # raises if the URL is invalid
    if url.startswith("sqlite://"):
        path, _, query = url.removeprefix("sqlite:///").partition("?")
        with _file(unquote(path), query) as made:
            yield made
    else:
        with _schema(url) as made:
            yield made


@contextmanager
def _schema(url: str) -> Iterator[Scratch]:
    schema = f"{PREFIX}{uuid.uuid4().hex[:8]}"
    app, migrated = App(url, schema=schema), False
    try:
        app.client.migrate()  # connects first, because its errors are readable
        migrated = True
        with closing(PostgresLoop(url, schema)) as loop:
            yield Scratch(app, url, schema, loop, f"PostgreSQL, schema {schema}")
    finally:
        app.close()
        drop_schema(url, schema, report=migrated)


def drop_schema(url: str, schema: str, *, report: bool) -> None:
    """Drop a scratch schema. `report`: raise if that fails."""
    import psycopg

    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"drop schema if exists {schema} cascade".encode())
    except psycopg.Error:
        if report:  # otherwise the failed migration is already reported
            raise CommandError(
                f"Could not remove the scratch schema. Drop it by hand: drop schema {schema} cascade"
            ) from None


@contextmanager
def _file(path: str, query: str) -> Iterator[Scratch]:
    """Make a store in the folder of the user's file, to measure the same disk; for `:memory:` in a temporary folder."""
    folder = None if path == ":memory:" else str(Path(path).resolve().parent)
    with _folder(folder) as made:
        url = f"sqlite:///{quote(made)}/bench.db{f'?{query}' if query else ''}"
        with closing(App(url)) as app, closing(SQLiteLoop(f"{made}/raw.db", query)) as loop:
            app.client.migrate()
            yield Scratch(app, url, "relet", loop, f"SQLite in {folder or 'a temporary folder'}")


def _folder(beside: str | None) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=PREFIX, dir=beside)
    except OSError as error:
        raise CommandError(f"Cannot make a scratch folder in {beside}: {error.strerror}.") from None
