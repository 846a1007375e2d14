"""Stores under comparison: their whole state, straight from SQL, and its invariants."""

from __future__ import annotations

import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore
from tests.conftest import SERVERS
from tests.store.model import OVER, Model

State = dict[str, Any]

BOTH = [
    *(
        "id",
        "task",
        "queue",
        "priority",
        "target",
        "group_key",
        "unique_key",
        "state",
        "attempt",
        "max_attempts",
        "losses",
        "version",
    ),
    *("worker", "token", "started_at", "error", "chain", "position", "created_at", "run_at"),
]
LIVE = [*BOTH, "wait", "holds", "alone", "expires_at", "stopped_at", "request", "waits"]
DONE = [*BOTH, "finished_at", "result", "continued"]
TABLES = {
    "jobs": LIVE,
    "finished": DONE,
    "keys": ["key", "job", "until"],
    "dependencies": ["job", "depends_on", "state", "result", "task"],
    "attempts": ["job", "version", "attempt", "worker", "started_at", "ended_at", "outcome", "error"],
    "queues": ["queue", "paused", "max_running"],
    "group_limits": ["queue", "group_key", "max_running"],
}
ALL = (
    *(*TABLES, "nudges", "steps", "signals", "schedules", "ticks", "rates", "starts", "operations"),
    *("ready_groups", "tags", "reruns"),
)
TIMES = {"started_at", "expires_at", "stopped_at", "finished_at", "created_at", "run_at", "until", "ended_at"}
UUIDS = {"id", "job", "depends_on", "chain", "token"}
FLAGS = {"holds", "alone", "continued", "paused"}


class Stuck(NamedTuple):
    """A pending job that nothing holds up."""

    id: str


