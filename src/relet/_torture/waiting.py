"""The invariant of jobs that wait although a worker could run them. As in `check`."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial

from . import facts
from .jobs import RECOVERY, Invariant, Jobs, LimitKey, Violation, allowed, limit_keys, pid_of
from .load import Event, Record

#: Seconds until a worker with room finds a job without a notification. A check that polls does nothing just after a
#: claim, so that it takes two of them, and a claim from the mark of the cursor may miss a job for a second.
FOUND_WITHIN = 2 * 1.1 * facts.POLL_INTERVAL + 1.0
STATEMENTS = 1.0  # seconds that those of a check and of a claim may take
MACHINE = 10.0  # seconds for which a real machine may keep a process waiting

Attempt = tuple[str, int]  # job and version
Step = Callable[[float], Iterator[Violation]]


def jobs_do_not_wait_beside_free_workers(jobs: Jobs) -> Iterator[Violation]:
    """GG: no worker that has room and is undisturbed claims nothing for longer than polling takes while a job could
    run.

    A worker has room while it runs few attempts. While a job that has lost a worker is live, workers may empty
    themselves for it, and have none.
    """
    waits = _Waits(jobs)
    at = 0.0
    for at, step in sorted(_steps(jobs, waits), key=lambda pair: pair[0]):
        yield from step(at)
    yield from waits.judge_all(at)


def _steps(jobs: Jobs, waits: _Waits) -> Iterator[tuple[float, Step]]:
    for record in jobs.loaded.records:
        if record.table == "jobs":
            yield jobs.local(record), partial(waits.change, record)
    by_event = {
        "start": waits.begin, "end": waits.end, "started": waits.add_worker, "exit": waits.remove_worker,
        "queue paused": waits.pause, "queue resumed": waits.resume,
    }  # fmt: skip
    for name, step in by_event.items():
        for event in jobs.loaded.events[name]:
            yield event.at, partial(step, event)


class _Waits:
    """Which jobs could run, and which workers have room and claim nothing: each since when."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._bound = FOUND_WITHIN + STATEMENTS + (0.0 if jobs.loaded.is_virtual else MACHINE)
        self._waiting: dict[str, float] = {}
        self._free: dict[int, float] = {}
        self._known: set[int] = set()  # workers that run
        self._calm_since = 0.0  # since when no job is live that has lost a worker
        self._suspects: set[str] = set()
        self._queued: dict[str, tuple[LimitKey, ...]] = {}
        self._by_key: dict[LimitKey, set[str]] = defaultdict(set)  # the queued jobs
        self._running: dict[str, tuple[tuple[LimitKey, ...], int, Attempt]] = {}
        self._counts: Counter[LimitKey] = Counter()  # of running jobs
        self._paused: set[str] = set()
        self._busy: dict[int, set[Attempt]] = defaultdict(set)  # attempts that run by the store
        self._handlers: dict[int, set[Attempt]] = defaultdict(set)  # and those whose handlers run
        self._found: set[str] = set()

    # Jobs

    def change(self, one: Record, at: float) -> Iterator[Violation]:
        row = one.after
        state = row.get("state")
        is_suspect = state in ("queued", "running") and row["losses"] > 0
        yield from self._count_suspect(one.job, is_suspect, at)
        if one.job in self._queued:
            yield from self._leave_queue(one.job, at)
        if one.job in self._running:
            self._stop(one.job, at)
        if state == "queued" and row["queue"] not in facts.RATES and row["task"] not in facts.NEED_DATABASE:
            self._enter_queue(one.job, limit_keys(row), at)
        elif state == "running":
            yield from self._run(one, at)

    def _count_suspect(self, job: str, is_suspect: bool, at: float) -> Iterator[Violation]:
        if is_suspect and not self._suspects:
            yield from self.judge_all(at)
        was_calm = not self._suspects
        (self._suspects.add if is_suspect else self._suspects.discard)(job)
        if self._suspects:
            self._calm_since = math.inf
        elif not was_calm:
            self._calm_since = at

    def _enter_queue(self, job: str, keys: tuple[LimitKey, ...], at: float) -> None:
        self._queued[job] = keys
        for key in keys:
            self._by_key[key].add(job)
        if self._can_run(job):
            self._waiting[job] = at

    def _leave_queue(self, job: str, at: float) -> Iterator[Violation]:
        yield from self._judge_job(job, at)
        for key in self._queued.pop(job):
            self._by_key[key].discard(job)

    def _can_run(self, job: str) -> bool:
        return all(self._has_room(key) for key in self._queued[job])

    def _has_room(self, key: LimitKey) -> bool:
        limit = allowed(key)
        return key[1] not in self._paused and (limit is None or self._counts[key] < limit)

    def _stop(self, job: str, at: float) -> None:
        """Its attempt has ended, or another record of it follows."""
        keys, pid, attempt = self._running.pop(job)
        self._counts.subtract(keys)
        self._busy[pid].discard(attempt)
        self._has_less(pid, at)
        for key in keys:
            if allowed(key) is not None:
                self._reopen(key, at)

    def _reopen(self, key: LimitKey, at: float) -> None:
        """Jobs with this key may run again."""
        for job in self._by_key[key] - self._waiting.keys():
            if self._can_run(job):
                self._waiting[job] = at

    def _run(self, one: Record, at: float) -> Iterator[Violation]:
        keys, pid = limit_keys(one.after), pid_of(one.after["worker"])
        attempt = one.job, one.after["version"]
        self._running[one.job] = keys, pid, attempt
        self._counts.update(keys)
        self._busy[pid].add(attempt)
        if one.before.get("state") != "running":
            yield from self._judge_worker(pid, at)
            self._has_less(pid, at)
        yield from self._close(keys, at)

    def _close(self, keys: tuple[LimitKey, ...], at: float) -> Iterator[Violation]:
        """Jobs with these keys may not run any more, if there is no room."""
        for key in keys:
            if not self._has_room(key):
                for job in self._by_key[key] & self._waiting.keys():
                    yield from self._judge_job(job, at)

    def pause(self, event: Event, at: float) -> Iterator[Violation]:
        self._paused.add(event.fields["queue"])
        yield from self._close((("queue", event.fields["queue"]),), at)

    def resume(self, event: Event, at: float) -> Iterator[Violation]:
        self._paused.discard(event.fields["queue"])
        self._reopen(("queue", event.fields["queue"]), at)
        yield from ()

    # Workers

    def add_worker(self, event: Event, at: float) -> Iterator[Violation]:
        """One that reaches the store by a gateway depends on that, too, and does not count."""
        if event.fields["program"].startswith(facts.WORKERS) and not event.fields.get("is_remote"):
            self._known.add(event.fields["process"])
            self._free[event.fields["process"]] = at + RECOVERY
        yield from ()

    def remove_worker(self, event: Event, at: float) -> Iterator[Violation]:
        self._known.discard(event.fields["process"])
        yield from self._judge_worker(event.fields["process"], at)

    def begin(self, event: Event, at: float) -> Iterator[Violation]:
        pid = pid_of(event.fields["worker"])
        self._handlers[pid].add((event.fields["job"], event.fields["version"]))
        if not self._is_free(pid):
            yield from self._judge_worker(pid, at)

    def end(self, event: Event, at: float) -> Iterator[Violation]:
        pid = pid_of(event.fields["worker"])
        self._handlers[pid].discard((event.fields["job"], event.fields["version"]))
        self._has_less(pid, at)
        yield from ()

    def _is_free(self, pid: int) -> bool:
        return len(self._busy[pid] | self._handlers[pid]) <= facts.FEW_ATTEMPTS

    def _has_less(self, pid: int, at: float) -> None:
        """The worker may have room again, or has just claimed."""
        if pid in self._known and pid not in self._free and self._is_free(pid):
            self._free[pid] = at

    # Judgement

    def judge_all(self, at: float) -> Iterator[Violation]:
        """Judge all that wait until now."""
        if at - self._calm_since > self._bound:
            for job, since in self._waiting.items():
                yield from self._judge_against_workers(job, since, at)

    def _judge_job(self, job: str, at: float) -> Iterator[Violation]:
        """The job does not wait any more."""
        since = self._waiting.pop(job, math.inf)
        yield from self._judge_against_workers(job, since, at)

    def _judge_against_workers(self, job: str, since: float, at: float) -> Iterator[Violation]:
        if at - since > self._bound:
            for pid, free_since in self._free.items():
                yield from self._judge(job, pid, max(since, free_since), at)

    def _judge_worker(self, pid: int, at: float) -> Iterator[Violation]:
        """The worker has no room any more, or claims."""
        free_since = self._free.pop(pid, math.inf)
        if at - free_since > self._bound:
            for job, since in self._waiting.items():
                yield from self._judge(job, pid, max(since, free_since), at)

    def _judge(self, job: str, pid: int, since: float, until: float) -> Iterator[Violation]:
        since = max(since, self._calm_since)
        if until - since <= self._bound or job in self._found:
            return
        if self._jobs.was_undisturbed(pid, since, until, self._bound) and not self._jobs.has_locks(job):
            self._found.add(job)
            text = f"it could run from {since:.3f} to {until:.3f}, and process {pid} had room and claimed nothing"
            yield Violation("GG", job, text)


WAITING_CHECKS: tuple[Invariant, ...] = (jobs_do_not_wait_beside_free_workers,)
