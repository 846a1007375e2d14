"""Which jobs a list, a count or a bulk action is about.

`FILTERS` is the one place that says which filters there are. The SQL is made from it (`_store/fragments.py`), and the
client, the command line, the HTTP API and the dashboard offer what it lists.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .ids import make_id
from .job import State

#: How a filter is compared with its column. `one_of` takes several values, `contains` ignores case.
Comparison = Literal["one_of", "equals", "contains", "from", "before"]

DAY = 86400.0  # how far the time in an id may be from the moment at which its job was stored


class FilterField(Struct, frozen=True):
    column: str
    comparison: Comparison
    help: str


FILTERS = {
    "states": FilterField("state", "one_of", "jobs in this state; several may be named"),
    "queue": FilterField("queue", "equals", "jobs of this queue"),
    "task": FilterField("task", "equals", "jobs of this task"),
    "target": FilterField("target", "equals", "jobs with this target"),
    "worker": FilterField("worker", "equals", "jobs that this worker runs, or ran last"),
    "error": FilterField("error", "contains", "jobs whose error contains this text, if they are not over"),
    "created_from": FilterField("created_at", "from", "jobs created at this time or later"),
    "created_to": FilterField("created_at", "before", "jobs created before this time"),
}


class Filter(Struct, frozen=True):
    """A value for each filter; None, or no state, does not restrict. Times are seconds since 1970."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    target: str | None = None
    worker: str | None = None
    error: str | None = None
    created_from: float | None = None
    created_to: float | None = None

    @property
    def includes_live(self) -> bool:
        """Whether jobs that are not over can match."""
        return not self.states or not all(state.over for state in self.states)

    @property
    def includes_finished(self) -> bool:
        """Whether jobs that are over can match. Their errors are not searched."""
        return self.error is None and (not self.states or any(state.over for state in self.states))

    @property
    def rare_state(self) -> State | None:
        """The one state asked for, if jobs in it are few and have an index."""
        return self.states[0] if self.states in ((State.FAILED,), (State.RUNNING,)) else None

    @property
    def lowest_id(self) -> str | None:
        """No match has a smaller id."""
        return None if self.created_from is None else make_id(max(self.created_from - DAY, 0.0), bytes(10))

    def below(self, cursor: str | None) -> str | None:
        """Every match has a smaller id than this, and than the cursor."""
        latest = None if self.created_to is None else make_id(max(self.created_to + DAY, 0.0), bytes(10))
        return min((id for id in (cursor, latest) if id is not None), default=None)
