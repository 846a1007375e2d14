"""What to make of the work on a store: upkeep, leases, workers, queues. Pure: figures in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.finding import Finding, duration, listed, plain
from ..._core.worker import WorkerInfo
from ..flows.doctor import Waiting

PULSE_IS_FRESH = 5.0  # upkeep touches it about once a second; after 3 s without it nobody reaps
REAPED_WITHIN = 60.0  # leases that run out are reaped within about 2 s, within one heartbeat more after an outage
MOST_COUNTED = 1000
LOST_LATELY = 3600.0  # of one that was lost long ago nothing is left to do
SHOWN_LOST = 5
SHOWN_UNSERVED = 10
UNSERVED_FOR = 30.0  # a worker may be starting, or busy


def pulse(ago: float | None, work: bool) -> list[Finding]:
    """When upkeep last touched the pulse (None: never), and whether anything waits for a worker."""
    if ago is not None and ago < PULSE_IS_FRESH:
        return [Finding("pulse", "ok", f"a worker did upkeep {duration(max(ago, 0.0))} ago")]
    seen = "no worker has ever done upkeep here" if ago is None else f"no worker has done upkeep for {duration(ago)}"
    if not work:
        return [Finding("pulse", "info", f"{seen}, and nothing waits for one")]
    text = f"{seen}, and there are jobs: nothing is promoted, scheduled, reaped or pruned"
    advice = "start a worker (`relet worker`); if some run, look in their logs for errors of this store"
    return [Finding("pulse", "warning", text, advice)]


def leases(number: int, longest: float | None) -> list[Finding]:
    """Leases that ran out more than REAPED_WITHIN ago, and that nobody has reaped."""
    if number == 0:
        return [Finding("leases", "ok", f"no lease ran out more than {duration(REAPED_WITHIN)} ago")]
    many = f"{number} or more" if number >= MOST_COUNTED else str(number)
    text = (
        f"{many} running jobs have leases that ran out, the first {duration(longest or 0.0)} ago, and nobody reaps them"
    )
    advice = "any worker of this store reaps them when it does upkeep: start one, or see what its log says of reaping"
    return [Finding("leases", "warning", text, advice)]


def crew(workers: Sequence[WorkerInfo], now: float) -> list[Finding]:
    """Who is there, and who fell silent without a word."""
    shown = []
    lost = sorted((one for one in workers if one.lost), key=lambda one: one.seen_at, reverse=True)
    for one in lost[:SHOWN_LOST]:
        silent, host = now - one.seen_at.timestamp(), plain(one.host)
        text = (
            f"worker {plain(one.name)} (host {host}, pid {one.pid}) was last heard of {duration(silent)} ago, and did "
            "not say that it would stop; what it ran is reaped and run again"
        )
        advice = f"see on {host} whether it lives, and what its log says; this goes away a day after its last word"
        shown.append(Finding("workers", "warning" if silent < LOST_LATELY else "info", text, advice))
    if len(lost) > SHOWN_LOST:
        shown.append(Finding("workers", "info", f"{len(lost) - SHOWN_LOST} more were lost before", None))
    there = [one for one in workers if not one.lost]
    if not there:
        return [*shown, Finding("workers", "info", "no worker is there")]
    releases = sorted({one.version for one in there})
    if len(releases) > 1:
        text = f"workers of several releases of relet are there: {listed(releases)}"
        shown.append(
            Finding("workers", "info", text, "let all of them run the same, once the new one has proved itself")
        )
    running, slots = sum(one.running for one in there), sum(one.slots for one in there)
    seen = f"workers that are there: {len(there)}; {running} of {slots} slots in use"
    return [*shown, Finding("workers", "ok", seen)]


def queues(waiting: Sequence[Waiting], workers: Sequence[WorkerInfo]) -> list[Finding]:
    """Jobs that are queued, and that none of the workers can run."""
    there = [one for one in workers if not one.lost]
    late = [one for one in waiting if one.longest >= UNSERVED_FOR]
    alone = [one for one in late if not any(worker.serves(one.queue, one.task) for worker in there)]
    if alone and not there:
        names = listed(sorted({one.queue for one in alone}))
        longest = duration(max(one.longest for one in alone))
        text = f"jobs are queued (in {names}; the oldest has been due for {longest}), and no worker is there"
        return [Finding("queues", "warning", text, "start a worker (`relet worker`)")]
    shown = [_unserved(one, there) for one in alone[:SHOWN_UNSERVED]]
    if len(alone) > SHOWN_UNSERVED:
        text = f"the same is true of {len(alone) - SHOWN_UNSERVED} more pairs of queue and task"
        shown.append(Finding("queues", "warning", text, "see above"))
    return shown or [Finding("queues", "ok", "nothing is queued that no worker can run")]


def _unserved(one: Waiting, there: Sequence[WorkerInfo]) -> Finding:
    many = f"{one.number:,} or more" if one.number >= MOST_COUNTED else f"{one.number:,}"
    text = (
        f"{many} jobs of task {one.task} are queued in {one.queue}, the oldest due for {duration(one.longest)}, and "
        f"none of the {len(there)} workers that are there serves that queue and knows that task"
    )
    if any(one.task in worker.tasks for worker in there):
        return Finding("queues", "warning", text, f"let a worker serve it: `relet worker ... -q {one.queue}`")
    return Finding("queues", "warning", text, "start workers of the program that has this task, or cancel the jobs")
