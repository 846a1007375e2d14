"""What the HTTP API can be asked: bodies and query strings, each with its bounds. `reading.py` reads them.

Text that must be printable, moments, cron expressions and time zones are marked by a `format` in the schema; what they
may look like is decided by the client, which is asked last in any case.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..._core import validate
from ..._core.job import OnBlockerFailure, OnExpired, OnFailure, State
from ..._core.schedule import Missed, Overlap
from ..._core.verbs import BulkVerb

MOST_IN_BATCH = 1000
MOST_IN_PAGE = 200
MOST_IN_BULK = 10_000
MOST_COUNTED = 10_001
MOST_SCANNED = {"read": 100_000, "operate": 1_000_000}  # by role: a search takes a place that others wait for

_X = "[0-9a-fA-F]"
ID_PATTERN = (
    f"^0(1[7-9a-fA-F]|2{_X}|3[0-9aA]){_X}{{5}}-{_X}{{4}}-7{_X}{{3}}-[89abAB]{_X}{{3}}-{_X}{{12}}$"  # of our time
)

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_.:/@+-]{1,128}$", min_length=1, max_length=128)]
Text = Annotated[str, Meta(min_length=1, max_length=512, extra_json_schema={"format": "printable"})]
Id = Annotated[str, Meta(pattern=ID_PATTERN, description="A UUIDv7, which carries its time")]
When = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Seconds = Annotated[float, Meta(ge=0, le=validate.MOST_SECONDS)]
Positive = Annotated[float, Meta(ge=0.001, le=validate.MOST_SECONDS)]
Limit = Annotated[int, Meta(ge=1, le=MOST_IN_PAGE)]
ErrorText = Annotated[Text, Meta(description="A text in the error, in capitals or not; of jobs that are not over")]
Scan = Annotated[
    int,
    Meta(
        ge=1,
        le=MOST_SCANNED["operate"],
        description=f"At most {MOST_SCANNED['read']} with a token of the role read",
    ),
]
Anything = Annotated[Any, Meta(description="Any JSON value: at most 64 deep, integers of at most 64 bits.")]
Limited = Annotated[int, Meta(ge=0, le=1_000_000)]
Share = Annotated[float, Meta(ge=0, le=1e7)]


class BackoffIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """How long to wait after a failure: `base * factor ** n` seconds, at most `max`, all of it random with `jitter`."""

    base: Share = 0.5
    max: Share = 30.0
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    jitter: bool = True


class CallIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """A task, and what it is called with: `payload` by the names of its parameters, or `args` in their order."""

    task: Name
    payload: dict[str, Anything] | None = None
    args: list[Anything] | None = None
    queue: Name | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-100, le=100)] | UnsetType = UNSET
    target: Text | None = None
    key: Text | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    backoff: BackoffIn | UnsetType = UNSET
    timeout: Positive | UnsetType | None = UNSET
    on_expired: OnExpired | UnsetType = UNSET
    on_failure: OnFailure | UnsetType = UNSET
    on_blocker_failure: OnBlockerFailure | UnsetType = UNSET


class JobIn(CallIn, kw_only=True, forbid_unknown_fields=True):
    """A job to be enqueued. With `id` (a UUIDv7 of your own) the request can be repeated without harm."""

    delay: Seconds | None = None
    run_at: When | None = None
    unique: Text | None = None
    unique_for: Positive | None = None
    replace: bool | Literal["payload"] = False
    after: Annotated[list[Id], Meta(max_length=1000)] | None = None
    id: Id | None = None


class BatchIn(Struct, forbid_unknown_fields=True):
    """Jobs to be enqueued, all or none. They may name each other's ids in `after`."""

    jobs: Annotated[list[JobIn], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class CompletionIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a job succeeds from outside: with a result, or by going on with another job."""

    result: Anything = None
    continue_with: JobIn | None = None


class SignalIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something that a handler waits for, or will."""

    name: Text
    value: Anything = None


class Filter(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which jobs. What is not given does not restrict."""

    state: list[State] | UnsetType = UNSET
    queue: Text | UnsetType = UNSET
    task: Text | UnsetType = UNSET
    target: Text | UnsetType = UNSET
    worker: Text | UnsetType = UNSET
    error: ErrorText | UnsetType = UNSET
    created_from: When | UnsetType = UNSET
    created_to: When | UnsetType = UNSET


class BulkIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something to be done to all jobs that a filter lets through, up to `most` of them, newest first."""

    action: BulkVerb
    filter: Filter
    most: Annotated[int, Meta(ge=1, le=MOST_IN_BULK)] = MOST_IN_BULK
    preview: bool = False
    before: Id | None = None


class RateIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most `rate` jobs start within any `per` seconds; null: as many as may. Of one key, or of each ("*")."""

    rate: Limited | None
    per: Positive = 1.0
    key: Text | None = None


class LimitsIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of a queue. What is not given stays as it is; null lifts a limit."""

    max_running: Limited | UnsetType | None = UNSET
    rate: RateIn | UnsetType = UNSET
    fair: bool | UnsetType = UNSET


class AllRateIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most `rate` jobs start within any `per` seconds; null: as many as may."""

    rate: Limited | None
    per: Positive = 1.0


class AllLimitsIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of all queues together. What is not given stays as it is; null lifts a limit."""

    max_running: Limited | UnsetType | None = UNSET
    rate: AllRateIn | UnsetType = UNSET


class ScheduleIn(CallIn, kw_only=True, forbid_unknown_fields=True):
    """What is enqueued, and when: by a cron expression of five fields, or every so many seconds."""

    cron: Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema={"format": "cron"})] | None = None
    every: Annotated[float, Meta(ge=0.1, le=validate.MOST_SECONDS)] | None = None
    timezone: Annotated[str, Meta(extra_json_schema={"format": "time-zone"})] = "UTC"
    missed: Missed = "once"
    overlap: Overlap = "allow"


# Query strings


class JobsQuery(Filter, kw_only=True, forbid_unknown_fields=True):
    """A page of jobs. `scan`: look at so many jobs at most; a short page may then have more behind it."""

    limit: Limit = 50
    before: Id | UnsetType = UNSET
    scan: Scan | UnsetType = UNSET


class CountQuery(Filter, kw_only=True, forbid_unknown_fields=True):
    """How many jobs, counted no further than `most`, among the newest `scan` live and finished ones."""

    most: Annotated[int, Meta(ge=1, le=MOST_COUNTED)] = MOST_COUNTED
    scan: Scan | UnsetType = UNSET


class DeleteQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """`chain`: all jobs of its chain. `dependents`: with it, those that wait for the chain, and so on."""

    chain: bool = False
    dependents: bool = False


class DeleteChainQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """`dependents`: the chains of jobs that wait for this one as well, and so on."""

    dependents: bool = False


class TargetsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of targets, by name."""

    limit: Limit = 50
    after: Text | UnsetType = UNSET


class AuditQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of the audit trail."""

    limit: Limit = 50
    before: Id | UnsetType = UNSET


class LimitQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many at most."""

    limit: Limit = 50


class StatsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Of which time; by default the last hour. `step`: in seconds; by default what suits the time."""

    since: When | UnsetType = UNSET
    until: When | UnsetType = UNSET
    step: Literal[60, 600, 3600, 21600] | UnsetType = UNSET
    queue: Text | UnsetType = UNSET
