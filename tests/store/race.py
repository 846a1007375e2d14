"""Processes that begin at the same moment, their records, and those of the database's triggers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from relet._core.job import Draft, State
from relet._store.flows import enqueue, inspect
from relet._store.open import open_store
from relet._store.postgres import PostgresStore
from relet._store.query import in_schema
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store
from tests import forks
from tests.store.race_worker import Racer, drain

PROCESSES = 8
TIMEOUT = 100.0


class LeaseTable(NamedTuple):
    """A claim that was settled with success, between two moments at which it was surely running."""

    id: str
    version: int
    begin: float
    end: float


class Race:
    """Processes (threads, for a store in memory) that begin at the same moment, and their records."""

    def __init__(self, url: str, schema: str, tmp_path: Path) -> None:
        self.url = url
        self.schema = schema
        self.store = open_store(url, schema=schema)
        self.store.migrate()
        self._folder = tmp_path
        self._over = tmp_path / "over"

    def enqueue(self, drafts: list[Draft[Any]], batch: int = 1000) -> list[str]:
        for begin in range(0, len(drafts), batch):
            self.store.run(enqueue.enqueue, drafts[begin : begin + batch])
        return [one.id for one in drafts]

    def say_that_all_is_enqueued(self) -> None:
        self._over.touch()

    @contextmanager
    def processes(self, role: str, options: list[dict[str, Any]]) -> Iterator[list[int]]:
        """Runs them beside the block, then waits until they have ended. How they did is in the list afterwards."""
        specs = [self._spec(role, number, given) for number, given in enumerate(options)]
        command = [sys.executable, "-m", "tests.store.race_worker", json.dumps(specs)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        exits: list[int] = []
        with forks.Popen(command, **pipes, start_new_session=True) as starter:
            try:
                assert starter.stdin is not None
                assert starter.stdout is not None
                for _ in specs:
                    assert starter.stdout.readline() == b"ready\n"
                starter.stdin.close()  # go
                yield exits
                self._wait_for(starter)
                exits += json.loads(starter.stdout.read())
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(starter.pid, signal.SIGKILL)

    def _wait_for(self, starter: subprocess.Popen[bytes]) -> None:
        """The number of jobs left shows whether they are slow or stuck."""
        try:
            starter.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            ago = [f"{time.monotonic() - moment:.1f} s ago" for moment, _ in self.records("settled")]
            left = self.store.run(inspect.queues)
            raise AssertionError(f"{len(ago)} settled, the last {ago[-1:]}, and there are still {left}") from None

    def threads(self, batch: int) -> None:
        racers = [Racer(self.store, f"racer {n}", self._records(n), self._over) for n in range(PROCESSES)]
        threads = [threading.Thread(target=drain, args=(racer,), kwargs={"batch": batch}) for racer in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        for racer in racers:
            racer.close()

    def run(self, role: str, **options: Any) -> None:
        with self.processes(role, [options] * PROCESSES) as exits:
            pass
        assert exits == [0] * PROCESSES

    def _records(self, number: int) -> Path:
        return self._folder / f"{number}.records"

    def _spec(self, role: str, number: int, options: dict[str, Any]) -> dict[str, Any]:
        """The orders of a process."""
        shared = {"url": self.url, "schema": self.schema, "over": str(self._over)}
        mine = {"name": f"racer {number}", "records": str(self._records(number))}
        return {**shared, **mine, "role": role, "options": options}

    def deaths(self) -> int:
        """How many processes have killed themselves so far."""
        return sum(path.read_text().count('["dying", ') for path in self._folder.glob("*.records"))

    def records(self, what: str) -> list[tuple[float, list[Any]]]:
        """(moment, row) of all processes, in order of time."""
        found = []
        for path in self._folder.glob("*.records"):
            for line in path.read_text().splitlines():
                kind, moment, rows = json.loads(line)
                if kind == what:
                    found += [(moment, row) for row in rows]
        return sorted(found, key=lambda pair: pair[0])

    def held(self) -> list[LeaseTable]:
        """The time from the answer to a claim until its settle was sent lies within that in which the job ran."""
        begin = {(id, version): moment for moment, (id, version) in self.records("claimed")}
        end = {(id, version): moment for moment, (id, version) in self.records("settling")}
        done = [(id, version) for _, (id, version, state) in self.records("settled") if state == State.SUCCEEDED]
        return [LeaseTable(*one, begin[one], end[one]) for one in done]

    def query(self, sql: str) -> list[Any]:
        """Ask, or tell, the database behind the store's back."""
        if isinstance(self.store, PostgresStore):
            with self.store._pool.connection() as raw:
                cursor = raw.execute(in_schema(sql, "postgres", self.store.quoted).encode())
                return cursor.fetchall() if cursor.description else []
        assert isinstance(self.store, SQLiteStore)
        reader = self.store._connect()
        try:
            return reader.execute(in_schema(sql, "sqlite", self.store.quoted)).fetchall()
        finally:
            reader.close()

    def observe(self, when: str, condition: str, measure: str) -> None:
        """From now on the database writes down, at each commit that matters, what `measure` is at that moment.

        On PostgreSQL the triggers run at the very end of a transaction, one transaction at a time, and see everything
        committed before: what they write down is exactly the history of the commits. On SQLite any trigger does.
        """
        self.query("create table {schema}.observed (what text, number integer)")
        if isinstance(self.store, SQLiteStore):
            noted = f"begin insert into {{schema}}.observed {measure}; end"
            self.query(f"create trigger observe after {when} on {{schema}}.jobs when {condition} {noted}")
            return
        self.query(
            f"create function {{schema}}.observe() returns trigger language plpgsql as $$ begin"
            f" perform pg_advisory_xact_lock(hashtext('{self.schema}'));"
            f" insert into {{schema}}.observed {measure}; return null; end $$"
        )
        self.query(
            f"create constraint trigger observe after {when} on {{schema}}.jobs deferrable initially deferred"
            f" for each row when ({condition}) execute function {{schema}}.observe()"
        )

    def most_observed(self) -> dict[str, int]:
        return dict(self.query("select what, max(number) from {schema}.observed group by what"))

    def close(self) -> None:
        self.store.close()


@contextmanager
def race_on(url: str, schema: str, tmp_path: Path) -> Iterator[Race]:
    race = Race(url, schema, tmp_path)
    try:
        yield race
    finally:
        race.close()


def live(store: Store) -> int:
    queues = store.run(inspect.queues)
    return sum(one.pending + one.queued + one.running + one.failed + one.paused_jobs for one in queues)


def most_at_once(held: list[LeaseTable]) -> int:
    steps = sorted([(one.begin, 1) for one in held] + [(one.end, -1) for one in held])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most
