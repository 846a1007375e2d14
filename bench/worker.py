"""Jobs that do nothing, through worker processes, beside a bare loop of the same claim and settle statements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.hands import Hands, wait_until
from bench.places import Place
from bench.store import Bare

BATCH = 500


def run(place: Place, hands: Hands, number: int, repeat: int) -> None:
    """A line for each way, medians of the repetitions; the ways take turns."""
    noop, plain = hands.tasks.noop, hands.tasks.plain_noop
    ways: dict[str, Callable[[], float]] = {
        "bare loop": lambda: bare_loop(place, hands, number),
        "one worker process": lambda: drain(place, hands, number, 1, noop.draft),
        "two worker processes": lambda: drain(place, hands, number, 2, noop.draft),
        "one, in threads": lambda: drain(place, hands, number, 1, plain.draft),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            rates[name].append(number / way())
            place.tidy()
    print(f"{number:,} jobs that do nothing, settled; jobs/s, median of {repeat} (lowest, highest)   of the bare loop")
    bare = statistics.median(rates["bare loop"])
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:22} {middle:>10,.0f}  ({min(found):,.0f}, {max(found):,.0f})   {middle / bare:.2f}", flush=True)


def bare_loop(place: Place, hands: Hands, number: int) -> float:
    """Claim and settle by turns, with nothing in between."""
    loop = Bare(place, task="noop")
    hands.fill(number, hands.tasks.noop.draft)
    begin = time.perf_counter()
    while jobs := loop.claim(BATCH):
        loop.settle(jobs)
    return time.perf_counter() - begin


def drain(place: Place, hands: Hands, number: int, processes: int, draft: Callable[[], object]) -> float:
    """From the moment when the queue is let go until it is empty. The workers are there before, and warm."""
    client = hands.app.client
    for _ in range(processes):
        hands.start("-q", "default")
    hands.notes.write_text("")
    client.pause_queue("default")
    hands.fill(number, draft)
    client.enqueue(hands.tasks.last.using(priority=-100).draft())
    begin = time.perf_counter()
    client.resume_queue("default")
    wait_until(lambda: hands.notes.read_text().startswith("last"))
    wait_until(lambda: not client.count(state="running", most=1))
    spent = time.perf_counter() - begin
    hands.stop()
    return spent
