"""Filters: which jobs a list, a count or a bulk action is about.

A new filter is added here and nowhere else: to `FILTERS`, and to `Which` and `Filter` for type checkers. The SQL
(`_store/fragments.py`), the client, the command line, the HTTP API and the dashboard offer what `FILTERS` lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from msgspec import DecodeError, Struct, json

from ..errors import InvalidInput
from . import validate
from .ids import make_id
from .job import State

#: How a filter is compared with its column. `one_of` takes several values, `contains` ignores case, `tagged` looks for
#: a tag of the job, and `has` for arguments with these values.
Comparison = Literal["one_of", "equals", "contains", "from", "before", "tagged", "has"]
AnyState = State | str

DAY = 86400.0  # how far the time in an id may be from the moment at which its job was stored


class FilterField(Struct, frozen=True):
    """`phrase`: what stands before the value in a sentence. `flag`: the option of the command line, without dashes."""

    column: str
    comparison: Comparison
    phrase: str
    help: str
    flag: str | None = None

    @property
    def is_time(self) -> bool:
        return self.comparison in ("from", "before")


FILTERS = {
    "state": FilterField("state", "one_of", "", "jobs in this state; repeatable"),
    "queue": FilterField("queue", "equals", "in queue", "jobs of this queue"),
    "task": FilterField("task", "equals", "of task", "jobs of this task"),
    "target": FilterField("target", "equals", "of target", "jobs of this target"),
    "group": FilterField("group_key", "equals", "of group", "jobs of this group"),
    "unique": FilterField("unique_key", "equals", "with the unique key", "the job with this unique key"),
    "tag": FilterField("id", "tagged", "with tag", "jobs with this tag"),
    "payload": FilterField("payload", "has", "with arguments", 'jobs with these arguments: {"account": 7}'),
    "worker": FilterField("worker", "equals", "at worker", "jobs that this worker runs or ended"),
    "error": FilterField(
        "error", "contains", "with an error that contains", "jobs whose error contains this text; not finished jobs"
    ),
    "created_from": FilterField("created_at", "from", "created from", "created at or after", "since"),
    "created_to": FilterField("created_at", "before", "created before", "created before", "until"),
}


class Which(TypedDict, total=False):
    """The filters as a caller passes them. A filter that is left out, or None, matches every job.

    `payload`: values of arguments, as a mapping or as JSON text; nested values must be equal as a whole. `error`: text
    that the error contains, ignoring case; only of jobs that have not ended. `created_from` and `created_to` compare
    the time at which a job was stored; the time in its id must be within a day of it.
    """

    state: AnyState | Sequence[AnyState] | None
    queue: str | None
    task: str | None
    target: str | None
    group: str | None
    unique: str | None
    tag: str | None
    payload: Mapping[str, Any] | str | None
    worker: str | None
    error: str | None
    created_from: datetime | None
    created_to: datetime | None


class Filter(Struct, frozen=True):
    """A checked value for each filter; None, or no state, does not restrict. Times are seconds since 1970."""

    state: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    target: str | None = None
    group: str | None = None
    unique: str | None = None
    tag: str | None = None
    payload: str | None = None  # as JSON
    worker: str | None = None
    error: str | None = None
    created_from: float | None = None
    created_to: float | None = None

    @property
    def includes_live(self) -> bool:
        """Whether jobs that are not over can match."""
        return not self.state or not all(state.over for state in self.state)

    @property
    def includes_finished(self) -> bool:
        """Whether jobs that are over can match. Their errors are not searched."""
        return self.error is None and (not self.state or any(state.over for state in self.state))

    @property
    def rare_state(self) -> State | None:
        """The one state asked for, if jobs in it have an index: they are few as a rule."""
        return self.state[0] if self.state in ((State.FAILED,), (State.RUNNING,)) else None

    @property
    def lowest_id(self) -> str | None:
        """No match has a smaller id."""
        return None if self.created_from is None else make_id(max(self.created_from - DAY, 0.0), bytes(10))

    def below(self, cursor: str | None) -> str | None:
        """Every match has a smaller id than this, and than the cursor."""
        latest = None if self.created_to is None else make_id(max(self.created_to + DAY, 0.0), bytes(10))
        return min((id for id in (cursor, latest) if id is not None), default=None)


def make_filter(which: Which) -> Filter:
    """Check filters as a caller passed them."""
    unknown = sorted(which.keys() - FILTERS.keys())
    if unknown:
        raise InvalidInput(f"there is no filter {', '.join(unknown)}; there are {', '.join(FILTERS)}")
    values: dict[str, Any] = {name: value for name, value in which.items() if value is not None}
    return Filter(**{name: _check(name, value) for name, value in values.items()})


def _check(name: str, value: object) -> Any:
    match FILTERS[name].comparison:
        case "one_of":
            return _states(name, value)
        case "from" | "before":
            return validate.timestamp(name, value)
        case "equals" | "contains" | "tagged":
            return validate.text(name, value)
        case "has":
            return _arguments(name, value)


def _arguments(name: str, value: object) -> str:
    """Values of arguments, as JSON text."""
    try:
        found = json.decode(value) if isinstance(value, str) else value
        if isinstance(found, Mapping):
            return json.encode(found).decode()
    except (DecodeError, TypeError, ValueError):
        pass
    raise InvalidInput(f'{name} must be arguments and their values, as in {{"account": 7}}, not {value!r:.80}')


def _states(name: str, value: object) -> tuple[State, ...]:
    if not isinstance(value, str | Sequence):
        raise InvalidInput(f"{name} must be one of {', '.join(State)}, or some of them, not {value!r}")
    values = [value] if isinstance(value, str) else list(value)
    return tuple(State(validate.one_of(name, one, tuple(State))) for one in values)
