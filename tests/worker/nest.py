"""A nest of workers that run `tests.worker.teller`: `python -m tests.worker.nest [--again] queue ...`.

There is a worker process for each queue, forked, so that they are all there at once. With `--again` whoever dies is
born again.
"""

from __future__ import annotations

import asyncio
import os
import sys

from leasehold import Worker
from tests.worker.teller import app

LEASE = 1.0


def _hatch(queue: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(Worker(app, queues=[queue], concurrency=4, lease=LEASE, poll=0.1).run())
    finally:
        os._exit(0)


def _nest(queues: list[str], *, again: bool) -> None:
    living = {_hatch(queue): queue for queue in queues}
    while living:
        pid, _ = os.wait()
        queue = living.pop(pid)
        if again:
            living[_hatch(queue)] = queue


if __name__ == "__main__":
    words = sys.argv[1:]
    _nest([word for word in words if word != "--again"], again="--again" in words)
