"""The interface of `app.telemetry`, which traces jobs from enqueue to the end of each attempt.

It is None unless the app is instrumented. Implementations must not raise: tracing must not make a job fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from .._attempts.attempt import Attempt
from .._core.job import Draft, Job, Outcome

Stored = Callable[[Sequence[Job[Any]]], object]


class Watch(Protocol):
    """Traces one attempt."""

    def handed_over(self) -> str | None:
        """The trace context for a handler that runs in a child process."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """Called at the end of the attempt. `attempt._error` is the exception that the handler raised."""
        ...


class Telemetry(Protocol):
    """Traces jobs."""

    def created(self, draft: Draft[Any], /) -> None:
        """Called for a new draft that the caller will store: set its context."""
        ...

    def sending(self, drafts: Sequence[Draft[Any]], /) -> AbstractContextManager[Stored]:
        """Wraps the storing of drafts, sets missing contexts, and yields a function that receives the stored jobs."""
        ...

    def running(self, attempt: Attempt, /, within: str | None = None) -> AbstractContextManager[Watch]:
        """Wraps an attempt. `within`: in a child process, the context from `handed_over` in its worker."""
        ...
