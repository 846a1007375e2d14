"""Each invariant finds its violation in a history that is otherwise right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from relet._store.sqlite import BUSY_FOR
from relet._torture.check import check
from relet._torture.facts import SHUTDOWN_TIMEOUT
from relet._torture.jobs import Jobs
from relet._torture.load import Event, Loaded, Record
from relet._torture.settings import Settings

WORKER, OTHER, HEALTHY = "host:11:aaaa", "host:12:bbbb", "host:13:cccc"


class Recorder:
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
        moment = self.now if self.loaded.is_virtual else None
        self.loaded.records.append(Record(number, self.now, table, event, job, before, after, moment))

    def enqueue(self, job: str, **columns: Any) -> None:
        self.event("enqueue", phase="invoked", ids=[job])
        row = {
            "state": "queued", "version": 0, "attempt": 0, "max_attempts": 3, "losses": 0, "worker": None,
            "token": None, "expires_at": None, "run_at": 0.0, "queue": "default", "task": "quick", "target": None,
            "group_key": None, "unique_key": None, "request": None, "holds": False, "chain": job, "position": 0,
            "created_at": self.now, "rank": 0, "seq": len(self.rows), **columns,
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

    def lose(self, job: str, **columns: Any) -> None:
        row = self.rows[job]
        about = {"version": row["version"], "worker": row["worker"], "outcome": "lost", "expires_at": row["expires_at"]}
        self.record(job, "attempts", "insert", {}, about)
        self.change(job, state="queued", worker=None, token=None, expires_at=None, **columns)

    def fault(self, pid: int) -> None:
        self.event("fault", kind="kill", workers=[pid], seconds=None)

    def run(self, job: str) -> None:
        """A job that is claimed, runs and succeeds."""
        self.claim(job)
        self.start(job)
        self.end(job)
        self.succeed(job)


def found(recorder: Recorder) -> set[str]:
    return {violation.invariant for violation in check(Jobs(recorder.loaded))}


def rightly(recorder: Recorder) -> None:
    """A worker is killed, and another runs its job."""
    recorder.enqueue("a")
    recorder.run("a")
    recorder.enqueue("b", queue="limited", group_key="g", target="t", holds=True)
    recorder.claim("b")
    recorder.start("b")
    recorder.fault(11)
    recorder.now = 3.0
    recorder.lose("b")
    recorder.claim("b", OTHER)
    recorder.start("b", worker=OTHER)
    recorder.succeed("b")


def test_a_history_that_is_right_has_no_violation() -> None:
    recorder = Recorder()
    rightly(recorder)
    assert found(recorder) == set()


def lost(recorder: Recorder) -> None:
    recorder.event("enqueue", phase="ok", ids=["x"], stored=["x"])


def refused_and_stored(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.event("enqueue", phase="failed", ids=["x"])
    recorder.run("x")


def made_up(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.run("x")
    recorder.loaded.events["enqueue"].clear()


def illegal(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.change("x", state="failed")


def ended_twice(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.run("x")
    recorder.succeed("x")


def token_used_twice(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 3.0
    recorder.lose("x")
    recorder.claim("x", token="token 1")
    recorder.succeed("x")


def too_many_attempts(recorder: Recorder) -> None:
    recorder.enqueue("x", max_attempts=0)
    recorder.run("x")


def reaped_early(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 1.5  # the lease lasts for 2
    recorder.lose("x")
    recorder.run("x")


def renewed_and_reaped(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 1.9
    recorder.change("x", expires_at=recorder.now + 2)
    recorder.now += 0.6
    recorder.lose("x")
    recorder.run("x")


def reaped_without_a_fault(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x", HEALTHY)
    recorder.now += 3.0
    recorder.lose("x")
    recorder.run("x")


def result_of_a_former_owner(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 3.0
    recorder.lose("x")
    recorder.claim("x", OTHER)
    recorder.succeed("x", result=1)


def ledger_of_a_former_owner(recorder: Recorder) -> None:
    recorder.enqueue("x", task="pay")
    recorder.run("x")
    recorder.loaded.ledger["x"] = [1, 1]


def started_without_a_claim(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.start("x", version=1)
    recorder.run("x")


def reaped_long_after_a_fault(recorder: Recorder) -> None:
    recorder.event("fault", kind="stop", workers=[13], seconds=1.0)
    recorder.now += 10.0
    reaped_without_a_fault(recorder)


def overlapping(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x", HEALTHY)
    recorder.start("x", worker=HEALTHY)
    recorder.change("x", state="queued", worker=None, token=None, expires_at=None)  # released, but the handler goes on
    recorder.now += 1.0
    recorder.claim("x", OTHER)
    recorder.start("x", worker=OTHER)
    recorder.succeed("x")


def released_after(recorder: Recorder, seconds: float) -> None:
    """A worker gets SIGTERM, and releases a job whose handler does not end, which another worker starts (seed 103)."""
    recorder.enqueue("x")
    recorder.claim("x", HEALTHY, expires_at=20.0)
    recorder.start("x", worker=HEALTHY)
    recorder.now += 0.5
    recorder.event("fault", kind="terminate", workers=[], seconds=0.0, signalled=13)
    recorder.now += seconds
    about = {"version": 1, "worker": HEALTHY, "outcome": "released", "expires_at": 20.0}
    recorder.record("x", "attempts", "insert", {}, about)
    recorder.change("x", state="queued", worker=None, token=None, expires_at=None)
    recorder.claim("x", OTHER)
    recorder.start("x", worker=OTHER)
    recorder.succeed("x")


def released_too_soon(recorder: Recorder) -> None:
    released_after(recorder, SHUTDOWN_TIMEOUT - 1.0)


def test_a_job_is_released_although_its_handler_does_not_end() -> None:
    recorder = Recorder()
    rightly(recorder)
    released_after(recorder, SHUTDOWN_TIMEOUT + 1.0)
    assert found(recorder) == set()


def too_early(recorder: Recorder) -> None:
    recorder.enqueue("x", run_at=5.0)
    recorder.run("x")


def above_the_limit(recorder: Recorder) -> None:
    for job in "wxyz":
        recorder.enqueue(job, queue="limited")
        recorder.claim(job)
    for job in "wxyz":
        recorder.succeed(job)


def above_the_limit_of_a_group(recorder: Recorder) -> None:
    for job in "xyz":
        recorder.enqueue(job, queue="grouped", group_key="g")
        recorder.claim(job)
    for job in "xyz":
        recorder.succeed(job)


def two_at_a_target(recorder: Recorder) -> None:
    for job in "xy":
        recorder.enqueue(job, target="t")
        recorder.change(job, holds=True)
    for job in "xy":
        recorder.run(job)


def cancelled_and_run(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.event("verb", phase="ok", verb="cancel", job="x", state="cancelled", call=1)
    recorder.now += 1.0
    recorder.run("x")


def two_of_a_key(recorder: Recorder) -> None:
    for job in "xy":
        recorder.enqueue(job, unique_key="u1")
    for job in "xy":
        recorder.run(job)


def two_in_a_window(recorder: Recorder) -> None:
    for job in "xy":
        recorder.enqueue(job, unique_key="w1")
        recorder.run(job)


def started_after_its_lease(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 2.5  # the lease lasts for 2
    recorder.start("x")
    recorder.succeed("x")


def without_successor(recorder: Recorder) -> None:
    recorder.enqueue("x", task="first_link")
    recorder.claim("x")
    row = {"state": "succeeded", "version": 1, "result": None, "continued": True, "chain": "x", "position": 0}
    recorder.record("x", "finished", "insert", {}, row)
    recorder.record("x", "jobs", "delete", recorder.rows["x"], {})


def without_follow_up(recorder: Recorder) -> None:
    recorder.enqueue("x", task="hopeless")
    recorder.claim("x")
    recorder.change("x", state="failed", worker=None, token=None, expires_at=None)


def rescued_late(recorder: Recorder, seconds: float = 2.5) -> None:
    recorder.event("started", process=13, program="worker0")
    lose_late(recorder, seconds)


def lose_late(recorder: Recorder, seconds: float) -> None:
    for number in range(100):
        job = f"x{number}"
        recorder.enqueue(job)
        recorder.claim(job)
        recorder.now += 2.0 + seconds
        recorder.lose(job)
        recorder.run(job)


def counted_twice(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x", attempt=2)
    recorder.succeed("x")


def loss_not_counted(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 3.0
    recorder.lose("x", attempt=0)
    recorder.claim("x", attempt=1)
    recorder.succeed("x")


def long_backoff(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.change("x", state="pending", worker=None, expires_at=None, run_at=recorder.now + 60)
    recorder.now += 61
    recorder.change("x", state="queued")
    recorder.run("x")


def without_token(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x", token="")
    recorder.change("x", token=None)
    recorder.succeed("x")


def lease_of_a_queued_job(recorder: Recorder) -> None:
    recorder.enqueue("x", expires_at=2.0)
    recorder.run("x")


def above_the_rate(recorder: Recorder) -> None:
    for number in range(11):
        recorder.enqueue(f"x{number}", queue="rated")
        recorder.run(f"x{number}")


def exit_without_a_signal(recorder: Recorder) -> None:
    recorder.event("exit", process=13, code=1)


def exit_long_after_its_signal(recorder: Recorder) -> None:
    recorder.event("fault", kind="terminate", workers=[], seconds=0.0, signalled=13)
    recorder.now += 30.0
    recorder.event("exit", process=13, code=0)


def two_successors(recorder: Recorder) -> None:
    recorder.enqueue("x", task="first_link")
    for job in "yz":
        recorder.enqueue(job, task="next_link", chain="x", position=1)
    for job in "xyz":
        recorder.run(job)


def cancelled_by_a_refused_call(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.event("verb", phase="invoked", verb="cancel", job="x", call=1)
    recorder.record("x", "finished", "insert", {}, {"state": "cancelled", "version": 0, "result": None})
    recorder.record("x", "jobs", "delete", recorder.rows["x"], {})
    recorder.event("verb", phase="failed", verb="cancel", job="x", call=1)


def fired_twice(recorder: Recorder) -> None:
    for job in "xy":
        recorder.enqueue(job, task="tick", run_at=-5.0)
        recorder.run(job)


def renewed_for_a_dead_worker(recorder: Recorder) -> None:
    recorder.event("fault", kind="kill", workers=[13], stopped=[13], seconds=None)
    recorder.enqueue("x")
    recorder.claim("x", HEALTHY)
    recorder.now += 1.5
    recorder.change("x", expires_at=recorder.now + 2)
    recorder.succeed("x")


def announced_and_lost(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 3.0
    recorder.lose("x")
    recorder.event("announced", job="x", version=1, outcome="succeeded")
    recorder.run("x")


def checked_after_its_lease(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.now += 2.5  # the lease lasts for 2
    recorder.event("check", job="x", version=1, worker=WORKER)
    recorder.succeed("x")


def failed_without_an_error(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    recorder.start("x")
    recorder.end("x")
    row = {"version": 1, "attempt": 1, "worker": WORKER, "outcome": "failed", "expires_at": recorder.now}
    recorder.record("x", "attempts", "insert", {}, row)
    recorder.change("x", state="failed", expires_at=None)


def claimed_out_of_order(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.enqueue("y")
    recorder.run("y")
    recorder.run("x")


def start_a_worker(recorder: Recorder) -> None:
    recorder.event("started", process=13, program="worker1")


def left_by_a_free_worker(recorder: Recorder, **columns: Any) -> None:
    start_a_worker(recorder)
    recorder.enqueue("x", **columns)
    recorder.now += 30.0
    recorder.run("x")


def failed_and_succeeded(recorder: Recorder) -> None:
    recorder.enqueue("x")
    recorder.claim("x")
    about = {"version": 1, "worker": WORKER, "outcome": "failed", "expires_at": 2.0}
    recorder.record("x", "attempts", "insert", {}, about)
    recorder.succeed("x")


def never_ended(recorder: Recorder) -> None:
    recorder.enqueue("x")


@pytest.mark.parametrize(
    ("history", "letter"),
    [
        (lost, "A"), (refused_and_stored, "A"), (made_up, "B"), (illegal, "C"), (ended_twice, "D"),
        (token_used_twice, "E"), (too_many_attempts, "F"), (reaped_early, "G"), (renewed_and_reaped, "G"),
        (reaped_without_a_fault, "H"), (reaped_long_after_a_fault, "H"), (result_of_a_former_owner, "I"),
        (ledger_of_a_former_owner, "J"),
        (started_without_a_claim, "K"), (overlapping, "L"), (released_too_soon, "L"), (too_early, "M"),
        (above_the_limit, "N"),
        (above_the_limit_of_a_group, "N"), (two_at_a_target, "O"), (cancelled_and_run, "P"), (two_of_a_key, "Q"),
        (two_in_a_window, "Q"), (never_ended, "R"),
        (started_after_its_lease, "S"), (without_successor, "T"), (without_follow_up, "T"),
        (rescued_late, "U"), (counted_twice, "V"), (loss_not_counted, "V"), (long_backoff, "W"), (without_token, "X"),
        (lease_of_a_queued_job, "X"), (above_the_rate, "Y"), (exit_without_a_signal, "Z"),
        (exit_long_after_its_signal, "Z"), (two_successors, "T"), (checked_after_its_lease, "S"),
        (renewed_for_a_dead_worker, "AA"), (announced_and_lost, "BB"), (cancelled_by_a_refused_call, "CC"),
        (fired_twice, "DD"), (failed_without_an_error, "EE"), (claimed_out_of_order, "FF"),
        (left_by_a_free_worker, "GG"), (failed_and_succeeded, "HH"),
    ],
)  # fmt: skip
def test_each_invariant_finds_its_violation(history: Callable[[Recorder], None], letter: str) -> None:
    recorder = Recorder()
    rightly(recorder)
    history(recorder)
    assert letter in found(recorder)


def lost_by_a_healthy_worker(recorder: Recorder) -> None:
    """It renewed for the last time at 0, and its lease of 3 s was taken at 3.1."""
    recorder.enqueue("x")
    recorder.claim("x", HEALTHY, expires_at=3.0)
    recorder.now = 3.1
    recorder.lose("x")
    recorder.claim("x", OTHER)
    recorder.start("x", worker=OTHER)
    recorder.succeed("x")


def disturb(recorder: Recorder, *moments: float) -> None:
    """Faults of the connections of the healthy worker."""
    for moment in moments:
        recorder.now = moment
        recorder.event("fault", kind="cut", workers=[], disturbed=13, seconds=0.0)
    recorder.now = 0.0


def outage(recorder: Recorder, began: float, ended: float) -> None:
    recorder.now = ended
    recorder.event("fault over", kind="restart", began=began)
    recorder.now = 0.0


def test_faults_of_connections_explain_a_lost_lease_if_they_left_no_time_for_a_renewal() -> None:
    recorder = Recorder()
    disturb(recorder, 0.9, 1.8, 2.7)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == set()


def test_one_cut_does_not_explain_a_lost_lease() -> None:
    recorder = Recorder()
    disturb(recorder, 0.9)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == {"H"}


def test_an_outage_of_all_workers_does_not_explain_a_lost_lease() -> None:
    recorder = Recorder()
    outage(recorder, 0.5, 2.9)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == {"H"}


def test_an_outage_and_a_cut_together_may_explain_a_lost_lease() -> None:
    recorder = Recorder()
    disturb(recorder, 0.9)
    outage(recorder, 1.9, 2.9)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == set()


def test_a_claim_on_postgres_may_leave_a_job_for_a_moment_and_no_longer() -> None:
    recorder = Recorder()
    recorder.loaded.settings = structs.replace(recorder.loaded.settings, direct="postgresql://x")
    recorder.loaded.is_virtual = True
    recorder.enqueue("x")
    letters = []
    for number in range(4):
        recorder.enqueue(f"y{number}")
        recorder.run(f"y{number}")
        letters.append("FF" in found(recorder))
        recorder.now += 0.9
    assert letters == [False, False, False, True]


def test_late_reaping_counts_only_if_a_worker_was_undisturbed() -> None:
    recorder = Recorder()
    disturb(recorder, *range(600))
    rescued_late(recorder)
    assert "U" not in found(recorder)


def test_late_reaping_counts_if_the_pauses_between_faults_were_long_enough_in_total() -> None:
    recorder = Recorder()
    disturb(recorder, *(number * 2.5 for number in range(2000)))
    rescued_late(recorder, 40.0)
    assert "U" in found(recorder)


def test_a_process_that_has_exited_could_not_reap() -> None:
    for exits, letters in ((True, set[str]()), (False, {"U"})):
        recorder = Recorder()
        start_a_worker(recorder)
        if exits:
            recorder.now = 0.5
            recorder.event("exit", process=13, code=-15)
        recorder.now = 1.0
        lose_late(recorder, 2.5)
        assert found(recorder) & {"U"} == letters


def test_a_job_that_its_limit_keeps_may_wait() -> None:
    recorder = Recorder()
    for number in range(3):
        recorder.enqueue(f"r{number}", queue="limited")
        recorder.claim(f"r{number}", OTHER, expires_at=100.0)
    left_by_a_free_worker(recorder, queue="limited")
    assert "GG" not in found(recorder)


def test_a_job_may_wait_while_its_queue_is_paused() -> None:
    recorder = Recorder()
    recorder.event("queue paused", queue="targets")
    left_by_a_free_worker(recorder, queue="targets")
    assert "GG" not in found(recorder)


def test_a_job_may_wait_beside_workers_that_faults_disturb() -> None:
    recorder = Recorder()
    disturb(recorder, *range(60))
    left_by_a_free_worker(recorder)
    assert "GG" not in found(recorder)


def test_a_job_may_wait_beside_a_worker_that_claims_others() -> None:
    recorder = Recorder()
    start_a_worker(recorder)
    recorder.enqueue("x")
    for number in range(30):
        recorder.enqueue(f"y{number}")
        recorder.claim(f"y{number}", HEALTHY)
        recorder.succeed(f"y{number}")
        recorder.now += 1.0
    assert "GG" not in found(recorder)


def test_a_job_may_wait_while_one_that_has_lost_a_worker_is_live() -> None:
    recorder = Recorder()
    recorder.enqueue("suspect", losses=1)
    left_by_a_free_worker(recorder)
    assert "GG" not in found(recorder)


def test_an_attempt_fails_if_the_database_rejected_what_it_returned() -> None:
    for token, letters in (("token 1", set[str]()), ("another", {"EE"})):
        recorder = Recorder()
        failed_without_an_error(recorder)
        recorder.event("rejected", job="x", token=token)
        assert found(recorder) & {"EE"} == letters


def lock_the_row(recorder: Recorder, began: float, seconds: float) -> None:
    recorder.now = began
    recorder.event("rows locked", jobs=["x"], seconds=seconds)
    recorder.now = 0.0


def test_a_lock_on_the_row_explains_a_lease_that_expired_meanwhile() -> None:
    recorder = Recorder()
    lock_the_row(recorder, 0.5, 2.8)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == set()


def test_a_lock_on_the_row_that_ended_before_explains_nothing() -> None:
    recorder = Recorder()
    lock_the_row(recorder, 0.1, 1.0)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == {"H"}


def test_a_worker_that_ends_with_a_broken_connection_may_leave_a_lease_behind() -> None:
    recorder = Recorder()
    disturb(recorder, 0.3)
    recorder.event("fault", kind="terminate", workers=[], seconds=0.0, signalled=13)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == set()


def test_a_renewal_that_a_dead_worker_had_sent_may_arrive_late() -> None:
    """Only when its connection, which hung, works again."""
    for seconds, letters in ((1.8, set[str]()), (0.1, {"AA"})):
        recorder = Recorder()
        recorder.enqueue("a")
        recorder.claim("a")
        recorder.event("fault", kind="hang", workers=[11], seconds=seconds, stopped=[11])
        recorder.fault(11)
        recorder.loaded.events["fault"][-1].fields["stopped"] = [11]
        recorder.now = 1.9
        recorder.change("a", expires_at=3.9)
        recorder.now = 4.5
        recorder.lose("a")
        recorder.run("a")
        assert found(recorder) == letters


REMOTE = "host:13:cccc@token"


@pytest.mark.parametrize(
    ("url", "after", "gateway_stopped_for", "letters"),
    [
        ("sqlite:///x.db", BUSY_FOR - 0.5, 0.0, set()),
        ("sqlite:///x.db", BUSY_FOR + 1.5, 0.0, {"AA"}),
        ("postgresql://db/x", 1.5, 0.0, {"AA"}),
        ("postgresql://db/x", 3.0, 2.5, set()),
        ("postgresql://db/x", 5.0, 2.5, {"AA"}),
    ],
)
def test_a_renewal_that_a_dead_worker_had_sent_may_wait_in_a_gateway(
    url: str, after: float, gateway_stopped_for: float, letters: set[str]
) -> None:
    """For the lock on a file, or while the gateway is stopped."""
    recorder = Recorder()
    recorder.loaded.settings = structs.replace(recorder.loaded.settings, direct=url)
    recorder.event("fault", kind="kill", workers=[13], stopped=[13], seconds=None)
    if gateway_stopped_for:
        recorder.now = gateway_stopped_for
        recorder.event("gateway runs again", began=0.2)
        recorder.now = 0.0
    recorder.enqueue("x")
    recorder.claim("x", REMOTE, expires_at=after + 1)
    recorder.now = after
    recorder.change("x", expires_at=after + 2)
    recorder.succeed("x")
    assert found(recorder) == letters


def stop_all(recorder: Recorder) -> None:
    recorder.now = 0.1
    recorder.event("fault", kind="stop all", workers=[], stopped=[11, 12, 13], seconds=3.0)
    recorder.now = 0.0


def test_a_stop_of_all_workers_does_not_explain_a_lost_lease() -> None:
    recorder = Recorder()
    stop_all(recorder)
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == {"H"}


def test_a_stop_of_all_workers_explains_a_lost_lease_if_another_was_started_meanwhile() -> None:
    recorder = Recorder()
    stop_all(recorder)
    recorder.now = 1.0
    recorder.event("started", process=14, program="worker3")
    recorder.now = 0.0
    lost_by_a_healthy_worker(recorder)
    assert found(recorder) == set()
