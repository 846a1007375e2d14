"""Whether a worker's memory grows with the jobs that it has run."""

from __future__ import annotations

from bench.hands import Hands, resident_mib, wait_until

WARM_UP = 20_000
STEPS = 5
GOAL = 20


def run(hands: Hands, number: int) -> None:
    """Memory after a warm-up, and after each fifth of the jobs."""
    worker = hands.start()
    work_off(hands, WARM_UP)
    first = resident_mib(worker)
    print(f"after {WARM_UP:>9,} jobs {first:7.1f} MiB")
    for step in range(1, STEPS + 1):
        work_off(hands, number // STEPS)
        now = resident_mib(worker)
        print(f"after {WARM_UP + number * step // STEPS:>9,} jobs {now:7.1f} MiB  ({now - first:+.1f})", flush=True)
    print(f"growth over {number:,} jobs: {now - first:+.1f} MiB (goal: under {GOAL})")


def work_off(hands: Hands, number: int) -> None:
    client = hands.app.client
    hands.fill(number, hands.tasks.noop.draft)
    wait_until(lambda: not client.count(state=["queued", "running"], most=1))
