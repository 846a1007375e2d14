"""Where one measurement runs: an empty store of a system, made for it and removed afterwards."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import psycopg

from bench.environments import CACHE, Unavailable
from bench.programs import Program, Stuck, wait_until
from bench.server import Postgres
from bench.systems import System


class Servers(Protocol):
    """The part of the laboratory that a place needs."""

    @property
    def postgres(self) -> Postgres: ...

    @property
    def redis(self) -> str | None: ...

    def template(self, system: System) -> str: ...


class Place:
    """An empty store, and the programs that use it."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.programs: list[Program] = []
        self.env: dict[str, str] = {}

    def start(self, role: str, env: Mapping[str, str] | None = None) -> Program:
        program = Program(self.system, role, {**self.env, **(env or {})})
        self.programs.append(program)
        return program

    def unfinished(self) -> int:
        """Jobs in the store that are not over."""
        return 0

    def checkpoint(self) -> None:
        """Let what was written before not disturb what is measured next."""

    def size(self) -> dict[str, int]:
        """Bytes written to the log so far, and bytes on disk."""
        return {}

    def await_empty(self, within: float = 30.0) -> None:
        wait_until(lambda: self.unfinished() == 0, within, f"every job of {self.system.name} is finished")

    def close(self) -> None:
        for program in self.programs:
            program.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class PostgresPlace(Place):
    """A database. With `keep`, the one of that name, which stays: it is empty only if `is_new`."""

    def __init__(self, system: System, servers: Servers, keep: str | None = None) -> None:
        super().__init__(system)
        self.server, self._is_kept = servers.postgres, keep is not None
        self.is_new = keep is None or not self.server.has(keep)
        self.database = self.server.create(servers.template(system), keep) if self.is_new else str(keep)
        self.url = self.server.url(self.database)
        self.db = psycopg.connect(self.url, autocommit=True)
        self.env["BENCH_URL"] = self.url

    def url_through(self, port: int, host: str = "127.0.0.1") -> str:
        """The same database through a proxy."""
        return urlsplit(self.url)._replace(netloc=f"postgres@{host}:{port}").geturl()

    def value(self, statement: str) -> Any:
        row = self.db.execute(statement.encode()).fetchone()
        return row[0] if row else None

    def unfinished(self) -> int:
        return int(self.value(self.system.unfinished)) if self.system.unfinished else 0

    def checkpoint(self) -> None:
        self.db.execute("checkpoint")

    def size(self) -> dict[str, int]:
        log = self.value("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        return {"wal": log, "disk": self.value("select pg_database_size(current_database())")}

    def close(self) -> None:
        super().close()
        self.db.close()
        if not self._is_kept:
            self.server.drop(self.database)


class SQLitePlace(Place):
    def __init__(self, system: System) -> None:
        super().__init__(system)
        CACHE.mkdir(exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="sqlite-", dir=CACHE))
        self.file = self._folder / "bench.db"
        self.env |= {"BENCH_FILE": str(self.file), "BENCH_URL": f"sqlite:///{self.file}?synchronous=full"}
        self.start("setup").wait()
        self.db = sqlite3.connect(self.file, isolation_level=None, timeout=30)

    def unfinished(self) -> int:
        return int(self.db.execute(self.system.unfinished).fetchone()[0]) if self.system.unfinished else 0

    def close(self) -> None:
        super().close()
        self.db.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class RedisPlace(Place):
    def __init__(self, system: System, servers: Servers) -> None:
        super().__init__(system)
        if servers.redis is None:
            raise Unavailable("there is no redis-server on the PATH")
        self.env["BENCH_REDIS"] = servers.redis
        self.start("setup").wait()


def open_place(system: System, servers: Servers) -> Place:
    if system.store == "postgres":
        return PostgresPlace(system, servers)
    return RedisPlace(system, servers) if system.store == "redis" else SQLitePlace(system)


def make_template(system: System, server: Postgres) -> str:
    """An empty database with the system's tables, to be copied for each measurement."""
    name = server.create()
    program = Program(system, "setup", {"BENCH_URL": server.url(name)})
    try:
        program.wait()
    except Stuck:
        server.drop(name)
        raise
    finally:
        program.kill()
    return name
