"""Workers are killed with -9 under a backlog: how long until what they held runs again?"""

from __future__ import annotations

import time

from bench.hands import Hands, percentile, wait_until
from leasehold import State

LEASE = 2.0
GOAL = 4.0
TAKES = 0.02
SLOTS = 20


def run(hands: Hands, backlog: int, kills: int) -> None:
    """Two workers; one of them is killed and replaced, again and again. Every job that it held is followed."""
    work = hands.tasks.work
    hands.fill(backlog, lambda: work.draft(TAKES))
    options = ("--lease", str(LEASE), "-c", str(SLOTS))
    workers = [hands.start(*options), hands.start(*options)]
    held: dict[str, float] = {}  # job -> when its worker was killed
    for number in range(kills):
        time.sleep(LEASE + 1.5)
        victim = workers[number % 2]
        victim.kill()
        moment = time.time()
        victim.wait()
        running = hands.app.client.jobs(state=State.RUNNING, limit=1000).jobs
        held |= {job.id: moment for job in running if f":{victim.pid}:" in (job.worker or "")}
        left = hands.app.client.count(state=State.QUEUED, most=backlog)
        if left < backlog:
            hands.fill(backlog - left, lambda: work.draft(TAKES))
        workers[number % 2] = hands.start(*options)
    wait_until(lambda: held.keys() <= begun(hands, held).keys(), 60)
    spent = sorted(begun(hands, held)[job] - moment for job, moment in held.items())
    print(
        f"{kills} workers killed under a backlog of {backlog:,} or more, leases of {LEASE:g} s, {len(held)} jobs held"
    )
    shares = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    shown = "  ".join(f"{name} {percentile(spent, share):.2f}" for name, share in shares)
    print(f"kill to the next start, s: min {spent[0]:.2f}  {shown}  max {spent[-1]:.2f}   (goal: p99 at most {GOAL:g})")
    for low in range(int(spent[-1] * 2) + 1):
        some = [one for one in spent if low / 2 <= one < (low + 1) / 2]
        print(f"  {low / 2:4.1f} to {(low + 1) / 2:4.1f} s {len(some):6} {'#' * round(60 * len(some) / len(spent))}")


def begun(hands: Hands, held: dict[str, float]) -> dict[str, float]:
    """When each of these jobs began for the first time after its worker was killed."""
    found: dict[str, float] = {}
    for line in hands.notes.read_text().splitlines():
        job, _, moment = line.partition(" ")
        if job in held and float(moment) > held[job] and job not in found:
            found[job] = float(moment)
    return found
