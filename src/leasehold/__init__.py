"""Leasehold: a job queue for Python whose jobs live in your own database.

app, tasks      where tasks are registered and become drafts
client, aclient what a program says to its jobs
store           where jobs live: flows (one per verb) and their SQL, for SQLite and PostgreSQL
worker          claims jobs and runs them under lease
core            pure: the nouns, the transition table, the errors
"""

from .aclient import AsyncClient
from .app import App
from .attempt import AsyncTransaction, Attempt, Transaction
from .client import Client
from .core.backoff import Backoff
from .core.errors import (
    Aborted,
    Fail,
    HasDependents,
    InvalidArguments,
    InvalidInput,
    InvalidPayload,
    InvalidTransition,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyTaken,
    LeaseholdError,
    LeaseLost,
    Retry,
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
from .core.job import AttemptRecord, Chain, Draft, Job, State
from .core.schedule import ScheduleInfo, Tick
from .logs import JobContext
from .tasks import new_id
from .worker import Worker

__all__ = [
    "Aborted",
    "App",
    "AsyncClient",
    "AsyncTransaction",
    "Attempt",
    "AttemptRecord",
    "Backoff",
    "Chain",
    "Client",
    "Draft",
    "Fail",
    "HasDependents",
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
    "LeaseholdError",
    "Retry",
    "ScheduleInfo",
    "ScheduleNotFound",
    "SchemaMismatch",
    "SignalTimeout",
    "Snooze",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Suspended",
    "Tick",
    "Transaction",
    "UnknownTask",
    "WaitTimeout",
    "Worker",
    "new_id",
]
