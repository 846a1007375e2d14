"""Findings about the work on a store: maintenance, leases, workers, queues. Pure: figures in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.finding import Finding
from ..._core.text import duration, listed, quotable
from ..._core.worker import WorkerInfo
from ..flows.doctor import Waiting

PULSE_IS_FRESH = 60.0  # maintenance updates it about once a second while there are leases, else every 45 s
REAPED_WITHIN = 60.0  # expired leases are reaped within about 2 s, or one heartbeat more after an outage
COUNT_LIMIT = 1000
LOST_LATELY = 3600.0  # a worker that was lost earlier needs no action
MAX_LOST = 5
MAX_UNSERVED = 10
UNSERVED_FOR = 30.0  # a worker may be starting, or busy


def pulse(ago: float | None, work: bool) -> list[Finding]:
    """When maintenance last updated the pulse (None: never), and whether any job waits for a worker."""
    if ago is not None and ago < PULSE_IS_FRESH:
        return [Finding("pulse", "ok", f"a worker did maintenance {duration(max(ago, 0.0))} ago")]
    seen = (
        "no worker has ever done maintenance here"
        if ago is None
        else f"no worker has done maintenance for {duration(ago)}"
    )
    if not work:
        return [Finding("pulse", "info", f"{seen}, and no job waits for one")]
    text = f"{seen}, and there are jobs: nothing is promoted, scheduled, reaped or pruned"
    advice = "start a worker (`relet worker`); if some run, check their logs for errors of this store"
    return [Finding("pulse", "warning", text, advice)]


def leases(number: int, longest: float | None) -> list[Finding]:
    """Leases that expired more than REAPED_WITHIN ago, and that no worker has reaped."""
    if number == 0:
        return [Finding("leases", "ok", f"no lease expired more than {duration(REAPED_WITHIN)} ago")]
    many = f"{number} or more" if number >= COUNT_LIMIT else str(number)
    first = duration(longest or 0.0)
    text = f"{many} running jobs have expired leases, the first expired {first} ago, and no worker reaps them"
    advice = "any worker of this store reaps them during maintenance: start one, or check its log for errors of reaping"
    return [Finding("leases", "warning", text, advice)]


def crew(workers: Sequence[WorkerInfo], now: float) -> list[Finding]:
    """Workers that run, and workers that were lost."""
    findings = []
    lost = sorted((one for one in workers if one.lost), key=lambda one: one.seen_at, reverse=True)
    for one in lost[:MAX_LOST]:
        silent, host = now - one.seen_at.timestamp(), quotable(one.host)
        text = (
            f"worker {quotable(one.name)} (host {host}, pid {one.pid}) last reported {duration(silent)} ago, and did "
            "not report that it was stopping; its jobs are reaped and run again"
        )
        advice = f"check on {host} whether it runs, and its log; this finding disappears a day after its last report"
        findings.append(Finding("workers", "warning" if silent < LOST_LATELY else "info", text, advice))
    if len(lost) > MAX_LOST:
        findings.append(Finding("workers", "info", f"{len(lost) - MAX_LOST} more were lost earlier", None))
    alive = [one for one in workers if not one.lost]
    if not alive:
        return [*findings, Finding("workers", "info", "no worker is running")]
    releases = sorted({one.version for one in alive})
    if len(releases) > 1:
        text = f"workers of several releases of relet are running: {listed(releases)}"
        findings.append(Finding("workers", "info", text, "upgrade the others once the new release has proved itself"))
    running = sum(one.running for one in alive)
    slots = sum(one.slots for one in alive)
    seen = f"workers running: {len(alive)}; {running} of {slots} slots in use"
    return [*findings, Finding("workers", "ok", seen)]


def queues(waiting: Sequence[Waiting], workers: Sequence[WorkerInfo]) -> list[Finding]:
    """Queued jobs that none of the running workers can run."""
    alive = [one for one in workers if not one.lost]
    late = [one for one in waiting if one.longest >= UNSERVED_FOR]
    unserved = [one for one in late if not _is_served(one, alive)]
    if unserved and not alive:
        names = listed(sorted({one.queue for one in unserved}))
        longest = duration(max(one.longest for one in unserved))
        text = f"jobs are queued (in {names}; the oldest has been due for {longest}), and no worker is running"
        return [Finding("queues", "warning", text, "start a worker (`relet worker`)")]
    findings = [_unserved(one, alive) for one in unserved[:MAX_UNSERVED]]
    if len(unserved) > MAX_UNSERVED:
        text = f"the same is true of {len(unserved) - MAX_UNSERVED} more pairs of queue and task"
        findings.append(Finding("queues", "warning", text, "see above"))
    return findings or [Finding("queues", "ok", "no queued job lacks a worker that can run it")]


def _is_served(one: Waiting, alive: Sequence[WorkerInfo]) -> bool:
    return any(worker.serves(one.queue, one.task) for worker in alive)


def _unserved(one: Waiting, alive: Sequence[WorkerInfo]) -> Finding:
    many = f"{one.number:,} or more" if one.number >= COUNT_LIMIT else f"{one.number:,}"
    text = (
        f"{many} jobs of task {one.task} are queued in {one.queue}, the oldest due for {duration(one.longest)}, and "
        f"none of the {len(alive)} running workers serves that queue and knows that task"
    )
    if any(one.task in worker.tasks for worker in alive):
        return Finding("queues", "warning", text, f"let a worker serve it: `relet worker ... -q {one.queue}`")
    return Finding("queues", "warning", text, "start workers of the program that has this task, or cancel the jobs")
