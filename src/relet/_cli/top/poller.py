"""Reads the store once a second in a separate thread, so that a slow database does not delay keys."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from ..._client.client import Client
from ..._core.job import Job
from ..._core.text import one_line
from ...errors import ReletError
from ...types import QueueInfo, StatPoint, WorkerInfo
from .. import output
from ..jobs import job_facts
from ..queues import limits_of
from ..workers import queues_of, state_of

EVERY = 1.0
RATES_OVER = 30.0
RATES_FROM = 12.0  # workers report their counts about every five seconds
MAX_JOBS = 100

Watched = tuple[str, str]  # a table, and the key of the line whose details are open
Action = Callable[[Client], str]  # returns the message to display
Counts = Counter[tuple[str, str]]  # by queue and outcome of attempts


@dataclass(frozen=True)
class Detail:
    """Details of one queue, worker or job."""

    watched: Watched
    facts: list[tuple[str, object]]
    heads: tuple[str, ...] = ()
    lines: list[tuple[object, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot:
    """The result of one read of the store."""

    at: datetime
    where: str
    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    running: list[Job[Any]]
    failed: list[Job[Any]]
    rates: dict[str, float]  # attempts per second, by outcome
    queue_rates: dict[str, float]
    detail: Detail | None = None


@dataclass(frozen=True)
class Message:
    """The result of an action, or the error of a read (`down`)."""

    text: str
    bad: bool = False
    down: bool = False


class SnapshotReader:
    """Reads snapshots, and keeps earlier totals, because rates are differences."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._totals: deque[tuple[float, Counts]] = deque()

    def read(self, watched: Watched | None = None) -> Snapshot:
        client = self._client
        rates, queue_rates = self._rates()
        return Snapshot(
            datetime.now(UTC),
            client.where,
            client.queues(),
            client.workers(),
            client.jobs(state="running", limit=MAX_JOBS).jobs,
            client.jobs(state="failed", limit=MAX_JOBS).jobs,
            rates,
            queue_rates,
            None if watched is None else detail(client, *watched),
        )

    def _rates(self) -> tuple[dict[str, float], dict[str, float]]:
        """Attempts per second, by outcome and by queue."""
        now = time.monotonic()
        totals = _summed(self._client.totals())
        self._totals.append((now, totals))
        while len(self._totals) > 2 and now - self._totals[0][0] > RATES_OVER:
            self._totals.popleft()
        seconds, new = now - self._totals[0][0], totals - self._totals[0][1]
        if seconds < RATES_FROM:
            seconds, new = self._last_minute()
        by_outcome: Counter[str] = Counter()
        by_queue: Counter[str] = Counter()
        for (name, outcome), number in new.items():
            by_outcome[outcome] += number
            by_queue[name] += number
        return _per_second(by_outcome, seconds), _per_second(by_queue, seconds)

    def _last_minute(self) -> tuple[float, Counts]:
        """The stored counts of this minute and the one before, until there are earlier totals to compare with."""
        now = datetime.now(UTC)
        begin = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
        return (now - begin).total_seconds(), _summed(self._client.stats(since=begin, step=60))


def _per_second(counts: Counter[str], seconds: float) -> dict[str, float]:
    return {name: number / seconds for name, number in counts.items()}


def detail(client: Client, table: str, key: str) -> Detail:
    """Read the details of a line of a table."""
    reader = {"queues": _of_queue, "workers": _of_worker}.get(table, _of_job)
    return reader(client, (table, key))


def _of_job(client: Client, watched: Watched) -> Detail:
    job = client.get(watched[1])
    if job is None:
        return Detail(watched, [("job", watched[1]), ("state", "deleted or pruned")])
    tasks = [one.task for one in client.chain(job)]
    lines: list[tuple[object, ...]] = [
        (one.attempt, one.worker, one.started_at, one.outcome, one_line(one.error)) for one in client.attempts(job)
    ]
    heads = ("ATTEMPT", "WORKER", "STARTED (UTC)", "OUTCOME", "ERROR")
    return Detail(watched, job_facts(job, client.explain(job), tasks), heads, lines)


