"""Queues: their jobs by state, their limits, and their recent throughput."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from ..._core.job import Job, State
from ..._core.views import QueueInfo, by_state, counted_at
from . import cache, figures
from .charts import share_bar, sparkline
from .formatting import arguments_of, duration, many, number
from .page import Page, PageContext, PageNotFound

HOURS = 2.0  # statistics by the minute are kept for three hours
LATELY = figures.Range("lately", f"{HOURS:g} hours", HOURS * 3600, 300)
MAX_GROUPS = 5  # whose limits are phrases; only the number of the others is displayed
NOTHING = [0.0] * 24
AT_ONCE = 50  # queues on a page
LATEST = 20  # jobs on the page of a queue
FINISHED = 500  # finished jobs whose times it displays by task
SCAN = 5_000


def queues(view: PageContext) -> Page:
    """All queues, and the limits of all of them together; with `name` in the URL, the page of that queue."""
    if "name" in view.query:
        return queue(view, view.query["name"])
    found = view.client.queues()
    each = [one for one in found if one.queue != "*"]
    cursor = view.query.get("cursor") or ""
    following = [one for one in each if one.queue > cursor]
    page = following[:AT_ONCE]
    names = tuple(one.queue for one in page)
    sparks = cache.shared(view, ("sparks", names), LATELY.step, lambda: _sparks(view, names))
    largest = max((float(sum(by_state(one).values())) for one in each), default=0.0)
    rows = [_row(one, sparks.get(one.queue, NOTHING), largest) for one in page]
    all_queues = next((one for one in found if one.queue == "*"), None)
    context = {
        "queues": rows,
        "number": len(each),
        "cursor": cursor,
        "next_cursor": names[-1] if len(following) > AT_ONCE else None,
        "all_queues": limits(all_queues) if all_queues else (),
        "hours": HOURS,
        "counted_at": counted_at(found),
        "at_least": any(one.at_least for one in found),
    }
    return Page("Queues", "queues.html", context)


def queue(view: PageContext, queue: str) -> Page:
    """One queue: its jobs, charts, workers, tasks and limits."""
    which = figures.range_of(view.query.get("range"))
    found = {one.queue: one for one in view.client.queues()}
    info = found.get(queue)
    key = ("queue", queue, which)
    history = cache.shared(view, key, which.step, lambda: figures.history(view, which, queue))
    latest = view.client.jobs(queue=queue, limit=LATEST, scan=SCAN).jobs
    if queue == "*" or (info is None and not history.anything and not latest):
        raise PageNotFound(f"There is no queue named {queue}.")
    finished = view.client.jobs(queue=queue, state="succeeded", limit=FINISHED, scan=SCAN).jobs
    counts = {} if info is None else {str(state): value for state, value in by_state(info).items()}
    context: dict[str, Any] = {
        "queue": queue,
        "info": info,
        "counts": counts,
        "limits": limits(info) if info else (),
        "which": which,
        "ranges": figures.RANGES,
        "history": history,
        "workers": [one for one in view.client.workers() if one.queues is None or queue in one.queues],
        "tasks": _tasks(finished),
        "finished": len(finished),
        "jobs": latest,
        "arguments_of": arguments_of(latest, view.redact),
    }
    return Page(f"Queue {queue}", "queue.html", context)


@dataclass(frozen=True)
class TaskTimes:
    """Finished jobs of a task: how many, and how long they ran, in seconds."""

    task: str
    number: int
    usual: float
    slow: float


def _tasks(finished: Iterable[Job[Any]]) -> list[TaskTimes]:
    """Finished jobs by task, the task with the longest total time first."""
    times: dict[str, list[float]] = defaultdict(list)
    for job in finished:
        if job.started_at and job.finished_at:
            times[job.task].append((job.finished_at - job.started_at).total_seconds())
    by_task = sorted(times.items(), key=lambda one: -sum(one[1]))
    return [TaskTimes(task, len(some), _quantile(some, 0.5), _quantile(some, 0.95)) for task, some in by_task]


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def totals(queues: Iterable[QueueInfo]) -> dict[State, int]:
    """The number of jobs of all these queues in each state that is not final."""
    numbers = {state: 0 for state in State if not state.over}
    for queue in queues:
        for state, count in by_state(queue).items():
            numbers[state] += count
    return numbers


def limits(info: QueueInfo) -> list[str]:
    """The limits of a queue as phrases."""
    texts = []
    if info.max_running is not None:
        texts.append(f"at most {number(info.max_running)} run at once")
    for limit in info.group_limits[:MAX_GROUPS]:
        texts.append(f"at most {number(limit.max_running)}{_of_group(limit.group)} run at once")
    if len(info.group_limits) > MAX_GROUPS:
        texts.append(f"{many(len(info.group_limits) - MAX_GROUPS, 'more group has', 'more groups have')} a limit")
    for one in info.rates:
        texts.append(f"{many(one.rate, 'start')}{_of_group(one.group)} in {duration(one.per)}")
    if info.fair:
        texts.append("groups are served in turn")
    return texts


def _of_group(group: str | None) -> str:
    return {None: "", "*": " of each group"}.get(group, f" of group {group}")


def _row(info: QueueInfo, lately: Sequence[float], largest: float) -> dict[str, Any]:
    counts = by_state(info)
    shares = [(str(state), str(state), float(value)) for state, value in counts.items()]
    label = ", ".join(f"{number(value)} {state}" for state, value in counts.items())
    return {
        "info": info,
        "counts": {str(state): value for state, value in counts.items()},
        "limits": limits(info),
        "bar": share_bar(shares, label, largest) if any(counts.values()) else Markup(""),
        "sparks": sparkline(lately, _summary(lately)) if any(lately) else Markup(""),
        "done": int(sum(lately)),
    }


def _sparks(view: PageContext, queues: Sequence[str]) -> dict[str, list[float]]:
    """The number of succeeded jobs in each step, by queue."""
    starts = [step.start for step in figures.steps([], LATELY, view.now)]
    since = datetime.fromtimestamp(starts[0], UTC)
    counts = view.client._recent_counts(queues, "succeeded", since, round(LATELY.step))
    sparks: dict[str, list[float]] = {}
    for queue, found in counts.items():
        sparks[queue] = [float(found.get(at, 0)) for at in starts]
    return sparks


def _summary(lately: Sequence[float]) -> str:
    peak = f"at most {number(max(lately))} in {duration(LATELY.step)}"
    return f"{number(sum(lately))} succeeded in the last {HOURS:g} hours, {peak}"
