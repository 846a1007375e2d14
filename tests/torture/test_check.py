"""Each invariant finds its violation in a history that is otherwise right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from relet._torture.check import check
from relet._torture.load import Event, Loaded, Record
from relet._torture.settings import Settings

WORKER, OTHER, HEALTHY = "host:11:aaaa", "host:12:bbbb", "host:13:cccc"


class Told:
    """A history that a test writes, second by second."""

    def __init__(self) -> None:
        settings = Settings("sqlite:///x.db", "sqlite:///x.db", "relet", ".", 1, 1.0)
        self.loaded = Loaded(settings, 0.0, [], defaultdict(list))
        self.rows: dict[str, dict[str, Any]] = {}
        self.now = 0.0

    def event(self, name: str, **fields: Any) -> None:
        self.loaded.events[name].append(Event(self.now, "test", 1, name, fields))

    def record(self, job: str, table: str, event: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        number = len(self.loaded.records) + 1
        self.loaded.records.append(Record(number, self.now, table, event, job, before, after))

    def enqueue(self, job: str, **columns: Any) -> None:
        self.event("enqueue", phase="invoked", ids=[job])
        row = {
            "state": "queued", "version": 0, "attempt": 0, "max_attempts": 3, "losses": 0, "worker": None,
            "token": None, "expires_at": None, "run_at": 0.0, "queue": "default", "task": "quick", "target": None,
            "group_key": None, "unique_key": None, "request": None, "holds": False, "chain": job, "position": 0,
            **columns,
        }  # fmt: skip
        self.rows[job] = row
        self.record(job, "jobs", "insert", {}, row)
        self.event("enqueue", phase="ok", ids=[job], stored=[job])

    def change(self, job: str, **columns: Any) -> None:
        before = self.rows[job]
        self.rows[job] = before | columns
        self.record(job, "jobs", "update", before, self.rows[job])

    def claim(self, job: str, worker: str = WORKER, **columns: Any) -> None:
        version = self.rows[job]["version"] + 1
        token = {"token": f"token {version}", "version": version, "attempt": version}
        self.change(job, **{"state": "running", "worker": worker, "expires_at": self.now + 2, **token, **columns})

    def start(self, job: str, version: int | None = None, worker: str = WORKER) -> None:
        version = self.rows[job]["version"] if version is None else version
        self.event("start", job=job, version=version, worker=worker)

    def end(self, job: str) -> None:
        self.event("end", job=job, version=self.rows[job]["version"], worker=WORKER, error=None)

    def succeed(self, job: str, result: Any = None) -> None:
        row = self.rows[job]
        over = {"state": "succeeded", "version": row["version"], "result": result or row["version"]}
        self.record(job, "finished", "insert", {}, over)
        self.record(job, "jobs", "delete", row, {})

    def lose(self, job: str) -> None:
        row = self.rows[job]
        about = {"version": row["version"], "worker": row["worker"], "outcome": "lost", "expires_at": row["expires_at"]}
        self.record(job, "attempts", "insert", {}, about)
        self.change(job, state="queued", worker=None, token=None, expires_at=None)

    def fault(self, pid: int) -> None:
        self.event("fault", kind="kill", workers=[pid], seconds=None)

    def run(self, job: str) -> None:
        """A job that is claimed, runs and succeeds."""
        self.claim(job)
        self.start(job)
        self.end(job)
        self.succeed(job)


def found(told: Told) -> set[str]:
    return {violation.invariant for violation in check(told.loaded)}


def rightly(told: Told) -> None:
    """A worker is killed, and another runs its job."""
    told.enqueue("a")
    told.run("a")
    told.enqueue("b", queue="limited", group_key="g", target="t", holds=True)
    told.claim("b")
    told.start("b")
    told.fault(11)
    told.now = 3.0
    told.lose("b")
    told.claim("b", OTHER)
    told.start("b", worker=OTHER)
    told.succeed("b")


def test_a_history_that_is_right_has_no_violation() -> None:
    told = Told()
    rightly(told)
    assert found(told) == set()


def lost(told: Told) -> None:
    told.event("enqueue", phase="ok", ids=["x"], stored=["x"])


def refused_and_stored(told: Told) -> None:
    told.enqueue("x")
    told.event("enqueue", phase="failed", ids=["x"])
    told.run("x")


def made_up(told: Told) -> None:
    told.enqueue("x")
    told.run("x")
    told.loaded.events["enqueue"].clear()


def illegal(told: Told) -> None:
    told.enqueue("x")
    told.change("x", state="failed")


def ended_twice(told: Told) -> None:
    told.enqueue("x")
    told.run("x")
    told.succeed("x")


def token_used_twice(told: Told) -> None:
    told.enqueue("x")
    told.claim("x")
    told.now += 3.0
    told.lose("x")
    told.claim("x", token="token 1")
    told.succeed("x")


def too_many_attempts(told: Told) -> None:
    told.enqueue("x", max_attempts=0)
    told.run("x")


def reaped_early(told: Told) -> None:
    told.enqueue("x")
    told.claim("x")
    told.now += 1.5  # the lease lasts for 2
    told.lose("x")
    told.run("x")


def renewed_and_reaped(told: Told) -> None:
    told.enqueue("x")
    told.claim("x")
    told.now += 1.9
    told.change("x", expires_at=told.now + 2)
    told.now += 0.6
    told.lose("x")
    told.run("x")


def reaped_without_a_fault(told: Told) -> None:
    told.enqueue("x")
    told.claim("x", HEALTHY)
    told.now += 3.0
    told.lose("x")
    told.run("x")


def result_of_a_former_owner(told: Told) -> None:
    told.enqueue("x")
    told.claim("x")
    told.now += 3.0
    told.lose("x")
    told.claim("x", OTHER)
    told.succeed("x", result=1)


def ledger_of_a_former_owner(told: Told) -> None:
    told.enqueue("x", task="pay")
    told.run("x")
    told.loaded.ledger["x"] = [1, 1]


def started_without_a_claim(told: Told) -> None:
    told.enqueue("x")
    told.start("x", version=1)
    told.run("x")


def reaped_long_after_a_fault(told: Told) -> None:
    told.event("fault", kind="stop", workers=[13], seconds=1.0)
    told.now += 10.0
    reaped_without_a_fault(told)


def overlapping(told: Told) -> None:
    told.enqueue("x")
    told.claim("x", HEALTHY)
    told.start("x", worker=HEALTHY)
    told.change("x", state="queued", worker=None, token=None, expires_at=None)  # released, but the handler goes on
    told.now += 1.0
    told.claim("x", OTHER)
    told.start("x", worker=OTHER)
    told.succeed("x")


def too_early(told: Told) -> None:
    told.enqueue("x", run_at=5.0)
    told.run("x")


def above_the_limit(told: Told) -> None:
    for job in "wxyz":
        told.enqueue(job, queue="limited")
        told.claim(job)
    for job in "wxyz":
        told.succeed(job)


def above_the_limit_of_a_group(told: Told) -> None:
    for job in "xyz":
        told.enqueue(job, queue="grouped", group_key="g")
        told.claim(job)
    for job in "xyz":
        told.succeed(job)


def two_at_a_target(told: Told) -> None:
    for job in "xy":
        told.enqueue(job, target="t")
        told.change(job, holds=True)
    for job in "xy":
        told.run(job)


def cancelled_and_run(told: Told) -> None:
    told.enqueue("x")
    told.event("verb", phase="ok", verb="cancel", job="x", state="cancelled")
    told.now += 1.0
    told.run("x")


def two_of_a_key(told: Told) -> None:
    for job in "xy":
        told.enqueue(job, unique_key="u1")
    for job in "xy":
        told.run(job)


def two_in_a_window(told: Told) -> None:
    for job in "xy":
        told.enqueue(job, unique_key="w1")
        told.run(job)


def started_after_its_lease(told: Told) -> None:
    told.enqueue("x")
    told.claim("x")
    told.now += 2.5  # the lease lasts for 2
    told.start("x")
    told.succeed("x")


def without_successor(told: Told) -> None:
    told.enqueue("x", task="first_link")
    told.claim("x")
    row = {"state": "succeeded", "version": 1, "result": None, "continued": True, "chain": "x", "position": 0}
    told.record("x", "finished", "insert", {}, row)
    told.record("x", "jobs", "delete", told.rows["x"], {})


def without_follow_up(told: Told) -> None:
    told.enqueue("x", task="hopeless")
    told.claim("x")
    told.change("x", state="failed", worker=None, token=None, expires_at=None)


def never_ended(told: Told) -> None:
    told.enqueue("x")


@pytest.mark.parametrize(
    ("history", "letters"),
    [
        (lost, "A"), (refused_and_stored, "A"), (made_up, "B"), (illegal, "C"), (ended_twice, "D"),
        (token_used_twice, "E"), (too_many_attempts, "F"), (reaped_early, "G"), (renewed_and_reaped, "G"),
        (reaped_without_a_fault, "H"), (reaped_long_after_a_fault, "H"), (result_of_a_former_owner, "I"),
        (ledger_of_a_former_owner, "J"),
        (started_without_a_claim, "K"), (overlapping, "L"), (too_early, "M"), (above_the_limit, "N"),
        (above_the_limit_of_a_group, "N"), (two_at_a_target, "O"), (cancelled_and_run, "P"), (two_of_a_key, "Q"),
        (two_in_a_window, "Q"), (never_ended, "R"),
        (started_after_its_lease, "S"), (without_successor, "T"), (without_follow_up, "T"),
    ],
)  # fmt: skip
def test_each_invariant_finds_its_violation(history: Callable[[Told], None], letters: str) -> None:
    told = Told()
    rightly(told)
    history(told)
    assert set(letters) <= found(told)