def _of_queue(client: Client, watched: Watched) -> Detail:
    found = [one for one in client.queues() if one.queue == watched[1]]
    jobs = client.jobs(queue=watched[1], state=["pending", "queued", "running", "paused", "failed"], limit=50).jobs
    facts: list[tuple[str, object]] = [("queue", watched[1])]
    for one in found:
        facts += [
            ("claims", "paused: no worker claims from it" if one.paused else "open"),
            ("limits", limits_of(one) or None),
            ("oldest", output.seconds(one.oldest) or None),
        ]
    lines: list[tuple[object, ...]] = [
        (job.id, job.task, output.state(job), output.since(job.created_at)) for job in jobs
    ]
    return Detail(watched, facts, ("ID", "TASK", "STATE", "AGE"), lines)


def _of_worker(client: Client, watched: Watched) -> Detail:
    facts: list[tuple[str, object]] = [("worker", watched[1])]
    for one in client.workers():
        if one.name == watched[1]:
            facts += [
                ("state", state_of(one)), ("host", one.host), ("process", one.pid), ("started", one.started_at),
                ("seen", f"{output.since(one.seen_at)} ago"), ("queues", queues_of(one)),
                ("slots", f"{one.running} of {one.slots} in use"), ("lease", output.seconds(one.lease)),
                ("version", one.version), ("tasks", ", ".join(one.tasks)),
            ]  # fmt: skip
    lines: list[tuple[object, ...]] = [
        (job.id, job.task, output.since(job.started_at), output.until(job.expires_at), output.progress(job.progress))
        for job in client.jobs(state="running", worker=watched[1], limit=50).jobs
    ]
    return Detail(watched, facts, ("ID", "TASK", "RUNS FOR", "LEASE LEFT", "PROGRESS"), lines)


def _summed(points: Iterable[StatPoint]) -> Counts:
    counts: Counts = Counter()
    for point in points:
        for outcome, number in point.counts.items():
            counts[point.queue, outcome] += number
    return counts


class Poller:
    """The thread. The file descriptor `wakeup` becomes readable when there are updates."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader = SnapshotReader(client)
        self._actions: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self._updates: queue.SimpleQueue[Snapshot | Message | BaseException] = queue.SimpleQueue()
        self._watching: Watched | None = None
        self._thread = threading.Thread(target=self._run, name="relet-top", daemon=True)
        self._stopping = False

    def __enter__(self) -> Poller:
        self.first = self._reader.read()  # here, so that an error is raised before anything is drawn
        self.wakeup, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_writer, False)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping = True
        self._actions.put(None)
        self._thread.join(2.0)
        if not self._thread.is_alive():
            os.close(self.wakeup)
            os.close(self._wakeup_writer)

    @property
    def watching(self) -> Watched | None:
        """The line whose details every snapshot includes."""
        return self._watching

    @watching.setter
    def watching(self, watched: Watched | None) -> None:
        if watched != self._watching:
            self._watching = watched
            self._actions.put(None)

    def submit(self, action: Action) -> None:
        """Run an action in the thread."""
        self._actions.put(action)

    def take_updates(self) -> list[Snapshot | Message]:
        """The updates since the last call. Raises an unexpected error of the thread."""
        updates: list[Snapshot | Message] = []
        while not self._updates.empty():
            update = self._updates.get()
            if isinstance(update, BaseException):
                raise update
            updates.append(update)
        return updates

    def _run(self) -> None:
        due = time.monotonic() + EVERY
        while not self._stopping:
            try:
                action = self._actions.get(timeout=max(due - time.monotonic(), 0.0))
            except queue.Empty:
                action = None
            if self._stopping:
                return
            result = None if action is None else self._perform(action)
            began = time.monotonic()
            self._publish(self._read())
            took = time.monotonic() - began
            due = time.monotonic() + max(EVERY - took, took)  # a slow store gets a pause as long as the read
            if result is not None:
                self._publish(result)  # after the new snapshot, so that the next key applies to the new state

    def _perform(self, action: Action) -> Message | BaseException:
        try:
            return Message(action(self._client))
        except ReletError as error:
            return Message(str(error), bad=True)
        except BaseException as error:  # take_updates raises it in the main thread
            return error

    def _read(self) -> Snapshot | Message | BaseException:
        try:
            return self._reader.read(self._watching)
        except ReletError as error:
            return Message(str(error), bad=True, down=True)
        except BaseException as error:
            return error

    def _publish(self, update: Snapshot | Message | BaseException) -> None:
        self._updates.put(update)
        with suppress(BlockingIOError):  # the pipe is full: the reader will wake up anyway
            os.write(self._wakeup_writer, b".")
