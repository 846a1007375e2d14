"""Run seeds: python -m tests.simulation --seeds 10000"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache

from relet._torture.plan import Fault
from tests import servers
from tests.simulation.lockstep import Schema
from tests.simulation.run import Result, make_plan, simulate

CHUNK = 5
LISTED = 5  # violations of a seed
URL = "RELET_SIMULATION_URL"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stop", action="store_true", help="stop at the first violation")
    parser.add_argument("--quick", action="store_true", help="do not shorten the plans that break an invariant")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, in lockstep")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], {  # noqa: S606
            **os.environ, "PYTHONHASHSEED": "0"})  # fmt: skip
    with _databases(options.postgres):
        return _run(options)


@contextmanager
def _databases(is_postgres: bool) -> Iterator[None]:
    """Start PostgreSQL, if it is wanted. Each process finds its URL in the environment."""
    if not is_postgres:
        yield
    elif not servers.local_names():
        sys.exit(servers.HOW_TO_GET_ONE)
    else:
        with servers.running() as found:
            os.environ[URL] = found.get(servers.local_names()[0]).dsn
            yield


def _run(options: argparse.Namespace) -> int:
    began, lost, jobs, faults, found = time.monotonic(), 0, 0, 0, list[Result]()
    number = 0
    for result in _results(range(options.first, options.first + options.seeds), options.processes):
        number += 1
        lost, jobs, faults = lost + result.lost, jobs + result.jobs, faults + result.faults
        if result.violations:
            found.append(result)
            if options.stop:
                break
    seconds = time.monotonic() - began
    print(f"{number} seeds in {seconds:.0f} s: {jobs:,} jobs, {faults:,} faults, {lost:,} attempts lost")
    for result in [] if options.quick else found[:3]:
        _explain(result)
    for result in found:
        print(f"seed {result.seed}:")
        for one in result.violations[:LISTED]:
            print(f"  {one.invariant} {one.job} {one.text}")
    letters = Counter(one.invariant for result in found for one in result.violations)
    print(f"{len(found)} seeds broke an invariant {dict(letters) or ''}")
    return 1 if found else 0


def _results(seeds: range, processes: int) -> Iterator[Result]:
    logging.disable(logging.CRITICAL)
    chunks = [seeds[first : first + CHUNK] for first in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(processes, max_tasks_per_child=None) as pool:
        try:
            for results in pool.map(_simulate_all, chunks):
                yield from results
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _simulate_all(seeds: range) -> list[Result]:
    logging.disable(logging.CRITICAL)
    with without_collector():
        return [_simulate(seed) for seed in seeds]


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect garbage once, in the end: a few simulations leave little."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def _simulate(seed: int, plan: list[Fault] | None = None) -> Result:
    schema = _schema()
    if schema is not None:
        schema.empty()
    return simulate(seed, plan, schema)


@cache
def _schema() -> Schema | None:
    """The schema of this process."""
    url = os.environ.get(URL)
    return Schema(url, f"simulation_{os.getpid()}") if url else None


def _explain(result: Result) -> None:
    plan = shrink(result.seed, make_plan(result.seed))
    print(f"seed {result.seed}: {len(plan)} of {result.faults} faults are needed:")
    for fault in plan:
        print(f"  {fault.at:7.3f} s {fault.kind}, worker {fault.worker}, size {fault.size:.3f}")
    for one in _simulate(result.seed, plan).violations[:LISTED]:
        print(f"  {one.invariant} {one.job} {one.text}")


def shrink(seed: int, plan: list[Fault]) -> list[Fault]:
    """Leave out faults, half of them at first and single ones in the end, as long as an invariant is broken."""
    size = len(plan) // 2
    while size:
        for first in range(0, len(plan), size):
            shorter = plan[:first] + plan[first + size :]
            if _simulate(seed, shorter).violations:
                plan = shorter
                break
        else:
            size //= 2
    return plan


if __name__ == "__main__":
    sys.exit(main())
