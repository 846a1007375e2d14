"""A handler's handle on the attempt that it runs in, for those that ask: `def charge(attempt: Attempt, ...)`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from .core import names
from .core.errors import Aborted, AbortReason, InvalidInput
from .core.job import Claimed, Draft, Progress

T = TypeVar("T")

#: The attempt that runs here: what log records are marked with.
current: ContextVar[Attempt | None] = ContextVar("leasehold_attempt", default=None)


def _to_nobody(said: Progress) -> None:
    """Who is called outside a worker has nobody to report to."""


@dataclass(eq=False, slots=True)
class Attempt:
    """One run of a job, as its handler sees it."""

    job: Claimed
    deadline: float = math.inf  # by time.monotonic(): until then the lease is certainly ours; every renewal moves it
    aborted: AbortReason | None = None  # why nothing that the handler returns will be recorded any more
    tenant: str | None = None
    _report: Callable[[Progress], None] = field(default=_to_nobody, repr=False)

    @property
    def version(self) -> int:
        """Counts the claims of this job and only grows: a fencing number to send along with writes elsewhere."""
        return self.job.version

    def check(self) -> None:
        """Raise `Aborted` if this attempt is over, or if nobody can tell whether the lease is still ours."""
        if self.aborted is not None:
            raise Aborted(self.aborted)
        if time.monotonic() >= self.deadline:
            raise Aborted("in_doubt")

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the work has come, for people to see. Cheap: about once a second the latest word is stored."""
        for value in (done,) if total is None else (done, total):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInput(f"progress is told in numbers, as in progress(3, 10), not {value!r}")
        self._report(Progress(done, total, None if note is None else names.key("note", note)))

    def continue_with(self, draft: Draft[T]) -> T:
        """Return this from the handler: the job succeeds, and the draft goes on with its chain in the same statement.

        The chain's result is that of its last job, so the handler is typed as if it had returned that.
        """
        if not isinstance(draft, Draft):
            raise InvalidInput(f"continue_with takes a draft (task.draft(...)), not {type(draft).__name__}")
        return cast(T, Continuation(draft))


@dataclass(frozen=True, slots=True)
class Continuation:
    """What `continue_with` really returns. Whoever runs the handler looks for it; users never see it."""

    draft: Draft[Any]
