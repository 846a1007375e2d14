"""Chains, dependencies and completions in transactions through a worker process, beside as many plain jobs."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.hands import Hands, wait_until
from bench.places import Place


def run(place: Place, hands: Hands, number: int) -> None:
    """One line each: seconds from the moment when the queue is let go until all is settled."""
    tasks, client = hands.tasks, hands.app.client
    hands.start("-q", "default")
    plain = _timed(hands, lambda: client.enqueue_many(tasks.noop.draft() for _ in range(3 * number)))
    _line(f"{3 * number:,} plain jobs", 3 * number, plain, plain)

    seconds = _timed(hands, lambda: client.enqueue_many(tasks.one.draft(n) for n in range(number)))
    _line(f"{number:,} chains of three", 3 * number, seconds, plain)
    _check_chains(hands, number)

    for name, enqueue in {"fan-in": _fan_in, "fan-out": _fan_out}.items():
        seconds = _timed(hands, lambda enqueue=enqueue: enqueue(hands, number))  # type: ignore[misc]
        _line(f"{name} of {number:,}", number + 1, seconds, plain / 3)

    seconds = _timed(hands, lambda: client.enqueue_many(tasks.in_transaction.draft() for _ in range(number)))
    _line(f"{number:,} completed in their transactions", number, seconds, plain / 3)


def _line(what: str, jobs: int, seconds: float, plain: float) -> None:
    ratio = plain / seconds
    print(f"{what:38} {seconds:7.2f} s  {jobs / seconds:>8,.0f} jobs/s   {ratio:.2f} of plain jobs", flush=True)


def _timed(hands: Hands, enqueue: Callable[[], object]) -> float:
    client = hands.app.client
    client.pause_queue("default")
    begin = time.perf_counter()
    enqueue()
    print(f"  enqueued in {time.perf_counter() - begin:.2f} s")
    begin = time.perf_counter()
    client.resume_queue("default")
    wait_until(lambda: client.count(state=["pending", "queued", "running"], most=1) == 0)
    seconds = time.perf_counter() - begin
    failed = client.count(state="failed")
    if failed:
        raise SystemExit(f"{failed} jobs have failed")
    return seconds


def _check_chains(hands: Hands, number: int) -> None:
    """Every chain has come to its end, with the result of its last job."""
    client, results, before = hands.app.client, set[str | None](), None
    while True:
        page = client.jobs(task="three", state="succeeded", limit=1000, before=before)
        results |= {job.result for job in page.jobs}
        if (before := page.next) is None:
            break
    if results != {str(3 * n) for n in range(number)}:
        raise SystemExit("the results of the chains are not what they should be")


def _fan_in(hands: Hands, number: int) -> None:
    parts = [hands.tasks.noop.draft() for _ in range(number)]
    whole = hands.tasks.noop.using(after=parts).draft()
    hands.app.client.enqueue_many([*parts, whole])


def _fan_out(hands: Hands, number: int) -> None:
    first = hands.tasks.noop.draft()
    hands.app.client.enqueue_many([first, *(hands.tasks.noop.using(after=[first]).draft() for _ in range(number))])