class ComparedStore:
    """A store, and a connection of the test's own that sees its tables as they are."""

    def __init__(self, name: str, store: PostgresStore | SQLiteStore, raw: Any) -> None:
        self.name, self.store, self._raw = name, store, raw
        self._sqlite = store.dialect == "sqlite"
        self._prefix = store.quoted + ("_" if self._sqlite else ".")
        self._queries = {table: self._select(table, names) for table, names in TABLES.items()}
        self.previous: State | None = None

    def _select(self, table: str, names: list[str]) -> str:
        def column(name: str) -> str:
            if self._sqlite:
                return f'"{name}"'
            if name in TIMES:
                return f'extract(epoch from "{name}")::float8 as "{name}"'
            return f'"{name}"::text' if name in UUIDS or name == "result" else f'"{name}"'

        return f"select {', '.join(map(column, names))} from {self._prefix}{table}"

    def _tables(self) -> dict[str, list[State]]:
        """All rows of all tables as they are; on PostgreSQL in one statement, which saves most of the time."""
        if self._sqlite:
            cursors = {table: self._raw.execute(query) for table, query in self._queries.items()}
            return {
                name: [dict(zip(TABLES[name], row, strict=True)) for row in found] for name, found in cursors.items()
            }
        parts = [
            f"(select coalesce(json_agg(row_to_json(t)), '[]') from ({query}) t)" for query in self._queries.values()
        ]
        return dict(zip(TABLES, self._raw.execute(f"select {', '.join(parts)}").fetchone(), strict=True))

    def dump(self) -> State:
        """Every table, jobs and finished by id. Whether there is an error, not which: its words are the store's own."""
        state: State = {}
        for table, found in self._tables().items():
            for row in found:
                row.update({name: bool(row[name]) for name in FLAGS & row.keys()})
                if "error" in row:
                    row["error"] = row["error"] is not None
                if "group_key" in row:
                    row["group_key"] = row["group_key"] or None  # both: the job has no group
            state[table] = {row["id"]: row for row in found} if table in ("jobs", "finished") else _sorted(found)
        state["dependencies"] = [
            row for row in state["dependencies"] if row["job"] in state["jobs"]
        ]  # the others bind no job
        return state

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every column of every table, to see that nothing has changed."""
        found = {table: self._raw.execute(f"select * from {self._prefix}{table}").fetchall() for table in ALL}
        return {table: sorted(rows, key=str) for table, rows in found.items()}

    def wipe(self) -> None:
        """An empty store, much quicker to have than a new one."""
        tables = ALL if self._sqlite else (*ALL, "group_nudges")  # SQLite has no need of those
        statements = [f"delete from {self._prefix}{table}" for table in tables]
        only = "(single) values (1)" if self._sqlite else "default values"
        statements += [f"delete from {self._prefix}pulse", f"insert into {self._prefix}pulse {only}"]
        for statement in statements if self._sqlite else [";".join(statements)]:
            self._raw.execute(statement)
        self.previous = None

    def check_nothing_is_stuck(self, now: float) -> None:
        state = self.dump()
        held = {row["target"] for row in state["jobs"].values() if row["holds"]}
        undecided = {row["job"] for row in state["dependencies"] if row["state"] is None}
        order = {str(id): seq for id, seq in self._raw.execute(f"select id, seq from {self._prefix}jobs")}
        paused = [row for row in state["jobs"].values() if row["state"] == "paused" and row["wait"] == "target"]
        stuck = [
            Stuck(row["id"])
            for row in state["jobs"].values()
            if row["state"] == "pending" and row["run_at"] <= now and row["id"] not in undecided
            and (row["target"] is None or row["holds"] or row["target"] not in held)
            and not any(one["target"] == row["target"] and order[one["id"]] < order[row["id"]] for one in paused)
        ]  # fmt: skip
        assert not stuck, f"{self.name}: {stuck}"


def check_invariants(compared: ComparedStore, state: State) -> None:
    """Must hold after any call of any client."""
    jobs, over, limits = state["jobs"], state["finished"], {row["queue"]: row["max_running"] for row in state["queues"]}
    assert not jobs.keys() & over.keys()
    for row in jobs.values():
        leased = None not in (row["worker"], row["token"], row["expires_at"], row["started_at"])
        assert leased if row["state"] == "running" else row["worker"] is None and row["expires_at"] is None
        assert row["attempt"] <= row["max_attempts"]
        assert row["holds"] or row["target"] is None or row["state"] not in ("queued", "running")
        assert row["wait"] == "target" if row["state"] == "paused" and row["wait"] else True
        assert row["wait"] != "target" or (row["target"] is not None and not row["holds"])
        assert row["waits"] == sum(edge["job"] == row["id"] and edge["state"] is None for edge in state["dependencies"])
    holders = Counter(row["target"] for row in jobs.values() if row["holds"])
    assert all(target is not None and number == 1 for target, number in holders.items())
    for key in state["keys"]:
        assert key["until"] is not None or jobs.get(key["job"], {"state": "failed"})["state"] != "failed"
    before, compared.previous = compared.previous or {"jobs": {}, "finished": {}, "queues": []}, state
    for id, row in (jobs | over).items():
        assert row["version"] >= (before["jobs"] | before["finished"]).get(id, row)["version"]
    assert all(over.get(id, row) == row and id not in jobs for id, row in before["finished"].items())
    _check_limits(jobs, before["jobs"], limits)
    _check_group_limits(jobs, before["jobs"], state["group_limits"])


def _check_limits(jobs: State, before: State, limits: dict[str, int | None]) -> None:
    """A limit that was lowered stops no running job, but no job starts beyond a limit."""
    started = [row for id, row in jobs.items() if row["version"] > before.get(id, {"version": 0})["version"]]
    for queue, limit in limits.items():
        running = [row for row in jobs.values() if row["state"] == "running" and queue in ("*", row["queue"])]
        fresh = [row for row in started if queue in ("*", row["queue"])]
        assert limit is None or not fresh or len(running) <= limit, (queue, limit, running)


def _check_group_limits(jobs: State, before: State, limits: list[State]) -> None:
    """The same for the limits of groups. A limit of a single group replaces the one of each group."""
    singles = {(row["queue"], row["group_key"]) for row in limits}
    running = Counter((row["queue"], row["group_key"]) for row in jobs.values() if row["state"] == "running")
    started = {
        (row["queue"], row["group_key"])
        for id, row in jobs.items()
        if row["version"] > before.get(id, {"version": 0})["version"]
    }
    for limit in limits:
        every = limit["group_key"] == "*"
        for queue, group in started:
            applies = group == limit["group_key"] or (every and group and (queue, group) not in singles)
            assert queue != limit["queue"] or not applies or running[queue, group] <= limit["max_running"], limit


def expected(model: Model) -> State:
    """The result that `dump` must have, by the model."""
    live: State = {}
    over: State = {}
    for id, row in model.jobs.items():
        view = row.view() | {
            "unique_key": row.draft.unique,
            "group_key": row.draft.group,
            "token": row.token,
            "stopped_at": row.finished_at,
        }
        view |= {"alone": row.alone and row.state == "running", "waits": row.waits}
        names, place = (DONE, over) if row.state in OVER else (LIVE, live)
        place[id] = {name: view[name] for name in names}
    dependencies = [
        {"job": id, "depends_on": chain, "state": end, "result": result, "task": task}
        for id, row in model.jobs.items()
        for chain, (end, result, task) in row.dependencies.items()
        if row.state not in OVER
    ]
    names = TABLES["attempts"]
    attempts = [dict(zip(names, (id, *one), strict=True)) for id, row in model.jobs.items() for one in row.history]
    keys = [{"key": key, "job": job, "until": until} for key, (job, until) in model.keys.items()]
    queues = [{"queue": q, "paused": paused, "max_running": limit} for q, (paused, limit) in model.queues.items()]
    group_limits = [
        {"queue": queue, "group_key": group, "max_running": limit}
        for (queue, group), limit in model.group_limits.items()
    ]
    found: dict[str, list[State]] = {
        "keys": keys, "dependencies": dependencies, "attempts": attempts, "queues": queues,
        "group_limits": group_limits,
    }  # fmt: skip
    return {"jobs": live, "finished": over, **{name: _sorted(rows) for name, rows in found.items()}}


def _sorted(rows: list[State]) -> list[State]:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


@contextmanager
def compared_stores_of(config: pytest.Config, folder: Path, names: list[str]) -> Iterator[list[ComparedStore]]:
    """Memory, a file, and the PostgreSQL servers named."""
    schema = f"t_{uuid.uuid4().hex[:12]}"
    with ExitStack() as stack:
        found = [_memory(stack), _file(stack, folder)]
        for name in names:
            server = config.stash[SERVERS].get(name)
            stack.callback(server.drop_schema, schema)
            url = f"{server.dsn}{'&' if '?' in server.dsn else '?'}options=-c%20synchronous_commit%3Doff"
            store = PostgresStore(url, schema=schema)
            store.migrate()
            stack.callback(store.close)
            raw = stack.enter_context(psycopg.connect(url, autocommit=True))
            found.append(ComparedStore(name, store, raw))
        yield found


def _memory(stack: ExitStack) -> ComparedStore:
    store = SQLiteStore(None)
    store.migrate()
    stack.callback(store.close)
    raw = sqlite3.connect(str(store._memory), uri=True, isolation_level=None)
    stack.callback(raw.close)
    return ComparedStore("memory", store, raw)


def _file(stack: ExitStack, folder: Path) -> ComparedStore:
    store = SQLiteStore(str(folder / "model.db"), synchronous="OFF")
    store.migrate()
    stack.callback(store.close)
    raw = sqlite3.connect(folder / "model.db", isolation_level=None)
    stack.callback(raw.close)
    return ComparedStore("sqlite", store, raw)
