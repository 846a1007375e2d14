"""The problems that need an operator: jobs that no worker runs, blocked targets, failures, lost workers, late queues.

Each problem has the action that fixes it, if the dashboard has one, or else the command or the page that helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from typing import Any, Literal

from ..._core.job import Job, State
from ..._core.redact import redacted
from ..._core.views import QueueInfo
from ..._core.worker import WorkerInfo
from . import cache
from .failures import finds_no_other
from .formatting import about, many, middle, number, visible, visible_line
from .page import PageContext

FRESH = 60.0  # as for a chart with steps of this length: the problems are read every few seconds at most
UNSERVED_FOR = 30.0  # seconds: a worker may be starting
LATE_AFTER = 300.0  # seconds for which a job of a served queue has been due
MAX_HOLDERS = 100  # failed and paused jobs that are checked for targets that they block
FEW = 3  # problems of one kind that are listed one by one

Level = Literal["bad", "warn", "paused"]


@dataclass(frozen=True)
class Button:
    """An action, which asks for confirmation, or with `page` a link."""

    label: str
    action: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    danger: bool = False
    page: str = ""


@dataclass(frozen=True)
class Problem:
    """One line of the strip. `command`: what to run in a shell."""

    level: Level
    title: str
    text: str
    buttons: Sequence[Button] = ()
    command: str = ""
    at: datetime | None = None  # when it happened last


def problems(view: PageContext, queues: Sequence[QueueInfo], workers: Sequence[WorkerInfo]) -> list[Problem]:
    """All problems, the worst first. One read serves every open page."""
    return cache.shared(view, "attention", FRESH, lambda: _find(view, queues, workers))


def _find(view: PageContext, queues: Sequence[QueueInfo], workers: Sequence[WorkerInfo]) -> list[Problem]:
    alive = [one for one in workers if not one.lost]
    unserved = [one for one in view.client._waiting_jobs() if _lacks_worker(one, alive)]
    without_worker = {one.queue for one in unserved}
    served = [one for one in queues if one.queue not in without_worker]
    found = [
        *_unserved(view, unserved, alive),
        *_blocked_targets(view),
        *_late(served, alive),
        *_failures(view),
        *_schedules(view),
        *_lost(workers),
        *_paused(queues),
    ]
    return sorted(found, key=lambda one: ("bad", "warn", "paused").index(one.level))


def _unserved(view: PageContext, unserved: Sequence[Any], alive: Sequence[WorkerInfo]) -> Iterable[Problem]:
    """Queued jobs that no running worker can run."""
    if unserved and not alive:
        names = sorted({one.queue for one in unserved})
        where = f"queue {_name(names[0])}" if len(names) == 1 else f"{len(names)} queues"
        longest = about(max(one.longest for one in unserved))
        text = f"Jobs are queued in {where}, and the oldest has been due for {longest}. Start a worker:"
        yield Problem("bad", "No worker is running", text, [Button("Workers", page="/workers")], _worker(view))
        return
    for one in unserved[:FEW]:
        title = f"No worker runs {_name(one.task)} in queue {_name(one.queue)}"
        text = f"{many(one.number, 'job is', 'jobs are')} queued, and the oldest has been due for {about(one.longest)}."
        which = {"state": "queued", "queue": one.queue, "task": one.task}
        buttons = [Button("Cancel them", "bulk", {"action": "cancel", **which}, danger=True), _jobs(**which)]
        if any(one.task in worker.tasks for worker in alive):
            text += " Let a worker serve this queue:"
            yield Problem("bad", title, text, buttons, _worker(view, one.queue))
        else:
            text += " No running worker knows the task: start one of the program that has it, or cancel the jobs."
            yield Problem("bad", title, text, buttons)
    if len(unserved) > FEW:
        text = "Each has a queue or a task that none of the running workers serves."
        yield Problem(
            "bad", f"{many(len(unserved) - FEW, 'more task')} without a worker", text, [_jobs(state="queued")]
        )


def _blocked_targets(view: PageContext) -> Iterable[Problem]:
    """Targets whose holder has failed or is paused, while other jobs wait for them."""
    holders: list[Job[Any]] = []
    for state in (State.FAILED, State.PAUSED):
        page = view.client.jobs(state=state, limit=MAX_HOLDERS, scan=MAX_HOLDERS * 10)
        holders += [job for job in page.jobs if job.target and (job.holds or job.wait == "target")]
    blocked = []
    for job in holders[: FEW * 4]:
        waiting = view.client.target(job.target or "", limit=1).waiting - (job.wait == "target")  # or more
        blocked += [(job, waiting)] if waiting > 0 else []
    for job, waiting in blocked[:FEW]:
        why = f"has failed: {visible_line(job.error, 90)}" if job.state is State.FAILED else "is paused"
        verb = "waits" if waiting == 1 else "wait"
        text = f"{many(waiting, 'job')} {verb} behind {_name(job.task)} {job.id[-8:]}, which {why}"
        buttons = [
            Button("Resume it", "resume", {"job": job.id}),
            Button("Cancel it", "cancel", {"job": job.id}, danger=True),
            Button("Target", page="/targets", parameters={"name": job.target or ""}),
        ]
        yield Problem("bad", f"Target {_name(job.target or '')} is blocked", text, buttons)
    if len(blocked) > FEW:
        yield Problem(
            "bad",
            f"{many(len(blocked) - FEW, 'more target')} blocked",
            "See all targets.",
            [Button("Targets", page="/targets")],
        )


def _late(queues: Sequence[QueueInfo], alive: Sequence[WorkerInfo]) -> Iterable[Problem]:
    """Queues that workers serve, but not as fast as jobs arrive."""
    late = [one for one in queues if not one.paused and one.oldest is not None and one.oldest >= LATE_AFTER]
    served = [one for one in late if _served_by_any(one, alive)]
    for one in sorted(served, key=lambda one: -(one.oldest or 0.0))[:FEW]:
        due = f"the oldest has been due for {about(one.oldest or 0.0)}"
        text = f"{many(one.queued, 'job is', 'jobs are')} queued, and {due}."
        if one.max_running is not None and one.running >= one.max_running:
            text += f" Its limit of {number(one.max_running)} running jobs is reached."
        else:
            slots = sum(worker.slots for worker in alive if _serves(worker, one.queue))
            text += f" The workers that serve it have {many(slots, 'slot')}: start more, or raise its limits."
        buttons = [Button("Limits", "limit-queue", {"queue": one.queue}), _jobs(queue=one.queue, state="queued")]
        yield Problem("warn", f"Queue {_name(one.queue)} is late", text, buttons)


def _failures(view: PageContext) -> Iterable[Problem]:
    groups = redacted(view.client.failures(limit=20), view.redact)
    first = groups if len(groups) <= FEW else groups[: FEW - 1]
    for one in first:
        where = {"state": "failed", "task": one.task, "error": one.search}
        buttons = [_jobs(**where)]
        if finds_no_other(one, groups):
            buttons.insert(
                0, Button("Resume all" if one.number > 1 else "Resume it", "bulk", {"action": "resume", **where})
            )
        title = f"{many(one.number, 'job')} of {_name(one.task)} failed"
        yield Problem("warn", title, visible_line(one.error, 140), buttons, at=one.last_at)
    if len(groups) > len(first):
        rest = groups[len(first) :]
        text = f"They failed with {many(len(rest), 'other error')}."
        title = f"{many(sum(one.number for one in rest), 'more job')} failed"
        yield Problem("warn", title, text, [Button("Failures", page="/failures")], at=rest[0].last_at)


def _schedules(view: PageContext) -> Iterable[Problem]:
    for one in view.client.schedules.all():
        if one.problem and not one.paused:
            buttons = [Button("Pause it", "pause-schedule", {"name": one.name}), Button("Schedules", page="/schedules")]
            yield Problem("warn", f"Schedule {_name(one.name)} does not tick", visible_line(one.problem, 160), buttons)


def _lost(workers: Sequence[WorkerInfo]) -> Iterable[Problem]:
    lost = sorted((one for one in workers if one.lost), key=lambda one: one.seen_at, reverse=True)
    for one in lost[:FEW]:
        jobs = (
            f"Other workers take over its {many(one.running, 'job')} when their leases expire." if one.running else ""
        )
        text = f"Its heartbeats stopped. Check process {one.pid} on host {_name(one.host)}. {jobs}".strip()
        buttons = [Button("Workers", page="/workers")]
        yield Problem("warn", f"Worker {_name(one.name)} is lost", text, buttons, at=one.seen_at)
    if len(lost) > FEW:
        text = "Their heartbeats stopped within the last day."
        yield Problem(
            "warn", f"{many(len(lost) - FEW, 'more worker')} lost", text, [Button("Workers", page="/workers")]
        )


def _paused(queues: Sequence[QueueInfo]) -> Iterable[Problem]:
    stopped = [one for one in queues if one.paused and one.queued]
    for one in sorted(stopped, key=lambda one: -one.queued)[:FEW]:
        text = f"{many(one.queued, 'job is', 'jobs are')} due and {'does' if one.queued == 1 else 'do'} not start."
        if one.oldest is not None:
            text += f" The oldest has waited for {about(one.oldest)}."
        buttons = [Button("Resume it", "resume-queue", {"queue": one.queue}), _jobs(queue=one.queue, state="queued")]
        yield Problem("paused", f"Queue {_name(one.queue)} is paused", text, buttons)
    if len(stopped) > FEW:
        yield Problem(
            "paused",
            f"{many(len(stopped) - FEW, 'more queue')} paused",
            "Jobs wait in each.",
            [Button("Queues", page="/queues")],
        )


def _lacks_worker(waiting: Any, alive: Sequence[WorkerInfo]) -> bool:
    serving = (worker for worker in alive if worker.serves(waiting.queue, waiting.task))
    return waiting.longest >= UNSERVED_FOR and not any(serving)


def _served_by_any(queue: QueueInfo, alive: Sequence[WorkerInfo]) -> bool:
    return any(_serves(worker, queue.queue) for worker in alive)


def _serves(worker: WorkerInfo, queue: str) -> bool:
    return worker.queues is None or queue in worker.queues


def _jobs(**filters: str) -> Button:
    return Button("See jobs", parameters=filters, page="/jobs")


def _worker(view: PageContext, queue: str = "") -> str:
    return f"relet worker {view.app_path}" + (f" -q {quote(visible(queue))}" if queue else "")


def _name(text: str) -> str:
    return middle(visible(text), 40)
