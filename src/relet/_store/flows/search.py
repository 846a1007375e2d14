"""Finding jobs: a page of those that a filter lets through, newest first, and how many there are.

Live jobs and those that are over stand in two tables, each read by itself, and only where the filter can find
something. What finishes between the two reads is seen in both, and shown once.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ..._core.ids import make_id
from ..._core.job import Job, State
from ..._core.views import Page
from ..query import (
    LONG,
    Flow,
    as_json,
    bounded,
    look,
    read,
)
from . import mapping

Place = Literal["live", "over"]

A_DAY = 86400.0  # how far an id's time may be from the moment that its job was stored


class Filter(Struct, frozen=True):
    """Which jobs. What is not given does not restrict."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    target: str | None = None
    worker: str | None = None
    error: str | None = None
    created_from: float | None = None
    created_to: float | None = None

    @property
    def places(self) -> list[Place]:
        """Where there can be such jobs. An error is looked for in jobs that are not over."""
        over = [state.over for state in self.states or tuple(State)]
        live: list[Place] = [] if all(over) else ["live"]
        return [*live, "over"] if any(over) and self.error is None else live

    @property
    def rare(self) -> str | None:
        """The one state that is asked for, if such jobs are few among many, and can be found at once."""
        return str(self.states[0]) if self.states in ((State.FAILED,), (State.RUNNING,)) else None

    @property
    def lowest(self) -> str | None:
        """No such job has a smaller id."""
        return None if self.created_from is None else make_id(max(self.created_from - A_DAY, 0.0), bytes(10))

    def before(self, before: str | None) -> str | None:
        """Every such job has a smaller id than this; and than the one given."""
        latest = None if self.created_to is None else make_id(max(self.created_to + A_DAY, 0.0), bytes(10))
        return min((id for id in (before, latest) if id is not None), default=None)

    def params(self, place: Place) -> dict[str, Any]:
        """As parameters of statements about live jobs, or those that are over."""
        text = {} if place == "over" else {"error": self.error}
        return text | {
            "states": as_json([str(state) for state in self.states]) if self.states else None,
            "queue": self.queue,
            "task": self.task,
            "target": self.target,
            "worker": self.worker,
            "created_from": self.created_from,
            "created_to": self.created_to,
        }


@bounded(LONG)
@look
def jobs(which: Filter, *, limit: int, before: str | None = None, scan: int | None = None) -> Flow[Page]:
    """A page of jobs, newest first by id. With `scan`, no more than so many of each table are looked at."""
    before = which.before(before)
    reached = yield from _reached(which, before, scan)
    span = {"lowest": reached or which.lowest, "before": before, "most": limit + 1}
    found: dict[str, Job[Any]] = {}
    if which.rare:
        rare = yield read("inspect/jobs_rare", state=which.rare, **which.params("live"), **span)
        found |= {row[0]: mapping.job(row) for row in rare}
    elif "live" in which.places:
        found |= {row[0]: mapping.job(row) for row in (yield read("inspect/jobs_live", **which.params("live"), **span))}
    if "over" in which.places:
        found |= {row[0]: mapping.job(row) for row in (yield read("inspect/jobs_over", **which.params("over"), **span))}
    page = sorted(found.values(), key=lambda job: job.id, reverse=True)
    if len(page) > limit:
        return Page(page[:limit], page[limit - 1].id)
    return Page(page, reached)


@bounded(LONG)
@look
def count(which: Filter, *, most: int | None = None, scan: int | None = None) -> Flow[int]:
    """How many jobs, counted no further than `most`; with `scan`, among the newest so many of each table."""
    before = which.before(None)
    span = {"lowest": (yield from _reached(which, before, scan)) or which.lowest, "before": before}
    live = over = 0
    if which.rare:
        ((live,),) = yield read("inspect/count_rare", state=which.rare, **which.params("live"), **span, most=most)
    elif "live" in which.places:
        ((live,),) = yield read("inspect/count_live", **which.params("live"), **span, most=most)
    if "over" in which.places:
        left = None if most is None else max(most - live, 0)
        ((over,),) = yield read("inspect/count_over", **which.params("over"), **span, most=left)
    return int(live) + int(over)


def _reached(which: Filter, before: str | None, scan: int | None) -> Flow[str | None]:
    """How far down a look at so many jobs goes: the greatest id that is the last of so many. None: to the end."""
    if scan is None or which.rare:
        return None
    span = {"lowest": which.lowest, "before": before, "scan": scan}
    live = (yield read("inspect/scan_floor_live", **span)) if "live" in which.places else []
    over = (yield read("inspect/scan_floor_over", **span)) if "over" in which.places else []
    return max((row[0] for row in [*live, *over]), default=None)
