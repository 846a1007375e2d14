"""Relet: a job queue for Python whose jobs live in your own database.

app, tasks      where tasks are registered and become drafts
client, aclient what a program says to its jobs
store           where jobs live: flows (one per verb) and their SQL, for SQLite and PostgreSQL
worker          claims jobs and runs them under lease
core            pure: the nouns, the transition table, the errors
"""

from typing import TYPE_CHECKING, Any

from ._attempts.attempt import AsyncTransaction, Attempt, Transaction
from ._client.async_client import AsyncClient
from ._client.audit import BulkResult
from ._client.client import Client
from ._core.backoff import Backoff
from ._core.finding import Finding
from ._core.job import AttemptRecord, BlockerInfo, Chain, Draft, Job, State
from ._core.schedule import ScheduleInfo, Tick
from ._core.stats import Histogram, StatPoint
from ._core.views import (
    AuditEntry,
    AuditPage,
    FailureGroup,
    Page,
    QueueInfo,
    RateInfo,
    TargetInfo,
    TargetPage,
    TargetView,
)
from ._core.worker import WorkerInfo
from ._tasks.task import new_id
from .app import App
from ._version import __version__
from .errors import (
    Aborted,
    Fail,
    HasDependents,
    IdempotencyConflict,
    InvalidArguments,
    InvalidInput,
    InvalidPayload,
    InvalidTransition,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyTaken,
    LeaseLost,
    QueryTimeout,
    ReletError,
    Retry,
    RowRejected,
    ScheduleNotFound,
    SchemaMismatch,
    SignalTimeout,
    Snooze,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    Suspended,
    UnknownTask,
    WaitTimeout,
)
from .logs import JobContext

if TYPE_CHECKING:
    from ._worker import Worker

__all__ = [
    "Aborted",
    "App",
    "AsyncClient",
    "AsyncTransaction",
    "Attempt",
    "AttemptRecord",
    "AuditEntry",
    "AuditPage",
    "Backoff",
    "BlockerInfo",
    "BulkResult",
    "Chain",
    "Client",
    "Draft",
    "Fail",
    "FailureGroup",
    "Finding",
    "HasDependents",
    "Histogram",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidInput",
    "InvalidPayload",
    "InvalidTransition",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "JobNotFound",
    "KeyTaken",
    "LeaseLost",
    "Page",
    "QueryTimeout",
    "QueueInfo",
    "RateInfo",
    "ReletError",
    "Retry",
    "RowRejected",
    "ScheduleInfo",
    "ScheduleNotFound",
    "SchemaMismatch",
    "SignalTimeout",
    "Snooze",
    "StatPoint",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Suspended",
    "TargetInfo",
    "TargetPage",
    "TargetView",
    "Tick",
    "Transaction",
    "UnknownTask",
    "WaitTimeout",
    "Worker",
    "WorkerInfo",
    "new_id",
]


def __getattr__(name: str) -> Any:
    """The worker is imported when it is asked for: programs that only enqueue need neither it nor an event loop."""
    if name == "Worker":
        from ._worker import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
