"""Where a benchmark runs: a store in a fresh schema or file, and a plain connection to the same place."""

from __future__ import annotations

import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench import facts
from leasehold.store.postgres import PostgresStore
from leasehold.store.query import texts
from leasehold.store.sqlite import SQLiteStore


@dataclass
class Place:
    """A store, and a connection that knows nothing of flows."""

    name: str
    store: PostgresStore | SQLiteStore
    raw: Any

    def bare(self, name: str, params: dict[str, Any]) -> list[Any]:
        """The statement of a flow as a plain loop would run it, in a transaction of the same shape."""
        if isinstance(self.store, PostgresStore):
            (text,) = texts(name, "postgres", "pyformat", self.store.quoted)
            cursor = self.raw.execute(text.sql, params, binary=True)
            return cursor.fetchall() if cursor.description else []
        answer: list[Any] = []
        self.raw.execute("begin immediate")
        for text in texts(name, "sqlite", "named", self.store.quoted):
            cursor = self.raw.execute(text.sql, params)
            if cursor.description:
                answer += cursor.fetchall()
        self.raw.execute("commit")
        return answer

    def tidy(self) -> None:
        """What is left of one measurement shall not be in the way of the next."""
        if isinstance(self.store, PostgresStore):
            self.raw.execute(f"vacuum {self.store.quoted}.jobs")


@contextmanager
def store(kind: str, dsn: str | None) -> Iterator[Place]:
    """A fresh store of this kind, gone afterwards."""
    with _postgres(dsn) if kind == "postgres" else _sqlite() as place:
        facts.show_place(place.name, place.raw)
        yield place
        place.store.close()


@contextmanager
def _sqlite() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="leasehold-bench-", dir=Path.cwd()) as folder:
        store = SQLiteStore(f"{folder}/bench.db")
        store.migrate()
        raw = sqlite3.connect(f"{folder}/bench.db", isolation_level=None, timeout=30)
        raw.execute("pragma synchronous = full")
        try:
            yield Place("sqlite", store, raw)
        finally:
            raw.close()


@contextmanager
def _postgres(dsn: str | None) -> Iterator[Place]:
    with _server(dsn) as url, psycopg.connect(url, autocommit=True) as raw:
        schema = f"bench_{uuid.uuid4().hex[:8]}"
        store = PostgresStore(url, schema=schema)
        try:
            store.migrate()
            yield Place("postgres", store, raw)
        finally:
            raw.execute(f"drop schema if exists {schema} cascade")


@contextmanager
def _server(dsn: str | None) -> Iterator[str]:
    """The server given, or a throwaway one such as the tests use: the newest that there is."""
    if dsn is not None:
        yield dsn
        return
    from tests import servers  # needs the tools of development, as a benchmark of a server given does not

    names = servers.local_names()
    if not names:
        raise SystemExit(servers.HOW_TO_GET_ONE)
    with servers.running() as running:
        yield running.get(names[0]).dsn
