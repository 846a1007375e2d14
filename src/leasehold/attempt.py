"""A handler's handle on the attempt that it runs in, for those that ask: `def charge(attempt: Attempt, ...)`."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from .core.errors import Aborted, AbortReason
from .core.job import Claimed, Draft

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Attempt:
    """One run of a job, as its handler sees it."""

    job: Claimed
    deadline: float = math.inf  # by time.monotonic(): until then the lease is certainly ours; every renewal moves it
    aborted: AbortReason | None = None  # why nothing that the handler returns will be recorded any more

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

    def continue_with(self, draft: Draft[T]) -> T:
        """Return this from the handler: the job succeeds, and the draft goes on with its chain in the same statement.

        The chain's result is that of its last job, so the handler is typed as if it had returned that.
        """
        return cast(T, Continuation(draft))


@dataclass(frozen=True, slots=True)
class Continuation:
    """What `continue_with` really returns. Whoever runs the handler looks for it; users never see it."""

    draft: Draft[Any]
