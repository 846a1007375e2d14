"""How soon an idle worker begins, and what it costs while it waits."""

from __future__ import annotations

import random
import time

from bench.hands import Hands, cpu_seconds, percentile

IDLE_FOR = 20.0


def run(hands: Hands, number: int) -> None:
    """Single jobs, enqueued here, begun in a worker process that has nothing else to do."""
    worker = hands.start()
    client, stamp = hands.app.client, hands.tasks.stamp
    spent = []
    for _ in range(number):
        time.sleep(random.uniform(0.02, 0.08))  # noqa: S311
        spent.append(1000 * client.result(stamp.enqueue(time.time()), timeout=30))
    shown = "  ".join(
        f"{name} {percentile(spent, share):.1f}" for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    )
    print(f"enqueue to handler start, ms, {number} jobs: {shown}  max {max(spent):.1f}")
    time.sleep(2.0)
    before, begin = cpu_seconds(worker), time.monotonic()
    time.sleep(IDLE_FOR)
    used = (cpu_seconds(worker) - before) / (time.monotonic() - begin)
    print(f"idle worker: {100 * used:.2f} % of a core over {IDLE_FOR:.0f} s", flush=True)
