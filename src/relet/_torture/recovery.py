"""The invariants of recovery: attempts, backoff, rates, and processes. As in `check`."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise

from . import facts
from .jobs import RESCUED_WITHIN, STATEMENT, Invariant, Jobs, Violation, claims

ENOUGH = 100  # lost attempts, for a percentile that means something
COULD_NOT_START = 1  # an exit code


def percentiles(values: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    if not values:
        return 0.0, 0.0
    return round(values[len(values) // 2], 3), round(values[math.ceil(len(values) * 0.99) - 1], 3)


def jobs_are_rescued_in_time(jobs: Jobs) -> Iterator[Violation]:
    """U: 99 of 100 attempts whose worker is lost are reaped within two seconds after their leases have expired."""
    found = jobs.rescues  # a tenant has too few: its only worker must start again before it can reap
    late = percentiles(found)[1]
    if len(found) >= ENOUGH and late > RESCUED_WITHIN:
        yield Violation("U", "", f"the 99th percentile of {len(found)} lost attempts was reaped {late:.3f} s late")


def attempts_are_counted(jobs: Jobs) -> Iterator[Violation]:
    """V: a claim counts one attempt, and an attempt that is lost stays counted, unless it was the last one: before a
    loss can fail a job, it has run alone in its worker."""
    for id, records in jobs.records.items():
        for one in records:
            before, after = one.before.get("state"), one.after.get("state")
            if one.table != "jobs" or one.event != "update":
                continue
            counted = one.after["attempt"] - one.before["attempt"]
            if before != "running" and after == "running" and counted != 1:
                yield Violation("V", id, f"the claim of record {one.seq} counted {counted} attempts")
            ended = jobs.attempts.get((id, one.before["version"]))
            is_lost = ended is not None and ended.after["outcome"] == "lost"
            was_last = one.before["attempt"] == one.before["max_attempts"] and counted == -1
            if before == "running" and after in ("queued", "pending") and is_lost and counted and not was_last:
                yield Violation("V", id, f"an attempt was lost and not counted, record {one.seq}")


def backoff_is_bounded(jobs: Jobs) -> Iterator[Violation]:
    """W: an attempt that failed or was lost is repeated after its backoff at the latest."""
    if jobs.loaded.clock_was_moved:
        return  # a time that was stored before lies further ahead
    for id, records in jobs.records.items():
        for one in records:
            is_retry = one.before.get("state") == "running" and one.after.get("state") == "pending"
            if is_retry and one.after["task"] != facts.WAITS_FOR_SIGNALS:
                wait = one.after["run_at"] - one.at
                if wait > facts.LONGEST_BACKOFF + STATEMENT:
                    yield Violation("W", id, f"it waits {wait:.3f} s, record {one.seq}")


def leases_are_whole(jobs: Jobs) -> Iterator[Violation]:
    """X: a running job has a worker, a token and an expiry; no other job has an expiry."""
    for id, records in jobs.records.items():
        for one in records:
            row = one.after
            if one.table != "jobs" or not row:
                continue
            lease = [row[name] is not None for name in ("worker", "token", "expires_at")]
            is_running = row["state"] == "running"
            if (is_running and not all(lease)) or (not is_running and row["expires_at"] is not None):
                yield Violation("X", id, f"record {one.seq} is {row}")


def rates_are_kept(jobs: Jobs) -> Iterator[Violation]:
    """Y: within any window no more jobs of a queue start than its rate allows."""
    if jobs.loaded.clock_was_moved:
        return
    started: dict[str, deque[float]] = defaultdict(deque)
    for one in claims(jobs.loaded.records):
        if one.after["queue"] in facts.RATES:
            number, seconds = facts.RATES[one.after["queue"]]
            window = started[one.after["queue"]]
            window.append(one.at)
            while window[0] <= one.at - seconds + STATEMENT:
                window.popleft()
            if len(window) > number:
                yield Violation("Y", one.job, f"{len(window)} jobs started within {seconds} s, {number} may")


def processes_end_by_signals(jobs: Jobs) -> Iterator[Violation]:
    """Z: a process ends only by a signal; a worker that gets one ends in time. The web server may refuse to start while
    it cannot reach the database."""
    signalled = jobs.loaded.faults_of("signalled")
    web = {event.fields["process"] for event in jobs.loaded.events["started"] if event.fields["program"] == "web"}
    for event in jobs.loaded.events["stopping"]:
        for pid in event.fields["processes"]:
            signalled[pid].append((event.at, event.at))
    for event in jobs.loaded.events["exit"]:
        pid, code = event.fields["process"], event.fields["code"]
        began = min((begin for begin, _ in signalled.get(pid, ())), default=None)
        if began is None and code == COULD_NOT_START and pid in web:
            continue
        if began is None:
            yield Violation("Z", "", f"process {pid} exited with {code}, and no signal had been sent to it")
        elif event.at - began > jobs.longest_exit(pid, began, event.at):
            yield Violation("Z", "", f"process {pid} ended {event.at - began:.1f} s after its signal, code {code}")


def leases_are_renewed_by_their_workers(jobs: Jobs) -> Iterator[Violation]:
    """AA: no lease is renewed while its worker is dead, stopped or without a connection."""
    for (id, version), leases in jobs.leases.items():
        for before, one in pairwise(leases):
            is_renewed = one.after["expires_at"] > before.after["expires_at"]
            if is_renewed and jobs.could_not_run(one.after["worker"], jobs.local(one)):
                yield Violation("AA", id, f"version {version} was renewed, and {one.after['worker']} could not")


def announced_outcomes_are_stored(jobs: Jobs) -> Iterator[Violation]:
    """BB: an outcome that a worker announces by an event is the one that the store has."""
    succeeded = {
        (one.job, one.after["version"]) for one in jobs.loaded.records if one.after.get("state") == "succeeded"
    }
    for event in jobs.loaded.events["announced"]:
        job, version, outcome = (event.fields[name] for name in ("job", "version", "outcome"))
        attempt = jobs.attempts.get((job, version))
        is_stored = (job, version) in succeeded if outcome == "succeeded" else attempt is not None
        if not is_stored or (attempt is not None and attempt.after["outcome"] == "lost"):
            yield Violation("BB", job, f"version {version} was announced as {outcome}, which is not stored")


def handlers_decide(jobs: Jobs) -> Iterator[Violation]:
    """EE: an attempt is stored as failed, or as one to retry, only if its handler raised an error, or if the database
    rejected what it returned."""
    rejected = {(event.fields["job"], event.fields["token"]) for event in jobs.loaded.events["rejected"]}
    for (id, version), attempt in jobs.attempts.items():
        end = jobs.ends.get((id, version))
        if any((id, lease.after["token"]) in rejected for lease in jobs.leases.get((id, version), ())):
            continue
        if attempt.after["outcome"] in ("failed", "retried") and end is not None and end.fields["error"] is None:
            yield Violation("EE", id, f"version {version} is {attempt.after['outcome']}, and its handler returned")


def attempts_end_once(jobs: Jobs) -> Iterator[Violation]:
    """HH: an attempt that is stored as failed, lost or given back is not stored as a success, too."""
    for id in jobs.records:
        last = jobs.final(id)
        attempt = jobs.attempts.get((id, last.get("version", 0)))
        is_completed = last.get("result") == facts.BY_OPERATOR
        if last.get("state") == "succeeded" and attempt is not None and not is_completed:
            yield Violation("HH", id, f"it succeeded, and its last attempt is {attempt.after['outcome']}")


MORE_CHECKS: tuple[Invariant, ...] = (
    jobs_are_rescued_in_time, attempts_are_counted, backoff_is_bounded, leases_are_whole, rates_are_kept,
    processes_end_by_signals, leases_are_renewed_by_their_workers, announced_outcomes_are_stored,
    handlers_decide, attempts_end_once,
)  # fmt: skip
