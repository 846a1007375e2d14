"""Several processes that race for the same jobs.

Run as `python -m tests.store.race_worker SPECS`, where SPECS is JSON. Each of them says `ready`, waits until the input
ends, then does what its role says. Everything that it claims, settles and enqueues goes to a separate file, each line
with one write, so that it survives a kill -9; moments are monotonic, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from relet._core.ids import make_id
from relet._core.job import Claimed, Draft, Job, Succeeded
from relet._store.adapters.drivers import run_on
from relet._store.flows import claim as claim_flows
from relet._store.flows import enqueue, inspect, lease, promote
from relet._store.flows import maintenance as upkeep
from relet._store.flows import settle as settle_flows
from relet._store.flows.claim_scope import Scope
from relet._store.open import open_store
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store

TASK = "race"


def draft(**options: Any) -> Draft[Any]:
    return Draft(make_id(time.time(), os.urandom(10)), TASK, "{}", **options)


class Racer:
    """A store, a name, and a file for records."""

    def __init__(self, store: Store, name: str, records: Path, over: Path) -> None:
        self.store = store
        self.name = name
        self._records = os.open(records, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._over = over
        self.random = random.Random(name)

    def note(self, what: str, rows: list[Any]) -> None:
        os.write(self._records, json.dumps([what, time.monotonic(), rows]).encode() + b"\n")

    def close(self) -> None:
        os.close(self._records)

    def claim(self, want: int, queues: Sequence[str] = ("default",), seconds: float = 60.0) -> list[Claimed]:
        scopes = [Scope(queue, want) for queue in queues]
        token, chance = str(uuid.uuid4()), self.random.random
        claim = self.store.run(
            claim_flows.claim, self.name, token, scopes, [TASK], want=want, lease=seconds, random=chance
        )
        found = claim.jobs
        if found:
            self.note("claimed", [[job.id, job.version] for job in found])
        return found

    def settle(self, jobs: Sequence[Claimed]) -> None:
        self.note("settling", [[job.id, job.version] for job in jobs])
        settled = self.store.run(settle_flows.settle, [(job.lease, Succeeded("1")) for job in jobs], self.random.random)
        self.note("settled", [[job.id, job.version, one.state] for job, one in zip(jobs, settled, strict=True)])

    def upkeep(self) -> None:
        self.store.run(upkeep.record_pulse, grace=0.0)
        self.store.run(promote.promote)
        self.store.run(lease.reap, self.random.random)

    def all_done(self) -> bool:
        """The producer has said so, and nothing is left that could still run."""
        if not self._over.exists():
            return False
        return not any(queue.pending + queue.queued + queue.running for queue in self.store.run(inspect.queues))


def drain(racer: Racer, *, batch: int) -> None:
    """Claim and settle until there is nothing left. An empty claim may mean that others have the remaining jobs."""
    empty = 0
    while empty < 3:
        jobs = racer.claim(batch)
        empty = 0 if jobs else empty + 1
        if jobs:
            racer.settle(jobs)


def work(racer: Racer, *, batch: int, queues: list[str], hold: float, seconds: float, dies_at: int | None) -> None:
    """A worker: upkeep, claim, hold for a moment, settle. `dies_at`: killed after so many claims."""
    claims = 0
    while True:
        racer.upkeep()
        jobs = racer.claim(racer.random.randint(1, batch), queues, seconds)
        if not jobs:
            if racer.all_done():
                return
            time.sleep(racer.random.random() * 0.01)
            continue
        claims += 1
        if claims == dies_at:
            racer.note("dying", [])
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(racer.random.random() * hold)
        racer.settle(jobs)


def compete(racer: Racer, *, rounds: int) -> None:
    """In each round all processes want one key; half of them roll back after a moment in which others line up."""
    caller = Caller(racer.store)
    for number in range(rounds):
        key, keep = f"round {number}", racer.random.random() < 0.5
        (job,) = caller.enqueue([draft(unique=key)], keep, lambda: time.sleep(racer.random.random() * 0.002))
        racer.note("kept" if keep else "dropped", [[key, job.id, job.existing]])
    caller.close()


def churn(racer: Racer, *, rounds: int, keys: int, at_once: int) -> None:
    """Enqueue with some of few keys, roll some of it back, and run the queued jobs: keys are freed and taken again."""
    caller = Caller(racer.store)
    for _ in range(rounds):
        names = racer.random.sample([f"key {n}" for n in range(keys)], at_once)
        keep = racer.random.random() < 0.7
        for job in caller.enqueue([draft(unique=name) for name in names], keep):
            racer.note("kept" if keep else "dropped", [[job.unique, job.id, job.existing]])
        if jobs := racer.claim(racer.random.randint(1, 3)):
            racer.settle(jobs)
    caller.close()


class Caller:
    """A user's own connection, on which enqueue is part of the user's transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        if isinstance(store, PostgresStore):
            self._raw: Any = psycopg.connect(store._url, autocommit=True)
            self._begin = "begin"
        else:
            assert isinstance(store, SQLiteStore)
            assert store.path is not None
            self._raw = sqlite3.connect(store.path, isolation_level=None, timeout=30)
            self._begin = "begin immediate"

    def enqueue(
        self, drafts: list[Draft[Any]], keep: bool, between: Callable[[], object] = lambda: None
    ) -> list[Job[Any]]:
        """Enqueue, do something else, then commit or roll back."""
        self._raw.execute(self._begin)
        try:
            jobs = run_on(self._store, self._raw, enqueue.enqueue, drafts)
            between()
        except BaseException:
            self._raw.execute("rollback")
            raise
        self._raw.execute("commit" if keep else "rollback")
        return jobs

    def close(self) -> None:
        self._raw.close()


ROLES: dict[str, Callable[..., None]] = {"drain": drain, "work": work, "compete": compete, "churn": churn}


def race(spec: dict[str, Any]) -> None:
    """One of the processes: it begins when its standard input ends, which is at the same moment for all."""
    store = open_store(spec["url"], schema=spec["schema"])
    store.run(inspect.queues)  # connected before the start
    racer = Racer(store, spec["name"], Path(spec["records"]), Path(spec["over"]))
    os.write(1, b"ready\n")  # at once, among the words of others
    sys.stdin.read()
    ROLES[spec["role"]](racer, **spec["options"])
    racer.close()
    store.close()


def main(specs: list[dict[str, Any]]) -> None:
    """A process for each; at the end it is told how they have ended. Forked, since importing would take longer."""
    pids = []
    for spec in specs:
        pid = os.fork()
        if pid == 0:
            return race(spec)
        pids.append(pid)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]))
    return None


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
