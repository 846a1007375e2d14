"""Relet: a job queue for Python whose jobs live in your own database.

Here are the names that programs type. `relet.types` has what the client returns, `relet.errors` every exception,
`relet.events` what can be listened to, `relet.codecs` encryption and compression, `relet.testing` helpers for tests,
`relet.web` the dashboard, `relet.contrib` integrations. Modules whose names begin with an underscore are private:

    _tasks      functions become tasks, calls become drafts
    _client     what a program does with its jobs
    _attempts   what a handler does with its attempt
    _worker     claims jobs and runs them under lease
    _store      flows (one for each verb) and their SQL, for SQLite and PostgreSQL
    _core       pure: the nouns, the transition table, schedules
    _cli, _web  the command line, the HTTP API and the dashboard
"""

from typing import TYPE_CHECKING, Any

from ._attempts.attempt import Attempt
from ._client.async_client import AsyncClient
from ._client.client import Client
from ._core.backoff import Backoff
from ._core.job import Draft, Job, State
from ._tasks.codec import injected
from ._tasks.task import new_id
from ._version import __version__
from .app import App
from .errors import (
    Aborted,
    Fail,
    InvalidInput,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyTaken,
    LeaseLost,
    ReletError,
    Retry,
    SignalTimeout,
    Snooze,
    StoreUnavailable,
    WaitTimeout,
)
from .logs import JobContext

if TYPE_CHECKING:
    from ._worker import Worker

__all__ = [
    "Aborted",
    "App",
    "AsyncClient",
    "Attempt",
    "Backoff",
    "Client",
    "Draft",
    "Fail",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "JobNotFound",
    "KeyTaken",
    "LeaseLost",
    "ReletError",
    "Retry",
    "SignalTimeout",
    "Snooze",
    "State",
    "StoreUnavailable",
    "WaitTimeout",
    "Worker",
    "__version__",
    "injected",
    "new_id",
]


def __getattr__(name: str) -> Any:
    """Import the worker on first use: programs that only enqueue need neither it nor an event loop."""
    if name == "Worker":
        from ._worker import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
