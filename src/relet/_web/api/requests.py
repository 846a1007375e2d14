"""Request bodies and query strings of the HTTP API, each with its bounds. `parsing.py` reads them.

Printable text, timestamps, cron expressions and time zones are marked by a `format` in the schema. The client
validates their syntax, as it validates every other argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from ..._core import validate
from ..._core.filters import FILTERS, Comparison
from ..._core.job import OnDependencyFailure, OnExpired, OnFailure, State
from ..._core.schedule import Missed, Overlap
from ..._core.verbs import BulkVerb

MAX_BATCH = 1000
MAX_PAGE_SIZE = 200
MAX_BULK = 10_000
MAX_COUNTED = 10_001
MAX_SCANNED = {
    "read": 100_000,
    "operate": 1_000_000,
}  # by role: a long search occupies a slot that other requests wait for

_X = "[0-9a-fA-F]"
#: UUIDv7 with timestamps of our time only.
ID_PATTERN = f"^0(1[7-9a-fA-F]|2{_X}|3[0-9aA]){_X}{{5}}-{_X}{{4}}-7{_X}{{3}}-[89abAB]{_X}{{3}}-{_X}{{12}}$"

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_.:/@+-]{1,128}$", min_length=1, max_length=128)]
Text = Annotated[str, Meta(min_length=1, max_length=512, extra_json_schema={"format": "printable"})]
Id = Annotated[str, Meta(pattern=ID_PATTERN, description="A UUIDv7, which carries its time")]
When = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Seconds = Annotated[float, Meta(ge=0, le=validate.MAX_SECONDS)]
Positive = Annotated[float, Meta(ge=0.001, le=validate.MAX_SECONDS)]
Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE)]
ErrorText = Annotated[
    Text, Meta(description="A text that the error contains, ignoring case; finds only jobs that are not over")
]
Scan = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_SCANNED["operate"],
        description=f"At most {MAX_SCANNED['read']} with a read token",
    ),
]
Anything = Annotated[Any, Meta(description="Any JSON value: at most 64 deep, integers of at most 64 bits.")]
Limited = Annotated[int, Meta(ge=0, le=1_000_000)]
Share = Annotated[float, Meta(ge=0, le=1e7)]


class BackoffIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """The delay before a retry: `base * factor ** n` seconds, at most `max`; with `jitter`, a random part of that."""

    base: Share = 0.5
    max: Share = 30.0
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    jitter: bool = True


class CallIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """A task and its arguments: `payload` by parameter name, or `args` by position."""

    task: Name
    payload: dict[str, Anything] | None = None
    args: list[Anything] | None = None
    queue: Name | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-100, le=100)] | UnsetType = UNSET
    target: Text | None = None
    group: Text | None = None
    tags: Annotated[list[Text], Meta(max_length=32)] | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    backoff: BackoffIn | UnsetType = UNSET
    timeout: Positive | UnsetType | None = UNSET
    on_expired: OnExpired | UnsetType = UNSET
    on_failure: OnFailure | UnsetType = UNSET
    on_dependency_failure: OnDependencyFailure | UnsetType = UNSET


class JobIn(CallIn, kw_only=True, forbid_unknown_fields=True):
    """A job to enqueue. With an `id` that you choose (a UUIDv7), the request can be repeated safely."""

    delay: Seconds | None = None
    run_at: When | None = None
    start_by: When | None = None
    unique: Text | None = None
    unique_for: Positive | None = None
    replace: bool | Literal["payload"] = False
    depends_on: Annotated[list[Id], Meta(max_length=1000)] | None = None
    id: Id | None = None


class BatchIn(Struct, forbid_unknown_fields=True):
    """Jobs to enqueue, all or none. They may refer to each other's ids in `depends_on`."""

    jobs: Annotated[list[JobIn], Meta(min_length=1, max_length=MAX_BATCH)]


class CompletionIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Completes a job from outside: with a result, or by continuing its chain with another job."""

    result: Anything = None
    continue_with: JobIn | None = None


class RerunIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Enqueues a job again as a new job. `arguments` replaces some of its arguments."""

    arguments: dict[str, Anything] | None = None


class SignalIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """A signal for a job, whose handler waits for it or will do so later."""

    name: Text
    value: Anything = None


