"""Queues: what is in them, how they are limited, how they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from ..._core.stats import StatPoint
from ..._core.views import QueueInfo, by_state, counted_at
from . import cache, figures
from .charts import share_bar, sparkline
from .context import Page, View
from .formatting import duration, many, number

HOURS = 2.0  # single minutes are kept for three
LATELY = figures.Range("lately", f"{HOURS:g} hours", HOURS * 3600, 300)
NOTHING = [0.0] * 24


def queues(view: View) -> Page:
    """All queues, and the limits of all of them together."""
    found = view.client.queues()
    sparks = cache.shared(view, "sparks", LATELY.step, lambda: _sparks(view))
    context = {
        "queues": [_row(one, sparks.get(one.queue, NOTHING)) for one in found if one.queue != "*"],
        "all_queues": next((limits(one) for one in found if one.queue == "*"), ()),
        "hours": HOURS,
        "counted_at": counted_at(found),
        "at_least": any(one.at_least for one in found),
    }
    return Page("Queues", "queues.html", context)


def limits(info: QueueInfo) -> list[str]:
    """What has been said of a queue, in words."""
    said = []
    if info.max_running is not None:
        said.append(f"at most {number(info.max_running)} run at once")
    for one in info.rates:
        whose = {None: "", "*": " of each key"}.get(one.key, f" of key {one.key}")
        said.append(f"{many(one.rate, 'start')}{whose} in {duration(one.per)}")
    if info.fair:
        said.append("keys are served in turn")
    return said


def _row(info: QueueInfo, lately: Sequence[float]) -> dict[str, Any]:
    counts = by_state(info)
    shares = [(str(state), str(state), float(value)) for state, value in counts.items()]
    said = ", ".join(f"{number(value)} {state}" for state, value in counts.items())
    return {
        "info": info,
        "counts": {str(state): value for state, value in counts.items()},
        "limits": limits(info),
        "bar": share_bar(shares, said) if any(counts.values()) else Markup(""),
        "sparks": sparkline(lately, _summary(lately)),
        "done": int(sum(lately)),
    }


def _sparks(view: View) -> dict[str, list[float]]:
    """How many jobs of each queue succeeded, step by step."""
    points: dict[str, list[StatPoint]] = defaultdict(list)
    for point in view.client.stats(since=view.now - timedelta(hours=HOURS), only="succeeded"):
        points[point.queue].append(point)
    return {
        queue: [float(step.counts.get("succeeded", 0)) for step in figures.steps(some, LATELY, view.now)]
        for queue, some in points.items()
    }


def _summary(lately: Sequence[float]) -> str:
    most = f"at most {number(max(lately))} in {duration(LATELY.step)}"
    return f"{number(sum(lately))} succeeded in the last {HOURS:g} hours, {most}"
