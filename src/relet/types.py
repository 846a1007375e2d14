"""The types that the client returns and handlers receive, for annotations."""

from ._attempts.transaction import AsyncTransaction, Transaction
from ._client.bulk import BulkResult
from ._core.codecs import Encoded
from ._core.finding import Finding
from ._core.job import AttemptRecord, Chain, Dependency, FailedJob, StepRecord
from ._core.schedule import ScheduleInfo, Tick
from ._core.stats import Histogram, StatPoint
from ._core.views import (
    AuditEntry,
    AuditPage,
    FailureGroup,
    GroupLimit,
    JobDetails,
    Page,
    QueueInfo,
    RateInfo,
    TargetInfo,
    TargetPage,
    TargetView,
)
from ._core.worker import WorkerInfo
from ._tasks.batch import BatchItem

__all__ = [
    "AsyncTransaction",
    "AttemptRecord",
    "AuditEntry",
    "AuditPage",
    "BatchItem",
    "BulkResult",
    "Chain",
    "Dependency",
    "Encoded",
    "FailedJob",
    "FailureGroup",
    "Finding",
    "GroupLimit",
    "Histogram",
    "JobDetails",
    "Page",
    "QueueInfo",
    "RateInfo",
    "ScheduleInfo",
    "StatPoint",
    "StepRecord",
    "TargetInfo",
    "TargetPage",
    "TargetView",
    "Tick",
    "Transaction",
    "WorkerInfo",
]
