"""Looks at the store once a second, in a thread of its own: a slow database makes no key wait."""

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
from ...errors import ReletError
from ...types import QueueInfo, StatPoint, WorkerInfo
from .. import output
from ..jobs import job_facts
from ..queues import limits_of
from ..workers import queues_of, state_of

EVERY = 1.0
RATES_OVER = 30.0
RATES_FROM = 12.0  # workers tell what they have counted about once in five seconds
MOST_JOBS = 100

Watched = tuple[str, str]  # a table, and what is looked at in it
Do = Callable[[Client], str]
Counts = Counter[tuple[str, str]]  # by queue, and by how attempts ended


@dataclass(frozen=True)
class Detail:
    """More about one thing."""

    watched: Watched
    facts: list[tuple[str, object]]
    heads: tuple[str, ...] = ()
    lines: list[tuple[object, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot:
    """What a look has found."""

    at: datetime
    where: str
    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    running: list[Job[Any]]
    failed: list[Job[Any]]
    rates: dict[str, float]  # attempts ended in a second, by how
    queue_rates: dict[str, float]
    detail: Detail | None = None


@dataclass(frozen=True)
class Message:
    """What came of something that was asked for, or why nothing can be seen."""

    text: str
    bad: bool = False
    down: bool = False


class Looker:
    """Looks, and remembers what it saw before: rates are differences."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: deque[tuple[float, Counts]] = deque()

    def look(self, watched: Watched | None = None) -> Snapshot:
        """Everything that is shown."""
        client = self._client
        rates, queue_rates = self._rates()
        return Snapshot(
            datetime.now(UTC),
            client.where,
            client.queues(),
            client.workers(),
            client.jobs(state="running", limit=MOST_JOBS).jobs,
            client.jobs(state="failed", limit=MOST_JOBS).jobs,
            rates,
            queue_rates,
            None if watched is None else detail(client, *watched),
        )

    def _rates(self) -> tuple[dict[str, float], dict[str, float]]:
        """By how attempts ended, and by queue."""
        now = time.monotonic()
        totals = _summed(self._client.totals())
        self._seen.append((now, totals))
        while len(self._seen) > 2 and now - self._seen[0][0] > RATES_OVER:
            self._seen.popleft()
        seconds, new = now - self._seen[0][0], totals - self._seen[0][1]
        if seconds < RATES_FROM:
            seconds, new = self._last_minute()
        rates: Counter[str] = Counter()
        queue_rates: Counter[str] = Counter()
        for (name, how), number in new.items():
            rates[how] += number
            queue_rates[name] += number
        return {k: n / seconds for k, n in rates.items()}, {k: n / seconds for k, n in queue_rates.items()}

    def _last_minute(self) -> tuple[float, Counts]:
        """Until there is something to compare with: what is stored of this minute and the one before."""
        now = datetime.now(UTC)
        begin = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
        return (now - begin).total_seconds(), _summed(self._client.stats(since=begin, step=60))


def detail(client: Client, table: str, key: str) -> Detail:
    """More about a line of a table."""
    about = {"queues": _of_queue, "workers": _of_worker}.get(table, _of_job)
    return about(client, (table, key))


def _of_job(client: Client, watched: Watched) -> Detail:
    job = client.get(watched[1])
    if job is None:
        return Detail(watched, [("job", watched[1]), ("state", "deleted or pruned")])
    tasks = [one.task for one in client.chain(job)]
    lines: list[tuple[object, ...]] = [
        (one.attempt, one.worker, one.started_at, one.outcome, output.first_line(one.error))
        for one in client.attempts(job)
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
        for how, number in point.counts.items():
            counts[point.queue, how] += number
    return counts


class Feed:
    """The thread. `wakes` can be read when there is news."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._looker = Looker(client)
        self._asked: queue.SimpleQueue[Do | None] = queue.SimpleQueue()
        self._news: queue.SimpleQueue[Snapshot | Message | BaseException] = queue.SimpleQueue()
        self._watching: Watched | None = None
        self._thread = threading.Thread(target=self._run, name="relet-top", daemon=True)
        self._stopping = False

    def __enter__(self) -> Feed:
        self.first = self._looker.look()  # here: if there is nothing to be seen, that is said before anything is drawn
        self.wakes, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping = True
        self._asked.put(None)
        self._thread.join(2.0)
        if not self._thread.is_alive():
            os.close(self.wakes)
            os.close(self._wake)

    @property
    def watching(self) -> Watched | None:
        """Whose details are looked up with every look."""
        return self._watching

    @watching.setter
    def watching(self, watched: Watched | None) -> None:
        if watched != self._watching:
            self._watching = watched
            self._asked.put(None)

    def ask(self, do: Do) -> None:
        """Have something done."""
        self._asked.put(do)

    def take_news(self) -> list[Snapshot | Message]:
        """What has come since. Raises what the thread did not expect."""
        news: list[Snapshot | Message] = []
        while not self._news.empty():
            one = self._news.get()
            if isinstance(one, BaseException):
                raise one
            news.append(one)
        return news

    def _run(self) -> None:
        due = time.monotonic() + EVERY
        while not self._stopping:
            try:
                do = self._asked.get(timeout=max(due - time.monotonic(), 0.0))
            except queue.Empty:
                do = None
            if self._stopping:
                return
            said = None if do is None else self._done(do)
            began = time.monotonic()
            self._tell(self._looked())
            took = time.monotonic() - began
            due = time.monotonic() + max(EVERY - took, took)  # a store that is slow is left alone for as long
            if said is not None:
                self._tell(said)  # when it can be seen: the next key is not meant for how things were before

    def _done(self, do: Do) -> Message | BaseException:
        try:
            return Message(do(self._client))
        except ReletError as error:
            return Message(str(error), bad=True)
        except BaseException as error:  # it goes to whoever draws, which ends
            return error

    def _looked(self) -> Snapshot | Message | BaseException:
        try:
            return self._looker.look(self._watching)
        except ReletError as error:
            return Message(str(error), bad=True, down=True)
        except BaseException as error:
            return error

    def _tell(self, news: Snapshot | Message | BaseException) -> None:
        self._news.put(news)
        with suppress(BlockingIOError):  # it is awake already
            os.write(self._wake, b".")
