"""How things are measured. Each function runs one system in an empty store and returns figures by row.

Every function checks that each job was finished exactly once: the store holds no unfinished job, and there were as many
handler calls as jobs (and failures that were asked for). A difference raises `Wrong`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.lab import Lab
from bench.machine import OtherWork, cpu_seconds
from bench.places import Place, PostgresPlace
from bench.programs import Program, wait_until
from bench.statistic import percentile
from bench.systems import System

Figures = dict[str, Any]
WARM_UP = 10
FAILS_EVERY = 20  # as in adapters/wire.py
DUPLICATES_WITHIN = 0.1  # seconds that a wrongly repeated call gets to show itself
PATIENCE = 300.0


class Wrong(Exception):
    """Jobs were lost or ran twice: the figures are worthless."""


class Window:
    """Resources used between its creation and `figures`."""

    def __init__(self, place: Place, programs: Sequence[Program]) -> None:
        self._place, self._programs = place, programs
        self._before = self._totals()
        self._others = OtherWork()

    def _totals(self) -> dict[str, float]:
        server = self._place.server.cpu_seconds() if isinstance(self._place, PostgresPlace) else 0.0
        return {
            **self._place.size(),
            "cpu": sum(cpu_seconds(program.pid) for program in self._programs),
            "server": server,
        }

    def figures(self, jobs: int) -> Figures:
        """Per job: microseconds of CPU, bytes of WAL and disk. `others`: cores that other programs used."""
        others = self._others.cores()
        used = {name: (value - self._before[name]) / jobs for name, value in self._totals().items()}
        scaled = {"cpu_us": 1e6 * used.pop("cpu"), "server_us": 1e6 * used.pop("server")}
        return {"others": others, **scaled, **{f"{name}_bytes": value for name, value in used.items()}}


def _bulk(place: Place, producer: Program, jobs: int) -> Figures:
    producer.ask(f"bulk {WARM_UP}")
    window = Window(place, [producer])
    seconds = producer.ask(f"bulk {jobs}")
    return {"jobs": jobs, "rate": jobs / seconds, "seconds": seconds, **window.figures(jobs)}


def drain(lab: Lab, system: System, jobs: int, processes: int = 1, env: Mapping[str, str] | None = None) -> Figures:
    """Enqueue, then start workers; see `drain_place`. The figures of the enqueue are under `bulk`."""
    with lab.place(system) as place:
        producer = place.start("producer", env)
        enqueued = _bulk(place, producer, jobs)
        producer.kill()
        place.checkpoint()
        return drain_place(place, jobs + WARM_UP, processes, env) | {"bulk": enqueued}


def drain_place(place: Place, jobs: int, processes: int = 1, env: Mapping[str, str] | None = None) -> Figures:
    """Jobs that are there already: from the first handler call until none is left in the store.

    Workers have imported everything and are connected before they are told to begin.
    """
    workers = [place.start("worker", env) for _ in range(processes)]
    calls, left_before = jobs * place.system.calls, place.unfinished() - jobs
    window = Window(place, workers)
    for worker in workers:
        worker.go()
    wait_until(lambda: count_calls(workers) >= calls, PATIENCE, f"{calls} handler calls of {place.system.name}")
    wait_until(lambda: place.unfinished() <= max(left_before, 0), PATIENCE, "nothing is left in the store")
    seconds = time.time() - min(worker.counts.first for worker in workers if worker.counts.first)
    used = window.figures(jobs)
    check_calls(workers, calls)
    for worker in workers:
        worker.kill()
    return {"jobs": jobs, "rate": calls / seconds, "seconds": seconds, **used}


def count_calls(workers: Sequence[Program]) -> int:
    for worker in workers:
        worker.check()
    return sum(worker.counts.calls for worker in workers)


def check_calls(workers: Sequence[Program], expected: int) -> None:
    time.sleep(DUPLICATES_WITHIN)
    found = count_calls(workers)
    if found != expected:
        raise Wrong(f"{found} handler calls instead of {expected}: jobs ran twice or not at all")


def one_by_one(lab: Lab, system: System, jobs: int) -> Figures:
    """One client, one call per job; then all are run, to check that all are there."""
    with lab.place(system) as place:
        producer = place.start("producer")
        producer.ask(f"one {WARM_UP}")
        window = Window(place, [producer])
        seconds = producer.ask(f"one {jobs}")
        used = window.figures(jobs)
        producer.kill()
        drain_place(place, jobs + WARM_UP)
    return {"jobs": jobs, "rate": jobs / seconds, **used}


def flaky(lab: Lab, system: System, jobs: int) -> Figures:
    """1 ms of sleep, 100 at a time, one job in twenty fails once and is due a second later.

    The rate is that of the first 94 % of the successes, before the retries are due.
    """
    with lab.place(system) as place:
        producer = place.start("producer", system.flaky_env)
        producer.ask(f"flaky {jobs}")
        producer.kill()
        worker = place.start("worker", system.flaky_env)
        window = Window(place, [worker])
        worker.go()
        wait_until(lambda: worker.counts.successes >= 0.94 * jobs, PATIENCE, "94 % of the flaky jobs", 0.002)
        main, used = worker.counts, window.figures(jobs)
        wait_until(lambda: worker.counts.successes >= jobs, PATIENCE, "all flaky jobs")
        place.await_empty()
        check_calls([worker], jobs + -(-jobs // FAILS_EVERY))
        return {"jobs": jobs, "rate": main.successes / (main.last - main.first), **used}


def latency(lab: Lab, system: System, jobs: int, rate: float = 50.0, load: float = 0.0) -> Figures:
    """From before the enqueue call to the first line of the handler, in milliseconds; worker and producer apart.

    `load`: other jobs per second that the worker runs meanwhile.
    """
    with lab.place(system) as place:
        worker, producer = place.start("worker"), place.start("producer")
        worker.go()
        producer.ask(f"paced 20 {rate:g}")
        background = _load(place, load, jobs / rate) if load else None
        window = Window(place, [worker])
        producer.ask(f"paced {jobs} {rate:g}")
        used = window.figures(jobs)
        if background is None:
            wait_until(lambda: worker.counts.calls >= jobs + 20, 60.0, "all stamps")
            check_calls([worker], jobs + 20)
        else:
            background.kill()
            place.await_empty(60.0)
        found = worker.latencies()[20:]
    if len(found) != jobs:
        raise Wrong(f"{len(found)} of {jobs} jobs reported a latency")
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {
        "jobs": jobs,
        **{name: percentile(found, share) for name, share in shares.items()},
        "max": max(found),
        **used,
    }


def _load(place: Place, rate: float, seconds: float) -> Program:
    producer = place.start("producer")
    producer.begin(f"load {rate:g} {seconds + 5:g}")
    time.sleep(1.0)
    return producer


def steady(place: Place, jobs: int, block: int, backlog: int = 5_000) -> Figures:
    """A producer keeps at most `backlog` jobs waiting; jobs per second of each block, and bytes on disk after it."""
    worker, producer = place.start("worker"), place.start("producer")
    window = Window(place, [worker, producer])
    worker.go()
    sent, marks, sizes = 0, [0.0], list[int]()
    while (done := worker.counts).calls < jobs:
        worker.check()
        if done.calls >= len(marks) * block:
            marks.append(done.last)
            sizes.append(place.size().get("disk", 0))
        if sent < jobs and sent - done.calls <= backlog - 1000:
            producer.ask("bulk 1000")
            sent += 1000
        else:
            time.sleep(0.002)
    place.await_empty(60.0)
    check_calls([worker], jobs)
    marks[0] = worker.counts.first
    if len(marks) * block <= jobs:
        marks.append(worker.counts.last)
    rates = [block / (end - begin) for begin, end in pairwise(marks)]
    seconds = worker.counts.last - worker.counts.first
    return {"jobs": jobs, "rate": jobs / seconds, "blocks": rates, "disk": sizes, **window.figures(jobs)}
