"""Logs how attempts end: a line for each while there are few, and one line a second while there are many.

A job that has failed for good always gets its own line. At the level DEBUG, every attempt does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from .._core.job import Raised, State
from .._core.text import duration, one_line, printable
from .._system import System
from .execution import Execution

log = logging.getLogger("relet.worker")

MAX_LINES = 20  # a second, of each kind
LISTED = 5  # tasks that a summary names


class JobLog:
    """The log lines about the attempts of one worker at one store. Not locked: only the settler's thread uses it."""

    def __init__(self, system: System) -> None:
        self._now = system.monotonic
        self._succeeded = _Lines(logging.INFO, "%s jobs succeeded in the last second: %s")
        self._retried = _Lines(logging.WARNING, "%s more attempts failed in the last second and are retried: %s")

    @property
    def wants_successes(self) -> bool:
        return log.isEnabledFor(logging.INFO)

    def succeeded(self, executions: Sequence[Execution]) -> None:
        """Log successes. Most of a large batch is only counted."""
        now = self._now()
        for execution in self._succeeded.select(executions, now):
            job = execution.job
            seconds = execution.stopped_at - execution.started_at
            tries = f" (attempt {job.attempt} of {job.policy.max_attempts})" if job.attempt > 1 else ""
            text = "%s %s succeeded in %s%s"
            log.info(text, job.task, job.id, duration(seconds), tries, extra=execution.log_fields)

    def failed(self, execution: Execution, outcome: Raised, state: State, delay: float | None) -> None:
        """Log a failure with its traceback, and say when the next attempt begins."""
        if state is State.PENDING and not self._retried.select([execution], self._now()):
            return
        job = execution.job
        level = logging.ERROR if state is State.FAILED else logging.WARNING
        if not log.isEnabledFor(level):
            return
        head, _, traceback = outcome.error.partition("\n\n")
        what = (job.task, job.id, job.attempt, job.policy.max_attempts, _next_step(state, delay), one_line(head))
        text = "%s %s failed (attempt %d of %d, %s): %s"
        record = log.makeRecord(log.name, level, __file__, 0, text, what, None, "failed", execution.log_fields)
        record.exc_text = _printable_lines(traceback)  # formatters print it below the message
        log.handle(record)

    def other(self, execution: Execution, state: State) -> None:
        """Log an attempt that ended in another way: snoozed, released, or changed by a request."""
        job = execution.job
        log.debug("%s %s: attempt %d, now %s", job.task, job.id, job.attempt, state, extra=execution.log_fields)

    def flush(self) -> float | None:
        """Log summaries that are due. Returns the seconds until the next is due; None: there is none."""
        now = self._now()
        waits = [one.flush(now) for one in (self._succeeded, self._retried)]
        return min([wait for wait in waits if wait is not None], default=None)


def _printable_lines(text: str) -> str | None:
    return "\n".join([printable(line) for line in text.splitlines()]) or None


def _next_step(state: State, delay: float | None) -> str:
    if state is State.FAILED:
        return "no retry"
    if state is State.PENDING and delay is not None:
        return f"next try in {duration(delay)}"
    return f"now {state}"


class _Lines:
    """Lines of one kind: at most MAX_LINES within a second, and then a count of the others by task."""

    def __init__(self, level: int, summary: str) -> None:
        self._level = level
        self._summary = summary
        self._until = 0.0  # the end of the current second
        self._left = MAX_LINES
        self._counted: Counter[str] = Counter()

    def select(self, executions: Sequence[Execution], now: float) -> Sequence[Execution]:
        """The executions that get a line. The others are counted."""
        if log.isEnabledFor(logging.DEBUG):
            return executions
        if now >= self._until:
            self.flush(now)
            self._until, self._left = now + 1.0, MAX_LINES
        lines, rest = executions[: self._left], executions[self._left :]
        self._left -= len(lines)
        if rest:
            self._counted.update([execution.job.task for execution in rest])
        return lines

    def flush(self, now: float) -> float | None:
        if not self._counted:
            return None
        if now < self._until:
            return self._until - now
        counted, self._counted = self._counted, Counter()
        common = counted.most_common(LISTED)
        named = ", ".join(f"{task} {number:,}" for task, number in common)
        more = ", ..." if len(counted) > LISTED else ""
        log.log(self._level, self._summary, f"{counted.total():,}", named + more)
        return None
