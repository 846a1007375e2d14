"""Targets: the job that holds each, and the jobs in line for it."""

from __future__ import annotations

from ..._core.views import TargetInfo, TargetPage, TargetView
from ..query import LONG, Flow, bounded, read, read_only
from . import inspect

MAX_LINES = 1000  # jobs that are counted in each line of a page
MAX_LINE = 10_000  # in the line of one target


@bounded(LONG)
@read_only
def targets(*, limit: int, cursor: str | None = None) -> Flow[TargetPage]:
    """A page of targets, by name."""
    found = yield read("inspect/targets", cursor=cursor or "", limit=limit + 1, count_limit=MAX_LINES + 1)
    page = found[:limit]
    holders = yield from inspect.get_many([id for _, id, _ in page if id is not None])
    infos = [
        TargetInfo(target, holders.get(id), min(waiting, MAX_LINES), waiting > MAX_LINES)
        for target, id, waiting in page
    ]
    return TargetPage(infos, page[-1][0] if len(found) > limit else None)


@bounded(LONG)
@read_only
def target(name: str, *, limit: int) -> Flow[TargetView]:
    """One target. A name that no job has is a free target."""
    holders = [row[0] for row in (yield read("inspect/target_holder", target=name))]
    line = yield read("inspect/target_queue", target=name, limit=limit, count_limit=MAX_LINE + 1)
    ids = [row[0] for row in line]
    jobs = yield from inspect.get_many([*holders, *ids])
    holder = jobs.get(holders[0]) if holders else None
    waiting = line[0][1] if line else 0
    first = [jobs[id] for id in ids if id in jobs]
    return TargetView(name, holder, first, min(waiting, MAX_LINE), waiting > MAX_LINE)
