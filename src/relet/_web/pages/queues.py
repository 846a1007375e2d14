"""Queues: their jobs by state, their limits, and their recent throughput."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from ..._core.job import State
from ..._core.stats import StatPoint
from ..._core.views import QueueInfo, by_state, counted_at
from . import cache, figures
from .charts import share_bar, sparkline
from .formatting import duration, many, number
from .page import Page, PageContext

HOURS = 2.0  # statistics by the minute are kept for three hours
LATELY = figures.Range("lately", f"{HOURS:g} hours", HOURS * 3600, 300)
MAX_GROUPS = 5  # whose limits are phrases; only the number of the others is displayed
NOTHING = [0.0] * 24


def queues(view: PageContext) -> Page:
    """All queues, and the limits of all of them together."""
    found = view.client.queues()
    sparks = cache.shared(view, "sparks", LATELY.step, lambda: _sparks(view))
    rows = [_row(one, sparks.get(one.queue, NOTHING)) for one in found if one.queue != "*"]
    all_queues = next((one for one in found if one.queue == "*"), None)
    context = {
        "queues": rows,
        "all_queues": limits(all_queues) if all_queues else (),
        "hours": HOURS,
        "counted_at": counted_at(found),
        "at_least": any(one.at_least for one in found),
    }
    return Page("Queues", "queues.html", context)


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


def _row(info: QueueInfo, lately: Sequence[float]) -> dict[str, Any]:
    counts = by_state(info)
    shares = [(str(state), str(state), float(value)) for state, value in counts.items()]
    label = ", ".join(f"{number(value)} {state}" for state, value in counts.items())
    return {
        "info": info,
        "counts": {str(state): value for state, value in counts.items()},
        "limits": limits(info),
        "bar": share_bar(shares, label) if any(counts.values()) else Markup(""),
        "sparks": sparkline(lately, _summary(lately)),
        "done": int(sum(lately)),
    }


def _sparks(view: PageContext) -> dict[str, list[float]]:
    """The number of succeeded jobs in each step, by queue."""
    points: dict[str, list[StatPoint]] = defaultdict(list)
    for point in view.client.stats(since=view.now - timedelta(hours=HOURS), only="succeeded"):
        points[point.queue].append(point)
    sparks: dict[str, list[float]] = {}
    for queue, some in points.items():
        steps = figures.steps(some, LATELY, view.now)
        sparks[queue] = [float(step.counts.get("succeeded", 0)) for step in steps]
    return sparks


def _summary(lately: Sequence[float]) -> str:
    peak = f"at most {number(max(lately))} in {duration(LATELY.step)}"
    return f"{number(sum(lately))} succeeded in the last {HOURS:g} hours, {peak}"