_FILTER_TYPES: dict[Comparison, Any] = {
    "one_of": list[State],
    "equals": Text,
    "contains": ErrorText,
    "from": When,
    "before": When,
    "tagged": Text,
    "has": Annotated[str, Meta(max_length=1000)],
}


def _make_filter() -> Any:
    """A struct with a field for each filter."""
    fields = [(name, _FILTER_TYPES[one.comparison] | UnsetType, UNSET) for name, one in FILTERS.items()]
    about = {"__doc__": "Selects jobs. A field that is left out does not restrict the selection."}
    return defstruct("Filter", fields, namespace=about, module=__name__, kw_only=True, forbid_unknown_fields=True)


if TYPE_CHECKING:

    class Filter(Struct, kw_only=True, forbid_unknown_fields=True): ...

else:
    Filter = _make_filter()


class BulkIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """An action on all jobs that match a filter, newest first, up to `limit` of them."""

    action: BulkVerb
    filter: Filter
    limit: Annotated[int, Meta(ge=1, le=MAX_BULK)] = MAX_BULK
    preview: bool = False
    cursor: Id | None = None


class RateIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most `rate` jobs start within any `per` seconds; null lifts the limit. For one `group`, or for each ("*")."""

    rate: Limited | None
    per: Positive = 1.0
    group: Text | None = None


class GroupLimitIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most `max_running` jobs of a group run at once, "*": of each group; null lifts the limit."""

    max_running: Limited | None
    group: Text = "*"


class LimitsIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of a queue. A field that is left out stays unchanged; null lifts the limit."""

    max_running: Limited | UnsetType | None = UNSET
    group_limit: GroupLimitIn | UnsetType = UNSET
    rate: RateIn | UnsetType = UNSET
    fair: bool | UnsetType = UNSET


class AllRateIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most `rate` jobs start within any `per` seconds; null lifts the limit."""

    rate: Limited | None
    per: Positive = 1.0


class AllLimitsIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of all queues together. A field that is left out stays unchanged; null lifts the limit."""

    max_running: Limited | UnsetType | None = UNSET
    rate: AllRateIn | UnsetType = UNSET


class ScheduleIn(CallIn, kw_only=True, forbid_unknown_fields=True):
    """A task to enqueue periodically: by a cron expression of five fields, or `every` number of seconds."""

    cron: Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema={"format": "cron"})] | None = None
    every: Annotated[float, Meta(ge=0.1, le=validate.MAX_SECONDS)] | None = None
    timezone: Annotated[str, Meta(extra_json_schema={"format": "time-zone"})] = "UTC"
    missed: Missed = "once"
    overlap: Overlap = "allow"


# Query strings


class JobsQuery(Filter, kw_only=True, forbid_unknown_fields=True):
    """A page of jobs. `scan`: read at most this many jobs; a short page may then be followed by more."""

    limit: Limit = 50
    cursor: Id | UnsetType = UNSET
    scan: Scan | UnsetType = UNSET


class CountQuery(Filter, kw_only=True, forbid_unknown_fields=True):
    """Counts jobs up to `limit`, among the newest `scan` live and `scan` finished ones."""

    limit: Annotated[int, Meta(ge=1, le=MAX_COUNTED)] = MAX_COUNTED
    scan: Scan | UnsetType = UNSET


class DeleteQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """`chain`: delete all jobs of its chain. `dependents`: with `chain`, also chains that wait for it, recursively."""

    chain: bool = False
    dependents: bool = False


class DeleteChainQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """`dependents`: also delete the chains of jobs that wait for this one, recursively."""

    dependents: bool = False


class TargetsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of targets, sorted by name."""

    limit: Limit = 50
    cursor: Text | UnsetType = UNSET


class AuditQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of the audit trail."""

    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class LimitQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The maximum number of results."""

    limit: Limit = 50


class StatsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A time range, by default the last hour. `step`: in seconds, by default chosen to fit the range. `cursor`: the
    next page, without `queue`."""

    since: When | UnsetType = UNSET
    until: When | UnsetType = UNSET
    step: Literal[60, 600, 3600, 21600] | UnsetType = UNSET
    queue: Text | UnsetType = UNSET
    cursor: Text | UnsetType = UNSET


class TotalsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of totals, by queue."""

    cursor: Text | UnsetType = UNSET
